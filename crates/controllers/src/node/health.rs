//! `node.health`: repairs as upstream did before repair became a disruption method. Broken nodes are deleted at once,
//! whatever budgets and protections say. Runs only with `--legacy-node-repair`.

use std::{sync::Arc, time::Duration};

use api::{annotations::NODECLAIM_TERMINATION_TIMESTAMP, labels};
use async_trait::async_trait;
use cloud::{RepairAction, RepairPolicies, RepairPolicy};
use jiff::{SignedDuration, Timestamp};
use model::object::{BriefCondition, Node, NodeClaim, NodePoolName, ObjectKey, Text};
use runtime::{Event, EventKind, Settings, queue::Backoff};
use state::{Change, State, Transition};

use super::claim_of;
use crate::{
    Cluster, Controller, Next, Problem,
    disruption::snake,
    node_claim::{Reason, end, termination_mode, with_pair},
    patch::Lock,
};

/// How long a node of a pool with too many broken ones waits.
const BLOCKED: Duration = Duration::from_mins(5);

/// The controller.
pub struct Health {
    policies: RepairPolicies,
}

impl Health {
    /// By a provider's policies.
    pub fn new(policies: RepairPolicies) -> Self {
        Self { policies }
    }

    /// The condition that ends a node first, and when.
    fn verdict<'a>(&self, node: &'a Node) -> Option<(&'a BriefCondition, Timestamp)> {
        let conditions = node.status.conditions.iter();
        let broken = conditions.flat_map(|condition| {
            let end = |policy: &RepairPolicy| {
                let since = condition.last_transition_time.unwrap_or(Timestamp::MIN);
                let toleration = SignedDuration::try_from(policy.toleration).unwrap_or(SignedDuration::MAX);
                (condition, since.saturating_add(toleration).unwrap_or(Timestamp::MAX))
            };
            self.replacing(condition).map(end).collect::<Vec<_>>()
        });
        broken.min_by_key(|(_, end)| *end)
    }

    fn replacing(&self, condition: &BriefCondition) -> impl Iterator<Item = &RepairPolicy> {
        let about = self
            .policies
            .about(&condition.kind, condition.status, &condition.reason);
        about.filter(|policy| policy.action == RepairAction::ReplaceNode)
    }

    fn is_broken(&self, node: &Node) -> bool {
        self.verdict(node).is_some()
    }

    /// Whether more than a fifth of the nodes, rounded up, are broken: of the pool, or of all for a claim without one.
    fn is_blocked(&self, state: &State, pool: Option<&str>) -> bool {
        let nodes: Vec<&Arc<Node>> = match pool {
            Some(pool) => state.nodes_of_pool(pool).collect(),
            None => state.all::<Node>().iter().collect(),
        };
        let broken = nodes.iter().filter(|node| self.is_broken(node)).count();
        broken > nodes.len().div_ceil(5)
    }
}

/// The claim with a drain that must be over now, unless one is set that was to be over before.
fn condemned(claim: &NodeClaim, now: Timestamp) -> NodeClaim {
    let known = claim.metadata.annotations.get(NODECLAIM_TERMINATION_TIMESTAMP);
    let known = known.and_then(|known| known.parse::<Timestamp>().ok());
    let mut after = claim.clone();
    if known.is_none_or(|known| known >= now) {
        let text = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let annotations = &claim.metadata.annotations;
        after.metadata.annotations = with_pair(annotations, NODECLAIM_TERMINATION_TIMESTAMP, &text);
    }
    after
}

fn changes_conditions(node: &Transition<Node>) -> bool {
    let facts = |node: &Option<Arc<Node>>| {
        let conditions = node.as_ref().map(|node| node.status.conditions.clone());
        conditions.map(|conditions| {
            let facts = conditions.iter();
            facts
                .map(|one| (one.kind.clone(), one.status, one.last_transition_time))
                .collect::<Vec<_>>()
        })
    };
    node.after.is_some() && facts(&node.before) != facts(&node.after)
}

#[async_trait]
impl Controller for Health {
    type Key = Text;

    fn name(&self) -> &'static str {
        "node.health"
    }

    fn workers(&self, settings: &Settings) -> usize {
        settings.workers(10, 1000)
    }

    fn backoff(&self) -> Backoff {
        Backoff {
            least: Duration::from_millis(100),
            most: Duration::from_mins(1),
        }
    }

    fn concerns(&self, change: &Change, _: &State) -> Vec<Text> {
        match change {
            Change::Node(node) if changes_conditions(node) => node
                .latest()
                .map(|node| node.metadata.name.clone())
                .into_iter()
                .collect(),
            _ => Vec::new(),
        }
    }

    async fn reconcile(&self, cluster: &Cluster, name: &Text) -> Result<Next, Problem> {
        let key = ObjectKey::cluster_scoped(name);
        let found = cluster.look(|state| {
            let node = state.get::<Node>(&key)?;
            Some((Arc::clone(node), Arc::clone(claim_of(state, node)?)))
        });
        let Some((node, claim)) = found else {
            return Ok(Next::Change);
        };
        let now = cluster.now();
        let Some((condition, ends)) = self.verdict(&node) else {
            return Ok(Next::Change);
        };
        if let Some(left) = Duration::try_from(ends.duration_since(now))
            .ok()
            .filter(|left| !left.is_zero())
        {
            return Ok(Next::After(left));
        }
        let pool = claim.node_pool();
        if cluster.look(|state| self.is_blocked(state, pool.as_ref().map(NodePoolName::as_str))) {
            let message = match pool {
                Some(_) => "more than 20% nodes are unhealthy in the nodepool",
                None => "more then 20% nodes are unhealthy in the cluster",
            };
            let event = Event::new(&*node, EventKind::Warning, "NodeRepairBlocked", message.to_owned());
            cluster.publish(event.quiet_for(Duration::from_mins(15)));
            return Ok(Next::After(BLOCKED));
        }
        if claim.metadata.is_deleting() {
            return Ok(Next::Change);
        }
        match cluster.update(&*claim, &condemned(&claim, now), Lock::None).await {
            Err(error) if error.is_not_found() => return Ok(Next::Change),
            written => written?,
        };
        if end(cluster, &claim, Reason::Unhealthy).await? {
            let label = |key: &str| node.metadata.labels.get(key).map_or("", |value| value);
            cluster.metrics().nodeclaims_unhealthy_disrupted_total.inc([
                &*snake(&condition.kind),
                label(labels::NODEPOOL),
                label(labels::CAPACITY_TYPE),
                &claim.status.image_id,
                termination_mode(&claim),
            ]);
            tracing::info!("Node.name" = %name, "NodeClaim.name" = %claim.metadata.name, condition = %condition.kind,
                "deleting unhealthy node");
        }
        Ok(Next::Change)
    }
}

#[cfg(test)]
mod tests {
    use model::object::ConditionStatus;
    use serde_json::json;

    use super::*;

    fn health() -> Health {
        let policy = |reason_regex, minutes| RepairPolicy {
            condition_type: "Ready",
            condition_status: ConditionStatus::False,
            reason_regex,
            toleration: Duration::from_mins(minutes),
            termination_grace_period: None,
            priority: 0,
            action: RepairAction::ReplaceNode,
        };
        Health::new(RepairPolicies::new(vec![policy("", 30), policy("Kernel", 10)]).unwrap())
    }

    fn node(reason: &str) -> Node {
        serde_json::from_value(
            json!({"status": {"conditions": [{"type": "Ready", "status": "False", "reason": reason,
            "lastTransitionTime": "2026-11-16T10:00:00Z"}]}}),
        )
        .unwrap()
    }

    #[test]
    fn the_policy_that_ends_first_governs() {
        let ends = |reason| health().verdict(&node(reason)).map(|(_, ends)| ends.to_string());
        assert_eq!(ends("KernelDeadlock"), Some("2026-11-16T10:10:00Z".to_owned()));
        assert_eq!(ends("Else"), Some("2026-11-16T10:30:00Z".to_owned()));
        assert_eq!(health().verdict(&Node::default()).map(|(_, ends)| ends), None);
    }

    #[test]
    fn a_drain_that_was_to_be_over_before_is_not_prolonged() {
        let now = "2026-11-16T10:00:00Z".parse().unwrap();
        let with = |deadline: &str| -> NodeClaim {
            serde_json::from_value(json!({"metadata": {"annotations": {NODECLAIM_TERMINATION_TIMESTAMP: deadline}}}))
                .unwrap()
        };
        let deadline = |claim: &NodeClaim| {
            let after = condemned(claim, now);
            after
                .metadata
                .annotations
                .get(NODECLAIM_TERMINATION_TIMESTAMP)
                .map(ToString::to_string)
        };
        assert_eq!(deadline(&NodeClaim::default()).as_deref(), Some("2026-11-16T10:00:00Z"));
        assert_eq!(
            deadline(&with("2026-11-16T09:00:00Z")).as_deref(),
            Some("2026-11-16T09:00:00Z")
        );
        assert_eq!(
            deadline(&with("2026-11-16T11:00:00Z")).as_deref(),
            Some("2026-11-16T10:00:00Z")
        );
    }
}
