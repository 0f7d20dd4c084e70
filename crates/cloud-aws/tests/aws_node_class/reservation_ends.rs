//! What becomes of claims and nodes whose capacity reservation ends.

use cloud::{Instance, Launched};
use model::object::Map;
use serde_json::{Value, json};

use crate::{double, world::World};

const RESERVED: [(&str, &str); 4] = [
    ("karpenter.sh/capacity-type", "reserved"),
    ("karpenter.k8s.aws/capacity-reservation-id", "cr-1"),
    ("karpenter.k8s.aws/capacity-reservation-type", "default"),
    ("karpenter.k8s.aws/capacity-reservation-interruptible", "false"),
];

fn labels(more: &[(&str, &str)]) -> Value {
    RESERVED
        .iter()
        .chain(more)
        .map(|(key, value)| ((*key).to_owned(), json!(value)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn claim(name: &str, labels: Value) -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": name, "labels": labels},
        "spec": {
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
            "requirements": [], "expireAfter": "720h",
        },
        "status": {"providerID": format!("aws:///us-gov-west-1a/i-{name}")},
    })
}

fn node(name: &str, more: &[(&str, &str)]) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels(more)},
        "spec": {"providerID": format!("aws:///us-gov-west-1a/i-{name}")},
    })
}

fn machine(name: &str, capacity_type: &str) -> Instance {
    let pairs = vec![("karpenter.sh/capacity-type".into(), capacity_type.into())];
    Instance {
        provider_id: format!("aws:///us-gov-west-1a/i-{name}").as_str().into(),
        claim: None,
        claim_uid: None,
        launched_at: None,
        is_terminating: false,
        launched: Launched {
            labels: Map::from_pairs(pairs),
            ..Launched::default()
        },
    }
}

fn of_reservations(world: &World, kind: &str, name: &str) -> Vec<String> {
    let stored = world.server.get(kind, name).unwrap();
    let labels = stored["metadata"]["labels"].as_object().unwrap().clone();
    RESERVED
        .iter()
        .filter_map(|(key, _)| labels.get(*key)?.as_str().map(str::to_owned))
        .collect()
}

#[tokio::test]
async fn a_machine_whose_reservation_has_ended_is_on_demand_for_its_claim_and_its_node() {
    let world = World::new("us-gov-west-1").await;
    for name in ["demoted", "kept"] {
        world.server.create(claim(name, labels(&[]))).unwrap();
        world
            .server
            .create(node(name, &[("karpenter.sh/registered", "true")]))
            .unwrap();
    }
    world.server.create(claim("young", labels(&[]))).unwrap();
    world.server.create(node("young", &[])).unwrap();
    *world.machines.listed.lock().unwrap() = vec![
        machine("demoted", "on-demand"),
        machine("kept", "reserved"),
        machine("young", "on-demand"),
    ];
    world.read.demote(&*world.machines).await.unwrap();
    for kind in ["NodeClaim", "Node"] {
        assert_eq!(of_reservations(&world, kind, "demoted"), ["on-demand"], "{kind}");
        assert_eq!(of_reservations(&world, kind, "kept").len(), 4, "{kind}");
    }
    assert_eq!(of_reservations(&world, "NodeClaim", "young"), ["on-demand"]);
    // Its claim is on demand already, and so it becomes when it has registered.
    let register = |node: &mut Value| node["metadata"]["labels"]["karpenter.sh/registered"] = json!("true");
    assert_eq!(
        of_reservations(&world, "Node", "young").len(),
        4,
        "it takes its claim's labels when it registers"
    );
    world.server.update("Node", "young", register).unwrap();
    world.read.demote(&*world.machines).await.unwrap();
    assert_eq!(of_reservations(&world, "Node", "young"), ["on-demand"]);
}

#[tokio::test]
async fn claims_of_a_capacity_block_go_forty_minutes_before_its_end_whether_or_not_a_class_selects_it() {
    let world = World::new("us-gov-east-1").await;
    let now = runtime::Clock::system().now();
    let reservation = |id: &str, kind: &str, minutes: i64| {
        let end = now.checked_add(jiff::SignedDuration::from_mins(minutes)).unwrap();
        json!({
            "CapacityReservationId": id, "InstanceType": "p5.48xlarge", "AvailabilityZone": "us-gov-east-1a",
            "OwnerId": "123456789012", "InstanceMatchCriteria": "targeted", "State": "active",
            "AvailableInstanceCount": 3, "ReservationType": kind, "EndDate": end.to_string(),
        })
    };
    let known = json!([
        reservation("cr-1", "capacity-block", 39),
        reservation("cr-2", "capacity-block", 60),
        reservation("cr-3", "default", 5),
    ]);
    double::tell(&world.clients, "capacity-reservations", &known).await;
    for number in 1..=4 {
        let label = json!({"karpenter.k8s.aws/capacity-reservation-id": format!("cr-{number}")});
        world.server.create(claim(&format!("of-{number}"), label)).unwrap();
    }
    world.read.expire_capacity_blocks().await.unwrap();
    let is_there = |number: u32| world.server.get("NodeClaim", &format!("of-{number}")).is_some();
    assert_eq!([1, 2, 3, 4].map(is_there), [false, true, true, true]);
}
