//! What of a running machine is changed without replacing it: tags and identities, and nothing that is as it should be.

use std::{sync::Arc, time::Duration};

use model::object::NodeClaim;
use serde_json::{Value, json};

use crate::{
    launch::{A, recorded},
    world::World,
};

const OLD: &str = "/identity/old";
const NEW: &str = "/identity/new";

#[tokio::test(start_paused = true)]
async fn tags_and_identities_are_given_to_running_machines_and_stray_interfaces_swept() {
    let world = World::with(|settings| settings.azure.node_identities = vec!["/identity/new".to_owned()]).await;
    world.create("default", json!({}));
    world.settle("default").await;
    let claim = World::sized("a", "Standard_D2s_v3", "spot");
    let launched = world.launch(&claim).await.unwrap();
    let mut stored = serde_json::to_value(recorded(&claim, &launched)).unwrap();
    stored["apiVersion"] = json!("karpenter.sh/v1");
    stored["kind"] = json!("NodeClaim");
    stored["status"]["conditions"] = json!([{"type": "Registered", "status": "True", "reason": "Registered",
        "lastTransitionTime": "2026-11-17T10:00:00Z"}]);
    world.server.create(stored).unwrap();
    world
        .server
        .update("AKSNodeClass", "default", |class| {
            class["spec"]["tags"] = json!({"team": "blue"});
        })
        .unwrap();
    world
        .azure
        .lock()
        .vms
        .get_mut(A)
        .unwrap()
        .body
        .as_object_mut()
        .unwrap()
        .remove("identity");
    let stray = json!({"location": "southcentralus", "tags": {"karpenter.azure.com_cluster": "prod", "karpenter.sh_nodepool": "general"}, "properties": {}});
    let copy = world.azure.lock().nics[A].clone();
    world
        .azure
        .lock()
        .nics
        .insert("aks-stray".to_owned(), crate::memory::Resource { body: stray, ..copy });
    let work = tokio::spawn(Arc::clone(&world.provider).run(None));
    tokio::time::sleep(Duration::from_mins(2)).await;
    work.abort();
    let state = world.azure.lock();
    for body in [&state.vms[A].body, &state.nics[A].body] {
        assert_eq!(body["tags"]["team"], "blue");
        assert_eq!(
            body["tags"]["dovetail.dev_launch"], "uid-a-1",
            "what finds the launch again stays"
        );
    }
    assert!(
        state.vms[A].body["identity"]["userAssignedIdentities"]
            .get("/identity/new")
            .is_some()
    );
    assert!(!state.nics.contains_key("aks-stray") && state.nics.contains_key(A));
    let known = world.server.get("NodeClaim", "a").unwrap();
    let hash = known["metadata"]["annotations"]["karpenter.azure.com/in-place-update-hash"]
        .as_str()
        .unwrap();
    assert_ne!(
        launched
            .annotations
            .get("karpenter.azure.com/in-place-update-hash")
            .map(|it| &**it),
        Some(hash)
    );
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_is_as_it_should_be_or_not_registered_is_left_alone() {
    let world = World::new().await;
    for name in ["settled", "young"] {
        let claim = World::sized(name, "Standard_D2s_v3", "spot");
        let given = world.launch(&claim).await.unwrap();
        let mut stored = serde_json::to_value(recorded(&claim, &given)).unwrap();
        stored["apiVersion"] = json!("karpenter.sh/v1");
        stored["kind"] = json!("NodeClaim");
        let is_registered = if name == "settled" { "True" } else { "Unknown" };
        stored["status"]["conditions"] = json!([{"type": "Registered", "status": is_registered, "reason": "x",
            "lastTransitionTime": "2026-11-17T10:00:00Z"}]);
        if name == "young" {
            stored["metadata"]["annotations"]["karpenter.azure.com/in-place-update-hash"] = json!("other");
        }
        world.server.create(stored).unwrap();
    }
    for name in ["aks-settled", "aks-young"] {
        world.azure.lock().nics.get_mut(name).unwrap().body["tags"]["by-hand"] = json!("1");
    }
    let work = tokio::spawn(Arc::clone(&world.provider).run(None));
    tokio::time::sleep(Duration::from_mins(2)).await;
    work.abort();
    let state = world.azure.lock();
    for name in ["aks-settled", "aks-young"] {
        assert_eq!(state.nics[name].body["tags"]["by-hand"], "1", "{name}");
    }
}

/// A claim as the API server has it.
fn stored(world: &World) -> NodeClaim {
    let mut claim = serde_json::to_value(World::sized("a", "Standard_D2s_v3", "spot")).unwrap();
    claim["apiVersion"] = json!("karpenter.sh/v1");
    claim["kind"] = json!("NodeClaim");
    claim["metadata"].as_object_mut().unwrap().remove("uid");
    world.server.create(claim).unwrap();
    serde_json::from_value(world.server.get("NodeClaim", "a").unwrap()).unwrap()
}

/// What is changed of a running machine, after something was done to it and its claim says that it is not as it should be.
async fn changed_in_place(world: &World, change: impl FnOnce(&mut Value)) -> Vec<(String, Value)> {
    const HASH: &str = "karpenter.azure.com/in-place-update-hash";
    let claim = stored(world);
    let launched = world.launch(&claim).await.unwrap();
    tokio::time::sleep(Duration::from_mins(1)).await;
    change(&mut world.azure.lock().vms.get_mut(A).unwrap().body);
    let written = serde_json::to_value(recorded(&claim, &launched)).unwrap();
    let registered = |claim: &mut Value| {
        claim["metadata"]["annotations"] = json!({HASH: "other"});
        claim["status"] = json!({"providerID": written["status"]["providerID"], "conditions": [{"type": "Registered",
            "status": "True", "reason": "Registered", "lastTransitionTime": "2026-11-17T10:00:00Z"}]});
    };
    world.server.update("NodeClaim", "a", registered).unwrap();
    let work = tokio::spawn(Arc::clone(&world.provider).run(None));
    tokio::time::sleep(Duration::from_mins(2)).await;
    work.abort();
    let known = world.server.get("NodeClaim", "a").unwrap();
    assert_eq!(
        known["metadata"]["annotations"][HASH],
        written["metadata"]["annotations"][HASH]
    );
    std::mem::take(&mut world.azure.lock().changed)
}

fn names(changed: &[(String, Value)]) -> Vec<&str> {
    changed.iter().map(|(name, _)| name.as_str()).collect()
}

/// A cluster whose machines have these identities.
async fn with_identities(ids: &[&str]) -> World {
    let ids = ids.iter().map(|id| (*id).to_owned()).collect();
    let world = World::with(|settings| settings.azure.node_identities = ids).await;
    world.create("default", json!({}));
    world.settle("default").await;
    world
}

fn has_old(vm: &mut Value) {
    vm["identity"] = json!({"type": "UserAssigned", "userAssignedIdentities": {OLD: {}}});
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_has_all_that_is_wanted_and_more_identities_is_noted_as_such_and_not_touched() {
    for ids in [&[][..], &[OLD]] {
        let world = with_identities(ids).await;
        assert_eq!(changed_in_place(&world, has_old).await, [], "{ids:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_identity_that_is_missing_is_added_to_the_machine_and_nothing_else_is_touched() {
    let forget = |vm: &mut Value| drop(vm.as_object_mut().unwrap().remove("identity"));
    let added = json!({"identity": {"type": "UserAssigned", "userAssignedIdentities": {NEW: {}}}});
    let world = with_identities(&[NEW]).await;
    let expected = [("virtualMachines aks-a".to_owned(), added)];
    assert_eq!(changed_in_place(&world, forget).await, expected);
    let world = with_identities(&[OLD, NEW]).await;
    assert_eq!(changed_in_place(&world, has_old).await, expected);
}

#[tokio::test(start_paused = true)]
async fn tags_become_what_class_and_settings_say_on_everything_that_belongs_to_a_machine() {
    let world = World::with(|settings| settings.azure.additional_tags = "env=x,team=red".to_owned()).await;
    world.create("default", json!({"tags": {"team": "blue", "cost/center": "7"}}));
    world.settle("default").await;
    let mess = |vm: &mut Value| {
        vm["tags"] = json!({"karpenter.azure.com_cluster": "prod", "karpenter.sh_nodepool": "general", "stray": "1",
            "team": "red"});
    };
    let changed = changed_in_place(&world, mess).await;
    let all = [
        "networkInterfaces aks-a",
        "extensions computeAksLinuxBilling",
        "extensions cse-agent-karpenter",
        "virtualMachines aks-a",
    ];
    assert_eq!(names(&changed), all);
    for (name, body) in &changed {
        let tags = &body["tags"];
        let wanted = [
            ("env", "x"),
            ("team", "blue"),
            ("cost_center", "7"),
            ("compute.aks.billing", "linux"),
        ];
        for (key, value) in wanted {
            assert_eq!(tags[key], value, "{name} {key}");
        }
        assert!(
            tags.get("stray").is_none() && body.get("identity").is_none(),
            "{name} {body}"
        );
    }
}

/// A claim with this machine, registered or not, whose machine is not known to be as it should be.
fn claimed(world: &World, name: &str, provider_id: Option<&str>, is_registered: &str) {
    let mut claim = serde_json::to_value(World::sized(name, "Standard_D2s_v3", "spot")).unwrap();
    claim["apiVersion"] = json!("karpenter.sh/v1");
    claim["kind"] = json!("NodeClaim");
    claim["metadata"]["annotations"] = json!({"karpenter.azure.com/in-place-update-hash": "other"});
    claim["status"] = json!({"providerID": provider_id, "conditions": [{"type": "Registered", "status": is_registered,
        "reason": "x", "lastTransitionTime": "2026-11-17T10:00:00Z"}]});
    world.server.create(claim).unwrap();
}

#[tokio::test(start_paused = true)]
async fn claims_whose_machine_is_gone_or_unknown_hold_nobody_up_and_a_claim_is_served_once_it_has_registered() {
    let world = World::new().await;
    let launched = world
        .launch(&World::sized("a", "Standard_D2s_v3", "spot"))
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_mins(1)).await;
    world.azure.lock().vms.get_mut(A).unwrap().body["tags"]["stray"] = json!("1");
    let gone = launched.provider_id.replace("aks-a", "aks-gone");
    claimed(&world, "0-gone", Some(&gone), "True");
    claimed(&world, "1-odd", Some("nonsense"), "True");
    claimed(&world, "2-none", None, "True");
    claimed(&world, "a", Some(&launched.provider_id), "Unknown");
    let hash = |name: &str| {
        let claim = world.server.get("NodeClaim", name).unwrap();
        claim["metadata"]["annotations"]["karpenter.azure.com/in-place-update-hash"].clone()
    };
    let has_stray = || world.azure.lock().vms[A].body["tags"].get("stray").is_some();
    let work = tokio::spawn(Arc::clone(&world.provider).run(None));
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert!(has_stray() && hash("a") == "other", "it is not a node yet");
    assert!(["0-gone", "1-odd", "2-none"].iter().all(|name| hash(name) == "other"));
    let register = |claim: &mut Value| claim["status"]["conditions"][0]["status"] = json!("True");
    world.server.update("NodeClaim", "a", register).unwrap();
    tokio::time::sleep(Duration::from_mins(2)).await;
    work.abort();
    assert!(!has_stray());
    assert_eq!(
        Some(&*hash("a").as_str().unwrap().to_owned()),
        launched
            .annotations
            .get("karpenter.azure.com/in-place-update-hash")
            .map(|it| &**it)
    );
}
