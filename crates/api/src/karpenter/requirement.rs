//! Constraints on node labels, as NodePools, NodeClaims and NodeOverlays write them.
//!
//! Which keys are forbidden depends on the kind and the provider and is added by `crds::label_rules`.

use kube::core::Rule;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    open_enum::open_enum,
    pattern::{LABEL_VALUE, QUALIFIED_NAME, without_width},
};

open_enum! {
    /// How a key relates to values.
    Operator {
        /// The label has one of the values.
        In = "In",
        /// The label is absent or has none of the values.
        NotIn = "NotIn",
        /// The label is present.
        Exists = "Exists",
        /// The label is absent.
        DoesNotExist = "DoesNotExist",
        /// The label is an integer greater than the value.
        Gt = "Gt",
        /// The label is an integer less than the value.
        Lt = "Lt",
        /// The label is an integer of at least the value.
        Gte = "Gte",
        /// The label is an integer of at most the value.
        Lte = "Lte",
    }
}

/// A constraint on one node label.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeSelectorRequirement {
    /// Label key the constraint is about.
    #[schemars(extend("maxLength" = 316, "pattern" = QUALIFIED_NAME))]
    pub key: String,
    /// How the label relates to the values: In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte or Lte.
    pub operator: Operator,
    /// Values the operator works on: at least one for In and NotIn, none for Exists and DoesNotExist, and exactly one
    /// integer for Gt, Lt, Gte and Lte.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("maxLength" = 63, "pattern" = LABEL_VALUE, "x-kubernetes-list-type" = "atomic"))]
    pub values: Vec<String>,
}

/// A constraint on one node label that may also ask for variety.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeSelectorRequirementWithMinValues {
    /// Label key the constraint is about.
    #[schemars(extend("maxLength" = 316, "pattern" = QUALIFIED_NAME))]
    pub key: String,
    /// How the label relates to the values: In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte or Lte.
    pub operator: Operator,
    /// Values the operator works on: at least one for In, none for Exists and DoesNotExist, and exactly one integer
    /// for Gt, Lt, Gte and Lte.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("maxLength" = 63, "pattern" = LABEL_VALUE, "x-kubernetes-list-type" = "atomic"))]
    pub values: Vec<String>,
    /// Alpha. How many different values of this label the instance types of a launch must offer at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 50), transform = without_width)]
    pub min_values: Option<i64>,
}

/// Of a list of requirements: an In admits something.
pub(super) fn in_has_a_value() -> Rule {
    Rule::new("self.all(x, x.operator == 'In' ? x.values.size() != 0 : true)")
        .message("requirements with operator 'In' must have a value defined")
}

/// Of a list of requirements: a NotIn excludes something.
pub(super) fn not_in_has_a_value() -> Rule {
    Rule::new("self.all(x, x.operator == 'NotIn' ? x.values.size() != 0 : true)")
        .message("requirements with operator 'NotIn' must have a value defined")
}

/// Of a list of requirements: a comparison is with one number. Upstream words the message in two ways.
pub(super) fn comparison_has_a_number(message: &'static str) -> Rule {
    Rule::new("self.all(x, (x.operator == 'Gt' || x.operator == 'Lt' || x.operator == 'Gte' || x.operator == 'Lte') ? (x.values.size() == 1 && int(x.values[0]) >= 0) : true)")
        .message(message)
}

/// Of a list of requirements: an In lists as much variety as it asks for.
pub(super) fn in_has_min_values() -> Rule {
    Rule::new("self.all(x, (x.operator == 'In' && has(x.minValues)) ? x.values.size() >= x.minValues : true)")
        .message("requirements with 'minValues' must have at least that many values specified in the 'values' field")
}
