//! Which types, zones and kinds of capacity does a launch ask for?

#![allow(
    clippy::needless_pass_by_value,
    clippy::redundant_closure_for_method_calls,
    reason = "a test's helpers are called with literals, and the SDK's paths are longer than its calls"
)]

use serde_json::{Value, json};

use super::*;

const RESERVED: [&str; 3] = [
    "karpenter.k8s.aws/capacity-reservation-id",
    "karpenter.k8s.aws/capacity-reservation-type",
    "karpenter.k8s.aws/capacity-reservation-interruptible",
];

#[derive(Clone)]
struct Offer {
    zone: &'static str,
    capacity_type: &'static str,
    price: &'static str,
    is_available: bool,
    reservation: Option<[&'static str; 3]>,
    room: u32,
}

fn offer(capacity_type: &'static str, price: &'static str) -> Offer {
    Offer {
        zone: "a",
        capacity_type,
        price,
        is_available: true,
        reservation: None,
        room: 0,
    }
}

fn reserved(id: &'static str, kind: &'static str, interruptible: &'static str, price: &'static str) -> Offer {
    Offer {
        reservation: Some([id, kind, interruptible]),
        room: 1,
        ..offer("reserved", price)
    }
}

fn entry(name: &str, capacity: Value, offers: &[Offer]) -> Value {
    let requirement = |key: &str, value: &str| json!({"key": key, "operator": "In", "values": [value]});
    let offering = |offer: &Offer| {
        let mut requirements = vec![
            requirement("topology.kubernetes.io/zone", offer.zone),
            requirement("karpenter.sh/capacity-type", offer.capacity_type),
        ];
        for (key, value) in RESERVED.iter().zip(offer.reservation.into_iter().flatten()) {
            requirements.push(requirement(key, value));
        }
        json!({"price": offer.price, "available": offer.is_available, "reservationCapacity": offer.room, "requirements": requirements})
    };
    let (_, size) = name.split_once('.').unwrap();
    json!({
        "name": name, "capacity": capacity,
        "requirements": [
            requirement("node.kubernetes.io/instance-type", name),
            requirement("karpenter.k8s.aws/instance-size", size),
        ],
        "offerings": offers.iter().map(offering).collect::<Vec<_>>(),
    })
}

fn plain() -> Value {
    json!({"cpu": "4", "memory": "8Gi", "pods": "29"})
}

fn claim(capacity_types: &[&str], more: Value) -> NodeClaim {
    let mut requirements =
        vec![json!({"key": "karpenter.sh/capacity-type", "operator": "In", "values": capacity_types})];
    requirements.extend(more.as_array().unwrap().clone());
    serde_json::from_value(json!({
        "spec": {"requirements": requirements, "resources": {"requests": {"cpu": "1"}}},
    }))
    .unwrap()
}

struct Found {
    types: Vec<String>,
    /// Type, zone and reservation of what is left.
    offers: Vec<String>,
    capacity_type: &'static str,
    tenancy: &'static str,
}

fn choose_from(claim: &NodeClaim, types: &[Value]) -> Result<Found, CloudError> {
    let mut vocabulary = Vocabulary::new();
    for key in aws_labels::WELL_KNOWN {
        vocabulary.add_well_known(key);
    }
    let types: Vec<InstanceType> = types
        .iter()
        .map(|it| serde_json::from_value::<model::snapshot::CatalogType>(it.clone()).unwrap())
        .map(|it| it.instance_type(&mut vocabulary))
        .collect();
    let choice = choose(claim, types, true, &mut vocabulary)?;
    let keys = ReservationKeys::of(&mut vocabulary);
    let name = |offering: &Offering, key: KeyId| {
        let value = offering.value(key);
        value
            .map(|value| vocabulary.value_name(key, value).to_owned())
            .unwrap_or_default()
    };
    let mut offers = Vec::new();
    for entry in &choice.types {
        for it in &entry.offerings {
            offers.push(
                format!(
                    "{} {} {}",
                    entry.name,
                    name(it, KeyId::CAPACITY_TYPE),
                    name(it, keys.id)
                )
                .trim_end()
                .to_owned(),
            );
        }
    }
    Ok(Found {
        types: choice.types.iter().map(|it| it.name.to_string()).collect(),
        offers,
        capacity_type: choice.capacity_type,
        tenancy: choice.tenancy,
    })
}

#[test]
fn spot_comes_before_on_demand_and_reserved_before_both() {
    let both = [offer("spot", "0.1"), offer("on-demand", "0.3")];
    let all: Vec<Offer> = both
        .iter()
        .cloned()
        .chain([reserved("cr-1", "default", "false", "0")])
        .collect();
    let any = ["reserved", "spot", "on-demand"];
    assert_eq!(
        choose_from(&claim(&any, json!([])), &[entry("m5.large", plain(), &all)])
            .unwrap()
            .capacity_type,
        "reserved"
    );
    assert_eq!(
        choose_from(&claim(&any, json!([])), &[entry("m5.large", plain(), &both)])
            .unwrap()
            .capacity_type,
        "spot"
    );
    let only = claim(&["on-demand"], json!([]));
    assert_eq!(
        choose_from(&only, &[entry("m5.large", plain(), &all)])
            .unwrap()
            .capacity_type,
        "on-demand"
    );
}

#[test]
fn types_that_are_short_too_small_or_not_named_are_left_out() {
    let short = Offer {
        is_available: false,
        ..offer("spot", "0.1")
    };
    let types = [
        entry("m5.large", plain(), &[short]),
        entry(
            "c5.large",
            json!({"cpu": "500m", "pods": "29"}),
            &[offer("spot", "0.1")],
        ),
        entry("r5.large", plain(), &[offer("spot", "0.2")]),
        entry("r5.xlarge", plain(), &[offer("spot", "0.2")]),
    ];
    let named = json!([{"key": "node.kubernetes.io/instance-type", "operator": "NotIn", "values": ["r5.xlarge"]}]);
    assert_eq!(
        choose_from(&claim(&["spot"], named), &types).unwrap().types,
        ["r5.large"]
    );
}

#[test]
fn a_type_counts_if_some_offering_has_the_shape_the_claim_needs() {
    // The claim needs one core; the type has half a core, and in zone b two.
    let overridden = |zone: &str, is_available: bool| {
        let offers = [offer("spot", "0.1"), offer("spot", "0.1")];
        let mut entry = entry("m5.large", json!({"cpu": "500m", "pods": "29"}), &offers);
        entry["offerings"][1]["requirements"][0]["values"] = json!([zone]);
        entry["offerings"][1]["capacityOverride"] = json!({"cpu": "2"});
        entry["offerings"][1]["available"] = is_available.into();
        entry
    };
    let spot = claim(&["spot"], json!([]));
    assert_eq!(
        choose_from(&spot, &[overridden("b", true)]).unwrap().types,
        ["m5.large"]
    );
    assert!(choose_from(&spot, &[overridden("b", false)]).is_err());
    let in_a = json!([{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]}]);
    assert!(choose_from(&claim(&["spot"], in_a), &[overridden("b", true)]).is_err());
}

#[test]
fn nothing_left_is_a_shortage() {
    let short = Offer {
        is_available: false,
        ..offer("spot", "0.1")
    };
    let found = choose_from(&claim(&["spot"], json!([])), &[entry("m5.large", plain(), &[short])]);
    let expected = "insufficient capacity, all requested instance types were unavailable during launch";
    assert_eq!(found.err().map(|error| error.to_string()).as_deref(), Some(expected));
}

#[test]
fn the_cheapest_kind_of_reservation_is_used_alone() {
    let any = claim(&["reserved", "on-demand"], json!([]));
    let cases = [
        (("default", "false", "0.2"), ("capacity-block", "false", "0.1"), "cr-2"),
        (("default", "false", "0.1"), ("capacity-block", "false", "0.1"), "cr-1"),
        (("default", "true", "0.1"), ("capacity-block", "false", "0.1"), "cr-2"),
        (("default", "true", "0.1"), ("default", "false", "0.2"), "cr-1"),
    ];
    for (one, other, expected) in cases {
        let types = [
            entry(
                "m5.large",
                plain(),
                &[reserved("cr-1", one.0, one.1, one.2), offer("on-demand", "0.3")],
            ),
            entry("c5.large", plain(), &[reserved("cr-2", other.0, other.1, other.2)]),
        ];
        let found = choose_from(&any, &types).unwrap();
        assert_eq!(found.offers.len(), 1, "{:?}", found.offers);
        assert!(
            found.offers[0].ends_with(expected),
            "{one:?} {other:?}: {:?}",
            found.offers
        );
    }
}

#[test]
fn a_request_takes_one_capacity_block_the_cheapest() {
    let block = |id, price| reserved(id, "capacity-block", "false", price);
    let types = [
        entry("p4d.24xlarge", plain(), &[block("cr-1", "0.3"), block("cr-2", "0.2")]),
        entry("p5.48xlarge", plain(), &[block("cr-3", "0.1")]),
    ];
    let found = choose_from(&claim(&["reserved"], json!([])), &types).unwrap();
    assert_eq!(found.offers, ["p5.48xlarge reserved cr-3"]);
}

#[test]
fn of_several_reservations_in_a_zone_the_roomiest_is_used() {
    let roomy = Offer {
        room: 5,
        ..reserved("cr-2", "default", "false", "0.1")
    };
    let elsewhere = Offer {
        zone: "b",
        ..reserved("cr-3", "default", "false", "0.1")
    };
    let offers = [reserved("cr-1", "default", "false", "0.1"), roomy, elsewhere];
    let mut found = choose_from(&claim(&["reserved"], json!([])), &[entry("m5.large", plain(), &offers)])
        .unwrap()
        .offers;
    found.sort();
    assert_eq!(found, ["m5.large reserved cr-2", "m5.large reserved cr-3"]);
}

#[test]
fn metal_and_accelerators_are_used_only_when_nothing_else_is_left() {
    let gpu = json!({"cpu": "4", "pods": "29", "nvidia.com/gpu": "1"});
    let exotic = [
        entry("m5.metal", plain(), &[offer("spot", "0.1")]),
        entry("g5.xlarge", gpu, &[offer("spot", "0.1")]),
    ];
    let spot = claim(&["spot"], json!([]));
    let mixed = [
        exotic[0].clone(),
        exotic[1].clone(),
        entry("m5.large", plain(), &[offer("spot", "0.2")]),
    ];
    assert_eq!(choose_from(&spot, &mixed).unwrap().types, ["m5.large"]);
    assert_eq!(choose_from(&spot, &exotic).unwrap().types.len(), 2);
    let flexible = json!([{"key": "node.kubernetes.io/instance-type", "operator": "Exists", "minValues": 2}]);
    assert_eq!(choose_from(&claim(&["spot"], flexible), &mixed).unwrap().types.len(), 3);
}

#[test]
fn spot_dearer_than_the_cheapest_on_demand_is_left_out() {
    let types = [
        entry("m5.large", plain(), &[offer("spot", "0.15"), offer("on-demand", "0.2")]),
        entry("c5.large", plain(), &[offer("spot", "0.3"), offer("on-demand", "0.4")]),
        entry("r5.large", plain(), &[offer("spot", "0.3")]),
    ];
    let found = choose_from(&claim(&["spot", "on-demand"], json!([])), &types).unwrap();
    assert_eq!(found.types, ["m5.large", "c5.large"]);
    assert_eq!(
        found.offers,
        ["m5.large spot", "m5.large on-demand", "c5.large on-demand"]
    );
    let only_spot = choose_from(&claim(&["spot"], json!([])), &types).unwrap();
    assert_eq!(only_spot.types.len(), 3);
    let flexible = json!([{"key": "node.kubernetes.io/instance-type", "operator": "Exists", "minValues": 2}]);
    let found = choose_from(&claim(&["spot", "on-demand"], flexible), &types).unwrap();
    assert_eq!(found.types.len(), 3);
    let without_on_demand = [types[2].clone()];
    let found = choose_from(&claim(&["spot", "on-demand"], json!([])), &without_on_demand).unwrap();
    assert_eq!(found.types, ["r5.large"]);
}

#[test]
fn a_request_names_the_sixty_cheapest_types() {
    let prices: Vec<String> = (0..70).map(|number| format!("0.{:03}", 100 - number)).collect();
    let types: Vec<Value> = prices
        .iter()
        .enumerate()
        .map(|(at, price)| {
            entry(
                &format!("m{at}.large"),
                plain(),
                &[offer("spot", Box::leak(price.clone().into_boxed_str()))],
            )
        })
        .collect();
    let found = choose_from(&claim(&["spot"], json!([])), &types).unwrap().types;
    assert_eq!(found.len(), 60);
    assert_eq!((found[0].as_str(), found[59].as_str()), ("m69.large", "m10.large"));
    let flexible = json!([{"key": "node.kubernetes.io/instance-type", "operator": "Exists", "minValues": 65}]);
    let refused = choose_from(&claim(&["spot"], flexible), &types)
        .err()
        .map(|error| error.to_string())
        .unwrap();
    assert!(refused.contains("minValues requirement is not met"), "{refused}");
}

#[test]
fn tenancy_is_default_where_it_may_be() {
    let types = [entry("m5.large", plain(), &[offer("spot", "0.1")])];
    let tenancy = |operator: &str, values: &[&str]| {
        let wanted = json!([{"key": "karpenter.k8s.aws/instance-tenancy", "operator": operator, "values": values}]);
        choose_from(&claim(&["spot"], wanted), &types).unwrap().tenancy
    };
    assert_eq!(
        choose_from(&claim(&["spot"], json!([])), &types).unwrap().tenancy,
        "default"
    );
    assert_eq!(tenancy("In", &["default", "dedicated"]), "default");
    assert_eq!(tenancy("In", &["dedicated"]), "dedicated");
    assert_eq!(tenancy("NotIn", &["default"]), "dedicated");
}
