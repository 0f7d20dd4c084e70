//! What AKS itself is asked and answers: machines of an agent pool, and how a node of the cluster boots.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Tags, or_default};

wire! {
    /// A machine of an agent pool.
    AksMachine {
        #[serde(skip_serializing_if = "String::is_empty")]
        pub id: String,
        #[serde(skip_serializing_if = "String::is_empty")]
        pub name: String,
        #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "or_default")]
        pub zones: Vec<String>,
        pub properties: AksMachineProperties,
    }
}

wire! {
    AksMachineProperties {
        #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "or_default")]
        pub node_image_version: String,
        #[serde(deserialize_with = "or_default")]
        pub network: AksNetwork,
        #[serde(deserialize_with = "or_default")]
        pub hardware: AksHardware,
        #[serde(deserialize_with = "or_default")]
        pub operating_system: AksOperatingSystem,
        #[serde(deserialize_with = "or_default")]
        pub kubernetes: AksKubernetes,
        #[serde(deserialize_with = "or_default")]
        pub mode: String,
        #[serde(deserialize_with = "or_default")]
        pub security: AksSecurity,
        /// AKS leaves it out where it is `Regular`.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub priority: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "or_default")]
        pub tags: Option<Tags>,
        #[serde(rename = "localDNSProfile", skip_serializing_if = "Option::is_none")]
        pub local_dns_profile: Option<LocalDnsProfile>,
        /// The virtual machine behind it.
        #[serde(skip_serializing, deserialize_with = "or_default")]
        pub resource_id: String,
        #[serde(skip_serializing, deserialize_with = "or_default")]
        pub provisioning_state: String,
        #[serde(skip_serializing, deserialize_with = "or_default")]
        pub status: AksStatus,
    }
}

wire! {
    AksNetwork {
        #[serde(rename = "vnetSubnetID", skip_serializing_if = "Option::is_none")]
        pub vnet_subnet_id: Option<String>,
    }
}

wire! {
    AksHardware {
        #[serde(deserialize_with = "or_default")]
        pub vm_size: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub gpu_profile: Option<AksGpuProfile>,
        #[serde(deserialize_with = "or_default")]
        pub ultra_ssd_enabled: bool,
    }
}

wire! {
    AksGpuProfile {
        pub driver: String,
    }
}

wire! {
    AksOperatingSystem {
        #[serde(deserialize_with = "or_default")]
        pub os_type: String,
        #[serde(rename = "osSKU", deserialize_with = "or_default")]
        pub os_sku: String,
        #[serde(rename = "osDiskSizeGB", skip_serializing_if = "Option::is_none")]
        pub os_disk_size_gb: Option<i32>,
        #[serde(deserialize_with = "or_default")]
        pub os_disk_type: String,
        #[serde(rename = "enableFIPS", deserialize_with = "or_default")]
        pub enable_fips: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub linux_profile: Option<AksLinuxProfile>,
    }
}

wire! {
    AksLinuxProfile {
        #[serde(rename = "linuxOSConfig")]
        pub linux_os_config: LinuxOsConfig,
    }
}

wire! {
    AksKubernetes {
        #[serde(deserialize_with = "or_default")]
        pub node_labels: BTreeMap<String, String>,
        #[serde(deserialize_with = "or_default")]
        pub orchestrator_version: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub kubelet_config: Option<KubeletConfig>,
        #[serde(deserialize_with = "or_default")]
        pub node_initialization_taints: Vec<String>,
        #[serde(deserialize_with = "or_default")]
        pub node_taints: Vec<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub max_pods: Option<i32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub artifact_streaming_profile: Option<Switch>,
    }
}

wire! {
    /// Something that is on or off.
    Switch {
        pub enabled: bool,
    }
}

wire! {
    AksSecurity {
        #[serde(deserialize_with = "or_default")]
        pub ssh_access: String,
        #[serde(deserialize_with = "or_default")]
        pub enable_encryption_at_host: bool,
        #[serde(rename = "enableVTPM", deserialize_with = "or_default")]
        pub enable_vtpm: bool,
        #[serde(deserialize_with = "or_default")]
        pub enable_secure_boot: bool,
    }
}

wire! {
    /// What AKS says of a machine.
    AksStatus {
        pub creation_timestamp: Option<Timestamp>,
        #[serde(deserialize_with = "or_default")]
        pub drift_action: String,
        #[serde(deserialize_with = "or_default")]
        pub drift_reason: String,
        pub provisioning_error: Option<AksError>,
    }
}

wire! {
    AksError {
        #[serde(deserialize_with = "or_default")]
        pub code: String,
        #[serde(deserialize_with = "or_default")]
        pub message: String,
        #[serde(deserialize_with = "or_default")]
        pub details: Vec<AksError>,
    }
}

wire! {
    /// An agent pool.
    AgentPool {
        pub properties: AgentPoolProperties,
    }
}

wire! {
    AgentPoolProperties {
        #[serde(deserialize_with = "or_default")]
        pub mode: String,
    }
}

wire! {
    /// Which machines are to go.
    DeleteMachines {
        pub machine_names: Vec<String>,
    }
}

wire! {
    /// A kubelet's settings.
    KubeletConfig {
        #[serde(skip_serializing_if = "Option::is_none")]
        pub cpu_manager_policy: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub cpu_cfs_quota: Option<bool>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub cpu_cfs_quota_period: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub image_gc_high_threshold: Option<i32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub image_gc_low_threshold: Option<i32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub topology_manager_policy: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub allowed_unsafe_sysctls: Option<Vec<String>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub fail_swap_on: Option<bool>,
        #[serde(rename = "containerLogMaxSizeMB", skip_serializing_if = "Option::is_none")]
        pub container_log_max_size_mb: Option<i32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub container_log_max_files: Option<i32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub pod_max_pids: Option<i32>,
    }
}

wire! {
    /// Settings of Linux.
    LinuxOsConfig {
        #[serde(skip_serializing_if = "Map::is_empty")]
        pub sysctls: Map<String, Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub transparent_huge_page_enabled: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub transparent_huge_page_defrag: Option<String>,
        #[serde(rename = "swapFileSizeMB", skip_serializing_if = "Option::is_none")]
        pub swap_file_size_mb: Option<i32>,
    }
}

wire! {
    /// The DNS cache of a node.
    LocalDnsProfile {
        #[serde(skip_serializing_if = "Option::is_none")]
        pub mode: Option<String>,
        #[serde(rename = "vnetDNSOverrides", skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "or_default")]
        pub vnet_dns_overrides: BTreeMap<String, LocalDnsOverride>,
        #[serde(rename = "kubeDNSOverrides", skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "or_default")]
        pub kube_dns_overrides: BTreeMap<String, LocalDnsOverride>,
    }
}

wire! {
    LocalDnsOverride {
        #[serde(skip_serializing_if = "Option::is_none")]
        pub query_logging: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub protocol: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub forward_destination: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub forward_policy: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub max_concurrent: Option<i32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub cache_duration_in_seconds: Option<i32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub serve_stale_duration_in_seconds: Option<i32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub serve_stale: Option<String>,
    }
}

wire! {
    /// What the node bootstrapping service is told of a node.
    ProvisionValues {
        pub provision_profile: ProvisionProfile,
        pub provision_helper_values: ProvisionHelperValues,
    }
}

wire! {
    /// A node; numbers stand for the choices of a service of AKS.
    ProvisionProfile {
        pub name: String,
        pub architecture: String,
        pub os_type: i32,
        pub os_sku: i32,
        pub vm_size: String,
        pub distro: String,
        pub custom_node_labels: BTreeMap<String, String>,
        pub orchestrator_version: String,
        #[serde(rename = "vnetSubnetID")]
        pub vnet_subnet_id: String,
        pub vnet_cidrs: Vec<String>,
        pub storage_profile: String,
        pub node_initialization_taints: Vec<String>,
        pub node_taints: Vec<String>,
        pub security_profile: ProvisionSecurity,
        pub max_pods: i32,
        pub mode: i32,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub custom_kubelet_config: Option<KubeletConfig>,
        #[serde(rename = "customLinuxOSConfig", skip_serializing_if = "Option::is_none")]
        pub custom_linux_os_config: Option<LinuxOsConfig>,
        #[serde(rename = "enableFIPS")]
        pub enable_fips: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub gpu_profile: Option<ProvisionGpu>,
        pub artifact_streaming_profile: Switch,
        #[serde(rename = "localDNSProfile", skip_serializing_if = "Option::is_none")]
        pub local_dns_profile: Option<LocalDnsProfile>,
    }
}

wire! {
    ProvisionSecurity {
        pub ssh_access: i32,
        #[serde(rename = "enableVTPM", skip_serializing_if = "Option::is_none")]
        pub enable_vtpm: Option<bool>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub enable_secure_boot: Option<bool>,
    }
}

wire! {
    ProvisionGpu {
        #[serde(rename = "installGPUDriver")]
        pub install_gpu_driver: bool,
        pub driver_type: i32,
    }
}

wire! {
    ProvisionHelperValues {
        #[serde(rename = "skuCPU")]
        pub sku_cpu: f64,
        pub sku_memory: f64,
    }
}

wire! {
    /// How a node boots, with places for the bootstrap token.
    NodeBootstrapping {
        /// In base64.
        #[serde(deserialize_with = "or_default")]
        pub custom_data: String,
        #[serde(deserialize_with = "or_default")]
        pub cse: String,
    }
}
