//! How does our planner compare with upstream's, plan by plan and second by second? Both get the same snapshot files.

pub mod bench;
pub mod differential;
pub mod given;
pub mod input;
pub mod outcome;
pub mod reference;
pub mod replay;
pub mod verdict;
pub mod wording;
