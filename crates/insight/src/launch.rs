//! Which nodes would the pending pods get, what do they cost, and what stays pending and why?

mod engine;
mod fixed;
mod nodes;
mod pending;

use model::{price::Price, snapshot::Snapshot};
use serde::{Deserialize, Serialize};

pub use self::{
    engine::{Planned, Upstream, plan},
    fixed::{FixedPool, Hold},
    nodes::{ExistingNode, NewNode, Room},
    pending::{Pending, Reason, workload},
};
use crate::usd;

/// Hours of a month, as clouds' calculators count it.
const HOURS_OF_A_MONTH: u64 = 730;

/// A plan for pods that wait, as data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// How many pods want a place.
    pub pods: Pods,
    /// Nodes to launch.
    pub new_nodes: Vec<NewNode>,
    /// Nodes that get pods.
    pub existing_nodes: Vec<ExistingNode>,
    /// Pods without a place.
    pub pending: Vec<Pending>,
    /// NodePools with a fixed number of nodes that have another; what their nodes cost is not in the total.
    #[serde(default)]
    pub fixed_pools: Vec<FixedPool>,
    /// What it comes to.
    pub total: Total,
}

/// How many pods want a place and get one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pods {
    /// That want one.
    pub waiting: usize,
    /// That get one on a node to launch.
    pub on_new_nodes: usize,
    /// That get one on a node there is.
    pub on_existing_nodes: usize,
    /// That get none.
    pub pending: usize,
}

/// What it comes to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Total {
    /// Nodes to launch.
    pub new_nodes: usize,
    /// What they cost an hour.
    #[serde(with = "usd")]
    pub usd_h: Price,
    /// The same for a month.
    #[serde(with = "usd")]
    pub usd_mo: Price,
    /// What no valid plan can cost less than, where it was computed.
    #[serde(with = "usd::maybe")]
    pub lower_bound_usd_h: Option<Price>,
    /// What upstream's algorithm pays for the same pods.
    #[serde(with = "usd::maybe")]
    pub upstream_usd_h: Option<Price>,
    /// Nodes it launches.
    pub upstream_new_nodes: Option<usize>,
    /// Pods it leaves pending.
    pub upstream_pending: Option<usize>,
}

impl Report {
    /// A plan as data.
    pub fn of(snapshot: &Snapshot, planned: &Planned) -> Self {
        let plan = &planned.plan;
        let pods = Pods {
            waiting: plan.placed() + plan.unplaced.len(),
            on_new_nodes: plan.claims.iter().map(|claim| claim.pods.len()).sum(),
            on_existing_nodes: plan.existing.iter().map(|node| node.pods.len()).sum(),
            pending: plan.unplaced.len(),
        };
        Self {
            pods,
            new_nodes: nodes::new(plan, snapshot),
            existing_nodes: nodes::existing(plan, snapshot),
            pending: pending::groups(planned, snapshot),
            fixed_pools: fixed::pools(snapshot),
            total: Total::of(planned),
        }
    }
}

impl Total {
    fn of(planned: &Planned) -> Self {
        let price = planned.plan.price();
        Self {
            new_nodes: planned.plan.claims.len(),
            usd_h: price,
            usd_mo: Price::from_picos(price.picos().saturating_mul(HOURS_OF_A_MONTH)),
            lower_bound_usd_h: planned.lower_bound,
            upstream_usd_h: planned.upstream.map(|upstream| upstream.price),
            upstream_new_nodes: planned.upstream.map(|upstream| upstream.nodes),
            upstream_pending: planned.upstream.map(|upstream| upstream.unplaced),
        }
    }
}
