//! The Azure provider's part of the API: `AKSNodeClass` in group `karpenter.azure.com`, version `v1beta1`.
//!
//! The contract is `pkg/apis` of the repository `Azure/karpenter-provider-azure` at commit 352646f5, which has no
//! published Go module.

mod aksnodeclass;
pub mod condition;
mod hash;
mod kubelet;
mod linux_os;
mod local_dns;
mod status;
mod versions;

pub use aksnodeclass::{
    AKSNodeClass, AKSNodeClassSpec, ArtifactStreaming, FipsMode, Gpu, GpuMode, ImageFamily, Security, TrustedLaunch,
};
pub use hash::AKSNODECLASS_HASH_VERSION;
pub use kubelet::{CpuManagerPolicy, KubeletConfiguration, TopologyManagerPolicy};
pub use linux_os::{LinuxOsConfiguration, SysctlConfiguration, TransparentHugePageDefrag, TransparentHugePageEnabled};
pub use local_dns::{
    LocalDns, LocalDnsForwardDestination, LocalDnsForwardPolicy, LocalDnsMode, LocalDnsProtocol, LocalDnsQueryLogging,
    LocalDnsServeStale, LocalDnsZoneOverride,
};
pub use status::{AKSNodeClassStatus, LocalDnsState, NodeImage, StaleStatus};
pub(crate) use versions::serve_v1alpha2;
