//! One look at a cluster: what runs, and what would if dovetail had planned for the same pods.

use std::collections::BTreeMap;

use jiff::Timestamp;
use model::price::Price;

use crate::{plan::threads, source::Input};

/// What was seen at one time.
#[derive(Debug, Clone)]
pub(super) struct Look {
    pub(super) at: Timestamp,
    /// Their nodes, and what these cost an hour.
    pub(super) theirs: (usize, f64),
    /// Ours for the same pods, once every move that saves money is made.
    pub(super) ours: (usize, f64),
    /// What each of their claims costs.
    pub(super) claims: BTreeMap<String, f64>,
    /// Pods that wait for a node.
    pub(super) waiting: usize,
    /// What our nodes for these cost.
    pub(super) launch_usd_h: f64,
    /// Pods that have a node: since when, and for how many seconds they waited for it.
    pub(super) waited: Vec<(String, Timestamp, i64)>,
}

fn dollars(price: Price) -> f64 {
    price.to_decimal().parse().unwrap_or_default()
}

impl Look {
    pub(super) fn of(input: &Input) -> Self {
        let snapshot = &input.snapshot;
        let view = input.view();
        let mut claims = BTreeMap::new();
        for machine in view.managed() {
            if let Some(claim) = machine.member.claim {
                claims.insert(
                    claim.metadata.name.to_string(),
                    dollars(machine.price.unwrap_or_default()),
                );
            }
        }
        let options = packing::Options {
            threads: threads(),
            ..packing::Options::default()
        };
        let unmanaged = view.machines.len() - view.managed().count();
        let now: f64 = claims.values().sum();
        // Without a change nothing is unknown, so there is an answer.
        let ours = forecast::ask(snapshot, &[], &options, true)
            .ok()
            .map(|answer| answer.before);
        let provisioned = ours.as_ref().map_or(now, |side| dollars(side.price));
        let rested = ours.and_then(|side| side.settled);
        Self {
            at: snapshot.taken_at(),
            theirs: (claims.len(), now),
            ours: rested.map_or((claims.len(), now), |rested| {
                (rested.nodes.saturating_sub(unmanaged), dollars(rested.price))
            }),
            waiting: snapshot.provisionable_pods().count(),
            launch_usd_h: (provisioned - now).max(0.0),
            waited: waited(input),
            claims,
        }
    }
}

/// How long pods waited that have a node: since they were made.
fn waited(input: &Input) -> Vec<(String, Timestamp, i64)> {
    let pods = input.snapshot.objects().pods.iter();
    let waited = pods.filter(|pod| !pod.is_owned_by_daemon_set()).filter_map(|pod| {
        let bound = pod.condition("PodScheduled").filter(|_| pod.node_name.is_some())?;
        let (made, at) = (pod.metadata.creation_timestamp?, bound.last_transition_time?);
        Some((pod.metadata.key().to_string(), at, at.duration_since(made).as_secs()))
    });
    waited.collect()
}
