//! What does a controller make of a fleet after most of its pods went? Pods are taken away, and the fleet is watched
//! until nothing has come or gone for longer than upstream ever rests.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Result;
use rig::client::Seen;
use rig::{Cluster, Deadline, Process};
use serde::Serialize;
use serde_json::{Value, json};
use workloads::performance::Deployment;

use super::{Writes, items, price, round};

/// Upstream looks again after five minutes in which nothing changed; a fleet that is still after that is settled.
const QUIET: Duration = Duration::from_secs(330);
const LIMIT: Duration = Duration::from_mins(40);
const EVICTION: &str = "create pods/eviction";

/// What became of a fleet.
#[derive(Debug, Serialize)]
pub(super) struct Settled {
    /// From the pods' end to the last claim or node that came or went.
    #[serde(rename = "settled_s")]
    seconds: f64,
    #[serde(rename = "settled_nodes")]
    nodes: usize,
    #[serde(rename = "settled_usd_h")]
    usd_h: f64,
    /// Pods that were evicted on the way.
    pods_moved: usize,
    /// Pods without a node when it had settled.
    pods_pending: usize,
}

/// Takes a share of every Deployment's pods away, at least one pod staying, and waits until the fleet has settled.
pub(super) fn run(cluster: &Cluster, process: &mut Process, deployments: &[Deployment], share: f64) -> Result<Settled> {
    let evictions = || -> Result<usize> {
        let writes = Writes::read(&cluster.logs().join("audit.log"))?;
        Ok(writes.by_resource.get(EVICTION).copied().unwrap_or_default())
    };
    let before = evictions()?;
    let clock = Deadline::within(LIMIT);
    for deployment in deployments {
        let path = format!("/apis/apps/v1/namespaces/default/deployments/{}", deployment.name);
        cluster
            .client()
            .patch(&path, &json!({"spec": {"replicas": left(deployment.replicas, share)}}))?;
    }
    let mut fleet = None;
    let mut since = Duration::ZERO;
    cluster.client().wait_for("the fleet being settled", LIMIT, |client| {
        process.check()?;
        let now = names(&client.get("/apis/karpenter.sh/v1/nodeclaims")?.unwrap_or_default());
        if fleet.as_ref() != Some(&now) {
            since = clock.elapsed();
            fleet = Some(now);
        }
        let quiet = clock.elapsed().saturating_sub(since);
        Ok(if quiet >= QUIET {
            Seen::Done(())
        } else {
            std::thread::sleep(Duration::from_secs(1));
            Seen::NotYet(format!("quiet for {quiet:?}"))
        })
    })?;
    let nodes = cluster.client().get("/api/v1/nodes")?.unwrap_or_default();
    let pods = cluster
        .client()
        .get("/api/v1/namespaces/default/pods")?
        .unwrap_or_default();
    Ok(Settled {
        seconds: round(since.as_secs_f64()),
        nodes: items(&nodes).count(),
        usd_h: price(&nodes)?,
        pods_moved: evictions()? - before,
        pods_pending: items(&pods).filter(|pod| pod["spec"]["nodeName"].is_null()).count(),
    })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a few pods"
)]
fn left(replicas: u64, share: f64) -> u64 {
    ((replicas as f64 * (1.0 - share)) as u64).max(1)
}

/// The claims there are, and whether each is on its way out.
fn names(claims: &Value) -> BTreeSet<(String, bool)> {
    let of = |claim: &Value| {
        let metadata = &claim["metadata"];
        let name = metadata["name"].as_str().unwrap_or_default().to_owned();
        (name, !metadata["deletionTimestamp"].is_null())
    };
    items(claims).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_the_pods_goes_and_one_always_stays() {
        assert_eq!(
            [(50, 0.6), (5, 0.6), (1, 0.6)].map(|(replicas, share)| left(replicas, share)),
            [20, 2, 1]
        );
    }
}
