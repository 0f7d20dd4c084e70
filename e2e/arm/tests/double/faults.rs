//! Does each fault happen to the calls it is for, and to no others?

use arm::knob::Effect;
use serde_json::json;

use crate::client::Azure;

#[tokio::test]
async fn a_lost_answer_was_done_all_the_same() {
    let azure = Azure::start().await;
    azure.make_nic("aks-a").await;
    azure
        .double
        .fail_next("VirtualMachines_CreateOrUpdate", Effect::Lost {});
    assert!(
        azure
            .try_call("PUT", &azure.vm("aks-a"), Some(&azure.vm_body("aks-a")))
            .await
            .is_none()
    );
    assert_eq!(azure.double.vms().len(), 1);
    assert_eq!(azure.double.calls().last().unwrap().status, 0);
    assert_eq!(azure.put(&azure.vm("aks-a"), &azure.vm_body("aks-a")).await.status, 200);
    assert_eq!(azure.double.vms().len(), 1);
    azure.assert_clean();
}

#[tokio::test]
async fn a_refused_connection_did_nothing() {
    let azure = Azure::start().await;
    azure
        .double
        .fail_next("NetworkInterfaces_CreateOrUpdate", Effect::Refused {});
    assert!(
        azure
            .try_call("PUT", &azure.nic("aks-a"), Some(&azure.nic_body("aks-a")))
            .await
            .is_none()
    );
    assert!(azure.double.nics().is_empty());
    azure.make_nic("aks-a").await;
}

#[tokio::test]
async fn a_fault_is_spent_by_the_calls_it_fits() {
    let azure = Azure::start().await;
    let effect = json!({"sync": {"status": 500, "code": "InternalServerError"}});
    azure.turn(
        "fault",
        json!({"operation": "VirtualMachines_*", "name": "aks-b", "times": 2, "effect": effect}),
    );
    assert_eq!(azure.get(&azure.vm("aks-a")).await.status, 404);
    assert_eq!(azure.get(&azure.vm("aks-b")).await.status, 500);
    assert_eq!(azure.get(&azure.nic("aks-b")).await.status, 404);
    assert_eq!(azure.get(&azure.vm("aks-b")).await.status, 500);
    assert_eq!(azure.get(&azure.vm("aks-b")).await.status, 404);
    azure.assert_clean();
}

#[tokio::test]
async fn a_fault_can_be_for_a_size_a_zone_and_a_capacity_type() {
    let azure = Azure::start().await;
    let fault = json!({
        "operation": "VirtualMachines_CreateOrUpdate", "size": "Standard_D4s_*", "zone": "1", "capacity": "spot",
        "times": null, "effect": {"async": {"code": "OverconstrainedZonalAllocationRequest"}},
    });
    azure.turn("fault", fault);
    azure.make_vm("aks-a").await;
    let got = azure.ask_vm("aks-b", &azure.spot_body("aks-b")).await;
    let status = azure.get(got.header("azure-asyncoperation")).await;
    assert_eq!(status.status, 200);
    assert_eq!(status.body["error"]["code"], "OverconstrainedZonalAllocationRequest");
    let states: Vec<_> = azure.double.vms().iter().map(|vm| vm.state).collect();
    assert_eq!(states, ["Succeeded", "Failed"]);
    azure.turn("reset", json!({}));
    assert_eq!(azure.ask_vm("aks-c", &azure.spot_body("aks-c")).await.status, 201);
    assert_eq!(azure.double.vms()[2].state, "Succeeded");
    azure.assert_clean();
}

#[tokio::test]
async fn a_refused_allocation_by_a_fault_keeps_the_interface_too() {
    let azure = Azure::start().await;
    let effect = Effect::Sync {
        status: 409,
        code: "ZonalAllocationFailed".to_owned(),
        message: None,
        retry_after: None,
    };
    azure.double.fail_next("VirtualMachines_CreateOrUpdate", effect);
    let got = azure.ask_vm("aks-a", &azure.vm_body("aks-a")).await;
    assert_eq!((got.status, got.code()), (409, "ZonalAllocationFailed"));
    assert!(azure.double.nics()[0].reserved_until.is_some());
    azure.assert_clean();
}

#[tokio::test]
async fn too_many_calls_are_told_when_to_come_back() {
    let azure = Azure::start().await;
    azure.turn(
        "throttle",
        json!({"operation": "VirtualMachines_Get", "limit": 2, "window_seconds": 60}),
    );
    let got = azure.get(&azure.vm("aks-a")).await;
    assert_eq!(got.header("x-ms-ratelimit-remaining-subscription-reads"), "1");
    assert_eq!(
        got.header("x-ms-ratelimit-remaining-resource"),
        "Microsoft.Compute/VirtualMachines_Get3Min;1"
    );
    azure.double.advance(20).unwrap();
    azure.get(&azure.vm("aks-a")).await;
    let got = azure.get(&azure.vm("aks-a")).await;
    assert_eq!(
        (got.status, got.code(), got.header("retry-after")),
        (429, "TooManyRequests", "40")
    );
    assert_eq!(azure.get(&azure.nic("aks-a")).await.status, 404);
    azure.double.advance(40).unwrap();
    assert_eq!(azure.get(&azure.vm("aks-a")).await.status, 404);
    azure.assert_clean();
}

#[tokio::test]
async fn one_throttled_answer_says_how_long() {
    let azure = Azure::start().await;
    let effect = Effect::Sync {
        status: 429,
        code: "TooManyRequests".to_owned(),
        message: None,
        retry_after: Some(7),
    };
    azure.double.fail_next("Usage_List", effect);
    let target = azure.in_subscription("providers/Microsoft.Compute/locations/eastus/usages", "2025-04-01");
    let got = azure.get(&target).await;
    assert_eq!((got.status, got.header("retry-after")), (429, "7"));
    assert_eq!(azure.get(&target).await.status, 200);
    azure.assert_clean();
}

#[tokio::test]
async fn the_encryption_set_can_be_forbidden() {
    let azure = Azure::start().await;
    let target = format!("{}?api-version=2025-01-02", azure.double.setup().encryption_set_id());
    assert_eq!(azure.get(&target).await.status, 200);
    azure.double.forbid("DiskEncryptionSets_Get");
    for _ in 0..2 {
        let got = azure.get(&target).await;
        assert_eq!((got.status, got.code()), (403, "AuthorizationFailed"));
    }
    azure.assert_clean();
}

#[tokio::test]
async fn a_slow_answer_comes() {
    let azure = Azure::start().await;
    azure
        .double
        .fail_next("VirtualMachines_Get", Effect::Slow { millis: 1 });
    assert_eq!(azure.get(&azure.vm("aks-a")).await.status, 404);
}

#[tokio::test]
async fn every_call_is_counted() {
    let azure = Azure::start().await;
    azure.make_vm("aks-a").await;
    azure.get(&azure.vm("aks-a")).await;
    azure.get(&azure.vm("aks-a")).await;
    let counts = azure.double.state().calls;
    assert_eq!(counts["VirtualMachines_Get"], 2);
    assert_eq!(azure.double.count("VirtualMachines_CreateOrUpdate"), 1);
    assert_eq!(azure.double.calls()[0].agent, "test");
}
