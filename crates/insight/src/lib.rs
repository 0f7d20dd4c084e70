//! What a cluster is, why, what next and what it costs, as data: the read model behind every answer.
//!
//! A [`View`] is made once from a snapshot; each module answers one question with it. Nothing here prints, waits or asks a
//! clock: who shows the answer decides how.

pub mod alert;
pub mod commitment;
mod dollars;
pub mod fleet;
pub mod funnel;
pub mod hold;
pub mod launch;
pub mod money;
mod name;
pub mod offer;
pub mod outlook;
mod removal;
pub mod rule;
pub mod usd;
mod view;
pub mod why;

pub use dollars::Dollars;
pub use name::{Found, nearest};
pub use removal::{NewNode, Removal};
pub use view::{Amounts, Fill, Machine, Prices, Requests, State, View};
