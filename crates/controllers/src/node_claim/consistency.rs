//! Is the machine what was asked for? Every ten minutes a claim's node is held against the claim.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use api::condition::names::nodeclaim;
use async_trait::async_trait;
use jiff::Timestamp;
use model::{
    object::{Node, NodeClaim, ObjectKey, Text, condition},
    quantity::Quantity,
};
use runtime::{Event, EventKind, Settings};
use state::{Change, State};

use super::{
    Managed, changed_claim,
    ownership::{Joined, claims_of_node},
};
use crate::{Cluster, Controller, Next, Problem, conditions, patch::Lock};

/// How often a claim is looked at.
const PERIOD: Duration = Duration::from_mins(10);
/// Less than this part of what was expected is an issue, in thousandths.
const ENOUGH: i128 = 900;

/// `nodeclaim.consistency`
pub struct Consistency {
    managed: Managed,
    /// When each claim, by name and identity, was looked at last.
    scanned: Mutex<BTreeMap<Text, (model::object::Uid, Timestamp)>>,
}

impl Consistency {
    /// For the claims that are ours.
    pub fn new(managed: Managed) -> Self {
        Self {
            managed,
            scanned: Mutex::default(),
        }
    }

    /// How long to wait until a claim is due; none when it is, which counts as looked at.
    fn wait(&self, claim: &NodeClaim, now: Timestamp) -> Option<Duration> {
        let (name, uid) = (&claim.metadata.name, &claim.metadata.uid);
        let mut scanned = self.scanned.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, last)) = scanned.get(name).filter(|(known, _)| known == uid) {
            let since = Duration::try_from(now.duration_since(*last)).unwrap_or_default();
            if let Some(left) = PERIOD.checked_sub(since).filter(|left| !left.is_zero()) {
                return Some(left);
            }
        }
        scanned.insert(name.clone(), (uid.clone(), now));
        None
    }

    fn forget(&self, name: &Text) {
        self.scanned.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
    }
}

/// Until the life cycle has written that the node is registered it is about to write, and would be in our way.
fn is_registered(claim: &NodeClaim) -> bool {
    condition::holds(&claim.status.conditions, nodeclaim::REGISTERED)
}

/// What of the node falls short of the claim. Only for claims that are initialised and stay.
fn issues(claim: &NodeClaim, node: &Node) -> Vec<String> {
    let is_initialized = condition::holds(&claim.status.conditions, nodeclaim::INITIALIZED);
    if claim.metadata.is_deleting() || !is_initialized {
        return Vec::new();
    }
    let requests = claim
        .spec
        .resources
        .requests
        .iter()
        .filter(|(_, requested)| !requested.is_zero());
    requests
        .filter_map(|(name, _)| {
            let expected = claim.status.capacity.amount(name.as_str());
            shortfall(name.as_str(), expected, node.status.capacity.amount(name.as_str()))
        })
        .collect()
}

fn shortfall(name: &str, expected: Quantity, found: Quantity) -> Option<String> {
    if expected.is_zero() || found.nanos() * 1000 >= expected.nanos() * ENOUGH {
        return None;
    }
    let tenths = (found.nanos() * 2000 + expected.nanos()).div_euclid(expected.nanos() * 2);
    let percent = format!("{}.{}", tenths / 10, tenths % 10);
    Some(format!(
        "expected {expected} of resource {name}, but found {found} ({percent}% of expected)"
    ))
}

/// The claim as the issues make it.
fn judged(claim: &NodeClaim, has_issues: bool, now: Timestamp) -> NodeClaim {
    let kind = nodeclaim::CONSISTENT_STATE_FOUND;
    let mut after = claim.clone();
    let was_consistent = condition::holds(&claim.status.conditions, kind);
    if has_issues || !was_consistent {
        let (metadata, list) = (&claim.metadata, &mut after.status.conditions);
        conditions::change(nodeclaim::TYPES, metadata, list, now, |set| {
            if has_issues {
                set.set_false(kind, nodeclaim::CONSISTENCY_CHECK_FAILED, "Consistency Check Failed");
            } else {
                set.set_true(kind);
            }
        });
    }
    after
}

fn failed(claim: &NodeClaim, issue: &str) -> Event {
    let event = Event::new(claim, EventKind::Warning, "FailedConsistencyCheck", issue.to_owned());
    event.deduped_by(vec![claim.metadata.uid.to_string(), issue.to_owned()])
}

#[async_trait]
impl Controller for Consistency {
    type Key = Text;

    fn name(&self) -> &'static str {
        "nodeclaim.consistency"
    }

    fn workers(&self, settings: &Settings) -> usize {
        settings.workers(10, 1000)
    }

    fn concerns(&self, change: &Change, state: &State) -> Vec<Text> {
        match change {
            Change::Node(node) => claims_of_node(node, state)
                .iter()
                .map(|claim| claim.metadata.name.clone())
                .collect(),
            _ => changed_claim(change, self.managed),
        }
    }

    async fn reconcile(&self, cluster: &Cluster, name: &Text) -> Result<Next, Problem> {
        let Some(claim) = cluster.get::<NodeClaim>(&ObjectKey::cluster_scoped(name)) else {
            self.forget(name);
            return Ok(Next::Change);
        };
        if !self.managed.claim(&claim) || !is_registered(&claim) {
            return Ok(Next::Change);
        }
        let now = cluster.now();
        if let Some(left) = self.wait(&claim, now) {
            return Ok(Next::After(left));
        }
        let Some(node) = cluster.look(|state| Joined::of(&claim, state)).one() else {
            return Ok(Next::Change);
        };
        let issues = issues(&claim, &node);
        for issue in &issues {
            tracing::info!("NodeClaim.name" = %name, issue, "failed consistency check");
            cluster.publish(failed(&claim, issue));
        }
        let after = judged(&claim, !issues.is_empty(), now);
        match cluster.update_status(&*claim, &after, Lock::Version).await {
            Err(error) if error.is_conflict() => {
                self.forget(name);
                Ok(Next::Again)
            }
            Err(error) if !error.is_not_found() => Err(error.into()),
            _ => Ok(Next::After(PERIOD)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn claim(initialized: &str) -> NodeClaim {
        serde_json::from_value(json!({
            "metadata": {"name": "a", "uid": "u", "generation": 1},
            "spec": {"resources": {"requests": {"cpu": "1", "memory": "1Gi", "pods": "0", "gpu": "1"}}},
            "status": {
                "capacity": {"cpu": "4", "memory": "16Gi", "pods": "110"},
                "conditions": [{"type": "Initialized", "status": initialized}],
            },
        }))
        .unwrap()
    }

    fn node(cpu: &str, memory: &str) -> Node {
        serde_json::from_value(json!({"status": {"capacity": {"cpu": cpu, "memory": memory}}})).unwrap()
    }

    #[test]
    fn less_than_nine_tenths_of_a_requested_resource_is_an_issue() {
        let short = "expected 16Gi of resource memory, but found 14Gi (87.5% of expected)".to_owned();
        let none = "expected 4 of resource cpu, but found 0 (0.0% of expected)".to_owned();
        let cases = [
            (claim("True"), node("4", "16Gi"), vec![]),
            (claim("True"), node("3600m", "16Gi"), vec![]),
            (claim("True"), node("4", "14Gi"), vec![short]),
            (claim("True"), node("0", "16Gi"), vec![none]),
            (claim("Unknown"), node("0", "0"), vec![]),
        ];
        for (claim, node, expected) in cases {
            assert_eq!(issues(&claim, &node), expected, "{node:?}");
        }
        let mut leaving = claim("True");
        leaving.metadata.deletion_timestamp = Some(Timestamp::UNIX_EPOCH);
        assert_eq!(issues(&leaving, &node("0", "0")), Vec::<String>::new());
    }

    #[test]
    fn the_condition_is_true_from_the_start_and_false_with_an_issue() {
        let now = "2026-11-16T10:00:00Z".parse().unwrap();
        let shown = |claim: &NodeClaim| {
            let condition = claim.condition("ConsistentStateFound").unwrap();
            (
                format!("{:?}", condition.status),
                condition.reason.to_string(),
                condition.message.to_string(),
            )
        };
        let consistent = judged(&claim("Unknown"), false, now);
        let expected = ("True".to_owned(), "ConsistentStateFound".to_owned(), String::new());
        assert_eq!(shown(&consistent), expected);
        assert_eq!(judged(&consistent, false, now), consistent);
        let expected = (
            "False".to_owned(),
            "ConsistencyCheckFailed".to_owned(),
            "Consistency Check Failed".to_owned(),
        );
        assert_eq!(shown(&judged(&consistent, true, now)), expected);
    }

    #[test]
    fn a_claim_is_looked_at_every_ten_minutes() {
        let controller = Consistency::new(Managed::of(&[]));
        let at = |minute: i64| Timestamp::from_second(minute * 60).unwrap();
        assert_eq!(controller.wait(&claim("True"), at(1)), None);
        assert_eq!(controller.wait(&claim("True"), at(4)), Some(Duration::from_mins(7)));
        assert_eq!(controller.wait(&claim("True"), at(11)), None);
    }
}
