//! A cluster with a KWOKNodeClass, and clouds over it, each a process of its own.

use std::time::Duration;

use async_trait::async_trait;
use cloud::{
    CloudProvider, LaunchToken,
    conformance::{self, Harness},
};
use cloud_kwok::{Kwok, Offers};
use jiff::Timestamp;
use model::object::{NodeClaim, NodePool, ProviderId};
use runtime::{Api, Clock};
use serde_json::{Value, json};
use simulator::{ApiServer, Fault, Verb};

/// A cluster, and the first process in it.
pub(crate) struct World {
    pub(crate) server: ApiServer,
    pub(crate) cloud: Kwok,
    clock: Clock,
    delay: Duration,
}

impl World {
    /// Nodes join after this long.
    pub(crate) fn new(delay: Duration) -> Self {
        let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
        let told = clock.clone();
        let server = ApiServer::new(move || told.now());
        let class = json!({
            "apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "default"},
            "spec": {"nodeRegistrationDelay": format!("{}s", delay.as_secs())},
            "status": {"conditions": [{
                "type": "Ready", "status": "True", "reason": "Ready", "message": "",
                "lastTransitionTime": "2024-01-01T01:01:01Z",
            }]},
        });
        server.create(class).unwrap();
        let cloud = process(&server, &clock);
        Self {
            server,
            cloud,
            clock,
            delay,
        }
    }

    /// Another process in the same cluster.
    pub(crate) fn process(&self) -> Kwok {
        process(&self.server, &self.clock)
    }

    /// The Node objects by name.
    pub(crate) fn nodes(&self) -> Vec<String> {
        let name = |node: &Value| node["metadata"]["name"].as_str().unwrap().to_owned();
        self.server.list("Node").iter().map(name).collect()
    }

    /// What goes wrong with each creation of a node from now on, in turn; then nothing.
    pub(crate) fn fail_creations(&self, faults: impl IntoIterator<Item = Fault, IntoIter: Send + 'static>) {
        let mut faults = faults.into_iter();
        self.server.set_faults(move |request| {
            let is_meant = request.verb == Verb::Create && request.resource.plural == "nodes";
            let fault = if is_meant { faults.next() } else { None };
            fault.unwrap_or(Fault::None)
        });
    }
}

fn process(server: &ApiServer, clock: &Clock) -> Kwok {
    let api = Api::new(server.client(), "karpenter/test");
    Kwok::new(api, clock.clone(), Offers::generated())
}

/// A claim as provisioning writes it.
pub(crate) fn claim(name: &str, now: Timestamp) -> NodeClaim {
    let requirement = |key: &str, values: &[&str]| json!({"key": key, "operator": "In", "values": values});
    let object = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {
            "name": name, "uid": format!("uid-of-{name}"), "creationTimestamp": now.to_string(),
            "labels": {"karpenter.sh/nodepool": "default", "team": "blue"},
            "annotations": {"karpenter.sh/nodepool-hash": "1"},
        },
        "spec": {
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
            "requirements": [
                requirement("node.kubernetes.io/instance-type", &["c-2x-amd64-linux", "c-1x-amd64-linux"]),
                requirement("karpenter.sh/capacity-type", &["on-demand"]),
                requirement("topology.kubernetes.io/zone", &["test-zone-c", "test-zone-b"]),
                requirement("example.com/rack", &["7"]),
            ],
            "resources": {"requests": {"cpu": "600m", "pods": "3"}},
        },
    });
    serde_json::from_value(object).unwrap()
}

pub(crate) fn token(claim: &NodeClaim, attempt: u32) -> LaunchToken {
    LaunchToken {
        claim: claim.metadata.uid.clone(),
        attempt,
    }
}

#[async_trait]
impl Harness for World {
    fn cloud(&self) -> &dyn CloudProvider {
        &self.cloud
    }

    fn claim(&self, name: &str) -> NodeClaim {
        claim(name, self.now())
    }

    fn pool(&self) -> NodePool {
        NodePool::default()
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    async fn advance(&self, by: Duration) {
        tokio::time::sleep(by).await;
    }

    /// The API server neither lags nor runs out, and a node is created whole or not at all.
    async fn inject(&self, fault: conformance::Fault) -> bool {
        match fault {
            conformance::Fault::LostResponse => self.fail_creations([Fault::LoseAnswer]),
            conformance::Fault::Throttled(wait) => {
                let (clock, until) = (self.clock.clone(), self.now().saturating_add(wait).unwrap());
                self.fail_creations(std::iter::from_fn(move || {
                    (clock.now() < until).then_some(Fault::Fail(429))
                }));
            }
            _ => return false,
        }
        true
    }

    async fn machines(&self) -> Vec<ProviderId> {
        // Whoever waits to join runs already, and shows as soon as it has joined.
        self.advance(self.delay + Duration::from_secs(5)).await;
        let id = |node: &Value| ProviderId::from(node["spec"]["providerID"].as_str().unwrap());
        self.server.list("Node").iter().map(id).collect()
    }

    async fn start_foreign(&self) -> Option<ProviderId> {
        let id = "aws:///eu-west-1a/i-0123456789abcdef0";
        let node = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": "kwok-a-0123456789", "labels": {"kubernetes.io/hostname": "b"}},
            "spec": {"providerID": id},
        });
        self.server.create(node).unwrap();
        Some(id.into())
    }
}
