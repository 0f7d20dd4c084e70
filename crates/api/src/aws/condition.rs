//! The conditions of an `EC2NodeClass`. It is Ready when all of them are True.

use crate::condition::set::ConditionTypes;

/// Machine images were found.
pub const AMIS_READY: &str = "AMIsReady";
/// Subnets were found.
pub const SUBNETS_READY: &str = "SubnetsReady";
/// Security groups were found.
pub const SECURITY_GROUPS_READY: &str = "SecurityGroupsReady";
/// The instance profile exists.
pub const INSTANCE_PROFILE_READY: &str = "InstanceProfileReady";
/// EC2 would accept a launch.
pub const VALIDATION_SUCCEEDED: &str = "ValidationSucceeded";
/// The placement group was found, or none is asked for.
pub const PLACEMENT_GROUP_READY: &str = "PlacementGroupReady";
/// The capacity reservations were found, or none is asked for.
pub const CAPACITY_RESERVATIONS_READY: &str = "CapacityReservationsReady";

/// What Ready follows from when the feature gate `ReservedCapacity` is on.
pub const TYPES: ConditionTypes = ConditionTypes::ready(&[
    AMIS_READY,
    SUBNETS_READY,
    SECURITY_GROUPS_READY,
    INSTANCE_PROFILE_READY,
    VALIDATION_SUCCEEDED,
    PLACEMENT_GROUP_READY,
    CAPACITY_RESERVATIONS_READY,
]);

/// What Ready follows from when that gate is off.
pub const TYPES_WITHOUT_RESERVED_CAPACITY: ConditionTypes = ConditionTypes::ready(&[
    AMIS_READY,
    SUBNETS_READY,
    SECURITY_GROUPS_READY,
    INSTANCE_PROFILE_READY,
    VALIDATION_SUCCEEDED,
    PLACEMENT_GROUP_READY,
]);
