//! Which nodes are broken, for how long, and what would mend them: the provider's repair policies held against nodes.

use std::collections::{BTreeMap, BTreeSet};

use api::condition::names::nodeclaim::REBOOTING;
use cloud::{RepairAction, RepairPolicies, RepairPolicy};
use disruption::Repair;
use jiff::{SignedDuration, Timestamp};
use model::object::{BriefCondition, ConditionStatus, Node, NodeClaim, Text, Uid};

/// One rank of priority is worth this much waiting.
const RANK: SignedDuration = SignedDuration::from_mins(30);
/// A claim that was rebooted so often,
const REBOOTS: usize = 2;
/// within this time, is replaced.
const WINDOW: SignedDuration = SignedDuration::from_hours(24);

/// The policies, with their priorities as ranks.
#[derive(Debug)]
pub(crate) struct Policies {
    policies: RepairPolicies,
    ranks: BTreeMap<u8, i32>,
}

/// A condition that falls under a policy, and since when it is due.
struct Match<'a> {
    policy: &'a RepairPolicy,
    condition: &'a BriefCondition,
    due: Timestamp,
}

impl Policies {
    pub(crate) fn new(policies: RepairPolicies) -> Self {
        let priorities: BTreeSet<u8> = policies.all().map(|policy| policy.priority).collect();
        let ranks = priorities.into_iter().zip(0..).collect();
        Self { policies, ranks }
    }

    /// The conditions that some policy is about.
    pub(super) fn conditions(&self) -> BTreeSet<(Text, ConditionStatus)> {
        let about = |policy: &RepairPolicy| (Text::from(policy.condition_type), policy.condition_status);
        self.policies.all().map(about).collect()
    }

    /// What mends a node now; none while it needs nothing, or its trouble is still borne.
    pub(super) fn of(&self, node: &Node, claim: &NodeClaim, now: Timestamp) -> Option<Repair> {
        let due: Vec<Match<'_>> = self.matches(node, claim).filter(|found| found.due <= now).collect();
        let decides = due.iter().reduce(|best, other| {
            let key = |found: &Match<'_>| (found.policy.action, found.policy.priority);
            let goes_first =
                |one: &Match<'_>, two: &Match<'_>| (one.due, &one.condition.kind) < (two.due, &two.condition.kind);
            if key(other) > key(best) || key(other) == key(best) && goes_first(other, best) {
                other
            } else {
                best
            }
        })?;
        let bounds = due.iter().filter_map(|found| found.policy.termination_grace_period);
        let urgencies = due
            .iter()
            .map(|found| self.rank(found.policy) + now.duration_since(found.due));
        Some(Repair {
            action: match decides.policy.action {
                RepairAction::RebootNode => disruption::RepairAction::Reboot,
                RepairAction::ReplaceNode => disruption::RepairAction::Replace,
            },
            is_escalated: false,
            condition: decides.condition.kind.clone(),
            status: decides.condition.status,
            reason: decides.condition.reason.clone(),
            drain_bound: bounds.min().and_then(|bound| SignedDuration::try_from(bound).ok()),
            urgency: urgencies.max().unwrap_or_default(),
        })
    }

    fn rank(&self, policy: &RepairPolicy) -> SignedDuration {
        RANK * self.ranks.get(&policy.priority).copied().unwrap_or(0)
    }

    fn matches<'a>(&'a self, node: &'a Node, claim: &NodeClaim) -> impl Iterator<Item = Match<'a>> {
        let created = node.metadata.creation_timestamp;
        let not_before = reboot_ended(claim);
        node.status.conditions.iter().flat_map(move |condition| {
            let since = condition.last_transition_time.max(created).unwrap_or(Timestamp::MIN);
            let policies = self.policies.of(&condition.kind, condition.status, &condition.reason);
            policies.into_iter().map(move |policy| {
                let toleration = SignedDuration::try_from(policy.toleration).unwrap_or(SignedDuration::MAX);
                let since = not_before.map_or(since, |ended| since.max(ended));
                Match {
                    policy,
                    condition,
                    due: since.saturating_add(toleration).unwrap_or(Timestamp::MAX),
                }
            })
        })
    }
}

/// When the last reboot ended, well or not: what it left is borne from then on.
fn reboot_ended(claim: &NodeClaim) -> Option<Timestamp> {
    let reboot = claim.condition(REBOOTING)?;
    reboot
        .last_transition_time
        .filter(|_| reboot.status == ConditionStatus::False)
}

/// When claims were rebooted.
#[derive(Debug, Default)]
pub(super) struct RebootHistory(BTreeMap<Uid, Vec<Timestamp>>);

impl RebootHistory {
    pub(super) fn record(&mut self, claim: &Uid, now: Timestamp) {
        for times in self.0.values_mut() {
            times.retain(|at| now.duration_since(*at) < WINDOW);
        }
        self.0.retain(|_, times| !times.is_empty());
        self.0.entry(claim.clone()).or_default().push(now);
    }

    pub(super) fn is_futile(&self, claim: &Uid, now: Timestamp) -> bool {
        let recent = self.0.get(claim).into_iter().flatten();
        recent.filter(|at| now.duration_since(**at) < WINDOW).count() >= REBOOTS
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    fn policy(reason_regex: &'static str, minutes: u64, action: RepairAction) -> RepairPolicy {
        RepairPolicy {
            condition_type: "Accelerator",
            condition_status: ConditionStatus::False,
            reason_regex,
            toleration: Duration::from_mins(minutes),
            termination_grace_period: None,
            priority: 0,
            action,
        }
    }

    /// Upstream's worked example.
    fn policies() -> Policies {
        let policies = vec![
            policy("XID(48|63)", 10, RepairAction::RebootNode),
            policy("48Error$", 30, RepairAction::ReplaceNode),
            policy("", 0, RepairAction::ReplaceNode),
        ];
        Policies::new(RepairPolicies::new(policies).unwrap())
    }

    fn node(reason: &str) -> Node {
        serde_json::from_value(json!({
            "metadata": {"name": "n", "creationTimestamp": "2026-11-16T09:00:00Z"},
            "status": {"conditions": [{"type": "Accelerator", "status": "False", "reason": reason,
                "lastTransitionTime": "2026-11-16T10:00:00Z"}]},
        }))
        .unwrap()
    }

    fn at(minute: i64) -> Timestamp {
        let begin: Timestamp = "2026-11-16T10:00:00Z".parse().unwrap();
        begin + SignedDuration::from_mins(minute)
    }

    #[test]
    fn a_condition_is_borne_and_then_mended_by_the_most_disruptive_policy_that_is_due() {
        use disruption::RepairAction::{Reboot, Replace};
        let found = |minute| {
            let repair = policies().of(&node("NvidiaXID48Error"), &NodeClaim::default(), at(minute));
            repair.map(|repair| (repair.action, repair.urgency.as_mins()))
        };
        assert_eq!(found(5), None);
        assert_eq!(found(15), Some((Reboot, 5)));
        assert_eq!(found(35), Some((Replace, 25)));
    }

    #[test]
    fn what_no_policy_names_falls_back() {
        let repair = policies().of(&node("Else"), &NodeClaim::default(), at(0)).unwrap();
        assert_eq!(repair.action, disruption::RepairAction::Replace);
        assert_eq!((&*repair.condition, &*repair.reason), ("Accelerator", "Else"));
    }

    #[test]
    fn toleration_begins_anew_when_a_reboot_ends() {
        let claim: NodeClaim = serde_json::from_value(json!({"status": {"conditions": [
            {"type": "Rebooting", "status": "False", "lastTransitionTime": "2026-11-16T10:20:00Z"},
        ]}}))
        .unwrap();
        let node = node("NvidiaXID63");
        assert_eq!(policies().of(&node, &claim, at(29)), None);
        assert!(policies().of(&node, &claim, at(30)).is_some());
    }

    #[test]
    fn two_reboots_within_a_day_are_enough() {
        let mut history = RebootHistory::default();
        let claim = Uid::from("u");
        history.record(&claim, at(0));
        assert!(!history.is_futile(&claim, at(1)));
        history.record(&claim, at(60));
        assert!(history.is_futile(&claim, at(61)));
        assert!(!history.is_futile(&Uid::from("v"), at(61)));
        assert!(!history.is_futile(&claim, at(24 * 60)));
    }

    fn ranked(reason_regex: &'static str, minutes: u64, priority: u8, action: RepairAction) -> RepairPolicy {
        RepairPolicy {
            priority,
            ..policy(reason_regex, minutes, action)
        }
    }

    fn of(policies: Vec<RepairPolicy>, node: &Node, minute: i64) -> Option<Repair> {
        let policies = Policies::new(RepairPolicies::new(policies).unwrap());
        policies.of(node, &NodeClaim::default(), at(minute))
    }

    #[test]
    fn a_rank_of_priority_is_worth_half_an_hour_and_only_what_matches_and_is_due_counts() {
        use RepairAction::ReplaceNode;
        let set = || {
            vec![
                ranked("", 0, 0, ReplaceNode),
                ranked("Urgent", 10, 50, ReplaceNode),
                ranked("Late", 40, 100, ReplaceNode),
            ]
        };
        let urgency = |reason: &str, minute| of(set(), &node(reason), minute).map(|repair| repair.urgency.as_mins());
        assert_eq!(urgency("Else", 20), Some(20), "the fallback has the lowest rank");
        assert_eq!(
            urgency("Urgent", 20),
            Some(30 + 10),
            "its own rank, and the wait since it was due"
        );
        assert_eq!(
            urgency("UrgentAndLate", 20),
            Some(30 + 10),
            "what is not due does not count"
        );
        assert_eq!(urgency("UrgentAndLate", 45), Some(60 + 5));
        assert_eq!(urgency("Late", 20), None, "nor does the fallback while its own waits");
    }

    #[test]
    fn the_most_urgent_condition_orders_a_node_and_the_one_of_highest_priority_is_acted_on() {
        let two: Node = serde_json::from_value(json!({
            "metadata": {"name": "n", "creationTimestamp": "2026-11-16T09:00:00Z"},
            "status": {"conditions": [
                {"type": "Accelerator", "status": "False", "reason": "Urgent", "lastTransitionTime": "2026-11-16T10:00:00Z"},
                {"type": "Disk", "status": "False", "reason": "Old", "lastTransitionTime": "2026-11-16T09:00:00Z"},
            ]},
        }))
        .unwrap();
        let disk = RepairPolicy {
            condition_type: "Disk",
            ..ranked("Old", 0, 0, RepairAction::ReplaceNode)
        };
        let bounded = RepairPolicy {
            termination_grace_period: Some(Duration::from_mins(3)),
            ..disk
        };
        let urgent = ranked("Urgent", 0, 50, RepairAction::ReplaceNode);
        let repair = of(
            vec![bounded, urgent, ranked("", 0, 0, RepairAction::ReplaceNode)],
            &two,
            5,
        )
        .unwrap();
        assert_eq!((&*repair.condition, &*repair.reason), ("Accelerator", "Urgent"));
        assert_eq!(
            repair.urgency.as_mins(),
            65,
            "the older one has waited longer than a rank is worth"
        );
        assert_eq!(
            repair.drain_bound,
            Some(SignedDuration::from_mins(3)),
            "the shortest of all"
        );
    }

    #[test]
    fn a_reason_that_changes_does_not_begin_the_wait_anew_and_a_condition_nobody_names_is_borne_for_ever() {
        let replaces = |reason: &str| of(vec![policy("", 30, RepairAction::ReplaceNode)], &node(reason), 30);
        assert!(replaces("One").is_some() && replaces("Another").is_some());
        let mut other = policy("", 0, RepairAction::ReplaceNode);
        other.condition_type = "Disk";
        assert_eq!(of(vec![other], &node("One"), 1000), None);
    }
}
