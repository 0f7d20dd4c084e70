//! Azure virtual machines: a drop-in for Karpenter's provider for AKS.

pub mod arm;
mod class;
mod ids;
pub mod offers;
