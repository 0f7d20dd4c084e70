//! What a class offers while a zone is shifted away from.

use std::collections::BTreeSet;

use api::aws::EC2NodeClass;
use cloud_aws::Reads;
use runtime::Clock;
use serde_json::json;

use crate::{
    double,
    world::{World, connect, pool, seed},
};

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
