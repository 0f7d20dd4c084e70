//! The bodies of machines against the contract.

#![allow(clippy::needless_pass_by_value, reason = "called with literals")]

use std::sync::Arc;

use serde_json::Value;

use super::*;
use crate::arm::wire::Sku;

const COMMUNITY: &str = "/CommunityGalleries/AKSUbuntu-38d80f77/images/2204gen2containerd/versions/1";
const SHARED: &str =
    "/subscriptions/s/resourceGroups/AKS-Ubuntu/providers/Microsoft.Compute/galleries/AKSUbuntu/images/x/versions/1";

fn record(name: &str) -> SizeRecord {
    let all: Value = serde_json::from_str(include_str!("../../../tests/data/resource-skus.json")).unwrap();
    let all: Vec<Sku> = serde_json::from_value(all["southcentralus"]["value"].clone()).unwrap();
    SizeRecord::read(all.iter().find(|it| it.name == name).unwrap(), "southcentralus").unwrap()
}

fn body(size: &str, spec: Value, image: &str, zone: &str, kind: &'static str, settings: &AzureSettings) -> Value {
    let class: AKSNodeClass = serde_json::from_value(json!({"apiVersion": "karpenter.azure.com/v1beta1",
        "kind": "AKSNodeClass", "metadata": {"name": "c"}, "spec": spec}))
    .unwrap();
    let chosen = Chosen {
        entry: Arc::new(serde_json::from_value(json!({"name": size})).unwrap()),
        zone: zone.to_owned(),
        capacity_type: kind,
        needs_ultra_ssd: false,
    };
    let request = MachineRequest {
        name: "aks-a",
        class: &class,
        chosen: &chosen,
        record: &record(size),
        image,
        settings,
        nic_id: "/nic",
        custom_data: "ZGF0YQ==".to_owned(),
        tags: &Tags::from([("a".to_owned(), "b".to_owned())]),
    };
    serde_json::to_value(machine(&request)).unwrap()
}

fn settings() -> AzureSettings {
    AzureSettings {
        location: "southcentralus".to_owned(),
        ssh_public_key: "ssh-rsa k".to_owned(),
        ..AzureSettings::default()
    }
}

#[test]
fn a_machine_on_demand_in_a_zone_has_a_whole_body() {
    let body = body(
        "Standard_D2_v5",
        json!({}),
        COMMUNITY,
        "southcentralus-2",
        "on-demand",
        &settings(),
    );
    let expected = json!({
        "location": "southcentralus",
        "zones": ["2"],
        "tags": {"a": "b"},
        "properties": {
            "hardwareProfile": {"vmSize": "Standard_D2_v5"},
            "storageProfile": {
                "imageReference": {"communityGalleryImageId": COMMUNITY},
                "osDisk": {"name": "aks-a", "diskSizeGB": 128, "createOption": "FromImage", "deleteOption": "Delete"},
            },
            "osProfile": {
                "adminUsername": "azureuser", "computerName": "aks-a", "customData": "ZGF0YQ==",
                "linuxConfiguration": {"disablePasswordAuthentication": true, "ssh": {"publicKeys": [
                    {"path": "/home/azureuser/.ssh/authorized_keys", "keyData": "ssh-rsa k"}]}},
            },
            "networkProfile": {"networkInterfaces": [
                {"id": "/nic", "properties": {"primary": true, "deleteOption": "Delete"}}]},
            "priority": "Regular",
        },
    });
    assert_eq!(body, expected);
}

#[test]
fn spot_without_a_zone_is_evicted_by_deletion_at_the_price_on_demand() {
    let body = body("Standard_D2_v5", json!({}), SHARED, "0", "spot", &settings());
    assert_eq!(body["zones"], json!([]));
    let properties = &body["properties"];
    assert_eq!(properties["priority"], "Spot");
    assert_eq!(properties["evictionPolicy"], "Delete");
    assert_eq!(properties["billingProfile"], json!({"maxPrice": -1}));
    assert_eq!(properties["storageProfile"]["imageReference"], json!({"id": SHARED}));
}

#[test]
fn the_system_disk_is_on_the_machine_where_it_fits() {
    let disk = |size: &str, gb: i32| {
        let body = body(size, json!({"osDiskSizeGB": gb}), COMMUNITY, "0", "spot", &settings());
        body["properties"]["storageProfile"]["osDisk"].clone()
    };
    let nvme = disk("Standard_D128ds_v6", 128);
    assert_eq!(
        nvme["diffDiskSettings"],
        json!({"option": "Local", "placement": "NvmeDisk"})
    );
    assert_eq!(nvme["caching"], "ReadOnly");
    assert_eq!(
        disk("Standard_D2s_v3", 53)["diffDiskSettings"]["placement"],
        "CacheDisk"
    );
    assert_eq!(disk("Standard_D2s_v3", 54)["diffDiskSettings"], Value::Null);
}

#[test]
fn security_is_as_the_class_asks() {
    let profile = |security: Value| {
        let body = body(
            "Standard_D2s_v3",
            json!({"security": security}),
            COMMUNITY,
            "0",
            "spot",
            &settings(),
        );
        body["properties"]["securityProfile"].clone()
    };
    assert_eq!(
        profile(json!({"encryptionAtHost": true})),
        json!({"encryptionAtHost": true})
    );
    assert_eq!(
        profile(json!({"trustedLaunch": {"vtpm": true}})),
        json!({"securityType": "TrustedLaunch", "uefiSettings": {"secureBootEnabled": false, "vTpmEnabled": true}})
    );
    assert_eq!(profile(json!({})), Value::Null);
}

#[test]
fn identities_and_keys_of_the_settings_are_used() {
    let settings = AzureSettings {
        node_identities: vec!["/id/1".to_owned()],
        disk_encryption_set_id: "/des".to_owned(),
        ..settings()
    };
    let body = body("Standard_D2_v5", json!({}), COMMUNITY, "0", "on-demand", &settings);
    assert_eq!(
        body["identity"],
        json!({"type": "UserAssigned", "userAssignedIdentities": {"/id/1": {}}})
    );
    let disk = &body["properties"]["storageProfile"]["osDisk"];
    assert_eq!(disk["managedDisk"], json!({"diskEncryptionSet": {"id": "/des"}}));
}
