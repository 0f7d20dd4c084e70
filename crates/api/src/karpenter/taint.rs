//! Node taints as users write them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{open_enum::open_enum, pattern::QUALIFIED_NAME, time::Time};

open_enum! {
    /// What a taint does to pods that do not tolerate it.
    TaintEffect {
        /// New pods stay away.
        NoSchedule = "NoSchedule",
        /// New pods stay away if they can.
        PreferNoSchedule = "PreferNoSchedule",
        /// New pods stay away and running pods are evicted.
        NoExecute = "NoExecute",
    }
}

/// A mark on a node that keeps pods away unless they tolerate it.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Taint {
    /// What happens to pods that do not tolerate the taint: NoSchedule, PreferNoSchedule or NoExecute.
    pub effect: TaintEffect,
    /// Key tolerations refer to.
    #[schemars(extend("minLength" = 1, "pattern" = QUALIFIED_NAME))]
    pub key: String,
    /// When the taint was put on the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_added: Option<Time>,
    /// Value tolerations compare with.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("pattern" = QUALIFIED_NAME))]
    pub value: String,
}

impl Taint {
    /// A taint without a value.
    pub fn new(key: &str, effect: TaintEffect) -> Self {
        Self {
            effect,
            key: key.to_owned(),
            time_added: None,
            value: String::new(),
        }
    }

    /// Whether two taints are the same mark: Karpenter compares key and effect and ignores the value.
    pub fn matches(&self, other: &Self) -> bool {
        self.key == other.key && self.effect == other.effect
    }
}
