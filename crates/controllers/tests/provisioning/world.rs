//! A cluster with pods that have no place: an API server, a cloud that launches after a while, and our controllers as a
//! process.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use cloud::{CloudError, CloudProvider, Instance, LaunchToken, Launched, NodeClassKind, RepairPolicy};
use controllers::{
    Cluster, Parts,
    capacity_buffer::CapacityBuffers,
    node_overlay::NodeOverlays,
    provisioning::{self, Batch},
    run,
    static_capacity::{StaticDeprovisioning, StaticProvisioning},
    watches::Watches,
};
use model::{
    object::{InstanceTypeName, NodeClaim, NodePool, ProviderId},
    snapshot::{Catalog, CatalogType},
};
use runtime::{Api, Clock, Engine, Event, Metrics, Recorder, Settings};
use serde_json::{Value, json};
use simulator::{ApiServer, Resource};
use tokio::{task::JoinSet, time::Instant};

const BEGIN: &str = "2026-11-16T10:00:00Z";
/// Nothing here takes longer.
const PATIENCE: Duration = Duration::from_mins(30);

/// The cluster.
pub(crate) struct World {
    pub(crate) server: ApiServer,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) settings: Settings,
    clock: Clock,
    said: Arc<Mutex<Vec<Event>>>,
    process: Option<JoinSet<()>>,
    machines: JoinSet<()>,
}

impl World {
    /// An empty cluster, with every feature switched on. Nothing of ours runs yet.
    pub(crate) fn new() -> Self {
        let clock = Clock::starting_at(BEGIN.parse().unwrap());
        let time = clock.clone();
        let mut settings = Settings::default();
        let gates = &mut settings.decisions.feature_gates;
        (gates.static_capacity, gates.node_overlay, gates.capacity_buffer) = (true, true, true);
        let server = ApiServer::new(move || time.now());
        server.define(&Resource::new("karpenter.sh", "nodeoverlays"), "NodeOverlay", false);
        Self {
            server,
            metrics: Arc::default(),
            settings,
            clock,
            said: Arc::default(),
            process: None,
            machines: JoinSet::new(),
        }
    }

    /// Starts our process.
    pub(crate) fn start(&mut self) {
        let (recorder, mut events) = Recorder::new(100_000);
        let parts = Parts {
            api: Api::new(self.server.client(), "test"),
            cloud: Arc::new(Cloud),
            clock: self.clock.clone(),
            engine: Engine::Inline,
            recorder,
            metrics: Arc::clone(&self.metrics),
            settings: Arc::new(self.settings.clone()),
        };
        let cluster = Arc::new(Cluster::new(parts));
        let pools = self.server.list("NodePool");
        cluster.fold(|state| {
            state.set_catalog(catalog(&pools));
            None
        });
        let mut process = JoinSet::new();
        let batch = Arc::new(Batch::default());
        process.spawn(provisioning::run(&cluster, &batch));
        process.spawn(run(Arc::new(StaticProvisioning), Arc::clone(&cluster)).1);
        process.spawn(run(Arc::new(StaticDeprovisioning), Arc::clone(&cluster)).1);
        process.spawn(run(Arc::new(NodeOverlays), Arc::clone(&cluster)).1);
        process.spawn(run(Arc::new(CapacityBuffers::new(batch)), Arc::clone(&cluster)).1);
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

    /// From now on, claims are launched so long after they were made, as the largest type they admit.
    pub(crate) fn launch_after(&mut self, delay: Duration) {
        self.machines.spawn(launch(self.server.clone(), delay));
    }

    /// Takes a claim away, whoever wants to see to its end.
    pub(crate) fn remove_claim(&self, name: &str) {
        let let_go = |claim: &mut Value| claim["metadata"]["finalizers"] = json!([]);
        self.server.update("NodeClaim", name, let_go).unwrap();
        self.server.delete("NodeClaim", name).unwrap();
    }

    /// A ready pool with this much more in its spec.
    pub(crate) fn pool(&self, name: &str, spec: &Value) {
        let mut pool = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": { "name": name, "generation": 1 },
            "spec": { "template": { "spec": {
                "requirements": [], "expireAfter": "720h",
                "nodeClassRef": { "group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default" },
            } } },
            "status": { "conditions": [{ "type": "Ready", "status": "True", "reason": "Ready", "message": "",
                "lastTransitionTime": BEGIN }] },
        });
        for (key, value) in spec.as_object().into_iter().flatten() {
            pool["spec"][key] = value.clone();
        }
        self.create(pool);
    }

    /// A pod of so many cores that kube-scheduler found no place for.
    pub(crate) fn pending(&self, name: &str, cores: u32) {
        self.create(json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name, "namespace": "default" },
            "spec": { "containers": [{ "name": "c", "resources": { "requests": { "cpu": cores.to_string() } } }] },
            "status": { "phase": "Pending", "conditions": [
                { "type": "PodScheduled", "status": "False", "reason": "Unschedulable" },
            ] },
        }));
    }

    /// Creates an object as it is given.
    pub(crate) fn create(&self, object: Value) {
        self.server.create(object).unwrap();
    }

    /// The claims there are.
    pub(crate) fn claims(&self) -> Vec<Value> {
        self.server.list("NodeClaim")
    }

    /// What the claims ask for together: cores and pods.
    pub(crate) fn asked(&self) -> (u64, u64) {
        let claims = self.claims();
        let sum = |resource: &str| {
            let asked = claims
                .iter()
                .map(|claim| &claim["spec"]["resources"]["requests"][resource]);
            asked.map(|asked| asked.as_str().unwrap().parse::<u64>().unwrap()).sum()
        };
        (sum("cpu"), sum("pods"))
    }

    /// What was said, as reason, object and message.
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

    /// Waits until something holds.
    pub(crate) async fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let give_up = Instant::now() + PATIENCE;
        while !holds(self) {
            assert!(Instant::now() < give_up, "not within {PATIENCE:?}: {what}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

async fn launch(server: ApiServer, delay: Duration) {
    let mut changes = server.changes();
    while changes.recv().await.is_some() {
        let waiting = server.list("NodeClaim").into_iter();
        for claim in waiting.filter(|claim| claim["status"]["providerID"].is_null()) {
            let name = claim["metadata"]["name"].as_str().unwrap().to_owned();
            let server = server.clone();
            tokio::spawn(async move {
                tokio::time::sleep(delay).await;
                let _ = server.update("NodeClaim", &name, launched);
            });
        }
    }
}

/// What a launch writes on a claim.
fn launched(claim: &mut Value) {
    let requirements = claim["spec"]["requirements"].as_array().unwrap();
    let types = requirements
        .iter()
        .find(|it| it["key"] == "node.kubernetes.io/instance-type");
    let is_admitted = |name: &str| types.is_none_or(|it| it["values"].as_array().unwrap().contains(&json!(name)));
    let (name, cores) = if is_admitted("large") {
        ("large", "8")
    } else {
        ("small", "2")
    };
    let resources = json!({ "cpu": cores, "memory": "16Gi", "pods": "100" });
    claim["status"]["providerID"] = json!(format!("kwok://{}", claim["metadata"]["name"].as_str().unwrap()));
    claim["status"]["capacity"] = resources.clone();
    claim["status"]["allocatable"] = resources;
    for (key, value) in [
        ("node.kubernetes.io/instance-type", name),
        ("karpenter.sh/capacity-type", "on-demand"),
        ("topology.kubernetes.io/zone", "z"),
        ("kubernetes.io/arch", "amd64"),
        ("kubernetes.io/os", "linux"),
    ] {
        claim["metadata"]["labels"][key] = json!(value);
    }
}

/// The types small (2 cores, 1 $/h) and large (8 cores, 3 $/h) for every pool.
fn catalog(pools: &[Value]) -> Catalog {
    let names = ["small", "large"].map(InstanceTypeName::from);
    let pool = |pool: &Value| {
        (
            pool["metadata"]["name"].as_str().unwrap().into(),
            names.iter().cloned().collect(),
        )
    };
    Catalog {
        instance_types: vec![instance_type("small", 2, "1"), instance_type("large", 8, "3")],
        node_pool_instance_types: pools.iter().map(pool).collect(),
        ..Catalog::default()
    }
}

fn instance_type(name: &str, cores: u32, price: &str) -> Arc<CatalogType> {
    let is = |key: &str, value: &str| json!({ "key": key, "operator": "In", "values": [value] });
    let here = [
        is("topology.kubernetes.io/zone", "z"),
        is("karpenter.sh/capacity-type", "on-demand"),
    ];
    let mut requirements = vec![
        is("node.kubernetes.io/instance-type", name),
        is("kubernetes.io/arch", "amd64"),
        is("kubernetes.io/os", "linux"),
    ];
    requirements.extend(here.clone());
    let entry = json!({
        "name": name, "requirements": requirements,
        "capacity": { "cpu": cores.to_string(), "memory": "16Gi", "pods": "100" },
        "offerings": [{ "price": price, "available": true, "requirements": here }],
    });
    Arc::new(serde_json::from_value(entry).unwrap())
}

/// A cloud that nobody asks: claims are launched by the test.
struct Cloud;

const KINDS: &[NodeClassKind] = &[NodeClassKind {
    group: "karpenter.kwok.sh",
    version: "v1alpha1",
    kind: "KWOKNodeClass",
}];

#[async_trait]
impl CloudProvider for Cloud {
    fn name(&self) -> &'static str {
        "test"
    }

    fn node_classes(&self) -> &'static [NodeClassKind] {
        KINDS
    }

    async fn create(&self, _: &NodeClaim, _: &LaunchToken) -> Result<Launched, CloudError> {
        Err(CloudError::Other("nobody asks".to_owned()))
    }

    async fn delete(&self, _: &NodeClaim) -> Result<(), CloudError> {
        Ok(())
    }

    async fn get(&self, _: &ProviderId) -> Result<Instance, CloudError> {
        Err(CloudError::NotFound("nobody asks".to_owned()))
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

    async fn reboot(&self, _: &NodeClaim, _: &str) -> Result<(), CloudError> {
        Err(CloudError::RebootNotImplemented)
    }

    fn repair_policies(&self) -> Vec<RepairPolicy> {
        Vec::new()
    }

    fn well_known_labels(&self) -> Vec<String> {
        Vec::new()
    }
}
