//! How a claim's fate enters the health of its pool.

use api::condition::names::{nodeclaim, nodepool};
use jiff::Timestamp;
use model::object::{NodeClaim, NodePool, Object, ObjectKey, condition};

use super::Lifecycle;
use crate::{
    Cluster, Next, Problem, conditions,
    node_pool::{Health, RegistrationHealth},
    patch::Lock,
};

/// How often the condition is written anew on top of what somebody else wrote.
const TRIES: u32 = 3;

/// The pool with its health condition as one more success or failure makes it; none when it stays as it is.
fn judged(pool: &NodePool, claim: &NodeClaim, health: Health, now: Timestamp) -> Option<NodePool> {
    let kind = nodepool::NODE_REGISTRATION_HEALTHY;
    let mut after = pool.clone();
    let was_false = condition::find(&pool.status.conditions, kind)
        .is_some_and(|condition| condition.status == model::object::ConditionStatus::False);
    let mut is_changed = false;
    conditions::change(
        nodepool::TYPES,
        &pool.metadata,
        &mut after.status.conditions,
        now,
        |set| {
            is_changed = match health {
                Health::Healthy => set.set_true(kind),
                Health::Unhealthy if !was_false => {
                    let (reason, message) = why(claim);
                    set.set_false(kind, &reason, &message)
                }
                Health::Unhealthy | Health::Unknown => false,
            };
        },
    );
    is_changed.then_some(after)
}

/// Without a machine the launch is to blame.
fn why(claim: &NodeClaim) -> (String, String) {
    match claim.condition(nodeclaim::LAUNCHED) {
        Some(launched) if launched.status != model::object::ConditionStatus::True => {
            (launched.reason.to_string(), launched.message.to_string())
        }
        _ => (
            nodepool::REGISTRATION_FAILED.to_owned(),
            "Failed to register node".to_owned(),
        ),
    }
}

/// Only a pool that owns the claim is judged by it.
fn owns(pool: &NodePool, claim: &NodeClaim) -> bool {
    let owners = &claim.metadata.owner_references;
    owners
        .iter()
        .any(|owner| *owner.kind == *NodePool::KIND && owner.uid == pool.metadata.uid)
}

/// The condition that an outcome leads to. A success alone can only heal, a failure alone can only hurt.
fn verdict(health: &RegistrationHealth, pool: &NodePool, outcome: bool) -> Health {
    match (outcome, health.with(&pool.metadata.uid, outcome)) {
        (true, Health::Healthy) => Health::Healthy,
        (false, Health::Unhealthy) => Health::Unhealthy,
        _ => Health::Unknown,
    }
}

impl Lifecycle {
    /// Counts a claim whose node registered, or did not in time. The pool's condition is written before it is counted,
    /// on top of what others write meanwhile, so that no outcome is lost.
    pub(super) async fn record_health(
        &self,
        cluster: &Cluster,
        claim: &NodeClaim,
        outcome: bool,
    ) -> Result<Next, Problem> {
        let Some(name) = claim.node_pool() else {
            return Ok(Next::Change);
        };
        let key = ObjectKey::cluster_scoped(name.as_str());
        let Some(pool) = cluster.get::<NodePool>(&key).filter(|pool| owns(pool, claim)) else {
            return Ok(Next::Change);
        };
        let health = verdict(&self.health, &pool, outcome);
        if judged(&pool, claim, health, cluster.now()).is_none() {
            self.health.record(&pool.metadata.uid, outcome);
            return Ok(Next::Change);
        }
        // The nodes of a plan register together: the first one writes, and the others find that nothing is left to write.
        let _writing = self.judging.lock().await;
        let Some(pool) = cluster.get::<NodePool>(&key) else {
            return Ok(Next::Change);
        };
        let mut pool = NodePool::clone(&pool);
        for _ in 0..TRIES {
            let health = verdict(&self.health, &pool, outcome);
            let Some(after) = judged(&pool, claim, health, cluster.now()) else {
                self.health.record(&pool.metadata.uid, outcome);
                return Ok(Next::Change);
            };
            match cluster.update_status(&pool, &after, Lock::Version).await {
                Ok(_) => {
                    self.health.record(&pool.metadata.uid, outcome);
                    return Ok(Next::Change);
                }
                Err(error) if error.is_not_found() => return Ok(Next::Change),
                Err(error) if error.is_conflict() => match cluster.api().get(&key).await {
                    Ok(fresh) => pool = fresh,
                    Err(error) if error.is_not_found() => return Ok(Next::Change),
                    Err(error) => return Err(error.into()),
                },
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Next::Again)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pool(condition: &str) -> NodePool {
        let conditions = match condition {
            "" => json!([]),
            status => json!([{"type": "NodeRegistrationHealthy", "status": status, "reason": "r", "message": ""}]),
        };
        serde_json::from_value(json!({"metadata": {"name": "p", "uid": "u"}, "status": {"conditions": conditions}}))
            .unwrap()
    }

    fn claim(launched: &str) -> NodeClaim {
        let conditions = json!([{"type": "Launched", "status": launched, "reason": "NoSubnet", "message": "none"}]);
        serde_json::from_value(json!({"status": {"conditions": conditions}})).unwrap()
    }

    #[test]
    fn the_condition_follows_the_outcomes_and_names_the_cause() {
        let cases = [
            (
                Health::Healthy,
                "Unknown",
                "True",
                Some(("True", "NodeRegistrationHealthy", "")),
            ),
            (
                Health::Healthy,
                "",
                "True",
                Some(("True", "NodeRegistrationHealthy", "")),
            ),
            (Health::Unknown, "Unknown", "True", None),
            (
                Health::Unhealthy,
                "True",
                "True",
                Some(("False", "RegistrationFailed", "Failed to register node")),
            ),
            (
                Health::Unhealthy,
                "True",
                "Unknown",
                Some(("False", "NoSubnet", "none")),
            ),
            (Health::Unhealthy, "False", "Unknown", None),
        ];
        for (health, before, launched, expected) in cases {
            let now = "2026-11-16T10:00:00Z".parse().unwrap();
            let after = judged(&pool(before), &claim(launched), health, now);
            let shown = after.map(|pool| {
                let condition = condition::find(&pool.status.conditions, "NodeRegistrationHealthy")
                    .cloned()
                    .unwrap();
                (
                    format!("{:?}", condition.status),
                    condition.reason.to_string(),
                    condition.message.to_string(),
                )
            });
            let expected =
                expected.map(|(status, reason, message)| (status.to_owned(), reason.to_owned(), message.to_owned()));
            assert_eq!(shown, expected, "{health:?} {before} {launched}");
        }
    }

    #[test]
    fn two_failures_of_four_make_a_pool_unhealthy_and_a_success_cannot() {
        let health = RegistrationHealth::default();
        let pool = pool("");
        assert_eq!(verdict(&health, &pool, false), Health::Unknown);
        health.record(&pool.metadata.uid, false);
        assert_eq!(verdict(&health, &pool, false), Health::Unhealthy);
        assert_eq!(verdict(&health, &pool, true), Health::Healthy);
        health.record(&pool.metadata.uid, false);
        assert_eq!(verdict(&health, &pool, true), Health::Unknown);
    }
}
