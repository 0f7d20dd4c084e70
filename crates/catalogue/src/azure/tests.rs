//! The catalogue against the provider's contract: reservations, labels, zones and prices.

use api::labels::azure as labels;

use super::*;

fn find(region: &str, name: &str) -> Arc<CatalogType> {
    Arc::clone(load(region).unwrap().catalog.get(&name.into()).unwrap())
}

#[test]
fn reservations_are_the_providers() {
    let cpu = [
        (2, 100),
        (4, 140),
        (8, 180),
        (16, 260),
        (64, 740),
        (120, 1299),
        (176, 1859),
    ];
    for (cores, millis) in cpu {
        assert_eq!(reserved_cpu(cores), millis, "{cores} cores");
    }
    for (gib, mib) in [(8.0, 1843), (16.0, 2662), (64.0, 5611), (3.5, 896)] {
        assert_eq!(reserved_memory(gib), mib, "{gib} GiB");
    }
}

#[test]
fn memory_is_what_the_hypervisor_leaves() {
    let found = find("eastus", "Standard_D4s_v5");
    let memory = 16i64 << 30;
    // 7.5 % of it, rounded up to a byte.
    assert_eq!(found.capacity.amount("memory").value(), memory - 1_288_490_189);
    assert_eq!(found.capacity.amount("pods").value(), 250);
}

#[test]
fn prices_are_those_of_the_region() {
    let prices = |region, name| {
        let offerings = find(region, name).offerings.clone();
        let of_first_zone = offerings
            .iter()
            .take_while(|offering| offering.requirements[1] == offerings[0].requirements[1]);
        of_first_zone
            .map(|offering| offering.price.to_decimal())
            .collect::<Vec<_>>()
    };
    assert_eq!(prices("eastus", "Standard_D4s_v5"), ["0.192", "0.02112"]);
    assert_eq!(prices("westus2", "Standard_D4s_v5"), ["0.192", "0.02496"]);
    assert_eq!(prices("westeurope", "Standard_D4s_v5"), ["0.23", "0.0253"]);
    assert_eq!(prices("eastus", "Standard_B2s"), ["0.0416"]);
    // The published table has this one with a Windows licence, 1.56.
    assert_eq!(prices("eastus", "Standard_D16ads_v5"), ["0.824", "0.09064"]);
}

#[test]
fn a_size_is_sold_in_its_zones_and_without_one() {
    let cases: [(&str, [&str; 2], &[&str]); 5] = [
        ("westus2", ["12", ""], &["westus2-1", "westus2-2"]),
        ("westus2", ["-", "13"], &[]),
        ("eastus", ["12", ""], &["eastus-1", "eastus-2", "eastus-3"]),
        ("eastus", ["-", ""], &[]),
        ("eastus", ["", ""], &["eastus-1", "eastus-2", "eastus-3"]),
    ];
    for (region, known, expected) in cases {
        assert_eq!(zones(region, known), expected, "{region} {known:?}");
    }
    let zones = find("westus2", "Standard_D4s_v5").requirements[3].values.clone();
    assert_eq!(zones, ["westus2-1", "westus2-2", "westus2-3", "0"]);
}

#[test]
fn every_well_known_label_of_a_size_is_mentioned() {
    for found in &load("eastus").unwrap().catalog.instance_types {
        let mentioned = |key: &&str| found.requirements.iter().any(|requirement| requirement.key == *key);
        let missing: Vec<_> = WELL_KNOWN.iter().copied().filter(|key| !mentioned(key)).collect();
        assert_eq!(missing, [labels::AKS_CLUSTER], "{}", found.name);
    }
}

#[test]
fn sizes_the_provider_refuses_are_not_offered() {
    let catalogue = load("eastus").unwrap().catalog;
    // Too small, confidential, constrained in cores.
    for name in ["Standard_B1s", "Standard_DC4s_v3", "Standard_M8-2ms"] {
        assert!(catalogue.get(&name.into()).is_none(), "{name}");
    }
    assert!(
        catalogue.instance_types.len() > 900,
        "{}",
        catalogue.instance_types.len()
    );
}
