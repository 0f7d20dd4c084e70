//! How does a virtual machine of ours become a node? A script of ours, or what AKS's service says, with its extension.

use std::time::Duration;

use model::object::NodeClaim;
use serde_json::json;

use super::plan::Plan;
use crate::{
    arm::{
        Failure,
        wire::{Extension, ExtensionProperties, Tags},
    },
    launch::{self, Boot, Bootstrap, Provision, hydrated, provision_values, scripted},
    mode::Mode,
    reads::ReadSide,
};

/// The extension that AKS bills by.
pub(super) const BILLING: &str = "computeAksLinuxBilling";
/// The extension that makes a machine a node, where a script of ours does not.
pub(super) const CSE: &str = "cse-agent-karpenter";
/// How long an extension may take.
const EXTENSION: Duration = Duration::from_mins(20);

/// How a planned machine boots.
pub(super) async fn boot(read: &ReadSide, claim: &NodeClaim, plan: &Plan) -> Result<Boot, Failure> {
    let azure = &read.settings.azure;
    let (class, chosen, kubernetes) = (&plan.class, &plan.wish.chosen, plan.kubernetes.as_str());
    let labels = launch::node_labels(claim, class, chosen, kubernetes, azure, &read.cluster);
    if read.mode == Mode::BootstrappingClient {
        let values = provision_values(&Provision {
            claim,
            class,
            chosen,
            record: &plan.wish.record,
            image: &plan.wish.image,
            kubernetes,
            labels: &labels,
            settings: azure,
        })?;
        let server = &azure.node_bootstrapping_server_url;
        let asked = read
            .arm
            .node_bootstrapping(server, &azure.resource_group, &azure.cluster_name, &values);
        return hydrated(&asked.await?, &azure.kubelet_bootstrap_token);
    }
    Ok(scripted(&Bootstrap {
        class,
        chosen,
        record: &plan.wish.record,
        kubernetes,
        labels: &labels,
        taints: &launch::allowed_taints(claim),
        settings: azure,
        cluster: &read.cluster,
        security_group: read.cluster.security_group().await?,
    }))
}

/// Runs AKS's command on a machine that is there. Without it, it never becomes a node.
pub(super) async fn add_cse(read: &ReadSide, vm: &str, tags: &Tags, command: &str) -> Result<(), Failure> {
    let properties = ExtensionProperties {
        publisher: "Microsoft.Azure.Extensions".to_owned(),
        kind: "CustomScript".to_owned(),
        type_handler_version: "2.0".to_owned(),
        auto_upgrade_minor_version: true,
        protected_settings: Some([("commandToExecute".to_owned(), json!(command))].into()),
        ..ExtensionProperties::default()
    };
    add(read, vm, CSE, tags, properties).await
}

/// AKS bills by an extension, where it has it. A node without it is a node all the same.
pub(super) async fn add_billing(read: &ReadSide, vm: &str, tags: &Tags) {
    if !read.arm.environment().has_billing_extension {
        return;
    }
    let properties = ExtensionProperties {
        publisher: "Microsoft.AKS".to_owned(),
        kind: "Compute.AKS.Linux.Billing".to_owned(),
        type_handler_version: "1.0".to_owned(),
        auto_upgrade_minor_version: true,
        ..ExtensionProperties::default()
    };
    if let Err(failure) = add(read, vm, BILLING, tags, properties).await {
        tracing::error!(name = vm, extension = BILLING, error = %failure, "adding an extension");
    }
}

async fn add(
    read: &ReadSide,
    vm: &str,
    name: &str,
    tags: &Tags,
    properties: ExtensionProperties,
) -> Result<(), Failure> {
    let azure = &read.settings.azure;
    let extension = Extension {
        location: azure.location.clone(),
        tags: tags.clone(),
        properties,
    };
    let group = azure.node_resource_group.as_str();
    let operation = read.arm.put_extension(group, vm, name, &extension).await?;
    read.arm.finish(operation, EXTENSION).await
}
