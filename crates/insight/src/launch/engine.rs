//! The one place where an answer meets the planner.

use std::collections::BTreeMap;

use model::{object::ObjectKey, plan::Plan, price::Price, snapshot::Snapshot};

use crate::funnel::Funnel;

/// A plan, and what can be said about it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Planned {
    /// The plan.
    pub plan: Plan,
    /// What no valid plan can cost less than.
    pub lower_bound: Option<Price>,
    /// What upstream's algorithm would have paid.
    pub upstream: Option<Upstream>,
    /// How far pods without a place came.
    pub funnels: BTreeMap<ObjectKey, Funnel>,
}

/// What upstream's algorithm comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Upstream {
    /// Its price.
    pub price: Price,
    /// How many nodes it launches.
    pub nodes: usize,
    /// How many pods it leaves without a place.
    pub unplaced: usize,
}

impl Upstream {
    /// What a race says of it. `plan` is the one that won.
    pub fn of(report: &packing::Report, plan: &Plan) -> Option<Self> {
        // Pods that are not tried at all are nobody's to place.
        let tried = report.winner().map_or(0, |winner| winner.unplaced);
        let ignored = plan.unplaced.len().saturating_sub(tried);
        let faithful = report.contenders.first()?;
        Some(Self {
            price: faithful.price,
            nodes: faithful.claims,
            unplaced: faithful.unplaced + ignored,
        })
    }
}

/// The plan for the pods of a snapshot that wait, with what can be said about it.
pub fn plan(snapshot: &Snapshot, options: &packing::Options) -> Planned {
    let packing::Planned { plan, report, .. } = packing::planned(snapshot, options);
    Planned {
        funnels: funnels(snapshot, &plan),
        upstream: Upstream::of(&report, &plan),
        plan,
        lower_bound: Some(report.lower_bound).filter(|bound| *bound > Price::ZERO),
    }
}

fn funnels(snapshot: &Snapshot, plan: &Plan) -> BTreeMap<ObjectKey, Funnel> {
    let pods: Vec<_> = plan.unplaced.iter().map(|it| it.pod.metadata.key()).collect();
    if pods.is_empty() {
        return BTreeMap::new();
    }
    let explanations = packing::explain::explain(snapshot, &packing::Options::default(), &pods);
    let funnels = explanations.iter().filter_map(|it| {
        let funnel = Funnel::of(it)?;
        Some((it.pod.clone(), funnel))
    });
    funnels.collect()
}
