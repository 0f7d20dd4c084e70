//! The Azure provider's part of the API: `AKSNodeClass` in group `karpenter.azure.com`, version `v1beta1`.
//!
//! The contract is `pkg/apis` of the repository `Azure/karpenter-provider-azure` at commit a1325bd, which has no
//! published Go module.

mod aksnodeclass;
mod hash;
mod kubelet;
mod linux_os;
mod local_dns;
mod status;

pub use aksnodeclass::{
    AKSNodeClass, AKSNodeClassSpec, ArtifactStreaming, FipsMode, Gpu, GpuMode, ImageFamily, Security, TrustedLaunch,
};
pub use hash::{AKS_NODE_CLASS_HASH_VERSION, ANNOTATION_AKS_NODE_CLASS_HASH, ANNOTATION_AKS_NODE_CLASS_HASH_VERSION};
pub use kubelet::{CpuManagerPolicy, KubeletConfiguration, TopologyManagerPolicy};
pub use linux_os::{
    LinuxOsConfiguration, SysctlConfiguration, TransparentHugePageDefrag, TransparentHugePageEnabled,
};
pub use local_dns::{
    LocalDns, LocalDnsForwardDestination, LocalDnsForwardPolicy, LocalDnsMode, LocalDnsProtocol, LocalDnsQueryLogging,
    LocalDnsServeStale, LocalDnsZoneOverride,
};
pub use status::{AKSNodeClassStatus, LocalDnsState, NodeImage};
