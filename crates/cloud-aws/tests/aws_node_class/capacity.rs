//! Which capacity reservations and which placement group a class finds.

use api::aws::EC2NodeClass;
use cloud_aws::Reads;
use serde_json::{Value, json};

use crate::{
    double,
    world::{TRUE, World, condition},
};

const ME: &str = "123456789012";
const OTHER: &str = "210987654321";

fn reservation(id: &str, more: Value) -> Value {
    let mut whole = json!({
        "CapacityReservationId": id, "InstanceType": "m5.large", "AvailabilityZone": "ap-southeast-1a",
        "OwnerId": ME, "InstanceMatchCriteria": "targeted", "State": "active",
        "AvailableInstanceCount": 3, "TotalInstanceCount": 4, "ReservationType": "default",
        "Tags": [{"Key": "team", "Value": "nodes"}],
    });
    whole.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    whole
}

#[tokio::test]
async fn capacity_reservations_are_found_by_id_tags_owner_and_match_criteria_and_by_all_of_these_together() {
    let world = World::new("ap-southeast-1").await;
    let known = json!([
        reservation("cr-2", json!({"InstanceMatchCriteria": "open"})),
        reservation("cr-1", json!({})),
        reservation("cr-3", json!({"OwnerId": OTHER})),
        reservation(
            "cr-4",
            json!({"OwnerId": OTHER, "InstanceMatchCriteria": "open", "Tags": []})
        ),
        reservation("cr-5", json!({"State": "expired"})),
        reservation("cr-6", json!({"EndDate": "2020-01-01T00:00:00Z"})),
    ]);
    double::tell(&world.clients, "capacity-reservations", &known).await;
    let tags = json!({"team": "nodes"});
    let cases = [
        (json!([{"id": "cr-1"}, {"id": "cr-9"}, {"id": "cr-5"}]), "cr-1"),
        (json!([{"tags": tags}]), "cr-1 cr-2 cr-3"),
        (json!([{"tags": {"team": "*"}, "ownerID": ME}]), "cr-1 cr-2"),
        (json!([{"instanceMatchCriteria": "open"}]), "cr-2 cr-4"),
        (json!([{"instanceMatchCriteria": "targeted"}]), "cr-1 cr-3"),
        (
            json!([{"instanceMatchCriteria": "targeted", "tags": tags}]),
            "cr-1 cr-3",
        ),
        (json!([{"instanceMatchCriteria": "open", "tags": tags}]), "cr-2"),
        (
            json!([{"instanceMatchCriteria": "targeted", "tags": tags, "ownerID": OTHER}]),
            "cr-3",
        ),
        (json!([{"tags": {"team": "nobody"}}]), ""),
    ];
    world.create("default", json!({}));
    for (terms, expected) in cases {
        let select = |class: &mut Value| class["spec"]["capacityReservationSelectorTerms"] = terms.clone();
        world.server.update("EC2NodeClass", "default", select).unwrap();
        let class = world.settle("default").await;
        assert_eq!(condition(&class, "CapacityReservationsReady")[0], TRUE);
        let listed = class["status"]["capacityReservations"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let ids: Vec<&str> = listed.iter().map(|it| it["id"].as_str().unwrap()).collect();
        assert_eq!(ids.join(" "), expected, "{terms}");
    }
}

#[tokio::test]
async fn a_reservation_says_of_what_kind_it_is_and_whether_it_may_be_interrupted() {
    let world = World::new("eu-south-2").await;
    let block = json!({"ReservationType": "capacity-block", "EndDate": "2099-01-01T00:00:00Z"});
    let known = json!([
        reservation("cr-1", json!({})),
        reservation("cr-2", json!({"Interruptible": true})),
        reservation("cr-3", json!({"Interruptible": false})),
        reservation("cr-4", block),
    ]);
    double::tell(&world.clients, "capacity-reservations", &known).await;
    world.create(
        "default",
        json!({"capacityReservationSelectorTerms": [{"tags": {"team": "nodes"}}]}),
    );
    let class = world.settle("default").await;
    let listed = class["status"]["capacityReservations"].as_array().unwrap();
    let kinds: Vec<_> = listed
        .iter()
        .map(|it| {
            (
                it["reservationType"].as_str().unwrap(),
                it["interruptible"].as_bool().unwrap_or(false),
            )
        })
        .collect();
    let expected = [
        ("default", false),
        ("default", true),
        ("default", false),
        ("capacity-block", false),
    ];
    assert_eq!(kinds, expected);
    assert_eq!(listed[3]["endTime"], "2099-01-01T00:00:00Z");
    assert_eq!(
        (&listed[0]["instanceMatchCriteria"], &listed[0]["ownerID"]),
        (&json!("targeted"), &json!(ME))
    );
}

#[tokio::test]
async fn without_the_gate_reservations_are_not_looked_for_and_nothing_waits_for_them() {
    let world = World::with("ap-south-2", |settings| {
        settings.decisions.feature_gates.reserved_capacity = false;
    })
    .await;
    double::tell(
        &world.clients,
        "capacity-reservations",
        &json!([reservation("cr-1", json!({}))]),
    )
    .await;
    world.create("default", json!({"capacityReservationSelectorTerms": [{"id": "cr-1"}]}));
    let class = world.settle("default").await;
    assert_eq!(class["status"]["capacityReservations"], Value::Null);
    let conditions = class["status"]["conditions"].as_array().unwrap();
    assert!(
        conditions.iter().all(|it| it["type"] != "CapacityReservationsReady"),
        "{conditions:?}"
    );
    assert_eq!(condition(&class, "Ready")[0], TRUE);
}

#[tokio::test]
async fn a_placement_group_is_found_by_name_or_id_while_it_is_available_and_selected() {
    let world = World::new("ap-southeast-3").await;
    let group = |id: &str, name: &str, strategy: &str, state: &str| json!({"GroupName": name, "GroupId": id, "Strategy": strategy, "State": state, "PartitionCount": 4});
    let known = json!([
        group("pg-1", "near", "cluster", "available"),
        group("pg-2", "apart", "partition", "available"),
        group("pg-3", "coming", "spread", "pending"),
    ]);
    double::tell(&world.clients, "placement-groups", &known).await;
    world.create("default", json!({}));
    let cases = [
        (json!({"name": "near"}), Some(("pg-1", "cluster", 4))),
        (json!({"id": "pg-2"}), Some(("pg-2", "partition", 4))),
        (json!({"name": "coming"}), None),
        (json!({"id": "pg-9"}), None),
    ];
    for (selector, expected) in cases {
        let select = |class: &mut Value| class["spec"]["placementGroupSelector"] = selector.clone();
        world.server.update("EC2NodeClass", "default", select).unwrap();
        let class = world.settle("default").await;
        let state = condition(&class, "PlacementGroupReady");
        let wanted = selector["name"].as_str().or(selector["id"].as_str()).unwrap();
        let message = format!("Placement group {wanted:?} not found");
        match expected {
            Some(_) => assert_eq!(state[0], TRUE, "{selector}"),
            None => assert_eq!(state, ["False", "PlacementGroupNotFound", &message]),
        }
        let typed: EC2NodeClass = serde_json::from_value(class).unwrap();
        let found = world.read.placement_group(&typed).await.unwrap();
        let found = found
            .as_ref()
            .map(|it| (it.id.as_str(), it.strategy.as_str(), it.partitions));
        assert_eq!(found, expected, "{selector}");
    }
    let clear = |class: &mut Value| {
        class["spec"].as_object_mut().unwrap().remove("placementGroupSelector");
    };
    world.server.update("EC2NodeClass", "default", clear).unwrap();
    let class = world.settle("default").await;
    assert_eq!(condition(&class, "PlacementGroupReady")[0], TRUE);
    let typed: EC2NodeClass = serde_json::from_value(class).unwrap();
    assert_eq!(world.read.placement_group(&typed).await.unwrap(), None);
}
