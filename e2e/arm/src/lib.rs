//! Which Azure do tests speak to? A double of Resource Manager: stateful, strict about the published contract, and with a
//! knob for everything that goes wrong on the real one.
//!
//! ```no_run
//! # async fn example() -> anyhow::Result<()> {
//! let azure = arm::Double::start(arm::Setup::default()).await?;
//! // … a client is pointed at azure.url() …
//! assert!(azure.violations().is_empty());
//! # Ok(()) }
//! ```
//!
//! From outside the process the same is under `/_double`: `GET state`, `violations`, `calls`, `setup`, and `POST` of every
//! [`knob::Knob`] by its name.

mod admission;
mod allocation;
mod answer;
mod catalogue;
mod contract;
mod disk;
mod double;
mod extension;
mod fault;
mod gallery;
mod glob;
mod graph;
pub mod knob;
mod ledger;
mod machine;
mod metadata;
mod network;
mod nic;
mod operation;
mod plant;
mod price;
mod request;
mod role;
mod schema;
mod serve;
mod setup;
mod shelf;
mod state;
mod token;
mod turn;
mod uri;
mod vm;
mod world;

pub use allocation::CODES;
pub use double::Double;
pub use ledger::{Call, Violation};
pub use setup::{Clock, Setup};
pub use state::{DiskState, NicState, State, VmState};
