//! Which daemons will run on a node, and what do they take?

use std::sync::Arc;

use model::{
    host_port::HostPort,
    object::{Container, DaemonSet, Pod, PodSpec, ResourceRequirements, Taint, Toleration},
    pod_requests::requests_defaulted_to_limits,
    resources::ResourceList,
    snapshot::Snapshot,
};

use crate::{
    amounts::Dictionary,
    plugin::{
        node_affinity::{self, NodeLabels},
        taint_toleration,
    },
};

/// What the DaemonSet controller lets its pods tolerate on top of their own tolerations.
const TOLERATED: [&str; 6] = [
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/pid-pressure",
    "node.kubernetes.io/unschedulable",
];

/// A DaemonSet's pod to be.
#[derive(Debug)]
pub(super) struct Daemon {
    pub(super) set: Arc<DaemonSet>,
    spec: PodSpec,
    pod: Arc<Pod>,
    pub(super) requests: Vec<(usize, i64)>,
    pub(super) ports: Vec<HostPort>,
    pub(super) is_constrained: bool,
    /// More than one node selector term.
    pub(super) has_terms: bool,
}

/// All DaemonSets whose pods can run. Pods that ask for devices cannot while device requests are ignored.
pub(super) fn daemons(snapshot: &Snapshot, dictionary: &mut Dictionary) -> Vec<Daemon> {
    let sets = snapshot.objects().daemon_sets.iter();
    let pods = sets.map(|set| (set, representative(snapshot, set)));
    let ignores = snapshot.settings().ignore_dra_requests;
    pods.filter(|(_, pod)| !(ignores && pod.has_device_claims()))
        .map(|(set, pod)| Daemon::new(set, &pod, dictionary))
        .collect()
}

/// The newest pod of the set, because admission may have changed what the template says; otherwise the template's. Where
/// it may run is what the template says either way: the set pins each pod to its node.
fn representative(snapshot: &Snapshot, set: &DaemonSet) -> Pod {
    let owned = |pod: &&Arc<Pod>| {
        let owner = pod.metadata.controller();
        pod.metadata.namespace == set.metadata.namespace
            && owner.is_some_and(|it| *it.kind == *"DaemonSet" && it.uid == set.metadata.uid)
    };
    let pods = snapshot.objects().pods.iter().filter(owned);
    let newest = pods.max_by_key(|pod| pod.metadata.creation_timestamp);
    newest.map_or_else(|| of_template(set), |pod| Pod::clone(pod))
}

fn of_template(set: &DaemonSet) -> Pod {
    let template = &set.spec.template;
    let mut spec = PodSpec::clone(&template.spec);
    spec.containers = spec.containers.iter().map(defaulted).collect();
    spec.init_containers = spec.init_containers.iter().map(defaulted).collect();
    Pod {
        metadata: template.metadata.clone(),
        spec: Arc::new(spec),
        ..Pod::default()
    }
}

fn defaulted(container: &Container) -> Container {
    let resources = &container.resources;
    Container {
        resources: ResourceRequirements {
            requests: requests_defaulted_to_limits(&resources.requests, &resources.limits),
            ..resources.clone()
        },
        ..container.clone()
    }
}

impl Daemon {
    fn new(set: &Arc<DaemonSet>, pod: &Pod, dictionary: &mut Dictionary) -> Self {
        let template = &set.spec.template.spec;
        let requests: ResourceList = pod.resources().requests();
        let affinity = template.affinity.as_ref().and_then(|it| it.node_affinity.as_ref());
        let required = affinity.and_then(|it| it.required.as_ref());
        Self {
            requests: dictionary.sparse(&requests),
            ports: pod.spec.host_ports().collect(),
            is_constrained: node_affinity::is_constrained(template),
            has_terms: required.is_some_and(|it| it.node_selector_terms.len() > 1),
            spec: PodSpec::clone(template),
            pod: Arc::new(pod.clone()),
            set: Arc::clone(set),
        }
    }

    /// The pod it would make.
    pub(super) fn pod(&self) -> Arc<Pod> {
        Arc::clone(&self.pod)
    }

    pub(super) fn tolerates(&self, taints: &[Taint]) -> bool {
        let added = TOLERATED.map(|key| Toleration {
            key: key.into(),
            operator: "Exists".into(),
            ..Toleration::default()
        });
        let tolerations: Vec<_> = self.spec.tolerations.iter().cloned().chain(added).collect();
        taint_toleration::untolerated(taints, &tolerations).is_none()
    }

    pub(super) fn matches(&self, node: &str, labels: &dyn NodeLabels) -> bool {
        !self.is_constrained || node_affinity::admits(&self.spec, node, labels)
    }

    /// Whether one of its pods is among these.
    pub(super) fn is_among<'a>(&self, mut pods: impl Iterator<Item = &'a Arc<Pod>>) -> bool {
        pods.any(|pod| {
            pod.metadata
                .controller()
                .is_some_and(|owner| owner.uid == self.set.metadata.uid)
        })
    }
}
