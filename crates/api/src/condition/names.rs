//! Condition types and their reasons, by the kind that carries them.
//!
//! They reach dashboards, alerts and scripts: every word is Karpenter's.

/// The root condition of every kind.
pub const READY: &str = "Ready";

/// Reason of a condition nobody has judged yet.
pub const AWAITING_RECONCILIATION: &str = "AwaitingReconciliation";
/// Message of a condition nobody has judged yet.
pub const AWAITING_RECONCILIATION_MESSAGE: &str = "object is awaiting reconciliation";
/// Reason of a root that is Unknown because a dependent is.
pub const RECONCILING_DEPENDENTS: &str = "ReconcilingDependents";
/// Reason of a root that is False because a dependent is.
pub const UNHEALTHY_DEPENDENTS: &str = "UnhealthyDependents";

/// Conditions of a NodePool.
pub mod nodepool {
    use crate::condition::set::ConditionTypes;

    /// The pool passes runtime validation.
    pub const VALIDATION_SUCCEEDED: &str = "ValidationSucceeded";
    /// The node class exists and is Ready.
    pub const NODE_CLASS_READY: &str = "NodeClassReady";
    /// Nodes of the pool launch and register. Does not enter Ready.
    pub const NODE_REGISTRATION_HEALTHY: &str = "NodeRegistrationHealthy";

    /// Reason of [`VALIDATION_SUCCEEDED`].
    pub const NODEPOOL_VALIDATION_FAILED: &str = "NodePoolValidationFailed";
    /// Reason of [`NODE_CLASS_READY`].
    pub const NODE_CLASS_NOT_FOUND: &str = "NodeClassNotFound";
    /// Reason of [`NODE_CLASS_READY`].
    pub const NODE_CLASS_TERMINATING: &str = "NodeClassTerminating";
    /// Reason of [`NODE_CLASS_READY`].
    pub const NODE_CLASS_READINESS_UNKNOWN: &str = "NodeClassReadinessUnknown";
    /// Reason of [`NODE_REGISTRATION_HEALTHY`].
    pub const REGISTRATION_FAILED: &str = "RegistrationFailed";

    /// What Ready of a NodePool follows from.
    pub const TYPES: ConditionTypes = ConditionTypes::ready(&[VALIDATION_SUCCEEDED, NODE_CLASS_READY]);
}

/// Conditions of a NodeClaim.
pub mod nodeclaim {
    use crate::condition::set::ConditionTypes;

    /// The machine was asked for and granted.
    pub const LAUNCHED: &str = "Launched";
    /// The Node joined the cluster.
    pub const REGISTERED: &str = "Registered";
    /// The Node is ready to be counted on.
    pub const INITIALIZED: &str = "Initialized";
    /// Consolidation may consider the node.
    pub const CONSOLIDATABLE: &str = "Consolidatable";
    /// The node no longer matches its pool or class.
    pub const DRIFTED: &str = "Drifted";
    /// The node has no pods left to evict.
    pub const DRAINED: &str = "Drained";
    /// The node's volumes are detached.
    pub const VOLUMES_DETACHED: &str = "VolumesDetached";
    /// The provider was told to end the machine.
    pub const INSTANCE_TERMINATING: &str = "InstanceTerminating";
    /// The machine is what was asked for.
    pub const CONSISTENT_STATE_FOUND: &str = "ConsistentStateFound";
    /// Why the node is being disrupted.
    pub const DISRUPTION_REASON: &str = "DisruptionReason";
    /// Where a reboot stands.
    pub const REBOOTING: &str = "Rebooting";

    /// Reason of [`LAUNCHED`].
    pub const LAUNCH_FAILED: &str = "LaunchFailed";
    /// Reason of [`REGISTERED`] and [`INITIALIZED`].
    pub const NODE_NOT_FOUND: &str = "NodeNotFound";
    /// Reason of [`REGISTERED`].
    pub const MULTIPLE_NODES_FOUND: &str = "MultipleNodesFound";
    /// Reason of [`REGISTERED`].
    pub const REGISTRATION_HOOK_PENDING: &str = "RegistrationHookPending";
    /// Reason of [`INITIALIZED`].
    pub const NODE_NOT_READY: &str = "NodeNotReady";
    /// Reason of [`INITIALIZED`].
    pub const STARTUP_TAINTS_EXIST: &str = "StartupTaintsExist";
    /// Reason of [`INITIALIZED`].
    pub const KNOWN_EPHEMERAL_TAINTS_EXIST: &str = "KnownEphemeralTaintsExist";
    /// Reason of [`INITIALIZED`].
    pub const RESOURCE_NOT_REGISTERED: &str = "ResourceNotRegistered";
    /// Reason of [`INITIALIZED`].
    pub const DRA_DRIVER_POOLS_NOT_PUBLISHED: &str = "DRADriverPoolsNotPublished";
    /// Reason of [`INITIALIZED`] while a reboot is under way.
    pub const REASON_REBOOTING: &str = "Rebooting";
    /// Reason of [`DRIFTED`].
    pub const NODEPOOL_DRIFTED: &str = "NodePoolDrifted";
    /// Reason of [`DRIFTED`].
    pub const REQUIREMENTS_DRIFTED: &str = "RequirementsDrifted";
    /// Reason of [`DRIFTED`].
    pub const INSTANCE_TYPE_NOT_FOUND: &str = "InstanceTypeNotFound";
    /// Reason of [`DRAINED`].
    pub const DRAINING: &str = "Draining";
    /// Reason of [`VOLUMES_DETACHED`].
    pub const AWAITING_VOLUME_DETACHMENT: &str = "AwaitingVolumeDetachment";
    /// Reason of [`VOLUMES_DETACHED`].
    pub const TERMINATION_GRACE_PERIOD_ELAPSED: &str = "TerminationGracePeriodElapsed";
    /// Reason of [`CONSISTENT_STATE_FOUND`].
    pub const CONSISTENCY_CHECK_FAILED: &str = "ConsistencyCheckFailed";
    /// First reason of [`REBOOTING`]: asked for.
    pub const REBOOT_REQUESTED: &str = "RebootRequested";
    /// Second reason of [`REBOOTING`]: the provider was told.
    pub const REBOOT_ISSUED: &str = "RebootIssued";
    /// Last reason of [`REBOOTING`] if the node came back.
    pub const REBOOT_SUCCEEDED: &str = "RebootSucceeded";
    /// Last reason of [`REBOOTING`] if it did not.
    pub const REBOOT_FAILED: &str = "RebootFailed";

    /// What Ready of a NodeClaim follows from.
    pub const TYPES: ConditionTypes = ConditionTypes::ready(&[LAUNCHED, REGISTERED, INITIALIZED]);
}

/// Conditions of a NodeOverlay.
pub mod nodeoverlay {
    use crate::condition::set::ConditionTypes;

    /// The overlay passes runtime validation and no other overlay contradicts it.
    pub const VALIDATION_SUCCEEDED: &str = "ValidationSucceeded";

    /// Reason of [`VALIDATION_SUCCEEDED`].
    pub const RUNTIME_VALIDATION: &str = "RuntimeValidation";
    /// Reason of [`VALIDATION_SUCCEEDED`].
    pub const CONFLICT: &str = "Conflict";

    /// What Ready of a NodeOverlay follows from.
    pub const TYPES: ConditionTypes = ConditionTypes::ready(&[VALIDATION_SUCCEEDED]);
}

/// Conditions of a CapacityBuffer, which has no root.
pub mod capacity_buffer {
    /// The shape and number of the buffer's pods are known.
    pub const READY_FOR_PROVISIONING: &str = "ReadyForProvisioning";
    /// The buffer's room is there.
    pub const PROVISIONING: &str = "Provisioning";
    /// A quota keeps the buffer smaller. Declared by upstream, never written.
    pub const LIMITED_BY_QUOTAS: &str = "LimitedByQuotas";

    /// Reason of [`READY_FOR_PROVISIONING`].
    pub const RESOLVED: &str = "Resolved";
    /// Reason of [`READY_FOR_PROVISIONING`].
    pub const SCALABLE_REF_NOT_FOUND: &str = "ScalableRefNotFound";
    /// Reason of [`READY_FOR_PROVISIONING`].
    pub const POD_TEMPLATE_NOT_FOUND: &str = "PodTemplateNotFound";
    /// Reason of [`READY_FOR_PROVISIONING`].
    pub const RESOLUTION_FAILED: &str = "ResolutionFailed";
    /// Reason of [`PROVISIONING`].
    pub const FITS_EXISTING_CAPACITY: &str = "FitsExistingCapacity";
    /// Reason of [`PROVISIONING`].
    pub const REQUIRES_NEW_CAPACITY: &str = "RequiresNewCapacity";
    /// Reason of [`PROVISIONING`].
    pub const NOT_READY_FOR_PROVISIONING: &str = "NotReadyForProvisioning";
    /// Reason of [`PROVISIONING`].
    pub const BUFFER_EMPTY: &str = "BufferEmpty";
}

/// Conditions of a KWOKNodeClass.
pub mod kwok_node_class {
    use crate::condition::set::ConditionTypes;

    /// Ready of a KWOKNodeClass follows from nothing.
    pub const TYPES: ConditionTypes = ConditionTypes::ready(&[]);
}
