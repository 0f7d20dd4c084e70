//! A region of moto's, a node class in it, and a read side that says what it is told.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use api::aws::EC2NodeClass;
use async_trait::async_trait;
use aws_sdk_ec2::{
    config::{Credentials, SharedCredentialsProvider},
    types::{Filter, InstanceStateName, InstanceType, ResourceType, Tag, TagSpecification},
};
use cloud::{
    CloudError, CloudProvider, Instance, LaunchToken, Launched, NodeClassKind, Notice, RepairPolicy,
    UnavailableOffering, UnavailableOfferings,
    conformance::{Fault, Harness},
};
use cloud_aws::{
    ClientOptions, Clients, ClusterFacts, Describes, Ec2Machines, Freshness, MachineOptions, Machines,
    PlacementGroupFacts, Reads, ReservationNote, Shortage, SubnetFacts, TypeFacts,
};
use jiff::Timestamp;
use model::{
    object::{NodeClaim, NodePool, ProviderId},
    snapshot::CatalogType,
};
use rig::moto::Moto;
use runtime::{Clock, Metrics, settings::MetricsProfile};
use serde_json::{Value, json};

/// The one server of this process. It dies with it.
fn moto() -> &'static Moto {
    static MOTO: OnceLock<Moto> = OnceLock::new();
    MOTO.get_or_init(|| Moto::start().unwrap())
}

/// Worlds in one region are told apart by their number, in a tag of everything.
static WORLDS: AtomicU64 = AtomicU64::new(0);

pub(crate) const POOL: &str = "general";
/// Tells worlds apart.
const WORLD: &str = "world";
const TYPES: [(&str, &str, &str); 3] = [
    ("m5.large", "0.05", "0.096"),
    ("m5.xlarge", "0.09", "0.192"),
    ("c5.xlarge", "0.08", "0.17"),
];

#[derive(Debug)]
pub(crate) struct FixedReads {
    class: Mutex<Arc<EC2NodeClass>>,
    subnets: Vec<SubnetFacts>,
    types: Vec<Arc<CatalogType>>,
    short: Mutex<UnavailableOfferings>,
    pub(crate) shortages: Mutex<Vec<Shortage>>,
    /// Zones that are shifted away from, with their IDs.
    pub(crate) shifted: Mutex<BTreeMap<String, String>>,
    /// Claims whose class was said not to be there.
    pub(crate) told: Mutex<Vec<String>>,
    cluster: String,
    clock: DebugClock,
}

/// A clock that can be debugged.
#[derive(Clone)]
struct DebugClock(Clock);

impl std::fmt::Debug for DebugClock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0.now())
    }
}

#[async_trait]
impl Reads for FixedReads {
    async fn node_class(&self, name: &str) -> Result<Option<Arc<EC2NodeClass>>, CloudError> {
        let class = Arc::clone(&self.class.lock().unwrap());
        Ok(Some(class).filter(|class| class.metadata.name.as_deref() == Some(name)))
    }

    async fn instance_types(&self, _: &EC2NodeClass) -> Result<Vec<Arc<CatalogType>>, CloudError> {
        Ok(self.short.lock().unwrap().overlay(&self.types, self.clock.0.now()))
    }

    fn type_facts(&self, _: &str) -> Option<Arc<TypeFacts>> {
        None
    }

    async fn subnets(&self, _: &EC2NodeClass) -> Result<Vec<SubnetFacts>, CloudError> {
        Ok(self.subnets.clone())
    }

    async fn placement_group(&self, _: &EC2NodeClass) -> Result<Option<PlacementGroupFacts>, CloudError> {
        Ok(None)
    }

    async fn cluster(&self) -> Result<Arc<ClusterFacts>, CloudError> {
        Ok(Arc::new(ClusterFacts {
            name: self.cluster.clone(),
            endpoint: "https://api.example".to_owned(),
            ca_bundle: Some("Y2E=".to_owned()),
            dns_ip: Some("10.100.0.10".to_owned()),
            service_cidr: Some("10.100.0.0/16".to_owned()),
            version: "1.34".to_owned(),
            region: "us-west-2".to_owned(),
            is_ipv6: false,
        }))
    }

    fn zone_id(&self, zone: &str) -> Option<String> {
        let class = self.class.lock().unwrap();
        let mut subnets = class.status.iter().flat_map(|status| &status.subnets);
        subnets.find(|it| it.zone == zone).and_then(|it| it.zone_id.clone())
    }

    fn tell_missing(&self, claim: &NodeClaim) {
        self.told.lock().unwrap().push(claim.metadata.name.to_string());
    }

    fn shifted_zone(&self, zone: &str) -> Option<String> {
        self.shifted.lock().unwrap().get(zone).cloned()
    }

    fn mark_unavailable(&self, shortage: &Shortage) {
        self.shortages.lock().unwrap().push(shortage.clone());
        if shortage.subnet.is_some() {
            return;
        }
        let offering = UnavailableOffering {
            instance_type: shortage.instance_type.clone(),
            zone: shortage.zone.as_deref().map(Into::into),
            capacity_type: shortage.capacity_type.as_deref().map(Into::into),
            reason: shortage.reason.as_str().into(),
            retry_after: None,
        };
        self.short.lock().unwrap().mark(&offering, self.clock.0.now());
    }

    fn note_reservation(&self, _: &str, _: ReservationNote) {}
}

/// The launch side, with just enough around it to be a provider.
pub(crate) struct Provider {
    pub(crate) reads: Arc<FixedReads>,
    pub(crate) machines: Ec2Machines,
}

#[async_trait]
impl CloudProvider for Provider {
    fn name(&self) -> &'static str {
        "aws"
    }

    fn node_classes(&self) -> &'static [NodeClassKind] {
        &[]
    }

    async fn create(&self, claim: &NodeClaim, token: &LaunchToken) -> Result<Launched, CloudError> {
        self.machines.create(claim, token).await
    }

    fn offers_version(&self) -> u64 {
        let now = self.reads.clock.0.now();
        self.reads.short.lock().unwrap().version(now)
    }

    async fn delete(&self, claim: &NodeClaim) -> Result<(), CloudError> {
        self.machines.delete(claim).await
    }

    async fn get(&self, id: &ProviderId) -> Result<Instance, CloudError> {
        self.machines.get(id).await
    }

    async fn list(&self) -> Result<Vec<Instance>, CloudError> {
        self.machines.list().await
    }

    async fn instance_types(&self, _: &NodePool) -> Result<Vec<Arc<CatalogType>>, CloudError> {
        let class = Arc::clone(&self.reads.class.lock().unwrap());
        self.reads.instance_types(&class).await
    }

    /// What drift is judged by must be as it was launched.
    async fn is_drifted(&self, claim: &NodeClaim) -> Result<Option<String>, CloudError> {
        let id = claim.status.provider_id.clone().unwrap();
        let facts = self.machines.describe(&id, Freshness::Fresh).await?;
        let class = Arc::clone(&self.reads.class.lock().unwrap());
        let status = class.status.clone().unwrap();
        let groups: Vec<String> = status.security_groups.into_iter().map(|group| group.id).collect();
        let is_same = facts.security_groups == groups
            && status
                .amis
                .iter()
                .any(|image| image.id == facts.image && facts.image == *claim.status.image_id)
            && status.subnets.iter().any(|subnet| subnet.id == facts.subnet);
        Ok((!is_same).then(|| format!("{facts:?}")))
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

    async fn notices(&self) -> Result<Vec<Notice>, CloudError> {
        self.machines.notices().await
    }
}

/// A world of its own.
pub(crate) struct World {
    metrics: Arc<Metrics>,
    pub(crate) clients: Clients,
    pub(crate) provider: Provider,
    pub(crate) number: String,
    region: String,
    now: Arc<Mutex<Timestamp>>,
    hidden_until: Mutex<Option<Timestamp>>,
    options: MachineOptions,
}

/// Clients of moto in a region.
pub(crate) async fn clients(region: &str) -> Clients {
    let credentials = Credentials::new("test", "test", None, None, "test");
    let options = ClientOptions {
        region: Some(region.to_owned()),
        endpoint_url: Some(moto().url().to_owned()),
        credentials: Some(SharedCredentialsProvider::new(credentials)),
        metrics: None,
    };
    Clients::connect(options).await.unwrap()
}

impl World {
    /// A node class in a region, and nothing launched.
    pub(crate) async fn new(region: &str) -> Self {
        Self::with_queue(region, "").await
    }

    pub(crate) async fn with_queue(region: &str, queue: &str) -> Self {
        let clients = clients(region).await;
        let now = Arc::new(Mutex::new("2026-11-17T10:00:00Z".parse::<Timestamp>().unwrap()));
        let told = Arc::clone(&now);
        let clock = Clock::told_by(move || *told.lock().unwrap());
        let number = WORLDS.fetch_add(1, Ordering::SeqCst).to_string();
        let options = MachineOptions {
            cluster_name: cluster_name(&number),
            interruption_queue: queue.to_owned(),
            may_reserve: true,
            must_meet_min_values: true,
        };
        let reads = Arc::new(reads(&clients, &number, clock.clone()).await);
        let metrics = Arc::new(Metrics::default());
        let machines = Ec2Machines::new(
            &clients,
            Arc::clone(&reads) as Arc<dyn Reads>,
            clock,
            Some(Arc::clone(&metrics)),
            None,
            &options,
        );
        let world = Self {
            metrics,
            provider: Provider { reads, machines },
            region: region.to_owned(),
            hidden_until: Mutex::default(),
            clients,
            number,
            now,
            options,
        };
        for fault in ["fleet-errors", "fleet-fault", "api-errors", "hide-new"] {
            world.control(fault, &Value::Null).await;
        }
        world
    }

    /// Another process takes over: it remembers nothing.
    pub(crate) fn restart(&mut self) {
        let reads = Arc::clone(&self.provider.reads);
        let told = Arc::clone(&self.now);
        let clock = Clock::told_by(move || *told.lock().unwrap());
        self.provider.machines = Ec2Machines::new(&self.clients, reads, clock, None, None, &self.options);
    }

    /// What was counted, as a scrape reads it.
    pub(crate) fn counted(&self) -> String {
        self.metrics.page(MetricsProfile::Full).collect()
    }

    /// The cluster's name.
    pub(crate) fn cluster(&self) -> &str {
        &self.options.cluster_name
    }

    /// Changes the node class.
    pub(crate) fn change_class(&self, change: impl FnOnce(&mut EC2NodeClass)) {
        let mut class = self.provider.reads.class.lock().unwrap();
        change(Arc::make_mut(&mut class));
    }

    /// Tells moto what goes wrong from now on.
    pub(crate) async fn control(&self, what: &str, value: &Value) {
        let name = format!("/moto-control/{what}");
        let put = self
            .clients
            .ssm
            .put_parameter()
            .name(name)
            .value(value.to_string())
            .overwrite(true);
        put.r#type(aws_sdk_ssm::types::ParameterType::String)
            .send()
            .await
            .unwrap();
    }

    /// A fault that is not a repetition of an earlier one: moto counts by the rule's text.
    pub(crate) async fn once(&self, what: &str, mut value: Value) {
        static FAULTS: AtomicU64 = AtomicU64::new(0);
        let number = FAULTS.fetch_add(1, Ordering::SeqCst);
        match &mut value {
            Value::Array(rules) => rules.iter_mut().for_each(|rule| rule["number"] = number.into()),
            Value::Object(entries) if what == "api-errors" => {
                entries.values_mut().for_each(|rule| rule["number"] = number.into());
            }
            rule => rule["number"] = number.into(),
        }
        self.control(what, &value).await;
    }

    /// Everything of this world that runs.
    pub(crate) async fn running(&self) -> Vec<aws_sdk_ec2::types::Instance> {
        self.control("hide-new", &Value::Null).await;
        let filter = Filter::builder()
            .name(format!("tag:{WORLD}"))
            .values(&self.number)
            .build();
        let answer = self
            .clients
            .ec2
            .describe_instances()
            .filters(filter)
            .send()
            .await
            .unwrap();
        let is_running = |it: &aws_sdk_ec2::types::Instance| {
            let state = it.state().and_then(|state| state.name());
            state != Some(&InstanceStateName::Terminated)
        };
        let all = answer.reservations().iter().flat_map(|it| it.instances());
        let running = all.filter(|it| is_running(it)).cloned().collect();
        if self.hidden_until.lock().unwrap().is_some() {
            self.control("hide-new", &json!(true)).await;
        }
        running
    }

    pub(crate) fn token(claim: &NodeClaim, attempt: u32) -> LaunchToken {
        LaunchToken {
            claim: claim.metadata.uid.clone(),
            attempt,
        }
    }

    pub(crate) async fn create(&self, claim: &NodeClaim) -> Result<Launched, CloudError> {
        self.provider.create(claim, &Self::token(claim, 1)).await
    }

    /// A claim for these capacity types.
    pub(crate) fn claim_for(&self, name: &str, capacity_types: &[&str]) -> NodeClaim {
        let names: Vec<&str> = TYPES.iter().map(|(name, _, _)| *name).collect();
        serde_json::from_value(json!({
            "metadata": {
                "name": name, "uid": format!("{}-{name}", self.number),
                "labels": {"karpenter.sh/nodepool": POOL},
            },
            "spec": {
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                "requirements": [
                    {"key": "karpenter.sh/capacity-type", "operator": "In", "values": capacity_types},
                    {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": names},
                ],
                "resources": {"requests": {"cpu": "1"}},
            },
        }))
        .unwrap()
    }
}

async fn reads(clients: &Clients, number: &str, clock: Clock) -> FixedReads {
    let subnets = clients.ec2.describe_subnets().send().await.unwrap();
    let subnets: Vec<SubnetFacts> = subnets
        .subnets()
        .iter()
        .map(|it| SubnetFacts {
            id: it.subnet_id().unwrap().to_owned(),
            zone: it.availability_zone().unwrap().to_owned(),
            zone_id: it.availability_zone_id().unwrap().to_owned(),
            free_addresses: it.available_ip_address_count().unwrap(),
            read_at: clock.now(),
        })
        .collect();
    let groups = clients.ec2.describe_security_groups().send().await.unwrap();
    let group = groups.security_groups()[0].group_id().unwrap().to_owned();
    let image = clients
        .ec2
        .register_image()
        .name(format!("image-{number}"))
        .architecture(aws_sdk_ec2::types::ArchitectureValues::X8664)
        .root_device_name("/dev/xvda");
    let image = image.send().await.unwrap().image_id().unwrap().to_owned();
    let zones: Vec<&str> = subnets.iter().map(|it| it.zone.as_str()).collect();
    FixedReads {
        types: TYPES.iter().map(|it| catalogue_type(*it, &zones)).collect(),
        class: Mutex::new(Arc::new(class(&subnets, &group, &image, number))),
        subnets,
        short: Mutex::default(),
        shortages: Mutex::default(),
        shifted: Mutex::default(),
        told: Mutex::default(),
        cluster: cluster_name(number),
        clock: DebugClock(clock),
    }
}

/// Worlds share a region, not a cluster.
fn cluster_name(number: &str) -> String {
    format!("dev-{number}")
}

fn class(subnets: &[SubnetFacts], group: &str, image: &str, number: &str) -> EC2NodeClass {
    let subnets: Vec<Value> = subnets
        .iter()
        .map(|it| json!({"id": it.id, "zone": it.zone, "zoneID": it.zone_id}))
        .collect();
    let amd64 = json!({"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]});
    serde_json::from_value(json!({
        "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass",
        "metadata": {"name": "default", "generation": 1},
        "spec": {
            "role": "KarpenterNodeRole-dev",
            "amiSelectorTerms": [{"alias": "al2023@latest"}],
            "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": "dev"}}],
            "securityGroupSelectorTerms": [{"tags": {"karpenter.sh/discovery": "dev"}}],
            "tags": {WORLD: number},
            "metadataOptions": {"httpEndpoint": "enabled", "httpProtocolIPv6": "disabled", "httpPutResponseHopLimit": 1, "httpTokens": "required"},
        },
        "status": {
            "subnets": subnets, "securityGroups": [{"id": group}], "instanceProfile": "profile",
            "amis": [{"id": image, "requirements": [amd64]}],
            "conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "message": "", "observedGeneration": 1,
                "lastTransitionTime": "2026-11-17T10:00:00Z"}],
        },
    }))
    .unwrap()
}

fn catalogue_type((name, spot, on_demand): (&str, &str, &str), zones: &[&str]) -> Arc<CatalogType> {
    let requirement = |key: &str, values: &[&str]| json!({"key": key, "operator": "In", "values": values});
    let offering = |zone: &str, kind: &str, price: &str| {
        let requirements = [
            requirement("topology.kubernetes.io/zone", &[zone]),
            requirement("karpenter.sh/capacity-type", &[kind]),
        ];
        json!({"price": price, "available": true, "requirements": requirements})
    };
    let offerings: Vec<Value> = zones
        .iter()
        .flat_map(|zone| [offering(zone, "spot", spot), offering(zone, "on-demand", on_demand)])
        .collect();
    Arc::new(
        serde_json::from_value(json!({
            "name": name,
            "capacity": {"cpu": "4", "memory": "8Gi", "pods": "29"},
            "requirements": [
                requirement("node.kubernetes.io/instance-type", &[name]),
                requirement("kubernetes.io/arch", &["amd64"]),
                requirement("topology.kubernetes.io/zone", zones),
                requirement("karpenter.sh/capacity-type", &["spot", "on-demand"]),
            ],
            "offerings": offerings,
        }))
        .unwrap(),
    )
}

#[async_trait]
impl Harness for World {
    fn cloud(&self) -> &dyn CloudProvider {
        &self.provider
    }

    fn claim(&self, name: &str) -> NodeClaim {
        self.claim_for(name, &["spot", "on-demand"])
    }

    fn pool(&self) -> NodePool {
        let reference = json!({"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"});
        let spec = json!({"template": {"spec": {"nodeClassRef": reference, "requirements": []}}});
        serde_json::from_value(json!({"metadata": {"name": POOL}, "spec": spec})).unwrap()
    }

    fn now(&self) -> Timestamp {
        *self.now.lock().unwrap()
    }

    async fn advance(&self, by: Duration) {
        let now = {
            let mut now = self.now.lock().unwrap();
            *now = now.checked_add(by).unwrap();
            *now
        };
        let is_over = {
            let mut until = self.hidden_until.lock().unwrap();
            let is_over = until.is_some_and(|until| until <= now);
            if is_over {
                *until = None;
            }
            is_over
        };
        if is_over {
            self.control("hide-new", &Value::Null).await;
        }
    }

    /// The SDK asks three times by itself, so an answer that is to stay lost must be lost three times.
    async fn inject(&self, fault: Fault) -> bool {
        match fault {
            Fault::LostResponse => self.once("fleet-fault", json!({"mode": "lost", "times": 3})).await,
            Fault::PartialFailure => self.once("fleet-fault", json!({"mode": "refused", "times": 1})).await,
            Fault::ReadLag(lag) => {
                *self.hidden_until.lock().unwrap() = Some(Harness::now(self).checked_add(lag).unwrap());
                self.control("hide-new", &json!(true)).await;
            }
            Fault::Throttled(_) => {
                let rule = json!({"code": "RequestLimitExceeded", "message": "slow down", "times": 3});
                self.once("api-errors", json!({"CreateFleet": rule})).await;
            }
            Fault::OutOfStock => {
                let rule = json!({"code": "InsufficientInstanceCapacity", "message": "none left"});
                self.once("fleet-errors", json!([rule])).await;
            }
        }
        true
    }

    async fn machines(&self) -> Vec<ProviderId> {
        let id = |it: &aws_sdk_ec2::types::Instance| {
            let zone = it.placement().and_then(|it| it.availability_zone()).unwrap();
            format!("aws:///{zone}/{}", it.instance_id().unwrap()).as_str().into()
        };
        self.running().await.iter().map(id).collect()
    }

    /// A machine of another cluster in the same account.
    async fn start_foreign(&self) -> Option<ProviderId> {
        let tags: BTreeMap<&str, &str> = [
            (WORLD, self.number.as_str()),
            ("eks:eks-cluster-name", "prod"),
            ("karpenter.sh/nodepool", POOL),
            ("karpenter.k8s.aws/ec2nodeclass", "default"),
            ("karpenter.sh/nodeclaim", "b"),
        ]
        .into();
        let tags = tags
            .iter()
            .map(|(key, value)| Tag::builder().key(*key).value(*value).build())
            .collect();
        let tagged = TagSpecification::builder()
            .resource_type(ResourceType::Instance)
            .set_tags(Some(tags))
            .build();
        let class = Arc::clone(&self.provider.reads.class.lock().unwrap());
        let image = class.status.as_ref().unwrap().amis[0].id.clone();
        let run = self
            .clients
            .ec2
            .run_instances()
            .image_id(image)
            .instance_type(InstanceType::M5Large);
        let answer = run
            .min_count(1)
            .max_count(1)
            .tag_specifications(tagged)
            .send()
            .await
            .unwrap();
        let it = &answer.instances()[0];
        let zone = it.placement().and_then(|it| it.availability_zone()).unwrap();
        Some(format!("aws:///{zone}/{}", it.instance_id().unwrap()).as_str().into())
    }
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "world {} in {}", self.number, self.region)
    }
}
