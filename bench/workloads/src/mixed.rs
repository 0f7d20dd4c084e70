//! "500 mixed pods": Deployments of many shapes and constraints over kwok's catalogue, pending all at once.

use serde_json::json;

use crate::catalogue::{KWOK_LABELS, kwok};
use crate::object::{
    ARCH, CAPACITY_TYPE, HOSTNAME, OS, Object, ZONE, kwok_node_class, node_pool, requirement, unschedulable,
};
use crate::performance::Deployment;
use crate::rng::Rng;
use crate::snapshot::Snapshot;

/// Requests a Deployment may have: millicores and MiB.
const SHAPES: [(u64, u64); 8] = [
    (100, 128),
    (250, 512),
    (500, 1024),
    (1000, 2048),
    (2000, 4096),
    (1500, 9216),
    (750, 6144),
    (4000, 8192),
];

/// Deployments until the pod count is reached.
pub fn deployments(pods: u64, seed: u64) -> Vec<Deployment> {
    let mut rng = Rng::new(seed);
    let mut deployments: Vec<Deployment> = Vec::new();
    let mut left = pods;
    while left > 0 {
        let deployment = deployment(deployments.len(), left, &mut rng);
        left -= deployment.replicas;
        deployments.push(deployment);
    }
    deployments
}

fn deployment(index: usize, left: u64, rng: &mut Rng) -> Deployment {
    let &(cpu, memory) = rng.pick(&SHAPES);
    let replicas = rng.between(5, 60).min(left);
    let constraint = rng.below(100);
    // Six in a hundred keep their pods apart, and have at most eight of them.
    let replicas = if (30..36).contains(&constraint) {
        replicas.min(8)
    } else {
        replicas
    };
    let name = format!("mixed-{index:03}");
    let scaled_in = (replicas * 2 / 5).max(1);
    let mut deployment = Deployment::new(&name, replicas, scaled_in, cpu, memory);
    deployment.shape = deployment.shape.with("spec.terminationGracePeriodSeconds", 0);
    let select = |mut deployment: Deployment, key: &str, value: &str| {
        deployment.shape = deployment.shape.entry("spec.nodeSelector", key, value);
        deployment
    };
    match constraint {
        0..20 => deployment.spread(ZONE),
        20..30 => deployment.spread(HOSTNAME),
        30..36 => deployment.alone(),
        36..46 => select(deployment, ARCH, if rng.chance(50) { "amd64" } else { "arm64" }),
        46..54 => select(deployment, CAPACITY_TYPE, "on-demand"),
        _ => deployment,
    }
}

/// The workload's one pool: linux, spot and on-demand, no limits.
pub fn pool() -> Object {
    node_pool("default", &kwok_node_class()).with(
        "spec.template.spec.requirements",
        json!([
            requirement(OS, "In", &["linux"]),
            requirement(CAPACITY_TYPE, "In", &["spot", "on-demand"])
        ]),
    )
}

/// All pods pending at once.
pub fn pending(pods: u64, seed: u64) -> Snapshot {
    let origin = format!("workloads seed={seed}");
    let mut snapshot = Snapshot::new(&format!("mixed-{pods}-{seed}"), &origin, kwok(), &KWOK_LABELS);
    snapshot.objects.push(pool());
    for deployment in deployments(pods, seed) {
        snapshot
            .objects
            .extend((0..deployment.replicas).map(|i| unschedulable(deployment.pod(i))));
    }
    snapshot
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_exactly_the_pods_asked_for_and_always_the_same() {
        assert_eq!(pending(500, 7).of_kind("Pod").count(), 500);
        assert_eq!(pending(500, 7), pending(500, 7));
        assert_ne!(pending(500, 7).objects, pending(500, 8).objects);
    }
}
