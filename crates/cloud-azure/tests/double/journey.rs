//! The life of a machine on a day without trouble.

use std::{sync::Arc, time::Duration};

use arm::knob::{ImageVersion, Knob, LroStyle, Style};
use cloud::{CloudError, CloudProvider, Launched, NoticeKind, UnavailableOffering};
use model::object::NodeClaim;
use serde_json::json;

use crate::world::World;

const MINUTE: Duration = Duration::from_mins(1);

/// The claim once its launch is written down.
pub(crate) fn recorded(claim: &NodeClaim, launched: &Launched) -> NodeClaim {
    let mut claim = claim.clone();
    claim.status.provider_id = Some(launched.provider_id.clone().into());
    claim.metadata.annotations = launched.annotations.clone();
    claim.status.image_id = launched.image_id.clone();
    claim
}

#[tokio::test(start_paused = true)]
async fn a_machine_comes_with_interface_disk_and_extension_and_takes_them_along_when_it_goes() {
    let world = World::new().await;
    let claim = World::sized("a", "Standard_D4s_v5", "spot");
    let claim = recorded(&claim, &world.launch(&claim).await.unwrap());
    tokio::time::sleep(MINUTE).await;
    let (vms, nics, disks) = (world.azure().vms(), world.double.nics(), world.double.disks());
    let ([vm], [nic], [disk]) = (vms.as_slice(), nics.as_slice(), disks.as_slice()) else {
        panic!("{vms:?} {nics:?} {disks:?}");
    };
    assert_eq!(
        (vm.name.as_str(), vm.size.as_str(), vm.capacity),
        ("aks-a", "Standard_D4s_v5", "spot")
    );
    assert_eq!((vm.state, vm.puts), ("Succeeded", 1));
    assert_eq!(vm.extensions, ["computeAksLinuxBilling"]);
    assert_eq!(nic.vm.as_ref(), Some(&vm.id));
    assert_eq!(disk.vm.as_ref(), Some(&vm.id));
    for tags in [&vm.tags, &nic.tags] {
        let tag = |key: &str| tags.get(key).map(String::as_str);
        assert_eq!(tag("karpenter.azure.com_cluster"), Some("dovetail"));
        assert_eq!(tag("karpenter.sh_nodepool"), Some("general"));
        assert_eq!(tag("karpenter.sh_nodeclaim"), Some("a"));
        assert_eq!(tag("dovetail.dev_launch"), Some("uid-a-1"));
    }
    let listed = world.provider.list().await.unwrap();
    assert_eq!(listed.len(), 1, "somebody else's machine is not listed: {listed:?}");
    let id = claim.status.provider_id.clone().unwrap();
    assert_eq!(listed[0].provider_id, id);
    assert_eq!(world.provider.get(&id).await.unwrap().provider_id, id);
    world.delete(&claim).await;
    assert!(matches!(world.provider.get(&id).await, Err(CloudError::NotFound(_))));
    assert!(world.provider.list().await.unwrap().is_empty());
    world.judge();
}

#[tokio::test(start_paused = true)]
async fn however_azure_tells_of_an_operation_it_is_followed_to_its_end() {
    for style in [
        LroStyle::AsyncOperation,
        LroStyle::Location,
        LroStyle::Both,
        LroStyle::ProvisioningState,
    ] {
        let world = World::new().await;
        let every = Style {
            operation: "*".to_owned(),
            style,
        };
        world.azure().turn(Knob::Style(every)).unwrap();
        world.double.latency("*", 20);
        let claim = World::sized("a", "Standard_D4s_v5", "on-demand");
        let claim = recorded(&claim, &world.launch(&claim).await.unwrap());
        tokio::time::sleep(2 * MINUTE).await;
        let vms = world.azure().vms();
        assert_eq!(vms[0].state, "Succeeded", "{style:?}");
        assert_eq!(vms[0].extensions, ["computeAksLinuxBilling"], "{style:?}");
        world.delete(&claim).await;
        world.judge();
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_image_and_a_changed_class_are_drift() {
    let world = World::new().await;
    let claim = World::sized("a", "Standard_D4s_v5", "on-demand");
    let claim = recorded(&claim, &world.launch(&claim).await.unwrap());
    assert_eq!(world.provider.is_drifted(&claim).await, Ok(None));
    let image = claim.status.image_id.to_string();
    let definition = image.split('/').rev().nth(2).unwrap().to_owned();
    let newer = ImageVersion {
        image: definition,
        version: "203001.01.0".to_owned(),
        published: "2026-11-17T09:00:00Z".parse().unwrap(),
    };
    world.azure().turn(Knob::Image(newer)).unwrap();
    // Versions are believed for days.
    tokio::time::sleep(Duration::from_hours(24 * 4)).await;
    world.settle("default").await;
    assert_eq!(
        world.provider.is_drifted(&claim).await,
        Ok(Some("ImageDrift".to_owned()))
    );
    world
        .server
        .update("AKSNodeClass", "default", |class| {
            class["spec"]["osDiskSizeGB"] = json!(256);
        })
        .unwrap();
    world.settle("default").await;
    assert_eq!(
        world.provider.is_drifted(&claim).await,
        Ok(Some("NodeClassDrift".to_owned()))
    );
    world.delete(&claim).await;
    world.judge();
}

#[tokio::test(start_paused = true)]
async fn tags_of_a_class_are_given_to_machines_that_run() {
    let world = World::new().await;
    let claim = world.store(&World::sized("a", "Standard_D4s_v5", "on-demand"));
    let launched = world.launch(&claim).await.unwrap();
    let claim = recorded(&claim, &launched);
    let written = serde_json::to_value(&claim).unwrap();
    world
        .server
        .update("NodeClaim", "a", |stored| {
            stored["metadata"]["annotations"] = written["metadata"]["annotations"].clone();
            stored["status"] = json!({"providerID": launched.provider_id, "conditions": [{"type": "Registered",
                "status": "True", "reason": "Registered", "lastTransitionTime": "2026-11-17T10:00:00Z"}]});
        })
        .unwrap();
    world
        .server
        .update("AKSNodeClass", "default", |class| {
            class["spec"]["tags"] = json!({"team": "blue"});
        })
        .unwrap();
    tokio::time::sleep(MINUTE).await;
    world.run_for(2 * MINUTE).await;
    let (vms, nics) = (world.azure().vms(), world.double.nics());
    for tags in [&vms[0].tags, &nics[0].tags] {
        assert_eq!(tags.get("team").map(String::as_str), Some("blue"), "{tags:?}");
        assert_eq!(tags.get("dovetail.dev_launch").map(|it| it.ends_with("-1")), Some(true));
    }
    assert_eq!(vms[0].state, "Succeeded");
    world.delete(&claim).await;
    world.judge();
}

#[tokio::test(start_paused = true)]
async fn an_evicted_machine_is_gone_for_us_too() {
    let world = World::new().await;
    let claim = World::sized("a", "Standard_D4s_v5", "spot");
    let claim = recorded(&claim, &world.launch(&claim).await.unwrap());
    tokio::time::sleep(MINUTE).await;
    world.azure().evict("aks-a", 30).unwrap();
    tokio::time::sleep(MINUTE).await;
    assert!(world.provider.list().await.unwrap().is_empty());
    world.delete(&claim).await;
    world.judge();
}

#[tokio::test(start_paused = true)]
async fn an_eviction_that_a_node_announces_is_a_notice_and_the_size_is_left_alone_there() {
    let world = World::new().await;
    let claim = World::sized("a", "Standard_D4s_v5", "spot");
    let claim = recorded(&claim, &world.launch(&claim).await.unwrap());
    let id = claim.status.provider_id.clone().unwrap();
    let node = json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": "aks-a", "labels": {"karpenter.sh/capacity-type": "spot"}},
        "spec": {"providerID": id.as_str()},
        "status": {"conditions": [{"type": "PreemptionScheduled", "status": "True", "reason": "Preempt",
            "lastTransitionTime": "2026-11-17T10:00:00Z"}]}});
    world.server.create(node).unwrap();
    let work = tokio::spawn(Arc::clone(&world.provider).run(None));
    let notices = world.provider.notices().await.unwrap();
    assert_eq!(notices.len(), 1);
    assert!(notices[0].is_about(&id) && notices[0].kind == NoticeKind::SpotInterruption);
    assert_eq!(notices[0].deadline, Some("2026-11-17T10:00:30Z".parse().unwrap()));
    world.provider.acknowledge(&notices[0]).await.unwrap();
    let again = tokio::time::timeout(MINUTE, world.provider.notices()).await;
    assert!(again.is_err(), "{again:?}");
    world.provider.mark_unavailable(&UnavailableOffering {
        instance_type: Some("Standard_D4s_v5".into()),
        zone: Some("eastus-1".into()),
        capacity_type: Some("spot".into()),
        reason: "SpotInterruption".into(),
        retry_after: None,
    });
    let why = |zone: &str| world.provider.reads().offers().why("Standard_D4s_v5", zone, "spot");
    assert!(why("eastus-1").is_some() && why("eastus-2").is_none());
    tokio::time::sleep(Duration::from_mins(50)).await;
    assert!(why("eastus-1").is_some(), "it would be taken back again");
    tokio::time::sleep(Duration::from_mins(15)).await;
    assert!(why("eastus-1").is_none());
    work.abort();
    world.delete(&claim).await;
    world.judge();
}
