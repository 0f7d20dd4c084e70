//! Rules on workloads, WL01 to WL12.

mod annotation;
mod place;
mod size;
mod stop;
mod wish;

pub(crate) use self::{
    annotation::{bad_annotation, hold_forever},
    place::{fits_nothing, selector_unknown},
    size::{no_requests, scaler_over_limit},
    stop::{grace_too_long, single_replica},
    wish::soft_rule_cost,
};
