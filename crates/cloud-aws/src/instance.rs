//! Our machines: what EC2 says about them, how they are launched, listed and ended.

mod batch;
mod describe;
mod facts;
mod lookup;
mod machines;
mod memory;
mod tagging;
mod terminate;

pub(crate) use facts::OF_RESERVATIONS;
pub use machines::{Ec2Machines, MachineOptions};
