//! Annotation keys with a meaning.

/// Keeps a pod's node, or the node itself, from voluntary disruption: `"true"`, or on pods also a duration.
pub const DO_NOT_DISRUPT: &str = "karpenter.sh/do-not-disrupt";
/// `"true"` keeps a node from repair.
pub const DO_NOT_REPAIR: &str = "karpenter.sh/do-not-repair";
/// What evicting a pod costs, as a user sees it; an int32.
pub const DISRUPTION_COST: &str = "karpenter.sh/disruption-cost";
/// What deleting a pod costs, as its ReplicaSet sees it; an int32.
pub const POD_DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
/// Drift hash of the NodePool's template.
pub const NODEPOOL_HASH: &str = "karpenter.sh/nodepool-hash";
/// Version of the algorithm behind [`NODEPOOL_HASH`]; hashes of different versions are not compared.
pub const NODEPOOL_HASH_VERSION: &str = "karpenter.sh/nodepool-hash-version";
/// When the last pod must be gone from a terminating node; RFC 3339.
pub const NODECLAIM_TERMINATION_TIMESTAMP: &str = "karpenter.sh/nodeclaim-termination-timestamp";
/// Whether the claim was made with fewer values than its pool's minValues.
pub const NODECLAIM_MIN_VALUES_RELAXED: &str = "karpenter.sh/nodeclaim-min-values-relaxed";
/// Boot id of the node before a reboot was asked for.
pub const REBOOT_PRE_BOOT_ID: &str = "karpenter.sh/reboot-pre-boot-id";
/// How long draining before a reboot may take, in Go's form.
pub const REBOOT_TERMINATION_GRACE_PERIOD: &str = "karpenter.sh/reboot-termination-grace-period";
/// DRA drivers the claim's pods need, sorted and joined by commas.
pub const REQUESTED_DRA_DRIVERS: &str = "karpenter.sh/requested-dra-drivers";
/// `"true"` on a claim whose price came from a NodeOverlay.
pub const PRICE_OVERLAY_APPLIED: &str = "karpenter.sh/price-overlay-applied";
/// `"true"` on a claim whose capacity came from a NodeOverlay.
pub const CAPACITY_OVERLAY_APPLIED: &str = "karpenter.sh/capacity-overlay-applied";
/// `"true"` on the virtual pods that stand for a CapacityBuffer; never stored.
pub const CAPACITY_BUFFER_FAKE_POD: &str = "karpenter.sh/capacity-buffer-fake-pod";
/// CapacityBuffer a virtual pod stands for.
pub const CAPACITY_BUFFER_NAME: &str = "karpenter.sh/capacity-buffer-name";
/// Namespace of that CapacityBuffer.
pub const CAPACITY_BUFFER_NAMESPACE: &str = "karpenter.sh/capacity-buffer-namespace";

/// The plan a claim was made in; claims of one plan are released together. Ours: upstream passes it by.
pub const PLAN: &str = "dovetail.dev/plan";
/// `last` on a claim whose node is released once the pods of its plan had their chance on the other nodes. Ours.
pub const RELEASE: &str = "dovetail.dev/release";
/// How often the cloud was asked to launch a claim: a launch that is repeated under the same number is the same launch. Ours.
pub const LAUNCH_ATTEMPT: &str = "dovetail.dev/launch-attempt";
/// On a claim, and on events: the decision that made it, or that they tell of. `dovetail why` takes it. Ours.
pub const DECISION: &str = "dovetail.dev/decision";
/// On a NodePool: until when nothing of it is disrupted, or any word for until it is taken away. Ours.
pub const PAUSE: &str = "dovetail.dev/pause";
/// Beside [`PAUSE`]: why. Ours.
pub const PAUSE_REASON: &str = "dovetail.dev/pause-reason";

/// Keys of the AWS provider.
pub mod aws {
    /// Drift hash of the EC2NodeClass.
    pub const EC2NODECLASS_HASH: &str = "karpenter.k8s.aws/ec2nodeclass-hash";
    /// Version of the algorithm behind [`EC2NODECLASS_HASH`].
    pub const EC2NODECLASS_HASH_VERSION: &str = "karpenter.k8s.aws/ec2nodeclass-hash-version";
    /// `"true"` on a claim whose instance carries its tags.
    pub const TAGGED: &str = "karpenter.k8s.aws/tagged";
    /// `"true"` on a claim whose instance carries the cluster's name.
    pub const CLUSTER_NAME_TAGGED: &str = "compatibility.karpenter.k8s.aws/cluster-name-tagged";
    /// Instance profile the node was launched with.
    pub const INSTANCE_PROFILE_NAME: &str = "karpenter.k8s.aws/instance-profile-name";
}

/// Keys of the Azure provider.
pub mod azure {
    /// Drift hash of the AKSNodeClass.
    pub const AKSNODECLASS_HASH: &str = "karpenter.azure.com/aksnodeclass-hash";
    /// Version of the algorithm behind [`AKSNODECLASS_HASH`].
    pub const AKSNODECLASS_HASH_VERSION: &str = "karpenter.azure.com/aksnodeclass-hash-version";
    /// Hash of what can change on a running machine.
    pub const IN_PLACE_UPDATE_HASH: &str = "karpenter.azure.com/in-place-update-hash";
    /// The AKS machine behind a claim.
    pub const AKS_MACHINE_RESOURCE_ID: &str = "karpenter.azure.com/aks-machine-resource-id";
}
