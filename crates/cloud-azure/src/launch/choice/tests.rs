//! Choices against the contract's order.

#![allow(clippy::needless_pass_by_value, reason = "called with literals")]

use serde_json::{Value, json};

use super::*;

fn offering(zone: &str, kind: &str, price: &str, available: bool) -> Value {
    let one = |key: &str, value: &str| json!({"key": key, "operator": "In", "values": [value]});
    json!({"price": price, "available": available, "requirements": [
        one("topology.kubernetes.io/zone", zone), one("karpenter.sh/capacity-type", kind),
        one("karpenter.azure.com/placement-scope", if zone == "0" { "regional" } else { "zonal" }),
        json!({"key": SKU_STORAGE_ULTRA_SSD, "operator": "In", "values": ["true", "false"]}),
    ]})
}

fn entry(name: &str, cpu: &str, offerings: &[Value]) -> Arc<CatalogType> {
    let values = |key: &str, values: Value| json!({"key": key, "operator": "In", "values": values});
    let json = json!({"name": name, "offerings": offerings, "capacity": {"cpu": cpu, "memory": "8Gi", "pods": "110"},
    "requirements": [
        values(INSTANCE_TYPE, json!([name])),
        values("topology.kubernetes.io/zone", json!(["eastus-1", "eastus-2", "0"])),
        values("karpenter.sh/capacity-type", json!(["spot", "on-demand"])),
        values(SKU_STORAGE_ULTRA_SSD, json!(["true", "false"])),
    ]});
    Arc::new(serde_json::from_value(json).unwrap())
}

fn claim(requirements: Value, cpu: &str) -> NodeClaim {
    serde_json::from_value(json!({
        "metadata": {"name": "a"},
        "spec": {"requirements": requirements, "resources": {"requests": {"cpu": cpu}}},
    }))
    .unwrap()
}

fn chosen(claim: &NodeClaim, types: &[Arc<CatalogType>], seed: u64) -> (String, String, &'static str) {
    let chosen = choose(claim, types, &Random::seeded(seed), |_, _, _| None).unwrap();
    (chosen.entry.name.to_string(), chosen.zone, chosen.capacity_type)
}

#[test]
fn the_cheapest_wins_and_at_equal_price_spot_then_a_zone() {
    let types = [
        entry(
            "b",
            "4",
            &[
                offering("0", "spot", "1", true),
                offering("eastus-1", "on-demand", "1", true),
            ],
        ),
        entry(
            "c",
            "4",
            &[
                offering("eastus-1", "spot", "1", true),
                offering("0", "spot", "1", true),
            ],
        ),
        entry("d", "4", &[offering("eastus-1", "spot", "2", true)]),
    ];
    let any = claim(json!([]), "1");
    // Spot without a zone comes before on-demand in one; a zone comes first among spot.
    assert_eq!(chosen(&any, &types[..1], 1), ("b".to_owned(), "0".to_owned(), "spot"));
    assert_eq!(chosen(&any, &types, 1), ("c".to_owned(), "eastus-1".to_owned(), "spot"));
}

#[test]
fn equal_types_are_taken_by_name_and_equal_zones_by_chance() {
    let offerings = [
        offering("eastus-1", "spot", "1", true),
        offering("eastus-2", "spot", "1", true),
    ];
    let types = [entry("b", "4", &offerings), entry("a", "4", &offerings)];
    let zones: std::collections::BTreeSet<String> = (0..32)
        .map(|seed| {
            let (name, zone, _) = chosen(&claim(json!([]), "1"), &types, seed);
            assert_eq!(name, "a");
            zone
        })
        .collect();
    assert_eq!(zones.len(), 2);
}

#[test]
fn what_a_claim_requires_and_needs_is_kept_to() {
    let types = [
        entry(
            "small",
            "2",
            &[
                offering("eastus-1", "spot", "1", true),
                offering("eastus-2", "on-demand", "2", true),
            ],
        ),
        entry(
            "large",
            "8",
            &[
                offering("eastus-1", "spot", "4", true),
                offering("eastus-2", "on-demand", "5", true),
            ],
        ),
    ];
    let on_demand = json!([{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}]);
    assert_eq!(
        chosen(&claim(on_demand, "1"), &types, 1),
        ("small".to_owned(), "eastus-2".to_owned(), "on-demand")
    );
    assert_eq!(chosen(&claim(json!([]), "4"), &types, 1).0, "large");
    let named = json!([{"key": INSTANCE_TYPE, "operator": "In", "values": ["large"]}]);
    assert_eq!(chosen(&claim(named, "1"), &types, 1).0, "large");
}

#[test]
fn ultra_disks_are_asked_for_only_where_nothing_else_will_do() {
    let types = [entry("a", "4", &[offering("eastus-1", "spot", "1", true)])];
    let needs = |values: Value| {
        let claim = claim(
            json!([{"key": SKU_STORAGE_ULTRA_SSD, "operator": "In", "values": values}]),
            "1",
        );
        choose(&claim, &types, &Random::seeded(1), |_, _, _| None)
            .unwrap()
            .needs_ultra_ssd
    };
    assert!(needs(json!(["true"])));
    assert!(!needs(json!(["true", "false"])));
}

#[test]
fn nothing_left_is_told_with_the_reasons() {
    let types = [entry("a", "4", &[offering("eastus-1", "spot", "1", false)])];
    let why = |_: &str, _: &str, _: &str| Some("quota full".to_owned());
    let refused = choose(&claim(json!([]), "1"), &types, &Random::seeded(1), why)
        .unwrap_err()
        .to_string();
    assert_eq!(
        refused,
        "insufficient capacity, all requested instance types were unavailable during launch (a spot: quota full)"
    );
}
