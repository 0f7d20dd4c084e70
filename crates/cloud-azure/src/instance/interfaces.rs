//! Network interfaces that no machine and no claim needs any more are removed.

use std::collections::BTreeSet;

use model::object::NodeClaim;

use super::{
    facts::{belongs, is_for},
    graph,
};
use crate::{arm::wire::NetworkInterface, reads::ReadSide};

/// No more are removed at a time: a list that is wrong must not cost everything.
const MOST: usize = 20;

/// Removes interfaces of ours that are left over. Azure holds one for three minutes after a failed launch, so that it may
/// take several rounds.
pub(crate) async fn sweep_interfaces(read: &ReadSide) -> Result<(), String> {
    let group = &read.settings.azure.node_resource_group;
    let interfaces = graph::interfaces(&read.arm, group)
        .await
        .map_err(|failure| failure.to_string())?;
    let machines = graph::machines(&read.arm, group)
        .await
        .map_err(|failure| failure.to_string())?;
    // Read after the interfaces: a claim is there before its interface.
    let claims = read
        .objects
        .claims()
        .await
        .map_err(|error| format!("listing nodeclaims, {error}"))?;
    let names = machines.iter().map(|vm| vm.name.to_lowercase()).collect();
    let orphans = orphans(&interfaces, &names, &claims, &read.settings.azure.cluster_name);
    if orphans.len() > MOST {
        tracing::warn!(
            found = orphans.len(),
            most = MOST,
            "network interfaces without a machine: the rest waits"
        );
    }
    for name in orphans.into_iter().take(MOST) {
        match read.arm.delete_nic(group, &name).await {
            Ok(_) => tracing::info!(name, "deleted a network interface without a machine"),
            Err(failure) => tracing::debug!(name, error = %failure, "deleting a network interface without a machine"),
        }
    }
    Ok(())
}

fn orphans(
    interfaces: &[NetworkInterface],
    machines: &BTreeSet<String>,
    claims: &[NodeClaim],
    cluster: &str,
) -> Vec<String> {
    let is_orphan = |nic: &&NetworkInterface| {
        let name = nic.name.to_lowercase();
        belongs(&nic.tags, cluster)
            && nic.properties.virtual_machine.is_none()
            && !machines.contains(&name)
            && !claims.iter().any(|claim| is_for(&nic.tags, &name, claim))
    };
    interfaces
        .iter()
        .filter(is_orphan)
        .map(|nic| nic.name.to_lowercase())
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_interfaces_of_ours_without_machine_and_claim_are_left_over() {
        let nic = |name: &str, cluster: &str, vm: Option<&str>| -> NetworkInterface {
            serde_json::from_value(json!({"id": format!("/x/{name}"), "name": name, "location": "eastus",
                "tags": {"karpenter.azure.com_cluster": cluster, "karpenter.sh_nodepool": "general"},
                "properties": {"virtualMachine": vm.map(|id| json!({"id": id}))}}))
            .unwrap()
        };
        let all = [
            nic("AKS-gone", "prod", None),
            nic("aks-runs", "prod", None),
            nic("aks-attached", "prod", Some("/vm")),
            nic("aks-claimed", "prod", None),
            nic("aks-foreign", "other", None),
        ];
        let claim: NodeClaim = serde_json::from_value(json!({"metadata": {"name": "claimed", "uid": "u"}})).unwrap();
        let machines = BTreeSet::from(["aks-runs".to_owned()]);
        assert_eq!(orphans(&all, &machines, &[claim], "prod"), ["aks-gone"]);
    }
}
