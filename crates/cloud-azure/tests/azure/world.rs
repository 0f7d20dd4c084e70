//! A cluster on the Azure in memory: a node class that is judged, and a provider.

use std::{sync::Arc, time::Duration};

use api::azure::AKSNodeClass;
use async_trait::async_trait;
use cloud::{
    CloudError, CloudProvider, LaunchToken, Launched,
    conformance::{Fault, Harness},
};
use cloud_azure::{
    Azure, Controller, Parts,
    arm::{Arm, ArmParts, Environment, StaticToken},
};
use jiff::Timestamp;
use model::object::{NodeClaim, NodePool, ProviderId};
use runtime::{Api, Clock, Event, Metrics, Recorder, Settings, random::Random};
use serde_json::{Value, json};
use simulator::ApiServer;

use crate::{
    cluster::{self, POOL},
    memory::{ENDPOINT, GROUP, Memory, SUBSCRIPTION, id},
};

pub(crate) const CLUSTER: &str = "prod";
pub(crate) const SUBNET: &str = "/subscriptions/00000000-0000-0000-0000-00000000000a/resourceGroups/rg/providers/Microsoft.Network/virtualNetworks/vnet/subnets/nodes";

pub(crate) struct World {
    pub(crate) azure: Arc<Memory>,
    pub(crate) server: ApiServer,
    pub(crate) provider: Arc<Azure>,
    pub(crate) controller: Controller,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) events: tokio::sync::Mutex<tokio::sync::mpsc::Receiver<Event>>,
    clock: Clock,
}

pub(crate) fn settings() -> Settings {
    cluster::settings(|azure| {
        CLUSTER.clone_into(&mut azure.cluster_name);
        SUBNET.clone_into(&mut azure.vnet_subnet_id);
        GROUP.clone_into(&mut azure.node_resource_group);
        SUBSCRIPTION.clone_into(&mut azure.subscription_id);
        "southcentralus".clone_into(&mut azure.location);
    })
}

impl World {
    /// A cluster with a class that is ready.
    pub(crate) async fn new() -> Self {
        let world = Self::with(|_| {}).await;
        world.create("default", json!({}));
        world.settle("default").await;
        world
    }

    /// A cluster without any class.
    pub(crate) async fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = settings();
        change(&mut settings);
        let clock = Clock::starting_at("2026-11-17T10:00:00Z".parse().unwrap());
        let server = cluster::server(&clock);
        let azure = Arc::new(Memory::new());
        let metrics = Arc::new(Metrics::default());
        let arm = Arm::new(ArmParts {
            transport: Arc::clone(&azure) as _,
            credential: Arc::new(StaticToken("test".to_owned())),
            auxiliary: None,
            environment: Environment {
                endpoint: ENDPOINT.to_owned(),
                audience: ENDPOINT.to_owned(),
                authority: ENDPOINT.to_owned(),
                pricing: None,
                has_billing_extension: true,
            },
            subscription: SUBSCRIPTION.to_owned(),
            clock: clock.clone(),
            random: Random::seeded(3),
            metrics: Some(Arc::clone(&metrics)),
        });
        let (recorder, events) = Recorder::new(100);
        let provider = Azure::connect(Parts {
            api: Api::new(server.client(), "karpenter/test"),
            arm,
            clock: clock.clone(),
            settings: Arc::new(settings),
            metrics: Arc::clone(&metrics),
            recorder,
            random: Random::seeded(7),
        });
        let provider = Arc::new(provider.await.unwrap());
        Self {
            controller: Controller::new(Arc::clone(provider.reads())),
            events: tokio::sync::Mutex::new(events),
            azure,
            server,
            provider,
            metrics,
            clock,
        }
    }

    /// All metrics as they are shown.
    pub(crate) fn counted(&self) -> String {
        self.metrics.page(runtime::settings::MetricsProfile::Full).collect()
    }

    /// A class with the schema's defaults, but for what is said otherwise.
    pub(crate) fn create(&self, name: &str, spec: Value) {
        cluster::create_class(&self.server, name, &spec);
    }

    /// Looks once.
    pub(crate) async fn look(&self, name: &str) -> Result<Option<Duration>, String> {
        let class: AKSNodeClass = serde_json::from_value(cluster::class(&self.server, name)).unwrap();
        self.controller.reconcile(&class).await
    }

    pub(crate) async fn settle(&self, name: &str) -> Value {
        cluster::settle(&self.server, &self.controller, name).await
    }

    pub(crate) fn token(claim: &NodeClaim, attempt: u32) -> LaunchToken {
        cluster::token(claim, attempt)
    }

    pub(crate) async fn launch(&self, claim: &NodeClaim) -> Result<Launched, CloudError> {
        self.provider.create(claim, &Self::token(claim, 1)).await
    }

    pub(crate) fn sized(name: &str, size: &str, kind: &str) -> NodeClaim {
        cluster::sized(name, size, kind)
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

    /// The client asks four times by itself, so an answer that is to stay lost must be lost four times.
    async fn inject(&self, fault: Fault) -> bool {
        let mut state = self.azure.lock();
        match fault {
            Fault::LostResponse => state.lost = 4,
            Fault::PartialFailure => {
                let error = json!({"error": {"code": "InvalidParameter", "message": "no such key"}});
                state.refusals.push_back((400, Vec::new(), error));
                // Azure holds an interface for a while after its machine has failed.
                state.stuck_nics = 1;
            }
            Fault::ReadLag(lag) => state.hidden_until = Some(tokio::time::Instant::now() + lag),
            Fault::Throttled(wait) => {
                for _ in 0..4 {
                    let after = vec![("retry-after", wait.as_secs().to_string())];
                    let error = json!({"error": {"code": "OperationNotAllowed", "message": "too many requests"}});
                    state.refusals.push_back((429, after, error));
                }
            }
            Fault::OutOfStock => {
                let error = json!({"error": {"code": "SkuNotAvailable", "message": "none left"}});
                state.refusals.push_back((409, Vec::new(), error));
            }
        }
        true
    }

    /// Machines, and interfaces without one: they cost addresses.
    async fn machines(&self) -> Vec<ProviderId> {
        let state = self.azure.lock();
        let names = state
            .vms
            .keys()
            .chain(state.nics.keys().filter(|name| !state.vms.contains_key(*name)));
        let ids = names.map(|name| {
            format!(
                "azure://{}",
                id("Microsoft.Compute/virtualMachines", &GROUP.to_lowercase(), name)
            )
        });
        ids.map(|id| id.as_str().into()).collect()
    }

    /// A machine of another cluster in the same group.
    async fn start_foreign(&self) -> Option<ProviderId> {
        let tags = json!({"karpenter.azure.com_cluster": "other", "karpenter.sh_nodepool": POOL, "karpenter.sh_nodeclaim": "b"});
        let id = self.azure.add_vm("aks-b", tags);
        Some(format!("azure://{id}").as_str().into())
    }
}
