//! What was decided, written down: every claim that is made or goes, every pod and node that is refused, with its why.
//!
//! The [`Book`] is in memory and never waits; [`Keeper`] sees that it outlives the process. Nothing is decided by what is
//! in it: without it everything happens all the same.

mod book;
mod ends;
mod follow;
mod keeper;
mod launches;
mod moves;
mod nodes;
mod pods;
mod story;

pub(crate) use book::Book;
pub(crate) use ends::{ended, scaled_down};
pub(crate) use follow::follow;
pub use keeper::Keeper;
pub(crate) use launches::{decision_of, id_of_claim, launched};
pub(crate) use moves::{aborted, begun, id_of_move, planned, went_on};
pub(crate) use nodes::{id_of_refusal, kept};
pub(crate) use pods::RefusedPods;
pub(crate) use story::Story;
