//! A cluster with a pool whose nodes may go, and what users do to it.

use std::{sync::Arc, time::Duration};

use runtime::{Clock, Metrics, Settings};
use serde_json::{Value, json};
use simulator::{ApiServer, Change, Resource, Running, Standins};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::life::Life;

pub(crate) const POOL: &str = "default";
pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const MINUTE: Duration = Duration::from_mins(1);

pub(crate) struct World {
    pub(crate) server: ApiServer,
    pub(crate) clock: Clock,
    pub(crate) settings: Settings,
    /// What all processes count together.
    pub(crate) metrics: Arc<Metrics>,
    changes: UnboundedReceiver<Change>,
    _standins: Running,
}

impl World {
    /// A cluster with a pool of kwok's types that is disrupted as `disruption` says. To be made inside a runtime.
    pub(crate) fn new(disruption: &Value) -> Self {
        let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
        let telling = clock.clone();
        let server = ApiServer::new(move || telling.now());
        let custom = [
            ("karpenter.sh", "nodepools", "NodePool"),
            ("karpenter.sh", "nodeclaims", "NodeClaim"),
            ("karpenter.sh", "nodeoverlays", "NodeOverlay"),
            ("karpenter.kwok.sh", "kwoknodeclasses", "KWOKNodeClass"),
        ];
        for (group, plural, kind) in custom {
            server.define(&Resource::new(group, plural), kind, false);
        }
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}});
        server.create(namespace).unwrap();
        let changes = server.changes();
        let standins = Standins::default().start(&server);
        let world = Self {
            server,
            clock,
            settings: Settings::default(),
            metrics: Arc::default(),
            changes,
            _standins: standins,
        };
        world.add_pool(disruption);
        world
    }

    fn add_pool(&self, disruption: &Value) {
        let ready = |kind: &str| {
            json!({"type": kind, "status": "True", "reason": kind, "message": "", "observedGeneration": 1,
                "lastTransitionTime": "2026-01-01T00:00:00Z"})
        };
        let class = json!({"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass",
            "metadata": {"name": "default"}, "spec": {}, "status": {"conditions": [ready("Ready")]}});
        self.server.create(class).unwrap();
        let pool = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": POOL},
            "spec": {
                "disruption": disruption,
                "template": {"spec": {
                    "expireAfter": "Never",
                    "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
                    "requirements": [
                        {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
                        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
                    ],
                }},
            },
            "status": {"conditions": [ready("ValidationSucceeded"), ready("NodeClassReady"), ready("Ready")]},
        });
        self.server.create(pool).unwrap();
    }

    /// Changes the pool.
    pub(crate) fn change_pool(&self, change: impl FnOnce(&mut Value)) {
        self.server.update("NodePool", POOL, change).unwrap();
    }

    /// Pods of a ReplicaSet that may not share a node.
    pub(crate) fn add_lonely(&self, name: &str, replicas: u64) {
        let apart = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{
            "topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": name}},
        }]}});
        self.add(name, replicas, &json!({"affinity": apart}));
    }

    /// Pods of a ReplicaSet that may.
    pub(crate) fn add(&self, name: &str, replicas: u64, more: &Value) {
        let mut spec =
            json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": "1", "memory": "256Mi"}}}]});
        for (key, value) in more.as_object().into_iter().flatten() {
            spec[key] = value.clone();
        }
        let set = json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name, "namespace": "default"},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": {
                "metadata": {"labels": {"app": name}}, "spec": spec,
            }},
        });
        self.server.create(set).unwrap();
    }

    /// From now on a ReplicaSet has so many pods.
    pub(crate) fn scale(&self, name: &str, replicas: u64) {
        let change = |set: &mut Value| set["spec"]["replicas"] = json!(replicas);
        self.server
            .update("ReplicaSet", &format!("default/{name}"), change)
            .unwrap();
    }

    pub(crate) fn pods(&self) -> Vec<Value> {
        self.server.list("Pod")
    }

    pub(crate) fn claims(&self) -> Vec<Value> {
        self.server.list("NodeClaim")
    }

    pub(crate) fn nodes(&self) -> Vec<Value> {
        self.server.list("Node")
    }

    /// Everything that happened since this was last asked.
    pub(crate) fn history(&mut self) -> Vec<Change> {
        std::iter::from_fn(|| self.changes.try_recv().ok()).collect()
    }

    /// Events as reason and message, of whatever object.
    pub(crate) fn said(&self) -> Vec<(String, String)> {
        let events = self.server.list("Event");
        let said = events.iter().map(|event| {
            let message = ["/message", "/note"].map(|pointer| text(event, pointer)).concat();
            (text(event, "/reason").to_owned(), message)
        });
        said.collect()
    }

    /// Why this is not a cluster in which so many pods run on so many nodes, none of them marked.
    pub(crate) fn unsettled(&self, pods: usize, nodes: usize) -> Vec<String> {
        let mut wrong = Vec::new();
        let all = self.pods();
        let running = all.iter().filter(|pod| text(pod, "/status/phase") == "Running").count();
        if (running, all.len()) != (pods, pods) {
            wrong.push(format!("{running} of {} pods run, {pods} should", all.len()));
        }
        let (there, claims) = (self.nodes(), self.claims());
        if (there.len(), claims.len()) != (nodes, nodes) {
            wrong.push(format!(
                "{} nodes, {} claims, {nodes} should be",
                there.len(),
                claims.len()
            ));
        }
        for node in &there {
            if !node["spec"]["taints"].is_null() && node["spec"]["taints"] != json!([]) {
                wrong.push(format!(
                    "node {} has taints {}",
                    node["metadata"]["name"], node["spec"]["taints"]
                ));
            }
        }
        for claim in &claims {
            if !is_true(claim, "Initialized") || is_true(claim, "DisruptionReason") {
                let name = &claim["metadata"]["name"];
                wrong.push(format!("claim {name}: {}", claim["status"]["conditions"]));
            }
        }
        wrong
    }

    /// A life in which so many pods run, each on a node of its own.
    pub(crate) async fn with_lonely(&self, replicas: u64) -> Life {
        let mut life = Life::begin(self);
        self.add_lonely("web", replicas);
        let count = usize::try_from(replicas).unwrap();
        let settled = life.until(self, 10 * MINUTE, |world| world.unsettled(count, count));
        settled.await.unwrap();
        life
    }
}

/// Runs a test of its own on paused time.
pub(crate) fn on_virtual_time<R>(test: impl Future<Output = R>) -> R {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(test)
}

pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn is_true(object: &Value, condition: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|one| one["type"] == condition && one["status"] == "True")
}

/// Where in a history something first happened to an object of a kind.
pub(crate) fn first(history: &[Change], plural: &str, happened: impl Fn(&Value) -> bool) -> Option<usize> {
    history
        .iter()
        .position(|change| change.resource.plural == plural && happened(&change.object))
}

/// The pods that run, by UID, to see whether they were disturbed.
pub(crate) fn uids(pods: &[Value]) -> Vec<String> {
    let mut uids: Vec<_> = pods.iter().map(|pod| text(pod, "/metadata/uid").to_owned()).collect();
    uids.sort();
    uids
}
