//! A cluster to launch machines in: an API server, a cloud in memory, kubelets that join, and our controllers as a process.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use cloud::{CloudProvider, reference::Reference};
use controllers::{Cluster, Parts, node, node_claim, node_pool, watches::Watches};
use jiff::Timestamp;
use runtime::{Api, Clock, Engine, Event, Metrics, Recorder, Settings};
use serde_json::{Value, json};
use simulator::ApiServer;
use tokio::{task::JoinSet, time::Instant};

/// When every test begins.
const BEGIN: &str = "2026-11-16T10:00:00Z";
/// How long a machine takes until its kubelet joins.
const BOOT: Duration = Duration::from_secs(3);
/// How long the cloud takes to end a machine.
const ENDING: Duration = Duration::from_secs(7);
/// Nothing here takes longer.
const PATIENCE: Duration = Duration::from_mins(40);

/// The cluster.
pub(crate) struct World {
    pub server: ApiServer,
    pub cloud: Arc<Reference>,
    pub metrics: Arc<Metrics>,
    /// While set, machines boot and nobody joins.
    pub is_mute: Arc<AtomicBool>,
    clock: Clock,
    said: Arc<Mutex<Vec<Event>>>,
    process: Option<JoinSet<()>>,
    _kubelets: JoinSet<()>,
}

impl World {
    /// A cluster with a pool and its node class. Nothing of ours runs yet.
    pub(crate) fn new() -> Self {
        let clock = Clock::starting_at(BEGIN.parse().unwrap());
        let (time, also) = (clock.clone(), clock.clone());
        let server = ApiServer::new(move || time.now());
        let cloud = Arc::new(Reference::new(Arc::new(move || also.now()), vec![Arc::new(large())]));
        cloud.shut_down_in(ENDING);
        let is_mute = Arc::new(AtomicBool::new(false));
        let mut kubelets = JoinSet::new();
        kubelets.spawn(join(server.clone(), Arc::clone(&cloud), Arc::clone(&is_mute)));
        let world = Self {
            server,
            cloud,
            metrics: Arc::default(),
            is_mute,
            clock,
            said: Arc::default(),
            process: None,
            _kubelets: kubelets,
        };
        world.create_pool();
        world
    }

    fn create_pool(&self) {
        let ready =
            json!({"type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": BEGIN});
        self.create(json!({
            "apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass",
            "metadata": {"name": "default"}, "status": {"conditions": [ready]},
        }));
        self.create(json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "default"},
            "spec": {"disruption": {"consolidateAfter": "0s"}, "template": {"spec": {
                "requirements": [], "expireAfter": "720h", "nodeClassRef": class_ref(),
            }}},
        }));
    }

    pub(crate) fn create(&self, object: Value) {
        self.server.create(object).unwrap();
    }

    /// A claim as the provisioner makes it, with changes.
    pub(crate) fn claim(&self, name: &str, over: &Value) {
        let pool = self.server.get("NodePool", "default").unwrap();
        let mut claim = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": {
                "name": name, "labels": {"karpenter.sh/nodepool": "default", "team": "web"},
                "ownerReferences": [{
                    "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "name": "default",
                    "uid": pool["metadata"]["uid"], "blockOwnerDeletion": true,
                }],
            },
            "spec": {
                "requirements": [], "nodeClassRef": class_ref(), "expireAfter": "720h",
                "taints": [{"key": "dedicated", "value": "web", "effect": "NoSchedule"}],
                "resources": {"requests": {"cpu": "1"}},
            },
        });
        merge(&mut claim, over);
        self.create(claim);
    }

    /// Starts our process: claims, pools and nodes.
    pub(crate) fn start(&mut self) {
        self.start_with(|cluster| {
            let health = Arc::default();
            let claims = node_claim::run(cluster, Arc::clone(&health));
            let (pools, nodes) = (node_pool::run(cluster, health), node::run(cluster));
            async {
                tokio::join!(claims, pools, nodes);
            }
        });
    }

    /// Starts a process of ours with some controllers only.
    pub(crate) fn start_with<F>(&mut self, controllers: impl FnOnce(&Arc<Cluster>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (recorder, mut events) = Recorder::new(10_000);
        let cloud: Arc<dyn CloudProvider> = self.cloud.clone();
        let cluster = Arc::new(Cluster::new(Parts {
            api: Api::new(self.server.client(), "test"),
            cloud,
            clock: self.clock.clone(),
            engine: Engine::Inline,
            recorder,
            metrics: Arc::clone(&self.metrics),
            settings: Arc::new(Settings::default()),
        }));
        let mut process = JoinSet::new();
        let running = controllers(&cluster);
        process.spawn(async move {
            let mut watches = Watches::start(&cluster);
            tokio::join!(running, watches.ended());
        });
        let said = Arc::clone(&self.said);
        process.spawn(async move {
            while let Some(event) = events.recv().await {
                said.lock().unwrap().push(event);
            }
        });
        self.process = Some(process);
    }

    /// Kills our process.
    pub(crate) fn kill(&mut self) {
        self.process = None;
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Waits for something to become true; says what when it does not.
    pub(crate) async fn until(&self, what: &str, mut is: impl FnMut(&ApiServer) -> bool) {
        let began = Instant::now();
        while !is(&self.server) {
            let log = || -> Vec<_> {
                let log = self.server.log();
                log.into_iter().filter(|request| request.verb.is_write()).collect()
            };
            let claims = || self.server.list("NodeClaim");
            assert!(
                began.elapsed() < PATIENCE,
                "{what}: still not so\nlog: {:#?}\nclaims: {:#?}",
                log(),
                claims()
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until a claim is Ready.
    pub(crate) async fn until_ready(&self, claim: &str) {
        self.until(&format!("{claim} is Ready"), |server| {
            condition(server, claim, "Ready").is_some_and(|(status, _)| status == "True")
        })
        .await;
    }

    /// Waits until a claim, its machine and its node are gone.
    pub(crate) async fn until_nothing_is_left(&self) {
        self.until("nothing is left", |server| {
            server.list("NodeClaim").is_empty() && server.list("Node").is_empty() && self.cloud.machines().is_empty()
        })
        .await;
    }

    /// Status and reason of a claim's condition.
    pub(crate) fn condition(&self, claim: &str, kind: &str) -> Option<(String, String)> {
        condition(&self.server, claim, kind)
    }

    /// Everything said so far: reason, object and message.
    pub(crate) fn said(&self) -> Vec<(String, String, String)> {
        let said = self.said.lock().unwrap();
        said.iter()
            .map(|event| {
                (
                    event.reason.to_string(),
                    event.object.name.to_string(),
                    event.message.clone(),
                )
            })
            .collect()
    }

    /// The writes that ended well: verb and path.
    pub(crate) fn writes(&self) -> Vec<String> {
        let log = self.server.log();
        let written = log
            .iter()
            .filter(|request| request.verb.is_write() && request.code < 300);
        let path = |path: &str| path.split('?').next().unwrap_or_default().to_owned();
        written
            .map(|request| format!("{:?} {}", request.verb, path(&request.path)))
            .collect()
    }
}

pub(crate) fn condition(server: &ApiServer, claim: &str, kind: &str) -> Option<(String, String)> {
    let claim = server.get("NodeClaim", claim)?;
    let conditions = claim["status"]["conditions"].as_array()?.clone();
    let found = conditions.into_iter().find(|condition| condition["type"] == kind)?;
    let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    Some((text("status"), text("reason")))
}

fn class_ref() -> Value {
    json!({"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"})
}

fn large() -> model::snapshot::CatalogType {
    let requirement = |key: &str, value: &str| json!({"key": key, "operator": "In", "values": [value]});
    serde_json::from_value(json!({
        "name": "large", "capacity": {"cpu": "4", "memory": "16Gi", "pods": "110"},
        "offerings": [{"price": "1", "available": true, "requirements": [
            requirement("topology.kubernetes.io/zone", "z"), requirement("karpenter.sh/capacity-type", "spot"),
        ]}],
    }))
    .unwrap()
}

/// Puts the fields of one object into another.
pub(crate) fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}

/// The name of a machine's node.
pub(crate) fn node_of(id: &str) -> String {
    format!("node-{}", id.rsplit('/').next().unwrap())
}

/// A node as its kubelet makes it.
pub(crate) fn fresh_node(name: &str, id: &str, at: Timestamp) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/os": "linux", "karpenter.kwok.sh/kwoknodeclass": "default"}},
        "spec": {"providerID": id, "taints": [{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}]},
        "status": {
            "capacity": {"cpu": "4", "memory": "16Gi", "pods": "110"},
            "allocatable": {"cpu": "4", "memory": "16Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": at.to_string()}],
        },
    })
}

/// Kubelets and the cloud's own controller: a machine that booted has a node once, and a node without a machine is
/// deleted unless somebody holds it.
async fn join(server: ApiServer, cloud: Arc<Reference>, is_mute: Arc<AtomicBool>) {
    let mut booted: std::collections::BTreeMap<String, Instant> = std::collections::BTreeMap::new();
    let mut joined: std::collections::BTreeSet<String> = std::collections::BTreeSet::new();
    loop {
        tokio::time::sleep(Duration::from_millis(100)).await;
        for machine in cloud.list().await.unwrap() {
            let id = machine.provider_id.to_string();
            let since = *booted.entry(id.clone()).or_insert_with(Instant::now);
            let is_up = since.elapsed() >= BOOT && !machine.is_terminating && !is_mute.load(Ordering::Relaxed);
            if is_up && joined.insert(id.clone()) {
                server.create(fresh_node(&node_of(&id), &id, server.now())).unwrap();
            }
        }
        let running: Vec<String> = cloud.machines().iter().map(ToString::to_string).collect();
        for node in server.list("Node") {
            let id = node["spec"]["providerID"].as_str().unwrap().to_owned();
            let is_held = node["metadata"]["finalizers"]
                .as_array()
                .is_some_and(|list| !list.is_empty());
            if joined.contains(&id) && !running.contains(&id) && !is_held {
                let _ = server.delete("Node", node["metadata"]["name"].as_str().unwrap());
            }
        }
    }
}
