//! What an `EC2NodeClass`'s selectors resolved to, and the conditions its readiness follows from.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::InstanceMatchCriteria;
use crate::{condition::Condition, image_requirement::ImageRequirement, open_enum::open_enum, time::Time};

/// What the selectors resolved to.
#[derive(Clone, Debug, Default, PartialEq, Eq, KubeSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EC2NodeClassStatus {
    /// Subnets found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subnets: Vec<Subnet>,
    /// Security groups found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub security_groups: Vec<SecurityGroup>,
    /// Capacity reservations found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capacity_reservations: Vec<CapacityReservation>,
    /// Machine images found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub amis: Vec<Ami>,
    /// The instance profile in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_profile: Option<String>,
    /// Observed aspects of the class.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// A subnet nodes can launch into.
#[derive(Clone, Debug, Default, PartialEq, Eq, KubeSchema, Serialize, Deserialize)]
pub struct Subnet {
    /// The subnet's id.
    pub id: String,
    /// Its availability zone.
    pub zone: String,
    /// The zone's id, which means the same zone in every account.
    #[serde(rename = "zoneID", skip_serializing_if = "Option::is_none")]
    pub zone_id: Option<String>,
}

/// A security group nodes get.
#[derive(Clone, Debug, Default, PartialEq, Eq, KubeSchema, Serialize, Deserialize)]
pub struct SecurityGroup {
    /// The security group's id.
    pub id: String,
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// A machine image nodes can boot.
#[derive(Clone, Debug, Default, PartialEq, Eq, KubeSchema, Serialize, Deserialize)]
pub struct Ami {
    /// The image's id.
    pub id: String,
    /// Whether its owner has deprecated it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<bool>,
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What an instance type must have to boot it.
    pub requirements: Vec<ImageRequirement>,
}

/// A capacity reservation nodes can launch into.
#[derive(Clone, Debug, PartialEq, Eq, KubeSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CapacityReservation {
    /// The reservation's availability zone.
    pub availability_zone: String,
    /// When the reservation ends, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_time: Option<Time>,
    /// The reservation's id.
    #[schemars(extend("pattern" = "^cr-[0-9a-z]+$"))]
    pub id: String,
    /// Which launches it accepts.
    pub instance_match_criteria: InstanceMatchCriteria,
    /// The instance type it holds.
    pub instance_type: String,
    /// The account that owns it.
    #[serde(rename = "ownerID")]
    #[schemars(extend("pattern" = "^[0-9]{12}$"))]
    pub owner_id: String,
    /// Its kind.
    #[serde(default)]
    pub reservation_type: CapacityReservationType,
    /// Whether EC2 may take its capacity back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interruptible: Option<bool>,
    /// Whether it is about to end. Only capacity blocks ever are.
    #[serde(default)]
    pub state: CapacityReservationState,
}

open_enum! {
    /// The kind of a capacity reservation.
    #[derive(Default)]
    CapacityReservationType {
        /// Held until released.
        #[default]
        Default = "default",
        /// Bought for a fixed time.
        CapacityBlock = "capacity-block",
    }
}

open_enum! {
    /// How far a capacity reservation is in its life.
    #[derive(Default)]
    CapacityReservationState {
        /// Usable.
        #[default]
        Active = "active",
        /// EC2 is about to reclaim it.
        Expiring = "expiring",
    }
}
