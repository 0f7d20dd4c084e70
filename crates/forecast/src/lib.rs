//! What would a cluster become? Changes are applied to a copy, plans and commands carried out on it, and the fleet is
//! played until nobody finds anything more to do. Nothing outside the copy is touched.

mod change;
mod expression;
mod field;
mod fleet;
mod pod;
mod question;
mod settle;
mod workload;

pub use change::{Change, Changed, Direction, Misfit, changed};
pub use expression::{Expression, ExpressionError};
pub use fleet::{Fleet, Left, NewNode};
pub use question::{Answer, Move, Side, Stuck, ask};
pub use settle::{Settled, settle};
pub use workload::{Kind, MOST_PODS, Workload};
