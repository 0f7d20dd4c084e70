//! The catalogue against what the provider publishes: allocatable resources of its documentation, labels of its types.

use super::labels::category_and_generation;
use api::labels::{INSTANCE_TYPE, aws as labels};
use model::vocabulary::Vocabulary;

use super::*;

fn loaded(region: &str) -> Loaded {
    load(region, &[]).unwrap()
}

fn find(loaded: &Loaded, name: &str) -> Arc<CatalogType> {
    Arc::clone(loaded.catalog.get(&name.into()).unwrap())
}

/// The values of a label; none when it is absent.
fn label(found: &CatalogType, key: &str) -> Vec<String> {
    let requirement = found.requirements.iter().find(|requirement| requirement.key == key);
    requirement
        .unwrap_or_else(|| panic!("{} does not mention {key}", found.name))
        .values
        .clone()
}

#[test]
fn allocatable_resources_are_the_published_ones() {
    let catalogue = loaded("us-east-1");
    // Millicores and bytes, from the provider's reference of instance types.
    let published = [
        ("a1.2xlarge", 7_910, 14_788_067_328),
        ("c5.metal", 95_690, 181_823_078_400),
        ("g4dn.xlarge", 3_920, 15_184_429_056),
        ("m7i-flex.4xlarge", 15_890, 60_493_398_016),
    ];
    for (name, cpu, memory) in published {
        let allocatable = find(&catalogue, name)
            .instance_type(&mut Vocabulary::default())
            .allocatable();
        let storage = allocatable.amount("ephemeral-storage").value();
        assert_eq!(
            (
                allocatable.amount("cpu").milli_value(),
                allocatable.amount("memory").value(),
                storage
            ),
            (cpu, memory, 18_253_611_008),
            "{name}"
        );
    }
}

#[test]
fn every_type_with_a_price_is_sold_in_three_zones_as_spot_and_on_demand() {
    let catalogue = loaded("us-east-1").catalog;
    assert_eq!(catalogue.instance_types.len(), 1345);
    assert!(catalogue.instance_types.iter().all(|found| found.offerings.len() == 6));
}

#[test]
fn prices_are_those_of_the_region_and_spot_is_a_fixed_part_of_them() {
    let prices = |region: &str| {
        let found = find(&loaded(region), "m7i-flex.4xlarge");
        [
            found.offerings[0].price.to_decimal(),
            found.offerings[1].price.to_decimal(),
        ]
    };
    assert_eq!(prices("us-east-1"), ["0.76608", "0.306432"]);
    assert_eq!(prices("eu-west-1"), ["0.85384", "0.341536"]);
}

#[test]
fn govcloud_has_its_own_prices_and_beijing_prices_in_yuan() {
    let price = |region: &str, name: &str| find(&loaded(region), name).offerings[0].price.to_decimal();
    assert_eq!(price("us-gov-east-1", "c5.large"), "0.102");
    assert_eq!(price("us-gov-west-1", "c5.large"), "0.102");
    assert_eq!(price("cn-north-1", "c4.large"), "1.134");
    let assumed = loaded("cn-north-1").assumed;
    assert_eq!(
        assumed.first().map(String::as_str),
        Some("prices are in yuan, as AWS charges them in China")
    );
    let sells = |region: &str, name: &str| {
        loaded(region)
            .catalog
            .instance_types
            .iter()
            .any(|it| it.name.as_str() == name)
    };
    assert!(sells("us-east-1", "m8g.large") && !sells("cn-north-1", "m8g.large"));
}

#[test]
fn a_region_without_prices_costs_what_us_east_1_costs_and_says_so() {
    let here = loaded("ap-south-1");
    let price = |loaded: &Loaded| find(loaded, "m5.large").offerings[0].price;
    assert_eq!(price(&here), price(&loaded("us-east-1")));
    assert_eq!(
        here.assumed.first().map(String::as_str),
        Some("ap-south-1 costs what us-east-1 costs (no prices of its own in the table)")
    );
}

#[test]
fn zones_that_the_cluster_uses_are_added() {
    let more = [
        "us-east-1f".to_owned(),
        "us-east-1a".to_owned(),
        "eu-west-1a".to_owned(),
    ];
    assert_eq!(
        zones("us-east-1", &more),
        ["us-east-1a", "us-east-1b", "us-east-1c", "us-east-1f"]
    );
}

#[test]
fn labels_are_those_the_provider_publishes() {
    let catalogue = loaded("us-east-1");
    let cases: [(&str, &str, &[&str]); 12] = [
        ("m7i-flex.4xlarge", labels::INSTANCE_CATEGORY, &["m"]),
        ("m7i-flex.4xlarge", labels::INSTANCE_GENERATION, &["7"]),
        ("m7i-flex.4xlarge", labels::INSTANCE_FAMILY, &["m7i-flex"]),
        ("m7i-flex.4xlarge", labels::INSTANCE_SIZE, &["4xlarge"]),
        ("m7i-flex.4xlarge", labels::INSTANCE_CAPABILITY_FLEX, &["true"]),
        ("m7i-flex.4xlarge", labels::INSTANCE_MEMORY, &["65536"]),
        ("m7i-flex.4xlarge", labels::INSTANCE_GPU_NAME, &[]),
        ("g4dn.xlarge", labels::INSTANCE_GPU_NAME, &["t4"]),
        ("g4dn.xlarge", labels::INSTANCE_LOCAL_NVME, &["125"]),
        ("c5.metal", labels::INSTANCE_HYPERVISOR, &[""]),
        ("c5.metal", labels::INSTANCE_TENANCY, &["default", "dedicated"]),
        ("inf2.24xlarge", INSTANCE_TYPE, &["inf2.24xlarge"]),
    ];
    for (name, key, values) in cases {
        assert_eq!(label(&find(&catalogue, name), key), values, "{name} {key}");
    }
}

#[test]
fn every_well_known_label_of_a_type_is_mentioned() {
    // These three belong to a placement group and to an account, not to a type.
    let unknown = [
        labels::PLACEMENT_GROUP_ID,
        labels::PLACEMENT_GROUP_PARTITION,
        labels::ZONE_ID,
    ];
    for found in &loaded("us-east-1").catalog.instance_types {
        let mentioned = |key: &&str| found.requirements.iter().any(|requirement| requirement.key == *key);
        let missing: Vec<_> = WELL_KNOWN.iter().copied().filter(|key| !mentioned(key)).collect();
        assert_eq!(missing, unknown, "{}", found.name);
    }
}

#[test]
fn category_and_generation_are_read_from_the_family() {
    let cases = [
        ("m5", ("m", "5")),
        ("m7i-flex", ("m", "7")),
        ("u-6tb1", ("u", "1")),
        ("u7i-12tb", ("u", "7")),
        ("inf2", ("inf", "2")),
        ("x2iedn", ("x", "2")),
        ("mac", ("", "")),
    ];
    for (family, expected) in cases {
        assert_eq!(category_and_generation(family), expected, "{family}");
    }
}

#[test]
fn a_type_the_default_image_does_not_run_on_is_listed_but_not_available() {
    let found = find(&loaded("us-east-1"), "a1.large");
    assert!(found.offerings.iter().all(|offering| !offering.available));
}
