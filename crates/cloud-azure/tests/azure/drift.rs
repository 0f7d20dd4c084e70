//! When a machine counts as drifted, and when nothing is said about it.

use cloud::{CloudError, CloudProvider};
use model::object::NodeClaim;
use serde_json::{Value, json};

use crate::{launch::recorded, world::World};

const SHARED: &str = "/subscriptions/s/resourceGroups/AKS-Ubuntu/providers/Microsoft.Compute/galleries/AKSUbuntu/images/2404gen2containerd/versions/202512.18.0";

/// A claim whose machine is a node of the version that the class has.
async fn settled(world: &World) -> NodeClaim {
    let claim = World::sized("a", "Standard_D2s_v3", "spot");
    let launched = world.launch(&claim).await.unwrap();
    let mut claim = recorded(&claim, &launched);
    claim.status.node_name = Some("node-a".into());
    let class = world.server.get("AKSNodeClass", "default").unwrap();
    let version = class["status"]["kubernetesVersion"].as_str().unwrap();
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-a"},
        "status": {"nodeInfo": {"kubeletVersion": format!("v{version}")}}});
    world.server.create(node).unwrap();
    claim
}

async fn drift(world: &World, claim: &NodeClaim) -> Result<Option<String>, CloudError> {
    world.provider.is_drifted(claim).await
}

fn change(world: &World, change: impl FnOnce(&mut Value)) {
    world.server.update("AKSNodeClass", "default", change).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_is_what_its_class_asks_for_has_not_drifted_nor_one_whose_class_is_gone_or_going() {
    let world = World::new().await;
    let claim = settled(&world).await;
    assert_eq!(drift(&world, &claim).await, Ok(None));
    let mut nobody = claim.clone();
    nobody.spec.node_class_ref.as_mut().unwrap().name = "nobody".into();
    assert_eq!(drift(&world, &nobody).await, Ok(None));
    change(&world, |class| {
        class["status"]["images"] = json!([{"id": SHARED, "requirements": []}]);
    });
    assert_eq!(
        drift(&world, &claim).await,
        Ok(Some("ImageDrift".to_owned())),
        "another gallery"
    );
    world.server.delete("AKSNodeClass", "default").unwrap();
    assert_eq!(drift(&world, &claim).await, Ok(None));
}

#[tokio::test(start_paused = true)]
async fn a_class_without_images_and_a_claim_without_a_machine_are_errors() {
    let world = World::new().await;
    let claim = settled(&world).await;
    let mut bare = claim.clone();
    bare.status.provider_id = None;
    let error = drift(&world, &bare).await.unwrap_err().to_string();
    assert_eq!(error, "nodeclaim a is missing provider ID");
    change(&world, |class| class["status"]["images"] = json!([]));
    let error = drift(&world, &claim).await.unwrap_err().to_string();
    assert_eq!(error, "no images exist for the given constraints");
}

#[tokio::test(start_paused = true)]
async fn another_version_is_drift_unless_nobody_knows_it_or_the_node_is_going() {
    let world = World::new().await;
    let claim = settled(&world).await;
    change(&world, |class| class["status"]["kubernetesVersion"] = json!("1.99.0"));
    assert_eq!(drift(&world, &claim).await, Ok(Some("K8sVersionDrift".to_owned())));
    let mark = |node: &mut Value| node["metadata"]["finalizers"] = json!(["karpenter.sh/termination"]);
    world.server.update("Node", "node-a", mark).unwrap();
    world.server.delete("Node", "node-a").unwrap();
    assert_eq!(drift(&world, &claim).await, Ok(None), "it goes anyway");
    let world = World::new().await;
    let claim = settled(&world).await;
    let forget = |class: &mut Value| {
        class["status"].as_object_mut().unwrap().remove("kubernetesVersion");
    };
    change(&world, forget);
    assert_eq!(drift(&world, &claim).await, Ok(None));
}

#[tokio::test(start_paused = true)]
async fn another_subnet_or_image_family_in_the_class_is_drift() {
    for (key, value) in [
        ("imageFamily", json!("AzureLinux")),
        (
            "vnetSubnetID",
            json!(crate::world::SUBNET.replace("/subnets/", "/subnets/other-")),
        ),
        ("osDiskSizeGB", json!(256)),
    ] {
        let world = World::new().await;
        let claim = settled(&world).await;
        change(&world, |class| class["spec"][key] = value);
        world.settle("default").await;
        assert_eq!(
            drift(&world, &claim).await,
            Ok(Some("NodeClassDrift".to_owned())),
            "{key}"
        );
    }
}
