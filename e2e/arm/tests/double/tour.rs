//! Is every operation of the contract played, with an answer that its schema allows?

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::client::{AKS, Azure, COMPUTE, NETWORK, machine_body, tags};

/// Every operation once, with success.
async fn visit(azure: &Azure) {
    let (vm, nic) = (azure.vm("aks-a"), azure.nic("aks-a"));
    let patch = json!({"tags": tags()});
    let created = azure.ask_vm("aks-a", &azure.vm_body("aks-a")).await;
    azure.get(created.header("azure-asyncoperation")).await;
    for target in [&vm, &nic] {
        azure.get(target).await;
        azure.call("PATCH", target, Some(&patch)).await;
    }
    let extension = azure.extension("aks-a", "computeAksLinuxBilling");
    let billing = json!({
        "location": "eastus", "tags": tags(),
        "properties": {
            "publisher": "Microsoft.AKS", "type": "Compute.AKS.Linux.Billing", "typeHandlerVersion": "1.0",
            "autoUpgradeMinorVersion": true, "settings": {},
        },
    });
    azure.put(&extension, &billing).await;
    azure.get(&extension).await;
    azure.call("PATCH", &extension, Some(&patch)).await;
    azure.call("DELETE", &extension, None).await;
    visit_lists(azure).await;
    visit_machines(azure).await;
    let disk = azure.in_group("Microsoft.Compute/disks/lost", "2025-01-02");
    azure.turn("plant", json!({"kind": "disk", "name": "lost"}));
    azure.get(&disk).await;
    azure.call("DELETE", &disk, None).await;
    let deleted = azure.call("DELETE", &vm, None).await;
    azure.get(deleted.header("location")).await;
    azure.make_nic("aks-b").await;
    azure.call("DELETE", &azure.nic("aks-b"), None).await;
}

async fn visit_lists(azure: &Azure) {
    let setup = azure.double.setup();
    let gallery = "AKSAzureLinux-f7c7cda5-1c9a-4bdc-a222-9614c968580b/images/V3gen2/versions";
    let region = "providers/Microsoft.Compute/locations/eastus";
    let targets = [
        azure.in_group("Microsoft.Compute/virtualMachines", COMPUTE),
        azure.in_group("Microsoft.Network/networkInterfaces", NETWORK),
        azure.in_group("Microsoft.Network/loadBalancers", NETWORK),
        azure.in_group("Microsoft.Network/networkSecurityGroups", NETWORK),
        azure.in_group(
            &format!("Microsoft.Network/networkSecurityGroups/{}", setup.nsg()),
            NETWORK,
        ),
        azure.in_group(&format!("Microsoft.Network/virtualNetworks/{}", setup.vnet()), NETWORK),
        format!("{}?api-version={NETWORK}", setup.subnet_id()),
        format!("{}?api-version=2025-01-02", setup.encryption_set_id()),
        azure.in_subscription(&format!("{region}/usages"), COMPUTE),
        azure.in_subscription(&format!("{region}/communityGalleries/{gallery}"), "2024-03-03"),
        azure.in_subscription("providers/Microsoft.Compute/skus", "2021-07-01"),
        azure.in_subscription(
            "providers/Microsoft.ContainerService/locations/eastus/nodeImageVersions",
            AKS,
        ),
        azure.in_subscription("locations", "2021-01-01"),
        "/api/retail/prices?api-version=2023-01-01-preview".to_owned(),
    ];
    for target in targets {
        azure.get(&target).await;
    }
    let query = json!({
        "subscriptions": [setup.subscription],
        "query": "Resources | where type == \"microsoft.compute/virtualmachines\"",
    });
    let graph = "/providers/Microsoft.ResourceGraph/resources?api-version=2021-06-01-preview";
    azure.call("POST", graph, Some(&query)).await;
}

async fn visit_machines(azure: &Azure) {
    for version in [AKS, "2026-05-02-preview"] {
        let at = |rest: &str| azure.in_pool(rest).replace(AKS, version);
        azure.put(&at("/machines/m1"), &machine_body("Standard_D4s_v5")).await;
        azure.get(&at("/machines/m1")).await;
        azure.get(&at("/machines")).await;
        azure.get(&at("")).await;
        let names = json!({"machineNames": ["m1"]});
        azure.call("POST", &at("/deleteMachines"), Some(&names)).await;
    }
}

#[tokio::test]
async fn every_operation_succeeds_and_keeps_its_schema() {
    let azure = Azure::start().await;
    visit(&azure).await;
    azure.assert_clean();
    let calls = azure.double.calls();
    let failed: Vec<_> = calls.iter().filter(|call| !(200..300).contains(&call.status)).collect();
    assert!(failed.is_empty(), "{failed:?}");
    let called: BTreeSet<&str> = calls.iter().map(|call| call.operation.as_str()).collect();
    let contract: Vec<Value> = serde_json::from_str(include_str!("../../schemas/operations.json")).unwrap();
    let known: BTreeSet<&str> = contract
        .iter()
        .map(|operation| operation["id"].as_str().unwrap())
        .collect();
    assert_eq!(called, known);
    assert!(azure.double.vms().is_empty() && azure.double.nics().is_empty() && azure.double.disks().is_empty());
}
