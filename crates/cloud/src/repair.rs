//! When a node counts as broken, and what is done about it.

use std::{fmt, time::Duration};

use model::object::ConditionStatus;
use regex::Regex;

/// What mends a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RepairAction {
    /// It is rebooted.
    RebootNode,
    /// Another node takes its place. The more disruptive of the two, so the greater.
    ReplaceNode,
}

/// A condition of a node that calls for repair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairPolicy {
    /// The node condition.
    pub condition_type: &'static str,
    /// Its status that is bad.
    pub condition_status: ConditionStatus,
    /// Its reasons that are meant; empty for the one fallback of the set, `.*` for any.
    pub reason_regex: &'static str,
    /// For how long that is borne.
    pub toleration: Duration,
    /// Bound of the drain: none respects budgets and protections, zero does not drain.
    pub termination_grace_period: Option<Duration>,
    /// Which goes first, 0 to 100.
    pub priority: u8,
    /// What is done.
    pub action: RepairAction,
}

/// The most a priority may be.
const HIGHEST_PRIORITY: u8 = 100;

impl fmt::Display for RepairPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            condition_type,
            condition_status,
            reason_regex,
            toleration,
            termination_grace_period,
            priority,
            action,
        } = self;
        write!(
            f,
            "{{ConditionType:{condition_type} ConditionStatus:{condition_status:?} ReasonRegex:{reason_regex} \
             TolerationDuration:{toleration:?} TerminationGracePeriod:"
        )?;
        match termination_grace_period {
            Some(bound) => write!(f, "{bound:?}")?,
            None => f.write_str("<nil>")?,
        }
        write!(f, " Priority:{priority} Action:{action:?}}}")
    }
}

/// A provider's policies, found to be in order.
#[derive(Debug, Clone)]
pub struct RepairPolicies {
    policies: Vec<(RepairPolicy, Option<Regex>)>,
}

/// Everything that is wrong with a set of policies. The words are upstream's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRepairPolicies {
    /// There is none.
    #[error("node repair requires the cloud provider to define RepairPolicies, but it defines none")]
    None,
    /// There are, but they are wrong.
    #[error("node repair requires valid RepairPolicies, {}", .0.join("; "))]
    Faults(Vec<String>),
}

impl RepairPolicies {
    /// Checks a provider's policies: all that is wrong with them is said at once.
    pub fn new(policies: Vec<RepairPolicy>) -> Result<Self, InvalidRepairPolicies> {
        if policies.is_empty() {
            return Err(InvalidRepairPolicies::None);
        }
        let mut faults = Vec::new();
        let mut compiled = Vec::new();
        for (at, policy) in policies.into_iter().enumerate() {
            faults.extend(faults_of(at, &policy));
            let regex = match policy.reason_regex {
                "" => None,
                pattern => Regex::new(pattern)
                    .map_err(|error| faults.push(fault(at, &policy, &format!("invalid reason regex, {error}"))))
                    .ok(),
            };
            compiled.push((policy, regex));
        }
        faults.extend(fallback_faults(&compiled));
        if faults.is_empty() {
            Ok(Self { policies: compiled })
        } else {
            Err(InvalidRepairPolicies::Faults(faults))
        }
    }

    /// Whether a condition is one that some policy is about, however short it has lasted.
    pub fn cover(&self, condition_type: &str, status: ConditionStatus) -> bool {
        self.all().any(|policy| policy.is_about(condition_type, status))
    }

    /// The policies that a condition falls under: those about its reason, or else, if it is covered at all, the fallback.
    pub fn of(&self, condition_type: &str, status: ConditionStatus, reason: &str) -> Vec<&RepairPolicy> {
        if !self.cover(condition_type, status) {
            return Vec::new();
        }
        let about = |(policy, regex): &&(RepairPolicy, Option<Regex>)| {
            policy.is_about(condition_type, status) && regex.as_ref().is_some_and(|regex| regex.is_match(reason))
        };
        let specific: Vec<_> = self.policies.iter().filter(about).map(|(policy, _)| policy).collect();
        if specific.is_empty() {
            self.all().filter(|policy| policy.is_fallback()).collect()
        } else {
            specific
        }
    }

    /// The policies that are about a condition by themselves: one without an expression is about any reason of its own
    /// condition, and of no other.
    pub fn about(
        &self,
        condition_type: &str,
        status: ConditionStatus,
        reason: &str,
    ) -> impl Iterator<Item = &RepairPolicy> {
        let policies = self.policies.iter().filter(move |(policy, regex)| {
            policy.is_about(condition_type, status) && regex.as_ref().is_none_or(|regex| regex.is_match(reason))
        });
        policies.map(|(policy, _)| policy)
    }

    /// All of them, in the provider's order.
    pub fn all(&self) -> impl Iterator<Item = &RepairPolicy> {
        self.policies.iter().map(|(policy, _)| policy)
    }
}

impl RepairPolicy {
    /// Whether it is the one for conditions whose reason no other policy is about.
    pub fn is_fallback(&self) -> bool {
        self.reason_regex.is_empty()
    }

    fn is_about(&self, condition_type: &str, status: ConditionStatus) -> bool {
        self.condition_type == condition_type && self.condition_status == status
    }
}

fn faults_of(at: usize, policy: &RepairPolicy) -> Vec<String> {
    let mut faults = Vec::new();
    if policy.condition_type.is_empty() {
        faults.push(fault(at, policy, "an empty condition type"));
    }
    if policy.priority > HIGHEST_PRIORITY {
        let problem = format!(
            "priority {} outside the supported range [0, {HIGHEST_PRIORITY}]",
            policy.priority
        );
        faults.push(fault(at, policy, &problem));
    }
    faults
}

fn fault(at: usize, policy: &RepairPolicy, has: &str) -> String {
    format!(
        "validating repair policy for condition status \"{:?}\", policy[{at}]={policy} has {has} (condition={})",
        policy.condition_status, policy.condition_type
    )
}

fn fallback_faults(policies: &[(RepairPolicy, Option<Regex>)]) -> Vec<String> {
    let mut fallbacks = policies.iter().map(|(policy, _)| policy).filter(|it| it.is_fallback());
    let Some(first) = fallbacks.next() else {
        return vec!["repair policy set must define one default fallback".to_owned()];
    };
    let mut faults: Vec<_> = fallbacks
        .map(|other| format!("repair policy set has multiple default fallbacks: {first} and {other}"))
        .collect();
    if first.action != RepairAction::ReplaceNode {
        faults.push(format!(
            "default fallback policy {first} must use action \"ReplaceNode\""
        ));
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(condition_type: &'static str, reason_regex: &'static str, action: RepairAction) -> RepairPolicy {
        RepairPolicy {
            condition_type,
            condition_status: ConditionStatus::False,
            reason_regex,
            toleration: Duration::from_mins(10),
            termination_grace_period: None,
            priority: 0,
            action,
        }
    }

    #[test]
    fn everything_wrong_with_a_set_is_said_at_once() {
        let broken = vec![
            RepairPolicy {
                priority: 101,
                ..policy("", "(", RepairAction::ReplaceNode)
            },
            policy("Ready", "", RepairAction::RebootNode),
            policy("Disk", "", RepairAction::ReplaceNode),
        ];
        let InvalidRepairPolicies::Faults(faults) = RepairPolicies::new(broken).unwrap_err() else {
            panic!("the set is not empty");
        };
        let words = [
            "has an empty condition type (condition=)",
            "has priority 101 outside the supported range [0, 100]",
            "has invalid reason regex, ",
            "repair policy set has multiple default fallbacks: {ConditionType:Ready",
            "Action:RebootNode} must use action \"ReplaceNode\"",
        ];
        assert_eq!(faults.len(), words.len(), "{faults:?}");
        for (fault, words) in faults.iter().zip(words) {
            assert!(fault.contains(words), "{fault}");
        }
    }

    #[test]
    fn a_set_needs_a_fallback_and_at_least_one_policy() {
        let without = vec![policy("Ready", ".*", RepairAction::ReplaceNode)];
        let cases = [
            (
                without,
                "node repair requires valid RepairPolicies, repair policy set must define one default fallback",
            ),
            (
                vec![],
                "node repair requires the cloud provider to define RepairPolicies, but it defines none",
            ),
        ];
        for (policies, words) in cases {
            assert_eq!(RepairPolicies::new(policies).unwrap_err().to_string(), words);
        }
    }

    #[test]
    fn a_reason_that_no_policy_names_falls_back_if_the_condition_is_covered() {
        let policies = RepairPolicies::new(vec![
            policy("Ready", "", RepairAction::ReplaceNode),
            policy("Disk", "Full|Slow", RepairAction::RebootNode),
        ])
        .unwrap();
        let of = |kind, status, reason| {
            let found = policies.of(kind, status, reason);
            found.iter().map(|policy| policy.condition_type).collect::<Vec<_>>()
        };
        let no = ConditionStatus::False;
        assert_eq!(of("Disk", no, "VeryFull"), ["Disk"]);
        assert_eq!(of("Disk", no, "Lost"), ["Ready"]);
        assert_eq!(of("Ready", no, "KubeletDown"), ["Ready"]);
        assert_eq!(of("Disk", ConditionStatus::True, "VeryFull"), [""; 0]);
        assert_eq!(of("Network", no, "VeryFull"), [""; 0]);
    }
}
