//! The cluster around the autoscaler: an API server, stand-ins for the rest, and what users put into it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use jiff::SignedDuration;
use runtime::{Clock, Metrics, Settings, settings::Steering};
use serde_json::{Value, json};
use simulator::{ApiServer, Change, Resource, Running, Standins};
use tokio::sync::mpsc::UnboundedReceiver;

pub(crate) struct World {
    pub(crate) server: ApiServer,
    /// The autoscaler's clock; the cluster has its own.
    pub(crate) clock: Clock,
    ahead: Arc<AtomicI64>,
    /// How every process runs.
    pub(crate) settings: Settings,
    /// What all processes count together.
    pub(crate) metrics: Arc<Metrics>,
    changes: UnboundedReceiver<Change>,
    _standins: Running,
}

impl World {
    /// An empty cluster. To be made inside a runtime.
    pub(crate) fn new(steering: Steering) -> Self {
        let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
        let telling = clock.clone();
        let server = ApiServer::new(move || telling.now());
        let ahead = Arc::new(AtomicI64::new(0));
        let seconds = Arc::clone(&ahead);
        let ours = Clock::told_by(move || clock.now() + SignedDuration::from_secs(seconds.load(Ordering::Relaxed)));
        let custom = [
            ("karpenter.sh", "nodepools", "NodePool"),
            ("karpenter.sh", "nodeclaims", "NodeClaim"),
            ("karpenter.sh", "nodeoverlays", "NodeOverlay"),
            ("karpenter.kwok.sh", "kwoknodeclasses", "KWOKNodeClass"),
        ];
        for (group, plural, kind) in custom {
            server.define(&Resource::new(group, plural), kind, false);
        }
        server
            .create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}))
            .unwrap();
        let changes = server.changes();
        let standins = Standins::default().start(&server);
        Self {
            server,
            clock: ours,
            ahead,
            settings: Settings {
                steering,
                ..Settings::default()
            },
            metrics: Arc::default(),
            changes,
            _standins: standins,
        }
    }

    /// From now on, the autoscaler's clock is ahead of the cluster's, or behind it.
    pub(crate) fn set_clock_ahead(&self, seconds: i64) {
        self.ahead.store(seconds, Ordering::Relaxed);
    }

    /// A pool of kwok's Linux types, ready to be launched from.
    pub(crate) fn add_pool(&self, name: &str) {
        let ready = |kind: &str| {
            json!({"type": kind, "status": "True", "reason": kind, "message": "", "observedGeneration": 1,
                "lastTransitionTime": "2026-01-01T00:00:00Z"})
        };
        let class = json!({"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass",
            "metadata": {"name": "default"}, "spec": {}, "status": {"conditions": [ready("Ready")]}});
        self.server.create(class).unwrap();
        let pool = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name},
            "spec": {
                "disruption": {"consolidateAfter": "Never", "consolidationPolicy": "WhenEmptyOrUnderutilized",
                    "budgets": [{"nodes": "10%"}]},
                "template": {"spec": {
                    "expireAfter": "720h",
                    "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
                    "requirements": [
                        {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
                        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot", "on-demand"]},
                    ],
                }},
            },
            "status": {"conditions": [ready("ValidationSucceeded"), ready("NodeClassReady"), ready("Ready")]},
        });
        self.server.create(pool).unwrap();
    }

    /// Pods of a shape, anywhere.
    pub(crate) fn add_shape(&self, name: &str, replicas: u64, cpu: &str, memory: &str) {
        let set = json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu, "memory": memory}}}]},
            }},
        });
        self.server.create(set).unwrap();
    }

    /// Pods of one CPU each that may not share a node.
    pub(crate) fn add_workload(&self, name: &str, replicas: u64) {
        let set = json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {
                    "containers": [{"name": "c", "resources": {"requests": {"cpu": "1", "memory": "256Mi"}}}],
                    "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{
                        "topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": name}},
                    }]}},
                },
            }},
        });
        self.server.create(set).unwrap();
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

pub(crate) const MINUTE: Duration = Duration::from_mins(1);
