//! What a resolved machine image demands of the instance type that boots it, as the node classes' status lists it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::karpenter::Operator;

/// One demand on a label of the instance type. Kubernetes' own node selector requirement, free of Karpenter's rules.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct ImageRequirement {
    /// The label's key.
    pub key: String,
    /// How the label relates to the values.
    #[schemars(with = "String")]
    pub operator: Operator,
    /// The values meant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub values: Vec<String>,
}
