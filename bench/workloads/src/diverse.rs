//! Upstream's in-process scheduler benchmark: the same pods, drawn from the same generator in the same order.
//!
//! Upstream names pods at random and gives them random uids, which decide ties between pods of equal size. Ours are
//! fixed; creation timestamps are absent, as upstream's merge of the metadata leaves them zero.

use serde_json::json;

use crate::catalogue::{FAKE_LABELS, InstanceType, assorted, fake};
use crate::gorand::GoRand;
use crate::object::{DISCOVERY_LABEL, HOSTNAME, Object, ZONE, node_pool, pod, test_node_class, unschedulable};
use crate::snapshot::Snapshot;

/// How many pods upstream's benchmark functions schedule.
pub const SIZES: [u64; 9] = [1, 50, 100, 500, 1000, 2000, 5000, 10_000, 20_000];
/// How many pods its two preference benchmarks schedule.
pub const PREFERENCE_PODS: u64 = 4000;

/// Which catalogue the benchmark runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Types {
    /// `InstanceTypes(400)`, what upstream's benchmark uses.
    Fake400,
    /// `InstanceTypesAssorted()`, 1344 types with a single offering.
    Assorted,
}

impl Types {
    /// The name used on the command line and in snapshot names.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fake400 => "fake-400",
            Self::Assorted => "assorted",
        }
    }

    fn catalogue(self) -> Vec<InstanceType> {
        match self {
            Self::Fake400 => fake(400),
            Self::Assorted => assorted(),
        }
    }
}

/// `makeDiversePods(count)` from a fresh generator.
pub fn diverse(count: u64, types: Types) -> Snapshot {
    let mut draws = Draws(GoRand::seed_42());
    let each = count / 5;
    let mut pods = Vec::new();
    pods.extend((0..each).map(|_| draws.generic()));
    pods.extend((0..each).map(|_| draws.spread(ZONE)));
    pods.extend((0..each).map(|_| draws.spread(HOSTNAME)));
    pods.extend((0..each).map(|_| draws.affine(ZONE)));
    pods.extend((0..each).map(|_| draws.repelling(HOSTNAME)));
    pods.extend((0..count - 5 * each).map(|_| draws.generic()));
    snapshot("diverse", count, types, pods)
}

/// `makePreferencePods(count)` from a fresh generator; `respected` is upstream's preference policy.
pub fn preferences(count: u64, types: Types, respected: bool) -> Snapshot {
    let (cpu, memory) = Draws(GoRand::seed_42()).requests();
    let same = json!({ "matchLabels": { "app": "nginx" } });
    let repel = |weight: u64, key: &str| json!({ "weight": weight, "podAffinityTerm": { "labelSelector": same, "topologyKey": key } });
    let affinity = json!({
        "nodeAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [{ "weight": 1, "preference": {
            "matchExpressions": [{ "key": ZONE, "operator": "In", "values": ["test-zone-1"] }] } }] },
        "podAntiAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [repel(10, ZONE), repel(1, HOSTNAME)] },
    });
    let shape = labelled(cpu, memory, "app", "nginx").with("spec.affinity", affinity);
    let pods = (0..count).map(|_| shape.clone()).collect();
    let (name, policy) = if respected {
        ("preferences-respect", "Respect")
    } else {
        ("preferences-ignore", "Ignore")
    };
    snapshot(name, count, types, pods).setting("preferencePolicy", policy)
}

fn snapshot(shape: &str, count: u64, types: Types, pods: Vec<Object>) -> Snapshot {
    let name = format!("{shape}-{count}-{}", types.name());
    let mut snapshot = Snapshot::new(&name, "workloads, math/rand seed 42", types.catalogue(), &FAKE_LABELS);
    snapshot.objects.push(
        node_pool("default", &test_node_class())
            .entry("spec.template.metadata.labels", DISCOVERY_LABEL, "unspecified")
            .with("spec.limits", json!({ "cpu": "10000000", "memory": "10000000Gi" })),
    );
    snapshot.objects.extend(
        pods.into_iter()
            .enumerate()
            .map(|(i, shape)| named(shape, &format!("pod-{i:05}"))),
    );
    snapshot
}

/// Gives a shape its name and the uid that goes with it.
fn named(shape: Object, name: &str) -> Object {
    let identity = Object::new("v1", "Pod", "default", name);
    shape
        .with("metadata.name", name)
        .with("metadata.uid", identity.get("metadata.uid").clone())
}

fn labelled(cpu: u64, memory: u64, key: &str, value: &str) -> Object {
    unschedulable(pod("default", "pod", cpu, memory))
        .entry("metadata.labels", DISCOVERY_LABEL, "unspecified")
        .entry("metadata.labels", key, value)
}

/// The generator and upstream's order of drawing from it.
struct Draws(GoRand);

impl Draws {
    fn label(&mut self) -> &'static str {
        ["a", "b", "c", "d", "e", "f", "g"][self.0.intn(7)]
    }

    /// Millicores and MiB.
    fn requests(&mut self) -> (u64, u64) {
        let cpu = [100, 250, 500, 1000, 1500][self.0.intn(5)];
        (cpu, [100, 256, 512, 1024, 2048, 4096][self.0.intn(6)])
    }

    fn generic(&mut self) -> Object {
        let label = self.label();
        let (cpu, memory) = self.requests();
        labelled(cpu, memory, "my-label", label)
    }

    fn spread(&mut self, key: &str) -> Object {
        let (label, selected) = (self.label(), self.label());
        let (cpu, memory) = self.requests();
        labelled(cpu, memory, "my-label", label).push(
            "spec.topologySpreadConstraints",
            json!({ "maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": { "matchLabels": { "my-label": selected } } }),
        )
    }

    fn affine(&mut self, key: &str) -> Object {
        let label = self.label();
        let (cpu, memory) = self.requests();
        // The label's spelling is upstream's.
        labelled(cpu, memory, "my-affininity", label).with(
            "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution",
            json!([{ "labelSelector": { "matchLabels": { "my-affininity": label } }, "topologyKey": key }]),
        )
    }

    fn repelling(&mut self, key: &str) -> Object {
        let (cpu, memory) = self.requests();
        labelled(cpu, memory, "app", "nginx").with(
            "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution",
            json!([{ "labelSelector": { "matchLabels": { "app": "nginx" } }, "topologyKey": key }]),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Millicores, MiB of the pod's only container.
    fn requests(pod: &Object) -> (u64, u64) {
        let requests = &pod.get("spec.containers")[0]["resources"]["requests"];
        let text = |name: &str| requests[name].as_str().unwrap_or_default().to_string();
        let (cpu, memory) = (text("cpu"), text("memory"));
        let cpu = cpu
            .strip_suffix('m')
            .map_or_else(|| 1000 * cpu.parse::<u64>().unwrap(), |m| m.parse().unwrap());
        let memory = match memory.strip_suffix("Gi") {
            Some(gi) => 1024 * gi.parse::<u64>().unwrap(),
            None => memory.strip_suffix("Mi").unwrap().parse().unwrap(),
        };
        (cpu, memory)
    }

    #[test]
    fn totals_are_those_upstream_draws() {
        // pods, sum of millicores, sum of MiB, the last pod's requests
        let published = [
            (1, 500, 512, (500, 512)),
            (50, 39_300, 63_888, (1000, 4096)),
            (100, 70_650, 137_892, (250, 2048)),
            (500, 324_400, 676_592, (100, 100)),
            (1000, 663_350, 1_341_084, (1500, 512)),
            (2000, 1_319_500, 2_769_052, (500, 512)),
            (5000, 3_309_000, 6_708_012, (1000, 100)),
            (10_000, 6_628_950, 13_375_332, (1500, 256)),
            (20_000, 13_399_850, 26_928_028, (100, 4096)),
        ];
        let generated = published.map(|(count, ..)| {
            let snapshot = diverse(count, Types::Fake400);
            let drawn: Vec<(u64, u64)> = snapshot.of_kind("Pod").map(requests).collect();
            let sum = |part: fn(&(u64, u64)) -> u64| drawn.iter().map(part).sum::<u64>();
            (count, sum(|r| r.0), sum(|r| r.1), *drawn.last().unwrap())
        });
        assert_eq!(generated, published);
    }

    #[test]
    fn the_first_three_generic_pods_are_always_the_same() {
        let snapshot = diverse(50, Types::Fake400);
        let first: Vec<_> = snapshot
            .of_kind("Pod")
            .take(3)
            .map(|pod| (pod.0["metadata"]["labels"]["my-label"].clone(), requests(pod)))
            .collect();
        assert_eq!(
            first,
            [
                ("f".into(), (500, 512)),
                ("b".into(), (1000, 256)),
                ("g".into(), (250, 512))
            ]
        );
    }

    #[test]
    fn preference_pods_share_one_draw() {
        let snapshot = preferences(4000, Types::Fake400, true);
        let drawn: Vec<_> = snapshot.of_kind("Pod").map(requests).collect();
        assert_eq!(drawn, vec![(100, 4096); 4000]);
    }
}
