//! Node classes against the double of AWS and an API server in this process: conditions, reasons and messages.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot be set up fails")]
#![expect(clippy::needless_pass_by_value, reason = "manifests are written where they are used")]

mod double;

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

use api::{aws::EC2NodeClass, provider::Provider};
use async_trait::async_trait;
use aws_sdk_ec2::types::{ArchitectureValues, ResourceType, Tag, TagSpecification};
use cloud::{CloudError, Instance, LaunchToken, Launched, Notice};
use cloud_aws::{
    Clients, Controller, Describes, Failure, Freshness, MachineFacts, Machines, Parts, ReadSide, Reads, Rehearsal,
    RehearsalFailure,
};
use model::object::{NodeClaim, ProviderId};
use runtime::{Api, Clock, Metrics, Recorder, Settings, random::Random};
use serde_json::{Value, json};
use simulator::ApiServer;

/// A launch side that says what it is told, and notes what it was asked.
#[derive(Default)]
struct Told {
    refusal: Mutex<Option<RehearsalFailure>>,
    asked: Mutex<Vec<String>>,
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
        not_asked()
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
struct World {
    clients: Clients,
    server: ApiServer,
    machines: Arc<Told>,
    read: Arc<ReadSide>,
    controller: Controller,
    events: tokio::sync::mpsc::Receiver<runtime::Event>,
    cluster: String,
}

const ROLE: &str = "KarpenterNodeRole";

impl World {
    async fn new(region: &str) -> Self {
        Self::with(region, |_| {}).await
    }

    async fn with(region: &str, change: impl FnOnce(&mut Settings)) -> Self {
        let clients = double::clients(region).await;
        let cluster = format!("cluster-{region}");
        seed(&clients, &cluster).await;
        let (server, events, read) = connect(&clients, &cluster, change).await.unwrap();
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
        }
    }

    /// A class that finds everything, but for what is said otherwise.
    fn create(&self, name: &str, change: Value) {
        self.server.create(class(name, &self.cluster, change)).unwrap();
    }

    fn stored(&self, name: &str) -> Value {
        self.server.get("EC2NodeClass", name).unwrap()
    }

    /// Looks once and returns the class.
    async fn look(&self, name: &str) -> Result<Value, String> {
        let class: EC2NodeClass = serde_json::from_value(self.stored(name)).unwrap();
        self.controller.reconcile(&class).await?;
        Ok(self.server.get("EC2NodeClass", name).unwrap_or_default())
    }

    /// Looks until something fails, and returns what.
    async fn fail(&self, name: &str) -> String {
        for _ in 0..5 {
            if let Err(error) = self.look(name).await {
                return error;
            }
        }
        panic!("{:#}", self.stored(name))
    }

    /// Looks until the status is settled: the hash is written beside the status, so the first look may have to give way.
    async fn settle(&self, name: &str) -> Value {
        for _ in 0..5 {
            let before = self.stored(name);
            let after = self.look(name).await.unwrap();
            if before == after {
                return after;
            }
        }
        self.stored(name)
    }
}

type Connected = (ApiServer, tokio::sync::mpsc::Receiver<runtime::Event>, Arc<ReadSide>);

/// A read side over an API server of its own.
async fn connect(
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
    let read = ReadSide::connect(Parts {
        api,
        clients: clients.clone(),
        clock: Clock::system(),
        settings: Arc::new(settings),
        metrics: Arc::new(Metrics::default()),
        recorder,
        random: Random::seeded(7),
    });
    Ok((server, events, Arc::new(read.await?)))
}

fn pool(name: &str) -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name},
        "spec": {"template": {"spec": {
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
            "requirements": [],
        }}},
    })
}

fn class(name: &str, cluster: &str, change: Value) -> Value {
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

fn condition<'a>(class: &'a Value, kind: &str) -> [&'a str; 3] {
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
async fn seed(clients: &Clients, cluster: &str) {
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

async fn image(clients: &Clients, name: &str, arch: ArchitectureValues, description: &str) -> String {
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

const TRUE: &str = "True";

#[tokio::test]
async fn a_class_whose_selectors_find_everything_is_ready_and_says_what_they_found() {
    let world = World::new("us-west-2").await;
    world.create("default", json!({"tags": {"team": "blue"}}));
    let class = world.settle("default").await;
    for kind in [
        "AMIsReady",
        "SubnetsReady",
        "SecurityGroupsReady",
        "InstanceProfileReady",
        "ValidationSucceeded",
        "PlacementGroupReady",
        "CapacityReservationsReady",
        "Ready",
    ] {
        assert_eq!(condition(&class, kind), [TRUE, kind, ""], "{class:#}");
    }
    assert_eq!(
        class["metadata"]["finalizers"],
        json!(["karpenter.k8s.aws/termination"])
    );
    let annotations = class["metadata"]["annotations"].as_object().unwrap();
    assert_eq!(annotations["karpenter.k8s.aws/ec2nodeclass-hash-version"], "v5");
    let typed: EC2NodeClass = serde_json::from_value(class.clone()).unwrap();
    assert_eq!(
        annotations["karpenter.k8s.aws/ec2nodeclass-hash"],
        typed.hash(Some("Y2E="))
    );
    let status = &class["status"];
    let zones: Vec<_> = status["subnets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["zone"])
        .collect();
    assert_eq!(zones.len(), 2);
    assert!(status["subnets"][0]["zoneID"].as_str().unwrap().starts_with("usw2-az"));
    assert_eq!(status["securityGroups"][0]["name"], "nodes-cluster-us-west-2");
    let images = status["amis"].as_array().unwrap();
    assert_eq!(images.len(), 3);
    let nvidia = images.iter().find(|it| it["name"] == "al2023-x86_64-nvidia").unwrap();
    assert_eq!(
        nvidia["requirements"],
        json!([
            {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
            {"key": "karpenter.k8s.aws/instance-gpu-count", "operator": "Exists"},
        ])
    );
    // The profile carries the role, lies where only ours lie, and bears our tags and the class's.
    let name = status["instanceProfile"].as_str().unwrap();
    assert!(name.starts_with("cluster-us-west-2_"), "{name}");
    let profile = world
        .clients
        .iam
        .get_instance_profile()
        .instance_profile_name(name)
        .send()
        .await
        .unwrap();
    let profile = profile.instance_profile().unwrap();
    assert_eq!(profile.roles()[0].role_name(), ROLE);
    let uid = class["metadata"]["uid"].as_str().unwrap();
    assert_eq!(profile.path(), format!("/karpenter/us-west-2/cluster-us-west-2/{uid}/"));
    let mut tags: Vec<_> = profile.tags().iter().map(|tag| (tag.key(), tag.value())).collect();
    tags.sort_unstable();
    let expected = [
        ("eks:eks-cluster-name", "cluster-us-west-2"),
        ("karpenter.k8s.aws/ec2nodeclass", "default"),
        ("kubernetes.io/cluster/cluster-us-west-2", "owned"),
        ("team", "blue"),
        ("topology.kubernetes.io/region", "us-west-2"),
    ];
    assert_eq!(tags, expected);
    // Nothing changes when it is looked at again, and EC2 is not asked for the same dry runs.
    let asked = world.machines.asked.lock().unwrap().len();
    assert_eq!(asked, 1, "{:?}", world.machines.asked);
    assert_eq!(world.look("default").await.unwrap(), class);
    assert_eq!(world.machines.asked.lock().unwrap().len(), asked);
}

#[tokio::test]
async fn a_class_whose_selectors_find_nothing_says_which() {
    let world = World::new("us-east-2").await;
    let nothing = json!([{"tags": {"karpenter.sh/discovery": "nobody"}}]);
    world.create(
        "default",
        json!({
            "subnetSelectorTerms": nothing, "securityGroupSelectorTerms": nothing,
            "amiSelectorTerms": nothing, "amiFamily": "AL2023",
            "placementGroupSelector": {"name": "nowhere"},
        }),
    );
    let class = world.settle("default").await;
    let cases = [
        ("AMIsReady", "AMINotFound", "AMISelector did not match any AMIs"),
        (
            "SubnetsReady",
            "SubnetsNotFound",
            "SubnetSelector did not match any Subnets",
        ),
        (
            "SecurityGroupsReady",
            "SecurityGroupsNotFound",
            "SecurityGroupSelector did not match any SecurityGroups",
        ),
        (
            "PlacementGroupReady",
            "PlacementGroupNotFound",
            r#"Placement group "nowhere" not found"#,
        ),
        (
            "ValidationSucceeded",
            "DependenciesNotReady",
            "Awaiting AMI, Instance Profile, Security Group, and Subnet resolution",
        ),
    ];
    for (kind, reason, message) in cases {
        assert_eq!(condition(&class, kind), ["False", reason, message]);
    }
    assert_eq!(condition(&class, "InstanceProfileReady")[0], TRUE);
    assert_eq!(condition(&class, "Ready")[0], "False");
    assert_eq!(class["status"]["subnets"], Value::Null);
    assert_eq!(world.machines.asked.lock().unwrap().len(), 0, "nothing is tried");
}

#[tokio::test]
async fn a_role_that_is_written_with_its_path_keeps_its_profile_over_a_restart() {
    let world = World::new("eu-central-1").await;
    world.create("default", json!({"role": format!("team/{ROLE}")}));
    let class = world.settle("default").await;
    let profile = class["status"]["instanceProfile"].as_str().unwrap().to_owned();
    // The next process remembers nothing of IAM.
    let (server, _events, read) = connect(&world.clients, &world.cluster, |_| {}).await.unwrap();
    let controller = Controller::new(read, Arc::clone(&world.machines) as Arc<dyn Machines>);
    server.create(class.clone()).unwrap();
    let class: EC2NodeClass = serde_json::from_value(server.get("EC2NodeClass", "default").unwrap()).unwrap();
    controller.reconcile(&class).await.unwrap();
    let class = server.get("EC2NodeClass", "default").unwrap();
    assert_eq!(class["status"]["instanceProfile"], profile);
}

#[tokio::test]
async fn an_image_that_could_not_be_asked_for_does_not_count_as_gone() {
    let world = World::new("ap-northeast-2").await;
    let of_gpus = "/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64/nvidia/recommended/image_id";
    let parameters = world
        .clients
        .ssm
        .get_parameter()
        .name("/moto-control/aws-params")
        .send()
        .await
        .unwrap();
    let known: Value = serde_json::from_str(parameters.parameter().unwrap().value().unwrap()).unwrap();
    let mut cut = known.clone();
    cut[of_gpus] = json!("error:ThrottlingException");
    double::tell(&world.clients, "aws-params", &cut).await;
    world.create("default", json!({}));
    let refused = world.fail("default").await;
    assert!(
        refused.contains("getting amis") && refused.contains("ThrottlingException"),
        "{refused}"
    );
    double::tell(&world.clients, "aws-params", &known).await;
    let class = world.settle("default").await;
    assert_eq!(class["status"]["amis"].as_array().unwrap().len(), 3, "{class:#}");
}

#[tokio::test]
async fn images_are_found_by_id_parameter_name_and_tags() {
    let world = World::new("eu-west-1").await;
    let (old, new) = (
        "created=2026-01-01T00:00:00Z",
        "created=2026-02-01T00:00:00Z;deprecated=2026-03-01T00:00:00Z",
    );
    let kept = image(&world.clients, "mine-1", ArchitectureValues::X8664, old).await;
    let deprecated = image(&world.clients, "mine-2", ArchitectureValues::X8664, new).await;
    let put = world.clients.ssm.put_parameter().name("/my/image").value(&deprecated);
    put.r#type(aws_sdk_ssm::types::ParameterType::String)
        .send()
        .await
        .unwrap();
    let cases = [
        ("by-id", json!([{"id": deprecated}]), vec![&deprecated]),
        (
            "by-parameter",
            json!([{"ssmParameter": "/my/image"}]),
            vec![&deprecated],
        ),
        ("by-name", json!([{"name": "mine-*"}]), vec![&kept]),
        (
            "by-tags",
            json!([{"tags": {"team": "*"}, "name": "mine-*"}]),
            vec![&kept],
        ),
        (
            "by-missing-parameter",
            json!([{"ssmParameter": "/not/there"}, {"id": kept}]),
            vec![&kept],
        ),
    ];
    for (name, terms, expected) in cases {
        world.create(name, json!({"amiSelectorTerms": terms, "amiFamily": "AL2023"}));
        let class = world.settle(name).await;
        let ids: Vec<_> = class["status"]["amis"]
            .as_array()
            .unwrap_or_else(|| panic!("{name}: {class:#}"))
            .iter()
            .map(|it| it["id"].as_str().unwrap())
            .collect();
        assert_eq!(ids, expected, "{name}");
    }
    let class = world.stored("by-id");
    assert_eq!(class["status"]["amis"][0]["deprecated"], true);
}

#[tokio::test]
async fn an_alias_without_images_for_this_kubernetes_is_refused_for_good() {
    let world = World::new("eu-north-1").await;
    world.create("default", json!({"amiSelectorTerms": [{"alias": "al2@latest"}]}));
    let error = world.fail("default").await;
    assert!(
        error.contains("AL2 aliases are no longer supported on EKS 1.33+"),
        "{error}"
    );
    let [status, reason, _] = condition(&world.stored("default"), "AMIsReady").map(str::to_owned);
    assert_eq!([status.as_str(), reason.as_str()], ["False", "UnsupportedAlias"]);
}

#[tokio::test]
async fn a_role_that_does_not_exist_leaves_no_profile_behind() {
    let world = World::new("us-west-1").await;
    world.create("default", json!({"role": "nobody"}));
    let error = world.fail("default").await;
    assert!(error.contains("creating instance profile"), "{error}");
    assert_eq!(
        condition(&world.stored("default"), "InstanceProfileReady")[0],
        "Unknown"
    );
    let profiles = world
        .clients
        .iam
        .list_instance_profiles()
        .path_prefix("/karpenter/us-west-1/");
    assert_eq!(profiles.send().await.unwrap().instance_profiles().len(), 0);
    let error = world.fail("default").await;
    assert!(
        error.contains("role not found"),
        "IAM is not asked again within a minute: {error}"
    );
}

#[tokio::test]
async fn another_role_gets_another_profile_and_a_named_profile_is_taken_as_it_is() {
    let world = World::new("eu-west-2").await;
    let trust = json!({"Version": "2012-10-17", "Statement": []}).to_string();
    let other = world.clients.iam.create_role().role_name("other-eu-west-2");
    other.assume_role_policy_document(trust).send().await.unwrap();
    world.create("default", json!({}));
    let profile = |class: &Value| class["status"]["instanceProfile"].as_str().unwrap().to_owned();
    let first = profile(&world.settle("default").await);
    let change = |role: Option<&str>, named: Option<&str>| {
        world
            .server
            .update("EC2NodeClass", "default", |class| {
                class["spec"]["role"] = json!(role);
                class["spec"]["instanceProfile"] = json!(named);
                class["spec"]
                    .as_object_mut()
                    .unwrap()
                    .retain(|_, value| !value.is_null());
            })
            .unwrap();
    };
    change(Some("other-eu-west-2"), None);
    let second = profile(&world.settle("default").await);
    assert_ne!(first, second);
    // The first still serves machines that run: it stays.
    let still = world
        .clients
        .iam
        .get_instance_profile()
        .instance_profile_name(&first)
        .send()
        .await;
    assert!(still.is_ok());
    change(None, Some("mine"));
    assert_eq!(profile(&world.settle("default").await), "mine");
}

#[tokio::test]
async fn what_ec2_does_not_allow_is_said_in_the_condition_and_remembered() {
    let world = World::new("eu-west-3").await;
    let denied = Failure {
        code: "UnauthorizedOperation".to_owned(),
        message: "You are not authorized to perform this operation.".to_owned(),
        status: Some(403),
    };
    *world.machines.refusal.lock().unwrap() = Some(RehearsalFailure::CreateFleet(denied));
    world.create("default", json!({}));
    let class = world.settle("default").await;
    let because = "User is not authorized to perform this operation because no identity-based policy allows it";
    let message = format!("Controller isn't authorized to call ec2:CreateFleet: {because}");
    assert_eq!(
        condition(&class, "ValidationSucceeded"),
        ["False", "CreateFleetAuthCheckFailed", &message]
    );
    assert_eq!(
        world.machines.asked.lock().unwrap().len(),
        1,
        "one try for half an hour"
    );
}

#[tokio::test]
async fn without_dry_runs_nothing_is_tried() {
    let world = World::with("ap-south-1", |settings| settings.aws.disable_dry_run = true).await;
    world.create("default", json!({}));
    assert_eq!(condition(&world.settle("default").await, "Ready")[0], TRUE);
    assert_eq!(world.machines.asked.lock().unwrap().len(), 0);
}

#[tokio::test]
async fn the_type_that_is_tried_is_one_that_a_pool_of_the_class_could_launch() {
    let world = World::new("ap-northeast-1").await;
    let pool = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "arm"},
        "spec": {"template": {"spec": {
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
            "requirements": [
                {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["c7g.large"]},
                {"key": "karpenter.k8s.aws/instance-tenancy", "operator": "In", "values": ["dedicated"]},
            ],
        }}},
    });
    world.server.create(pool).unwrap();
    world.create("default", json!({}));
    let class = world.settle("default").await;
    let images = class["status"]["amis"].as_array().unwrap();
    let arm = images.iter().find(|it| it["name"] == "al2023-arm64-standard").unwrap();
    let expected = format!("rehearse c7g.large {} dedicated", arm["id"].as_str().unwrap());
    assert_eq!(*world.machines.asked.lock().unwrap(), [expected]);
}

#[tokio::test]
async fn capacity_reservations_and_placement_groups_are_found() {
    let world = World::new("ap-southeast-1").await;
    let reservation = |id: &str, criteria: &str| {
        json!({
            "CapacityReservationId": id, "InstanceType": "m5.large", "AvailabilityZone": "ap-southeast-1a",
            "OwnerId": "123456789012", "InstanceMatchCriteria": criteria, "State": "active",
            "AvailableInstanceCount": 3, "TotalInstanceCount": 4, "ReservationType": "default",
            "Tags": [{"Key": "team", "Value": "nodes"}],
        })
    };
    double::tell(
        &world.clients,
        "capacity-reservations",
        &json!([reservation("cr-2", "open"), reservation("cr-1", "targeted")]),
    )
    .await;
    let group = json!([{"GroupName": "near", "GroupId": "pg-1", "Strategy": "cluster", "State": "available"}]);
    double::tell(&world.clients, "placement-groups", &group).await;
    world.create(
        "default",
        json!({
            "capacityReservationSelectorTerms": [{"tags": {"team": "nodes"}}, {"id": "cr-9"}],
            "placementGroupSelector": {"name": "near"},
        }),
    );
    let class = world.settle("default").await;
    assert_eq!(condition(&class, "PlacementGroupReady")[0], TRUE);
    let found: Vec<_> = class["status"]["capacityReservations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| {
            (
                it["id"].as_str().unwrap(),
                it["instanceMatchCriteria"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(found, [("cr-1", "targeted"), ("cr-2", "open")]);
}

#[tokio::test]
async fn a_class_waits_for_its_claims_and_takes_along_what_was_made_for_it() {
    let mut world = World::new("ca-central-1").await;
    world.create("default", json!({}));
    let class = world.settle("default").await;
    let profile = class["status"]["instanceProfile"].as_str().unwrap().to_owned();
    let claim = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": "default-x"},
        "spec": {
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
            "requirements": [],
        },
    });
    world.server.create(claim).unwrap();
    world.server.delete("EC2NodeClass", "default").unwrap();
    world.look("default").await.unwrap();
    let event = world.events.try_recv().unwrap();
    assert_eq!(&*event.reason, "WaitingOnNodeClaimTermination");
    assert_eq!(event.message, "Waiting on NodeClaim termination for default-x");
    assert!(world.server.get("EC2NodeClass", "default").is_some());
    world.server.delete_now("NodeClaim", "default-x").unwrap();
    world.look("default").await.unwrap();
    assert!(world.server.get("EC2NodeClass", "default").is_none());
    let gone = world
        .clients
        .iam
        .get_instance_profile()
        .instance_profile_name(&profile)
        .send()
        .await;
    assert!(gone.is_err());
    assert!(
        world
            .machines
            .asked
            .lock()
            .unwrap()
            .contains(&"delete templates of default".to_owned())
    );
}

/// Waits for something of the stored class, and fails with the class when it does not come.
async fn await_class(server: &ApiServer, name: &str, is_so: impl Fn(Option<&Value>) -> bool) {
    let come = async {
        while !is_so(server.get("EC2NodeClass", name).as_ref()) {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    let come = tokio::time::timeout(std::time::Duration::from_mins(1), come).await;
    assert!(come.is_ok(), "{:#?}", server.get("EC2NodeClass", name));
}

#[tokio::test]
async fn a_class_that_waits_goes_with_the_last_of_its_claims_and_not_minutes_later() {
    let World {
        server,
        controller,
        mut events,
        cluster,
        ..
    } = World::new("eu-south-1").await;
    let run = tokio::spawn(Arc::new(controller).run());
    server.create(class("default", &cluster, json!({}))).unwrap();
    let is_ready = |class: Option<&Value>| {
        let conditions = class.and_then(|class| class["status"]["conditions"].as_array());
        let mut conditions = conditions.into_iter().flatten();
        conditions.any(|it| it["type"] == "Ready" && it["status"] == "True")
    };
    await_class(&server, "default", is_ready).await;
    let claim = |name: &str| {
        json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": name},
            "spec": {
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                "requirements": [],
            },
        })
    };
    for name in ["default-x", "default-y"] {
        server.create(claim(name)).unwrap();
    }
    server.delete("EC2NodeClass", "default").unwrap();
    let told = tokio::time::timeout(std::time::Duration::from_mins(1), events.recv()).await;
    assert_eq!(&*told.unwrap().unwrap().reason, "WaitingOnNodeClaimTermination");
    server.delete_now("NodeClaim", "default-x").unwrap();
    server.delete_now("NodeClaim", "default-y").unwrap();
    await_class(&server, "default", |class| class.is_none()).await;
    run.abort();
}

/// The zones of a class in which something can be had.
async fn zones_on_offer(world: &World) -> BTreeSet<String> {
    let class: EC2NodeClass = serde_json::from_value(world.stored("default")).unwrap();
    let types = world.read.instance_types(&class).await.unwrap();
    let offered = types.iter().flat_map(|it| &it.offerings).filter(|it| it.available);
    let zone = |it: &model::snapshot::CatalogOffering| {
        let zone = it
            .requirements
            .iter()
            .find(|it| it.key == "topology.kubernetes.io/zone");
        zone.and_then(|it| it.values.first().cloned())
    };
    offered.filter_map(zone).collect()
}

#[tokio::test]
async fn nothing_is_offered_in_a_zone_while_it_is_shifted_away_from_and_pools_are_told() {
    let region = "ap-southeast-2";
    let clients = double::clients(region).await;
    double::tell(&clients, "zonal-shifts", &json!([])).await;
    let mut world = World::with(region, |settings| settings.aws.enable_zonal_shift = true).await;
    world.create("default", json!({}));
    world.server.create(pool("general")).unwrap();
    let class = world.settle("default").await;
    let subnet = &class["status"]["subnets"][0];
    let (zone, id) = (subnet["zone"].as_str().unwrap(), subnet["zoneID"].as_str().unwrap());
    assert!(zones_on_offer(&world).await.contains(zone));
    let shift = |seconds: i64| {
        let until = Clock::system().now().as_second() + seconds;
        json!([{
            "appliedStatus": "APPLIED", "awayFrom": id, "expiryTime": until, "startTime": 0, "comment": "",
            "zonalShiftIdentifier": "s", "resourceIdentifier": "r",
        }])
    };
    double::tell(&clients, "zonal-shifts", &shift(3600)).await;
    world.read.follow_zonal_shift().await.unwrap();
    assert!(!zones_on_offer(&world).await.contains(zone));
    let event = world.events.try_recv().unwrap();
    let message = format!("Zonal shift detected: offerings in zone {zone} ({id}) are unavailable for this NodePool");
    assert_eq!((&*event.reason, &event.message), ("ZonalShiftActive", &message));
    // One that is over counts no longer, whether or not ARC still lists it.
    double::tell(&clients, "zonal-shifts", &shift(-1)).await;
    world.read.follow_zonal_shift().await.unwrap();
    assert!(zones_on_offer(&world).await.contains(zone));
    assert_eq!(&*world.events.try_recv().unwrap().reason, "ZonalShiftCleared");
}

#[tokio::test]
async fn a_cluster_that_arc_does_not_know_ends_the_start_with_a_reason() {
    let region = "ap-northeast-3";
    let clients = double::clients(region).await;
    let cluster = format!("cluster-{region}");
    seed(&clients, &cluster).await;
    let refused = connect(&clients, &cluster, |settings| settings.aws.enable_zonal_shift = true).await;
    let refused = refused.map(|_| ()).unwrap_err().to_string();
    assert!(refused.contains("cluster not registered to Zonal Shift"), "{refused}");
    assert!(refused.contains("ENABLE_ZONAL_SHIFT"), "{refused}");
}

#[tokio::test]
async fn claims_get_the_hash_of_the_new_recipe_unless_they_count_as_drifted() {
    let world = World::new("sa-east-1").await;
    world.create("default", json!({}));
    let claim = |name: &str, conditions: Value| {
        json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": {"name": name, "annotations": {
                "karpenter.k8s.aws/ec2nodeclass-hash": "old",
                "karpenter.k8s.aws/ec2nodeclass-hash-version": "v1",
            }},
            "spec": {
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                "requirements": [], "expireAfter": "720h",
            },
            "status": {"conditions": conditions},
        })
    };
    let drifted = json!([{
        "type": "Drifted", "status": "True", "reason": "Drifted", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]);
    world.server.create(claim("well", json!([]))).unwrap();
    world.server.create(claim("drifted", drifted)).unwrap();
    let class = world.settle("default").await;
    let hash = &class["metadata"]["annotations"]["karpenter.k8s.aws/ec2nodeclass-hash"];
    let of = |name: &str, key: &str| {
        let claim = world.server.get("NodeClaim", name).unwrap();
        claim["metadata"]["annotations"][format!("karpenter.k8s.aws/ec2nodeclass-{key}")].clone()
    };
    assert_eq!(
        [of("well", "hash"), of("well", "hash-version")],
        [hash.clone(), json!("v5")]
    );
    assert_eq!(
        [of("drifted", "hash"), of("drifted", "hash-version")],
        [json!("old"), json!("v5")]
    );
}
