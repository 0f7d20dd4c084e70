//! Where a pod wants to be relative to nodes and to other pods, as it is written.

use serde::{Deserialize, Serialize};

use super::{LabelSelector, List, NodeSelector, NodeSelectorTerm, Text, metadata::is_unset};

/// All affinities of a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Affinity {
    /// Relative to node labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_affinity: Option<NodeAffinity>,
    /// Near other pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_affinity: Option<PodAffinity>,
    /// Away from other pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_anti_affinity: Option<PodAffinity>,
}

/// Conditions on node labels.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeAffinity {
    /// Must hold.
    #[serde(
        rename = "requiredDuringSchedulingIgnoredDuringExecution",
        skip_serializing_if = "Option::is_none"
    )]
    pub required: Option<NodeSelector>,
    /// Should hold, by weight.
    #[serde(
        rename = "preferredDuringSchedulingIgnoredDuringExecution",
        skip_serializing_if = "List::is_empty"
    )]
    pub preferred: List<PreferredSchedulingTerm>,
}

/// A wish on node labels.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PreferredSchedulingTerm {
    /// 1 to 100.
    pub weight: i32,
    /// The wish.
    pub preference: NodeSelectorTerm,
}

/// Conditions on the pods in the same topology domain; for affinity and anti-affinity alike.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodAffinity {
    /// Must hold.
    #[serde(
        rename = "requiredDuringSchedulingIgnoredDuringExecution",
        skip_serializing_if = "List::is_empty"
    )]
    pub required: List<PodAffinityTerm>,
    /// Should hold, by weight.
    #[serde(
        rename = "preferredDuringSchedulingIgnoredDuringExecution",
        skip_serializing_if = "List::is_empty"
    )]
    pub preferred: List<WeightedPodAffinityTerm>,
}

/// A wish on other pods.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WeightedPodAffinityTerm {
    /// 1 to 100.
    pub weight: i32,
    /// The wish.
    pub pod_affinity_term: PodAffinityTerm,
}

/// Which pods, within which topology.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodAffinityTerm {
    /// Picks the pods; none picks nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
    /// Namespaces by name; with no selector and no names the pod's own.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub namespaces: List<Text>,
    /// Namespaces by label; an empty selector picks all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<LabelSelector>,
    /// The node label whose values are the domains.
    pub topology_key: Text,
    /// Keys whose values on this pod narrow the selector.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub match_label_keys: List<Text>,
    /// Keys whose values on this pod are excluded by the selector.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub mismatch_label_keys: List<Text>,
}

/// How evenly pods must lie over the domains of a topology.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TopologySpreadConstraint {
    /// The largest difference of pod counts between two domains.
    pub max_skew: i32,
    /// The node label whose values are the domains.
    pub topology_key: Text,
    /// `DoNotSchedule` or `ScheduleAnyway`.
    pub when_unsatisfiable: Text,
    /// Picks the pods that are counted; none picks nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
    /// Below this many domains the least count is taken as zero.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_domains: Option<i32>,
    /// `Honor` (the default) or `Ignore`: whether only nodes that match the pod's node affinity count.
    #[serde(skip_serializing_if = "is_unset")]
    pub node_affinity_policy: Text,
    /// `Honor` or `Ignore` (the default): whether only nodes whose taints the pod tolerates count.
    #[serde(skip_serializing_if = "is_unset")]
    pub node_taints_policy: Text,
    /// Keys whose values on this pod narrow the selector.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub match_label_keys: List<Text>,
}
