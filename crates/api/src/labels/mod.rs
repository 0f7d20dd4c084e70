//! Label keys with a meaning, their well-known values, and the keys of each provider.
//!
//! What may be written where is decided in [`rules`].

pub mod aws;
pub mod azure;
pub mod kwok;
pub mod rules;
pub mod syntax;

pub use self::rules::LabelRules;

/// Name of the NodePool a NodeClaim and its Node belong to.
pub const NODEPOOL: &str = "karpenter.sh/nodepool";
/// How the machine is paid for; one of the `CAPACITY_TYPE_*` values.
pub const CAPACITY_TYPE: &str = "karpenter.sh/capacity-type";
/// `"true"` on a Node whose claim and Node found each other.
pub const REGISTERED: &str = "karpenter.sh/registered";
/// `"true"` on a Node that is ready to be counted on.
pub const INITIALIZED: &str = "karpenter.sh/initialized";
/// `"true"` on a Node that brings its own taints: registration adds none.
pub const DO_NOT_SYNC_TAINTS: &str = "karpenter.sh/do-not-sync-taints";
/// Availability zone.
pub const ZONE: &str = "topology.kubernetes.io/zone";
/// Region.
pub const REGION: &str = "topology.kubernetes.io/region";
/// Instance type.
pub const INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";
/// Processor architecture; one of the `ARCH_*` values.
pub const ARCH: &str = "kubernetes.io/arch";
/// Operating system.
pub const OS: &str = "kubernetes.io/os";
/// Build of a Windows node.
pub const WINDOWS_BUILD: &str = "node.kubernetes.io/windows-build";
/// Name of the Node; never usable as a constraint.
pub const HOSTNAME: &str = "kubernetes.io/hostname";
/// Takes a Node out of cloud load balancers while it terminates.
pub const EXCLUDE_FROM_EXTERNAL_LOAD_BALANCERS: &str = "node.kubernetes.io/exclude-from-external-load-balancers";

/// Value of [`ARCH`] for x86-64.
pub const ARCH_AMD64: &str = "amd64";
/// Value of [`ARCH`] for 64-bit ARM.
pub const ARCH_ARM64: &str = "arm64";

/// Paid by the second at list price.
pub const CAPACITY_TYPE_ON_DEMAND: &str = "on-demand";
/// Cheaper, and the cloud may take it back.
pub const CAPACITY_TYPE_SPOT: &str = "spot";
/// Paid for in advance.
pub const CAPACITY_TYPE_RESERVED: &str = "reserved";

/// The part of a key before its first `/`; empty if there is none.
pub fn domain(key: &str) -> &str {
    key.split_once('/').map_or("", |(domain, _)| domain)
}

/// The key under which a NodeClaim and its Node carry the name of their node class. A Node with this key is ours.
pub fn node_class_key(group: &str, kind: &str) -> String {
    format!("{group}/{}", kind.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_domain_is_what_stands_before_the_first_slash() {
        let cases = [
            ("karpenter.sh/nodepool", "karpenter.sh"),
            ("a/b/c", "a"),
            ("team", ""),
            ("/x", ""),
        ];
        for (key, expected) in cases {
            assert_eq!(domain(key), expected, "{key}");
        }
    }

    #[test]
    fn a_node_class_gives_its_name_to_a_label() {
        assert_eq!(
            node_class_key("karpenter.k8s.aws", "EC2NodeClass"),
            "karpenter.k8s.aws/ec2nodeclass"
        );
    }
}
