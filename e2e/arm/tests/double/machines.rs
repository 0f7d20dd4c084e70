//! Do machines of AKS come one by one and in batches, and go when told to?

use arm::knob::{Effect, Stock, When};
use serde_json::json;

use crate::client::{Azure, machine_body};

#[tokio::test]
async fn a_machine_is_made_shown_listed_and_deleted() {
    let azure = Azure::start().await;
    let target = azure.in_pool("/machines/default-abc");
    let got = azure.put(&target, &machine_body("Standard_D4s_v5")).await;
    assert_eq!(got.status, 201, "{got:?}");
    let shown = azure.get(&target).await.body;
    let properties = &shown["properties"];
    assert_eq!(properties["provisioningState"], "Succeeded");
    assert_eq!(
        properties["nodeImageVersion"],
        "AKSUbuntu-2204gen2containerd-202512.18.0"
    );
    assert_eq!(properties["status"]["creationTimestamp"], "2026-11-17T12:00:00Z");
    let vm = &azure.double.vms()[0];
    assert_eq!(properties["resourceId"], vm.id.as_str());
    assert!(vm.machine && vm.name.starts_with("aks-machines-default-abc-") && vm.name.ends_with("-vm"));
    assert_eq!(azure.double.state().cores["standardDSv5Family"], 4);
    let list = azure.get(&azure.in_pool("/machines")).await;
    assert_eq!(list.body["value"].as_array().unwrap().len(), 1);

    let names = json!({"machineNames": ["default-abc"]});
    let got = azure
        .call("POST", &azure.in_pool("/deleteMachines"), Some(&names))
        .await;
    assert_eq!(got.status, 202);
    assert_eq!(azure.get(&target).await.status, 404);
    assert!(azure.double.vms().is_empty());
    let got = azure
        .call("POST", &azure.in_pool("/deleteMachines"), Some(&names))
        .await;
    assert_eq!((got.status, got.code()), (400, "InvalidParameter"));
    assert!(
        got.body["message"]
            .as_str()
            .unwrap()
            .contains("Cannot find any valid machines")
    );
    azure.assert_clean();
}

#[tokio::test]
async fn a_header_makes_many_machines_of_one_request() {
    let azure = Azure::start().await;
    let batch = json!({"batchMachines": [
        {"machineName": "m1", "zones": ["1"], "tags": {"n": "1"}},
        {"machineName": "m2", "zones": ["2"], "tags": {"n": "2"}},
    ]});
    let batch = batch.to_string();
    let headers = [
        ("authorization", "Bearer x"),
        ("content-type", "application/json"),
        ("batchputmachine", batch.as_str()),
    ];
    let body = machine_body("Standard_D4s_v5").to_string();
    let got = azure
        .raw("PUT", &azure.in_pool("/machines/m1"), &headers, &body)
        .await
        .unwrap();
    assert_eq!((got.status, got.body["name"].as_str()), (201, Some("m1")));
    let vms = azure.double.vms();
    assert_eq!(
        vms.iter().map(|vm| vm.zone.as_deref()).collect::<Vec<_>>(),
        [Some("1"), Some("2")]
    );
    assert_eq!(vms[1].tags["n"], "2");
    azure.assert_clean();
}

#[tokio::test]
async fn those_of_a_batch_that_fail_are_told_by_name() {
    let azure = Azure::start().await;
    azure
        .double
        .stock(vec![Stock::none("*", "2", "*", "ZonalAllocationFailed", When::Sync)]);
    let batch = r#"{"batchMachines": [{"machineName": "m1", "zones": ["1"]}, {"machineName": "m2", "zones": ["2"]}]}"#;
    let headers = [
        ("authorization", "Bearer x"),
        ("content-type", "application/json"),
        ("batchputmachine", batch),
    ];
    let body = machine_body("Standard_D4s_v5").to_string();
    let got = azure
        .raw("PUT", &azure.in_pool("/machines/m1"), &headers, &body)
        .await
        .unwrap();
    assert_eq!((got.status, got.code()), (400, "BatchMachineClientError"));
    assert_eq!(got.body["details"][0]["target"], "m2");
    assert_eq!(got.body["details"][0]["code"], "ZonalAllocationFailed");
    assert_eq!(azure.double.state().machines.len(), 1);
    azure.assert_clean();
}

#[tokio::test]
async fn a_machine_that_fails_says_why() {
    let azure = Azure::start().await;
    azure
        .double
        .stock(vec![Stock::none("*", "*", "*", "SkuNotAvailable", When::Async)]);
    let target = azure.in_pool("/machines/m1");
    azure.put(&target, &machine_body("Standard_D4s_v5")).await;
    let shown = azure.get(&target).await.body;
    assert_eq!(shown["properties"]["provisioningState"], "Failed");
    let error = &shown["properties"]["status"]["provisioningError"];
    assert_eq!(error["details"][0]["code"], "SkuNotAvailable");
    let got = azure
        .put(&azure.in_pool("/machines/m2"), &machine_body("Standard_None"))
        .await;
    assert_eq!((got.status, got.code()), (400, "VMSizeNotSupported"));
    azure.assert_clean();
}

#[tokio::test]
async fn an_update_needs_the_current_tag() {
    let azure = Azure::start().await;
    let target = azure.in_pool("/machines/m1");
    azure.put(&target, &machine_body("Standard_D4s_v5")).await;
    let mut shown = azure.get(&target).await.body;
    shown["properties"]["tags"] = json!({"new": "tag"});
    let tag = shown["properties"]["eTag"].as_str().unwrap().to_owned();
    for (tag, status) in [("old", 412), (tag.as_str(), 200)] {
        let headers = [
            ("authorization", "Bearer x"),
            ("content-type", "application/json"),
            ("if-match", tag),
        ];
        let got = azure.raw("PUT", &target, &headers, &shown.to_string()).await.unwrap();
        assert_eq!(got.status, status, "{got:?}");
    }
    assert_eq!(azure.double.vms()[0].tags["new"], "tag");
    azure.assert_clean();
}

#[tokio::test]
async fn what_aks_wants_to_make_new_is_told() {
    let azure = Azure::start().await;
    let target = azure.in_pool("/machines/m1");
    azure.put(&target, &machine_body("Standard_D4s_v5")).await;
    azure.turn(
        "machine",
        json!({"machine": "m1", "action": "Recreate", "reason": "cluster settings"}),
    );
    let status = azure.get(&target).await.body["properties"]["status"].clone();
    assert_eq!(
        (status["driftAction"].as_str(), status["driftReason"].as_str()),
        (Some("Recreate"), Some("cluster settings"))
    );
    azure.assert_clean();
}

#[tokio::test]
async fn errors_of_aks_are_flat() {
    let azure = Azure::start().await;
    let effect = Effect::Sync {
        status: 400,
        code: "BadRequest".to_owned(),
        message: Some("size is not supported for subscription".to_owned()),
        retry_after: None,
    };
    azure.double.fail_next("Machines_CreateOrUpdate", effect);
    let got = azure
        .put(&azure.in_pool("/machines/m1"), &machine_body("Standard_D4s_v5"))
        .await;
    assert_eq!(
        got.body,
        json!({"code": "BadRequest", "message": "size is not supported for subscription"})
    );
    azure.assert_clean();
}

#[tokio::test]
async fn the_pool_is_shown_and_another_is_not_found() {
    let azure = Azure::start().await;
    assert_eq!(
        azure.get(&azure.in_pool("")).await.body["properties"]["mode"],
        "Machines"
    );
    let other = azure.in_pool("").replace("agentPools/machines", "agentPools/other");
    assert_eq!(azure.get(&other).await.status, 404);
    azure.assert_clean();
}

#[tokio::test]
async fn a_misspelt_property_of_a_machine_is_a_violation() {
    let azure = Azure::start().await;
    let mut body = machine_body("Standard_D4s_v5");
    body["properties"]["hardware"]["ultraSSDEnabled"] = json!(true);
    let got = azure.put(&azure.in_pool("/machines/m1"), &body).await;
    assert_eq!(got.status, 400);
    assert_eq!(
        azure.double.violations()[0].problems,
        ["/properties/hardware/ultraSSDEnabled: is not known; it is written `ultraSsdEnabled`"]
    );
}
