//! Do virtual machines, network interfaces, disks and extensions come and go as on Azure?

use serde_json::json;

use crate::client::{Azure, tags};

#[tokio::test]
async fn a_virtual_machine_is_made_shown_changed_and_removed_with_what_is_its_own() {
    let azure = Azure::start().await;
    azure.make_vm("aks-a").await;
    let vm = azure.get(&azure.vm("aks-a")).await.body;
    assert_eq!(vm["properties"]["provisioningState"], "Succeeded");
    assert_eq!(vm["properties"]["timeCreated"], "2026-11-17T12:00:00Z");
    assert_eq!(vm["zones"], json!(["1"]));
    assert!(vm["properties"]["osProfile"]["customData"].is_null());
    let nic = azure.get(&azure.nic("aks-a")).await.body;
    assert_eq!(nic["properties"]["virtualMachine"]["id"], vm["id"]);
    assert_eq!(azure.double.disks()[0].vm.as_deref(), vm["id"].as_str());

    let patch = json!({
        "tags": {"karpenter.sh_nodepool": "other"},
        "identity": {"type": "UserAssigned", "userAssignedIdentities": {"/subscriptions/s/identities/more": {}}},
    });
    let got = azure.call("PATCH", &azure.vm("aks-a"), Some(&patch)).await;
    assert_eq!(got.status, 200);
    let vm = azure.get(&azure.vm("aks-a")).await.body;
    assert_eq!(vm["tags"], json!({"karpenter.sh_nodepool": "other"}));
    assert_eq!(vm["identity"]["userAssignedIdentities"].as_object().unwrap().len(), 2);

    let got = azure
        .call("DELETE", &format!("{}&forceDeletion=true", azure.vm("aks-a")), None)
        .await;
    assert_eq!(got.status, 202);
    assert_eq!(azure.get(&azure.vm("aks-a")).await.status, 404);
    assert!(azure.double.vms().is_empty());
    assert!(azure.double.nics().is_empty());
    assert!(azure.double.disks().is_empty());
    azure.assert_clean();
}

#[tokio::test]
async fn deleting_what_is_not_there_is_done_already() {
    let azure = Azure::start().await;
    for target in [
        azure.vm("aks-a"),
        azure.nic("aks-a"),
        azure.extension("aks-a", "x"),
        azure.in_group("Microsoft.Compute/disks/none", "2025-01-02"),
    ] {
        assert_eq!(azure.call("DELETE", &target, None).await.status, 204);
    }
    azure.assert_clean();
}

#[tokio::test]
async fn the_same_request_again_makes_nothing_new() {
    let azure = Azure::start().await;
    azure.make_vm("aks-a").await;
    let got = azure.put(&azure.vm("aks-a"), &azure.vm_body("aks-a")).await;
    assert_eq!(got.status, 200);
    let got = azure.put(&azure.nic("aks-a"), &azure.nic_body("aks-a")).await;
    assert_eq!(got.status, 200);
    assert_eq!(azure.double.vms().len(), 1);
    assert_eq!(azure.double.vms()[0].puts, 2);
    assert_eq!(azure.double.state().cores["standardDSv5Family"], 4);
    azure.assert_clean();
}

#[tokio::test]
async fn what_cannot_change_is_refused_by_name() {
    let azure = Azure::start().await;
    azure.make_vm("aks-a").await;
    let mut body = azure.vm_body("aks-a");
    body["properties"]["hardwareProfile"]["vmSize"] = json!("Standard_D8s_v5");
    let got = azure.put(&azure.vm("aks-a"), &body).await;
    assert_eq!((got.status, got.code()), (409, "PropertyChangeNotAllowed"));
    assert_eq!(got.body["error"]["target"], "hardwareProfile.vmSize");
    let mut body = azure.vm_body("aks-a");
    body["zones"] = json!(["2"]);
    let got = azure.put(&azure.vm("aks-a"), &body).await;
    assert_eq!(got.body["error"]["target"], "zones");
    azure.assert_clean();
}

#[tokio::test]
async fn a_network_interface_in_use_is_not_deleted() {
    let azure = Azure::start().await;
    azure.make_vm("aks-a").await;
    let got = azure.call("DELETE", &azure.nic("aks-a"), None).await;
    assert_eq!((got.status, got.code()), (400, "NicInUse"));
    let mut body = azure.vm_body("aks-b");
    body["properties"]["networkProfile"] = azure.vm_body("aks-a")["properties"]["networkProfile"].clone();
    let got = azure.put(&azure.vm("aks-b"), &body).await;
    assert_eq!((got.status, got.code()), (400, "NicInUse"));
    azure.assert_clean();
}

#[tokio::test]
async fn what_is_not_to_go_along_stays_behind() {
    let azure = Azure::start().await;
    let mut body = azure.vm_body("aks-a");
    body["properties"]["storageProfile"]["osDisk"]["deleteOption"] = json!("Detach");
    body["properties"]["networkProfile"]["networkInterfaces"][0]["properties"]["deleteOption"] = json!("Detach");
    assert_eq!(azure.ask_vm("aks-a", &body).await.status, 201);
    let disk = azure.in_group("Microsoft.Compute/disks/aks-a", "2025-01-02");
    assert_eq!(azure.call("DELETE", &disk, None).await.code(), "OperationNotAllowed");
    azure.call("DELETE", &azure.vm("aks-a"), None).await;
    assert_eq!(azure.double.nics()[0].vm, None);
    assert_eq!(azure.double.leftovers().len(), 2);
    assert_eq!(azure.get(&disk).await.body["properties"]["diskState"], "Unattached");
    assert_eq!(azure.call("DELETE", &disk, None).await.status, 202);
    assert_eq!(azure.call("DELETE", &azure.nic("aks-a"), None).await.status, 202);
    assert!(azure.double.nics().is_empty() && azure.double.disks().is_empty());
    assert!(azure.double.leftovers().is_empty());
    azure.assert_clean();
}

#[tokio::test]
async fn an_ephemeral_disk_is_no_resource_and_must_fit() {
    let azure = Azure::start().await;
    let mut body = azure.vm_body("aks-a");
    body["properties"]["hardwareProfile"]["vmSize"] = json!("Standard_D4s_v3");
    let disk = &mut body["properties"]["storageProfile"]["osDisk"];
    disk["diffDiskSettings"] = json!({"option": "Local", "placement": "CacheDisk"});
    disk["caching"] = json!("ReadOnly");
    disk["diskSizeGB"] = json!(2000);
    let got = azure.ask_vm("aks-a", &body).await;
    assert_eq!((got.status, got.code()), (409, "OperationNotAllowed"));
    body["properties"]["storageProfile"]["osDisk"]["diskSizeGB"] = json!(100);
    assert_eq!(azure.put(&azure.vm("aks-a"), &body).await.status, 201);
    assert!(azure.double.disks().is_empty());
    azure.assert_clean();
}

#[tokio::test]
async fn what_azure_refuses_beyond_the_schema_is_refused() {
    let azure = Azure::start().await;
    azure.make_nic("aks-a").await;
    let image = |name: &str| {
        json!({"communityGalleryImageId": format!(
            "/CommunityGalleries/AKSUbuntu-38d80f77-467a-481f-a8d4-09b6d4220bd2/images/{name}/versions/202512.18.0"
        )})
    };
    let cases = [
        ("/location", json!("westus"), "LocationNotAvailableForResourceType"),
        ("/zones", json!(["4"]), "InvalidAvailabilityZone"),
        (
            "/properties/hardwareProfile/vmSize",
            json!("Standard_X1"),
            "InvalidParameter",
        ),
        (
            "/properties/osProfile/customData",
            json!("not base64!"),
            "InvalidParameter",
        ),
        ("/properties/osProfile/computerName", json!(""), "InvalidParameter"),
        (
            "/properties/osProfile/linuxConfiguration/ssh/publicKeys/0/path",
            json!("/root"),
            "InvalidParameter",
        ),
        ("/properties/evictionPolicy", json!("Delete"), "OperationNotAllowed"),
        (
            "/properties/storageProfile/imageReference",
            image("2204gen2arm64containerd"),
            "BadRequest",
        ),
        (
            "/properties/storageProfile/imageReference",
            image("none"),
            "GalleryImageNotFound",
        ),
        (
            "/properties/networkProfile/networkInterfaces/0/id",
            json!("/subscriptions/s/none"),
            "NotFound",
        ),
        (
            "/tags",
            json!({"karpenter.sh/nodepool": "default"}),
            "InvalidTagNameCharacters",
        ),
        (
            "/properties/securityProfile",
            json!({"securityType": "TrustedLaunch", "encryptionAtHost": true}),
            "",
        ),
    ];
    for (place, value, code) in cases {
        let mut body = azure.vm_body("aks-a");
        let (parent, name) = place.rsplit_once('/').unwrap();
        let parent = body.pointer_mut(parent).unwrap();
        match name.parse::<usize>() {
            Ok(index) => parent[index] = value,
            Err(_) => parent[name] = value,
        }
        let got = azure.put(&azure.vm("aks-a"), &body).await;
        assert_eq!(got.code(), code, "{place}");
    }
    azure.assert_clean();
}

#[tokio::test]
async fn a_network_interface_must_name_what_is_there() {
    let azure = Azure::start().await;
    let mut body = azure.nic_body("aks-a");
    body["properties"]["ipConfigurations"][0]["properties"]["subnet"]["id"] = json!("/subscriptions/s/none");
    let got = azure.put(&azure.nic("aks-a"), &body).await;
    assert_eq!((got.status, got.code()), (400, "InvalidResourceReference"));
    azure.assert_clean();
}

#[tokio::test]
async fn extensions_are_put_on_a_running_machine_and_go_with_it() {
    let azure = Azure::start().await;
    let body = json!({
        "location": "eastus", "tags": tags(), "type": "Microsoft.Compute/virtualMachines/extensions",
        "properties": {
            "publisher": "Microsoft.Azure.Extensions", "type": "CustomScript", "typeHandlerVersion": "2.0",
            "autoUpgradeMinorVersion": true, "settings": {}, "protectedSettings": {"commandToExecute": "true"},
        },
    });
    let target = azure.extension("aks-a", "cse-agent-karpenter");
    assert_eq!(azure.put(&target, &body).await.code(), "ParentResourceNotFound");
    azure.double.latency("VirtualMachines_CreateOrUpdate", 10);
    azure.make_vm("aks-a").await;
    assert_eq!(azure.put(&target, &body).await.code(), "OperationNotAllowed");
    azure.double.advance(10).unwrap();
    assert_eq!(azure.put(&target, &body).await.status, 201);
    let shown = azure.get(&target).await.body;
    assert_eq!(shown["properties"]["provisioningState"], "Succeeded");
    assert!(shown["properties"]["protectedSettings"].is_null());
    let patch = json!({"tags": {"a": "b"}});
    assert_eq!(
        azure.call("PATCH", &target, Some(&patch)).await.body["tags"],
        patch["tags"]
    );
    assert_eq!(azure.double.vms()[0].extensions, ["cse-agent-karpenter"]);
    assert_eq!(
        azure.get(&azure.vm("aks-a")).await.body["resources"][0]["name"],
        "cse-agent-karpenter"
    );
    azure.call("DELETE", &azure.vm("aks-a"), None).await;
    assert_eq!(azure.get(&target).await.status, 404);
    assert_eq!(azure.call("PATCH", &target, Some(&patch)).await.status, 404);
    azure.assert_clean();
}

#[tokio::test]
async fn tags_of_a_network_interface_are_patched() {
    let azure = Azure::start().await;
    azure.make_nic("aks-a").await;
    let patch = json!({"tags": {"a": "b"}});
    let got = azure.call("PATCH", &azure.nic("aks-a"), Some(&patch)).await;
    assert_eq!((got.status, &got.body["tags"]), (200, &patch["tags"]));
    assert_eq!(azure.call("PATCH", &azure.nic("none"), Some(&patch)).await.status, 404);
    azure.assert_clean();
}

#[tokio::test]
async fn the_machine_of_someone_else_is_left_alone() {
    let azure = Azure::start().await;
    for name in ["aks-a", "aks-b"] {
        azure.make_vm(name).await;
        azure.call("DELETE", &azure.vm(name), None).await;
    }
    let state = azure.double.state();
    let names = |names: Vec<&String>| names.into_iter().cloned().collect::<Vec<_>>();
    assert_eq!(names(state.vms.iter().map(|vm| &vm.name).collect()), ["jumpbox"]);
    assert_eq!(names(state.nics.iter().map(|nic| &nic.name).collect()), ["jumpbox"]);
    assert_eq!(names(state.disks.iter().map(|disk| &disk.name).collect()), ["jumpbox"]);
    assert_eq!(state.vms[0].tags["owner"], "someone-else");
}

#[tokio::test]
async fn lists_show_what_is_in_the_group() {
    let azure = Azure::start().await;
    azure.make_vm("aks-a").await;
    let vms = azure
        .get(&azure.in_group("Microsoft.Compute/virtualMachines", "2025-04-01"))
        .await;
    assert_eq!(vms.body["value"].as_array().unwrap().len(), 2);
    let nics = azure
        .get(&azure.in_group("Microsoft.Network/networkInterfaces", "2022-01-01"))
        .await;
    assert_eq!(nics.body["value"].as_array().unwrap().len(), 2);
    azure.assert_clean();
}

#[tokio::test]
async fn an_unknown_group_or_subscription_is_not_found() {
    let azure = Azure::start().await;
    let group = azure.vm("aks-a").replace("MC_rg-dovetail_dovetail_eastus", "none");
    assert_eq!(azure.get(&group).await.code(), "ResourceGroupNotFound");
    let subscription = azure.vm("aks-a").replace("11111111", "22222222");
    assert_eq!(azure.get(&subscription).await.code(), "SubscriptionNotFound");
    azure.assert_clean();
}

#[tokio::test]
async fn an_eviction_is_announced_inside_and_then_comes() {
    let azure = Azure::start().await;
    let got = azure.ask_vm("aks-a", &azure.spot_body("aks-a")).await;
    assert_eq!(got.status, 201);
    let events = "/_double/vms/aks-a/metadata/scheduledevents?api-version=2020-07-01";
    let inside = [("metadata", "true")];
    let quiet = azure.raw("GET", events, &inside, "").await.unwrap();
    assert_eq!(quiet.body["Events"], json!([]));
    azure.double.evict("aks-a", 30).unwrap();
    let told = azure.raw("GET", events, &inside, "").await.unwrap();
    assert_eq!(told.body["Events"][0]["EventType"], "Preempt");
    assert_eq!(told.body["Events"][0]["NotBefore"], "Tue, 17 Nov 2026 12:00:30 GMT");
    azure.double.advance(29).unwrap();
    assert_eq!(azure.double.vms().len(), 1);
    azure.double.advance(1).unwrap();
    assert!(azure.double.vms().is_empty() && azure.double.nics().is_empty() && azure.double.disks().is_empty());
    assert_eq!(azure.raw("GET", events, &[], "").await.unwrap().status, 400);
}

#[tokio::test]
async fn an_event_that_is_started_happens_at_once() {
    let azure = Azure::start().await;
    azure.ask_vm("aks-a", &azure.spot_body("aks-a")).await;
    azure.double.evict("aks-a", 30).unwrap();
    let events = "/_double/vms/aks-a/metadata/scheduledevents?api-version=2020-07-01";
    let inside = [("metadata", "true")];
    let told = azure.raw("GET", events, &inside, "").await.unwrap();
    let start = json!({"StartRequests": [{"EventId": told.body["Events"][0]["EventId"]}]}).to_string();
    assert_eq!(azure.raw("POST", events, &inside, &start).await.unwrap().status, 200);
    assert!(azure.double.vms().is_empty());
}

#[tokio::test]
async fn a_machine_with_another_policy_is_only_stopped() {
    let azure = Azure::start().await;
    let mut body = azure.spot_body("aks-a");
    body["properties"]["evictionPolicy"] = json!("Deallocate");
    azure.ask_vm("aks-a", &body).await;
    azure.double.evict("aks-a", 0).unwrap();
    assert!(azure.double.vms()[0].deallocated);
    let vm = azure
        .get(&format!("{}&$expand=instanceView", azure.vm("aks-a")))
        .await
        .body;
    assert_eq!(
        vm["properties"]["instanceView"]["statuses"][1]["code"],
        "PowerState/deallocated"
    );
    assert!(!azure.double.state().cores.contains_key("lowPriorityCores"));
    azure.assert_clean();
}

#[tokio::test]
async fn only_spot_is_evicted() {
    let azure = Azure::start().await;
    azure.make_vm("aks-a").await;
    let error = azure.double.evict("aks-a", 30).unwrap_err();
    assert!(error.to_string().contains("not a spot machine"));
}

#[tokio::test]
async fn a_machine_vanishes_behind_everyones_back() {
    let azure = Azure::start().await;
    azure.make_vm("aks-a").await;
    azure.turn("vanish", json!({"vm": "aks-a"}));
    assert_eq!(azure.get(&azure.vm("aks-a")).await.status, 404);
    assert!(azure.double.nics().is_empty());
}
