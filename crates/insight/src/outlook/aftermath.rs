//! The cluster once commands are carried out: their nodes are gone, the replacements are up, and the pods run where the
//! simulation has them.

use std::{collections::BTreeMap, sync::Arc};

use api::{
    condition::names::nodeclaim::{
        CONSOLIDATABLE, INITIALIZED as IS_INITIALIZED, LAUNCHED, REGISTERED as IS_REGISTERED,
    },
    labels::{CAPACITY_TYPE, HOSTNAME, INITIALIZED, INSTANCE_TYPE, NODEPOOL, REGISTERED, ZONE},
};
use disruption::Command;
use jiff::Timestamp;
use model::{
    object::{
        BriefCondition, Condition, ConditionStatus, Labels, Metadata, Node, NodeClaim, NodeClaimStatus, NodeName,
        NodeSpec, NodeStatus, ObjectKey, Pod, ProviderId, Text,
    },
    plan::PlannedClaim,
    snapshot::Snapshot,
    vocabulary::Vocabulary,
};

/// The snapshot after commands; `round` tells the nodes that come from those of other rounds.
pub(super) fn of(snapshot: &Snapshot, commands: &[Command], round: usize) -> Snapshot {
    let now = snapshot.taken_at();
    let gone: Vec<NodeName> = commands
        .iter()
        .filter(|command| !command.is_reboot)
        .flat_map(Command::nodes)
        .cloned()
        .collect();
    let mut places: BTreeMap<ObjectKey, NodeName> = BTreeMap::new();
    let (mut nodes, mut claims) = (Vec::new(), Vec::new());
    for (at, command) in commands.iter().enumerate() {
        for planned in &command.plan.existing {
            for pod in &planned.pods {
                places.insert(pod.metadata.key(), planned.name.clone());
            }
        }
        let planned = command
            .replacements
            .iter()
            .filter_map(|replacement| replacement.planned());
        for (number, claim) in planned.enumerate() {
            let name = format!("{}-planned-{round}-{at}-{number}", claim.node_pool);
            if let Some((node, made)) = launched(snapshot, claim, &name, now) {
                nodes.push(Arc::new(node));
                claims.push(Arc::new(made));
            }
            for pod in &claim.pods {
                places.insert(pod.metadata.key(), NodeName::from(name.as_str()));
            }
        }
    }
    let left_over: Vec<ObjectKey> = gone
        .iter()
        .flat_map(|node| snapshot.pods_on_node(node))
        .map(|pod| pod.metadata.key())
        .filter(|key| !places.contains_key(key))
        .collect();
    let moved: Vec<Arc<Pod>> = places
        .iter()
        .filter_map(|(key, node)| {
            let pod = snapshot.objects().pods.find(&key.namespace, &key.name)?;
            Some(Arc::new(bound(pod, node, now)))
        })
        .collect();
    let disturbed: Vec<Arc<NodeClaim>> = places
        .values()
        .filter_map(|node| snapshot.claim_of_node(snapshot.node(node)?))
        .map(|claim| Arc::new(stirred(claim, now)))
        .collect();
    snapshot
        .overlaid(|objects| objects.node_claims = objects.node_claims.with(disturbed))
        .without_nodes(&gone)
        .overlaid(|objects| {
            objects.nodes = objects.nodes.with(nodes);
            objects.node_claims = objects.node_claims.with(claims);
            objects.pods = objects.pods.without(left_over).with(moved);
        })
}

/// The pod on another node.
fn bound(pod: &Pod, node: &NodeName, now: Timestamp) -> Pod {
    let mut pod = pod.clone();
    pod.node_name = Some(node.clone());
    pod.status.start_time = Some(now);
    let kept = pod.status.conditions.iter();
    let kept = kept.filter(|condition| *condition.kind != *"PodScheduled").cloned();
    pod.status.conditions = kept.collect();
    pod
}

/// The claim of a node to which pods came: it is not quiet.
fn stirred(claim: &NodeClaim, now: Timestamp) -> NodeClaim {
    let mut claim = claim.clone();
    claim.status.last_pod_event_time = Some(now);
    let kept = claim.status.conditions.iter();
    let kept = kept.filter(|condition| *condition.kind != *CONSOLIDATABLE).cloned();
    claim.status.conditions = kept.collect();
    claim
}

/// A node and its claim as they will be once they are up.
fn launched(snapshot: &Snapshot, planned: &PlannedClaim, name: &str, now: Timestamp) -> Option<(Node, NodeClaim)> {
    let launch = planned.cheapest.as_ref()?;
    let entry = snapshot
        .catalog()
        .get_of_pool(&planned.node_pool, &launch.instance_type)?;
    let it = entry.instance_type(&mut Vocabulary::default());
    let pool = snapshot.node_pool(&planned.node_pool)?;
    let mut labels: BTreeMap<Text, Text> = BTreeMap::new();
    for requirement in &entry.requirements {
        if let [only] = &requirement.values[..] {
            labels.insert(requirement.key.as_str().into(), only.as_str().into());
        }
    }
    for (key, value) in &planned.labels {
        labels.insert(key.clone(), value.clone());
    }
    let mut set = |key: &str, value: &str| labels.insert(key.into(), value.into());
    set(INSTANCE_TYPE, launch.instance_type.as_str());
    set(NODEPOOL, planned.node_pool.as_str());
    set(HOSTNAME, name);
    set(REGISTERED, "true");
    set(INITIALIZED, "true");
    if let Some(zone) = &launch.zone {
        set(ZONE, zone);
    }
    if let Some(capacity_type) = &launch.capacity_type {
        set(CAPACITY_TYPE, capacity_type);
    }
    let metadata = Metadata {
        name: name.into(),
        labels: Labels::from_pairs(labels.into_iter().collect()),
        creation_timestamp: Some(now),
        ..Metadata::default()
    };
    let provider_id = Some(ProviderId::from(format!("planned://{name}").as_str()));
    let holds = |kind: &str| Condition {
        kind: kind.into(),
        status: ConditionStatus::True,
        last_transition_time: Some(now),
        ..Condition::default()
    };
    let ready = BriefCondition {
        kind: "Ready".into(),
        status: ConditionStatus::True,
        last_transition_time: Some(now),
        ..BriefCondition::default()
    };
    let taints = &pool.spec.template.spec.taints;
    let node = Node {
        metadata: metadata.clone(),
        spec: NodeSpec {
            provider_id: provider_id.clone(),
            taints: taints.iter().cloned().collect(),
            unschedulable: false,
        },
        status: NodeStatus {
            capacity: it.capacity.clone(),
            allocatable: it.allocatable(),
            conditions: [ready].into_iter().collect(),
            ..NodeStatus::default()
        },
    };
    let claim = NodeClaim {
        metadata,
        status: NodeClaimStatus {
            node_name: Some(NodeName::from(name)),
            provider_id,
            capacity: it.capacity.clone(),
            allocatable: it.allocatable(),
            conditions: [LAUNCHED, IS_REGISTERED, IS_INITIALIZED]
                .map(holds)
                .into_iter()
                .collect(),
            last_pod_event_time: Some(now),
            ..NodeClaimStatus::default()
        },
        ..NodeClaim::default()
    };
    Some((node, claim))
}
