//! `AKSNodeClass`: what virtual machines a NodePool launches on Azure, and how they are set up.
#![allow(
    dead_code,
    reason = "kube's schema derive repeats the struct to describe it, and nothing reads the copy"
)]

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use super::{AKSNodeClassStatus, KubeletConfiguration, LinuxOsConfiguration, LocalDns};
use crate::{absent_spec::spec_may_be_absent, open_enum::open_enum};

/// What to launch.
#[derive(Clone, Debug, Default, PartialEq, Eq, CustomResource, KubeSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", remote = "Self")]
#[kube(
    group = "karpenter.azure.com",
    version = "v1beta1",
    kind = "AKSNodeClass",
    plural = "aksnodeclasses",
    shortname = "aksnc",
    shortname = "aksncs",
    category = "karpenter",
    category = "nap",
    status = "AKSNodeClassStatus",
    derive = "PartialEq",
    derive = "Default",
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].status"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "ImageFamily",
        type_ = "string",
        json_path = ".spec.imageFamily",
        priority = 1
    ),
    doc = "Settings for Azure virtual machines. Referenced from a NodePool's nodeClassRef."
)]
#[x_kube(
    validation = Rule::new("has(self.fipsMode) && self.fipsMode == 'FIPS' ? (has(self.imageFamily) && self.imageFamily != 'Ubuntu2404') : true")
        .message("FIPS is not yet supported for Ubuntu2404"),
    validation = Rule::new("has(self.fipsMode) && self.fipsMode == 'FIPS' ? (has(self.imageFamily) && (self.imageFamily != 'Ubuntu2204' || (has(self.security) && has(self.security.trustedLaunch) && ((has(self.security.trustedLaunch.vtpm) && self.security.trustedLaunch.vtpm) || (has(self.security.trustedLaunch.secureBoot) && self.security.trustedLaunch.secureBoot))))) : true")
        .message("TrustedLaunch is required for FIPS support with Ubuntu2204"),
    validation = Rule::new("has(self.fipsMode) && self.fipsMode == 'FIPS' && has(self.security) && has(self.security.trustedLaunch) && ((has(self.security.trustedLaunch.vtpm) && self.security.trustedLaunch.vtpm) || (has(self.security.trustedLaunch.secureBoot) && self.security.trustedLaunch.secureBoot)) ? (!has(self.imageFamily) || self.imageFamily == 'Ubuntu' || self.imageFamily == 'Ubuntu2204') : true")
        .message("TrustedLaunch with FIPSMode FIPS is only supported for Ubuntu and Ubuntu2204"),
    validation = Rule::new("!has(self.linuxOSConfig) || !has(self.linuxOSConfig.swapFileSize) || (has(self.kubelet) && has(self.kubelet.failSwapOn) && self.kubelet.failSwapOn == false)")
        .message("kubelet.failSwapOn must be set to false when linuxOSConfig.swapFileSize is specified")
)]
pub struct AKSNodeClassSpec {
    /// The ARM id of the subnet nodes join. Unset, the cluster's default.
    #[serde(rename = "vnetSubnetID", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = r"(?i)^\/subscriptions\/[^\/]+\/resourceGroups\/[a-zA-Z0-9_\-().]{0,89}[a-zA-Z0-9_\-()]\/providers\/Microsoft\.Network\/virtualNetworks\/[^\/]+\/subnets\/[^\/]+$"))]
    pub vnet_subnet_id: Option<String>,
    /// The size of the system disk in GB.
    #[serde(rename = "osDiskSizeGB", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 30, max = 2048), extend("default" = 128))]
    pub os_disk_size_gb: Option<i32>,
    /// The image family nodes boot. `Ubuntu` follows the newest release supported.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "Ubuntu"))]
    pub image_family: Option<ImageFamily>,
    /// Whether nodes use FIPS validated cryptography.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fips_mode: Option<FipsMode>,
    /// Tags for the Azure resources made for this class. A change is applied in place.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(
        validation = Rule::new("self.all(k, size(k) <= 512)").message("tags keys must be less than 512 characters"),
        validation = Rule::new("self.all(k, !k.matches('[<>%&?]'))")
            .message("tags keys must not contain '<', '>', '%', '&', or '?'"),
        validation = Rule::new(r"self.all(k, !k.contains('\\'))").message(r"tags keys must not contain '\'"),
        validation = Rule::new("self.all(k, size(self[k]) <= 256)")
            .message("tags values must be less than 256 characters")
    )]
    pub tags: Option<BTreeMap<String, String>>,
    /// Kubelet settings of the nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(
        validation = Rule::new("has(self.imageGCHighThresholdPercent) && has(self.imageGCLowThresholdPercent) ?  self.imageGCHighThresholdPercent > self.imageGCLowThresholdPercent  : true")
            .message("imageGCHighThresholdPercent must be greater than imageGCLowThresholdPercent")
    )]
    pub kubelet: Option<KubeletConfiguration>,
    /// The most pods a node may run. Unset, it follows from the network plugin: 30 for Azure node subnets, 250 for Azure
    /// overlay and for none, else 110.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 10, max = 250))]
    pub max_pods: Option<i32>,
    /// Protection of disks and boot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security: Option<Security>,
    /// The DNS cache on each node.
    #[serde(rename = "localDNS", skip_serializing_if = "Option::is_none")]
    pub local_dns: Option<LocalDns>,
    /// Settings for nodes with GPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu: Option<Gpu>,
    /// Whether container images are fetched as they are read, instead of before the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifact_streaming: Option<ArtifactStreaming>,
    /// Settings of the Linux kernel.
    #[serde(rename = "linuxOSConfig", skip_serializing_if = "Option::is_none")]
    pub linux_os_config: Option<LinuxOsConfiguration>,
}

spec_may_be_absent!(AKSNodeClassSpec);

impl AKSNodeClassSpec {
    /// The spec as the API server stores it, with the schema's defaults filled in. A manifest read from a file needs
    /// this before it is hashed; an object read from a cluster has them.
    #[must_use]
    pub fn defaulted(mut self) -> Self {
        self.os_disk_size_gb.get_or_insert(128);
        self.image_family.get_or_insert(ImageFamily::Ubuntu);
        self.kubelet = self.kubelet.map(KubeletConfiguration::defaulted);
        if let Some(gpu) = &mut self.gpu {
            gpu.mode.get_or_insert(GpuMode::Driver);
        }
        self
    }
}

open_enum! {
    /// A line of node images.
    ImageFamily {
        /// The newest Ubuntu release supported.
        Ubuntu = "Ubuntu",
        /// Ubuntu 22.04.
        Ubuntu2204 = "Ubuntu2204",
        /// Ubuntu 24.04.
        Ubuntu2404 = "Ubuntu2404",
        /// Azure Linux.
        AzureLinux = "AzureLinux",
    }
}

open_enum! {
    /// Whether cryptography is FIPS validated.
    FipsMode {
        /// It is.
        Fips = "FIPS",
        /// It need not be.
        Disabled = "Disabled",
    }
}

/// Protection of disks and boot.
#[derive(Clone, Debug, Default, PartialEq, Eq, KubeSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Security {
    /// Whether the host encrypts temporary disks and disk caches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encryption_at_host: Option<bool>,
    /// Protection against boot kits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trusted_launch: Option<TrustedLaunch>,
}

/// Protection against boot kits.
#[derive(Clone, Debug, Default, PartialEq, Eq, KubeSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TrustedLaunch {
    /// Whether nodes have a virtual TPM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vtpm: Option<bool>,
    /// Whether nodes boot only signed software.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secure_boot: Option<bool>,
}

/// Settings for nodes with GPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq, KubeSchema, Serialize, Deserialize)]
pub struct Gpu {
    /// Who installs GPU drivers. With `Driver`, AKS does, and only sizes it has drivers for (NVIDIA) are used. With
    /// `None`, nobody does, and every GPU size may be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "Driver"))]
    pub mode: Option<GpuMode>,
}

open_enum! {
    /// Who installs GPU drivers.
    GpuMode {
        /// AKS.
        Driver = "Driver",
        /// The user, if anyone.
        None = "None",
    }
}

/// Whether container images are fetched as they are read.
#[derive(Clone, Debug, Default, PartialEq, Eq, KubeSchema, Serialize, Deserialize)]
pub struct ArtifactStreaming {
    /// Switches it on. The images must be prepared for it in the registry; arm64 sizes do not support it and are not
    /// used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
}

#[cfg(test)]
mod tests;
