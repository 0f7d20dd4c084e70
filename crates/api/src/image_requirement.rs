//! What a resolved machine image demands of the instance type that boots it, as the node classes' status lists it.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// One demand on a label of the instance type.
#[derive(Clone, Debug, Default, PartialEq, Eq, KubeSchema, Serialize, Deserialize)]
pub struct NodeSelectorRequirement {
    /// The label's key.
    pub key: String,
    /// How the label relates to `values`: In, NotIn, Exists, DoesNotExist, Gt or Lt.
    pub operator: String,
    /// The values meant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub values: Vec<String>,
}
