//! Are long-running operations told in every style, and does time pass for them?

use arm::{Setup, knob::Effect};
use serde_json::json;

use crate::client::Azure;

const CREATE: &str = "VirtualMachines_CreateOrUpdate";

fn style(azure: &Azure, operation: &str, style: &str) {
    azure.turn("style", json!({"operation": operation, "style": style}));
}

#[tokio::test]
async fn a_status_url_tells_of_progress_and_of_the_end() {
    let azure = Azure::start().await;
    azure.double.latency(CREATE, 5);
    let got = azure.ask_vm("aks-a", &azure.vm_body("aks-a")).await;
    assert_eq!(got.body["properties"]["provisioningState"], "Creating");
    assert_eq!(got.header("location"), "");
    let url = got.header("azure-asyncoperation").to_owned();
    let status = azure.get(&url).await;
    assert_eq!(
        (status.body["status"].as_str(), status.header("retry-after")),
        (Some("InProgress"), "0")
    );
    assert_eq!(azure.double.state().in_progress, 1);
    azure.double.advance(5).unwrap();
    assert_eq!(azure.get(&url).await.body["status"], "Succeeded");
    assert_eq!(azure.double.vms()[0].state, "Succeeded");
    assert_eq!(azure.double.state().in_progress, 0);
    azure.assert_clean();
}

#[tokio::test]
async fn a_failed_operation_is_told_with_status_200() {
    let azure = Azure::start().await;
    let effect = Effect::Async {
        code: "AllocationFailed".to_owned(),
        message: Some("no room".to_owned()),
    };
    azure.double.fail_next(CREATE, effect);
    let got = azure.ask_vm("aks-a", &azure.vm_body("aks-a")).await;
    let status = azure.get(got.header("azure-asyncoperation")).await;
    assert_eq!(status.status, 200);
    assert_eq!(status.body["status"], "Failed");
    assert_eq!(
        status.body["error"],
        json!({"code": "AllocationFailed", "message": "no room"})
    );
    assert_eq!(
        azure.get(&azure.vm("aks-a")).await.body["properties"]["provisioningState"],
        "Failed"
    );
    azure.assert_clean();
}

#[tokio::test]
async fn a_location_answers_202_until_the_resource_is_there() {
    let azure = Azure::start().await;
    style(&azure, CREATE, "location");
    azure.double.latency(CREATE, 5);
    let got = azure.ask_vm("aks-a", &azure.vm_body("aks-a")).await;
    assert_eq!(got.header("azure-asyncoperation"), "");
    let url = got.header("location").to_owned();
    let wait = azure.get(&url).await;
    assert_eq!((wait.status, wait.header("location")), (202, url.as_str()));
    azure.double.advance(5).unwrap();
    let done = azure.get(&url).await;
    assert_eq!((done.status, done.body["name"].as_str()), (200, Some("aks-a")));
    azure.assert_clean();
}

#[tokio::test]
async fn a_location_answers_the_error_itself() {
    let azure = Azure::start().await;
    style(&azure, CREATE, "location");
    let effect = Effect::Async {
        code: "ZonalAllocationFailed".to_owned(),
        message: None,
    };
    azure.double.fail_next(CREATE, effect);
    let got = azure.ask_vm("aks-a", &azure.vm_body("aks-a")).await;
    let done = azure.get(got.header("location")).await;
    assert_eq!((done.status, done.code()), (409, "ZonalAllocationFailed"));
    azure.assert_clean();
}

#[tokio::test]
async fn without_headers_the_resource_tells() {
    let azure = Azure::start().await;
    style(&azure, "*", "provisioning-state");
    azure.double.latency("*", 5);
    let got = azure.put(&azure.nic("aks-a"), &azure.nic_body("aks-a")).await;
    assert_eq!((got.header("azure-asyncoperation"), got.header("location")), ("", ""));
    assert_eq!(
        azure.get(&azure.nic("aks-a")).await.body["properties"]["provisioningState"],
        "Updating"
    );
    azure.double.advance(5).unwrap();
    assert_eq!(
        azure.get(&azure.nic("aks-a")).await.body["properties"]["provisioningState"],
        "Succeeded"
    );
    azure.assert_clean();
}

#[tokio::test]
async fn deleting_tells_both_urls_and_ends_without_a_body() {
    let azure = Azure::start().await;
    azure.make_vm("aks-a").await;
    azure.double.latency("VirtualMachines_Delete", 5);
    let got = azure.call("DELETE", &azure.vm("aks-a"), None).await;
    let (status, location) = (got.header("azure-asyncoperation"), got.header("location"));
    assert_eq!(azure.get(status).await.body["status"], "InProgress");
    assert_eq!(
        azure.get(&azure.vm("aks-a")).await.body["properties"]["provisioningState"],
        "Deleting"
    );
    let again = azure.put(&azure.vm("aks-a"), &azure.vm_body("aks-a")).await;
    assert_eq!((again.status, again.code()), (409, "Conflict"));
    azure.double.advance(5).unwrap();
    assert_eq!(azure.get(status).await.body["status"], "Succeeded");
    assert_eq!(azure.get(location).await.status, 204);
    azure.assert_clean();
}

#[tokio::test]
async fn deleting_overtakes_a_creation() {
    let azure = Azure::start().await;
    azure.double.latency(CREATE, 60);
    let got = azure.ask_vm("aks-a", &azure.vm_body("aks-a")).await;
    azure.call("DELETE", &azure.vm("aks-a"), None).await;
    let status = azure.get(got.header("azure-asyncoperation")).await;
    assert_eq!(status.body["error"]["code"], "OperationPreempted");
    assert!(azure.double.vms().is_empty());
    azure.double.advance(60).unwrap();
    assert!(azure.double.vms().is_empty());
    azure.assert_clean();
}

#[tokio::test]
async fn a_deletion_that_fails_leaves_the_machine() {
    let azure = Azure::start().await;
    azure.make_vm("aks-a").await;
    let effect = Effect::Async {
        code: "InternalExecutionError".to_owned(),
        message: None,
    };
    azure.double.fail_next("VirtualMachines_Delete", effect);
    azure.call("DELETE", &azure.vm("aks-a"), None).await;
    assert_eq!(azure.double.vms()[0].state, "Failed");
    azure.call("DELETE", &azure.vm("aks-a"), None).await;
    assert!(azure.double.vms().is_empty());
}

#[tokio::test]
async fn the_pause_between_polls_is_as_set() {
    let setup = Setup {
        retry_after: Some(10),
        ..Setup::default()
    };
    let azure = Azure::with(setup).await;
    let got = azure.put(&azure.nic("aks-a"), &azure.nic_body("aks-a")).await;
    assert_eq!(got.header("retry-after"), "10");
}

#[tokio::test]
async fn an_operation_that_is_not_ours_is_not_found() {
    let azure = Azure::start().await;
    let target = azure.in_subscription(
        "providers/Microsoft.Compute/locations/eastus/operations/none",
        "2025-04-01",
    );
    assert_eq!(azure.get(&target).await.status, 404);
    azure.assert_clean();
}

#[tokio::test]
async fn repeating_a_request_neither_saves_nor_delays_what_was_begun() {
    let azure = Azure::start().await;
    azure.double.latency("VirtualMachines_*", 5);
    let effect = Effect::Async {
        code: "AllocationFailed".to_owned(),
        message: None,
    };
    azure.double.fail_next(CREATE, effect);
    let first = azure.ask_vm("aks-a", &azure.vm_body("aks-a")).await;
    azure.double.advance(3).unwrap();
    let again = azure.put(&azure.vm("aks-a"), &azure.vm_body("aks-a")).await;
    assert_eq!(again.status, 200);
    assert_eq!(
        again.header("azure-asyncoperation"),
        first.header("azure-asyncoperation")
    );
    let patch = json!({"tags": {"a": "b"}});
    azure.call("PATCH", &azure.vm("aks-a"), Some(&patch)).await;
    assert_eq!(azure.double.vms()[0].state, "Creating");
    azure.double.advance(2).unwrap();
    assert_eq!(azure.double.vms()[0].state, "Failed");
    azure.double.advance(60).unwrap();
    assert_eq!(azure.double.vms()[0].state, "Failed");
    azure.assert_clean();
}

#[tokio::test]
async fn a_machine_that_fails_while_it_is_deleted_is_gone_in_the_end() {
    let azure = Azure::start().await;
    azure.double.latency(CREATE, 2);
    azure.double.latency("VirtualMachines_Delete", 5);
    let effect = Effect::Async {
        code: "AllocationFailed".to_owned(),
        message: None,
    };
    azure.double.fail_next(CREATE, effect);
    azure.ask_vm("aks-a", &azure.vm_body("aks-a")).await;
    azure.call("DELETE", &azure.vm("aks-a"), None).await;
    azure.double.advance(2).unwrap();
    assert_eq!(azure.double.vms()[0].state, "Deleting");
    azure.double.advance(3).unwrap();
    assert!(azure.double.vms().is_empty() && azure.double.nics().is_empty());
}

#[tokio::test]
async fn an_interface_that_fails_can_be_asked_for_again() {
    let azure = Azure::start().await;
    let effect = Effect::Async {
        code: "InternalServerError".to_owned(),
        message: None,
    };
    azure.double.fail_next("NetworkInterfaces_CreateOrUpdate", effect);
    azure.put(&azure.nic("aks-a"), &azure.nic_body("aks-a")).await;
    assert_eq!(azure.double.nics()[0].state, "Failed");
    azure.put(&azure.nic("aks-a"), &azure.nic_body("aks-a")).await;
    assert_eq!(azure.double.nics()[0].state, "Succeeded");
    azure.assert_clean();
}

#[tokio::test]
async fn a_machine_needs_an_interface_that_is_ready() {
    let azure = Azure::start().await;
    azure.double.latency("NetworkInterfaces_*", 5);
    azure.make_nic("aks-a").await;
    let got = azure.put(&azure.vm("aks-a"), &azure.vm_body("aks-a")).await;
    assert_eq!((got.status, got.code()), (409, "ReferencedResourceNotProvisioned"));
    azure.double.advance(5).unwrap();
    azure.call("DELETE", &azure.nic("aks-a"), None).await;
    let got = azure.put(&azure.vm("aks-a"), &azure.vm_body("aks-a")).await;
    assert_eq!(got.code(), "ReferencedResourceNotProvisioned");
    azure.double.advance(5).unwrap();
    azure.make_nic("aks-a").await;
    azure.double.advance(5).unwrap();
    assert_eq!(azure.put(&azure.vm("aks-a"), &azure.vm_body("aks-a")).await.status, 201);
    azure.assert_clean();
}
