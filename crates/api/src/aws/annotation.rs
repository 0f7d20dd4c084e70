//! Annotations of the AWS provider.

/// The node class' drift hash, on the class and on each NodeClaim launched from it.
pub const EC2NODECLASS_HASH: &str = "karpenter.k8s.aws/ec2nodeclass-hash";
/// The version of that hash. Hashes of different versions are not compared.
pub const EC2NODECLASS_HASH_VERSION: &str = "karpenter.k8s.aws/ec2nodeclass-hash-version";
/// `true` on a NodeClaim whose instance carries its tags.
pub const INSTANCE_TAGGED: &str = "karpenter.k8s.aws/tagged";
/// `true` on a NodeClaim whose instance carries the tag with the cluster's name, which old instances lack.
pub const CLUSTER_NAME_TAGGED: &str = "compatibility.karpenter.k8s.aws/cluster-name-tagged";
/// The instance profile a NodeClaim was launched with.
pub const INSTANCE_PROFILE: &str = "karpenter.k8s.aws/instance-profile-name";
