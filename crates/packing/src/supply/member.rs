//! Which nodes and claims of a snapshot belong together.

use std::collections::BTreeMap;

use model::{
    object::Node,
    snapshot::{Member, Snapshot, machine_of_claim, machine_of_node},
};

use crate::demand::volume::Storage;

/// The machines of a snapshot: claims that were launched and nodes, joined by provider ID.
pub fn members(snapshot: &Snapshot) -> Vec<Member<'_>> {
    let mut members = BTreeMap::<&str, Member<'_>>::new();
    for claim in snapshot.objects().node_claims.iter() {
        if let Some(id) = machine_of_claim(claim) {
            members.entry(id).or_default().claim = Some(claim);
        }
    }
    let register = Register::of(snapshot);
    for node in snapshot.objects().nodes.iter() {
        if let Some(id) = register.machine(node) {
            members.entry(id).or_default().node = Some(node);
        }
    }
    members.into_values().collect()
}

/// Which nodes of a snapshot upstream takes up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Register<'a> {
    snapshot: &'a Snapshot,
    is_storage_whole: bool,
}

impl<'a> Register<'a> {
    pub(crate) fn of(snapshot: &'a Snapshot) -> Self {
        let is_storage_whole = is_storage_whole(snapshot);
        Self {
            snapshot,
            is_storage_whole,
        }
    }

    /// The machine of a node that is taken up.
    pub(crate) fn machine<'n>(&self, node: &'n Node) -> Option<&'n str> {
        let id = machine_of_node(node)?;
        (self.is_storage_whole || is_usage_known(node, self.snapshot)).then_some(id)
    }
}

/// Whether every claim's volume is there, so that the volumes of every pod can be resolved.
fn is_storage_whole(snapshot: &Snapshot) -> bool {
    let (storage, mut claims) = (
        Storage(snapshot.objects()),
        snapshot.objects().persistent_volume_claims.iter(),
    );
    claims.all(|claim| claim.spec.volume_name.is_empty() || storage.volume(&claim.spec.volume_name).is_ok())
}

/// Upstream does not take a node up while the volumes of a pod on it cannot be resolved.
fn is_usage_known(node: &Node, snapshot: &Snapshot) -> bool {
    let storage = Storage(snapshot.objects());
    let name = node.name();
    let mut with_volumes = snapshot
        .pods_on_node(&name)
        .filter(|pod| !pod.spec.volumes.is_empty() && !pod.is_terminal());
    with_volumes.all(|pod| storage.attachments(pod).is_ok())
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "literals read better by value")]
mod tests {
    use api::{
        labels::{INITIALIZED, INSTANCE_TYPE, NODEPOOL, REGISTERED},
        taints,
    };
    use serde_json::{Value, json};

    use super::*;
    use crate::demand::fixture::{bound, object, snapshot};

    fn claim(parts: Value) -> Value {
        let mut claim = object(
            "karpenter.sh/v1",
            "NodeClaim",
            "",
            "claim",
            json!({ "spec": { "requirements": [] } }),
        );
        claim["status"] = json!({ "providerID": "id" });
        for (part, value) in parts.as_object().unwrap() {
            for (key, value) in value.as_object().unwrap() {
                claim[part][key] = value.clone();
            }
        }
        claim
    }

    /// A node of a pool with these labels.
    fn node(labels: &[(&str, &str)], parts: Value) -> Value {
        let mut node = object("v1", "Node", "", "node", parts);
        node["spec"]["providerID"] = "id".into();
        node["metadata"]["labels"] = json!({ NODEPOOL: "pool", INSTANCE_TYPE: "type" });
        for (key, value) in labels {
            node["metadata"]["labels"][key] = (*value).into();
        }
        node
    }

    const STARTED: &[(&str, &str)] = &[(REGISTERED, "true"), (INITIALIZED, "true")];

    fn taint(key: &str, effect: &str) -> Value {
        json!({ "key": key, "effect": effect })
    }

    fn taints(objects: Vec<Value>) -> Vec<String> {
        let snapshot = snapshot(objects);
        let taints = members(&snapshot)[0].taints();
        taints.iter().map(|taint| taint.view().to_string()).collect()
    }

    #[test]
    fn claim_speaks_for_the_machine_until_its_node_has_registered() {
        let cases = [
            (vec![claim(json!({}))], "claim"),
            (vec![claim(json!({})), node(&[], json!({}))], "claim"),
            (
                vec![claim(json!({})), node(&[(REGISTERED, "false")], json!({}))],
                "claim",
            ),
            (vec![claim(json!({})), node(&[(REGISTERED, "true")], json!({}))], "node"),
            (vec![node(&[], json!({}))], "node"),
        ];
        for (objects, name) in cases {
            let snapshot = snapshot(objects.clone());
            let names: Vec<_> = members(&snapshot)
                .iter()
                .map(|member| member.name().to_string())
                .collect();
            assert_eq!(names, [name], "{objects:?}");
        }
    }

    #[test]
    fn node_of_a_pool_counts_once_its_identity_and_type_are_known() {
        let without = |key: &str, part: &str| {
            let mut node = node(&[], json!({}));
            node[part].as_object_mut().unwrap().remove(key);
            node
        };
        let mut untyped = node(&[], json!({}));
        untyped["metadata"]["labels"] = json!({ NODEPOOL: "pool" });
        let mut initialized = untyped.clone();
        initialized["metadata"]["labels"][INITIALIZED] = "true".into();
        let cases = [
            (node(&[], json!({})), 1),
            (without("providerID", "spec"), 0),
            (untyped, 0),
            (initialized, 1),
            (object("v1", "Node", "", "foreign", json!({})), 1),
        ];
        for (node, expected) in cases {
            assert_eq!(members(&snapshot(vec![node.clone()])).len(), expected, "{node}");
        }
        let unlaunched = object("karpenter.sh/v1", "NodeClaim", "", "claim", json!({}));
        assert_eq!(members(&snapshot(vec![unlaunched])).len(), 0);
    }

    #[test]
    fn node_whose_volumes_cannot_be_resolved_does_not_count() {
        let lost = object(
            "v1",
            "PersistentVolumeClaim",
            "ns",
            "data",
            json!({ "spec": { "volumeName": "gone" } }),
        );
        let volumes = json!([{ "name": "v", "persistentVolumeClaim": { "claimName": "data" } }]);
        let pod = bound("p", "node", json!({ "spec": { "volumes": volumes } }));
        let snapshot = snapshot(vec![claim(json!({})), node(STARTED, json!({})), lost, pod]);
        let [member] = members(&snapshot)[..] else {
            panic!("one machine")
        };
        assert!(member.node.is_none() && member.claim.is_some());
    }

    #[test]
    fn machine_leaves_with_its_claim_or_without_one_with_its_node() {
        let deleting = json!({ "metadata": { "deletionTimestamp": "2026-11-15T12:00:00Z" } });
        let terminating =
            |status: &str| json!({ "status": { "conditions": [{ "type": "InstanceTerminating", "status": status }] } });
        let cases = [
            (vec![claim(json!({}))], false),
            (vec![claim(deleting.clone())], true),
            (vec![claim(terminating("True"))], true),
            (vec![claim(terminating("False"))], false),
            (vec![claim(json!({})), node(STARTED, deleting.clone())], false),
            (vec![node(STARTED, deleting)], true),
            (vec![node(STARTED, json!({}))], false),
        ];
        for (objects, expected) in cases {
            assert_eq!(
                members(&snapshot(objects.clone()))[0].is_leaving(),
                expected,
                "{objects:?}"
            );
        }
    }

    #[test]
    fn taints_that_pass_do_not_count_while_a_machine_of_ours_starts_or_reboots() {
        let on_node = json!({ "spec": { "taints": [
            taint("node.kubernetes.io/not-ready", "NoSchedule"), taint(taints::REBOOTING, "NoSchedule"),
            taint("start", "NoExecute"), taint("own", "NoSchedule"),
        ] } });
        let startup =
            json!({ "startupTaints": [taint("start", "NoExecute")], "taints": [taint("asked", "NoSchedule")] });
        let rebooting = json!({ "conditions": [{ "type": "Rebooting", "status": "True" }] });
        let all = vec![
            "node.kubernetes.io/not-ready:NoSchedule",
            "karpenter.sh/rebooting:NoSchedule",
            "start:NoExecute",
            "own:NoSchedule",
        ];
        let ours = |parts| claim(parts);
        let cases = [
            (vec![ours(json!({ "spec": startup }))], vec!["asked:NoSchedule"]),
            (
                vec![ours(json!({ "spec": startup })), node(&[], on_node.clone())],
                vec!["asked:NoSchedule"],
            ),
            (
                vec![
                    ours(json!({ "spec": startup })),
                    node(&[(REGISTERED, "true")], on_node.clone()),
                ],
                vec!["own:NoSchedule"],
            ),
            (
                vec![ours(json!({ "spec": startup })), node(STARTED, on_node.clone())],
                all.clone(),
            ),
            (
                vec![
                    ours(json!({ "spec": startup, "status": rebooting })),
                    node(STARTED, on_node.clone()),
                ],
                vec!["own:NoSchedule"],
            ),
            (vec![node(&[], on_node)], all),
        ];
        for (objects, expected) in cases {
            assert_eq!(taints(objects.clone()), expected, "{objects:?}");
        }
    }

    #[test]
    fn claim_fills_zeros_and_gaps_of_a_node_until_it_is_initialised() {
        let expected_by_claim = json!({ "status": { "allocatable": { "cpu": "4", "gpu": "1", "memory": "8Gi" } } });
        let reported = json!({ "status": { "allocatable": { "cpu": "3", "gpu": "0" } } });
        let cases = [
            (&[][..], r#"{"cpu":"3","gpu":"1","memory":"8Gi"}"#),
            (STARTED, r#"{"cpu":"3","gpu":"0"}"#),
        ];
        for (labels, expected) in cases {
            let snapshot = snapshot(vec![claim(expected_by_claim.clone()), node(labels, reported.clone())]);
            assert_eq!(members(&snapshot)[0].allocatable().to_string(), expected);
        }
        let alone = snapshot(vec![claim(expected_by_claim)]);
        assert_eq!(members(&alone)[0].capacity().to_string(), r#"{"nodes":"1"}"#);
    }
}
