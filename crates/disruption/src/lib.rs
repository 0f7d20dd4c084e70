//! Given a snapshot and a time: which nodes go, in what order, replaced by what, and why the rest stays.
//!
//! [`decide`] asks upstream's methods in upstream's order and stops at the first that finds something; [`validate`] asks
//! again, on a later snapshot, whether a command may still be carried out. Both are pure: what is under way comes in as
//! [`Facts`], and who calls takes over what a [`Round`] says to remember.

mod balanced;
mod budget;
mod candidate;
mod command;
mod consolidation;
mod cost;
mod cron;
mod deletion_cost;
mod drift;
mod eligible;
mod emptiness;
mod expected;
mod expiry;
mod facts;
mod fix;
mod guard;
mod method;
mod options;
mod pause;
mod refusal;
mod repack;
mod replace;
mod round;
mod static_pool;
mod trial;
mod validate;
mod warm;
mod world;

pub use budget::{
    BUDGET_TIME_ZONE, BudgetError, Budgets, PoolBudget, UNLIMITED, Window, allowed, checked, unnamed_budget, windows,
    zone_named,
};
pub use candidate::Candidate;
pub use command::{Command, PoolScore, Replacement, Saving};
pub use cost::{Cost, eviction_cost, reschedule_cost};
pub use cron::{Cron, CronError};
pub use deletion_cost::{DeletionCosts, PodCost, deletion_costs};
pub use drift::{drift_from_pool, requirement_spec};
pub use expected::{EXPECTED_PODS_GUARD, fires_within};
pub use expiry::{EXPIRY_GRACE, EXPIRY_SPREAD, expires_at, waits_for_budgets_until};
pub use facts::{Constrained, Facts, MachineShape, PastMove, Pause, Repair, RepairAction, Rotation, StaticCount};
pub use guard::{LOOP_GUARD, MINIMUM_SAVING_MONTHLY, MINIMUM_SAVING_PERCENT, looping_pools};
pub use method::{Class, Decision, Method, Reason, TerminateFirst};
pub use options::{Consolidation, Options};
pub use pause::{pause_of, paused};
pub use refusal::{Event, Fix, Refusal, Rule, UnschedulablePods};
pub use round::{Pass, Round, ask, consider, decide, survey, tracked_costs};
pub use validate::{Invalid, validate};
pub use warm::Warm;
