//! Machines that come to be otherwise: with scripts of AKS's service, or as machines of an agent pool.

use std::time::Duration;

use api::annotations::azure::{AKS_MACHINE_RESOURCE_ID, IN_PLACE_UPDATE_HASH};
use arm::knob::{Effect, Knob, MachineDrift, Plant, PlantKind, Stock, When};
use base64::{Engine, engine::general_purpose::STANDARD};
use cloud::{CloudError, CloudProvider};
use model::object::NodeClaim;
use serde_json::{Value, json};

use crate::{
    cluster,
    journey::recorded,
    world::{EVERY_TRY, MODES, PUT_MACHINE, PUT_VM, World, set_mode},
};

const SIZE: &str = "Standard_D4s_v5";
const FAMILY: &str = "standardDSv5Family";
const MINUTE: Duration = Duration::from_mins(1);
const MACHINE_MODES: [&str; 2] = ["aksmachineapi", "aksmachineapiheaderbatch"];

async fn launched(world: &World, claim: &NodeClaim) -> NodeClaim {
    recorded(claim, &world.launch(claim).await.unwrap())
}

/// Puts a machine called `a` into the pool, as Karpenter would have made it for a claim.
fn plant(world: &World, claim: &str) {
    let tags = [
        ("karpenter.azure.com_cluster", "dovetail"),
        ("karpenter.sh_nodepool", "general"),
        ("karpenter.azure.com_aksmachine_nodeclaim", claim),
    ];
    let plant = Plant {
        kind: PlantKind::Machine,
        name: "a".to_owned(),
        tags: tags.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
    };
    world.azure().turn(Knob::Plant(plant)).unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_service_says_how_a_node_boots_and_an_extension_makes_it_one() {
    let world = World::in_mode("bootstrappingclient").await;
    let claim = launched(&world, &World::sized("a", SIZE, "spot")).await;
    tokio::time::sleep(MINUTE).await;
    let vms = world.azure().vms();
    assert_eq!(vms[0].extensions, ["computeAksLinuxBilling", "cse-agent-karpenter"]);
    let data = vms[0].request["properties"]["osProfile"]["customData"]
        .as_str()
        .unwrap();
    let data = String::from_utf8(STANDARD.decode(data).unwrap()).unwrap();
    assert!(
        data.contains("aks-ubuntu-containerd-24.04-gen2 Standard_D4s_v5"),
        "{data}"
    );
    assert!(data.contains("token=abcdef.0123456789abcdef"), "{data}");
    world.delete(&claim).await;
    world.judge();
}

#[tokio::test(start_paused = true)]
async fn a_service_that_refuses_or_is_not_there_leaves_nothing_behind() {
    let effects = [
        Effect::Sync {
            status: 400,
            code: "BadRequest".to_owned(),
            message: Some("no such distro".to_owned()),
            retry_after: None,
        },
        Effect::Refused {},
    ];
    for effect in effects {
        let world = World::in_mode("bootstrappingclient").await;
        world.cut("NodeBootstrapping_Get", effect, EVERY_TRY);
        let claim = World::sized("a", SIZE, "spot");
        let refused = world.launch(&claim).await.unwrap_err();
        assert!(matches!(refused, CloudError::Create { .. }), "{refused:?}");
        assert_eq!((world.azure().vms().len(), world.double.nics().len()), (0, 0));
        world.judge();
    }
}

#[tokio::test(start_paused = true)]
async fn a_machine_whose_command_fails_is_given_up_with_its_claim() {
    let world = World::in_mode("bootstrappingclient").await;
    let effect = Effect::Async {
        code: "VMExtensionProvisioningError".to_owned(),
        message: None,
    };
    world.cut("VirtualMachineExtensions_CreateOrUpdate", effect, Some(1));
    let claim = world.store(&World::sized("a", SIZE, "spot"));
    let claim = launched(&world, &claim).await;
    tokio::time::sleep(2 * MINUTE).await;
    assert_eq!(world.server.get("NodeClaim", &claim.metadata.name), None);
    world.judge();
}

#[tokio::test(start_paused = true)]
async fn a_process_that_ends_before_the_command_was_run_has_it_run_by_the_next() {
    let world = World::in_mode("bootstrappingclient").await;
    world.double.latency("VirtualMachines_*", 60);
    let claim = launched(&world, &World::sized("a", SIZE, "spot")).await;
    let other = world.another_process().await;
    other.resume(&[std::sync::Arc::new(claim.clone())]).await.unwrap();
    // The first process is as good as gone: its own command is not what is looked at.
    tokio::time::sleep(3 * MINUTE).await;
    let vms = world.azure().vms();
    assert!(vms[0].extensions.contains(&"cse-agent-karpenter".to_owned()), "{vms:?}");
    let asked = world.azure().count("NodeBootstrapping_Get");
    assert_eq!(asked, 2, "the next process asks for the command anew");
    world.delete(&claim).await;
    world.judge();
}

#[tokio::test(start_paused = true)]
async fn aks_makes_a_machine_and_everything_it_needs_and_takes_it_away() {
    for mode in MACHINE_MODES {
        let world = World::in_mode(mode).await;
        let claim = launched(&world, &World::sized("a", SIZE, "spot")).await;
        tokio::time::sleep(MINUTE).await;
        let vms = world.azure().vms();
        let [vm] = vms.as_slice() else {
            panic!("{mode}: {vms:?}")
        };
        assert!(vm.machine && vm.name.starts_with("aks-machines-a-"), "{vm:?}");
        assert_eq!((vm.size.as_str(), vm.capacity, vm.state), (SIZE, "spot", "Succeeded"));
        let tag = |key: &str| vm.tags.get(key).map(String::as_str);
        assert_eq!(tag("karpenter.azure.com_aksmachine_nodeclaim"), Some("a"));
        assert_eq!(tag("karpenter.sh_nodepool"), Some("general"));
        assert_eq!(tag("karpenter.azure.com_cluster"), Some("dovetail"));
        let id = claim.status.provider_id.clone().unwrap();
        assert!(id.as_str().ends_with(&vm.name) && !id.as_str().contains("MC_"), "{id}");
        let annotation = claim.metadata.annotations.get(AKS_MACHINE_RESOURCE_ID).unwrap();
        assert!(annotation.ends_with("/agentPools/machines/machines/a"), "{annotation}");
        assert!(
            claim.status.image_id.starts_with("AKSUbuntu-2404gen2containerd-"),
            "{}",
            claim.status.image_id
        );
        let listed = world.provider.list().await.unwrap();
        assert_eq!(listed.len(), 1);
        assert_eq!(
            (&listed[0].provider_id, listed[0].claim.clone()),
            (&id, Some("a".into()))
        );
        assert_eq!(world.provider.get(&id).await.unwrap().provider_id, id);
        world.delete(&claim).await;
        assert!(matches!(world.provider.get(&id).await, Err(CloudError::NotFound(_))));
        world.judge();
    }
}

#[tokio::test(start_paused = true)]
async fn machines_that_are_alike_are_asked_for_together_and_others_are_not() {
    let world = World::in_mode("aksmachineapiheaderbatch").await;
    let small = |name: &str| World::sized(name, SIZE, "spot");
    let large = World::sized("c", "Standard_D8s_v5", "spot");
    let (a, b) = (small("a"), small("b"));
    let (one, two, three) = tokio::join!(world.launch(&a), world.launch(&b), world.launch(&large));
    let claims = [
        recorded(&a, &one.unwrap()),
        recorded(&b, &two.unwrap()),
        recorded(&large, &three.unwrap()),
    ];
    assert_eq!(world.azure().count(PUT_MACHINE), 2);
    assert_eq!(world.double.vms().len(), 3);
    for claim in &claims {
        world.delete(claim).await;
    }
    world.judge();
}

#[tokio::test(start_paused = true)]
async fn of_a_batch_only_those_fail_that_azure_names() {
    let world = World::in_mode("aksmachineapiheaderbatch").await;
    world
        .azure()
        .stock(vec![Stock::none("*", "2", "*", "ZonalAllocationFailed", When::Sync)]);
    let zoned = |name: &str, zone: &str| {
        let one = |key: &str, value: &str| json!({"key": key, "operator": "In", "values": [value]});
        let requirements = json!([
            one("node.kubernetes.io/instance-type", SIZE),
            one("karpenter.sh/capacity-type", "spot"),
            one("topology.kubernetes.io/zone", zone),
        ]);
        cluster::claim_for(name, &requirements)
    };
    let (a, b) = (zoned("a", "eastus-1"), zoned("b", "eastus-2"));
    let (one, two) = tokio::join!(world.launch(&a), world.launch(&b));
    let refused = two.unwrap_err();
    assert!(
        matches!(&refused, CloudError::Create { reason, .. } if reason == "ZonalAllocationFailure"),
        "{refused:?}"
    );
    let why = |zone| world.provider.reads().offers().why(SIZE, zone, "spot");
    assert!(why("eastus-2").is_some() && why("eastus-1").is_none());
    assert_eq!(world.azure().count(PUT_MACHINE), 1);
    world.delete(&recorded(&a, &one.unwrap())).await;
    world.judge();
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_aks_could_not_make_is_given_up_and_what_ran_out_is_known() {
    for mode in MACHINE_MODES {
        let world = World::in_mode(mode).await;
        world
            .azure()
            .stock(vec![Stock::none(SIZE, "*", "spot", "SkuNotAvailable", When::Async)]);
        world.double.latency("Machines_*", 20);
        let claim = world.store(&World::sized("a", SIZE, "spot"));
        let _accepted = launched(&world, &claim).await;
        tokio::time::sleep(2 * MINUTE).await;
        assert_eq!(world.server.get("NodeClaim", "a"), None, "{mode}");
        let why = world.provider.reads().offers().why(SIZE, "eastus-1", "spot");
        assert!(why.is_some_and(|why| why.contains("SKUNotAvailable")), "{mode}");
        let event = world.events.lock().await.try_recv().unwrap();
        assert_eq!(&*event.reason, "AsyncProvisioningError", "{mode}");
        world.judge();
    }
}

#[tokio::test(start_paused = true)]
async fn a_size_that_the_subscription_may_not_have_is_left_alone_everywhere() {
    let refusals = [
        ("VMSizeNotSupported", "Virtual Machine size: 'x' is not supported"),
        (
            "BadRequest",
            "Virtual Machine size: 'x' is not supported for subscription s in location 'l'.",
        ),
    ];
    for (code, message) in refusals {
        let world = World::in_mode("aksmachineapi").await;
        let effect = Effect::Sync {
            status: 400,
            code: code.to_owned(),
            message: Some(message.to_owned()),
            retry_after: None,
        };
        world.cut(PUT_MACHINE, effect, Some(1));
        let refused = world.launch(&World::sized("a", SIZE, "spot")).await.unwrap_err();
        assert!(
            matches!(&refused, CloudError::Create { reason, .. } if reason == "SKUNotAvailable"),
            "{refused:?}"
        );
        for (zone, kind) in [("eastus-1", "spot"), ("eastus-3", "on-demand"), ("0", "on-demand")] {
            let why = world.provider.reads().offers().why(SIZE, zone, kind);
            assert!(why.is_some(), "{code} {zone} {kind}");
        }
        world.judge();
    }
}

#[tokio::test(start_paused = true)]
async fn a_machine_of_another_claim_is_not_taken_and_not_touched() {
    let world = World::in_mode("aksmachineapi").await;
    plant(&world, "other");
    let claim = World::sized("a", SIZE, "spot");
    let refused = world.launch(&claim).await.unwrap_err().to_string();
    assert!(refused.contains("name another cluster or claim"), "{refused}");
    assert!(world.provider.delete(&claim).await.is_err());
    assert_eq!(world.azure().vms().len(), 1);
    assert_eq!(world.azure().violations(), []);
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_karpenter_launched_is_taken_over_by_its_tag() {
    let world = World::in_mode("aksmachineapi").await;
    plant(&world, "a");
    let claim = launched(&world, &World::sized("a", SIZE, "on-demand")).await;
    assert_eq!(world.azure().count(PUT_MACHINE), 0, "it is there");
    world.delete(&claim).await;
    world.judge();
}

#[tokio::test(start_paused = true)]
async fn what_aks_would_make_anew_has_drifted() {
    let world = World::in_mode("aksmachineapi").await;
    let claim = launched(&world, &World::sized("a", SIZE, "spot")).await;
    assert_eq!(world.provider.is_drifted(&claim).await, Ok(None));
    let drift = MachineDrift {
        machine: "a".to_owned(),
        action: "Recreate".to_owned(),
        reason: "cluster settings".to_owned(),
    };
    world.azure().turn(Knob::Machine(drift)).unwrap();
    // One list of the machines is believed for half a minute.
    tokio::time::sleep(MINUTE / 2).await;
    let drifted = world.provider.is_drifted(&claim).await;
    assert_eq!(drifted, Ok(Some("ClusterConfigDrift".to_owned())));
    world.delete(&claim).await;
    world.judge();
}

#[tokio::test(start_paused = true)]
async fn tags_of_a_class_are_given_to_machines_of_aks_that_run() {
    let world = World::in_mode("aksmachineapi").await;
    let claim = world.store(&World::sized("a", SIZE, "on-demand"));
    let claim = launched(&world, &claim).await;
    let written = serde_json::to_value(&claim).unwrap();
    let registered = |stored: &mut Value| {
        stored["metadata"]["annotations"] = written["metadata"]["annotations"].clone();
        stored["status"] = json!({"providerID": written["status"]["providerID"], "conditions": [{"type": "Registered",
            "status": "True", "reason": "Registered", "lastTransitionTime": "2026-11-17T10:00:00Z"}]});
    };
    world.server.update("NodeClaim", "a", registered).unwrap();
    let tag = |class: &mut Value| class["spec"]["tags"] = json!({"team": "blue"});
    world.server.update("AKSNodeClass", "default", tag).unwrap();
    tokio::time::sleep(MINUTE).await;
    world.run_for(2 * MINUTE).await;
    let vms = world.azure().vms();
    assert_eq!(vms[0].tags.get("team").map(String::as_str), Some("blue"), "{vms:?}");
    assert!(vms[0].tags.contains_key("karpenter.azure.com_aksmachine_nodeclaim"));
    assert!(vms[0].tags.contains_key("dovetail.dev_launch"));
    let stored = world.server.get("NodeClaim", "a").unwrap();
    let hash = |claim: &Value| claim["metadata"]["annotations"][IN_PLACE_UPDATE_HASH].clone();
    assert_ne!(hash(&stored), hash(&written));
    world.delete(&claim).await;
    world.judge();
}

#[tokio::test(start_paused = true)]
async fn a_machine_of_aks_that_has_its_tags_is_noted_as_such_and_not_sent_again() {
    let world = World::in_mode("aksmachineapi").await;
    let claim = world.store(&World::sized("a", SIZE, "on-demand"));
    let claim = launched(&world, &claim).await;
    let written = serde_json::to_value(&claim).unwrap();
    let registered = |stored: &mut Value| {
        let annotations = &mut stored["metadata"]["annotations"];
        *annotations = written["metadata"]["annotations"].clone();
        annotations[IN_PLACE_UPDATE_HASH] = json!("other");
        stored["status"] = json!({"providerID": written["status"]["providerID"], "conditions": [{"type": "Registered",
            "status": "True", "reason": "Registered", "lastTransitionTime": "2026-11-17T10:00:00Z"}]});
    };
    world.server.update("NodeClaim", "a", registered).unwrap();
    tokio::time::sleep(MINUTE).await;
    world.run_for(2 * MINUTE).await;
    assert_eq!(world.azure().count(PUT_MACHINE), 1);
    let stored = world.server.get("NodeClaim", "a").unwrap();
    let hash = |claim: &Value| claim["metadata"]["annotations"][IN_PLACE_UPDATE_HASH].clone();
    assert_eq!(hash(&stored), hash(&written));
    world.delete(&claim).await;
    world.judge();
}

#[tokio::test(start_paused = true)]
async fn a_batch_goes_out_when_it_is_full_and_when_it_has_waited_long_enough() {
    let world = World::with(|settings, double| {
        set_mode(&mut settings.azure, "aksmachineapiheaderbatch", double);
        settings.azure.batch_max_size = 2;
    })
    .await;
    world.create("default", json!({}));
    world.settle("default").await;
    let claims = ["a", "b", "c"].map(|name| World::sized(name, SIZE, "spot"));
    let [a, b, c] = &claims;
    let (one, two, three) = tokio::join!(world.launch(a), world.launch(b), world.launch(c));
    assert_eq!(world.azure().count(PUT_MACHINE), 2, "two of them fill a batch");
    for (claim, launched) in claims.iter().zip([one, two, three]) {
        world.delete(&recorded(claim, &launched.unwrap())).await;
    }
    world.judge();
    // One comes every 800 ms, so that a second without any never passes; after five seconds those that came go out.
    let world = std::sync::Arc::new(World::in_mode("aksmachineapiheaderbatch").await);
    let mut launches = tokio::task::JoinSet::new();
    for at in 0..9 {
        let world = std::sync::Arc::clone(&world);
        launches.spawn(async move {
            tokio::time::sleep(Duration::from_millis(800 * at)).await;
            launched(&world, &World::sized(&format!("m{at}"), SIZE, "spot")).await
        });
    }
    let claims = launches.join_all().await;
    assert_eq!(world.azure().count(PUT_MACHINE), 2);
    for claim in &claims {
        world.delete(claim).await;
    }
    world.judge();
}

#[tokio::test(start_paused = true)]
async fn machines_of_aks_are_looked_after_in_another_mode_where_that_is_asked_for() {
    let world = World::with(|settings, double| {
        let azure = &mut settings.azure;
        azure.manage_existing_aks_machines = true;
        double.setup().pool.clone_into(&mut azure.aks_machines_pool_name);
        double.setup().cluster_group.clone_into(&mut azure.resource_group);
    })
    .await;
    plant(&world, "a");
    let listed = world.provider.list().await.unwrap();
    assert_eq!(listed.len(), 1, "{listed:?}");
    let mut claim = World::sized("a", SIZE, "on-demand");
    claim.status.provider_id = Some(listed[0].provider_id.clone());
    world.delete(&claim).await;
    world.judge();
}

#[tokio::test(start_paused = true)]
async fn machines_of_aks_that_are_not_managed_are_not_listed_and_do_not_count_as_gone() {
    let world = World::new().await;
    let mut claim = World::sized("a", SIZE, "on-demand");
    let pair = (AKS_MACHINE_RESOURCE_ID.into(), "/x/machines/a".into());
    claim.metadata.annotations = model::object::Map::from_pairs(vec![pair]);
    let refused = world.provider.delete(&claim).await.unwrap_err().to_string();
    assert!(refused.contains("MANAGE_EXISTING_AKS_MACHINES"), "{refused}");
    assert!(world.provider.list().await.unwrap().is_empty());
    world.judge();
}

#[tokio::test(start_paused = true)]
async fn a_full_quota_is_told_for_machines_of_aks_too() {
    let world = World::in_mode("aksmachineapi").await;
    world.azure().quota(FAMILY, 3);
    world.provider.reads().offers().read_quotas().await.unwrap();
    let refused = world.launch(&World::sized("a", SIZE, "on-demand")).await.unwrap_err();
    assert!(refused.to_string().contains(FAMILY), "{refused}");
    assert_eq!(world.azure().count(PUT_MACHINE) + world.azure().count(PUT_VM), 0);
    world.judge();
}

#[tokio::test(start_paused = true)]
async fn a_claim_without_a_pool_is_looked_after_like_any_other() {
    for mode in MODES {
        let world = World::in_mode(mode).await;
        let mut alone = World::sized("a", SIZE, "spot");
        alone.metadata.labels = model::object::Map::default();
        let first = world.launch(&alone).await.unwrap();
        let again = world.launch(&alone).await.unwrap();
        assert_eq!(again.provider_id, first.provider_id, "{mode}: one machine");
        let claim = recorded(&alone, &first);
        let id = claim.status.provider_id.clone().unwrap();
        assert_eq!(world.provider.get(&id).await.unwrap().provider_id, id, "{mode}");
        world.delete(&claim).await;
        world.judge();
    }
}

/// A launch that the double accepts and fails a minute later for want of capacity; the process that asked for it is gone.
async fn doomed(mode: &str) -> (World, NodeClaim, cloud::Launched) {
    let mut world = World::in_mode(mode).await;
    let out = Stock::none(SIZE, "*", "spot", "SkuNotAvailable", When::Async);
    world.azure().stock(vec![out]);
    for operation in ["VirtualMachines_*", "Machines_*"] {
        world.double.latency(operation, 60);
    }
    let claim = world.store(&World::sized("a", SIZE, "spot"));
    let launched = world.launch(&claim).await.unwrap();
    world.provider = std::sync::Arc::new(world.another_process().await);
    (world, claim, launched)
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_fails_under_the_next_process_is_given_up_and_what_ran_out_is_known() {
    for mode in MODES {
        let (world, claim, launched) = doomed(mode).await;
        let claim = std::sync::Arc::new(recorded(&claim, &launched));
        world.provider.resume(&[claim]).await.unwrap();
        tokio::time::sleep(3 * MINUTE).await;
        assert_eq!(world.server.get("NodeClaim", "a"), None, "{mode}");
        let why = world.provider.reads().offers().why(SIZE, "eastus-1", "spot");
        assert_eq!(why.as_deref(), Some("SKUNotAvailable"), "{mode}");
        world.judge();
    }
}

#[tokio::test(start_paused = true)]
async fn a_launch_that_is_asked_for_again_after_it_failed_says_what_ran_out() {
    for mode in MODES {
        let (world, claim, _) = doomed(mode).await;
        tokio::time::sleep(2 * MINUTE).await;
        let refused = world.launch(&claim).await.unwrap_err();
        assert!(matches!(refused, CloudError::NotFound(_)), "{mode}: {refused:?}");
        let why = world.provider.reads().offers().why(SIZE, "eastus-1", "spot");
        assert_eq!(why.as_deref(), Some("SKUNotAvailable"), "{mode}");
        world.delete(&claim).await;
        world.judge();
    }
}

#[tokio::test(start_paused = true)]
async fn many_machines_of_aks_are_followed_and_judged_with_few_lists() {
    let world = World::in_mode("aksmachineapi").await;
    world.double.latency("Machines_*", 60);
    let mut claims = Vec::new();
    for name in ["a", "b", "c", "d", "e", "f"] {
        claims.push(launched(&world, &World::sized(name, SIZE, "spot")).await);
    }
    let asked = || (world.azure().count("Machines_Get"), world.double.count("Machines_List"));
    let (gets, lists) = asked();
    tokio::time::sleep(2 * MINUTE).await;
    let (gets_after, lists_after) = asked();
    assert_eq!(gets_after, gets, "nobody is asked for one by one");
    assert!((1..=10).contains(&(lists_after - lists)), "{}", lists_after - lists);
    for claim in &claims {
        assert_eq!(world.provider.is_drifted(claim).await, Ok(None));
    }
    assert_eq!(asked(), (gets, lists_after + 1), "one list does for all of them");
    tokio::time::sleep(MINUTE).await;
    let busy = Effect::Sync {
        status: 429,
        code: "TooManyRequests".to_owned(),
        message: None,
        retry_after: Some(150),
    };
    world.cut("Machines_List", busy, Some(1));
    let refused = world.provider.is_drifted(&claims[0]).await;
    assert!(matches!(refused, Err(CloudError::Throttled { .. })), "{refused:?}");
    assert_eq!(asked().0, gets, "who does not answer for all is not asked for each");
    tokio::time::sleep(3 * MINUTE).await;
    for claim in &claims {
        world.delete(claim).await;
    }
    world.judge();
}
