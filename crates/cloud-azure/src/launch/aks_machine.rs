//! The machine of an agent pool that AKS is asked for. It makes the virtual machine, its interface and its disk, and knows
//! how its nodes boot.

use std::collections::BTreeMap;

use api::{
    azure::{AKSNodeClass, GpuMode, ImageFamily},
    labels::{
        CAPACITY_TYPE,
        azure::{AKS_MODE, PLACEMENT_SCOPE, REGIONAL_ZONE, SKU_STORAGE_ULTRA_SSD},
    },
};
use model::object::NodeClaim;

use super::{
    Chosen, allowed_taints,
    kubelet::written,
    labels::{is_of_kubelet, is_streaming, may_set, of_type, single_valued},
    node_settings,
};
use crate::{
    arm::{
        Failure,
        wire::{
            Tags,
            aks::{
                AksGpuProfile, AksHardware, AksKubernetes, AksLinuxProfile, AksMachine, AksMachineProperties,
                AksNetwork, AksOperatingSystem, AksSecurity, Switch,
            },
        },
    },
    class::Class,
    offers::SizeRecord,
    version,
};

/// Labels of AKS that do not lie in its domain.
const OF_AKS: [&str; 4] = ["agentpool", "storageprofile", "storagetier", "accelerator"];

/// What a machine follows from.
pub(crate) struct AksMachineRequest<'a> {
    pub(crate) claim: &'a NodeClaim,
    pub(crate) class: &'a AKSNodeClass,
    pub(crate) chosen: &'a Chosen,
    pub(crate) record: &'a SizeRecord,
    /// The image's ARM id.
    pub(crate) image: &'a str,
    pub(crate) kubernetes: &'a str,
    pub(crate) tags: &'a Tags,
}

/// The machine to ask for.
pub(crate) fn aks_machine(it: &AksMachineRequest<'_>) -> Result<AksMachine, Failure> {
    let class = Class(it.class);
    let labels = labels(it);
    let is_system = labels.get(AKS_MODE).is_some_and(|mode| mode == "system");
    let trusted = it
        .class
        .spec
        .security
        .as_ref()
        .and_then(|it| it.trusted_launch.as_ref());
    Ok(AksMachine {
        zones: it.chosen.zone_number().map(str::to_owned).into_iter().collect(),
        properties: AksMachineProperties {
            node_image_version: node_image_version(it.image)?,
            network: AksNetwork {
                vnet_subnet_id: it.class.spec.vnet_subnet_id.clone(),
            },
            hardware: AksHardware {
                vm_size: it.record.name.clone(),
                gpu_profile: gpu(it),
                ultra_ssd_enabled: it.chosen.needs_ultra_ssd,
            },
            operating_system: operating_system(it),
            kubernetes: AksKubernetes {
                node_labels: labels.into_iter().filter(|(key, _)| may_send(key)).collect(),
                orchestrator_version: it.kubernetes.to_owned(),
                kubelet_config: it.class.spec.kubelet.as_ref().map(node_settings::kubelet),
                // AKS looks after the other taints itself, and refuses some of them on system nodes.
                node_initialization_taints: taints(it.claim),
                max_pods: it.class.spec.max_pods,
                artifact_streaming_profile: is_streaming(it.class, it.chosen).then_some(Switch { enabled: true }),
                ..AksKubernetes::default()
            },
            mode: if is_system { "System" } else { "User" }.to_owned(),
            security: AksSecurity {
                ssh_access: "LocalUser".to_owned(),
                enable_encryption_at_host: class.has_encryption_at_host(),
                enable_vtpm: trusted.and_then(|it| it.vtpm) == Some(true),
                enable_secure_boot: trusted.and_then(|it| it.secure_boot) == Some(true),
            },
            priority: Some(if it.chosen.is_spot() { "Spot" } else { "Regular" }.to_owned()),
            tags: Some(it.tags.clone()),
            local_dns_profile: node_settings::local_dns(it.class),
            ..AksMachineProperties::default()
        },
        ..AksMachine::default()
    })
}

/// The version of a node image as AKS writes it: gallery, definition and version of an image in a shared gallery.
pub(crate) fn node_image_version(image: &str) -> Result<String, Failure> {
    let refuse = |why: &str| Err(Failure::with_code("InvalidImage", format!("image {image} {why}")));
    if image.to_ascii_lowercase().starts_with("/communitygalleries/") {
        return refuse(
            "is in a community gallery, which machines of AKS cannot have: set USE_SIG to true, or another PROVISION_MODE",
        );
    }
    let parts: Vec<&str> = image.split('/').collect();
    match parts.as_slice() {
        [
            "",
            subscriptions,
            _,
            groups,
            _,
            "providers",
            provider,
            galleries,
            gallery,
            images,
            definition,
            versions,
            version,
        ] if subscriptions.eq_ignore_ascii_case("subscriptions")
            && groups.eq_ignore_ascii_case("resourceGroups")
            && provider.eq_ignore_ascii_case("Microsoft.Compute")
            && galleries.eq_ignore_ascii_case("galleries")
            && images.eq_ignore_ascii_case("images")
            && versions.eq_ignore_ascii_case("versions") =>
        {
            Ok(format!("{gallery}-{definition}-{version}"))
        }
        _ => refuse("is not the id of a version in a shared gallery"),
    }
}

/// Sizes with GPUs are told whether to have drivers.
fn gpu(it: &AksMachineRequest<'_>) -> Option<AksGpuProfile> {
    let installs = Class(it.class).gpu_mode() != GpuMode::None;
    (!it.record.gpu_manufacturer().is_empty()).then(|| AksGpuProfile {
        driver: if installs { "Install" } else { "None" }.to_owned(),
    })
}

fn operating_system(it: &AksMachineRequest<'_>) -> AksOperatingSystem {
    let class = Class(it.class);
    let is_ephemeral = it
        .record
        .ephemeral_disk
        .is_some_and(|(most, _)| i64::from(class.os_disk_gb()) <= most);
    let os_sku = match &it.class.spec.image_family {
        Some(ImageFamily::Ubuntu2204) => "Ubuntu2204",
        Some(ImageFamily::Ubuntu2404) => "Ubuntu2404",
        Some(ImageFamily::AzureLinux) => "AzureLinux",
        _ if class.is_fips() => "Ubuntu",
        _ if version::is_at_least(it.kubernetes, 34) => "Ubuntu2404",
        _ => "Ubuntu2204",
    };
    let linux = it.class.spec.linux_os_config.as_ref();
    AksOperatingSystem {
        os_type: "Linux".to_owned(),
        os_sku: os_sku.to_owned(),
        os_disk_size_gb: it.class.spec.os_disk_size_gb,
        os_disk_type: if is_ephemeral { "Ephemeral" } else { "Managed" }.to_owned(),
        enable_fips: class.is_fips(),
        linux_profile: linux.map(|it| AksLinuxProfile {
            linux_os_config: node_settings::linux(it),
        }),
    }
}

fn labels(it: &AksMachineRequest<'_>) -> BTreeMap<String, String> {
    let claims = it.claim.metadata.labels.iter();
    let mut all: BTreeMap<String, String> = claims
        .map(|(key, value)| (key.to_string(), value.to_string()))
        .collect();
    all.extend(single_valued(it.claim));
    all.extend(of_type(it.chosen));
    let scope = if it.chosen.zone == REGIONAL_ZONE {
        "regional"
    } else {
        "zonal"
    };
    let ultra = it.chosen.needs_ultra_ssd.to_string();
    let chosen = [
        (CAPACITY_TYPE, it.chosen.capacity_type),
        (PLACEMENT_SCOPE, scope),
        (SKU_STORAGE_ULTRA_SSD, ultra.as_str()),
    ];
    all.extend(chosen.map(|(key, value)| (key.to_owned(), value.to_owned())));
    all
}

/// Whether AKS takes a label from us: not its own, and not those that a kubelet sets or may not set.
fn may_send(key: &str) -> bool {
    let is_aks = key.starts_with("kubernetes.azure.com/") || OF_AKS.contains(&key);
    !is_aks && !is_of_kubelet(key) && may_set(key)
}

fn taints(claim: &NodeClaim) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for taint in allowed_taints(claim).iter().map(written) {
        if !all.contains(&taint) {
            all.push(taint);
        }
    }
    all
}

#[cfg(test)]
mod tests;
