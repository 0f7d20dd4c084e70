//! What can be launched: offerings, prices, and how they change.

use cloud::CloudProvider;
use cloud::conformance::Harness;
use cloud_azure::offers::{PriceSource, Shortage};
use model::snapshot::CatalogType;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

use crate::world::World;

async fn types(world: &World) -> Vec<Arc<CatalogType>> {
    world.provider.instance_types(&world.pool()).await.unwrap()
}

fn offerings(types: &[Arc<CatalogType>], name: &str) -> Vec<(String, String, bool)> {
    let entry = types.iter().find(|it| it.name.as_str() == name).unwrap();
    let value = |offering: &model::snapshot::CatalogOffering, key: &str| {
        offering.requirements.iter().find(|it| it.key == key).unwrap().values[0].clone()
    };
    let zone = "topology.kubernetes.io/zone";
    entry
        .offerings
        .iter()
        .map(|it| (value(it, zone), value(it, "karpenter.sh/capacity-type"), it.available))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_size_is_sold_in_its_zones_and_without_one_on_demand_and_as_spot() {
    let world = World::new().await;
    let all = types(&world).await;
    assert_eq!(all.len(), 16);
    let places: Vec<String> = offerings(&all, "Standard_D2as_v6")
        .into_iter()
        .map(|(zone, kind, _)| format!("{zone} {kind}"))
        .collect();
    assert_eq!(
        places,
        [
            "southcentralus-2 on-demand",
            "southcentralus-2 spot",
            "southcentralus-3 on-demand",
            "southcentralus-3 spot",
            "0 on-demand",
            "0 spot"
        ]
    );
    assert_eq!(
        offerings(&all, "Standard_NC6s_v3").len(),
        2,
        "it is sold without zones only"
    );
}

#[tokio::test(start_paused = true)]
async fn spot_is_there_only_where_azure_says_so() {
    let world = World::new().await;
    let all = types(&world).await;
    let available = |name: &str, kind: &str| {
        offerings(&all, name)
            .iter()
            .any(|(_, it, available)| it == kind && *available)
    };
    assert!(available("Standard_D2s_v3", "spot"));
    assert!(!available("Standard_B20ms", "spot") && available("Standard_B20ms", "on-demand"));
}

#[tokio::test(start_paused = true)]
async fn a_shortage_is_seen_counted_and_forgotten() {
    let world = World::new().await;
    let offers = world.provider.reads().offers();
    let version = world.provider.offers_version();
    offers.mark_unavailable(&Shortage::Offering {
        size: "Standard_D4s_v3".to_owned(),
        family: "standardDSv3Family".to_owned(),
        vcpu: 4,
        zone: "southcentralus-1".to_owned(),
        capacity_type: "spot".to_owned(),
        reason: "SKUNotAvailable".to_owned(),
        believed: Duration::from_hours(1),
    });
    assert_ne!(world.provider.offers_version(), version);
    let is_there = |all: &[Arc<CatalogType>], name: &str| {
        offerings(all, name)
            .iter()
            .any(|it| *it == ("southcentralus-1".to_owned(), "spot".to_owned(), true))
    };
    let all = types(&world).await;
    assert!(
        !is_there(&all, "Standard_D4s_v3") && !is_there(&all, "Standard_D64s_v3") && is_there(&all, "Standard_D2s_v3")
    );
    assert_eq!(
        offers.why("Standard_D64s_v3", "southcentralus-1", "spot").as_deref(),
        Some("SKUNotAvailable")
    );
    // Another process takes it up.
    let kept = serde_json::to_string(&offers.keepsake()).unwrap();
    let other = World::new().await;
    other
        .provider
        .reads()
        .offers()
        .remember(serde_json::from_str(&kept).unwrap());
    assert!(!is_there(&types(&other).await, "Standard_D4s_v3"));
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert!(is_there(&types(&world).await, "Standard_D4s_v3"));
}

#[tokio::test(start_paused = true)]
async fn quotas_are_asked_before_and_forgotten_when_they_are_old() {
    let world = World::new().await;
    world.azure.lock().usages = vec![json!({"name": {"value": "standardDSv3Family"}, "currentValue": 7, "limit": 10})];
    world.provider.reads().offers().read_quotas().await.unwrap();
    let on_demand = |all: &[Arc<CatalogType>], name: &str| {
        offerings(all, name)
            .iter()
            .any(|(_, kind, available)| kind == "on-demand" && *available)
    };
    let all = types(&world).await;
    assert!(on_demand(&all, "Standard_D2s_v3") && !on_demand(&all, "Standard_D4s_v3"));
    assert!(
        world
            .counted()
            .contains("dovetail_azure_quota_used_ratio{family=\"standarddsv3family\"} 0.7")
    );
    tokio::time::sleep(Duration::from_mins(16)).await;
    assert!(
        on_demand(&types(&world).await, "Standard_D4s_v3"),
        "nobody knows any more"
    );
}

#[tokio::test(start_paused = true)]
async fn prices_are_the_built_in_ones_where_nobody_publishes_any() {
    let world = World::new().await;
    let offers = world.provider.reads().offers();
    offers.reprice().await.unwrap();
    assert!(matches!(offers.price_source(), PriceSource::BuiltIn(_)));
    assert!(
        world
            .counted()
            .contains("dovetail_pricing_age_seconds{source=\"built-in\"}")
    );
}

#[tokio::test(start_paused = true)]
async fn a_class_sees_the_sizes_that_can_do_what_it_asks() {
    let world = World::new().await;
    world.create(
        "trusted",
        json!({"security": {"trustedLaunch": {"vtpm": true}}, "maxPods": 42, "osDiskSizeGB": 100}),
    );
    world.settle("trusted").await;
    let mut pool = world.pool();
    pool.spec.template.spec.node_class_ref.as_mut().unwrap().name = "trusted".into();
    let all = world.provider.instance_types(&pool).await.unwrap();
    assert!(
        !all.iter().any(|it| it.name.as_str() == "Standard_D2_v2"),
        "generation 1 only"
    );
    let entry = all.iter().find(|it| it.name.as_str() == "Standard_D2s_v3").unwrap();
    assert_eq!(entry.capacity.amount("pods").value(), 42);
    assert_eq!(entry.capacity.amount("ephemeral-storage").value(), 100_000_000_000);
}
