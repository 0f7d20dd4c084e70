//! A cluster in a region of the double, with a launch side that says what it is told.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use api::{aws::EC2NodeClass, provider::Provider};
use async_trait::async_trait;
use aws_sdk_ec2::types::{ArchitectureValues, ResourceType, Tag, TagSpecification};
use cloud::{CloudError, Instance, LaunchToken, Launched, Notice};
use cloud_aws::{
    Clients, Controller, Describes, Freshness, MachineFacts, Machines, Parts, ReadSide, Rehearsal, RehearsalFailure,
};
use model::object::{NodeClaim, ProviderId};
use runtime::{Api, Clock, Metrics, Recorder, Settings, random::Random};
use serde_json::{Value, json};
use simulator::ApiServer;

use crate::double;

pub(crate) const TRUE: &str = "True";

/// A launch side that says what it is told, and notes what it was asked.
#[derive(Default)]
pub(crate) struct Told {
    pub(crate) refusal: Mutex<Option<RehearsalFailure>>,
    pub(crate) asked: Mutex<Vec<String>>,
    pub(crate) listed: Mutex<Vec<Instance>>,
}

fn not_asked<T>() -> Result<T, CloudError> {
    Err(CloudError::Other("not asked".to_owned()))
}

#[async_trait]
impl Describes for Told {
    async fn describe(&self, _: &ProviderId, _: Freshness) -> Result<MachineFacts, CloudError> {
        not_asked()
    }
}

#[async_trait]
impl Machines for Told {
    async fn create(&self, _: &NodeClaim, _: &LaunchToken) -> Result<Launched, CloudError> {
        not_asked()
    }

    async fn resume(&self, _: &[Arc<NodeClaim>]) -> Result<(), CloudError> {
        not_asked()
    }

    async fn delete(&self, _: &NodeClaim) -> Result<(), CloudError> {
        not_asked()
    }

    async fn get(&self, _: &ProviderId) -> Result<Instance, CloudError> {
        not_asked()
    }

    async fn list(&self) -> Result<Vec<Instance>, CloudError> {
        Ok(self.listed.lock().unwrap().clone())
    }

    fn gives_notice(&self) -> bool {
        false
    }

    async fn notices(&self) -> Result<Vec<Notice>, CloudError> {
        not_asked()
    }

    async fn acknowledge(&self, _: &Notice) -> Result<(), CloudError> {
        not_asked()
    }

    async fn rehearse(&self, rehearsal: &Rehearsal<'_>) -> Result<(), RehearsalFailure> {
        let asked = format!(
            "rehearse {} {} {}",
            rehearsal.instance_type.name, rehearsal.image.id, rehearsal.tenancy
        );
        self.asked.lock().unwrap().push(asked);
        self.refusal.lock().unwrap().clone().map_or(Ok(()), Err)
    }

    async fn delete_launch_templates(&self, node_class: &str) -> Result<(), CloudError> {
        self.asked
            .lock()
            .unwrap()
            .push(format!("delete templates of {node_class}"));
        Ok(())
    }

    async fn run(&self) {}
}

/// A cluster in a region of its own.
pub(crate) struct World {
    pub(crate) clients: Clients,
    pub(crate) server: ApiServer,
    pub(crate) machines: Arc<Told>,
    pub(crate) read: Arc<ReadSide>,
    pub(crate) controller: Controller,
    pub(crate) events: tokio::sync::mpsc::Receiver<runtime::Event>,
    pub(crate) cluster: String,
    later: Arc<Mutex<Duration>>,
}

pub(crate) const ROLE: &str = "KarpenterNodeRole";

impl World {
    pub(crate) async fn new(region: &str) -> Self {
        Self::with(region, |_| {}).await
    }

    pub(crate) async fn with(region: &str, change: impl FnOnce(&mut Settings)) -> Self {
        let clients = double::clients(region).await;
        let cluster = format!("cluster-{region}");
        seed(&clients, &cluster).await;
        let (server, events, read, later) = connect(&clients, &cluster, change).await.unwrap();
        let machines = Arc::new(Told::default());
        let controller = Controller::new(Arc::clone(&read), Arc::clone(&machines) as Arc<dyn Machines>);
        Self {
            clients,
            server,
            machines,
            read,
            controller,
            events,
            cluster,
            later,
        }
    }

    /// A class that finds everything, but for what is said otherwise.
    pub(crate) fn create(&self, name: &str, change: Value) {
        self.server.create(class(name, &self.cluster, change)).unwrap();
    }

    pub(crate) fn stored(&self, name: &str) -> Value {
        self.server.get("EC2NodeClass", name).unwrap()
    }

    /// Looks once and returns the class.
    pub(crate) async fn look(&self, name: &str) -> Result<Value, String> {
        let class: EC2NodeClass = serde_json::from_value(self.stored(name)).unwrap();
        self.controller.reconcile(&class).await?;
        Ok(self.server.get("EC2NodeClass", name).unwrap_or_default())
    }

    /// Looks until something fails, and returns what.
    pub(crate) async fn fail(&self, name: &str) -> String {
        for _ in 0..5 {
            if let Err(error) = self.look(name).await {
                return error;
            }
        }
        panic!("{:#}", self.stored(name))
    }

    /// Looks until the status is settled: the hash is written beside the status, so the first look may have to give way.
    pub(crate) async fn settle(&self, name: &str) -> Value {
        for _ in 0..5 {
            let before = self.stored(name);
            let after = self.look(name).await.unwrap();
            if before == after {
                return after;
            }
        }
        self.stored(name)
    }

    /// So much later, caches are so much older.
    pub(crate) fn advance(&self, by: Duration) {
        *self.later.lock().unwrap() += by;
    }
}

type Connected = (
    ApiServer,
    tokio::sync::mpsc::Receiver<runtime::Event>,
    Arc<ReadSide>,
    Arc<Mutex<Duration>>,
);

/// A read side over an API server of its own.
pub(crate) async fn connect(
    clients: &Clients,
    cluster: &str,
    change: impl FnOnce(&mut Settings),
) -> Result<Connected, CloudError> {
    let server = ApiServer::new(|| Clock::system().now());
    for definition in api::crds::installation(&[Provider::Aws]) {
        server.create(serde_json::to_value(definition).unwrap()).unwrap();
    }
    let api = Api::new(server.client(), "karpenter/test");
    let (recorder, events) = Recorder::new(100);
    let mut settings = Settings::default();
    cluster.clone_into(&mut settings.aws.cluster_name);
    "https://example.com".clone_into(&mut settings.aws.cluster_endpoint);
    "Y2E=".clone_into(&mut settings.aws.cluster_ca_bundle);
    change(&mut settings);
    let later = Arc::new(Mutex::new(Duration::ZERO));
    let by = Arc::clone(&later);
    let clock = Clock::told_by(move || Clock::system().now().checked_add(*by.lock().unwrap()).unwrap());
    let read = ReadSide::connect(Parts {
        api,
        clients: clients.clone(),
        clock,
        settings: Arc::new(settings),
        metrics: Arc::new(Metrics::default()),
        recorder,
        random: Random::seeded(7),
    });
    Ok((server, events, Arc::new(read.await?), later))
}

pub(crate) fn pool(name: &str) -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name},
        "spec": {"template": {"spec": {
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
            "requirements": [],
        }}},
    })
}

pub(crate) fn class(name: &str, cluster: &str, change: Value) -> Value {
    let mut spec = json!({
        "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": cluster}}],
        "securityGroupSelectorTerms": [{"tags": {"karpenter.sh/discovery": cluster}}],
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "role": ROLE,
        // As the API server fills it in.
        "metadataOptions": {
            "httpEndpoint": "enabled", "httpProtocolIPv6": "disabled",
            "httpPutResponseHopLimit": 1, "httpTokens": "required",
        },
    });
    for (key, value) in change.as_object().unwrap() {
        match value {
            Value::Null => {
                spec.as_object_mut().unwrap().remove(key);
            }
            value => spec[key] = value.clone(),
        }
    }
    json!({"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": name}, "spec": spec})
}

pub(crate) fn condition<'a>(class: &'a Value, kind: &str) -> [&'a str; 3] {
    let conditions = class["status"]["conditions"].as_array().unwrap();
    let found = conditions.iter().find(|it| it["type"] == kind);
    let found = found.unwrap_or_else(|| panic!("no condition {kind}"));
    ["status", "reason", "message"].map(|key| found[key].as_str().unwrap_or_default())
}

fn tags(kind: ResourceType, pairs: &[(&str, &str)]) -> TagSpecification {
    let tag = |(key, value): &(&str, &str)| Tag::builder().key(*key).value(*value).build();
    TagSpecification::builder()
        .resource_type(kind)
        .set_tags(Some(pairs.iter().map(tag).collect()))
        .build()
}

/// Subnets, a security group, images and the parameters that name them, a role, a cluster.
pub(crate) async fn seed(clients: &Clients, cluster: &str) {
    let discovery = ("karpenter.sh/discovery", cluster);
    let subnets = clients.ec2.describe_subnets().send().await.unwrap();
    let mut ids: Vec<(String, String)> = subnets
        .subnets()
        .iter()
        .map(|it| {
            let zone = it.availability_zone().unwrap().to_owned();
            (zone, it.subnet_id().unwrap().to_owned())
        })
        .collect();
    ids.sort();
    ids.dedup_by(|one, two| one.0 == two.0);
    let tag = Tag::builder().key(discovery.0).value(discovery.1).build();
    let resources = ids.iter().take(2).map(|(_, id)| id.clone()).collect();
    let tagged = clients.ec2.create_tags().set_resources(Some(resources)).tags(tag);
    tagged.send().await.unwrap();
    clients
        .ec2
        .create_security_group()
        .group_name(format!("nodes-{cluster}"))
        .description("nodes")
        .tag_specifications(tags(ResourceType::SecurityGroup, &[discovery]))
        .send()
        .await
        .unwrap();
    let mut parameters = serde_json::Map::new();
    for (arch, word, variant) in [
        (ArchitectureValues::X8664, "x86_64", "standard"),
        (ArchitectureValues::Arm64, "arm64", "standard"),
        (ArchitectureValues::X8664, "x86_64", "nvidia"),
    ] {
        let id = image(clients, &format!("al2023-{word}-{variant}"), arch, "").await;
        let path =
            format!("/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/{word}/{variant}/recommended/image_id");
        parameters.insert(path, json!(id));
    }
    double::tell(clients, "aws-params", &Value::Object(parameters)).await;
    let trust = json!({"Version": "2012-10-17", "Statement": []}).to_string();
    // IAM is one for all regions: another test may have made it.
    let _ = clients
        .iam
        .create_role()
        .role_name(ROLE)
        .assume_role_policy_document(trust)
        .send()
        .await;
    let network = aws_sdk_eks::types::VpcConfigRequest::builder()
        .subnet_ids(&ids[0].1)
        .build();
    clients
        .eks
        .create_cluster()
        .name(cluster)
        .role_arn("arn:aws:iam::123456789012:role/eks")
        .resources_vpc_config(network)
        .send()
        .await
        .unwrap();
}

pub(crate) async fn image(clients: &Clients, name: &str, arch: ArchitectureValues, description: &str) -> String {
    let made = clients
        .ec2
        .register_image()
        .name(name)
        .architecture(arch)
        .description(description)
        .tag_specifications(tags(ResourceType::Image, &[("team", "nodes")]))
        .send()
        .await
        .unwrap();
    made.image_id().unwrap().to_owned()
}
