//! Is a claim's machine still what its node class asks for?

use std::{collections::BTreeSet, sync::Arc};

use api::{
    annotations::aws::{EC2NODECLASS_HASH, EC2NODECLASS_HASH_VERSION},
    aws::{EC2NodeClass, EC2NodeClassStatus},
    labels::{INSTANCE_TYPE, aws::PLACEMENT_GROUP_ID},
};
use cloud::CloudError;
use model::{object::NodeClaim, snapshot::CatalogType};

use crate::{
    border::{Describes, Freshness, MachineFacts, Reads},
    node_class::images_of_types,
};

/// Why it is not; none when it is. What costs no call is looked at first.
pub(crate) async fn drift(
    claim: &NodeClaim,
    class: &EC2NodeClass,
    reads: &dyn Reads,
    machines: &dyn Describes,
) -> Result<Option<String>, CloudError> {
    if is_hash_other(claim, class) {
        return Ok(Some("NodeClassDrift".to_owned()));
    }
    let status = class.status.clone().unwrap_or_default();
    let types = reads
        .instance_types(class)
        .await
        .map_err(|error| CloudError::Other(format!("calculating ami drift, getting instanceTypes, {error}")))?;
    let is_other = is_image_other(claim, &status, &types);
    if is_other.map_err(|error| CloudError::Other(format!("calculating ami drift, {error}")))? {
        return Ok(Some("AMIDrift".to_owned()));
    }
    let Some(id) = &claim.status.provider_id else {
        let name = &claim.metadata.name;
        return Err(CloudError::Other(format!(
            "parsing instance id, NodeClaim {name} has no status.providerID"
        )));
    };
    let machine = machines.describe(id, Freshness::Remembered).await?;
    if let Some(reason) = network_drift(&machine, &status)? {
        return Ok(Some(reason.to_owned()));
    }
    let is_unreserved = |machine: &MachineFacts| is_reservation_gone(machine, &status);
    if is_unreserved(&machine) && is_unreserved(&machines.describe(id, Freshness::Fresh).await?) {
        return Ok(Some("CapacityReservationDrift".to_owned()));
    }
    let group = reads
        .placement_group(class)
        .await?
        .map(|group| group.id)
        .unwrap_or_default();
    let label = claim.metadata.labels.get(PLACEMENT_GROUP_ID);
    if label.map_or("", |it| &**it) != group {
        return Ok(Some("PlacementGroupDrift".to_owned()));
    }
    Ok(None)
}

/// Only hashes of one recipe can be compared.
fn is_hash_other(claim: &NodeClaim, class: &EC2NodeClass) -> bool {
    let of_class = |key: &str| class.metadata.annotations.as_ref()?.get(key).map(String::as_str);
    let of_claim = |key: &str| claim.metadata.annotations.get(key).map(|it| &**it);
    let version = EC2NODECLASS_HASH_VERSION;
    let (Some(recipe), Some(other)) = (of_class(version), of_claim(version)) else {
        return false;
    };
    match (of_class(EC2NODECLASS_HASH), of_claim(EC2NODECLASS_HASH)) {
        (Some(one), Some(two)) => recipe == other && one != two,
        _ => false,
    }
}

fn is_image_other(claim: &NodeClaim, status: &EC2NodeClassStatus, types: &[Arc<CatalogType>]) -> Result<bool, String> {
    let name = claim.metadata.labels.get(INSTANCE_TYPE).map_or("", |it| &**it);
    let Some(found) = types.iter().find(|entry| entry.name.as_str() == name) else {
        return Err(format!("finding node instance type (instance-type={name})"));
    };
    if status.amis.is_empty() {
        return Err("no amis exist given constraints".to_owned());
    }
    if claim.status.image_id.is_empty() {
        return Err("no ami ID found in nodeClaim status".to_owned());
    }
    let chosen = images_of_types(&status.amis, std::slice::from_ref(found));
    Ok(!chosen.contains_key(&*claim.status.image_id))
}

fn network_drift(machine: &MachineFacts, status: &EC2NodeClassStatus) -> Result<Option<&'static str>, CloudError> {
    let missing = |what: &str| Err(CloudError::Other(what.to_owned()));
    if status.security_groups.is_empty() {
        return missing("calculating securitygroup drift, no security groups are present in the status");
    }
    if status.subnets.is_empty() {
        return missing("calculating subnet drift, no subnets are discovered");
    }
    let wanted: BTreeSet<&str> = status.security_groups.iter().map(|it| it.id.as_str()).collect();
    let has: BTreeSet<&str> = machine.security_groups.iter().map(String::as_str).collect();
    if wanted != has {
        return Ok(Some("SecurityGroupDrift"));
    }
    let is_known = status.subnets.iter().any(|it| it.id == machine.subnet);
    Ok((!is_known).then_some("SubnetDrift"))
}

fn is_reservation_gone(machine: &MachineFacts, status: &EC2NodeClassStatus) -> bool {
    let used = machine.capacity_reservation.as_ref();
    used.is_some_and(|id| !status.capacity_reservations.iter().any(|it| it.id == *id))
}

#[cfg(test)]
mod tests;
