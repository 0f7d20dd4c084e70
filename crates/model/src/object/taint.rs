//! Taints and tolerations as they are written; matching them is the business of the `taint` module.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Text, metadata::is_unset};
use crate::taint::{TaintView, TolerationView};

/// Keeps pods off a node unless they tolerate it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Taint {
    /// What it is about.
    pub key: Text,
    /// Compared by `Equal` tolerations.
    #[serde(skip_serializing_if = "is_unset")]
    pub value: Text,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: Text,
    /// When it was put on; only for `NoExecute`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_added: Option<Timestamp>,
}

/// Accepts a taint.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Toleration {
    /// The taint's key; empty for any, with `Exists`.
    #[serde(skip_serializing_if = "is_unset")]
    pub key: Text,
    /// `Equal` (the default), `Exists`, `Lt` or `Gt`.
    #[serde(skip_serializing_if = "is_unset")]
    pub operator: Text,
    /// The operand.
    #[serde(skip_serializing_if = "is_unset")]
    pub value: Text,
    /// The taint's effect; empty for any.
    #[serde(skip_serializing_if = "is_unset")]
    pub effect: Text,
    /// For how long a `NoExecute` taint is tolerated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toleration_seconds: Option<i64>,
}

impl Taint {
    /// The taint for matching.
    pub fn view(&self) -> TaintView<'_> {
        TaintView {
            key: &self.key,
            value: &self.value,
            effect: &self.effect,
        }
    }
}

impl Toleration {
    /// The toleration for matching.
    pub fn view(&self) -> TolerationView<'_> {
        TolerationView {
            key: &self.key,
            operator: &self.operator,
            value: &self.value,
            effect: &self.effect,
        }
    }
}
