//! No claim lives longer than its pool allows. Neither budgets nor protections are asked; the drain minds them. Only a
//! pause of its pool lets it live on, and its pool's budgets do if the pool wants that.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use jiff::Timestamp;
use model::object::{NodeClaim, NodePool, ObjectKey, Text};
use runtime::Settings;
use state::{Change, State, Transition};

use super::{Managed, Reason, changed_claim, ending};
use crate::{
    Cluster, Controller, Next, Problem,
    mutation::{self, Mutation},
};

/// `nodeclaim.expiration`
pub struct Expiration {
    managed: Managed,
}

impl Expiration {
    /// For the claims that are ours.
    pub fn new(managed: Managed) -> Self {
        Self { managed }
    }
}

/// What is to be done about a claim's age.
#[derive(Debug, PartialEq, Eq)]
enum Decision {
    /// It may be as old as it likes, or is on its way out.
    Leave,
    /// It has this long to live.
    Wait(Duration),
    /// Its time has come.
    Expire,
}

fn decide(claim: &NodeClaim, pool: Option<&NodePool>, now: Timestamp) -> Decision {
    let end = if mutation::has(Mutation::NeverRests) {
        claim
            .metadata
            .creation_timestamp
            .and_then(|made| made.checked_add(Duration::from_mins(20)).ok())
    } else {
        disruption::expires_at(claim, pool)
    };
    let Some(end) = end.filter(|_| !claim.metadata.is_deleting()) else {
        return Decision::Leave;
    };
    match Duration::try_from(end.duration_since(now)) {
        Ok(left) if !left.is_zero() => Decision::Wait(left),
        _ => Decision::Expire,
    }
}

/// How often a claim whose time has come, and which is held, is looked at.
const HELD: Duration = Duration::from_mins(1);

/// Whether a claim whose time has come lives on: its pool is paused, or wants it to wait for budgets that are used up.
fn is_held(cluster: &Cluster, claim: &NodeClaim, pool: &NodePool) -> bool {
    let now = cluster.now();
    if disruption::pause_of(pool, now).is_some() {
        return true;
    }
    let waits = disruption::waits_for_budgets_until(claim, pool).is_some_and(|until| now < until);
    waits && {
        let marked = cluster.look(|state| state.marked_for_deletion().collect());
        let budget = disruption::unnamed_budget(pool, &cluster.snapshot(), marked, now);
        budget.remaining() == 0
    }
}

/// Whether the nodes of a pool may now be of another age than before.
fn changes_age(pool: &Transition<NodePool>) -> bool {
    let annotation = |pool: &Option<Arc<NodePool>>| {
        let pool = pool.as_ref()?;
        pool.metadata.annotations.get(disruption::EXPIRY_SPREAD).cloned()
    };
    annotation(&pool.before) != annotation(&pool.after)
}

fn pool_of(cluster: &Cluster, claim: &NodeClaim) -> Option<Arc<NodePool>> {
    cluster.get(&ObjectKey::cluster_scoped(claim.node_pool()?.as_str()))
}

#[async_trait]
impl Controller for Expiration {
    type Key = Text;

    fn name(&self) -> &'static str {
        "nodeclaim.expiration"
    }

    fn workers(&self, _: &Settings) -> usize {
        1
    }

    fn concerns(&self, change: &Change, state: &State) -> Vec<Text> {
        match change {
            Change::NodeClaim(claim) if !claim.changes_generation() => Vec::new(),
            Change::NodePool(pool) if changes_age(pool) => {
                let claims = pool.latest().into_iter();
                let claims = claims.flat_map(|pool| state.claims_of_pool(&pool.metadata.name));
                claims.map(|claim| claim.metadata.name.clone()).collect()
            }
            _ => changed_claim(change, self.managed),
        }
    }

    async fn reconcile(&self, cluster: &Cluster, name: &Text) -> Result<Next, Problem> {
        let Some(claim) = cluster.get::<NodeClaim>(&ObjectKey::cluster_scoped(name)) else {
            return Ok(Next::Change);
        };
        let pool = pool_of(cluster, &claim);
        match decide(&claim, pool.as_deref(), cluster.now()) {
            Decision::Leave => {}
            Decision::Wait(left) => return Ok(Next::After(left)),
            Decision::Expire if pool.as_ref().is_some_and(|pool| is_held(cluster, &claim, pool)) => {
                return Ok(Next::After(HELD));
            }
            Decision::Expire => {
                if ending::end(cluster, &claim, Reason::Expired).await? {
                    // Seen at once, so that the next one does not count on the same budget.
                    cluster.fold(|state| state.mark_for_deletion(&claim.name()));
                    tracing::debug!("NodeClaim.name" = %name, "deleting expired nodeclaim");
                }
            }
        }
        Ok(Next::Change)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_claim_expires_when_its_time_is_over_and_not_before() {
        let claim = |expire: &str, deleting: bool| -> NodeClaim {
            let deletion = deleting.then_some("2026-11-16T10:30:00Z");
            serde_json::from_value(json!({
                "metadata": {"creationTimestamp": "2026-11-16T10:00:00Z", "deletionTimestamp": deletion},
                "spec": {"expireAfter": expire},
            }))
            .unwrap()
        };
        let cases = [
            (claim("1h", false), "10:59", Decision::Wait(Duration::from_mins(1))),
            (claim("1h", false), "11:00", Decision::Expire),
            (claim("1h", false), "12:00", Decision::Expire),
            (claim("1h", true), "12:00", Decision::Leave),
            (claim("Never", false), "12:00", Decision::Leave),
            (NodeClaim::default(), "12:00", Decision::Leave),
        ];
        for (claim, now, expected) in cases {
            let at = format!("2026-11-16T{now}:00Z").parse().unwrap();
            assert_eq!(decide(&claim, None, at), expected, "{now} {claim:?}");
        }
    }
}
