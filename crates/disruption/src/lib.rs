//! Given a snapshot and a time: which nodes go, in what order, replaced by what, and why the rest stays.
//!
//! [`decide`] asks upstream's methods in upstream's order and stops at the first that finds something; [`validate`] asks
//! again, on a later snapshot, whether a command may still be carried out. Both are pure: what is under way comes in as
//! [`Facts`], and who calls takes over what a [`Round`] says to remember.

mod budget;
mod candidate;
mod command;
mod cost;
mod facts;
mod guard;
mod method;
mod options;
mod refusal;
mod round;
mod validate;

pub use budget::{Budgets, PoolBudget};
pub use candidate::Candidate;
pub use command::{Command, PoolScore, Replacement, Saving};
pub use cost::{Cost, eviction_cost, reschedule_cost};
pub use facts::{Facts, MachineShape, PastMove, Pause, Repair, RepairAction, Rotation, StaticCount};
pub use method::{Class, Decision, Method, Reason, TerminateFirst};
pub use options::{Consolidation, Options};
pub use refusal::{Event, Fix, Refusal, Rule, UnschedulablePods};
pub use round::{Pass, Round, ask, decide, tracked_costs};
pub use validate::{Invalid, validate};
