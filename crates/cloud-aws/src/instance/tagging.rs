//! Gives instances the name of their node, so that people find them in the console.
//!
//! Everything else a machine's tags say is there from its launch on; machines that upstream launched get it here.

use std::{collections::BTreeMap, sync::Mutex, sync::PoisonError, time::Duration};

use api::{
    annotations::aws::{CLUSTER_NAME_TAGGED, TAGGED},
    labels,
};
use aws_sdk_ec2::types::Tag;
use model::object::{NodeClaim, ObjectKey};
use runtime::{
    Api, Patch, Resource,
    watch::{Belief, Observed, Watched, follow},
};
use serde_json::json;
use tokio::sync::Notify;

use super::{describe::Describe, facts::Machine};
use crate::{Failure, border::Reads, launch::tags};

/// EC2 lets tags be made at a low rate, which launches need more than names do.
const PACE: Duration = Duration::from_secs(1);

/// Claims whose machines are still to be tagged.
#[derive(Default)]
struct Waiting {
    claims: Mutex<BTreeMap<String, NodeClaim>>,
    more: Notify,
}

impl Waiting {
    fn see(&self, observed: Observed<NodeClaim>) -> Belief {
        let mut claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        match observed {
            Observed::Applied(claim) if is_due(&claim) => {
                claims.insert(claim.metadata.name.to_string(), claim);
                self.more.notify_one();
            }
            Observed::Applied(claim) | Observed::Deleted(claim) => {
                claims.remove(&*claim.metadata.name);
            }
            _ => {}
        }
        Belief::Taken
    }

    fn next(&self) -> Option<NodeClaim> {
        let mut claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        claims.pop_first().map(|(_, claim)| claim)
    }

    async fn wait(&self) -> NodeClaim {
        loop {
            if let Some(claim) = self.next() {
                return claim;
            }
            self.more.notified().await;
        }
    }
}

/// Whether a claim's machine has a node and is not known to be tagged.
fn is_due(claim: &NodeClaim) -> bool {
    let is_tagged = [TAGGED, CLUSTER_NAME_TAGGED]
        .iter()
        .all(|key| claim.metadata.annotations.get(key).is_some_and(|it| **it == *"true"));
    let is_aws = claim
        .status
        .provider_id
        .as_ref()
        .is_some_and(|id| id.as_str().starts_with("aws://"));
    claim.status.node_name.is_some() && is_aws && !claim.metadata.is_deleting() && !is_tagged
}

/// Tags machines until dropped.
pub(super) async fn run(api: &Api, ec2: &aws_sdk_ec2::Client, describe: &Describe, reads: &dyn Reads, cluster: &str) {
    let waiting = Waiting::default();
    let watched = Watched {
        resource: Resource::of::<NodeClaim>(),
        read: Box::new(|json: &[u8]| serde_json::from_slice(json)),
        key: |claim: &NodeClaim| claim.metadata.key(),
    };
    let tag = async {
        loop {
            let claim = waiting.wait().await;
            if let Some(zone) = claim.metadata.labels.get(labels::ZONE)
                && let Some(id) = reads.shifted_zone(zone)
            {
                tracing::warn!("NodeClaim.name" = %claim.metadata.name, zone = %zone, "zone-id" = id, "instance is in a zonally shifted availability zone, skipping tag creation");
                tokio::time::sleep(PACE).await;
                continue;
            }
            match tag(api, ec2, describe, &claim, cluster).await {
                Ok(is_called) if !is_called => continue,
                Ok(_) => {}
                Err(error) => {
                    // The next change of the claim brings it back; at the latest the next list of the watch.
                    tracing::warn!("NodeClaim.name" = %claim.metadata.name, error, "failed tagging instance");
                }
            }
            tokio::time::sleep(PACE).await;
        }
    };
    let follow = follow(api, watched, |observed| waiting.see(observed));
    let ((), ()) = futures_util::future::join(follow, tag).await;
}

/// Tags one machine and notes it on its claim. False when EC2 had nothing to be asked to write.
async fn tag(
    api: &Api,
    ec2: &aws_sdk_ec2::Client,
    describe: &Describe,
    claim: &NodeClaim,
    cluster: &str,
) -> Result<bool, String> {
    let id = claim
        .status
        .provider_id
        .as_ref()
        .map(|id| id.as_str().to_owned())
        .unwrap_or_default();
    let id = id.rsplit('/').next().unwrap_or_default();
    let Some(machine) = describe.one(id).await.map_err(|failure| failure.to_string())? else {
        return Ok(false);
    };
    let missing = missing(&machine, claim, cluster);
    let is_called = !missing.is_empty();
    if is_called {
        let tags = missing
            .iter()
            .map(|(key, value)| Tag::builder().key(*key).value(value).build())
            .collect();
        let sent = ec2.create_tags().resources(id).set_tags(Some(tags)).send().await;
        match sent.map_err(|error| Failure::of(&error)) {
            Err(failure) if failure.is_not_found() => return Ok(true),
            sent => sent.map(drop).map_err(|failure| failure.to_string())?,
        }
    }
    let patch = Patch::Merge(json!({
        "metadata": {"uid": claim.metadata.uid.to_string(), "annotations": {TAGGED: "true", CLUSTER_NAME_TAGGED: "true"}},
    }));
    let key = ObjectKey::cluster_scoped(&claim.metadata.name);
    match api.patch::<NodeClaim>(&key, None, &patch).await {
        Err(error) if error.is_not_found() || error.is_conflict() => Ok(is_called),
        patched => patched.map(|_| is_called).map_err(|error| error.to_string()),
    }
}

/// The tags that a machine lacks. What is there is never overwritten: people name their machines too.
fn missing(machine: &Machine, claim: &NodeClaim, cluster: &str) -> Vec<(&'static str, String)> {
    let node = claim.status.node_name.as_ref().map(|name| name.as_str().to_owned());
    let wanted = [
        (tags::NAME, node.unwrap_or_default()),
        (tags::NODE_CLAIM, claim.metadata.name.to_string()),
        (tags::CLUSTER_NAME, cluster.to_owned()),
    ];
    let is_missing = |(key, _): &(&'static str, String)| !machine.tags.contains_key(*key);
    wanted.into_iter().filter(is_missing).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::needless_pass_by_value, reason = "called with literals")]

    use serde_json::{Value, json};

    use super::*;

    fn claim(annotations: Value, status: Value) -> NodeClaim {
        let claim = json!({"metadata": {"name": "general-x", "annotations": annotations}, "status": status});
        serde_json::from_value(claim).unwrap()
    }

    #[test]
    fn a_machine_is_tagged_once_its_node_is_known() {
        let there = json!({"nodeName": "ip-10-0-0-1", "providerID": "aws:///a/i-1"});
        assert!(is_due(&claim(json!({}), there.clone())));
        assert!(is_due(&claim(json!({TAGGED: "true"}), there.clone())));
        assert!(!is_due(&claim(
            json!({TAGGED: "true", CLUSTER_NAME_TAGGED: "true"}),
            there.clone()
        )));
        assert!(!is_due(&claim(json!({}), json!({"providerID": "aws:///a/i-1"}))));
        assert!(!is_due(&claim(
            json!({}),
            json!({"nodeName": "x", "providerID": "kwok://x"})
        )));
    }

    #[test]
    fn tags_that_are_there_stay_as_they_are() {
        let described = aws_sdk_ec2::types::Instance::builder()
            .tags(Tag::builder().key("Name").value("theirs").build())
            .build();
        let machine = Machine::of(&described, true);
        let claim = claim(json!({}), json!({"nodeName": "ip-10-0-0-1"}));
        let expected = [
            ("karpenter.sh/nodeclaim", "general-x".to_owned()),
            ("eks:eks-cluster-name", "dev".to_owned()),
        ];
        assert_eq!(missing(&machine, &claim, "dev"), expected);
    }
}
