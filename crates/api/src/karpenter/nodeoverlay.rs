//! `NodeOverlay`: corrections to what the provider says about instance types.

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use super::{
    NodeSelectorRequirement,
    requirement::{comparison_has_a_number, in_has_a_value, not_in_has_a_value},
};
use crate::{condition::Condition, quantity::ResourceList};

/// Which instance types are corrected, and how.
#[derive(Clone, Debug, PartialEq, Eq, CustomResource, KubeSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "karpenter.sh",
    version = "v1alpha1",
    kind = "NodeOverlay",
    plural = "nodeoverlays",
    shortname = "overlays",
    category = "karpenter",
    status = "NodeOverlayStatus",
    derive = "PartialEq",
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Weight", type_ = "integer", json_path = ".spec.weight", priority = 1),
    doc = "Changes the price or adds extended resources of matching instance types before they are chosen from."
)]
#[x_kube(
    validation = Rule::new("!has(self.price) || !has(self.priceAdjustment)")
        .message("cannot set both 'price' and 'priceAdjustment'")
)]
pub struct NodeOverlaySpec {
    /// Extended resources the matching instance types have in addition. cpu, memory, ephemeral-storage and pods
    /// cannot be changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(
        validation = Rule::new("self.all(x, !(x in ['cpu', 'memory', 'ephemeral-storage', 'pods']))")
            .message("invalid resource restricted")
    )]
    pub capacity: Option<ResourceList>,
    /// Price per hour that replaces the known one, such as 0.25. Excludes priceAdjustment.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = r"^\d+(\.\d+)?$"))]
    pub price: Option<String>,
    /// Change of the known price: an amount such as -0.5 or a percentage such as +10%. The sign is mandatory.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend(
        "pattern" = r"^(([+-]{1}(\d*\.?\d+))|(\+{1}\d*\.?\d+%)|(^(-\d{1,2}(\.\d+)?%)$)|(-100%))$"
    ))]
    pub price_adjustment: Option<String>,
    /// Constraints on labels of instance types and NodePools. The overlay applies where all of them hold.
    #[schemars(extend("maxItems" = 100))]
    #[x_kube(
        merge_strategy = ListMerge::Atomic,
        validation = not_in_has_a_value(),
        validation = in_has_a_value(),
        validation = comparison_has_a_number(
            "requirements operator 'Gt', 'Lt', 'Gte' or 'Lte' must have a single positive integer value"
        )
    )]
    pub requirements: Vec<NodeSelectorRequirement>,
    /// Where overlays disagree, the one of higher weight counts. Without it, 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10000))]
    pub weight: Option<i32>,
}

/// What was observed about the overlay.
#[derive(Clone, Debug, Default, PartialEq, Eq, KubeSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeOverlayStatus {
    /// Observed aspects of the overlay.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}
