//! The file format, and what is derived from a type's name.

use super::*;

const FILE: &[u8] = br#"[{
    "name": "m5.2xlarge", "architecture": "amd64", "operatingSystems": ["linux"],
    "resources": {"cpu": "8", "memory": "32Gi", "ephemeral-storage": "20Gi"},
    "offerings": [
        {"Price": 0.1, "Available": false, "Requirements": [
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]},
            {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["b"]},
            {"key": "example.com/rack", "operator": "In", "values": ["1"]}]},
        {"Price": 0.3, "Requirements": [
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
            {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]}]}]}]"#;

#[test]
fn a_file_gives_types_with_110_pods_whose_offerings_are_all_available() {
    let offers = Offers::from_json(FILE).unwrap();
    let found = &offers.types()[0];
    let capacity: ResourceList =
        serde_json::from_str(r#"{"cpu":"8","ephemeral-storage":"20Gi","memory":"32Gi","pods":"110"}"#).unwrap();
    assert_eq!((found.name.as_str(), &found.capacity), ("m5.2xlarge", &capacity));
    let prices: Vec<_> = found
        .offerings
        .iter()
        .map(|it| (it.price.to_decimal(), it.available))
        .collect();
    assert_eq!(prices, [("0.1".to_owned(), true), ("0.3".to_owned(), true)]);
    let labels: Vec<_> = found
        .requirements
        .iter()
        .map(|it| (it.key.as_str(), it.values.join(",")))
        .collect();
    let expected = [
        (INSTANCE_TYPE, "m5.2xlarge"),
        (ARCH, "amd64"),
        (OS, "linux"),
        (ZONE, "b,a"),
        (CAPACITY_TYPE, "spot,on-demand"),
        (labels::INSTANCE_SIZE, "2xlarge"),
        (labels::INSTANCE_FAMILY, "m5"),
        (labels::INSTANCE_CPU, "8"),
        (labels::INSTANCE_MEMORY, "32Gi"),
    ];
    assert_eq!(labels, expected.map(|(key, values)| (key, values.to_owned())));
}

#[test]
fn keys_that_tell_offerings_apart_become_well_known() {
    let known = Offers::from_json(FILE).unwrap().well_known_labels();
    let expected = [
        "example.com/rack",
        "karpenter.kwok.sh/instance-cpu",
        "karpenter.kwok.sh/instance-family",
        "karpenter.kwok.sh/instance-memory",
        "karpenter.kwok.sh/instance-size",
        "karpenter.sh/capacity-type",
        "topology.kubernetes.io/zone",
    ];
    assert_eq!(known, expected);
}

#[test]
fn what_cannot_be_read_is_said_with_upstreams_words() {
    let cases = [
        (&br#"{"name": "a"}"#[..], "could not parse JSON data: "),
        (
            br#"[{"name": "a", "resources": {"cpu": "lots"}}]"#,
            "could not parse JSON data: ",
        ),
        (
            br#"[{"name": "a", "offerings": [{"Price": -1}]}]"#,
            "could not parse JSON data: price -1 of instance type a is not an amount of money",
        ),
    ];
    for (file, words) in cases {
        let error = Offers::from_json(file).unwrap_err().to_string();
        assert!(error.starts_with(words), "{error}");
    }
}

#[test]
fn size_and_family_come_from_the_name() {
    let cases = [
        ("m5.large", Some("large"), "m5"),
        ("m5.24xlarge", Some("24xlarge"), "m5"),
        ("m5.xlarge", Some("xlarge"), "m5"),
        ("m5.metal", Some("metal"), "m5"),
        ("m5.metal-24xl", None, "m5"),
        ("c-4x-amd64-linux", None, "c"),
        ("Standard_D4s_v5", None, "S"),
        ("", None, ""),
    ];
    for (name, expected_size, expected_family) in cases {
        assert_eq!((size(name), family(name)), (expected_size, expected_family), "{name}");
    }
}
