//! How a class goes, and how its claims learn its hash.

use std::sync::Arc;

use cloud::CloudProvider;
use cloud_aws::{Aws, Machines};
use model::object::{NodeClaim, NodePool};
use serde_json::{Value, json};
use simulator::ApiServer;

use crate::world::{World, class, pool};

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

#[tokio::test]
async fn a_pool_whose_class_is_missing_or_going_has_no_types_and_is_told() {
    let mut world = World::new("us-east-1").await;
    let aws = Aws::of(
        Arc::clone(&world.read),
        Arc::clone(&world.machines) as Arc<dyn Machines>,
    );
    let pool = |name: &str| -> NodePool {
        let mut pool = pool(name);
        pool["metadata"]["uid"] = json!(name);
        serde_json::from_value(pool).unwrap()
    };
    assert_eq!(aws.instance_types(&pool("general")).await.unwrap().len(), 0);
    let event = world.events.try_recv().unwrap();
    assert_eq!(
        (&*event.reason, event.message.as_str()),
        ("NodeClassResolutionError", "Failed resolving NodeClass")
    );
    world.create("default", json!({}));
    world.settle("default").await;
    assert!(!aws.instance_types(&pool("general")).await.unwrap().is_empty());
    assert!(world.events.try_recv().is_err());
    world.server.delete("EC2NodeClass", "default").unwrap();
    assert_eq!(aws.instance_types(&pool("special")).await.unwrap().len(), 0);
    assert_eq!(&*world.events.try_recv().unwrap().reason, "NodeClassResolutionError");
    let claim = json!({"metadata": {"name": "a"}, "spec": {"nodeClassRef": {"name": "default"}}});
    let claim: NodeClaim = serde_json::from_value(claim).unwrap();
    assert_eq!(
        aws.is_drifted(&claim).await,
        Ok(None),
        "nothing is known of a class that goes"
    );
}

/// The instance profiles there are, by name.
async fn profiles(world: &World) -> Vec<String> {
    let listed = world.clients.iam.list_instance_profiles().send().await.unwrap();
    let names = listed
        .instance_profiles()
        .iter()
        .map(|it| it.instance_profile_name().to_owned());
    names.filter(|name| name.starts_with(&world.cluster)).collect()
}

#[tokio::test]
async fn a_class_goes_with_its_profiles_whatever_became_of_them_and_takes_along_one_of_an_older_release() {
    let world = World::new("af-south-1").await;
    let iam = &world.clients.iam;
    for name in ["roleless", "gone"] {
        world.create(name, json!({}));
        let class = world.settle(name).await;
        let profile = class["status"]["instanceProfile"].as_str().unwrap();
        let removed = iam.remove_role_from_instance_profile().instance_profile_name(profile);
        removed.role_name(crate::world::ROLE).send().await.unwrap();
        if name == "gone" {
            iam.delete_instance_profile()
                .instance_profile_name(profile)
                .send()
                .await
                .unwrap();
        }
        let legacy = format!("{}_{}", world.cluster, api::hash::string(&format!("af-south-1{name}")));
        iam.create_instance_profile()
            .instance_profile_name(legacy)
            .send()
            .await
            .unwrap();
    }
    assert_eq!(profiles(&world).await.len(), 3);
    for name in ["roleless", "gone"] {
        world.server.delete("EC2NodeClass", name).unwrap();
        world.look(name).await.unwrap();
        assert!(world.server.get("EC2NodeClass", name).is_none(), "{name}");
    }
    assert_eq!(profiles(&world).await.len(), 0);
}

#[tokio::test]
async fn in_an_isolated_vpc_a_class_goes_without_asking_iam() {
    let world = World::with("il-central-1", |settings| settings.aws.isolated_vpc = true).await;
    world.create("default", json!({}));
    world.settle("default").await;
    world.server.delete("EC2NodeClass", "default").unwrap();
    world.look("default").await.unwrap();
    assert!(world.server.get("EC2NodeClass", "default").is_none());
    assert_eq!(profiles(&world).await.len(), 1, "IAM cannot be reached from there");
}
