//! Which nodes and claims belong together, and which of the two speaks for the machine while it starts.

use std::{collections::BTreeMap, sync::Arc};

use api::{
    condition::names::nodeclaim::{INSTANCE_TERMINATING, REBOOTING},
    labels::{INITIALIZED, INSTANCE_TYPE, NODEPOOL, REGISTERED},
    taints,
};
use model::{
    object::{ConditionStatus, Labels, Metadata, Node, NodeClaim, Taint, Text},
    quantity::Quantity,
    resources::{ResourceList, ResourceName},
    snapshot::Snapshot,
    taint::TaintView,
};

use crate::demand::volume::Storage;

const REBOOT_FENCE: TaintView<'static> = TaintView {
    key: taints::REBOOTING,
    value: "",
    effect: "NoSchedule",
};

/// A machine of the cluster: its node, its claim, or both.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Member<'a> {
    pub(crate) node: Option<&'a Arc<Node>>,
    pub(crate) claim: Option<&'a Arc<NodeClaim>>,
}

/// The machines of a snapshot: claims that were launched and nodes, joined by provider ID.
pub(crate) fn members(snapshot: &Snapshot) -> Vec<Member<'_>> {
    let mut members = BTreeMap::<&str, Member<'_>>::new();
    for claim in snapshot.objects().node_claims.iter() {
        if let Some(id) = &claim.status.provider_id {
            members.entry(id.as_str()).or_default().claim = Some(claim);
        }
    }
    for node in snapshot.objects().nodes.iter() {
        if let Some(id) = provider_id(node).filter(|_| is_usage_known(node, snapshot)) {
            members.entry(id).or_default().node = Some(node);
        }
    }
    members.into_values().collect()
}

/// A node of ours counts once it has its provider ID and, before it is initialised, its instance type; others always do.
fn provider_id(node: &Node) -> Option<&str> {
    let labels = &node.metadata.labels;
    let is_set = |key| labels.get(key).is_some_and(|value: &Text| !value.is_empty());
    let is_ours = is_set(NODEPOOL);
    if is_ours && !is_set(INSTANCE_TYPE) && !is_set(INITIALIZED) {
        return None;
    }
    match &node.spec.provider_id {
        Some(id) => Some(id.as_str()),
        None => (!is_ours).then_some(&node.metadata.name),
    }
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

impl<'a> Member<'a> {
    /// The node's name, or the claim's until the node has registered.
    pub(crate) fn name(self) -> Text {
        self.metadata()
            .map(|metadata| metadata.name.clone())
            .unwrap_or_default()
    }

    /// The labels pods see.
    pub(crate) fn labels(self) -> Labels {
        self.metadata()
            .map(|metadata| metadata.labels.clone())
            .unwrap_or_default()
    }

    /// Whether all parts of the machine are up; a node of somebody else's always is.
    pub(crate) fn is_initialized(self) -> bool {
        self.claim.is_none() || self.node_says(INITIALIZED)
    }

    /// Whether the machine goes away: its claim is being deleted or terminated, or the node of nobody's claim is.
    pub(crate) fn is_leaving(self) -> bool {
        match (self.claim, self.node) {
            (Some(claim), _) => claim.metadata.is_deleting() || holds(claim, INSTANCE_TERMINATING),
            (None, node) => node.is_some_and(|node| node.metadata.is_deleting()),
        }
    }

    /// The taints pods must tolerate. While a machine of ours starts or reboots, those that will pass do not count.
    pub(crate) fn taints(self) -> Vec<Taint> {
        let taints = match (self.registered_node(), self.claim) {
            (Some(node), _) => &node.spec.taints[..],
            (None, claim) => claim.map_or(&[][..], |claim| &claim.spec.taints),
        };
        let starting = self
            .claim
            .filter(|claim| !self.is_initialized() || holds(claim, REBOOTING));
        let passes = |taint: &Taint| starting.is_some_and(|claim| is_passing(taint.view(), claim));
        taints.iter().filter(|taint| !passes(taint)).cloned().collect()
    }

    /// All the machine has, itself included.
    pub(crate) fn capacity(self) -> ResourceList {
        let mut capacity = self.reported(|node| &node.status.capacity, |claim| &claim.status.capacity);
        capacity.set(ResourceName::Nodes, Quantity::from_units(1));
        capacity
    }

    /// What of it is for pods.
    pub(crate) fn allocatable(self) -> ResourceList {
        self.reported(|node| &node.status.allocatable, |claim| &claim.status.allocatable)
    }

    /// What the node reports; until it is initialised, what the claim expects stands for zeros and gaps.
    fn reported(
        self,
        of_node: impl Fn(&'a Node) -> &'a ResourceList,
        of_claim: impl Fn(&'a NodeClaim) -> &'a ResourceList,
    ) -> ResourceList {
        let mut reported = self.node.map(|node| of_node(node)).cloned().unwrap_or_default();
        let expected = self.claim.filter(|_| !self.is_initialized());
        for (name, quantity) in expected
            .map(|claim| of_claim(claim))
            .into_iter()
            .flat_map(ResourceList::iter)
        {
            if reported.amount(name.as_str()).is_zero() {
                reported.set(name.clone(), quantity);
            }
        }
        reported
    }

    /// The claim speaks for the machine until the node has registered.
    fn metadata(self) -> Option<&'a Metadata> {
        let claim = self.claim.map(|claim| &claim.metadata);
        self.registered_node().map(|node| &node.metadata).or(claim)
    }

    fn registered_node(self) -> Option<&'a Arc<Node>> {
        self.node.filter(|_| self.claim.is_none() || self.node_says(REGISTERED))
    }

    fn node_says(self, label: &str) -> bool {
        let value = self.node.and_then(|node| node.metadata.labels.get(label));
        value.is_some_and(|value| **value == *"true")
    }
}

fn holds(claim: &NodeClaim, condition: &str) -> bool {
    let condition = claim.condition(condition);
    condition.is_some_and(|condition| condition.status == ConditionStatus::True)
}

fn is_passing(taint: TaintView<'_>, claim: &NodeClaim) -> bool {
    let mut startup = claim.spec.startup_taints.iter();
    taint.is_known_ephemeral() || taint.matches(REBOOT_FENCE) || startup.any(|startup| startup.view().matches(taint))
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "literals read better by value")]
mod tests {
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
