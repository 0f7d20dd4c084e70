//! What Azure is asked for when a claim is tried again, and what is told of it meanwhile.

use cloud::CloudError;
use serde_json::{Value, json};

use crate::{cluster, launch::A, world::World};

/// A claim for one of two sizes, in no zone in particular, as spot.
fn either(name: &str) -> model::object::NodeClaim {
    let among = |key: &str, values: &[&str]| json!({"key": key, "operator": "In", "values": values});
    cluster::claim_for(
        name,
        &json!([
            among(
                "node.kubernetes.io/instance-type",
                &["Standard_D2s_v3", "Standard_D2_v5"]
            ),
            among("karpenter.sh/capacity-type", &["spot"]),
            among("topology.kubernetes.io/zone", &["0"]),
        ]),
    )
}

#[tokio::test(start_paused = true)]
async fn a_claim_is_tried_again_with_what_is_left_for_it_until_nothing_is() {
    let world = World::new().await;
    let claim = either("a");
    let error = json!({"error": {"code": "SkuNotAvailable", "message": "none left"}});
    for _ in 0..2 {
        world.azure.lock().refusals.push_back((409, Vec::new(), error.clone()));
        let refused = world.launch(&claim).await.unwrap_err();
        let CloudError::Create { reason, message } = &refused else {
            panic!("{refused:?}");
        };
        assert_eq!(reason, "SKUNotAvailable");
        assert!(
            message.contains("the requested SKU is unavailable") && message.contains("none left"),
            "{message}"
        );
        let event = world.events.lock().await.try_recv().unwrap();
        assert_eq!((&*event.reason, &event.message), ("SKUNotAvailable", message));
        tokio::time::sleep(std::time::Duration::from_mins(5)).await;
    }
    let asked = world.azure.lock().asked.clone();
    let sizes: std::collections::BTreeSet<&str> = asked.iter().filter_map(|it| it.split('"').nth(1)).collect();
    assert_eq!((asked.len(), sizes.len()), (2, 2), "{asked:?}");
    let refused = world.launch(&claim).await.unwrap_err();
    assert!(
        matches!(refused, CloudError::InsufficientCapacity { .. }),
        "{refused:?}"
    );
    assert_eq!(world.azure.lock().asked.len(), 2, "nothing is left to ask for");
}

#[tokio::test(start_paused = true)]
async fn a_launch_is_counted_when_it_begins() {
    let world = World::new().await;
    world
        .launch(&World::sized("a", "Standard_D2s_v3", "spot"))
        .await
        .unwrap();
    let counted = world.counted();
    let is_ours = |line: &&str| {
        line.starts_with("karpenter_instance_vm_create_start_total{")
            && ["Standard_D2s_v3", "spot", "general"]
                .iter()
                .all(|value| line.contains(&format!("=\"{value}\"")))
            && line.ends_with("} 1")
    };
    assert_eq!(counted.lines().filter(is_ours).count(), 1, "{counted}");
    assert!(
        !counted
            .lines()
            .any(|line| line.starts_with("karpenter_instance_vm_create_failure_total{"))
    );
}

#[tokio::test(start_paused = true)]
async fn hosts_encrypt_where_the_class_says_so_and_do_not_where_it_says_that() {
    for (said, expected) in [
        (json!(true), json!(true)),
        (json!(false), json!(false)),
        (Value::Null, Value::Null),
    ] {
        let world = World::with(|_| {}).await;
        let security = if said.is_null() {
            json!({})
        } else {
            json!({"security": {"encryptionAtHost": said}})
        };
        world.create("default", security);
        world.settle("default").await;
        world
            .launch(&World::sized("a", "Standard_D2s_v3", "spot"))
            .await
            .unwrap();
        let body = world.azure.lock().vms[A].body.clone();
        assert_eq!(
            body["properties"]["securityProfile"]["encryptionAtHost"], expected,
            "{said}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn in_a_node_subnet_an_interface_has_thirty_addresses_unless_told_otherwise() {
    let world = World::with(|settings| {
        "azure".clone_into(&mut settings.azure.network_plugin);
        settings.azure.network_plugin_mode = String::new();
    })
    .await;
    world.create("default", json!({}));
    world.settle("default").await;
    world
        .launch(&World::sized("a", "Standard_D2s_v3", "spot"))
        .await
        .unwrap();
    let addresses = world.azure.lock().nics[A].body["properties"]["ipConfigurations"]
        .as_array()
        .unwrap()
        .len();
    assert_eq!(addresses, 30);
}

#[tokio::test(start_paused = true)]
async fn capacity_that_an_overlay_adds_is_on_the_claim_of_its_machine_and_keeps_no_type_away() {
    let world = World::new().await;
    let mut claim = World::sized("a", "Standard_D2s_v3", "spot");
    let fuse = "example.com/fuse";
    claim.spec.resources.requests.set(fuse.into(), "2".parse().unwrap());
    let refused = world.launch(&claim).await;
    assert!(
        matches!(refused, Err(CloudError::InsufficientCapacity { .. })),
        "no type has it: {refused:?}"
    );
    let overlaid = vec![("karpenter.sh/capacity-overlay-applied".into(), "true".into())];
    claim.metadata.annotations = model::object::Map::from_pairs(overlaid);
    let launched = world.launch(&claim).await.unwrap();
    for list in [&launched.capacity, &launched.allocatable] {
        assert_eq!((list.amount(fuse).value(), list.amount("cpu").is_zero()), (2, false));
    }
}
