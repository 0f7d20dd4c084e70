//! The answer as data: every figure the table shows and those it has no room for.

mod nodes;
mod pending;
pub(crate) mod usd;

use model::{price::Price, snapshot::Snapshot};
use serde::{Deserialize, Serialize};

pub(crate) use self::{
    nodes::{ExistingNode, NewNode, Room},
    pending::Pending,
};
use super::engine::Planned;
use crate::terminal::HOURS_OF_A_MONTH;

/// What `-o json` and `-o yaml` print.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) pods: Pods,
    pub(crate) new_nodes: Vec<NewNode>,
    pub(crate) existing_nodes: Vec<ExistingNode>,
    pub(crate) pending: Vec<Pending>,
    pub(crate) total: Total,
}

/// How many pods want a place and get one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pods {
    pub(crate) waiting: usize,
    pub(crate) on_new_nodes: usize,
    pub(crate) on_existing_nodes: usize,
    pub(crate) pending: usize,
}

/// What it comes to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Total {
    pub(crate) new_nodes: usize,
    #[serde(with = "usd")]
    pub(crate) usd_h: Price,
    #[serde(with = "usd")]
    pub(crate) usd_mo: Price,
    /// What no valid plan can cost less than, where it was computed.
    #[serde(with = "usd::maybe")]
    pub(crate) lower_bound_usd_h: Option<Price>,
    /// What upstream's algorithm pays for the same pods.
    #[serde(with = "usd::maybe")]
    pub(crate) upstream_usd_h: Option<Price>,
    pub(crate) upstream_new_nodes: Option<usize>,
    pub(crate) upstream_pending: Option<usize>,
}

impl Report {
    pub(super) fn of(snapshot: &Snapshot, planned: &Planned) -> Self {
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
