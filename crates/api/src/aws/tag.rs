//! Which EC2 tags belong to the controller, so that users may not set them.

/// Tags with a fixed key that the controller sets itself.
const RESTRICTED: [&str; 4] = [
    "karpenter.sh/nodepool",
    "eks:eks-cluster-name",
    "karpenter.k8s.aws/ec2nodeclass",
    "karpenter.sh/nodeclaim",
];

/// Whether a tag key is one of the controller's. The schema refuses these keys too, and more broadly; this is the check
/// the controller makes before it launches.
pub fn is_restricted_tag(key: &str) -> bool {
    RESTRICTED.contains(&key) || key.strip_prefix("kubernetes.io/cluster/").is_some_and(is_cluster_name)
}

/// `[0-9A-Za-z][A-Za-z0-9\-_]*`
fn is_cluster_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_the_controller_sets_are_restricted_and_their_neighbours_are_not() {
        let cases = [
            ("karpenter.sh/nodepool", true),
            ("karpenter.sh/nodeclaim", true),
            ("karpenter.k8s.aws/ec2nodeclass", true),
            ("eks:eks-cluster-name", true),
            ("kubernetes.io/cluster/my-cluster_1", true),
            ("kubernetes.io/cluster/", false),
            ("kubernetes.io/cluster/-x", false),
            ("kubernetes.io/cluster/a.b", false),
            ("karpenter.sh/discovery", false),
            ("Name", false),
        ];
        for (key, expected) in cases {
            assert_eq!(is_restricted_tag(key), expected, "{key}");
        }
    }
}
