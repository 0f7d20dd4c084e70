//! Label keys of the kwok provider.

/// API group, and the restricted label domain.
pub const GROUP: &str = "karpenter.kwok.sh";
/// Name of the KWOKNodeClass.
pub const NODE_CLASS: &str = "karpenter.kwok.sh/kwoknodeclass";
/// Size, such as `4x`.
pub const INSTANCE_SIZE: &str = "karpenter.kwok.sh/instance-size";
/// Family: c, s or m.
pub const INSTANCE_FAMILY: &str = "karpenter.kwok.sh/instance-family";
/// Number of virtual CPUs.
pub const INSTANCE_CPU: &str = "karpenter.kwok.sh/instance-cpu";
/// Memory in bytes.
pub const INSTANCE_MEMORY: &str = "karpenter.kwok.sh/instance-memory";
/// Marks a Node as simulated.
pub const NODE: &str = "kwok.x-k8s.io/node";
/// Value of [`NODE`].
pub const NODE_FAKE: &str = "fake";
/// Price per hour, for node viewers.
pub const NODE_VIEWER_PRICE: &str = "eks-node-viewer/instance-price";
/// Group of nodes that fail together.
pub const PARTITION: &str = "kwok-partition";

/// Keys requirements may use in addition to core's.
pub const WELL_KNOWN: &[&str] = &[INSTANCE_SIZE, INSTANCE_FAMILY, INSTANCE_CPU, INSTANCE_MEMORY];
