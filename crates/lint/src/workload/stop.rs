//! How pods stop: WL06 single-replica, WL08 grace-too-long.

use api::annotations::DO_NOT_DISRUPT;
use catalogue::Source;
use model::vocabulary::ValueId;

use crate::{
    finding::Found,
    supply::allows,
    world::{Workload, World},
};

pub(crate) fn single_replica(world: &World) -> Vec<Found> {
    let is_single = |workload: &&Workload| {
        let is_service = matches!(workload.kind.as_str(), "Deployment" | "StatefulSet") && workload.has_ports;
        let is_held = workload.annotations.contains_key(DO_NOT_DISRUPT);
        let is_system = workload.namespace == "kube-system";
        is_service && !is_system && workload.replicas == Some(1) && !is_held && world.scaler_of(workload).is_none()
    };
    let found = world.workloads.iter().filter(is_single).map(|workload| {
        let text = "1 replica that serves: each move of its node is an outage";
        Found::new(workload.document, "spec.replicas", text)
            .fix("replicas: 2 with a PodDisruptionBudget of maxUnavailable: 1")
            .replacing("1", "2")
    });
    found.collect()
}

/// How long before it takes a spot machine a cloud warns, in seconds.
fn notice(source: Source) -> Option<i64> {
    match source {
        Source::Aws => Some(120),
        Source::Azure => Some(30),
        Source::Kwok => None,
    }
}

pub(crate) fn grace_too_long(world: &World) -> Vec<Found> {
    let mut found = Vec::new();
    for workload in world.workloads.iter().filter(|workload| workload.kind != "DaemonSet") {
        let Some(grace) = workload.spec.termination_grace_period_seconds else {
            continue;
        };
        if grace <= 30 || workload.is_fragment() {
            continue;
        }
        let places = world.places(workload);
        let short = places.iter().find_map(|place| {
            let notice = notice(place.pool.source?)?;
            let is_spot = allows(&place.both, ValueId::SPOT, &place.vocabulary);
            (is_spot && grace > notice).then_some((notice, &place.pool.pool.metadata.name))
        });
        if let Some((notice, pool)) = short {
            let path = workload.path("spec.terminationGracePeriodSeconds");
            let text = format!(
                "terminationGracePeriodSeconds {grace} on spot of nodepool/{pool}, which gives {notice} s notice"
            );
            found.push(
                Found::new(workload.document, path, text)
                    .fix(format!(
                        "{notice} s at most, or on-demand: nodeSelector {}: on-demand",
                        api::labels::CAPACITY_TYPE
                    ))
                    .replacing(grace.to_string(), notice.to_string()),
            );
        }
    }
    found
}
