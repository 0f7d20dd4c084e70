//! Listing: Resource Graph, which knows all resources by tag, a little later than they are there.

use serde_json::Value;

use crate::{
    arm::{
        Arm, Failure,
        wire::{NetworkInterface, VirtualMachine},
    },
    launch::tags,
};

/// The question for all resources of a type in a group that belong to a pool.
fn query(kind: &str, group: &str) -> String {
    format!(
        "Resources | where type == \"{kind}\" | where resourceGroup == \"{}\" | where tags has_cs \"{}\" | where not(tags has_cs \"{}\")",
        group.to_lowercase().replace('\\', "\\\\").replace('"', "\\\""),
        tags::POOL,
        tags::AKS_MACHINE,
    )
}

/// All machines of pools in a group.
pub(super) async fn machines(arm: &Arm, group: &str) -> Result<Vec<VirtualMachine>, Failure> {
    let rows = arm.graph(&query("microsoft.compute/virtualmachines", group)).await?;
    Ok(rows.into_iter().filter_map(read).collect())
}

/// All network interfaces of pools in a group.
pub(super) async fn interfaces(arm: &Arm, group: &str) -> Result<Vec<NetworkInterface>, Failure> {
    let rows = arm.graph(&query("microsoft.network/networkinterfaces", group)).await?;
    Ok(rows.into_iter().filter_map(read).collect())
}

/// A row without an id, a name or tags is not one that we could act on.
fn read<T: serde::de::DeserializeOwned>(row: Value) -> Option<T> {
    let is_text = |key: &str| {
        row.get(key)
            .and_then(Value::as_str)
            .is_some_and(|text| !text.is_empty())
    };
    if !is_text("id") || !is_text("name") || !row.get("tags").is_some_and(Value::is_object) {
        tracing::error!(row = %row, "a row of Resource Graph lacks id, name or tags");
        return None;
    }
    match serde_json::from_value(row) {
        Ok(read) => Some(read),
        Err(error) => {
            tracing::error!(%error, "a row of Resource Graph cannot be read");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_question_is_upstreams() {
        assert_eq!(
            query("microsoft.compute/virtualmachines", "MC_Rg"),
            "Resources | where type == \"microsoft.compute/virtualmachines\" | where resourceGroup == \"mc_rg\" \
             | where tags has_cs \"karpenter.sh_nodepool\" \
             | where not(tags has_cs \"karpenter.azure.com_aksmachine_nodeclaim\")"
        );
    }
}
