//! One status condition: how it is written on the wire and what its schema admits.
//!
//! Types and reasons are in [`names`]; how `Ready` follows from the others is in [`set`].

pub mod names;
pub mod set;

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};

pub use self::set::{ConditionSet, ConditionTypes, Subject};
use crate::{open_enum::open_enum, time::Time};

open_enum! {
    /// Whether a condition holds.
    #[derive(Default)]
    ConditionStatus {
        /// It holds.
        True = "True",
        /// It does not hold.
        False = "False",
        /// It cannot be told yet.
        #[default]
        Unknown = "Unknown",
    }
}

/// One observed aspect of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["lastTransitionTime", "message", "reason", "status", "type"]))]
pub struct Condition {
    /// When the status last changed.
    pub last_transition_time: Time,
    /// Detail for people; may be empty.
    #[serde(default)]
    #[schemars(extend("maxLength" = 32768), transform = without_default)]
    pub message: String,
    /// The object's generation this condition was computed for.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0))]
    pub observed_generation: i64,
    /// Why the condition has its status, as one CamelCase word.
    #[serde(default)]
    #[schemars(transform = without_default, extend("maxLength" = 1024, "minLength" = 1, "pattern" = r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"))]
    pub reason: String,
    /// Whether the condition holds.
    pub status: ConditionStatus,
    /// Name of the condition.
    #[serde(rename = "type")]
    #[schemars(extend(
        "maxLength" = 316,
        "pattern" = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
    ))]
    pub type_: String,
}

/// Reading tolerates a missing text, as NodeClaims may lack it; the schema fills nothing in.
fn without_default(schema: &mut Schema) {
    schema.remove("default");
}

#[allow(clippy::trivially_copy_pass_by_ref)] // the signature serde asks for
fn is_zero(generation: &i64) -> bool {
    *generation == 0
}
