//! Is whatever breaks the published contract refused and written down?

use arm::knob::Effect;
use serde_json::json;

use crate::client::{Azure, COMPUTE};

/// The problems of the only violation.
fn only(azure: &Azure) -> Vec<String> {
    let mut violations = azure.double.violations();
    assert_eq!(violations.len(), 1, "{violations:?}");
    assert_eq!(violations[0].side, "request");
    violations.remove(0).problems
}

#[tokio::test]
async fn a_misspelt_property_is_refused_and_recorded() {
    let azure = Azure::start().await;
    azure.make_nic("aks-a").await;
    let mut body = azure.vm_body("aks-a");
    body["properties"]["hardwareprofile"] = json!({"vmSize": "Standard_D4s_v5"});
    let got = azure.put(&azure.vm("aks-a"), &body).await;
    assert_eq!((got.status, got.code()), (400, "InvalidRequestContent"));
    assert_eq!(
        only(&azure),
        ["/properties/hardwareprofile: is not known; it is written `hardwareProfile`"]
    );
    assert!(azure.double.vms().is_empty());
}

#[tokio::test]
async fn a_missing_required_property_is_refused_and_recorded() {
    let azure = Azure::start().await;
    azure.make_nic("aks-a").await;
    let mut body = azure.vm_body("aks-a");
    let disk = body["properties"]["storageProfile"]["osDisk"].as_object_mut().unwrap();
    disk.remove("createOption");
    let got = azure.put(&azure.vm("aks-a"), &body).await;
    assert_eq!(got.status, 400);
    assert_eq!(
        only(&azure),
        ["/properties/storageProfile/osDisk: `createOption` is missing"]
    );
}

#[tokio::test]
async fn a_wrong_type_is_refused_and_recorded() {
    let azure = Azure::start().await;
    let mut body = azure.nic_body("aks-a");
    body["properties"]["enableAcceleratedNetworking"] = json!("true");
    let got = azure.put(&azure.nic("aks-a"), &body).await;
    assert_eq!(got.status, 400);
    assert_eq!(
        only(&azure),
        ["/properties/enableAcceleratedNetworking: is a string, expected boolean"]
    );
}

#[tokio::test]
async fn a_value_that_is_not_known_is_refused_and_recorded() {
    let azure = Azure::start().await;
    azure.make_nic("aks-a").await;
    let mut body = azure.vm_body("aks-a");
    body["properties"]["priority"] = json!("spot");
    let got = azure.put(&azure.vm("aks-a"), &body).await;
    assert_eq!(got.status, 400);
    assert_eq!(
        only(&azure),
        [r#"/properties/priority: is "spot", expected one of ["Regular","Low","Spot"]"#]
    );
}

#[tokio::test]
async fn what_only_the_service_may_set_is_refused_and_recorded() {
    let azure = Azure::start().await;
    let mut body = azure.nic_body("aks-a");
    body["properties"]["provisioningState"] = json!("Succeeded");
    let got = azure.put(&azure.nic("aks-a"), &body).await;
    assert_eq!(got.status, 400);
    assert_eq!(
        only(&azure),
        ["/properties/provisioningState: is read-only and may not be sent"]
    );
}

#[tokio::test]
async fn the_exceptions_of_the_contract_are_allowed() {
    let azure = Azure::start().await;
    azure.make_nic("aks-a").await;
    let mut body = azure.vm_body("aks-a");
    body["name"] = json!("aks-a");
    assert_eq!(azure.put(&azure.vm("aks-a"), &body).await.status, 201);
    azure.assert_clean();
}

#[tokio::test]
async fn a_missing_api_version_is_refused_and_recorded() {
    let azure = Azure::start().await;
    let target = azure.vm("aks-a").replace(&format!("?api-version={COMPUTE}"), "");
    let got = azure.get(&target).await;
    assert_eq!((got.status, got.code()), (400, "MissingApiVersionParameter"));
    assert_eq!(only(&azure).len(), 1);
}

#[tokio::test]
async fn another_api_version_is_refused_and_recorded() {
    let azure = Azure::start().await;
    let got = azure.get(&azure.vm("aks-a").replace(COMPUTE, "2019-01-01")).await;
    assert_eq!(got.status, 400);
    assert!(only(&azure)[0].ends_with("has no api-version 2019-01-01 here"));
}

#[tokio::test]
async fn an_unknown_path_method_or_parameter_is_recorded() {
    let azure = Azure::start().await;
    assert_eq!(
        azure
            .get("/subscriptions/x/nothing?api-version=2020-01-01")
            .await
            .status,
        404
    );
    assert_eq!(azure.call("POST", &azure.vm("aks-a"), None).await.status, 405);
    assert_eq!(
        azure.get(&format!("{}&force=true", azure.vm("aks-a"))).await.status,
        400
    );
    assert_eq!(azure.double.violations().len(), 3);
}

#[tokio::test]
async fn a_body_that_is_missing_or_no_json_is_recorded() {
    let azure = Azure::start().await;
    assert_eq!(azure.call("PUT", &azure.vm("aks-a"), None).await.status, 400);
    let headers = [("authorization", "Bearer x"), ("content-type", "application/json")];
    let got = azure.raw("PUT", &azure.vm("aks-a"), &headers, "{").await.unwrap();
    assert_eq!(got.status, 400);
    let got = azure.raw("PUT", &azure.vm("aks-a"), &headers[..1], "{}").await.unwrap();
    assert_eq!(got.status, 400);
    assert_eq!(azure.double.violations().len(), 3);
}

#[tokio::test]
async fn paths_are_the_same_in_any_case() {
    let azure = Azure::start().await;
    azure.make_vm("aks-a").await;
    let target = azure.vm("AKS-A").replace("resourceGroups", "resourcegroups");
    let got = azure
        .get(&target.replace("MC_rg-dovetail_dovetail_eastus", "mc_rg-dovetail_dovetail_eastus"))
        .await;
    assert_eq!(got.status, 200);
    assert_eq!(got.body["name"], "aks-a");
    azure.assert_clean();
}

#[tokio::test]
async fn violations_and_state_can_be_read_from_outside() {
    let azure = Azure::start().await;
    azure.get("/nothing?api-version=1").await;
    let headers = [];
    let violations = azure.raw("GET", "/_double/violations", &headers, "").await.unwrap();
    assert_eq!(violations.body[0]["side"], "request");
    let state = azure.raw("GET", "/_double/state", &headers, "").await.unwrap();
    assert_eq!(state.body["violations"], 1);
    assert_eq!(state.body["vms"][0]["name"], "jumpbox");
}

#[tokio::test]
async fn a_knob_that_makes_no_sense_is_refused() {
    let azure = Azure::start().await;
    for (knob, body) in [
        ("quota", r#"{"family": "cores"}"#),
        ("quota", r#"{"family": "cores", "limit": 1, "more": 2}"#),
        ("nothing", "{}"),
        ("evict", r#"{"vm": "none", "notice_seconds": 30}"#),
        ("vanish", r#"{"vm": "none"}"#),
        ("sku", r#"{"name": "Standard_None"}"#),
        ("subnet", r#"{"name": "none", "free": 1}"#),
    ] {
        let got = azure.raw("POST", &format!("/_double/{knob}"), &[], body).await.unwrap();
        assert_eq!(got.status, 400, "{knob} {body}");
    }
    let got = azure
        .raw("POST", "/_double/quota", &[], r#"{"family": "cores", "limit": 1}"#)
        .await
        .unwrap();
    assert_eq!(got.status, 200);
}

#[tokio::test]
async fn an_answer_of_ours_that_breaks_the_contract_is_recorded_too() {
    let azure = Azure::start().await;
    // An error in the guise of a success is no virtual machine, and the operation has no status 302.
    for status in [200, 302] {
        let effect = Effect::Sync {
            status,
            code: "Odd".to_owned(),
            message: None,
            retry_after: None,
        };
        azure.double.fail_next("VirtualMachines_Get", effect);
        azure.get(&azure.vm("aks-a")).await;
    }
    let violations = azure.double.violations();
    assert!(violations.iter().all(|one| one.side == "response"), "{violations:?}");
    assert_eq!(
        violations[0].problems,
        [
            "/: `location` is missing",
            "/: `name` is missing",
            "/error: is not known"
        ]
    );
    assert_eq!(violations[1].problems, ["302 is not a status of VirtualMachines_Get"]);
}
