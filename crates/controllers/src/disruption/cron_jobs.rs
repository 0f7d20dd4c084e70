//! Which pods will CronJobs bring within minutes? They are asked for now and then, and nodes these pods will need stay.

use std::sync::Arc;

use http::Method;
use jiff::{SignedDuration, Timestamp};
use model::object::{Pod, Read};
use serde_json::{Value, json};

use super::memory::Memory;
use crate::Cluster;

/// Pods that come within this time are expected.
const SOON: SignedDuration = SignedDuration::from_mins(10);
/// How often CronJobs are asked for.
const EVERY: SignedDuration = SignedDuration::from_mins(1);
/// All of them.
const PATH: &str = "/apis/batch/v1/cronjobs";
/// A Job of more pods than this does not keep more nodes.
const MOST_PODS: u64 = 100;

/// Looks which CronJobs are due soon, unless it was looked just now. Whoever may not read them expects nothing.
pub(super) async fn look(cluster: &Cluster, memory: &Memory) {
    let now = cluster.now();
    if !memory.expects_again(now, EVERY) {
        return;
    }
    let read = cluster.api().call(Method::GET, PATH, None, "application/json").await;
    let expected = match read {
        Ok(bytes) => {
            let mut list: Value = serde_json::from_slice(&bytes).unwrap_or_default();
            let items = list["items"].take();
            let items = items.as_array().into_iter().flatten();
            items.flat_map(|job| due(job, now)).collect()
        }
        Err(error) => {
            tracing::debug!(error = %error, "listing CronJobs");
            Vec::new()
        }
    };
    memory.expect(expected);
}

/// The pods a CronJob will bring soon, as if they waited for a node already.
fn due(job: &Value, now: Timestamp) -> Vec<Arc<Pod>> {
    let spec = &job["spec"];
    let schedule = spec["schedule"].as_str().unwrap_or_default();
    let is_busy = spec["concurrencyPolicy"] == "Forbid" && job["status"]["active"].is_array();
    let is_off = spec["suspend"] == true || is_busy;
    if is_off || !disruption::fires_within(schedule, spec["timeZone"].as_str(), now, SOON) {
        return Vec::new();
    }
    let count = |field: &str| spec["jobTemplate"]["spec"][field].as_u64();
    let parallel = count("parallelism").unwrap_or(1);
    let pods = count("completions").map_or(parallel, |all| all.min(parallel));
    (0..pods.min(MOST_PODS)).filter_map(|at| pod(job, at)).collect()
}

fn pod(job: &Value, at: u64) -> Option<Arc<Pod>> {
    let (template, metadata) = (&job["spec"]["jobTemplate"]["spec"]["template"], &job["metadata"]);
    let name = format!("{}-expected-{at}", metadata["name"].as_str()?);
    let pod = json!({
        "metadata": {
            "name": name, "namespace": metadata["namespace"], "uid": format!("{}-{at}", metadata["uid"].as_str()?),
            "labels": template["metadata"]["labels"], "annotations": template["metadata"]["annotations"],
        },
        "spec": template["spec"],
        "status": {"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"},
        ]},
    });
    let pod = serde_json::to_vec(&without_nulls(pod)).ok()?;
    Pod::read(&pod).ok().map(Arc::new)
}

/// Fields that the template does not have are left out.
fn without_nulls(mut pod: Value) -> Value {
    if let Some(metadata) = pod["metadata"].as_object_mut() {
        metadata.retain(|_, value| !value.is_null());
    }
    pod
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(over: &Value) -> Value {
        let mut job = json!({
            "metadata": {"name": "report", "namespace": "shop", "uid": "u"},
            "spec": {"schedule": "0 8 * * *", "jobTemplate": {"spec": {"parallelism": 3, "template": {
                "metadata": {"labels": {"app": "report"}},
                "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}], "restartPolicy": "Never"},
            }}}},
        });
        for (key, value) in over.as_object().into_iter().flatten() {
            job["spec"][key] = value.clone();
        }
        job
    }

    #[test]
    fn a_cron_job_brings_its_pods_soon_unless_it_is_off_or_at_work() {
        let now = "2026-11-16T07:55:00Z".parse().unwrap();
        let found = due(&job(&json!({})), now);
        assert_eq!(found.len(), 3);
        assert!(
            found
                .iter()
                .all(|pod| pod.is_provisionable() && &*pod.metadata.namespace == "shop")
        );
        assert_eq!(due(&job(&json!({"suspend": true})), now).len(), 0);
        assert_eq!(due(&job(&json!({"schedule": "30 8 * * *"})), now).len(), 0);
        let mut busy = job(&json!({"concurrencyPolicy": "Forbid"}));
        assert_eq!(due(&busy, now).len(), 3);
        busy["status"] = json!({"active": [{"name": "report-1"}]});
        assert_eq!(due(&busy, now).len(), 0);
    }
}
