//! Our machines: what Azure says about them, how they are launched, listed and ended.

mod facts;
mod graph;
mod in_place;
mod interfaces;
mod machines;
mod watch;

pub(crate) use self::{in_place::update_in_place, interfaces::sweep_interfaces, machines::Machines};
