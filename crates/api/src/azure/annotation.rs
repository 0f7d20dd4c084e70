//! Annotations of the Azure provider.

/// The node class' drift hash, on the class and on each NodeClaim launched from it.
pub const AKSNODECLASS_HASH: &str = "karpenter.azure.com/aksnodeclass-hash";
/// The version of that hash. Hashes of different versions are not compared.
pub const AKSNODECLASS_HASH_VERSION: &str = "karpenter.azure.com/aksnodeclass-hash-version";
/// The hash of what is changed in place, such as tags.
pub const IN_PLACE_UPDATE_HASH: &str = "karpenter.azure.com/in-place-update-hash";
/// The AKS machine a NodeClaim stands for.
pub const AKS_MACHINE_RESOURCE_ID: &str = "karpenter.azure.com/aks-machine-resource-id";
