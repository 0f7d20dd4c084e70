//! Which nodes are cheapest for these pods? Searches on a plain picture of the problem.
//!
//! The picture ([`Problem`]) holds pod classes, offers and free room, and none of the finer points of scheduling. What
//! comes out are proposals: the faithful solver replays each bin through its own probes, so a proposal may be wrong
//! about a pod without the plan becoming wrong. It may only be cheap, quick and the same on every machine.

pub(crate) mod adapt;
mod board;
mod budget;
mod downsize;
mod free_room;
mod item;
mod knapsack;
mod market;
mod pattern;
mod portfolio;
mod problem;
mod ratio_greedy;
mod space;
mod stand_in;
mod value;
mod variant;
mod zone;
mod zone_balance;

pub use budget::Budget;
pub use pattern::{Bin, Packed, Place};
pub use portfolio::{Candidate, PassReport, Portfolio, portfolio};
pub use problem::{Amounts, CPU, Class, Group, MEMORY, Offer, PODS, Pool, Problem, Reach, Room, Spread, WIDTH, Zones};
pub use variant::{Settings, Variant};

pub(crate) use item::Kind;
pub(crate) use market::{markets, signature};
pub(crate) use portfolio::{portfolio_on, worths};
pub(crate) use space::{Ground, as_score, as_weights};
