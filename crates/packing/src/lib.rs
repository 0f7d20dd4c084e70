//! Given a snapshot: which nodes to launch, which pods go where, and what the rest lacks.

pub mod demand;
pub mod options;
pub mod supply;

use model::{plan::Plan, snapshot::Snapshot};

pub use options::{Options, Packing, ReservedMode};

/// The plan for the pods of a snapshot that need a place.
pub fn plan(_snapshot: &Snapshot, _options: &Options) -> Plan {
    Plan::default()
}
