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
const PODS: &str = "/api/v1/namespaces/default/pods";
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
    /// What no fleet for the pods that are left costs less than.
    #[serde(rename = "settled_bound_usd_h")]
    pub(super) bound_usd_h: Option<f64>,
    /// Pods that were evicted on the way.
    pods_moved: usize,
    /// The same for each dollar an hour that was saved.
    pods_per_usd: f64,
    /// Pods that kube-scheduler found no place for on the way.
    pods_stranded: usize,
    /// Pods without a node when it had settled.
    pods_pending: usize,
}

/// The Deployments' pods that are left, all of them pending.
pub(super) fn left_over(deployments: &[Deployment], share: f64) -> workloads::Snapshot {
    let pods = deployments
        .iter()
        .flat_map(|deployment| (0..left(deployment.replicas, share)).map(|index| deployment.pod(index)));
    workloads::placed::cluster("left-over", &[], &pods.collect::<Vec<_>>())
}

/// Takes a share of every Deployment's pods away, at least one pod staying, and waits until the fleet has settled.
/// `before_usd_h` is what the fleet cost.
pub(super) fn run(
    cluster: &Cluster,
    process: &mut Process,
    deployments: &[Deployment],
    share: f64,
    before_usd_h: f64,
) -> Result<Settled> {
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
    let mut stranded = BTreeSet::new();
    cluster.client().wait_for("the fleet being settled", LIMIT, |client| {
        process.check()?;
        let now = names(&client.get("/apis/karpenter.sh/v1/nodeclaims")?.unwrap_or_default());
        if fleet.as_ref() != Some(&now) {
            since = clock.elapsed();
            fleet = Some(now);
        }
        stranded.extend(unschedulable(&client.get(PODS)?.unwrap_or_default()));
        let quiet = clock.elapsed().saturating_sub(since);
        Ok(if quiet >= QUIET {
            Seen::Done(())
        } else {
            std::thread::sleep(Duration::from_secs(1));
            Seen::NotYet(format!("quiet for {quiet:?}"))
        })
    })?;
    let nodes = cluster.client().get("/api/v1/nodes")?.unwrap_or_default();
    let pods = cluster.client().get(PODS)?.unwrap_or_default();
    let (usd_h, pods_moved) = (price(&nodes)?, evictions()? - before);
    #[expect(clippy::cast_precision_loss, reason = "a few pods")]
    let pods_per_usd = round(pods_moved as f64 / (before_usd_h - usd_h).max(f64::EPSILON));
    Ok(Settled {
        seconds: round(since.as_secs_f64()),
        nodes: items(&nodes).count(),
        usd_h,
        bound_usd_h: None,
        pods_moved,
        pods_per_usd,
        pods_stranded: stranded.len(),
        pods_pending: items(&pods).filter(|pod| pod["spec"]["nodeName"].is_null()).count(),
    })
}

/// The pods that kube-scheduler found no place for, by name.
fn unschedulable(pods: &Value) -> Vec<String> {
    let is_stuck = |pod: &&Value| {
        let conditions = pod["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        conditions.any(|condition| condition["type"] == "PodScheduled" && condition["reason"] == "Unschedulable")
    };
    let name = |pod: &Value| pod["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    items(pods).filter(is_stuck).map(name).collect()
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
