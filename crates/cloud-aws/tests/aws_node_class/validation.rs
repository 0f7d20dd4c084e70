//! What a class is tried with, and what it is told of the outcome.

use std::time::Duration;

use cloud_aws::{Failure, RehearsalFailure};
use serde_json::{Value, json};

use crate::world::{TRUE, World, condition};

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
    let tries = || world.machines.asked.lock().unwrap().len();
    assert_eq!(tries(), 1, "one try for half an hour");
    for _ in 0..2 {
        world.advance(Duration::from_mins(12));
        world.settle("default").await;
    }
    assert_eq!(tries(), 1, "24 minutes later it is still believed");
    *world.machines.refusal.lock().unwrap() = None;
    world.advance(Duration::from_mins(7));
    let class = world.settle("default").await;
    assert_eq!(tries(), 2, "looks in between make a verdict no younger");
    assert_eq!(
        condition(&class, "ValidationSucceeded")[0],
        TRUE,
        "the permission was given meanwhile"
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
async fn a_tag_that_is_ours_to_set_is_refused_before_anything_is_tried() {
    let world = World::new("eu-central-2").await;
    for key in [
        "kubernetes.io/cluster/acluster",
        "karpenter.sh/nodepool",
        "eks:eks-cluster-name",
        "karpenter.k8s.aws/ec2nodeclass",
        "karpenter.sh/nodeclaim",
    ] {
        let name = key.replace(['/', ':', '.'], "-");
        world.create(&name, json!({"tags": {key: "x"}}));
        let error = world.fail(&name).await;
        assert!(error.contains("tags failed validation requirements"), "{key}: {error}");
        let class = world.stored(&name);
        let [status, reason, message] = condition(&class, "ValidationSucceeded");
        assert_eq!((status, reason), ("False", "TagValidationFailed"), "{key}");
        assert!(message.contains(key), "{message}");
    }
    assert_eq!(world.machines.asked.lock().unwrap().len(), 0);
}

#[tokio::test]
async fn what_is_tried_where_pools_say_nothing_is_a_type_that_every_account_has() {
    let world = World::new("ap-southeast-4").await;
    let nobody = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "nobody"},
        "spec": {"template": {"spec": {
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
            "requirements": [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["z99.large"]}],
        }}},
    });
    world.create("default", json!({}));
    world.settle("default").await;
    world.server.create(nobody).unwrap();
    // The question is asked anew for every class, and when what it is about has changed: an annotation, too.
    let annotate = |class: &mut Value| class["metadata"]["annotations"]["team"] = json!("blue");
    world.server.update("EC2NodeClass", "default", annotate).unwrap();
    world.settle("default").await;
    let asked = world.machines.asked.lock().unwrap().clone();
    assert_eq!(asked.len(), 2, "{asked:?}");
    // Which of the two depends on which image comes first.
    for asked in asked {
        let usual = ["rehearse m5.large ", "rehearse m6g.large "];
        assert!(
            usual.iter().any(|usual| asked.starts_with(usual)) && asked.ends_with(" default"),
            "{asked}"
        );
    }
    // A class that is made again is tried again, too.
    world.server.delete("EC2NodeClass", "default").unwrap();
    world.look("default").await.unwrap();
    assert!(world.server.get("EC2NodeClass", "default").is_none());
    world.create("default", json!({}));
    world.settle("default").await;
    let tries = world
        .machines
        .asked
        .lock()
        .unwrap()
        .iter()
        .filter(|it| it.starts_with("rehearse"))
        .count();
    assert_eq!(tries, 3);
}
