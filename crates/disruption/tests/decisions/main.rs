//! Does a decision about going nodes follow upstream's rules, and ours where they are stricter?
#![allow(clippy::unwrap_used, clippy::needless_pass_by_value, reason = "a test")]

mod fixture;

mod budgets;
mod candidates;
mod consolidation;
mod deletion_costs;
mod guards;
mod replacement;
mod safety;
mod specs;
mod validation;
