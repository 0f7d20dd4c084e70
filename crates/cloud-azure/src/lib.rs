//! Azure virtual machines: a drop-in for Karpenter's provider for AKS.

pub mod arm;
mod class;
mod cluster;
mod ids;
mod node_class;
mod objects;
pub mod offers;
mod reads;
mod remembered;
mod version;

pub use node_class::Controller;
pub use reads::{Parts, ReadSide};
