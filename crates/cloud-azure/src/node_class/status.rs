//! One look at a node class: what it resolves to now, and the conditions that follow.

use std::time::Duration;

use api::{
    azure::{AKSNodeClass, LocalDnsMode, LocalDnsState, condition},
    condition::set::is_true,
};
use keeper::Step;

use super::{Controller, families::Release, images::keep_known};
use crate::{arm::Failure, class::Class, cluster::VERSION_BELIEVED, ids::SubnetId, version};

const MINUTE: Duration = Duration::from_mins(1);
/// From this version on, local DNS is switched on where it is preferred: in other words, never yet.
const LOCAL_DNS_FROM: version::Version = (1, 99, 0);

impl Controller {
    /// Every step, whether or not another fails.
    pub(super) async fn look_up(&self, class: &mut AKSNodeClass) -> Vec<Step> {
        vec![
            self.kubernetes_version(class).await,
            self.images(class).await,
            self.subnet(class).await,
            self.validate(class).await,
            self.local_dns(class).await,
        ]
    }

    fn refuse(&self, class: &mut AKSNodeClass, kind: &str, reason: &str, message: &str) {
        keeper::set(self, class, |set| {
            set.set_false(kind, reason, message);
        });
    }

    fn accept(&self, class: &mut AKSNodeClass, kind: &str) {
        keeper::set(self, class, |set| {
            set.set_true(kind);
        });
    }

    /// Follows the API server up, never down. An upgrade asks for new images, whatever the window.
    async fn kubernetes_version(&self, class: &mut AKSNodeClass) -> Step {
        let kind = condition::KUBERNETES_VERSION_READY;
        let mut goal = match self.read.cluster.version().await {
            Ok(version) => version,
            Err(error) => return Step::Failed(format!("getting kubernetes version, {error}")),
        };
        let status = class.status.get_or_insert_default();
        let is_known = is_true(&status.conditions, kind);
        let known = status
            .kubernetes_version
            .clone()
            .filter(|it| is_known && !it.is_empty());
        if let Some(known) = known {
            let (Some(new), Some(old)) = (version::parse(&goal), version::parse(&known)) else {
                return Step::Failed(format!("parsing current kubernetes version, {known:?}"));
            };
            if new > old {
                let message = "Performing kubernetes upgrade, need to get latest images";
                self.refuse(class, condition::IMAGES_READY, "KubernetesUpgrade", message);
            } else if new < old {
                tracing::info!(
                    current = known,
                    discovered = goal,
                    "detected potential kubernetes downgrade, keeping current version"
                );
                goal = known;
            }
        }
        class.status.get_or_insert_default().kubernetes_version = Some(goal);
        self.accept(class, kind);
        Step::After(VERSION_BELIEVED)
    }

    async fn images(&self, class: &mut AKSNodeClass) -> Step {
        let kind = condition::IMAGES_READY;
        if Class(class).is_fips() && !self.read.images.are_shared() {
            class.status.get_or_insert_default().images = Vec::new();
            let message = "FIPS images require UseSIG to be enabled, but UseSIG is false (note: UseSIG is only supported in AKS managed NAP)";
            self.refuse(class, kind, "SIGRequiredForFIPS", message);
            return Step::Settled;
        }
        let version = match class.kubernetes_version() {
            Ok(version) => version.to_owned(),
            Err(stale) => return Step::Failed(format!("getting nodeimages, {stale}")),
        };
        let newest = match self.read.images.newest(class, &version).await {
            Ok(images) => images,
            Err(failure) => return Step::Failed(format!("getting nodeimages, {failure}")),
        };
        let status = class.status.get_or_insert_default();
        let are_ready = is_true(&status.conditions, kind);
        let is_open = if are_ready {
            self.is_window_open().await
        } else {
            Ok(true)
        };
        let images = match is_open {
            Ok(true) => newest,
            Ok(false) => keep_known(newest, &status.images),
            Err(error) => return Step::Failed(format!("checking maintenance window, {error}")),
        };
        let is_found = !images.is_empty();
        status.images = images;
        if is_found {
            self.accept(class, kind);
        } else {
            self.refuse(class, kind, "ImagesNotFound", "ImageSelectors did not match any Images");
        }
        Step::After(5 * MINUTE)
    }

    async fn subnet(&self, class: &mut AKSNodeClass) -> Step {
        let kind = condition::SUBNETS_READY;
        let settings = &self.read.settings.azure;
        let id = Class(class).subnet_id(settings).to_owned();
        let subnet = match usable_subnet(&id, &settings.vnet_subnet_id, &settings.node_resource_group) {
            Ok(subnet) => subnet,
            Err(message) => {
                self.refuse(class, kind, "SubnetIDInvalid", &message);
                return Step::Settled;
            }
        };
        match self.read.arm.subnet(&subnet.group, &subnet.vnet, &subnet.name).await {
            Ok(()) => {
                self.accept(class, kind);
                Step::After(3 * MINUTE)
            }
            Err(failure) if failure.is_not_found() => {
                self.refuse(class, kind, "SubnetNotFound", &format!("resource not found: {id}"));
                Step::Failed(format!("getting subnet, {failure}"))
            }
            Err(failure) => {
                let message = format!("unknown error getting subnet: {failure}");
                self.refuse(class, kind, "SubnetUnknownError", &message);
                Step::Failed(format!("getting subnet, {failure}"))
            }
        }
    }

    async fn validate(&self, class: &mut AKSNodeClass) -> Step {
        let kind = condition::VALIDATION_SUCCEEDED;
        let id = &self.read.settings.azure.disk_encryption_set_id;
        let allowed: Result<(), Failure> = if id.is_empty() {
            Ok(())
        } else {
            self.read.arm.disk_encryption_set(id).await
        };
        match allowed {
            Ok(()) => {
                self.accept(class, kind);
                Step::After(60 * MINUTE)
            }
            Err(failure) if failure.is_unauthorized() => {
                let message = format!(
                    "controlling identity does not have Reader role on Disk Encryption Set '{id}'. \
                     Grant the Reader role on the DiskEncryptionSet to the controlling identity. \
                     For self-hosted installations, this is the Karpenter workload identity. \
                     For NAP, this is the AKS cluster identity. \
                     See https://learn.microsoft.com/azure/aks/azure-disk-customer-managed-keys for details: {failure}"
                );
                self.refuse(class, kind, "DiskEncryptionSetRBACMissing", &message);
                Step::After(MINUTE)
            }
            Err(failure) => Step::Failed(format!("failed to validate DiskEncryptionSet '{id}': {failure}")),
        }
    }

    async fn local_dns(&self, class: &mut AKSNodeClass) -> Step {
        let kind = condition::LOCAL_DNS_READY;
        let mode = class.spec.local_dns.as_ref().and_then(|it| it.mode.clone());
        let is_on = class.status.as_ref().and_then(|it| it.local_dns_state.clone()) == Some(LocalDnsState::Enabled);
        let (state, step) = match mode {
            Some(LocalDnsMode::Required) => (LocalDnsState::Enabled, Step::Settled),
            // Once on, it stays on: nodes that have it differ from those that have not.
            Some(LocalDnsMode::Preferred) if is_on => (LocalDnsState::Enabled, Step::Settled),
            Some(LocalDnsMode::Preferred) => match self.may_have_local_dns(class).await {
                Ok(true) => (LocalDnsState::Enabled, Step::After(5 * MINUTE)),
                Ok(false) => (LocalDnsState::Disabled, Step::After(5 * MINUTE)),
                Err(error) => {
                    self.refuse(class, kind, "CheckingClusterRequirementsFailed", &error);
                    return Step::Failed(error);
                }
            },
            _ => (LocalDnsState::Disabled, Step::Settled),
        };
        class.status.get_or_insert_default().local_dns_state = Some(state);
        self.accept(class, kind);
        step
    }

    async fn may_have_local_dns(&self, class: &AKSNodeClass) -> Result<bool, String> {
        let kubernetes = class.kubernetes_version();
        let kubernetes = kubernetes.map_err(|stale| format!("getting kubernetes version: {stale}"))?;
        let parsed = version::parse(kubernetes).ok_or_else(|| format!("parsing kubernetes version {kubernetes:?}"))?;
        let settings = &self.read.settings.azure;
        let is_new_enough = parsed >= LOCAL_DNS_FROM;
        let has_network = !settings.network_plugin.eq_ignore_ascii_case("none");
        if !is_new_enough || !has_network || Release::of(class, kubernetes) == Release::Ubuntu2004 {
            return Ok(false);
        }
        self.has_no_rival_dns().await
    }
}

/// The subnet of a class, if its nodes may be there.
fn usable_subnet(id: &str, of_cluster: &str, node_group: &str) -> Result<SubnetId, String> {
    let subnet = SubnetId::parse(id).ok_or_else(|| format!("Failed to parse vnetSubnetID {id}"))?;
    if id == of_cluster {
        return Ok(subnet);
    }
    let cluster = SubnetId::parse(of_cluster).ok_or_else(|| format!("Failed to parse vnetSubnetID {of_cluster}"))?;
    if !cluster.is_beside(&subnet) {
        return Err(format!(
            "vnetSubnetID does not match the cluster subscription, resource group, or virtual network: {id}"
        ));
    }
    if cluster.is_in_managed_vnet(node_group) {
        return Err(format!(
            "custom subnet cannot be in the same VNet as cluster managed VNet: {id}"
        ));
    }
    Ok(subnet)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_may_use_another_subnet_of_the_clusters_own_network_only() {
        let id = |group: &str, vnet: &str, name: &str| {
            format!(
                "/subscriptions/s/resourceGroups/{group}/providers/Microsoft.Network/virtualNetworks/{vnet}/subnets/{name}"
            )
        };
        let own = id("g", "v", "n");
        assert!(usable_subnet(&own, &own, "mc").is_ok());
        assert!(usable_subnet(&id("g", "v", "other"), &own, "mc").is_ok());
        let words = |subnet: &str, cluster: &str| usable_subnet(subnet, cluster, "mc").unwrap_err();
        assert!(words("nonsense", &own).starts_with("Failed to parse vnetSubnetID nonsense"));
        assert!(words(&id("G", "v", "n"), &own).starts_with("vnetSubnetID does not match the cluster"));
        let managed = id("mc", "aks-vnet-12345678", "aks-subnet");
        let beside = id("mc", "aks-vnet-12345678", "mine");
        assert!(words(&beside, &managed).starts_with("custom subnet cannot be in the same VNet"));
    }
}
