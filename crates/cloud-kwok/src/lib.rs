//! The simulated cloud: its machines are Node objects that kwok keeps alive.
//!
//! Offers, labels, annotations and delays are those of Karpenter's kwok provider. Unlike there a launch is named by its
//! token, so that asking twice makes one node, and what was under way when a process died is taken up by the next.

mod choice;
mod machine;
mod node_class;
mod offers;
mod provider;
mod registration;

pub use offers::{Offers, OffersError};
pub use provider::Kwok;
