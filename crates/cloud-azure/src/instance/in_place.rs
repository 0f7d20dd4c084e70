//! Tags and identities that changed are given to machines that run, without replacing them.

use std::{collections::BTreeMap, time::Duration};

use api::{
    annotations::azure::{AKS_MACHINE_RESOURCE_ID, IN_PLACE_UPDATE_HASH},
    azure::AKSNodeClass,
    condition::names::nodeclaim::REGISTERED,
};
use model::object::{ConditionStatus, NodeClaim};
use serde_json::json;

use super::{
    boot::{BILLING, CSE},
    facts::Machine,
    plan::{Maker, all_tags, in_place_hash},
};
use crate::{
    arm::{
        Failure,
        calls::{Pool, tags_patch},
        wire::Tags,
    },
    ids,
    launch::tags,
    reads::ReadSide,
};

/// How long a change may take.
const CHANGE: Duration = Duration::from_mins(5);

/// Looks at all claims and updates those whose machines are not as their class and the settings say.
pub(crate) async fn update_in_place(read: &ReadSide) -> Result<(), String> {
    let claims = read
        .objects
        .claims()
        .await
        .map_err(|error| format!("listing nodeclaims, {error}"))?;
    let mut failures = Vec::new();
    for claim in claims.iter().filter(|claim| is_settled(claim)) {
        if let Err(failure) = update(read, claim).await {
            failures.push(format!("NodeClaim {}: {failure}", claim.metadata.name));
        }
    }
    if failures.is_empty() {
        Ok(())
    } else {
        Err(failures.join("; "))
    }
}

fn is_settled(claim: &NodeClaim) -> bool {
    let is_registered = claim
        .condition(REGISTERED)
        .is_some_and(|it| it.status == ConditionStatus::True);
    is_registered && claim.status.provider_id.is_some() && !claim.metadata.is_deleting()
}

async fn update(read: &ReadSide, claim: &NodeClaim) -> Result<(), String> {
    let reference = claim
        .spec
        .node_class_ref
        .as_ref()
        .ok_or("it has no spec.nodeClassRef")?;
    let class = read
        .node_class(&reference.name)
        .await
        .map_err(|error| error.to_string())?;
    let Some(class) = class else { return Ok(()) };
    let azure = &read.settings.azure;
    let additional = azure.extra_tags().map_err(|error| error.to_string())?;
    let upstream = tags::upstream(&azure.cluster_name, &additional, &class, claim);
    let of_aks = claim.metadata.annotations.get(AKS_MACHINE_RESOURCE_ID);
    let of_aks = of_aks
        .and_then(|id| id.rsplit('/').next())
        .filter(|name| !name.is_empty());
    let maker = if of_aks.is_some() { Maker::Aks } else { Maker::Us };
    let hash = in_place_hash(read, maker, &upstream);
    let known = claim.metadata.annotations.get(IN_PLACE_UPDATE_HASH).map(|it| &**it);
    if known == Some(hash.as_str()) {
        return Ok(());
    }
    if let Some(name) = of_aks {
        // Machines of AKS that are not to be managed stay as they are.
        let Some(pool) = &read.pool else { return Ok(()) };
        let wanted = all_tags(maker, &upstream, &class, claim, None);
        apply_to_aks(read, pool, name, wanted)
            .await
            .map_err(|failure| failure.to_string())?;
    } else if let Some(id) = &claim.status.provider_id {
        let name = ids::name_of_provider_id(id).map_err(|error| error.to_string())?;
        apply(read, claim, &class, name, &upstream)
            .await
            .map_err(|failure| failure.to_string())?;
    }
    let annotations = BTreeMap::from([(IN_PLACE_UPDATE_HASH, hash)]);
    let written = read.objects.annotate_claim(claim, &annotations).await;
    written.map_err(|error| format!("writing {IN_PLACE_UPDATE_HASH}, {error}"))
}

/// AKS has no partial change: the machine is read, and sent back with other tags unless it changed meanwhile.
async fn apply_to_aks(read: &ReadSide, pool: &Pool, name: &str, mut wanted: Tags) -> Result<(), Failure> {
    let mut machine = read.arm.whole_aks_machine(pool, name).await?;
    let launch = machine.pointer(&format!("/properties/tags/{}", tags::LAUNCH));
    if let Some(launch) = launch.and_then(serde_json::Value::as_str) {
        wanted.insert(tags::LAUNCH.to_owned(), launch.to_owned());
    }
    if machine.pointer("/properties/tags") == Some(&json!(wanted)) {
        return Ok(());
    }
    if let Some(properties) = machine.get_mut("properties").and_then(serde_json::Value::as_object_mut) {
        properties.insert("tags".to_owned(), json!(wanted));
    }
    let operation = read.arm.update_aks_machine(pool, name, &machine).await?;
    read.arm.finish(operation, CHANGE).await
}

/// The interface first, the machine last: a half-done update is begun anew.
async fn apply(
    read: &ReadSide,
    claim: &NodeClaim,
    class: &AKSNodeClass,
    name: &str,
    upstream: &Tags,
) -> Result<(), Failure> {
    let (arm, azure) = (&read.arm, &read.settings.azure);
    let group = azure.node_resource_group.as_str();
    // One that is not there has not got its tags: should it only not be seen now, it would never get them.
    let vm = arm.vm(group, name).await?;
    let machine = Machine::of(&vm, &azure.location);
    let mut wanted = tags::all(upstream, class, claim, None);
    wanted.extend(
        machine
            .tags
            .get(tags::LAUNCH)
            .map(|launch| (tags::LAUNCH.to_owned(), launch.clone())),
    );
    let missing: BTreeMap<&String, serde_json::Value> = azure
        .node_identities
        .iter()
        .filter(|id| !machine.identities.iter().any(|has| has.eq_ignore_ascii_case(id)))
        .map(|id| (id, json!({})))
        .collect();
    let are_tags_other = machine.tags != wanted;
    if !are_tags_other && missing.is_empty() {
        return Ok(());
    }
    let mut patch = json!({});
    if are_tags_other {
        patch = tags_patch(&wanted);
        tag_parts(read, name, &patch).await?;
    }
    if !missing.is_empty() {
        patch["identity"] = json!({"type": "UserAssigned", "userAssignedIdentities": missing});
    }
    let operation = arm.patch_vm(group, name, &patch).await?;
    arm.finish(operation, CHANGE).await
}

/// What belongs to a machine has its tags. Which extensions it has depends on how it came to be.
async fn tag_parts(read: &ReadSide, name: &str, patch: &serde_json::Value) -> Result<(), Failure> {
    let (arm, group) = (&read.arm, read.settings.azure.node_resource_group.as_str());
    arm.patch_nic(group, name, patch).await?;
    for extension in [BILLING, CSE] {
        match arm.patch_extension(group, name, extension, patch).await {
            Err(failure) if !failure.is_not_found() => return Err(failure),
            _ => {}
        }
    }
    Ok(())
}
