//! A cluster on the double: a node class that is judged, and a provider.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use arm::{
    Double,
    knob::{Effect, Fault as Cut, Graph, Knob, Plant, PlantKind},
};
use async_trait::async_trait;
use cloud::{
    CloudError, CloudProvider, LaunchToken, Launched,
    conformance::{Fault, Harness},
};
use cloud_azure::{
    Azure, Controller, Parts,
    arm::{Arm, ArmParts, Credential, Environment, StaticToken, Transport},
};
use jiff::Timestamp;
use model::object::{NodeClaim, NodePool, ProviderId};
use runtime::{Api, Clock, Event, Metrics, Recorder, Settings, random::Random, settings::AzureSettings};
use serde_json::{Value, json};
use simulator::ApiServer;
use tokio::sync::{Mutex, mpsc::Receiver};

use crate::{
    cluster::{self, POOL},
    wire::Wire,
};

pub(crate) const PUT_VM: &str = "VirtualMachines_CreateOrUpdate";
pub(crate) const PUT_NIC: &str = "NetworkInterfaces_CreateOrUpdate";
pub(crate) const PUT_MACHINE: &str = "Machines_CreateOrUpdate";
/// Every mode in which machines come to be.
pub(crate) const MODES: [&str; 4] = [
    "aksscriptless",
    "bootstrappingclient",
    "aksmachineapi",
    "aksmachineapiheaderbatch",
];
/// The client asks four times by itself: what is to stay lost must be lost four times.
pub(crate) const EVERY_TRY: Option<u32> = Some(4);

pub(crate) struct World {
    pub(crate) double: Double,
    pub(crate) wire: Wire,
    pub(crate) server: ApiServer,
    pub(crate) provider: Arc<Azure>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) events: Mutex<Receiver<Event>>,
    pub(crate) clock: Clock,
    settings: Arc<Settings>,
    controller: Controller,
}

pub(crate) fn environment(double: &Double) -> Environment {
    Environment {
        endpoint: double.url(),
        audience: "https://management.azure.com".to_owned(),
        authority: double.url(),
        pricing: Some(double.url()),
        has_billing_extension: true,
    }
}

pub(crate) fn settings(double: &Double) -> Settings {
    let setup = double.setup();
    cluster::settings(|azure| {
        setup.cluster.clone_into(&mut azure.cluster_name);
        azure.vnet_subnet_id = setup.subnet_id();
        setup.node_group.clone_into(&mut azure.node_resource_group);
        setup.subscription.clone_into(&mut azure.subscription_id);
        setup.region.clone_into(&mut azure.location);
    })
}

/// What a mode needs beside that.
pub(crate) fn set_mode(azure: &mut AzureSettings, mode: &str, double: &Double) {
    let setup = double.setup();
    mode.clone_into(&mut azure.provision_mode);
    setup.cluster_group.clone_into(&mut azure.resource_group);
    if mode == "bootstrappingclient" {
        azure.node_bootstrapping_server_url = double.url();
    } else if mode != "aksscriptless" {
        azure.use_sig = true;
        "sig-subscription".clone_into(&mut azure.sig_subscription_id);
        setup.pool.clone_into(&mut azure.aks_machines_pool_name);
    }
}

/// The provider's client of a double.
pub(crate) fn client(double: &Double, wire: &Wire, clock: &Clock, credential: Arc<dyn Credential>) -> Arm {
    Arm::new(ArmParts {
        transport: Arc::new(wire.clone()) as Arc<dyn Transport>,
        credential,
        auxiliary: None,
        environment: environment(double),
        subscription: double.setup().subscription.clone(),
        clock: clock.clone(),
        random: Random::seeded(3),
        metrics: None,
    })
}

impl World {
    /// A cluster with a class that is ready.
    pub(crate) async fn new() -> Self {
        Self::in_mode("aksscriptless").await
    }

    /// The same, where machines come to be otherwise.
    pub(crate) async fn in_mode(mode: &str) -> Self {
        let world = Self::with(|settings, double| set_mode(&mut settings.azure, mode, double)).await;
        world.create("default", json!({}));
        let class = world.settle("default").await;
        let conditions = class["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let is_ready = |it: &Value| it["type"] == "Ready" && it["status"] == "True";
        assert!(conditions.iter().any(is_ready), "{class}");
        world
    }

    /// A cluster without any class.
    pub(crate) async fn with(change: impl FnOnce(&mut Settings, &Double)) -> Self {
        let clock = Clock::starting_at("2026-11-17T10:00:00Z".parse().unwrap());
        let server = cluster::server(&clock);
        let (wire, double) = Wire::start(&clock).await;
        let mut settings = settings(&double);
        change(&mut settings, &double);
        let settings = Arc::new(settings);
        let metrics = Arc::new(Metrics::default());
        let (recorder, events) = Recorder::new(100);
        let provider = Azure::connect(Parts {
            api: Api::new(server.client(), "karpenter/test"),
            arm: client(&double, &wire, &clock, Arc::new(StaticToken("test".to_owned()))),
            clock: clock.clone(),
            settings: Arc::clone(&settings),
            metrics: Arc::clone(&metrics),
            recorder,
            random: Random::seeded(7),
        });
        let provider = Arc::new(provider.await.unwrap());
        Self {
            controller: Controller::new(Arc::clone(provider.reads())),
            events: Mutex::new(events),
            double,
            wire,
            server,
            provider,
            metrics,
            clock,
            settings,
        }
    }

    /// What makes a machine here.
    fn put(&self) -> &'static str {
        match self.settings.azure.provision_mode.as_str() {
            "aksscriptless" | "bootstrappingclient" => PUT_VM,
            _ => PUT_MACHINE,
        }
    }

    /// Another process on the same cluster and Azure, which remembers nothing.
    pub(crate) async fn another_process(&self) -> Azure {
        let (recorder, _events) = Recorder::new(100);
        let connected = Azure::connect(Parts {
            api: Api::new(self.server.client(), "karpenter/test"),
            arm: client(
                &self.double,
                &self.wire,
                &self.clock,
                Arc::new(StaticToken("test".to_owned())),
            ),
            clock: self.clock.clone(),
            settings: Arc::clone(&self.settings),
            metrics: Arc::clone(&self.metrics),
            recorder,
            random: Random::seeded(8),
        });
        connected.await.unwrap()
    }

    /// The double, at the time it is now.
    pub(crate) fn azure(&self) -> &Double {
        self.wire.tick();
        &self.double
    }

    /// Cuts an operation of the double off so many times; none is always.
    pub(crate) fn cut(&self, operation: &str, effect: Effect, times: Option<u32>) {
        let cut = Cut::next(operation, effect).times(times);
        self.azure().turn(Knob::Fault(cut)).unwrap();
    }

    /// A class with the schema's defaults, but for what is said otherwise.
    pub(crate) fn create(&self, name: &str, spec: Value) {
        cluster::create_class(&self.server, name, &spec);
    }

    pub(crate) async fn settle(&self, name: &str) -> Value {
        cluster::settle(&self.server, &self.controller, name).await
    }

    pub(crate) fn token(claim: &NodeClaim) -> LaunchToken {
        cluster::token(claim, 1)
    }

    pub(crate) async fn launch(&self, claim: &NodeClaim) -> Result<Launched, CloudError> {
        self.provider.create(claim, &Self::token(claim)).await
    }

    pub(crate) fn sized(name: &str, size: &str, kind: &str) -> NodeClaim {
        cluster::sized(name, size, kind)
    }

    /// The claim as the API server has it, once it is stored there.
    pub(crate) fn store(&self, claim: &NodeClaim) -> NodeClaim {
        let mut stored = serde_json::to_value(claim).unwrap();
        stored["apiVersion"] = json!("karpenter.sh/v1");
        stored["kind"] = json!("NodeClaim");
        stored["metadata"].as_object_mut().unwrap().remove("uid");
        self.server.create(stored).unwrap();
        serde_json::from_value(self.server.get("NodeClaim", &claim.metadata.name).unwrap()).unwrap()
    }

    /// Deletes until nothing is left of a claim, as its finalizer does.
    pub(crate) async fn delete(&self, claim: &NodeClaim) {
        for _ in 0..50 {
            match self.provider.delete(claim).await {
                Ok(()) => tokio::time::sleep(Duration::from_secs(5)).await,
                Err(CloudError::NotFound(_)) => return,
                Err(error) => panic!("{error}"),
            }
        }
        panic!("{} is not gone", claim.metadata.name);
    }

    /// What goes on beside the calls, for a while.
    pub(crate) async fn run_for(&self, time: Duration) {
        let work = tokio::spawn(Arc::clone(&self.provider).run(None));
        tokio::time::sleep(time).await;
        work.abort();
        let _ = work.await;
    }

    /// What every test ends with: nothing that the contract forbids was asked, and nothing is left over.
    pub(crate) fn judge(&self) {
        assert_eq!(self.fault_found(), None);
        assert!(self.azure().vms().is_empty(), "{:?}", self.double.vms());
    }

    /// What is wrong with this Azure, whatever machines there are.
    pub(crate) fn fault_found(&self) -> Option<String> {
        let (violations, leftovers) = (self.azure().violations(), self.double.leftovers());
        let is_well = violations.is_empty() && leftovers.is_empty();
        (!is_well).then(|| format!("against the contract: {violations:#?}; left over: {leftovers:?}"))
    }

    fn provider_id(&self, name: &str) -> ProviderId {
        let setup = self.double.setup();
        let (subscription, group) = (&setup.subscription, setup.node_group.to_lowercase());
        let id = format!(
            "azure:///subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Compute/virtualMachines/{name}"
        );
        id.as_str().into()
    }
}

#[async_trait]
impl Harness for World {
    fn cloud(&self) -> &dyn CloudProvider {
        &*self.provider
    }

    fn claim(&self, name: &str) -> NodeClaim {
        cluster::any(name)
    }

    fn pool(&self) -> NodePool {
        cluster::pool()
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    async fn advance(&self, by: Duration) {
        tokio::time::sleep(by).await;
    }

    async fn inject(&self, fault: Fault) -> bool {
        let refusal = |status: u16, code: &str, retry_after: Option<u64>| Effect::Sync {
            status,
            code: code.to_owned(),
            message: None,
            retry_after,
        };
        match fault {
            Fault::LostResponse => self.cut(self.put(), Effect::Lost {}, EVERY_TRY),
            // An interface is there already; AKS makes the whole of it, and says later that it could not.
            Fault::PartialFailure if self.put() == PUT_VM => {
                self.cut(PUT_VM, refusal(400, "InvalidParameter", None), Some(1));
            }
            Fault::PartialFailure => {
                let effect = Effect::Async {
                    code: "InternalExecutionError".to_owned(),
                    message: None,
                };
                self.cut(PUT_MACHINE, effect, Some(1));
            }
            Fault::ReadLag(lag) => {
                let lag = Graph {
                    lag_seconds: Some(i64::try_from(lag.as_secs()).unwrap()),
                    ..Graph::default()
                };
                self.azure().turn(Knob::Graph(lag)).unwrap();
            }
            Fault::Throttled(wait) => {
                let wait = Some(wait.as_secs());
                self.cut(self.put(), refusal(429, "TooManyRequests", wait), EVERY_TRY);
            }
            Fault::OutOfStock => self.cut(self.put(), refusal(409, "SkuNotAvailable", None), Some(1)),
        }
        true
    }

    /// Machines, and interfaces without one: they cost addresses. A user's own machine is not counted.
    async fn machines(&self) -> Vec<ProviderId> {
        let state = self.azure().state();
        let vms = state.vms.iter().map(|vm| vm.name.clone());
        let loose = state.nics.iter().filter(|nic| nic.vm.is_none());
        let names = vms.chain(loose.map(|nic| nic.name.clone()));
        names
            .filter(|name| name != "jumpbox")
            .map(|name| self.provider_id(&name))
            .collect()
    }

    /// A machine of another cluster in the same group.
    async fn start_foreign(&self) -> Option<ProviderId> {
        let tags = [
            ("karpenter.azure.com_cluster", "other"),
            ("karpenter.sh_nodepool", POOL),
            ("karpenter.sh_nodeclaim", "b"),
        ];
        let tags: BTreeMap<String, String> = tags
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect();
        let (kind, name) = match self.put() {
            PUT_VM => (PlantKind::Vm, "aks-b"),
            _ => (PlantKind::Machine, "b"),
        };
        let plant = Plant {
            kind,
            name: name.to_owned(),
            tags,
        };
        self.azure().turn(Knob::Plant(plant)).unwrap();
        // AKS gives its virtual machines names of its own.
        let of_aks = self.double.vms().into_iter().find(|vm| vm.machine);
        Some(self.provider_id(&of_aks.map_or_else(|| name.to_owned(), |vm| vm.name)))
    }
}
