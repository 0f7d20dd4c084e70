//! Finalizers: what must happen before an object may go.

/// On NodeClaims and Nodes: the machine must be gone first.
pub const TERMINATION: &str = "karpenter.sh/termination";
/// On EC2NodeClasses: what was made for the class in AWS must be gone first.
pub const EC2NODECLASS_TERMINATION: &str = "karpenter.k8s.aws/termination";
/// On AKSNodeClasses: no claim may use the class.
pub const AKSNODECLASS_TERMINATION: &str = "karpenter.azure.com/termination";
