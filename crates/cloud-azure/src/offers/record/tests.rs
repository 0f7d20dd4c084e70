//! Sizes against true records of the API.

use model::snapshot::CatalogType;
use serde_json::Value;

use super::*;

fn skus(region: &str) -> Vec<Sku> {
    let all: Value = serde_json::from_str(include_str!("../../../tests/data/resource-skus.json")).unwrap();
    serde_json::from_value(all[region]["value"].clone()).unwrap()
}

fn record(name: &str) -> Result<SizeRecord, String> {
    let all = skus("southcentralus");
    SizeRecord::read(all.iter().find(|it| it.name == name).unwrap(), "southcentralus")
}

fn class(spec: &str) -> AKSNodeClass {
    serde_json::from_str(&format!(
        r#"{{"apiVersion":"karpenter.azure.com/v1beta1","kind":"AKSNodeClass","metadata":{{"name":"c"}},"spec":{spec}}}"#
    ))
    .unwrap()
}

#[test]
fn sizes_that_nodes_do_not_run_on_are_left_out() {
    for name in ["Standard_A0", "Standard_B1s", "Standard_DC8s_v3", "Standard_M8-2ms"] {
        assert!(record(name).is_err(), "{name}");
    }
    let used = skus("southcentralus")
        .iter()
        .filter(|sku| SizeRecord::read(sku, "southcentralus").is_ok())
        .count();
    assert_eq!(used, 16);
}

#[test]
fn the_system_disk_goes_on_nvme_then_the_cache_then_the_temporary_disk() {
    let cases = [
        ("Standard_D128ds_v6", Some((7559, "NvmeDisk"))),
        ("Standard_D2s_v3", Some((53, "CacheDisk"))),
        ("Standard_E4d_v5", Some((161, "ResourceDisk"))),
        // It has NVMe disks, but not for the system.
        ("Standard_NC24ads_A100_v4", Some((274, "CacheDisk"))),
        ("Standard_D2_v5", None),
        ("Standard_D16plds_v5", Some((429, "CacheDisk"))),
        ("Standard_D64s_v3", Some((1717, "CacheDisk"))),
        ("Standard_D2as_v6", None),
        ("Standard_D2_v2", None),
    ];
    for (name, disk) in cases {
        assert_eq!(record(name).unwrap().ephemeral_disk, disk, "{name}");
    }
}

#[test]
fn zones_are_those_of_the_region_without_the_restricted_ones() {
    let mut sku = skus("southcentralus")
        .into_iter()
        .find(|it| it.name == "Standard_D2s_v3")
        .unwrap();
    let zones = |sku: &Sku| {
        SizeRecord::read(sku, "SouthCentralUS")
            .unwrap()
            .zones
            .into_iter()
            .collect::<Vec<_>>()
    };
    assert_eq!(zones(&sku), ["1", "2", "3"]);
    let restriction = r#"{"type": "Zone", "values": ["southcentralus"], "restrictionInfo": {"zones": ["2"]}}"#;
    sku.restrictions.push(serde_json::from_str(restriction).unwrap());
    assert_eq!(zones(&sku), ["1", "3"]);
    let restriction = r#"{"type": "Location", "values": ["southcentralus"]}"#;
    sku.restrictions.push(serde_json::from_str(restriction).unwrap());
    assert!(SizeRecord::read(&sku, "southcentralus").is_err());
    assert_eq!(record("Standard_NC6s_v3").unwrap().zones.len(), 0);
}

#[test]
fn a_class_uses_the_sizes_that_can_do_what_it_asks() {
    let is_for = |name: &str, spec: &str| record(name).unwrap().is_for(&class(spec));
    assert!(is_for("Standard_D2s_v3", "{}"));
    assert!(!is_for("Standard_D2_v2", r#"{"security": {"encryptionAtHost": true}}"#));
    assert!(is_for("Standard_D2s_v3", r#"{"security": {"encryptionAtHost": true}}"#));
    assert!(
        !is_for("Standard_D2_v2", r#"{"security": {"trustedLaunch": {"vtpm": true}}}"#),
        "generation 1 only"
    );
    assert!(
        !is_for("Standard_D16plds_v5", r#"{"artifactStreaming": {"enabled": true}}"#),
        "arm64"
    );
    assert!(is_for("Standard_NC16as_T4_v3", r#"{"imageFamily": "AzureLinux"}"#));
}

#[test]
fn a_class_that_asks_for_nothing_has_every_size_that_aks_can_drive() {
    let is_for = |name: &str, spec: &str| record(name).unwrap().is_for(&class(spec));
    for spec in [
        "{}",
        r#"{"security": {"encryptionAtHost": false}}"#,
        r#"{"artifactStreaming": {"enabled": false}}"#,
        r#"{"localDNS": {"mode": "Disabled"}}"#,
    ] {
        for name in ["Standard_D2_v2", "Standard_D16plds_v5", "Standard_NC24ads_A100_v4"] {
            assert!(is_for(name, spec), "{name} {spec}");
        }
    }
    assert!(is_for("Standard_D2_v2", r#"{"imageFamily": "AzureLinux"}"#));
}

#[test]
fn a_dns_cache_on_the_node_needs_four_cpus() {
    let mut class = class(r#"{"localDNS": {"mode": "Required"}}"#);
    let small = record("Standard_D2s_v3").unwrap();
    let large = record("Standard_D4s_v3").unwrap();
    assert!(small.is_for(&class) && large.is_for(&class), "it is not decided on yet");
    class.status = serde_json::from_str(r#"{"localDNSState": "Enabled"}"#).unwrap();
    assert!(!small.is_for(&class) && large.is_for(&class));
    class.status = serde_json::from_str(r#"{"localDNSState": "Disabled"}"#).unwrap();
    assert!(small.is_for(&class));
}

#[test]
fn gpus_are_named_and_counted() {
    let record = record("Standard_NC24ads_A100_v4").unwrap();
    let machine = record.machine();
    assert_eq!(
        (machine.gpu_count, machine.gpu_name, machine.gpu_manufacturer),
        (1, "A100", "nvidia")
    );
}

/// The formulas are the catalogue's; what goes into them comes from the API here and from a table there.
#[test]
fn sizes_are_what_the_catalogue_says_on_every_exact_record() {
    let table = catalogue::load(catalogue::Source::Azure, Some("southcentralus"), &[])
        .unwrap()
        .catalog;
    let setup = catalogue::azure::Setup::default();
    let mut compared = 0;
    for region in ["southcentralus", "westcentralus"] {
        for sku in skus(region) {
            let Ok(record) = SizeRecord::read(&sku, region) else {
                continue;
            };
            let Some(expected) = table.get(&record.name.as_str().into()) else {
                continue;
            };
            let machine = record.machine();
            let CatalogType { capacity, overhead, .. } = &**expected;
            assert_eq!(
                &catalogue::azure::capacity(&machine, &setup),
                capacity,
                "{}",
                record.name
            );
            assert_eq!(&catalogue::azure::overhead(&machine), overhead, "{}", record.name);
            compared += 1;
        }
    }
    assert!(compared >= 20, "{compared}");
}

#[test]
fn a_node_has_what_the_hypervisor_and_the_kubelet_leave() {
    let record = record("Standard_D2s_v3").unwrap();
    let (machine, setup) = (record.machine(), catalogue::azure::Setup::default());
    let capacity = catalogue::azure::capacity(&machine, &setup);
    assert_eq!(capacity.amount("memory").value(), 8_589_934_592 - 644_245_095);
    assert_eq!(capacity.amount("ephemeral-storage").value(), 128_000_000_000);
    let overhead = catalogue::azure::overhead(&machine);
    assert_eq!(overhead.kube_reserved.amount("memory").value(), 1843 << 20);
    assert_eq!(overhead.eviction_threshold.amount("memory").value(), 750 << 20);
}
