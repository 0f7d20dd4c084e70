//! A claim that we made and that was gone before we heard of it must not stay in the state for ever: fifteen seconds
//! after a claim has appeared, one that is still not launched is looked up.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use model::object::{NodeClaim, ObjectKey, Text};
use runtime::Settings;
use state::{Change, State};

use crate::{Cluster, Controller, Next, Problem};

const GRACE: Duration = Duration::from_secs(15);

/// `state.nodeclaimgc`
#[derive(Debug, Default)]
pub struct StateGarbageCollection;

/// How long a claim still has before it is looked up; zero when it is due, none when it was launched.
fn wait(claim: &NodeClaim, now: Timestamp) -> Option<Duration> {
    if claim.status.provider_id.is_some() {
        return None;
    }
    let age = now.duration_since(claim.metadata.creation_timestamp.unwrap_or(now));
    Some(GRACE.saturating_sub(age.try_into().unwrap_or_default()))
}

#[async_trait]
impl Controller for StateGarbageCollection {
    type Key = Text;

    fn name(&self) -> &'static str {
        "state.nodeclaimgc"
    }

    fn workers(&self, _: &Settings) -> usize {
        1
    }

    fn concerns(&self, change: &Change, _: &State) -> Vec<Text> {
        match change {
            Change::NodeClaim(claim) if claim.is_new() => claim
                .latest()
                .map(|claim| claim.metadata.name.clone())
                .into_iter()
                .collect(),
            _ => Vec::new(),
        }
    }

    async fn reconcile(&self, cluster: &Cluster, name: &Text) -> Result<Next, Problem> {
        let key = ObjectKey::cluster_scoped(name);
        let Some(claim) = cluster.get::<NodeClaim>(&key) else {
            return Ok(Next::Change);
        };
        match wait(&claim, cluster.now()) {
            None => return Ok(Next::Change),
            Some(Duration::ZERO) => {}
            Some(left) => return Ok(Next::After(left)),
        }
        match cluster.api().get::<NodeClaim>(&key).await {
            Err(error) if error.is_not_found() => {
                tracing::debug!("NodeClaim.name" = %name, "garbage collecting stale unlaunched nodeclaim from cluster state");
                cluster.fold(|state| state.delete(&*claim));
                Ok(Next::Change)
            }
            Err(error) => Err(error.into()),
            Ok(_) => Ok(Next::Change),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_claims_that_are_not_launched_are_looked_up_and_not_at_once() {
        let claim = |id: Option<&str>| -> NodeClaim {
            let metadata = json!({"creationTimestamp": "1970-01-01T00:00:10Z"});
            serde_json::from_value(json!({"metadata": metadata, "status": {"providerID": id}})).unwrap()
        };
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let cases = [
            (claim(None), at(12), Some(Duration::from_secs(13))),
            (claim(None), at(25), Some(Duration::ZERO)),
            (claim(None), at(60), Some(Duration::ZERO)),
            (claim(Some("p")), at(60), None),
        ];
        for (claim, now, expected) in cases {
            assert_eq!(wait(&claim, now), expected, "{now}");
        }
    }
}
