//! What the selectors of a class find, and which conditions say so.

use api::aws::EC2NodeClass;
use serde_json::{Value, json};

use crate::world::{ROLE, TRUE, World, condition};

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

/// What a condition of these says of the class's subnets and security groups.
fn found(class: &Value) -> (Vec<&str>, Vec<&str>, [&str; 2]) {
    let ids = |key: &str| {
        let listed = class["status"][key].as_array().map(Vec::as_slice).unwrap_or_default();
        listed.iter().map(|it| it["id"].as_str().unwrap()).collect::<Vec<_>>()
    };
    let states = ["SubnetsReady", "SecurityGroupsReady"].map(|kind| condition(class, kind)[0]);
    (ids("subnets"), ids("securityGroups"), states)
}

#[tokio::test]
async fn other_selectors_find_others_and_one_that_finds_nothing_takes_out_what_was_there() {
    let world = World::new("me-south-1").await;
    world.create("default", json!({}));
    let first = world.settle("default").await;
    let (subnets, groups, states) = found(&first);
    assert_eq!((subnets.len(), groups.len(), states), (2, 1, [TRUE, TRUE]));
    let all = world.clients.ec2.describe_security_groups().send().await.unwrap();
    let all = all.security_groups().iter().filter_map(|it| it.group_id());
    let other = all.into_iter().find(|id| *id != groups[0]).unwrap().to_owned();
    let select = |subnets: Value, groups: Value| {
        let change = |class: &mut Value| {
            class["spec"]["subnetSelectorTerms"] = subnets;
            class["spec"]["securityGroupSelectorTerms"] = groups;
        };
        world.server.update("EC2NodeClass", "default", change).unwrap();
    };
    // By ID, of those that tags had found, and of those they had not.
    select(json!([{"id": subnets[1]}]), json!([{"id": groups[0]}, {"id": other}]));
    let by_id = world.settle("default").await;
    let mut expected = vec![groups[0], other.as_str()];
    expected.sort_unstable();
    assert_eq!(found(&by_id), (vec![subnets[1]], expected, [TRUE, TRUE]));
    // By other tags: both must be there.
    let tags = |value: &str| json!([{"tags": {"karpenter.sh/discovery": world.cluster, "team": value}}]);
    let tag = aws_sdk_ec2::types::Tag::builder().key("team").value("blue").build();
    let tagged = world
        .clients
        .ec2
        .create_tags()
        .resources(subnets[0])
        .resources(groups[0])
        .tags(tag);
    tagged.send().await.unwrap();
    select(tags("blue"), tags("blue"));
    let by_tags = world.settle("default").await;
    assert_eq!(found(&by_tags), (vec![subnets[0]], vec![groups[0]], [TRUE, TRUE]));
    select(tags("red"), json!([{"id": "sg-00000000"}]));
    let nothing = world.settle("default").await;
    assert_eq!(found(&nothing), (vec![], vec![], ["False", "False"]));
    assert_eq!(condition(&nothing, "Ready")[0], "False");
}
