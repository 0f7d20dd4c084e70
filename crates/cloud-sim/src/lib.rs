//! A cloud that exists only here: a region with zones, real catalogues, and everything that goes wrong in one.
//!
//! The [`Region`] is the truth: which machines run, what they cost, what is short. A [`CloudSim`] is what one process of
//! the autoscaler sees of it through the provider contract, late and with errors where the region is set to have them.
//! Whatever chance decides is a function of the seed and of the thing it decides about, never of the order of calls, so
//! a run with one fault taken out is otherwise the same run.

mod chance;
mod fault;
mod machine;
mod market;
mod provider;
mod region;

pub use chance::{Chance, Draw};
pub use fault::{CallFacts, CallFault, Method};
pub use machine::{Ending, Machine, Phase};
pub use market::{Market, Scope};
pub use provider::CloudSim;
pub use region::{Bill, Defect, Happening, Image, Now, Region, Rules};
