//! A whole cluster in a process: the real controllers, a simulated API server and a simulated cloud, on a clock of its own.
//!
//! The demo lets people play with it; scenarios tell it a story, with what goes wrong in it, and say how it must end.
//! What must hold all along is checked from outside: by what the API server's store and the cloud's truth show, never by
//! what the controllers say of themselves.

mod action;
mod book;
mod caller;
mod expectation;
mod fault;
mod file;
mod ground;
mod invariant;
mod objects;
mod pace;
mod play;
mod prefill;
mod process;
mod shrink;
mod tally;
mod time;
mod witness;
mod world;

pub use action::{ImageWords, Named, Patch, Step, Struck};
pub use book::{STORIES, Story};
pub use fault::{FaultLine, Kind as FaultKind, Point, Profile, Strike};
pub use file::{Filled, Flaw, RegionWords, Scenario};
pub use invariant::Violation;
pub use objects::{Pool, Spread, Workload, node_class};
pub use pace::{Pace, Speed, at_speed, on_paced_time, on_virtual_time};
pub use play::{Outcome, Play, furnish, play, tell};
pub use prefill::{Fullness, prefill};
pub use process::{Life, NAMESPACE, Wrap};
pub use shrink::{saved, shrink};
pub use tally::Tally;
pub use witness::Witness;
pub use world::{Setup, World};
