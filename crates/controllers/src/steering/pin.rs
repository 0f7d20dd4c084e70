//! Which planned pods may we bind ourselves, while our taint keeps everybody else off the node?
//!
//! Whoever binds answers for what kube-scheduler would have checked. So only pods for which the node alone decides, and
//! only where kube-scheduler's own filters say yes to the node as it is now. Whatever is in doubt is left to kube-scheduler.

use std::sync::Arc;

use api::taints;
use model::{
    object::{Node, PersistentVolumeClaim, Pod, Taint},
    snapshot::Snapshot,
};
use scheduler::{Cluster, SchedNode, Spreading};

use super::hint::{depends_on_other_nodes, has_wide_terms, is_of_default_scheduler, is_waiting};

/// Of the pods planned for a node, those that are bound by us. `node` is held by our taint.
pub(crate) fn pinned(snapshot: &Snapshot, node: &Node, planned: &[Arc<Pod>]) -> Vec<Arc<Pod>> {
    let may = |pod: &&Arc<Pod>| is_left_to_the_node(pod) && has_its_volumes(snapshot, pod);
    let wanted: Vec<_> = planned.iter().filter(may).collect();
    if wanted.is_empty() || snapshot.objects().pods.iter().any(|pod| keeps_others_away(pod)) {
        return Vec::new();
    }
    let mut cluster = Cluster::new(snapshot, Spreading::System);
    let mut open = SchedNode::of(snapshot, node);
    open.taints = open.taints.iter().filter(|taint| !is_pinning(taint)).cloned().collect();
    let here = cluster.add_node(open);
    let name = Some(node.name());
    for pod in snapshot.objects().pods.iter() {
        if pod.node_name == name && !pod.is_terminal() {
            let class = cluster.class_of(pod);
            cluster.bind(class, here);
        }
    }
    let mut pinned = Vec::new();
    for pod in wanted {
        let class = cluster.class_of(pod);
        if cluster.filter(class, here).is_ok() {
            cluster.bind(class, here);
            pinned.push(Arc::clone(pod));
        }
    }
    pinned
}

/// Whether a taint is the one that holds a node while its pods are bound.
pub(crate) fn is_pinning(taint: &Taint) -> bool {
    *taint.key == *taints::PINNING && *taint.effect == *"NoSchedule"
}

fn is_left_to_the_node(pod: &Pod) -> bool {
    is_waiting(pod) && is_of_default_scheduler(&pod.spec) && !pod.has_device_claims() && !depends_on_other_nodes(pod)
}

/// Whether every volume claim of a pod is bound: kube-scheduler binds the others, and must choose the node for it.
fn has_its_volumes(snapshot: &Snapshot, pod: &Pod) -> bool {
    let is_bound = |claim: &Arc<PersistentVolumeClaim>| *claim.status.phase == *"Bound";
    let claims = &snapshot.objects().persistent_volume_claims;
    pod.spec.volumes.iter().all(|volume| {
        let name = volume.claim_name(&pod.metadata.name);
        name.is_none_or(|name| claims.find(&pod.metadata.namespace, &name).is_some_and(is_bound))
    })
}

/// Whether a pod may keep others out of more than its own host: it may be bound this very moment.
fn keeps_others_away(pod: &Pod) -> bool {
    let affinity = pod.spec.affinity.as_ref();
    let apart = affinity.and_then(|affinity| affinity.pod_anti_affinity.as_ref());
    apart.is_some_and(has_wide_terms) && pod.is_active()
}

#[cfg(test)]
mod tests {
    use model::snapshot::{Catalog, Objects, Settings, Table, Title};
    use serde_json::{Value, json};

    use super::*;

    fn pod(name: &str, over: &Value) -> Arc<Pod> {
        let mut spec = json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]});
        for (key, value) in over.as_object().unwrap() {
            spec[key] = value.clone();
        }
        let metadata = json!({"name": name, "namespace": "team", "uid": name, "labels": {"app": "web"}});
        Arc::new(serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap())
    }

    fn node() -> Node {
        let taints = json!([{"key": "dovetail.dev/pinning", "effect": "NoSchedule"}]);
        serde_json::from_value(json!({
            "metadata": {"name": "n", "labels": {"kubernetes.io/hostname": "n", "arch": "arm64"}}, "spec": {"taints": taints},
            "status": {"allocatable": {"cpu": "2500m", "memory": "4Gi", "pods": "10"}},
        }))
        .unwrap()
    }

    /// Which of these pods are pinned while the others of the cluster are there too.
    fn names(planned: &[Arc<Pod>], others: &[Arc<Pod>]) -> Vec<String> {
        let volume = |name: &str, phase: &str| -> Arc<PersistentVolumeClaim> {
            let metadata = json!({"name": name, "namespace": "team"});
            Arc::new(serde_json::from_value(json!({"metadata": metadata, "status": {"phase": phase}})).unwrap())
        };
        let objects = Objects {
            pods: Table::new(planned.iter().chain(others).cloned().collect()),
            persistent_volume_claims: Table::new(vec![volume("bound", "Bound"), volume("open", "Pending")]),
            ..Objects::default()
        };
        let title = Title {
            name: "test".to_owned(),
            taken_at: jiff::Timestamp::UNIX_EPOCH,
            origin: "test".to_owned(),
        };
        let snapshot = Snapshot::new(title, Settings::default(), objects, Catalog::default());
        let pinned = pinned(&snapshot, &node(), planned);
        pinned.iter().map(|pod| pod.metadata.name.to_string()).collect()
    }

    #[test]
    fn pods_are_pinned_until_the_node_is_full() {
        let plain = json!({});
        let planned = ["a", "b", "c"].map(|name| pod(name, &plain));
        assert_eq!(names(&planned, &[]), ["a", "b"]);
        let here = pod("d", &json!({"nodeName": "n"}));
        assert_eq!(names(&planned, &[here]), ["a"]);
    }

    #[test]
    fn whatever_is_in_doubt_is_left_to_the_scheduler() {
        let zone = "topology.kubernetes.io/zone";
        let spread = json!([{"maxSkew": 1, "topologyKey": zone, "whenUnsatisfiable": "DoNotSchedule"}]);
        let claim = |name: &str| json!({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]});
        let cases = [
            (json!({"nodeSelector": {"arch": "arm64"}}), true),
            (json!({"nodeSelector": {"arch": "amd64"}}), false),
            (json!({"schedulerName": "batch"}), false),
            (json!({"nodeName": "m"}), false),
            (json!({"topologySpreadConstraints": spread}), false),
            (json!({"resourceClaims": [{"name": "gpu"}]}), false),
            (claim("open"), false),
            (claim("unknown"), false),
        ];
        for (spec, is_pinned) in cases {
            let expected: &[&str] = if is_pinned { &["a"] } else { &[] };
            assert_eq!(names(&[pod("a", &spec)], &[]), expected, "{spec}");
        }
    }

    #[test]
    fn nobody_is_pinned_while_a_pod_keeps_others_out_of_a_zone() {
        let term = json!([{"topologyKey": "topology.kubernetes.io/zone", "labelSelector": {}}]);
        let apart = json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}}});
        assert_eq!(names(&[pod("a", &json!({}))], &[pod("b", &apart)]), [""; 0]);
    }
}
