//! Who leads? The demo's controllers have nobody to compete with; they say so in the Lease that `doctor` and `status` read.

use std::time::Duration;

use serde_json::{Value, json};
use simulator::ApiServer;

const NAMESPACE: &str = "kube-system";
const NAME: &str = "karpenter-leader-election";
const LASTS: Duration = Duration::from_secs(15);

/// Holds the lease for as long as the demo lives.
pub(super) async fn hold(server: ApiServer) {
    let _ = server.create(lease(&server));
    loop {
        tokio::time::sleep(LASTS / 2).await;
        let now = server.now();
        let _ = server.update("Lease", &format!("{NAMESPACE}/{NAME}"), |lease| {
            lease["spec"]["renewTime"] = json!(format!("{now:.6}"));
        });
    }
}

fn lease(server: &ApiServer) -> Value {
    let now = format!("{:.6}", server.now());
    json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": NAME, "namespace": NAMESPACE},
        "spec": {"holderIdentity": "demo", "leaseDurationSeconds": LASTS.as_secs(), "leaseTransitions": 0,
            "acquireTime": now, "renewTime": now}})
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_demos_controllers_always_lead() {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let began = tokio::time::Instant::now();
        let server = ApiServer::new(move || start + began.elapsed());
        let holding = tokio::spawn(hold(server.clone()));
        for _ in 0..5 {
            tokio::time::sleep(Duration::from_secs(20)).await;
            let lease = server.get("Lease", "kube-system/karpenter-leader-election").unwrap();
            let renewed: Timestamp = lease["spec"]["renewTime"].as_str().unwrap().parse().unwrap();
            let age = server.now().duration_since(renewed);
            assert!(age < SignedDuration::from_secs(15), "{age}");
        }
        holding.abort();
    }
}
