//! The nodes that stay, with the room they have left.

use std::{collections::HashMap, sync::Arc};

use api::{
    condition::names::nodeclaim::INITIALIZED,
    duration::NillableDuration,
    labels::{HOSTNAME, INSTANCE_TYPE, NODEPOOL},
};
use model::{
    instance_type::InstanceType,
    object::{ConditionStatus, Labels, NodeClaim, NodePool, Text},
    quantity::Quantity,
    resources::ResourceList,
    snapshot::{Member, Snapshot},
    vocabulary::Vocabulary,
};

use super::{
    StateNode,
    daemon::{Daemons, NodeDaemons},
    pool::Pools,
    requests::Requests,
    usage::Usage,
};
use crate::Options;

/// Makes state nodes.
#[derive(Debug)]
pub(super) struct NodeFactory<'a> {
    snapshot: &'a Snapshot,
    options: &'a Options,
    pools: &'a Pools,
    daemons: NodeDaemons<'a>,
    requests: Requests,
    /// Types by pool and name, once some node asked.
    types: HashMap<(Text, Text), Option<Arc<InstanceType>>>,
}

impl<'a> NodeFactory<'a> {
    pub(super) fn new(
        snapshot: &'a Snapshot,
        options: &'a Options,
        pools: &'a Pools,
        daemons: &'a mut Daemons,
        vocabulary: &'a mut Vocabulary,
    ) -> Self {
        Self {
            snapshot,
            options,
            pools,
            daemons: daemons.on_nodes(vocabulary),
            requests: Requests::default(),
            types: HashMap::new(),
        }
    }

    /// The machines that stay, initialised ones first, then by name.
    pub(super) fn nodes(&mut self, staying: &[Member<'_>]) -> Vec<StateNode> {
        let mut nodes: Vec<_> = staying.iter().map(|member| self.node(*member)).collect();
        nodes.sort_by(|a, b| (!a.is_initialized, &a.name).cmp(&(!b.is_initialized, &b.name)));
        nodes
    }

    fn node(&mut self, member: Member<'_>) -> StateNode {
        let (name, labels, taints) = (member.name(), member.labels(), member.taints());
        let usage = member
            .node
            .map(|node| Usage::of(node, self.snapshot, &mut self.requests));
        let mut usage = usage.unwrap_or_default();
        let offered = self.offered(&labels);
        // Until a driver speaks for itself, the instance type says how many volumes it takes.
        for (driver, limit) in offered.iter().flat_map(|offered| &offered.volume_limits) {
            usage.volumes.limits.expect(Arc::clone(driver), *limit);
        }
        let mut to_come = self.daemons.requests(&labels, &taints);
        to_come.subtract_from(&usage.daemon_requests);
        let available = member.allocatable().subtract(&usage.requests);
        StateNode {
            hostname: hostname(&labels).unwrap_or_else(|| name.clone()),
            remaining: available.subtract(&without_debts(&to_come)),
            ports: usage.ports,
            volumes: usage.volumes,
            is_initialized: member.is_initialized(),
            is_under_consolidate_after: self.options.is_consolidation && self.is_too_young(member.claim, &labels),
            node: member.node.map(Arc::clone),
            claim: member.claim.map(Arc::clone),
            offered,
            name: name.into(),
            labels,
            taints,
        }
    }

    /// Its instance type, if its NodePool takes part and offers it; whether the pool could launch it does not matter.
    fn offered(&mut self, labels: &Labels) -> Option<Arc<InstanceType>> {
        let offer = labels.get(NODEPOOL).and_then(|pool| self.pools.get(pool))?;
        let name = labels.get(INSTANCE_TYPE).filter(|name| !name.is_empty())?;
        self.types
            .entry((offer.pool.metadata.name.clone(), name.clone()))
            .or_insert_with(|| {
                let found = offer.types.iter().find(|ware| ware.entry.name == *name);
                found.map(|ware| Arc::clone(&ware.entry))
            })
            .clone()
    }

    fn is_too_young(&self, claim: Option<&Arc<NodeClaim>>, labels: &Labels) -> bool {
        let offer = labels.get(NODEPOOL).and_then(|pool| self.pools.get(pool));
        offer
            .zip(claim)
            .is_some_and(|(offer, claim)| is_under_consolidate_after(&offer.pool, claim, self.snapshot))
    }
}

fn hostname(labels: &Labels) -> Option<Text> {
    labels.get(HOSTNAME).filter(|name| !name.is_empty()).cloned()
}

/// Daemons that nobody expected on the node do not make room for others.
fn without_debts(requests: &ResourceList) -> ResourceList {
    requests
        .iter()
        .map(|(name, quantity)| (name.clone(), quantity.max(Quantity::ZERO)))
        .collect()
}

/// Whether pods came or went, or the node was initialised, more recently than the pool's `consolidateAfter`.
fn is_under_consolidate_after(pool: &NodePool, claim: &NodeClaim, snapshot: &Snapshot) -> bool {
    let span = pool.spec.disruption.consolidate_after.as_ref();
    let Some(span) = span
        .and_then(NillableDuration::span)
        .filter(|span| span.as_nanos() != 0)
    else {
        return false;
    };
    let initialized = claim
        .condition(INITIALIZED)
        .filter(|condition| condition.status == ConditionStatus::True);
    let Some(initialized) = initialized else { return false };
    let since = claim.status.last_pod_event_time.or(initialized.last_transition_time);
    since.is_some_and(|since| snapshot.taken_at().duration_since(since) < span.to_signed())
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "literals read better by value")]
mod tests {
    use model::volume::Volumes;
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        demand::fixture::{bound, instance_type, node_pool, object, snapshot_with},
        supply::Supply,
    };

    fn supply(objects: Vec<Value>, options: &Options) -> Supply {
        let mut a = instance_type("a", "4", &["z"]);
        a["volumeAttachmentLimits"] = json!({ "expected": 1, "published": 1, "unlimited": 1 });
        Supply::of(&snapshot_with(json!({ "instanceTypes": [a] }), objects), options)
    }

    /// A started node of pool p and type a.
    fn node(name: &str, parts: &Value) -> Value {
        let labels = json!({ NODEPOOL: "p", INSTANCE_TYPE: "a", "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true" });
        let status = json!({ "allocatable": { "cpu": "4", "pods": "10" } });
        let mut node = object(
            "v1",
            "Node",
            "",
            name,
            json!({ "metadata": { "labels": labels }, "spec": { "providerID": name }, "status": status }),
        );
        if let Some(label) = parts["hostname"].as_str() {
            node["metadata"]["labels"][HOSTNAME] = label.into();
        }
        node
    }

    fn claim(name: &str, status: Value) -> Value {
        let mut claim = object(
            "karpenter.sh/v1",
            "NodeClaim",
            "",
            name,
            json!({ "metadata": { "labels": { NODEPOOL: "p" } }, "status": status }),
        );
        claim["status"]["providerID"] = name.into();
        claim
    }

    #[test]
    fn initialised_nodes_come_first_then_names() {
        let objects = vec![
            claim("a", json!({})),
            node("c", &json!({})),
            node("b", &json!({})),
            claim("b-2", json!({})),
        ];
        let supply = supply(objects, &Options::default());
        let names: Vec<_> = supply.nodes.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["b", "c", "a", "b-2"]);
    }

    #[test]
    fn host_name_is_the_label_or_the_name() {
        let objects = vec![
            node("a", &json!({ "hostname": "a.example" })),
            node("b", &json!({ "hostname": "" })),
        ];
        let supply = supply(objects, &Options::default());
        let names: Vec<_> = supply.nodes.iter().map(|node| node.hostname.to_string()).collect();
        assert_eq!(names, ["a.example", "b"]);
    }

    #[test]
    fn bound_pods_that_have_not_ended_take_room() {
        let cpu = |cpu: &str| json!({ "spec": { "containers": [{ "name": "c", "resources": { "requests": { "cpu": cpu, "gpu": "1" } } }] } });
        let mut ended = bound("ended", "n", cpu("1"));
        ended["status"]["phase"] = "Failed".into();
        let objects = vec![
            node("n", &json!({})),
            bound("a", "n", cpu("1")),
            bound("b", "n", cpu("500m")),
            ended,
        ];
        let supply = supply(objects, &Options::default());
        assert_eq!(supply.nodes[0].remaining.to_string(), r#"{"cpu":"2500m","pods":"8"}"#);
    }

    #[test]
    fn leaving_machines_are_no_supply() {
        let deleting = object(
            "karpenter.sh/v1",
            "NodeClaim",
            "",
            "n",
            json!({
            "metadata": { "deletionTimestamp": "2026-11-15T12:00:00Z" }, "status": { "providerID": "n" } }),
        );
        assert!(
            supply(vec![node("n", &json!({})), deleting], &Options::default())
                .nodes
                .is_empty()
        );
    }

    #[test]
    fn type_speaks_for_drivers_that_the_node_has_not_published() {
        let drivers = json!([
            { "name": "published", "nodeID": "n", "allocatable": { "count": 2 } },
            { "name": "unlimited", "nodeID": "n" },
        ]);
        let csi = object(
            "storage.k8s.io/v1",
            "CSINode",
            "",
            "n",
            json!({ "spec": { "drivers": drivers } }),
        );
        let supply = supply(
            vec![node_pool("p", json!({})), node("n", &json!({})), csi],
            &Options::default(),
        );
        let takes = |driver: &str, count: usize| {
            let mut volumes = Volumes::default();
            for claim in 0..count {
                volumes.insert(driver, claim.to_string());
            }
            supply.nodes[0].volumes.check(&volumes).is_ok()
        };
        let cases = [
            ("published", 2, true),
            ("published", 3, false),
            ("unlimited", 9, true),
            ("expected", 1, true),
            ("expected", 2, false),
            ("other", 9, true),
        ];
        for (driver, count, expected) in cases {
            assert_eq!(takes(driver, count), expected, "{count} of {driver}");
        }
    }

    #[test]
    fn node_is_young_while_its_last_change_is_within_consolidate_after() {
        let initialized = |status: &str| json!([{ "type": "Initialized", "status": status, "lastTransitionTime": "2026-11-15T12:00:00Z" }]);
        let started = json!({ "conditions": initialized("True") });
        let busy = json!({ "conditions": initialized("True"), "lastPodEventTime": "2026-11-15T12:09:00Z" });
        let cases = [
            ("5m", &busy, true, true),
            ("5m", &busy, false, false),
            ("5m", &started, true, false),
            ("15m", &started, true, true),
            ("15m", &json!({ "conditions": initialized("False") }), true, false),
            ("0s", &busy, true, false),
            ("Never", &busy, true, false),
        ];
        for (after, status, is_consolidation, expected) in cases {
            let pool = node_pool("p", json!({ "spec": { "disruption": { "consolidateAfter": after } } }));
            let options = Options {
                is_consolidation,
                ..Options::default()
            };
            let supply = supply(vec![pool, node("n", &json!({})), claim("n", status.clone())], &options);
            assert_eq!(
                supply.nodes[0].is_under_consolidate_after, expected,
                "{after} {status} {is_consolidation}"
            );
        }
    }
}
