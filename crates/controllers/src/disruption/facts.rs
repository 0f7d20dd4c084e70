//! What does a decision have to know? The cluster as it is, and what is under way.

use std::{collections::BTreeMap, sync::Arc};

use disruption::{Facts, Repair, RepairAction, StaticCount};
use jiff::Timestamp;
use model::{
    object::{Budget, NodeName, NodePool, NodePoolName, ObjectKey},
    snapshot::Snapshot,
};
use state::State;

use super::{
    memory::{Memory, Waiting},
    repair::Policies,
};
use crate::{
    Cluster,
    provisioning::{in_flight, is_managed},
};

/// What a decision is made on.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    /// The cluster as it is.
    pub(super) whole: Snapshot,
    /// The cluster as it is decided on.
    pub(super) snapshot: Snapshot,
    pub(super) facts: Facts,
    /// How many pools are paused.
    pub(super) paused: usize,
    pub(super) now: Timestamp,
}

impl Seen {
    /// The same with the nodes of commands that wait gone, as they will be if these hold.
    pub(super) fn foreseen(mut self, waiting: &[Waiting]) -> Self {
        let commands = waiting.iter().flat_map(|waiting| &waiting.commands);
        for candidate in commands.flat_map(|command| &command.candidates) {
            self.facts.marked.insert(candidate.claim.clone());
            self.facts.queued.insert(candidate.provider_id.clone());
        }
        self
    }

    /// The same with pools that may be disrupted whole.
    pub(super) fn without_budgets(mut self) -> Self {
        let pools = self.snapshot.objects().node_pools.iter().map(|pool| {
            let mut pool = NodePool::clone(pool);
            let whole = Budget {
                nodes: "100%".into(),
                ..Budget::default()
            };
            pool.spec.disruption.budgets = vec![whole].into();
            Arc::new(pool)
        });
        let pools: Vec<_> = pools.collect();
        self.snapshot = self
            .snapshot
            .overlaid(|objects| objects.node_pools = objects.node_pools.with(pools));
        self
    }
}

/// The cluster now. Claims on their way count as machines that are not up yet; pools of somebody else's do not count.
pub(super) fn seen(cluster: &Cluster, memory: &Memory, policies: Option<&Policies>) -> Seen {
    let whole = cluster.snapshot();
    let now = whole.taken_at();
    let (snapshot, paused) = seen_of(&whole, theirs(&whole, cluster), now);
    let mut facts = cluster.note(|state| of_state(state, now));
    facts.marked.extend(memory.going());
    facts.queued = memory.queued();
    facts.expected = memory.expected();
    facts.pool_costs = memory.warm().tracked_costs(&snapshot);
    facts.settled_at = memory.settled_at();
    facts.constrained = memory.constrained();
    facts.rotation = memory.rotation();
    facts.past_moves = memory.past_moves();
    facts.failed_replacements = memory.failures(now);
    if let Some(policies) = policies {
        facts.repair_conditions = policies.conditions();
        facts.repairs = repairs(&snapshot, policies, memory, now);
    }
    Seen {
        whole,
        snapshot,
        facts,
        paused,
        now,
    }
}

/// The pools of somebody else's.
pub(super) fn theirs(snapshot: &Snapshot, cluster: &Cluster) -> Vec<ObjectKey> {
    let pools = snapshot.objects().node_pools.iter();
    pools
        .filter(|pool| !is_managed(pool, cluster))
        .map(|pool| pool.metadata.key())
        .collect()
}

/// The snapshot as a decision sees it, and how many pools are paused.
pub(super) fn seen_of(snapshot: &Snapshot, theirs: Vec<ObjectKey>, now: Timestamp) -> (Snapshot, usize) {
    let snapshot = snapshot.overlaid(|objects| objects.node_pools = objects.node_pools.without(theirs));
    disruption::paused(&in_flight::counted(&snapshot), now)
}

fn of_state(state: &mut State, now: Timestamp) -> Facts {
    Facts {
        marked: state.marked_for_deletion().collect(),
        nominated: state.nominated(now).collect(),
        buffer_pods: state.all_buffer_pods().clone(),
        static_counts: static_counts(state),
        changed_at: Some(state.consolidation_state(now)),
        ..Facts::default()
    }
}

fn static_counts(state: &State) -> BTreeMap<NodePoolName, StaticCount> {
    let pools = state.all::<NodePool>().iter().filter(|pool| pool.is_static());
    let count = |pool: &Arc<NodePool>| {
        let counts = state.node_counts(&pool.name());
        let count = StaticCount {
            active: counts.active as u64,
            deleting: counts.deleting as u64,
            pending_disruption: counts.pending_disruption as u64,
            reserved: counts.reserved as u64,
        };
        (pool.name(), count)
    };
    pools.map(count).collect()
}

/// What mends each broken node. A reboot that did not help twice becomes a replacement.
fn repairs(snapshot: &Snapshot, policies: &Policies, memory: &Memory, now: Timestamp) -> BTreeMap<NodeName, Repair> {
    let mut repairs = BTreeMap::new();
    for node in snapshot.objects().nodes.iter() {
        let Some(claim) = snapshot.claim_of_node(node) else {
            continue;
        };
        let Some(mut repair) = policies.of(node, claim, now) else {
            continue;
        };
        if repair.action == RepairAction::Reboot && memory.is_reboot_futile(&claim.metadata.uid, now) {
            (repair.action, repair.is_escalated) = (RepairAction::Replace, true);
        }
        repairs.insert(NodeName::from(node.metadata.name.clone()), repair);
    }
    repairs
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use cloud::{RepairAction as Action, RepairPolicies, RepairPolicy};
    use jiff::SignedDuration;
    use model::{
        dump::{self, Mode, Source},
        object::{ConditionStatus, Uid},
    };
    use serde_json::json;

    use super::*;

    fn at(hour: i64) -> Timestamp {
        let begin: Timestamp = "2026-11-16T10:00:00Z".parse().unwrap();
        begin + SignedDuration::from_hours(hour)
    }

    /// A cluster with one node that has been broken since ten.
    fn broken() -> Snapshot {
        let objects = json!({"apiVersion": "v1", "kind": "List", "items": [
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "spec": {"providerID": "id"},
                "status": {"conditions": [{"type": "Disk", "status": "False", "lastTransitionTime": "2026-11-16T10:00:00Z"}]}},
            {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": "c", "uid": "u"},
                "spec": {"requirements": []}, "status": {"providerID": "id", "nodeName": "n"}},
        ]});
        let stream = Source::Stream("test".into(), Box::new(Cursor::new(objects.to_string().into_bytes())));
        let options = dump::Options {
            mode: Mode::Strict,
            taken_at: at(0),
        };
        dump::read([stream], options).unwrap().0
    }

    #[test]
    fn a_node_whose_fault_comes_back_after_two_reboots_is_replaced_until_these_are_a_day_ago() {
        let policy = |reason_regex, action| RepairPolicy {
            condition_type: "Disk",
            condition_status: ConditionStatus::False,
            reason_regex,
            toleration: std::time::Duration::ZERO,
            termination_grace_period: None,
            priority: 0,
            action,
        };
        let policies = vec![policy(".*", Action::RebootNode), policy("", Action::ReplaceNode)];
        let policies = Policies::new(RepairPolicies::new(policies).unwrap());
        let (memory, snapshot) = (Memory::default(), broken());
        let found = |hour: i64| {
            let repairs = repairs(&snapshot, &policies, &memory, at(hour));
            let repair = &repairs[&NodeName::from("n")];
            (repair.action, repair.is_escalated)
        };
        let uid = Uid::from("u");
        assert_eq!(found(1), (RepairAction::Reboot, false));
        memory.rebooted(&uid, at(1));
        assert_eq!(found(2), (RepairAction::Reboot, false), "looking is no reboot");
        memory.rebooted(&uid, at(2));
        assert_eq!(found(3), (RepairAction::Replace, true));
        assert_eq!(found(26), (RepairAction::Reboot, false), "both are a day ago");
        let replaced = Policies::new(RepairPolicies::new(vec![policy("", Action::ReplaceNode)]).unwrap());
        let repair = repairs(&snapshot, &replaced, &memory, at(3))
            .remove(&NodeName::from("n"))
            .unwrap();
        assert_eq!(
            (repair.action, repair.is_escalated),
            (RepairAction::Replace, false),
            "it was no reboot anyway"
        );
        let later = "2026-11-16T09:00:00Z".parse().unwrap();
        assert!(
            repairs(&snapshot, &replaced, &memory, later).is_empty(),
            "nothing is due"
        );
    }
}
