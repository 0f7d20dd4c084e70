//! Azure virtual machines: a drop-in for Karpenter's provider for AKS.
//!
//! One side says what there is: node classes and what they resolve to ([`Controller`]), sizes with prices, quotas and
//! shortages ([`offers`]), what has drifted. The other makes and removes machines. Both speak to Azure through [`arm`].

pub mod arm;
mod background;
mod class;
mod cluster;
mod drift;
mod evictions;
mod ids;
mod instance;
mod launch;
mod mode;
mod node_class;
pub mod offers;
mod provider;
mod reads;
mod version;

pub use node_class::Controller;
pub use provider::Azure;
pub use reads::{Parts, ReadSide};
