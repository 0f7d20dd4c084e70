//! What picks objects and nodes: label selectors and node selectors, as they are written.

use serde::{Deserialize, Serialize};

use super::{Labels, List, Text, list};

/// Picks objects by their labels. No selector and an empty one differ in the API: the former picks nothing, the
/// latter everything, so a selector is always held as an `Option`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelSelector {
    /// Labels that must have exactly these values.
    #[serde(with = "list::map", skip_serializing_if = "List::is_empty")]
    pub match_labels: Labels,
    /// Conditions that must all hold.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub match_expressions: List<LabelSelectorRequirement>,
}

/// One condition of a [`LabelSelector`].
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LabelSelectorRequirement {
    /// The label.
    pub key: Text,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`; anything else makes the selector match nothing.
    pub operator: Text,
    /// For `In` and `NotIn`.
    #[serde(default, skip_serializing_if = "List::is_empty")]
    pub values: List<Text>,
}

impl LabelSelector {
    /// True when the labels satisfy every part of the selector. An unknown operator satisfies nothing.
    pub fn matches(&self, labels: &Labels) -> bool {
        self.match_labels
            .iter()
            .all(|(key, value)| labels.get(key) == Some(value))
            && self
                .match_expressions
                .iter()
                .all(|expression| expression.matches(labels))
    }
}

impl LabelSelectorRequirement {
    fn matches(&self, labels: &Labels) -> bool {
        let value = labels.get(&self.key);
        match self.operator.as_ref() {
            "In" => value.is_some_and(|value| self.values.contains(value)),
            "NotIn" => !value.is_some_and(|value| self.values.contains(value)),
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            _ => false,
        }
    }
}

/// Picks nodes: any one of the terms suffices.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSelector {
    /// Alternatives.
    pub node_selector_terms: List<NodeSelectorTerm>,
}

/// One alternative of a [`NodeSelector`]: all of it must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSelectorTerm {
    /// Conditions on labels.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub match_expressions: List<NodeSelectorRequirement>,
    /// Conditions on fields; Karpenter refuses pods that use them.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub match_fields: List<NodeSelectorRequirement>,
}

/// One condition on a node's labels, in node affinities and NodePools alike.
///
/// The operator stays text, because a pod with an unknown one must be refused with its name, not fail to parse.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeSelectorRequirement {
    /// The label, or the field for `matchFields`.
    pub key: Text,
    /// `In`, `NotIn`, `Exists`, `DoesNotExist`, `Gt`, `Lt`, and for Karpenter's own objects `Gte` and `Lte`.
    #[serde(default)]
    pub operator: Text,
    /// Operands.
    #[serde(default, skip_serializing_if = "List::is_empty")]
    pub values: List<Text>,
    /// How many distinct values the surviving instance types must offer; only in NodePools and NodeClaims.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_values: Option<i32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selector(json: &str) -> LabelSelector {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn selector_matches_labels_as_kubernetes_does() {
        let labels = Labels::from_pairs(vec![("app".into(), "web".into()), ("tier".into(), "front".into())]);
        let cases = [
            ("{}", true),
            (r#"{"matchLabels":{"app":"web"}}"#, true),
            (r#"{"matchLabels":{"app":"db"}}"#, false),
            (r#"{"matchLabels":{"zone":"a"}}"#, false),
            (
                r#"{"matchExpressions":[{"key":"app","operator":"In","values":["db","web"]}]}"#,
                true,
            ),
            (
                r#"{"matchExpressions":[{"key":"app","operator":"NotIn","values":["web"]}]}"#,
                false,
            ),
            (
                r#"{"matchExpressions":[{"key":"zone","operator":"NotIn","values":["a"]}]}"#,
                true,
            ),
            (r#"{"matchExpressions":[{"key":"tier","operator":"Exists"}]}"#, true),
            (
                r#"{"matchExpressions":[{"key":"tier","operator":"DoesNotExist"}]}"#,
                false,
            ),
            (r#"{"matchExpressions":[{"key":"tier","operator":"Near"}]}"#, false),
        ];
        for (json, expected) in cases {
            assert_eq!(selector(json).matches(&labels), expected, "{json}");
        }
    }
}
