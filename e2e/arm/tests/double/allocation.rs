//! Do quotas count, and is what cannot be had told as Azure tells it?

use arm::knob::{Stock, When};
use serde_json::json;

use crate::client::Azure;

/// The last status of the operation that an answer began.
async fn outcome(azure: &Azure, got: &crate::client::Got) -> serde_json::Value {
    azure.get(got.header("azure-asyncoperation")).await.body
}

#[tokio::test]
async fn every_allocation_code_is_told_at_once_or_in_the_end() {
    for code in arm::CODES {
        let azure = Azure::start().await;
        azure.double.stock(vec![Stock::none("*", "*", "*", code, When::Sync)]);
        let got = azure.ask_vm("aks-a", &azure.vm_body("aks-a")).await;
        assert_eq!((got.status, got.code()), (409, code));
        assert!(azure.double.vms().is_empty());

        azure.double.stock(vec![Stock::none("*", "*", "*", code, When::Async)]);
        let got = azure.ask_vm("aks-b", &azure.vm_body("aks-b")).await;
        assert_eq!(got.status, 201);
        let status = outcome(&azure, &got).await;
        assert_eq!(status["status"], "Failed");
        assert_eq!(status["error"]["code"], code);
        assert_eq!(azure.double.vms()[0].state, "Failed");
        azure.assert_clean();
    }
}

#[tokio::test]
async fn stock_is_by_size_zone_and_capacity_type() {
    let azure = Azure::start().await;
    let none = Stock::none("Standard_D*_v5", "1", "spot", "ZonalAllocationFailed", When::Sync);
    azure.double.stock(vec![none]);
    assert_eq!(azure.ask_vm("aks-a", &azure.spot_body("aks-a")).await.status, 409);
    assert_eq!(azure.ask_vm("aks-b", &azure.vm_body("aks-b")).await.status, 201);
    let mut body = azure.spot_body("aks-c");
    body["zones"] = json!(["2"]);
    assert_eq!(azure.ask_vm("aks-c", &body).await.status, 201);
    let mut body = azure.spot_body("aks-d");
    body["zones"] = json!([]);
    assert_eq!(azure.ask_vm("aks-d", &body).await.status, 201);
    let mut body = azure.spot_body("aks-e");
    body["properties"]["hardwareProfile"]["vmSize"] = json!("Standard_D4s_v3");
    assert_eq!(azure.ask_vm("aks-e", &body).await.status, 201);
    azure.assert_clean();
}

#[tokio::test]
async fn stock_that_was_sold_comes_back_when_a_machine_goes() {
    let azure = Azure::start().await;
    azure.turn(
        "stock",
        json!([{"size": "*", "limit": 2, "code": "AllocationFailed", "when": "sync"}]),
    );
    azure.double.stock(vec![Stock {
        limit: 2,
        ..Stock::none("Standard_D4s_v5", "*", "*", "AllocationFailed", When::Sync)
    }]);
    azure.make_vm("aks-a").await;
    azure.make_vm("aks-b").await;
    assert_eq!(
        azure.ask_vm("aks-c", &azure.vm_body("aks-c")).await.code(),
        "AllocationFailed"
    );
    azure.call("DELETE", &azure.vm("aks-a"), None).await;
    assert_eq!(azure.put(&azure.vm("aks-c"), &azure.vm_body("aks-c")).await.status, 201);
}

#[tokio::test]
async fn a_family_quota_counts_the_cores_of_its_sizes() {
    let azure = Azure::start().await;
    azure.double.quota("standardDSv5Family", 8);
    azure.make_vm("aks-a").await;
    azure.make_vm("aks-b").await;
    let got = azure.ask_vm("aks-c", &azure.vm_body("aks-c")).await;
    assert_eq!((got.status, got.code()), (409, "OperationNotAllowed"));
    let message = got.body["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("exceeding approved standardDSv5Family Cores quota"),
        "{message}"
    );
    assert!(
        message.contains("Current Limit: 8, Current Usage: 8, Additional Required: 4"),
        "{message}"
    );
    // Another family and spot have quotas of their own.
    assert_eq!(azure.ask_vm("aks-d", &azure.spot_body("aks-d")).await.status, 201);
    let mut other = azure.vm_body("aks-e");
    other["properties"]["hardwareProfile"]["vmSize"] = json!("Standard_D4s_v3");
    assert_eq!(azure.ask_vm("aks-e", &other).await.status, 201);
    azure.call("DELETE", &azure.vm("aks-a"), None).await;
    assert_eq!(azure.put(&azure.vm("aks-c"), &azure.vm_body("aks-c")).await.status, 201);
    azure.assert_clean();
}

#[tokio::test]
async fn the_regions_quota_and_that_of_spot_are_told_in_their_own_words() {
    let azure = Azure::start().await;
    azure.double.quota("cores", 0);
    let got = azure.ask_vm("aks-a", &azure.vm_body("aks-a")).await;
    let message = got.body["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("exceeding approved Total Regional Cores quota"),
        "{message}"
    );
    azure.double.quota("lowPriorityCores", 3);
    let got = azure.ask_vm("aks-b", &azure.spot_body("aks-b")).await;
    let message = got.body["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("LowPriorityCores") && message.contains("Current Limit: 3"),
        "{message}"
    );
}

#[tokio::test]
async fn usages_tell_what_the_quotas_count() {
    let azure = Azure::start().await;
    azure.double.quota("standardDSv5Family", 20);
    azure.make_vm("aks-a").await;
    azure.ask_vm("aks-b", &azure.spot_body("aks-b")).await;
    let got = azure
        .get(&azure.in_subscription("providers/Microsoft.Compute/locations/eastus/usages", "2025-04-01"))
        .await;
    let entry = |name: &str| {
        let list = got.body["value"].as_array().unwrap().iter();
        let found = list.clone().find(|one| one["name"]["value"] == name).unwrap();
        (
            found["currentValue"].as_i64().unwrap(),
            found["limit"].as_i64().unwrap(),
        )
    };
    assert_eq!(entry("standardDSv5Family"), (4, 20));
    // The user's own machine has two.
    assert_eq!(entry("cores"), (6, 10_000));
    assert_eq!(entry("lowPriorityCores"), (4, 10_000));
    azure.assert_clean();
}

#[tokio::test]
async fn a_failed_machine_holds_no_cores() {
    let azure = Azure::start().await;
    azure
        .double
        .stock(vec![Stock::none("*", "*", "*", "AllocationFailed", When::Async)]);
    azure.ask_vm("aks-a", &azure.vm_body("aks-a")).await;
    let state = azure.double.state();
    assert_eq!(state.vms[0].state, "Failed");
    assert!(!state.cores.contains_key("standardDSv5Family"));
}

#[tokio::test]
async fn a_failed_machine_can_be_asked_for_again() {
    let azure = Azure::start().await;
    azure
        .double
        .stock(vec![Stock::none("*", "*", "*", "AllocationFailed", When::Async)]);
    azure.ask_vm("aks-a", &azure.vm_body("aks-a")).await;
    azure.double.stock(Vec::new());
    assert_eq!(azure.put(&azure.vm("aks-a"), &azure.vm_body("aks-a")).await.status, 201);
    assert_eq!(azure.double.vms()[0].state, "Succeeded");
    azure.assert_clean();
}

#[tokio::test]
async fn a_failed_request_keeps_the_network_interface_for_three_minutes() {
    let azure = Azure::start().await;
    azure
        .double
        .stock(vec![Stock::none("*", "*", "*", "SkuNotAvailable", When::Sync)]);
    azure.ask_vm("aks-a", &azure.vm_body("aks-a")).await;
    let got = azure.call("DELETE", &azure.nic("aks-a"), None).await;
    assert_eq!((got.status, got.code()), (400, "NicReservedForAnotherVm"));
    azure.double.advance(179).unwrap();
    assert_eq!(azure.call("DELETE", &azure.nic("aks-a"), None).await.status, 400);
    azure.double.advance(1).unwrap();
    assert_eq!(azure.call("DELETE", &azure.nic("aks-a"), None).await.status, 202);
    assert!(azure.double.nics().is_empty());
    azure.assert_clean();
}

#[tokio::test]
async fn the_machine_that_an_interface_is_kept_for_may_use_it() {
    let azure = Azure::start().await;
    azure
        .double
        .stock(vec![Stock::none("*", "*", "*", "SkuNotAvailable", When::Sync)]);
    azure.ask_vm("aks-a", &azure.vm_body("aks-a")).await;
    azure.double.stock(Vec::new());
    let mut other = azure.vm_body("aks-b");
    other["properties"]["networkProfile"] = azure.vm_body("aks-a")["properties"]["networkProfile"].clone();
    assert_eq!(
        azure.put(&azure.vm("aks-b"), &other).await.code(),
        "NicReservedForAnotherVm"
    );
    assert_eq!(azure.put(&azure.vm("aks-a"), &azure.vm_body("aks-a")).await.status, 201);
}

#[tokio::test]
async fn restrictions_of_a_size_are_listed_and_kept() {
    let azure = Azure::start().await;
    azure.turn("sku", json!({"name": "Standard_D4s_v5", "restricted_zones": ["1"]}));
    azure.turn("sku", json!({"name": "Standard_D8s_v5", "restricted_location": true}));
    assert_eq!(
        azure.ask_vm("aks-a", &azure.vm_body("aks-a")).await.code(),
        "SkuNotAvailable"
    );
    let mut body = azure.vm_body("aks-b");
    body["properties"]["hardwareProfile"]["vmSize"] = json!("Standard_D8s_v5");
    body["zones"] = json!([]);
    assert_eq!(azure.ask_vm("aks-b", &body).await.code(), "SkuNotAvailable");
    let got = azure
        .get(&azure.in_subscription("providers/Microsoft.Compute/skus", "2021-07-01"))
        .await;
    let list = got.body["value"].as_array().unwrap();
    let restriction = |name: &str| list.iter().find(|sku| sku["name"] == name).unwrap()["restrictions"][0].clone();
    assert_eq!(restriction("Standard_D4s_v5")["restrictionInfo"]["zones"], json!(["1"]));
    assert_eq!(restriction("Standard_D8s_v5")["type"], "Location");
    azure.assert_clean();
}

#[tokio::test]
async fn a_size_that_is_no_spot_is_not_to_be_had_as_spot() {
    let azure = Azure::start().await;
    azure.turn(
        "sku",
        json!({"name": "Standard_D4s_v5", "capabilities": {"LowPriorityCapable": "False"}}),
    );
    assert_eq!(
        azure.ask_vm("aks-a", &azure.spot_body("aks-a")).await.code(),
        "BadRequest"
    );
    assert_eq!(azure.ask_vm("aks-b", &azure.vm_body("aks-b")).await.status, 201);
    azure.turn("sku", json!({"name": "Standard_D4s_v5", "removed": true}));
    assert_eq!(
        azure.ask_vm("aks-c", &azure.vm_body("aks-c")).await.code(),
        "InvalidParameter"
    );
    azure.assert_clean();
}

#[tokio::test]
async fn accelerated_networking_needs_a_size_that_has_it() {
    let azure = Azure::start().await;
    azure.turn(
        "sku",
        json!({"name": "Standard_D4s_v5", "capabilities": {"AcceleratedNetworkingEnabled": "False"}}),
    );
    let got = azure.ask_vm("aks-a", &azure.vm_body("aks-a")).await;
    assert_eq!(got.code(), "VMSizeIsNotPermittedToEnableAcceleratedNetworking");
}

#[tokio::test]
async fn a_full_subnet_takes_no_more_interfaces() {
    let azure = Azure::start().await;
    azure.turn("subnet", json!({"name": "aks-subnet", "free": 2}));
    azure.make_nic("aks-a").await;
    let mut body = azure.nic_body("aks-b");
    let second = json!({"name": "ipconfig1", "properties": {"subnet": {"id": azure.double.setup().subnet_id()}}});
    body["properties"]["ipConfigurations"]
        .as_array_mut()
        .unwrap()
        .push(second);
    let got = azure.put(&azure.nic("aks-b"), &body).await;
    assert_eq!((got.status, got.code()), (400, "SubnetIsFull"));
    azure.make_nic("aks-c").await;
    azure.call("DELETE", &azure.nic("aks-a"), None).await;
    azure.make_nic("aks-d").await;
    azure.assert_clean();
}

#[tokio::test]
async fn a_pool_that_vanished_is_named_in_the_refusal() {
    let azure = Azure::start().await;
    azure.turn(
        "pool",
        json!({"load_balancer": "kubernetes", "pool": "kubernetes", "present": false}),
    );
    let got = azure.put(&azure.nic("aks-a"), &azure.nic_body("aks-a")).await;
    assert_eq!((got.status, got.code()), (400, "InvalidResourceReference"));
    let message = got.body["error"]["message"].as_str().unwrap();
    assert!(message.contains(&azure.pool_id("kubernetes", "kubernetes")));
    azure.turn(
        "pool",
        json!({"load_balancer": "kubernetes", "pool": "kubernetes", "present": true}),
    );
    azure.make_nic("aks-a").await;
    azure.assert_clean();
}
