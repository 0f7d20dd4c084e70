//! Is every operation of the contract played, with an answer that its schema allows?

use std::collections::BTreeSet;

use arm::knob::{Grant, Knob, Role};
use serde_json::{Value, json};

use crate::client::{AKS, Azure, COMPUTE, NETWORK, machine_body, provision_values, tags};

/// Every operation once, with success.
async fn visit(azure: &Azure) {
    let (vm, nic) = (azure.vm("aks-a"), azure.nic("aks-a"));
    let patch = json!({"tags": tags()});
    let created = azure.put(&nic, &azure.nic_body("aks-a")).await;
    follow(azure, created.header("azure-asyncoperation")).await;
    let created = azure.put(&vm, &azure.vm_body("aks-a")).await;
    follow(azure, created.header("azure-asyncoperation")).await;
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
    follow(azure, deleted.header("location")).await;
    visit_own_network(azure).await;
}

/// A node in a network of the user's own, with an encryption set.
async fn visit_own_network(azure: &Azure) {
    let setup = azure.double.setup();
    let (mut nic, mut vm) = (azure.nic_body("aks-b"), azure.vm_body("aks-b"));
    let group = format!(
        "{}/providers/Microsoft.Network/networkSecurityGroups",
        azure.node_group()
    );
    nic["properties"]["networkSecurityGroup"] = json!({"id": format!("{group}/{}", setup.nsg())});
    nic["properties"]["ipConfigurations"][0]["properties"]["subnet"]["id"] = json!(setup.own_subnet_id());
    let set = json!({"diskEncryptionSet": {"id": setup.encryption_set_id()}});
    vm["properties"]["storageProfile"]["osDisk"]["managedDisk"] = set;
    azure.put(&azure.nic("aks-b"), &nic).await;
    azure.put(&azure.vm("aks-b"), &vm).await;
    azure.call("DELETE", &azure.vm("aks-b"), None).await;
    azure.put(&azure.nic("aks-c"), &nic).await;
    azure.call("DELETE", &azure.nic("aks-c"), None).await;
}

/// Looks how far an operation is, if one was begun.
async fn follow(azure: &Azure, url: &str) {
    if !url.is_empty() {
        azure.get(url).await;
    }
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
    let service = azure.in_pool("").split("/agentPools/").next().unwrap().to_owned() + "/nodeBootstrapping";
    azure.call("GET", &service, Some(&provision_values())).await;
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

/// The roles of the installation, on the scopes that they are for.
fn grants(azure: &Azure) -> Vec<Grant> {
    let roles: Vec<Value> = serde_json::from_str(include_str!("../../../../deploy/azure/role.json")).unwrap();
    let setup = azure.double.setup();
    let vnet = |subnet: String| subnet.split("/subnets/").next().unwrap().to_owned();
    let subscription = format!("/subscriptions/{}", setup.subscription);
    let grants = roles.iter().flat_map(|role| {
        let scopes = match role["key"].as_str().unwrap() {
            "nodes" => vec![azure.node_group()],
            "network" => vec![vnet(setup.subnet_id()), vnet(setup.own_subnet_id())],
            "region" | "node-images" => vec![subscription.clone()],
            "identity" => vec![azure.identity("kubelet")],
            "encryption" => vec![setup.encryption_set_id()],
            "machines" => vec![format!(
                "{subscription}/resourceGroups/{}/providers/Microsoft.ContainerService/managedClusters/{}",
                setup.cluster_group, setup.cluster
            )],
            other => unreachable!("no scope for the role {other}"),
        };
        let actions: Vec<String> = serde_json::from_value(role["actions"].clone()).unwrap();
        scopes.into_iter().map(move |scope| Grant {
            scope,
            actions: actions.clone(),
        })
    });
    grants.collect()
}

/// The calls of the provider that were forbidden on a tour under some grants.
async fn forbidden(grants: impl FnOnce(&Azure) -> Vec<Grant>) -> BTreeSet<String> {
    let azure = Azure::start().await;
    let role = Role { grants: grants(&azure) };
    azure.double.turn(Knob::Role(role)).unwrap();
    visit(&azure).await;
    let list: Value = serde_json::from_str(include_str!("../../../../deploy/azure/calls.json")).unwrap();
    let ours = list["calls"].as_array().unwrap().iter();
    let ours: BTreeSet<&str> = ours.map(|call| call["operation"].as_str().unwrap()).collect();
    let calls = azure.double.calls().into_iter().filter(|call| call.status == 403);
    calls
        .map(|call| call.operation)
        .filter(|id| ours.contains(id.as_str()))
        .collect()
}

#[tokio::test]
async fn the_roles_of_the_installation_allow_every_call_of_the_provider() {
    assert_eq!(forbidden(grants).await, BTreeSet::new());
}

#[tokio::test]
async fn no_action_of_the_roles_can_be_left_out() {
    let azure = Azure::start().await;
    let actions: BTreeSet<String> = grants(&azure).into_iter().flat_map(|grant| grant.actions).collect();
    for action in actions {
        let without = |azure: &Azure| {
            let mut grants = grants(azure);
            for grant in &mut grants {
                grant.actions.retain(|one| *one != action);
            }
            grants
        };
        assert!(!forbidden(without).await.is_empty(), "nothing needs {action}");
    }
}

#[tokio::test]
async fn whoever_has_no_role_may_ask_nothing_of_the_provider_but_what_is_public() {
    let none = forbidden(|_| Vec::new()).await;
    assert!(none.contains("VirtualMachines_CreateOrUpdate") && none.contains("Usage_List"));
    assert!(!none.contains("RetailPrices_List"));
}
