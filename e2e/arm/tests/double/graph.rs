//! Does Resource Graph answer the queries of the contract, late and in mixed case when told to?

use serde_json::{Value, json};

use crate::client::{Azure, machine_body};

const GRAPH: &str = "/providers/Microsoft.ResourceGraph/resources?api-version=2021-06-01-preview";

fn query(azure: &Azure, kind: &str) -> Value {
    let group = azure.double.setup().node_group.to_ascii_lowercase();
    json!({
        "subscriptions": [azure.double.setup().subscription],
        "query": format!(
            "Resources | where type == \"{kind}\" | where resourceGroup == \"{group}\" | where tags has_cs \
             \"karpenter.sh_nodepool\" | where not(tags has_cs \"karpenter.azure.com_aksmachine_nodeclaim\")"
        ),
        "options": {"resultFormat": "objectArray"},
    })
}

async fn ids(azure: &Azure, kind: &str) -> Vec<String> {
    let got = azure.call("POST", GRAPH, Some(&query(azure, kind))).await;
    assert_eq!(got.status, 200, "{got:?}");
    let rows = got.body["data"].as_array().unwrap().iter();
    rows.map(|row| row["id"].as_str().unwrap().to_owned()).collect()
}

const VMS: &str = "microsoft.compute/virtualmachines";
const NICS: &str = "microsoft.network/networkinterfaces";

#[tokio::test]
async fn only_tagged_resources_are_listed() {
    let azure = Azure::start().await;
    azure.make_vm("aks-a").await;
    assert_eq!(ids(&azure, VMS).await, [azure.double.vms()[0].id.clone()]);
    assert_eq!(ids(&azure, NICS).await, [azure.double.nics()[0].id.clone()]);
    let got = azure.call("POST", GRAPH, Some(&query(&azure, VMS))).await;
    let row = &got.body["data"][0];
    assert_eq!(row["properties"]["hardwareProfile"]["vmSize"], "Standard_D4s_v5");
    assert_eq!(row["type"], VMS);
    assert_eq!(row["tags"]["karpenter.sh_nodepool"], "default");
    azure.assert_clean();
}

#[tokio::test]
async fn the_graph_lags_behind_in_both_directions() {
    let azure = Azure::start().await;
    azure.turn("graph", json!({"lag_seconds": 30}));
    azure.double.advance(100).unwrap();
    azure.make_vm("aks-a").await;
    assert!(ids(&azure, VMS).await.is_empty());
    azure.double.advance(30).unwrap();
    assert_eq!(ids(&azure, VMS).await.len(), 1);
    azure.call("DELETE", &azure.vm("aks-a"), None).await;
    assert!(azure.double.vms().is_empty());
    azure.double.advance(29).unwrap();
    assert_eq!(ids(&azure, VMS).await.len(), 1);
    azure.double.advance(1).unwrap();
    assert!(ids(&azure, VMS).await.is_empty());
    azure.assert_clean();
}

#[tokio::test]
async fn a_frozen_graph_shows_no_news() {
    let azure = Azure::start().await;
    azure.turn("graph", json!({"frozen": true}));
    azure.double.advance(1).unwrap();
    azure.make_vm("aks-a").await;
    azure.double.advance(1000).unwrap();
    assert!(ids(&azure, VMS).await.is_empty());
    azure.turn("graph", json!({"frozen": false}));
    assert_eq!(ids(&azure, VMS).await.len(), 1);
}

#[tokio::test]
async fn ids_come_in_mixed_case_when_told_to() {
    let azure = Azure::start().await;
    azure.make_vm("aks-abc").await;
    azure.turn("graph", json!({"mixed_case": true}));
    let ids = ids(&azure, VMS).await;
    let own = azure.double.vms()[0].id.clone();
    assert_ne!(ids[0], own);
    assert!(ids[0].eq_ignore_ascii_case(&own));
    assert!(ids[0].ends_with("/AkS-AbC"), "{}", ids[0]);
}

#[tokio::test]
async fn the_graph_has_pages() {
    let azure = Azure::start().await;
    for name in ["aks-a", "aks-b", "aks-c"] {
        azure.make_vm(name).await;
    }
    azure.turn("page", json!({"operation": "Resources", "size": 2}));
    let mut body = query(&azure, VMS);
    let first = azure.call("POST", GRAPH, Some(&body)).await.body;
    assert_eq!(
        (first["count"].as_u64(), first["totalRecords"].as_u64()),
        (Some(2), Some(3))
    );
    body["options"]["$skipToken"] = first["$skipToken"].clone();
    let second = azure.call("POST", GRAPH, Some(&body)).await.body;
    assert_eq!(second["data"][0]["name"], "aks-c");
    assert!(second["$skipToken"].is_null());
    azure.assert_clean();
}

#[tokio::test]
async fn another_query_is_a_violation() {
    let azure = Azure::start().await;
    let mut body = query(&azure, VMS);
    body["query"] = json!("Resources | where name == 'a'");
    let got = azure.call("POST", GRAPH, Some(&body)).await;
    assert_eq!((got.status, got.code()), (400, "InvalidQuery"));
    assert_eq!(azure.double.violations().len(), 1);
}

#[tokio::test]
async fn a_group_that_is_not_in_lower_case_finds_nothing() {
    let azure = Azure::start().await;
    azure.make_vm("aks-a").await;
    let mut body = query(&azure, VMS);
    let text = body["query"].as_str().unwrap().replace("mc_rg", "MC_rg");
    body["query"] = json!(text);
    assert_eq!(azure.call("POST", GRAPH, Some(&body)).await.body["count"], 0);
}

#[tokio::test]
async fn what_was_planted_is_found_and_can_be_swept() {
    let azure = Azure::start().await;
    let tags = json!({"karpenter.sh_nodepool": "default"});
    for kind in ["nic", "disk", "vm"] {
        azure.turn(
            "plant",
            json!({"kind": kind, "name": format!("aks-{kind}"), "tags": tags}),
        );
    }
    assert_eq!(ids(&azure, NICS).await.len(), 2);
    assert_eq!(ids(&azure, "microsoft.compute/disks").await.len(), 2);
    assert_eq!(azure.call("DELETE", &azure.nic("aks-nic"), None).await.status, 202);
    assert_eq!(azure.call("DELETE", &azure.vm("aks-vm"), None).await.status, 202);
    assert!(ids(&azure, NICS).await.is_empty());
    azure.assert_clean();
}

#[tokio::test]
async fn machines_of_aks_are_not_listed_among_the_virtual_machines() {
    let azure = Azure::start().await;
    azure
        .put(
            &azure.in_pool("/machines/default-abc"),
            &machine_body("Standard_D4s_v5"),
        )
        .await;
    assert_eq!(azure.double.vms().len(), 1);
    assert!(ids(&azure, VMS).await.is_empty());
    azure.assert_clean();
}
