//! Label keys of the Azure provider and of AKS, as of its commit 352646f5.

/// API group, and the restricted label domain.
pub const GROUP: &str = "karpenter.azure.com";
/// Name of the AKSNodeClass.
pub const NODE_CLASS: &str = "karpenter.azure.com/aksnodeclass";
/// Virtual machine size, such as `Standard_D4s_v5`.
pub const SKU_NAME: &str = "karpenter.azure.com/sku-name";
/// Family, such as `D`.
pub const SKU_FAMILY: &str = "karpenter.azure.com/sku-family";
/// Series, such as `Ds_v5`.
pub const SKU_SERIES: &str = "karpenter.azure.com/sku-series";
/// Version of the series.
pub const SKU_VERSION: &str = "karpenter.azure.com/sku-version";
/// Number of virtual CPUs.
pub const SKU_CPU: &str = "karpenter.azure.com/sku-cpu";
/// Memory in MiB.
pub const SKU_MEMORY: &str = "karpenter.azure.com/sku-memory";
/// AKS's copy of [`SKU_CPU`].
pub const AKS_SKU_CPU: &str = "kubernetes.azure.com/sku-cpu";
/// AKS's copy of [`SKU_MEMORY`].
pub const AKS_SKU_MEMORY: &str = "kubernetes.azure.com/sku-memory";
/// Whether accelerated networking is on.
pub const SKU_NETWORKING_ACCELERATED: &str = "karpenter.azure.com/sku-networking-accelerated";
/// Whether premium disks can be attached.
pub const SKU_STORAGE_PREMIUM_CAPABLE: &str = "karpenter.azure.com/sku-storage-premium-capable";
/// Largest ephemeral system disk in GB.
pub const SKU_STORAGE_EPHEMERAL_OS_MAX_SIZE: &str = "karpenter.azure.com/sku-storage-ephemeralos-maxsize";
/// Whether ultra disks can be attached.
pub const SKU_STORAGE_ULTRA_SSD: &str = "karpenter.azure.com/sku-storage-ultra-ssd";
/// Name of the GPU.
pub const SKU_GPU_NAME: &str = "karpenter.azure.com/sku-gpu-name";
/// Maker of the GPU.
pub const SKU_GPU_MANUFACTURER: &str = "karpenter.azure.com/sku-gpu-manufacturer";
/// Number of GPUs.
pub const SKU_GPU_COUNT: &str = "karpenter.azure.com/sku-gpu-count";
/// Whether the machine sits in one zone or anywhere in the region.
pub const PLACEMENT_SCOPE: &str = "karpenter.azure.com/placement-scope";
/// Generations of Hyper-V whose images the size boots. For our own use, and not to be set.
pub const SKU_HYPERV_GENERATION: &str = "karpenter.azure.com/sku-hyperv-generation";
/// Managed resource group of the cluster.
pub const AKS_CLUSTER: &str = "kubernetes.azure.com/cluster";
/// Whether system pods may run here: system or user.
pub const AKS_MODE: &str = "kubernetes.azure.com/mode";
/// AKS's older word for the capacity type: regular or spot.
pub const AKS_SCALE_SET_PRIORITY: &str = "kubernetes.azure.com/scalesetpriority";
/// AKS's word for the capacity type: regular or spot.
pub const AKS_PRIORITY: &str = "kubernetes.azure.com/priority";
/// Operating system family.
pub const AKS_OS_SKU: &str = "kubernetes.azure.com/os-sku";
/// The image family as the node class writes it.
pub const AKS_OS_SKU_REQUESTED: &str = "kubernetes.azure.com/os-sku-requested";
/// The image family that came of it.
pub const AKS_OS_SKU_EFFECTIVE: &str = "kubernetes.azure.com/os-sku-effective";
/// The client ID of the identity that the kubelet uses.
pub const AKS_KUBELET_IDENTITY_CLIENT_ID: &str = "kubernetes.azure.com/kubelet-identity-client-id";
/// `true` on nodes with FIPS cryptography.
pub const AKS_FIPS_ENABLED: &str = "kubernetes.azure.com/fips_enabled";
/// Set by users of Cilium.
pub const AKS_EBPF_DATAPLANE: &str = "kubernetes.azure.com/ebpf-dataplane";
/// Asked for by Cilium.
pub const AKS_EBPF_HOST_ROUTING: &str = "kubernetes.azure.com/ebpf-host-routing";
/// Asked for by Azure CNI.
pub const AKS_NETWORK_POLICY: &str = "kubernetes.azure.com/network-policy";
/// Asked for by AKS's own workloads.
pub const AKS_HOSTED_VM: &str = "kubernetes.azure.com/hostedvm";
/// AKS's own, never to be set.
pub const LEGACY_AGENT_POOL: &str = "agentpool";
/// AKS's own, never to be set.
pub const LEGACY_STORAGE_PROFILE: &str = "storageprofile";
/// AKS's own, never to be set.
pub const LEGACY_STORAGE_TIER: &str = "storagetier";
/// AKS's own, never to be set.
pub const LEGACY_ACCELERATOR: &str = "accelerator";
/// The disk driver's word for the zone.
pub const DISK_CSI_ZONE: &str = "topology.disk.csi.azure.com/zone";
/// The zone of a machine that is in no zone.
pub const REGIONAL_ZONE: &str = "0";

/// Keys requirements may use in addition to core's.
pub const WELL_KNOWN: &[&str] = &[
    SKU_NAME,
    SKU_FAMILY,
    SKU_SERIES,
    SKU_VERSION,
    SKU_CPU,
    SKU_MEMORY,
    AKS_SKU_CPU,
    AKS_SKU_MEMORY,
    SKU_NETWORKING_ACCELERATED,
    SKU_STORAGE_PREMIUM_CAPABLE,
    SKU_STORAGE_EPHEMERAL_OS_MAX_SIZE,
    SKU_STORAGE_ULTRA_SSD,
    SKU_GPU_NAME,
    SKU_GPU_MANUFACTURER,
    SKU_GPU_COUNT,
    PLACEMENT_SCOPE,
    AKS_CLUSTER,
    AKS_MODE,
    AKS_SCALE_SET_PRIORITY,
    AKS_PRIORITY,
    AKS_OS_SKU,
    AKS_FIPS_ENABLED,
];
