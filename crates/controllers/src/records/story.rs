//! How did a plan come about? What every record that follows from it has in common.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use ledger::{ENGINE, Inputs, Offer, flight::hex};
use model::{
    object::{Node, Pod},
    snapshot::Catalog,
};
use packing::Report;

use crate::Cluster;

/// How a plan came about.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Story {
    pub(crate) at: Timestamp,
    pub(crate) inputs: Inputs,
    /// The plans in the race: the one that won, then the others.
    pub(crate) plans: Vec<Offer>,
    pub(crate) catalog: Arc<Catalog>,
}

impl Story {
    /// Of a plan that was just made; none when nobody writes it down.
    pub(crate) fn of(
        cluster: &Cluster,
        inputs: &model::snapshot::Inputs,
        report: &Report,
        took: Duration,
    ) -> Option<Arc<Self>> {
        cluster.book().is_on().then(|| {
            Arc::new(Self {
                at: cluster.now(),
                inputs: inputs_of(cluster, inputs, took),
                plans: plans(report),
                catalog: cluster.look(state::State::shared_catalog),
            })
        })
    }
}

/// What a decision was made on, for its record.
pub(crate) fn inputs_of(cluster: &Cluster, inputs: &model::snapshot::Inputs, took: Duration) -> Inputs {
    let (pods, nodes, offers) = cluster.look(|state| {
        let types = &state.catalog().instance_types;
        let offers = types.iter().map(|entry| entry.offerings.len()).sum();
        (state.all::<Pod>().len(), state.all::<Node>().len(), offers)
    });
    Inputs {
        digest: hex(inputs.digest),
        pods,
        nodes,
        offers,
        engine: ENGINE.to_owned(),
        took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
    }
}

fn plans(report: &Report) -> Vec<Offer> {
    let name = |at: usize, name: &str| match at {
        0 => "upstream's plan".to_owned(),
        _ => format!("plan {name}"),
    };
    let best = report.winner().map(|winner| (winner.unplaced, winner.price));
    let mut offers: Vec<(bool, Offer)> = Vec::new();
    for (at, contender) in report.contenders.iter().enumerate() {
        let is_chosen = at == report.winner;
        if !is_chosen && at != 0 && offers.len() >= 3 {
            continue;
        }
        let verdict = if is_chosen {
            "chosen"
        } else if !contender.is_valid {
            "leaves pods over, or is less flexible"
        } else if best.is_some_and(|(unplaced, _)| contender.unplaced > unplaced) {
            "leaves more pods without a node"
        } else if best.is_some_and(|(_, price)| contender.price > price) {
            "dearer"
        } else {
            "no cheaper once kube-scheduler places the pods"
        };
        let offer = Offer {
            offer: format!("{}, {} node(s)", name(at, contender.name), contender.claims),
            usd_h: Some(contender.price.into()),
            verdict: verdict.to_owned(),
        };
        offers.push((is_chosen, offer));
    }
    offers.sort_by_key(|(is_chosen, _)| !is_chosen);
    offers.into_iter().map(|(_, offer)| offer).collect()
}
