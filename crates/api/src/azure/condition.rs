//! The conditions of an `AKSNodeClass`. It is Ready when all of them are True.

use crate::condition::set::ConditionTypes;

/// Node images were found.
pub const IMAGES_READY: &str = "ImagesReady";
/// The Kubernetes version is known.
pub const KUBERNETES_VERSION_READY: &str = "KubernetesVersionReady";
/// The subnet can be used.
pub const SUBNETS_READY: &str = "SubnetsReady";
/// The settings are consistent with the cluster.
pub const VALIDATION_SUCCEEDED: &str = "ValidationSucceeded";
/// The local DNS cache was decided on.
pub const LOCAL_DNS_READY: &str = "LocalDNSReady";

/// What Ready follows from.
pub const TYPES: ConditionTypes = ConditionTypes::ready(&[
    IMAGES_READY,
    KUBERNETES_VERSION_READY,
    SUBNETS_READY,
    VALIDATION_SUCCEEDED,
    LOCAL_DNS_READY,
]);
