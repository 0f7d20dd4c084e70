//! Node classes: conditions, reasons, messages, and when they are looked at again.

use std::time::Duration;

use serde_json::{Value, json};

use crate::world::{SUBNET, World};

fn condition<'a>(class: &'a Value, kind: &str) -> [&'a str; 3] {
    let conditions = class["status"]["conditions"].as_array().unwrap();
    let found = conditions.iter().find(|it| it["type"] == kind);
    let found = found.unwrap_or_else(|| panic!("no condition {kind} in {class:#}"));
    ["status", "reason", "message"].map(|key| found[key].as_str().unwrap_or_default())
}

const MINUTE: Duration = Duration::from_mins(1);
const NEWEST: &str =
    "/CommunityGalleries/AKSUbuntu-38d80f77-467a-481f-a8d4-09b6d4220bd2/images/2404gen2containerd/versions/202512.18.0";

#[tokio::test(start_paused = true)]
async fn a_class_that_finds_everything_is_ready_and_says_what_it_found() {
    let world = World::with(|_| {}).await;
    world.create("default", json!({}));
    let class = world.settle("default").await;
    for kind in [
        "KubernetesVersionReady",
        "ImagesReady",
        "SubnetsReady",
        "ValidationSucceeded",
        "LocalDNSReady",
        "Ready",
    ] {
        assert_eq!(condition(&class, kind), ["True", kind, ""], "{class:#}");
    }
    assert_eq!(
        class["metadata"]["finalizers"],
        json!(["karpenter.azure.com/termination"])
    );
    let images = class["status"]["images"].as_array().unwrap();
    assert_eq!((images.len(), &images[0]["id"]), (3, &json!(NEWEST)));
    assert_eq!(class["status"]["localDNSState"], "Disabled");
    assert!(class["status"]["kubernetesVersion"].as_str().unwrap().starts_with("1."));
    // The subnet is looked at soonest.
    assert_eq!(world.look("default").await, Ok(Some(3 * MINUTE)));
}

#[tokio::test(start_paused = true)]
async fn the_hash_and_its_version_are_written_and_claims_of_an_older_recipe_get_both() {
    let world = World::with(|_| {}).await;
    let claim = |name: &str, conditions: Value| {
        json!({"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": name, "annotations": {
                "karpenter.azure.com/aksnodeclass-hash": "old", "karpenter.azure.com/aksnodeclass-hash-version": "v2"}},
            "spec": {"nodeClassRef": {"group": "karpenter.azure.com", "kind": "AKSNodeClass", "name": "default"}, "requirements": [], "expireAfter": "720h"},
            "status": {"conditions": conditions}})
    };
    world.create("default", json!({}));
    world.server.create(claim("plain", json!([]))).unwrap();
    let drifted =
        json!([{"type": "Drifted", "status": "True", "reason": "x", "lastTransitionTime": "2026-11-17T10:00:00Z"}]);
    world.server.create(claim("drifted", drifted)).unwrap();
    let class = world.settle("default").await;
    let annotations = |value: &Value| {
        let of =
            |key: &str| value["metadata"]["annotations"][format!("karpenter.azure.com/aksnodeclass-{key}")].clone();
        [of("hash"), of("hash-version")]
    };
    let [hash, version] = annotations(&class);
    assert_eq!(version, "v3");
    let claims = |name: &str| annotations(&world.server.get("NodeClaim", name).unwrap());
    assert_eq!(claims("plain"), [hash, version.clone()]);
    // Whether it still is cannot be told any more: it stays so.
    assert_eq!(claims("drifted"), [json!("old"), version]);
}

#[tokio::test(start_paused = true)]
async fn a_subnet_that_is_not_there_or_not_ours_is_told() {
    let world = World::with(|_| {}).await;
    world.create("elsewhere", json!({"vnetSubnetID": SUBNET.replace("/rg/", "/other/")}));
    let class = world.settle("elsewhere").await;
    let [status, reason, message] = condition(&class, "SubnetsReady");
    assert_eq!((status, reason), ("False", "SubnetIDInvalid"));
    assert!(
        message.starts_with("vnetSubnetID does not match the cluster subscription, resource group, or virtual network")
    );
    world.create("default", json!({}));
    world.azure.lock().subnet_status = Some(404);
    let class = world.settle("default").await;
    let expected = format!("resource not found: {SUBNET}");
    assert_eq!(
        condition(&class, "SubnetsReady"),
        ["False", "SubnetNotFound", expected.as_str()]
    );
    assert_eq!(condition(&class, "Ready")[0], "False");
    world.azure.lock().subnet_status = Some(403);
    let class = world.settle("default").await;
    assert_eq!(condition(&class, "SubnetsReady")[1], "SubnetUnknownError");
}

#[tokio::test(start_paused = true)]
async fn fips_needs_shared_galleries() {
    let world = World::with(|_| {}).await;
    world.create("default", json!({"fipsMode": "FIPS"}));
    let class = world.settle("default").await;
    let [status, reason, message] = condition(&class, "ImagesReady");
    assert_eq!((status, reason), ("False", "SIGRequiredForFIPS"));
    assert!(message.starts_with("FIPS images require UseSIG to be enabled, but UseSIG is false"));
    assert_eq!(class["status"]["images"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn images_change_in_the_window_and_stay_outside_it() {
    let world = World::with(|settings| settings.azure.system_namespace = "kube-system".to_owned()).await;
    world.azure.lock().image_versions.truncate(1);
    world.create("default", json!({}));
    let first = world.settle("default").await["status"]["images"][0]["id"].clone();
    assert!(first.as_str().unwrap().ends_with("202510.01.0"));
    let window = |start: &str, end: &str| json!({"aksManagedNodeOSUpgradeSchedule-start": start, "aksManagedNodeOSUpgradeSchedule-end": end});
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "upcoming-maintenance-window", "namespace": "kube-system"},
        "data": window("2026-12-01T00:00:00Z", "2026-12-01T04:00:00Z")});
    world.server.create(map).unwrap();
    world
        .azure
        .lock()
        .image_versions
        .push(("202512.18.0", "2025-12-18T00:00:00Z"));
    // Images are believed for three days.
    tokio::time::sleep(Duration::from_hours(73)).await;
    assert_eq!(world.settle("default").await["status"]["images"][0]["id"], first);
    let open = window("2026-11-01T00:00:00Z", "2026-12-01T04:00:00Z");
    world
        .server
        .update("ConfigMap", "kube-system/upcoming-maintenance-window", |map| {
            map["data"] = open;
        })
        .unwrap();
    assert_eq!(world.settle("default").await["status"]["images"][0]["id"], NEWEST);
    let half = json!({"aksManagedNodeOSUpgradeSchedule-start": "2026-11-01T00:00:00Z"});
    world
        .server
        .update("ConfigMap", "kube-system/upcoming-maintenance-window", |map| {
            map["data"] = half;
        })
        .unwrap();
    let error = world.look("default").await.unwrap_err();
    assert!(error.contains("incomplete maintenance window data"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_gallery_without_versions_is_told() {
    let world = World::with(|_| {}).await;
    world.azure.lock().image_versions.clear();
    world.create("default", json!({}));
    let class = world.settle("default").await;
    assert_eq!(
        condition(&class, "ImagesReady"),
        ["False", "ImagesNotFound", "ImageSelectors did not match any Images"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_key_that_we_may_not_read_is_told_and_looked_at_again_in_a_minute() {
    let world = World::with(|settings| {
        settings.azure.disk_encryption_set_id =
            "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/diskEncryptionSets/d".to_owned();
    })
    .await;
    world.create("default", json!({}));
    for status in [403, 401] {
        world.azure.lock().disk_encryption_set_status = Some(status);
        let class = world.settle("default").await;
        let [state, reason, message] = condition(&class, "ValidationSucceeded");
        assert_eq!((state, reason), ("False", "DiskEncryptionSetRBACMissing"), "{status}");
        assert!(message.starts_with("controlling identity does not have Reader role on Disk Encryption Set"));
        assert!(message.contains("https://learn.microsoft.com/azure/aks/azure-disk-customer-managed-keys"));
        assert_eq!(world.look("default").await, Ok(Some(MINUTE)));
        world.azure.lock().disk_encryption_set_status = None;
        let class = world.settle("default").await;
        assert_eq!(condition(&class, "ValidationSucceeded")[0], "True");
    }
    // Anything else says nothing about permissions: what was known stays, and it is tried again.
    world.azure.lock().disk_encryption_set_status = Some(404);
    let error = world.look("default").await.unwrap_err();
    assert!(error.contains("failed to validate DiskEncryptionSet"), "{error}");
    let class = world.server.get("AKSNodeClass", "default").unwrap();
    assert_eq!(condition(&class, "ValidationSucceeded")[0], "True");
}

#[tokio::test(start_paused = true)]
async fn local_dns_is_on_where_it_is_required_and_off_where_it_is_only_preferred_yet() {
    let world = World::with(|_| {}).await;
    let overrides = json!([{"zone": "."}, {"zone": "cluster.local"}]);
    for (mode, state) in [
        ("Required", "Enabled"),
        ("Preferred", "Disabled"),
        ("Disabled", "Disabled"),
    ] {
        let name = mode.to_lowercase();
        world.create(
            &name,
            json!({"localDNS": {"mode": mode, "vnetDNSOverrides": overrides, "kubeDNSOverrides": overrides}}),
        );
        let class = world.settle(&name).await;
        assert_eq!(class["status"]["localDNSState"], state, "{mode}");
        assert_eq!(condition(&class, "LocalDNSReady")[0], "True");
    }
}

#[tokio::test(start_paused = true)]
async fn kubernetes_is_followed_up_and_not_down() {
    let world = World::with(|_| {}).await;
    world.create("default", json!({}));
    let settled = world.settle("default").await;
    let now = settled["status"]["kubernetesVersion"].clone();
    world
        .server
        .update("AKSNodeClass", "default", |class| {
            class["status"]["kubernetesVersion"] = json!("1.99.0");
        })
        .unwrap();
    assert_eq!(world.settle("default").await["status"]["kubernetesVersion"], "1.99.0");
    world
        .server
        .update("AKSNodeClass", "default", |class| {
            class["status"]["kubernetesVersion"] = json!("1.30.0");
            class["status"]["images"] = json!([]);
        })
        .unwrap();
    let upgraded = world.settle("default").await;
    assert_eq!(upgraded["status"]["kubernetesVersion"], now);
    assert_eq!(upgraded["status"]["images"][0]["id"], NEWEST);
}

#[tokio::test(start_paused = true)]
async fn a_class_waits_for_its_claims_before_it_goes() {
    let world = World::with(|_| {}).await;
    world.create("default", json!({}));
    world.settle("default").await;
    let claim = json!({"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": "a"},
        "spec": {"nodeClassRef": {"group": "karpenter.azure.com", "kind": "AKSNodeClass", "name": "default"}, "requirements": [], "expireAfter": "720h"}});
    world.server.create(claim).unwrap();
    world.server.delete("AKSNodeClass", "default").unwrap();
    assert!(matches!(world.look("default").await, Ok(Some(_))));
    assert!(world.server.get("AKSNodeClass", "default").is_some());
    let event = world.events.lock().await.try_recv().unwrap();
    assert!(format!("{event:?}").contains("Waiting on NodeClaim termination for a"));
    world.server.delete("NodeClaim", "a").unwrap();
    world.look("default").await.unwrap();
    assert!(world.server.get("AKSNodeClass", "default").is_none());
}

#[tokio::test(start_paused = true)]
async fn shared_galleries_give_the_newest_version_of_each_definition_and_fips() {
    let world = World::with(|settings| {
        settings.azure.use_sig = true;
        settings.azure.sig_subscription_id = "sig".to_owned();
        settings.azure.sig_access_token_server_url = "http://tokens.example".to_owned();
    })
    .await;
    world.azure.lock().shared_images = vec![
        ("AKSUbuntu", "2404gen2containerd", "202509.1.0"),
        ("AKSUbuntu", "2404gen2containerd", "202512.18.0"),
        ("AKSUbuntuEdgeZone", "2404gen2containerd", "202601.1.0"),
        ("AKSUbuntu", "2004gen2fipscontainerd", "202512.18.0"),
        ("AKSAzureLinux", "V3gen2arm64fips", "202512.18.0"),
        ("AKSAzureLinux", "V3gen2fips", "202512.18.0"),
    ];
    let id = |family: &str, definition: &str| {
        format!(
            "/subscriptions/sig/resourceGroups/AKS-{family}/providers/Microsoft.Compute/galleries/AKS{family}/images/{definition}/versions/202512.18.0"
        )
    };
    let images = |class: &Value| -> Vec<String> {
        let images = class["status"]["images"].as_array().unwrap();
        images.iter().map(|it| it["id"].as_str().unwrap().to_owned()).collect()
    };
    world.create("plain", json!({}));
    assert_eq!(
        images(&world.settle("plain").await),
        [id("Ubuntu", "2404gen2containerd")]
    );
    world.create("fips", json!({"fipsMode": "FIPS"}));
    assert_eq!(
        images(&world.settle("fips").await),
        [id("Ubuntu", "2004gen2fipscontainerd")]
    );
    world.create("linux", json!({"fipsMode": "FIPS", "imageFamily": "AzureLinux"}));
    let expected = [id("AzureLinux", "V3gen2fips"), id("AzureLinux", "V3gen2arm64fips")];
    assert_eq!(images(&world.settle("linux").await), expected);
}
