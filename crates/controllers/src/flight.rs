//! The flight recorder: what decisions were made on, in files, so that they can be made again elsewhere.
//!
//! Off unless a directory is named. The thread that decides only hands over what it holds anyway; another one writes.

mod given;
mod tape;

pub use given::{Answer, Unlike, again};
pub(crate) use given::{RoundGiven, Taped};
pub use tape::Flight;
