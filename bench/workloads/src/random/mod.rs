//! A random cluster: every scheduling feature of the contract appears with some probability, so that two engines can be
//! compared on thousands of them.
//!
//! The same seed always gives the same file. Objects are what an API server would accept; what they ask for together may
//! well be impossible, because the reasons for a refusal are part of the contract.

mod cloud;
mod cluster;
mod constraints;
mod devices;
mod pools;
mod rare;
mod storage;
mod unusual;
mod workload;

use serde_json::{Value, json};

use crate::catalogue::KWOK_LABELS;
use crate::object::{HOSTNAME, Object, ZONE};
use crate::rng::Rng;
use crate::snapshot::Snapshot;

/// Label keys users of the random cluster made up, and the values they use.
const CUSTOM_LABELS: [(&str, [&str; 2]); 2] = [
    ("example.com/team", ["red", "blue"]),
    ("example.com/env", ["dev", "prod"]),
];
/// Namespaces and their labels' one value.
const NAMESPACES: [(&str, &str); 3] = [("default", "a"), ("payments", "b"), ("batch", "b")];
/// The taint pools may carry: key, value, effect.
const TAINTS: [(&str, &str, &str); 3] = [
    ("example.com/dedicated", "batch", "NoSchedule"),
    ("example.com/costly", "true", "PreferNoSchedule"),
    ("example.com/risky", "true", "NoExecute"),
];

/// Turns a seed into the one of the draws that were added later.
const LATER: u64 = 0x0de7_1ce5;
/// The same for those that came after.
const LAST: u64 = 0x000d_dbe7;
/// And for the rarest.
const RAREST: u64 = 0x5eed_ab1e;

/// The random cluster of a seed.
pub fn random(seed: u64) -> Snapshot {
    let mut rng = Rng::new(seed);
    let rng = &mut rng;
    let types = cloud::catalogue(rng);
    let known: Vec<&str> = KWOK_LABELS.into_iter().chain([cloud::RESERVATION_ID]).collect();
    let mut snapshot = Snapshot::new(
        &format!("random-{seed}"),
        &format!("workloads seed={seed}"),
        types,
        &known,
    );
    snapshot = settings(snapshot, rng);
    snapshot.objects.extend(NAMESPACES.map(|(name, value)| {
        Object::new("v1", "Namespace", "", name).with("metadata.labels", json!({ "grade": value }))
    }));
    snapshot.objects.extend(storage::classes(rng));
    pools::add(&mut snapshot, rng);
    let groups = workload::groups(rng);
    cluster::add(&mut snapshot, &groups, rng);
    workload::add_pending(&mut snapshot, &groups, rng);
    cloud::add_overlays(&mut snapshot, rng);
    workload::add_buffers(&mut snapshot, &groups, rng);
    // Draws of their own, so that what a seed was before these came remains.
    let rng = &mut Rng::new(seed ^ LATER);
    cloud::deviate(&mut snapshot.instance_types, rng);
    unusual::add(&mut snapshot, &mut Rng::new(seed ^ LAST));
    vary(&mut snapshot, seed);
    devices::add(snapshot, rng)
}

/// From which seed on clusters have things that few have; the ones before stay what tests know them as.
const FIRST_RARE: u64 = 10_000;

/// Gives a finished cluster a few of the things that few clusters have, if its seed is one of those.
pub fn vary(snapshot: &mut Snapshot, seed: u64) {
    if seed >= FIRST_RARE {
        rare::add(snapshot, &mut Rng::new(seed ^ RAREST));
    }
}

/// What upstream and kube-scheduler do not see alike: a label that upstream takes for the one that replaced it, and volumes
/// of one host, which upstream lets go anywhere.
const SEEN_OTHERWISE: [&str; 2] = ["\"failure-domain.beta.kubernetes.io/zone\"", "\"local\":{"];

/// Whether upstream's own plan for the cluster can be held to what kube-scheduler does.
pub fn is_seen_alike(snapshot: &Snapshot) -> bool {
    let text = serde_json::to_string(snapshot).unwrap_or_default();
    !SEEN_OTHERWISE.iter().any(|part| text.contains(part))
}

fn settings(mut snapshot: Snapshot, rng: &mut Rng) -> Snapshot {
    if rng.chance(20) {
        snapshot = snapshot.setting("preferencePolicy", "Ignore");
    }
    if rng.chance(25) {
        snapshot = snapshot.setting("minValuesPolicy", "BestEffort");
    }
    if rng.chance(15) {
        snapshot = snapshot.setting("defaultConstraints", default_constraints(rng));
    }
    for (gate, percent) in [
        ("ReservedCapacity", 90),
        ("NodeOverlay", 25),
        ("CapacityBuffer", 25),
        ("SpotToSpotConsolidation", 30),
    ] {
        let on = rng.chance(percent);
        snapshot = snapshot.gate(gate, on);
    }
    snapshot.gate("StaticCapacity", true)
}

fn default_constraints(rng: &mut Rng) -> Value {
    let when = *rng.pick(&["DoNotSchedule", "ScheduleAnyway"]);
    let mut constraints = vec![json!({ "maxSkew": rng.between(1, 3), "topologyKey": ZONE, "whenUnsatisfiable": when })];
    if rng.chance(50) {
        constraints.push(json!({ "maxSkew": 1, "topologyKey": HOSTNAME, "whenUnsatisfiable": "ScheduleAnyway" }));
    }
    Value::from(constraints)
}

#[cfg(test)]
mod tests {
    use model::dump;

    use super::*;

    /// What must turn up somewhere in many random clusters, as a piece of JSON text.
    #[rustfmt::skip]
    const FEATURES: [&str; 110] = [
        "\"operator\":\"In\"", "\"operator\":\"NotIn\"", "\"operator\":\"Exists\"", "\"operator\":\"DoesNotExist\"",
        "\"operator\":\"Gt\"", "\"operator\":\"Lt\"", "\"operator\":\"Gte\"", "\"operator\":\"Lte\"", "\"minValues\"",
        "\"effect\":\"NoSchedule\"", "\"effect\":\"PreferNoSchedule\"", "\"effect\":\"NoExecute\"", "\"startupTaints\"",
        "\"weight\"", "\"limits\"", "\"replicas\"", "\"values\":[\"reserved\"]", "\"reservationCapacity\":2",
        "\"tolerations\"", "\"hostPort\"", "\"persistentVolumeClaim\"", "\"ephemeral\"", "\"allowedTopologies\"",
        "\"kind\":\"PersistentVolume\"", "\"kind\":\"CSINode\"", "\"kind\":\"DaemonSet\"", "\"kind\":\"NodeOverlay\"",
        "\"kind\":\"CapacityBuffer\"", "\"kind\":\"PodDisruptionBudget\"", "\"kind\":\"Service\"",
        "\"kind\":\"ReplicaSet\"", "\"minDomains\"", "\"nodeAffinityPolicy\"", "\"nodeTaintsPolicy\"",
        "\"matchLabelKeys\"", "\"whenUnsatisfiable\":\"ScheduleAnyway\"", "\"whenUnsatisfiable\":\"DoNotSchedule\"",
        "\"namespaceSelector\"", "\"namespaces\"", "\"podAffinity\"", "\"podAntiAffinity\"", "\"nodeAffinity\"",
        "\"preferredDuringSchedulingIgnoredDuringExecution\"", "\"requiredDuringSchedulingIgnoredDuringExecution\"",
        "\"priority\"", "\"initContainers\"", "\"restartPolicy\":\"Always\"", "\"overhead\":{\"cpu\"",
        "\"karpenter.sh/do-not-disrupt\"", "\"deletionTimestamp\"", "\"karpenter.sh/disrupted\"", "\"nodeSelector\"",
        "\"phase\":\"Succeeded\"", "\"preferencePolicy\":\"Ignore\"", "\"minValuesPolicy\":\"BestEffort\"",
        "\"defaultConstraints\"", "\"priceAdjustment\"", "\"scalableRef\"", "\"podTemplateRef\"",
        "\"nodePoolInstanceTypes\":{\"", "\"volumeAttachmentLimits\"", "\"capacityOverride\"", "\"overheadOverride\"",
        "\"consolidationPolicy\":\"Balanced\"", "\"ignoreDRARequests\":false", "\"attributeBindings\"",
        "\"resourceSliceTemplates\"", "\"kind\":\"ResourceSlice\"", "\"kind\":\"ResourceClaimTemplate\"",
        "\"key\":\"kubernetes.io/hostname\"", "\"topologyKey\":\"example.com/team\"", "\"hostIP\"", "\"protocol\":\"UDP\"",
        "\"local\"", "\"hostPath\"", "\"nfs\"", "\"no-such-class\"", "\"no-such-volume\"", "-crowd-69\"", "\"nodes\":\"0\"",
        "\"example.com/unknown\"", "\"firstAvailable\"", "\"sharedCounters\"", "\"matchAttribute\"", "\"reservedFor\"", "\"allocationMode\":\"All\"",
        "\"mismatchLabelKeys\"", "\"labelSelector\":null", "\"matchFields\"", "\"no-such-zone\"", "\"tolerationSeconds\"",
        "\"SchedulerError\"", "\"kind\":\"StatefulSet\"", "\"kubernetes.io/config.mirror\"", "\"hugepages-2Mi\"",
        "\"hostNetwork\":true", "\"status\":{\"conditions\":[]", "\"unschedulable\":true",
        "\"node.kubernetes.io/not-ready\"", "\"karpenter.sh/unregistered\"", "\"schedule\"",
        "\"reasons\"", "\"unhealthyPodEvictionPolicy\"", "\"expireAfter\":\"3h\"", "\"example.com/number\"", "\"rare-daemon\"",
        "\"volumeBindingMode\":\"Immediate\"", "\"forever\"", "\"name\":\"second\"", "\"grown\"",
    ];

    /// What a reader of lists leaves out because nothing reads it (`model::dump`, `thin.rs`) may be nothing that is read.
    #[test]
    fn a_long_list_of_objects_with_every_feature_is_read_as_its_objects_are_one_by_one() {
        let read = |text: String| {
            let options = dump::Options {
                mode: dump::Mode::Lenient,
                taken_at: crate::snapshot::TAKEN_AT.parse().unwrap(),
            };
            let stream = dump::Source::Stream("test".into(), Box::new(std::io::Cursor::new(text.into_bytes())));
            dump::read([stream], options).unwrap().0
        };
        // So that the list counts as a long one.
        let filling =
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "long"}, "data": "x".repeat(1 << 20)});
        for seed in (0..20).chain(FIRST_RARE..FIRST_RARE + 20) {
            let objects = serde_json::to_value(&random(seed).objects).unwrap();
            let mut items = objects.as_array().unwrap().clone();
            let one_by_one: String = items.iter().map(Value::to_string).collect();
            items.push(filling.clone());
            let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
            let printed = serde_json::to_string_pretty(&list).unwrap();
            assert!(read(printed).objects() == read(one_by_one).objects(), "seed {seed}");
        }
    }

    #[test]
    fn every_feature_appears_in_the_first_two_hundred_seeds_of_each_kind() {
        let files: Vec<String> = (0..200)
            .chain(FIRST_RARE..FIRST_RARE + 200)
            .map(|seed| serde_json::to_string(&random(seed)).unwrap())
            .collect();
        let missing: Vec<&str> = FEATURES
            .into_iter()
            .filter(|feature| !files.iter().any(|file| file.contains(feature)))
            .collect();
        assert_eq!(missing, Vec::<&str>::new());
    }

    #[test]
    fn a_seed_is_a_cluster() {
        assert_eq!(random(3), random(3));
        assert_ne!(random(3).objects, random(4).objects);
    }

    #[test]
    fn no_two_objects_share_a_name() {
        for seed in (0..100).chain(FIRST_RARE..FIRST_RARE + 300) {
            let snapshot = random(seed);
            let mut names: Vec<String> = snapshot
                .objects
                .iter()
                .map(|o| format!("{} {} {}", o.kind(), o.get("metadata.namespace"), o.name()))
                .collect();
            let all = names.len();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), all, "seed {seed}");
        }
    }
}
