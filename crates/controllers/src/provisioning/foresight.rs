//! Which pods will be there in a moment?
//!
//! A ReplicaSet of sixty pods makes them over seconds, and many are made one after the other: pods come in several
//! batches, and a plan for the first knows nothing of the rest. Sixty small nodes are dearer than two large ones. So pods
//! that a ReplicaSet is about to make take part in the plan, after all pods that are there. What is planned for them alone
//! is not launched: no node comes for a pod that nobody has seen. They only decide how large the others' nodes are.
//!
//! Only of ReplicaSets that are making pods right now and can: not of one whose last pod came long ago, or that ran into a
//! quota. And only pods whose place depends on nobody else's, so that no real pod waits for one that may never come.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use model::{
    object::{BriefCondition, ConditionStatus, Metadata, ObjectKey, Pod, PodSpec, PodStatus, ReplicaSet, Uid},
    plan::Plan,
    snapshot::Snapshot,
};

use crate::steering::hint::is_of_default_scheduler;

/// A ReplicaSet that made no pod for this long makes none now. Longer than the longest batch and the pause of a busy
/// controller manager between two of a ReplicaSet's pods.
const MAKING: Duration = Duration::from_secs(30);
/// More are not looked ahead to: a plan for that many is good enough.
const MOST: usize = 5_000;

/// Pods that are about to be made.
#[derive(Debug, Default)]
pub(crate) struct Foresight {
    pods: Vec<Arc<Pod>>,
    keys: BTreeSet<ObjectKey>,
}

impl Foresight {
    /// What a cluster's ReplicaSets are about to make.
    pub(crate) fn of(snapshot: &Snapshot) -> Self {
        if !snapshot.settings().default_constraints.is_empty() {
            return Self::default();
        }
        let mut pods = Vec::new();
        for (set, made) in making(snapshot) {
            let wanted = usize::try_from(set.spec.replicas.unwrap_or(1)).unwrap_or(0);
            let missing = wanted.saturating_sub(made.count).min(MOST - pods.len());
            if missing > 0 && made.goes_on(set, snapshot.taken_at()) {
                let like = made.like(set);
                pods.extend((0..missing).map(|number| Arc::new(like.pod(set, number))));
            }
        }
        let keys = pods.iter().map(|pod| pod.metadata.key()).collect();
        Self { pods, keys }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pods.is_empty()
    }

    /// The snapshot with those pods, pending.
    pub(crate) fn counted(&self, snapshot: &Snapshot) -> Snapshot {
        snapshot.overlaid(|objects| objects.pods = objects.pods.with(self.pods.iter().cloned()))
    }

    /// What a plan has for the pods that are there; none when it leaves one of them out, which another plan may not.
    pub(crate) fn left_out(&self, plan: &Plan) -> Option<Plan> {
        let plan = plan.for_pods(|pod| !self.keys.contains(&pod.metadata.key()));
        plan.unplaced.is_empty().then_some(plan)
    }
}

/// What a ReplicaSet has made.
#[derive(Debug, Default)]
struct Made<'a> {
    count: usize,
    /// The youngest of its pods.
    last: Option<&'a Arc<Pod>>,
}

/// What the next pod will be like.
struct Like<'a> {
    metadata: &'a Metadata,
    spec: Arc<PodSpec>,
}

/// The ReplicaSets that lack pods, with what they have.
fn making(snapshot: &Snapshot) -> impl Iterator<Item = (&Arc<ReplicaSet>, Made<'_>)> {
    let sets = snapshot.objects().replica_sets.iter().filter(|set| lacks_pods(set));
    let mut made: BTreeMap<&Uid, (&Arc<ReplicaSet>, Made<'_>)> = BTreeMap::new();
    for set in sets {
        made.insert(&set.metadata.uid, (set, Made::default()));
    }
    if !made.is_empty() {
        for pod in snapshot.objects().pods.iter().filter(|pod| pod.is_active()) {
            let owner = pod.metadata.controller();
            if let Some((_, made)) = owner.and_then(|owner| made.get_mut(&owner.uid)) {
                made.add(pod);
            }
        }
    }
    made.into_values()
}

fn lacks_pods(set: &ReplicaSet) -> bool {
    set.spec.replicas.unwrap_or(1) > set.status.replicas && !set.is_failing() && !set.metadata.is_deleting()
}

impl<'a> Made<'a> {
    fn add(&mut self, pod: &'a Arc<Pod>) {
        self.count += 1;
        let created = |pod: &Arc<Pod>| pod.metadata.creation_timestamp;
        if self.last.is_none_or(|last| created(last) < created(pod)) {
            self.last = Some(pod);
        }
    }

    /// Whether the rest is coming too, and may be planned for.
    fn goes_on(&self, set: &ReplicaSet, now: Timestamp) -> bool {
        let last = self.last.map_or(&set.metadata, |pod| &pod.metadata);
        let since = |at: Timestamp| now.duration_since(at) < SignedDuration::try_from(MAKING).unwrap_or_default();
        last.creation_timestamp.is_some_and(since) && is_plain(&self.like(set).spec)
    }

    /// A pod that is there shows what admission makes of the template.
    fn like(&self, set: &'a ReplicaSet) -> Like<'a> {
        let template = &set.spec.template;
        let (metadata, spec) = self
            .last
            .map_or((&template.metadata, &template.spec), |pod| (&pod.metadata, &pod.spec));
        let mut spec = PodSpec::clone(spec);
        spec.priority = Some(i32::MIN);
        Like {
            metadata,
            spec: Arc::new(spec),
        }
    }
}

impl Like<'_> {
    fn pod(&self, set: &ReplicaSet, number: usize) -> Pod {
        let unschedulable = BriefCondition {
            kind: "PodScheduled".into(),
            status: ConditionStatus::False,
            reason: "Unschedulable".into(),
            last_transition_time: None,
        };
        let name = format!("{} expected {number}", set.metadata.name);
        Pod {
            metadata: Metadata {
                namespace: set.metadata.namespace.clone(),
                uid: name.as_str().into(),
                name: name.into(),
                labels: self.metadata.labels.clone(),
                ..Metadata::default()
            },
            node_name: None,
            spec: Arc::clone(&self.spec),
            status: PodStatus {
                conditions: vec![unschedulable].into(),
                ..PodStatus::default()
            },
        }
    }
}

/// Whether only a node's own room and labels decide about a pod.
fn is_plain(spec: &PodSpec) -> bool {
    let affinity = spec.affinity.as_ref();
    let keeps_apart = affinity.is_some_and(|it| it.pod_affinity.is_some() || it.pod_anti_affinity.is_some());
    is_of_default_scheduler(spec)
        && !keeps_apart
        && spec.host_ports().next().is_none()
        && spec.topology_spread_constraints.is_empty()
        && spec.scheduling_gates.is_empty()
        && spec.volumes.is_empty()
        && spec.resource_claims.is_empty()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::provisioning::{
        decide::Step,
        fixture::{node_pool, pending, snapshot},
        pass::{Manner, pass},
        tell,
    };

    /// A ReplicaSet of pods of a core, made a moment ago.
    fn set(name: &str, replicas: u32) -> Value {
        let template = json!({
            "metadata": { "labels": { "app": name } },
            "spec": {
                "tolerations": [{ "operator": "Exists" }],
                "containers": [{ "name": "c", "resources": { "requests": { "cpu": "1" } } }],
            },
        });
        json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": { "name": name, "namespace": "ns", "uid": format!("{name}-set"), "creationTimestamp": "2026-11-16T12:09:55Z" },
            "spec": { "replicas": replicas, "template": template },
        })
    }

    fn pod_of(set: &str, name: &str, created: &str) -> Value {
        let mut pod = pending(name, "1");
        pod["metadata"]["creationTimestamp"] = created.into();
        pod["metadata"]["ownerReferences"] = json!([{ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": set, "uid": format!("{set}-set"), "controller": true }]);
        pod
    }

    fn with(mut object: Value, pointer: &str, value: Value) -> Value {
        *object.pointer_mut(pointer).unwrap() = value;
        object
    }

    fn expected(objects: Vec<Value>) -> usize {
        Foresight::of(&snapshot(&["p"], objects)).pods.len()
    }

    const JUST_NOW: &str = "2026-11-16T12:09:58Z";
    const LONG_AGO: &str = "2026-11-16T12:09:20Z";

    #[test]
    fn pods_are_expected_of_a_replica_set_that_is_making_them() {
        assert_eq!(expected(vec![set("web", 5)]), 5);
        assert_eq!(
            expected(vec![
                set("web", 5),
                pod_of("web", "a", JUST_NOW),
                pod_of("web", "b", LONG_AGO)
            ]),
            3
        );
        assert_eq!(expected(vec![set("web", 1), pod_of("web", "a", JUST_NOW)]), 0);
    }

    #[test]
    fn nothing_is_expected_of_a_replica_set_that_stopped_or_cannot_go_on() {
        let failing = json!([{ "type": "ReplicaFailure", "status": "True", "reason": "FailedCreate" }]);
        let mut without_quota = set("web", 5);
        without_quota["status"] = json!({ "replicas": 1, "conditions": failing });
        let mut complete = set("web", 5);
        complete["status"] = json!({ "replicas": 5 });
        let old = with(set("web", 5), "/metadata/creationTimestamp", LONG_AGO.into());
        for set in [without_quota, complete, old] {
            assert_eq!(expected(vec![set]), 0);
        }
        assert_eq!(expected(vec![set("web", 5), pod_of("web", "a", LONG_AGO)]), 0);
    }

    #[test]
    fn nothing_is_expected_of_pods_whose_place_depends_on_others() {
        let spread = json!([{ "maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule" }]);
        let port = json!([{ "name": "c", "ports": [{ "containerPort": 80, "hostPort": 80 }] }]);
        let apart = json!({ "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [{ "topologyKey": "kubernetes.io/hostname" }] } });
        let gate = json!([{ "name": "quota" }]);
        let fields = [
            ("topologySpreadConstraints", spread),
            ("containers", port),
            ("affinity", apart),
            ("schedulingGates", gate),
            ("schedulerName", json!("batch")),
        ];
        for (field, value) in fields {
            let mut set = set("web", 5);
            set["spec"]["template"]["spec"][field] = value;
            assert_eq!(expected(vec![set]), 0, "{field}");
        }
    }

    fn launches(objects: Vec<Value>, foresight: bool) -> Vec<(usize, String)> {
        let manner = Manner {
            foresight,
            ..Manner::default()
        };
        let outcome = pass(&snapshot(&["p"], objects), &manner, &mut packing::Warm::default());
        let drafts = outcome.steps.into_iter().filter_map(|step| match step {
            Step::Create(draft) => Some((draft.pods.len(), tell::some(draft.types(), 5))),
            _ => None,
        });
        drafts.collect()
    }

    #[test]
    fn node_is_as_large_as_the_pods_to_come_ask_for_and_none_is_for_them_alone() {
        let objects = || {
            vec![
                node_pool("p", &json!({})),
                set("web", 14),
                pod_of("web", "a", JUST_NOW),
                pod_of("web", "b", JUST_NOW),
            ]
        };
        assert_eq!(launches(objects(), false), [(2, "large, small".to_owned())]);
        assert_eq!(launches(objects(), true), [(2, "large".to_owned())]);
    }

    #[test]
    fn pod_that_is_there_never_stays_behind_for_one_that_is_not() {
        let limited = node_pool("p", &json!({ "limits": { "cpu": "2" } }));
        let objects = vec![limited, set("web", 14), pod_of("web", "a", JUST_NOW)];
        assert_eq!(launches(objects, true), [(1, "small".to_owned())]);
    }
}
