//! How much pods ask for: WL02 no-requests, WL12 scaler-over-limit.

use model::{quantity::Quantity, resources::ResourceName};

use crate::{
    finding::Found,
    world::{Scaler, Workload, World},
};

pub(crate) fn no_requests(world: &World) -> Vec<Found> {
    let mut found = Vec::new();
    // What a cloud puts into kube-system its users cannot change.
    let is_ours = |workload: &&Workload| !workload.is_fragment() && workload.namespace != "kube-system";
    for workload in world.workloads.iter().filter(is_ours) {
        if workload.spec.containers.is_empty() {
            let text = "no containers in this manifest, so no requests: counted as 0";
            found.push(Found::new(workload.document, workload.path("spec"), text));
        }
        let Some((path, _)) = workload.without_requests.first() else {
            continue;
        };
        let names: Vec<_> = workload
            .without_requests
            .iter()
            .map(|(_, name)| name.as_str())
            .collect();
        let text = format!(
            "no cpu or memory request of container {}: counted as 0, nodes overfill",
            names.join(", ")
        );
        found.push(Found::new(workload.document, path, text));
    }
    found
}

impl World {
    /// What a scaler scales, if it is among the objects.
    pub(crate) fn target_of(&self, scaler: &Scaler) -> Option<&Workload> {
        let (kind, name) = &scaler.target;
        self.workloads
            .iter()
            .find(|workload| workload.kind == *kind && workload.name == *name && workload.namespace == scaler.namespace)
    }

    /// What scales a workload.
    pub(crate) fn scaler_of(&self, workload: &Workload) -> Option<&Scaler> {
        let is_its = |scaler: &&Scaler| {
            self.target_of(scaler)
                .is_some_and(|target| target.document == workload.document)
        };
        self.scalers.iter().find(is_its)
    }
}

pub(crate) fn scaler_over_limit(world: &World) -> Vec<Found> {
    let mut found = Vec::new();
    for scaler in &world.scalers {
        let Some(target) = world.target_of(scaler) else {
            if !world.is_whole() {
                let text = format!(
                    "up to {} replicas of {}, which is not in these files: limits unchecked",
                    scaler.most, scaler.target.1
                );
                found.push(
                    Found::new(scaler.document, scaler.most_at, text)
                        .fix("give the workload's manifest as well, or lint the cluster"),
                );
            }
            continue;
        };
        let places = world.places(target);
        let pools: Vec<_> = places.iter().map(|place| place.pool).collect();
        for name in [ResourceName::Cpu, ResourceName::Memory] {
            let one = target.spec.resources().requests().amount(name.as_str());
            let all = Quantity::from_nanos(one.nanos() * i128::from(scaler.most), one.format());
            let limits: Option<Vec<Quantity>> = pools
                .iter()
                .map(|pool| pool.pool.spec.limits.get(name.as_str()))
                .collect();
            let Some(limits) = limits.filter(|limits| !limits.is_empty()) else {
                continue;
            };
            let limit: i128 = limits.iter().map(|limit| limit.nanos()).sum();
            if all.nanos() > limit {
                let limit = Quantity::from_nanos(limit, one.format());
                let text = format!(
                    "up to {} replicas of {} ask for {all} {}, the pools for them are limited to {limit}: the peak will be pending",
                    scaler.most,
                    scaler.target.1,
                    name.as_str()
                );
                found.push(Found::new(scaler.document, scaler.most_at, text));
            }
        }
    }
    found
}
