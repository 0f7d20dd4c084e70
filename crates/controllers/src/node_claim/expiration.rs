//! No claim lives longer than its pool allows. Neither budgets nor protections are asked; the drain minds them. Only a
//! pause of its pool lets it live on.

use std::time::Duration;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use model::object::{NodeClaim, NodePool, ObjectKey, Text};
use runtime::Settings;
use state::{Change, State};

use super::{Managed, Reason, changed_claim, ending};
use crate::{Cluster, Controller, Next, Problem, disruption::pause};

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

fn decide(claim: &NodeClaim, now: Timestamp) -> Decision {
    let span = claim
        .spec
        .expire_after
        .as_ref()
        .and_then(api::duration::NillableDuration::span);
    let (Some(span), Some(created)) = (span, claim.metadata.creation_timestamp) else {
        return Decision::Leave;
    };
    if claim.metadata.is_deleting() {
        return Decision::Leave;
    }
    let left = SignedDuration::from_nanos(span.as_nanos()) - now.duration_since(created);
    match Duration::try_from(left) {
        Ok(left) if !left.is_zero() => Decision::Wait(left),
        _ => Decision::Expire,
    }
}

/// How often a claim whose time has come during a pause is looked at.
const PAUSED: Duration = Duration::from_mins(1);

fn is_paused(cluster: &Cluster, claim: &NodeClaim) -> bool {
    let pool = claim.node_pool();
    let pool = pool.and_then(|pool| cluster.get::<NodePool>(&ObjectKey::cluster_scoped(pool.as_str())));
    pool.is_some_and(|pool| pause::of(&pool, cluster.now()).is_some())
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

    fn concerns(&self, change: &Change, _: &State) -> Vec<Text> {
        match change {
            Change::NodeClaim(claim) if !claim.changes_generation() => Vec::new(),
            _ => changed_claim(change, self.managed),
        }
    }

    async fn reconcile(&self, cluster: &Cluster, name: &Text) -> Result<Next, Problem> {
        let Some(claim) = cluster.get::<NodeClaim>(&ObjectKey::cluster_scoped(name)) else {
            return Ok(Next::Change);
        };
        match decide(&claim, cluster.now()) {
            Decision::Leave => {}
            Decision::Wait(left) => return Ok(Next::After(left)),
            Decision::Expire if is_paused(cluster, &claim) => return Ok(Next::After(PAUSED)),
            Decision::Expire => {
                if ending::end(cluster, &claim, Reason::Expired).await? {
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
            assert_eq!(decide(&claim, at), expected, "{now} {claim:?}");
        }
    }
}
