//! Rules on NodePools, NP01 to NP25.

mod api_version;
mod keys;
mod life;
mod limits;
mod market;
mod meeting;
mod types;

pub(crate) use self::{
    api_version::old_api,
    keys::{restricted_label, unknown_key},
    life::{churn, expire_default, expire_never, no_grace_limit, startup_taint},
    limits::{limit_near, limit_partial, no_limits},
    market::{few_types, one_category, spot_only},
    meeting::{overlap, taint_untolerated},
    types::{arch_narrow, min_values, no_type_left, old_generation, redundant},
};

/// Where a pool's requirements stand.
const REQUIREMENTS: &str = "spec.template.spec.requirements";
