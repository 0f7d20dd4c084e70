//! Upstream's regression suite in `perf_test.go`: a hundred simple pods, and six diverse Deployments of sixteen.

use serde_json::json;

use crate::catalogue::{KWOK_LABELS, kwok};
use crate::gorand::GoRand;
use crate::object::{HOSTNAME, Object, ZONE, unschedulable};
use crate::performance::{Deployment, pool};
use crate::snapshot::Snapshot;

const REPLICAS: u64 = 100;

/// One Deployment of a hundred one-core pods.
pub fn simple() -> Snapshot {
    pending(
        "regression-simple",
        vec![Deployment::new("simple", REPLICAS, REPLICAS, 1000, 0)],
    )
}

/// `MakeDiversePodOptions`: generic, spread over zones, over hosts, preferring company on a host, in a zone, and alone.
pub fn complex() -> Snapshot {
    let mut rng = GoRand::seed_42();
    let each = REPLICAS / 6;
    let deployments = (0..6).map(|kind| complex_deployment(kind, each, &mut rng)).collect();
    pending("regression-complex", deployments)
}

fn complex_deployment(kind: u64, replicas: u64, rng: &mut GoRand) -> Deployment {
    let names = [
        "generic",
        "spread-zone",
        "spread-host",
        "affine-host",
        "affine-zone",
        "alone",
    ];
    let name = names[usize::try_from(kind).unwrap_or_default()];
    let label = |rng: &mut GoRand| ["a", "b", "c", "d", "e", "f", "g"][rng.intn(7)];
    let own = if kind == 5 { "nginx" } else { label(rng) };
    let selected = if kind == 1 || kind == 2 { label(rng) } else { own };
    let cpu = [100, 250, 500, 1000, 1500][rng.intn(5)];
    let memory = [100, 256, 512, 1024, 2048, 4096][rng.intn(6)];
    let mut deployment = Deployment::new(name, replicas, replicas, cpu, memory);
    deployment.shape = match kind {
        1 => spread(label_with(deployment.shape, "my-label", own), selected, ZONE),
        2 => spread(label_with(deployment.shape, "my-label", own), selected, HOSTNAME),
        3 => prefer(label_with(deployment.shape, "my-affinity", own), own, HOSTNAME),
        4 => prefer(label_with(deployment.shape, "my-affinity", own), own, ZONE),
        5 => return alone(deployment),
        _ => label_with(deployment.shape, "my-label", own),
    };
    deployment
}

fn label_with(shape: Object, key: &str, value: &str) -> Object {
    shape.entry("metadata.labels", key, value)
}

fn spread(shape: Object, selected: &str, key: &str) -> Object {
    shape.push(
        "spec.topologySpreadConstraints",
        json!({ "maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": { "matchLabels": { "my-label": selected } } }),
    )
}

fn prefer(shape: Object, own: &str, key: &str) -> Object {
    shape.push(
        "spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution",
        json!({ "weight": 1, "podAffinityTerm": { "topologyKey": key,
                "labelSelector": { "matchLabels": { "my-affinity": own } } } }),
    )
}

fn alone(mut deployment: Deployment) -> Deployment {
    deployment.shape = label_with(deployment.shape, "app", "nginx").push(
        "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution",
        json!({ "labelSelector": { "matchLabels": { "app": "nginx" } }, "topologyKey": HOSTNAME }),
    );
    deployment
}

fn pending(name: &str, deployments: Vec<Deployment>) -> Snapshot {
    let mut snapshot = Snapshot::new(name, "workloads, math/rand seed 42", kwok(), &KWOK_LABELS);
    snapshot.objects.push(pool());
    for deployment in deployments {
        snapshot
            .objects
            .extend((0..deployment.replicas).map(|i| unschedulable(deployment.pod(i))));
    }
    snapshot
}
