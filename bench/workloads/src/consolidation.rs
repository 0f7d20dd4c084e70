//! A fleet after scale-in: nodes that were full once and now run what is left, for consolidation to work on.
//!
//! Pods are dealt to the nodes in turn, so hostname and zone spread, anti-affinity and node selectors hold before the
//! scale-in; each node is then the smallest type that held its share.

use std::collections::BTreeMap;

use crate::catalogue::{InstanceType, KWOK_LABELS, KWOK_ZONES, kwok};
use crate::fleet::{Machine, Stage, requests};
use crate::object::{ARCH, CAPACITY_TYPE, Object, running};
use crate::performance::{Deployment, Scenario};
use crate::rng::Rng;
use crate::snapshot::Snapshot;
use crate::{mixed, performance};

/// A place for a machine: what nodes are dealt by, before their size is known.
#[derive(Debug, Clone)]
struct Slot {
    zone: &'static str,
    arch: &'static str,
    capacity_type: &'static str,
    pods: Vec<Object>,
}

/// A scenario of the performance suite after its scale-in.
pub fn performance(scenario: Scenario) -> Snapshot {
    let deployments = performance::deployments(scenario);
    let most_alone = if scenario == Scenario::Interference { 500 } else { 0 };
    let pods: u64 = deployments.iter().map(|d| d.replicas).sum();
    let slots = slots((pods / 6).max(most_alone), |_| ("amd64", "on-demand"));
    fleet(
        &format!("fleet-{}", scenario.key()),
        performance::pool(),
        &deployments,
        slots,
        0,
    )
}

/// The mixed workload after its scale-in to 40 %.
pub fn mixed(pods: u64, seed: u64) -> Snapshot {
    let name = format!("fleet-mixed-{pods}-{seed}");
    mixed_on(&name, (pods / 8).max(32), pods, seed)
}

/// About so many nodes with so many pods, of the mixed workload after its scale-in to 40 %.
pub fn cluster(nodes: u64, pods: u64) -> Snapshot {
    mixed_on(&format!("cluster-{nodes}-{pods}"), nodes, pods * 5 / 2, 1)
}

fn mixed_on(name: &str, nodes: u64, pods: u64, seed: u64) -> Snapshot {
    let deployments = mixed::deployments(pods, seed);
    // Zones vary fastest, so every architecture and capacity type exists in every zone.
    let slots = slots(nodes, |index| {
        (
            if (index / 4) % 4 == 3 { "arm64" } else { "amd64" },
            if (index / 16) % 2 == 0 { "spot" } else { "on-demand" },
        )
    });
    fleet(name, mixed::pool(), &deployments, slots, seed)
}

/// At least `count` slots, rounded up so that all kinds are equally frequent in all zones.
fn slots(count: u64, kind: impl Fn(u64) -> (&'static str, &'static str)) -> Vec<Slot> {
    (0..count.next_multiple_of(32))
        .map(|index| {
            let (arch, capacity_type) = kind(index);
            let zone = KWOK_ZONES[usize::try_from(index % 4).unwrap_or_default()];
            Slot {
                zone,
                arch,
                capacity_type,
                pods: Vec::new(),
            }
        })
        .collect()
}

fn fleet(name: &str, pool: Object, deployments: &[Deployment], mut slots: Vec<Slot>, seed: u64) -> Snapshot {
    let mut turn = 0;
    for deployment in deployments {
        turn = deal(deployment, &mut slots, turn);
    }
    let catalogue = kwok();
    let mut snapshot = Snapshot::new(name, &format!("workloads seed={seed}"), catalogue.clone(), &KWOK_LABELS);
    snapshot.objects.push(pool);
    let mut rng = Rng::new(seed);
    let stay = deployments
        .iter()
        .map(|d| (d.name.as_str(), scale_in(d, &mut rng)))
        .collect();
    for (index, slot) in slots.iter().enumerate().filter(|(_, slot)| !slot.pods.is_empty()) {
        let Some(it) = smallest(&catalogue, slot) else { continue };
        let machine = Machine {
            name: format!("node-{index:04}"),
            pool: "default",
            it,
            zone: slot.zone,
            capacity_type: slot.capacity_type,
            stage: Stage::Initialized,
        };
        snapshot.objects.extend([machine.node(), machine.claim()]);
        let kept = slot.pods.iter().filter(|pod| survives(pod, &stay));
        snapshot
            .objects
            .extend(kept.map(|pod| running(pod.clone(), &machine.name)));
    }
    snapshot
}

/// Deals a Deployment's pods to the slots its node selector allows, going on where the last one stopped.
fn deal(deployment: &Deployment, slots: &mut [Slot], turn: usize) -> usize {
    let selector = deployment.shape.get("spec.nodeSelector");
    let wanted = |key: &str, has: &str| selector[key].as_str().is_none_or(|value| value == has);
    let open: Vec<usize> = (0..slots.len())
        .filter(|&i| wanted(ARCH, slots[i].arch) && wanted(CAPACITY_TYPE, slots[i].capacity_type))
        .collect();
    for index in 0..deployment.replicas {
        let step = turn + usize::try_from(index).unwrap_or_default();
        slots[open[step % open.len()]].pods.push(deployment.pod(index));
    }
    turn + usize::try_from(deployment.replicas).unwrap_or_default()
}

/// The cheapest linux type of the slot's architecture that holds its pods.
fn smallest<'a>(catalogue: &'a [InstanceType], slot: &Slot) -> Option<&'a InstanceType> {
    let (cpu, memory) = slot
        .pods
        .iter()
        .map(requests)
        .fold((0, 0), |sum, pod| (sum.0 + pod.0, sum.1 + pod.1));
    let suffix = format!("-{}-linux", slot.arch);
    catalogue
        .iter()
        .filter(|it| it.name.ends_with(&suffix))
        .filter(|it| 1000 * it.cpu >= cpu + 100 && it.memory_mi >= memory + 10 && it.pods >= slot.pods.len() as u64)
        .min_by_key(|it| 25 * it.cpu + it.memory_mi / 1000)
}

/// Which of a Deployment's pods are left: as many as it was scaled in to, chosen by the seed.
pub(crate) fn scale_in(deployment: &Deployment, rng: &mut Rng) -> Vec<bool> {
    let mut stay = Vec::new();
    let (mut wanted, mut left) = (deployment.scaled_in, deployment.replicas);
    while left > 0 {
        let chosen = rng.below(left) < wanted;
        stay.push(chosen);
        wanted -= u64::from(chosen);
        left -= 1;
    }
    stay
}

fn survives(pod: &Object, stay: &BTreeMap<&str, Vec<bool>>) -> bool {
    let Some((owner, index)) = pod.name().rsplit_once('-') else {
        return true;
    };
    match (stay.get(owner), index.parse::<usize>()) {
        (Some(stay), Ok(index)) => stay.get(index).copied().unwrap_or(true),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fleet_runs_exactly_the_pods_left_after_scale_in() {
        for (scenario, left) in [
            (Scenario::Basic, 700),
            (Scenario::Interference, 600),
            (Scenario::WideDeployments, 700),
        ] {
            let snapshot = performance(scenario);
            assert_eq!(snapshot.of_kind("Pod").count(), left, "{scenario:?}");
            assert_eq!(
                snapshot.of_kind("Node").count(),
                snapshot.of_kind("NodeClaim").count(),
                "{scenario:?}"
            );
        }
    }

    #[test]
    fn a_cluster_has_about_the_nodes_and_pods_it_is_asked_for() {
        let snapshot = cluster(100, 2000);
        let (nodes, pods) = (snapshot.of_kind("Node").count(), snapshot.of_kind("Pod").count());
        assert!(
            (96..=128).contains(&nodes) && (1800..=2200).contains(&pods),
            "{nodes} {pods}"
        );
    }

    #[test]
    fn a_mixed_fleet_keeps_two_in_five_pods() {
        let left: u64 = mixed::deployments(500, 1).iter().map(|d| d.scaled_in).sum();
        assert_eq!(mixed(500, 1).of_kind("Pod").count() as u64, left);
    }
}
