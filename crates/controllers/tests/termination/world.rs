//! A cluster with nodes to end: an API server, kubelets that stop pods, a cloud, and our controllers as a process.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use cloud::{CloudError, CloudProvider, Instance, LaunchToken, Launched, NodeClassKind, RepairPolicy};
use controllers::{Cluster, Parts, node, watches::Watches};
use jiff::Timestamp;
use model::{
    object::{NodeClaim, NodePool, ProviderId},
    snapshot::CatalogType,
};
use runtime::{Api, Clock, Engine, Event, Metrics, Recorder, Settings};
use serde_json::{Value, json};
use simulator::ApiServer;
use tokio::{task::JoinSet, time::Instant};

/// When every test begins.
const BEGIN: &str = "2026-11-16T10:00:00Z";
/// How long a kubelet takes to stop a pod, unless the pod's label `stops` is `never`.
const STOPPING: Duration = Duration::from_secs(1);
/// How long the cloud takes to end a machine.
const ENDING: Duration = Duration::from_secs(7);
/// Nothing here takes longer.
const PATIENCE: Duration = Duration::from_mins(30);

/// The cluster.
pub(crate) struct World {
    pub(crate) server: ApiServer,
    pub(crate) cloud: Arc<Cloud>,
    pub(crate) metrics: Arc<Metrics>,
    clock: Clock,
    said: Arc<Mutex<Vec<Event>>>,
    process: Option<JoinSet<()>>,
    _kubelets: JoinSet<()>,
}

impl World {
    /// A cluster without nodes. Nothing of ours runs yet.
    pub(crate) fn new() -> Self {
        let clock = Clock::starting_at(BEGIN.parse().unwrap());
        let time = clock.clone();
        let server = ApiServer::new(move || time.now());
        let mut kubelets = JoinSet::new();
        kubelets.spawn(stop_pods(server.clone()));
        Self {
            server,
            cloud: Arc::default(),
            metrics: Arc::default(),
            clock,
            said: Arc::default(),
            process: None,
            _kubelets: kubelets,
        }
    }

    /// Starts our process.
    pub(crate) fn start(&mut self) {
        self.start_with(node::run);
    }

    /// Starts a process of ours with some controllers only.
    pub(crate) fn start_with<F>(&mut self, controllers: impl FnOnce(&Arc<Cluster>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (recorder, mut events) = Recorder::new(10_000);
        let parts = Parts {
            api: Api::new(self.server.client(), "test"),
            cloud: self.cloud.clone(),
            clock: self.clock.clone(),
            engine: Engine::Inline,
            recorder,
            metrics: Arc::clone(&self.metrics),
            settings: Arc::new(Settings::default()),
        };
        let cluster = Arc::new(Cluster::new(parts));
        let mut process = JoinSet::new();
        process.spawn(controllers(&cluster));
        process.spawn(async move {
            let mut watches = Watches::start(&cluster);
            watches.ended().await;
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

    /// The time.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// A node with its claim and its machine. The claim is Registered and has been for a while.
    pub(crate) fn node(&self, name: &str) {
        self.lone_node(name);
        let condition = |kind: &str| json!({"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": BEGIN, "observedGeneration": 1});
        let conditions: Vec<_> = ["Launched", "Registered", "Initialized", "Ready"].map(condition).into();
        self.create(json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": {"name": claim_of(name), "labels": {"karpenter.sh/nodepool": "default"}, "finalizers": ["karpenter.sh/termination"]},
            "spec": {"requirements": [], "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}},
            "status": {"providerID": provider_id(name), "nodeName": name, "conditions": conditions},
        }));
        self.cloud.begin(name);
    }

    /// A node of ours without a claim.
    pub(crate) fn lone_node(&self, name: &str) {
        self.create(json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "finalizers": ["karpenter.sh/termination", "example.com/other"], "labels": {
                "karpenter.sh/nodepool": "default", "karpenter.kwok.sh/kwoknodeclass": "default", "topology.kubernetes.io/zone": "z"}},
            "spec": {"providerID": provider_id(name)},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        }));
    }

    /// A running pod on a node, with changes to it.
    pub(crate) fn pod(&self, name: &str, node: &str, over: &Value) {
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"namespace": "default", "name": name, "labels": {"app": name}},
            "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]},
            "status": {"phase": "Running", "startTime": BEGIN, "conditions": [{"type": "Ready", "status": "True"}]},
        });
        merge(&mut pod, over);
        self.create(pod);
    }

    /// A budget over the pods with `app=<app>`, as the disruption controller would have computed it.
    pub(crate) fn budget(&self, name: &str, app: &str, allowed: i32) {
        self.create(json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"namespace": "default", "name": name},
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": app}}},
            "status": {"observedGeneration": 1, "disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1},
        }));
    }

    pub(crate) fn create(&self, object: Value) {
        self.server.create(object).unwrap();
    }

    /// Sets the deadline of a node's end, as the claim's life cycle would.
    pub(crate) fn set_deadline(&self, node: &str, seconds: i64) {
        let at = self.now() + jiff::SignedDuration::from_secs(seconds);
        let set = |claim: &mut Value| {
            let annotations =
                json!({"karpenter.sh/nodeclaim-termination-timestamp": at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()});
            merge(claim, &json!({"metadata": {"annotations": annotations}}));
        };
        self.server.update("NodeClaim", &claim_of(node), set).unwrap();
    }

    /// Waits for something to become true; says what when it does not.
    pub(crate) async fn until(&self, what: &str, mut is: impl FnMut(&ApiServer) -> bool) {
        let began = Instant::now();
        while !is(&self.server) {
            assert!(
                began.elapsed() < PATIENCE,
                "{what}: still not so\nsaid: {:?}\nlog: {:#?}",
                self.reasons(),
                self.server.log()
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until a node has lost our finalizer; another one keeps it.
    pub(crate) async fn until_released(&self, node: &str) {
        let ours = json!("karpenter.sh/termination");
        self.until("node released", |server| {
            let node = server.get("Node", node).unwrap();
            !node["metadata"]["finalizers"].as_array().unwrap().contains(&ours)
        })
        .await;
    }

    /// Status and reason of a condition of a node's claim.
    pub(crate) fn condition(&self, node: &str, kind: &str) -> Option<(String, String)> {
        let claim = self.server.get("NodeClaim", &claim_of(node))?;
        let conditions = claim["status"]["conditions"].as_array()?.clone();
        let found = conditions.into_iter().find(|condition| condition["type"] == kind)?;
        let text = |field: &str| found[field].as_str().unwrap().to_owned();
        Some((text("status"), text("reason")))
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

    fn reasons(&self) -> Vec<(String, String, String)> {
        let mut said = self.said();
        said.sort();
        said.dedup();
        said
    }

    /// Pods in the order in which their evictions were accepted.
    pub(crate) fn evicted(&self) -> Vec<String> {
        let answered = self.server.log().into_iter().filter(|request| request.code == 201);
        answered.filter_map(|request| evicted_pod(&request.path)).collect()
    }

    /// How often an eviction of a pod was refused with a code.
    pub(crate) fn refusals(&self, pod: &str, code: u16) -> usize {
        let log = self.server.log();
        let refused = log.iter().filter(|request| request.code == code);
        refused
            .filter(|request| evicted_pod(&request.path).as_deref() == Some(pod))
            .count()
    }
}

fn evicted_pod(path: &str) -> Option<String> {
    let name = path.strip_suffix("/eviction")?.rsplit('/').next()?;
    Some(name.to_owned())
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

pub(crate) fn claim_of(node: &str) -> String {
    format!("{node}-claim")
}

fn provider_id(node: &str) -> String {
    format!("kwok://{node}")
}

/// Kubelets: a pod that was asked to go is gone a second later.
async fn stop_pods(server: ApiServer) {
    let mut asked: BTreeMap<String, Instant> = BTreeMap::new();
    loop {
        tokio::time::sleep(Duration::from_millis(100)).await;
        for pod in server.list("Pod") {
            let going = !pod["metadata"]["deletionTimestamp"].is_null();
            if !going || pod["metadata"]["labels"]["stops"] == "never" {
                continue;
            }
            let name = pod["metadata"]["name"].as_str().unwrap();
            let since = *asked.entry(name.to_owned()).or_insert_with(Instant::now);
            if since.elapsed() >= STOPPING {
                server.delete_now("Pod", &format!("default/{name}")).unwrap();
            }
        }
    }
}

const KINDS: &[NodeClassKind] = &[NodeClassKind {
    group: "karpenter.kwok.sh",
    version: "v1alpha1",
    kind: "KWOKNodeClass",
}];

/// A cloud with machines that take a while to end.
#[derive(Default)]
pub(crate) struct Cloud {
    machines: Mutex<BTreeMap<String, Option<Instant>>>,
    deletions: Mutex<Vec<String>>,
    reboots: Mutex<Vec<String>>,
    refuses_reboots: AtomicBool,
}

impl Cloud {
    fn begin(&self, node: &str) {
        self.machines.lock().unwrap().insert(provider_id(node), None);
    }

    /// A machine is gone without anybody asking.
    pub(crate) fn lose(&self, node: &str) {
        self.machines.lock().unwrap().remove(&provider_id(node));
    }

    pub(crate) fn has(&self, node: &str) -> bool {
        self.machines.lock().unwrap().contains_key(&provider_id(node))
    }

    /// The operations that were asked for.
    pub(crate) fn reboots(&self) -> Vec<String> {
        self.reboots.lock().unwrap().clone()
    }

    /// From now on, no machine can be rebooted.
    pub(crate) fn refuse_reboots(&self) {
        self.refuses_reboots.store(true, Ordering::Relaxed);
    }

    /// How often the cloud was asked to delete something.
    pub(crate) fn deletions(&self) -> usize {
        self.deletions.lock().unwrap().len()
    }
}

#[async_trait]
impl CloudProvider for Cloud {
    fn name(&self) -> &'static str {
        "test"
    }

    fn node_classes(&self) -> &'static [NodeClassKind] {
        KINDS
    }

    async fn create(&self, _: &NodeClaim, _: &LaunchToken) -> Result<Launched, CloudError> {
        Err(CloudError::Other("nothing is launched here".to_owned()))
    }

    async fn delete(&self, claim: &NodeClaim) -> Result<(), CloudError> {
        let id = claim.status.provider_id.as_ref().unwrap().to_string();
        self.deletions.lock().unwrap().push(id.clone());
        let mut machines = self.machines.lock().unwrap();
        let Some(ending) = machines.get_mut(&id) else {
            return Err(CloudError::NotFound(id));
        };
        let since = *ending.get_or_insert_with(Instant::now);
        if since.elapsed() >= ENDING {
            machines.remove(&id);
            return Err(CloudError::NotFound(id));
        }
        Ok(())
    }

    async fn get(&self, id: &ProviderId) -> Result<Instance, CloudError> {
        if !self.machines.lock().unwrap().contains_key(id.as_str()) {
            return Err(CloudError::NotFound(id.to_string()));
        }
        Ok(Instance {
            provider_id: id.clone(),
            claim: None,
            claim_uid: None,
            launched_at: None,
            is_terminating: false,
            launched: Launched::default(),
        })
    }

    async fn list(&self) -> Result<Vec<Instance>, CloudError> {
        Ok(Vec::new())
    }

    async fn instance_types(&self, _: &NodePool) -> Result<Vec<Arc<CatalogType>>, CloudError> {
        Ok(Vec::new())
    }

    async fn is_drifted(&self, _: &NodeClaim) -> Result<Option<String>, CloudError> {
        Ok(None)
    }

    async fn reboot(&self, _: &NodeClaim, operation: &str) -> Result<(), CloudError> {
        self.reboots.lock().unwrap().push(operation.to_owned());
        if self.refuses_reboots.load(Ordering::Relaxed) {
            return Err(CloudError::RebootFailed("no such luck".to_owned()));
        }
        Ok(())
    }

    fn repair_policies(&self) -> Vec<RepairPolicy> {
        Vec::new()
    }

    fn well_known_labels(&self) -> Vec<String> {
        Vec::new()
    }
}
