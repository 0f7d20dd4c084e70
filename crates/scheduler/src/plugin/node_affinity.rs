//! Does the node have the labels a pod, or a volume, asks for?

use model::object::{Labels, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PodSpec};

/// What the score counts for.
pub(crate) const WEIGHT: i64 = 2;

/// The labels of a node, or of a node to be.
pub trait NodeLabels {
    /// The value of a label, if the node has it.
    fn label(&self, key: &str) -> Option<&str>;
}

impl NodeLabels for Labels {
    fn label(&self, key: &str) -> Option<&str> {
        self.get(key).map(AsRef::as_ref)
    }
}

/// Whether node selector and required node affinity match.
pub fn admits(pod: &PodSpec, node: &str, labels: &dyn NodeLabels) -> bool {
    let selected = pod
        .node_selector
        .iter()
        .all(|(key, value)| labels.label(key) == Some(value));
    selected && required(pod).is_none_or(|selector| selects(selector, node, labels))
}

/// Whether the pod asks for labels at all.
pub fn is_constrained(pod: &PodSpec) -> bool {
    !pod.node_selector.is_empty() || required(pod).is_some()
}

/// The sum of the weights of the preferred terms that match.
pub fn preference(pod: &PodSpec, node: &str, labels: &dyn NodeLabels) -> i64 {
    let affinity = pod
        .affinity
        .as_ref()
        .and_then(|affinity| affinity.node_affinity.as_ref());
    let preferred = affinity.map_or(&[][..], |affinity| &affinity.preferred);
    let matching = preferred.iter().filter(|term| matches(&term.preference, node, labels));
    matching.map(|term| i64::from(term.weight)).sum()
}

/// Whether any of the terms matches.
pub fn selects(selector: &NodeSelector, node: &str, labels: &dyn NodeLabels) -> bool {
    selector
        .node_selector_terms
        .iter()
        .any(|term| matches(term, node, labels))
}

fn required(pod: &PodSpec) -> Option<&NodeSelector> {
    pod.affinity.as_ref()?.node_affinity.as_ref()?.required.as_ref()
}

/// A term without conditions matches nothing.
fn matches(term: &NodeSelectorTerm, node: &str, labels: &dyn NodeLabels) -> bool {
    let is_empty = term.match_expressions.is_empty() && term.match_fields.is_empty();
    !is_empty
        && term.match_expressions.iter().all(|it| holds(it, labels.label(&it.key)))
        && term.match_fields.iter().all(|it| names(it, node))
}

/// The one field there is, with the two operators it takes, of one value each.
fn names(field: &NodeSelectorRequirement, node: &str) -> bool {
    let [value] = &field.values[..] else { return false };
    let is_name = *field.key == *"metadata.name" && **value == *node;
    match &*field.operator {
        "In" => is_name,
        "NotIn" => !is_name,
        _ => false,
    }
}

fn holds(condition: &NodeSelectorRequirement, value: Option<&str>) -> bool {
    let is_listed = value.is_some_and(|value| condition.values.iter().any(|listed| **listed == *value));
    match &*condition.operator {
        "In" => is_listed,
        "NotIn" => !is_listed,
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => compares(condition, value, |value, bound| value > bound),
        "Lt" => compares(condition, value, |value, bound| value < bound),
        _ => false,
    }
}

fn compares(condition: &NodeSelectorRequirement, value: Option<&str>, holds: fn(i64, i64) -> bool) -> bool {
    let [bound] = &condition.values[..] else { return false };
    let value = value.and_then(|value| value.parse().ok());
    matches!((value, bound.parse()), (Some(value), Ok(bound)) if holds(value, bound))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels() -> Labels {
        let pair = |(key, value): (&str, &str)| (key.into(), value.into());
        Labels::from_pairs([("zone", "a"), ("size", "4")].map(pair).to_vec())
    }

    #[test]
    fn required_terms_match_as_kubernetes_says() {
        let cases = [
            (r#"{"key":"zone","operator":"In","values":["a","b"]}"#, true),
            (r#"{"key":"zone","operator":"NotIn","values":["a"]}"#, false),
            (r#"{"key":"team","operator":"NotIn","values":["a"]}"#, true),
            (r#"{"key":"team","operator":"Exists"}"#, false),
            (r#"{"key":"team","operator":"DoesNotExist"}"#, true),
            (r#"{"key":"size","operator":"Gt","values":["3"]}"#, true),
            (r#"{"key":"size","operator":"Gt","values":["4"]}"#, false),
            (r#"{"key":"size","operator":"Lt","values":["5"]}"#, true),
            (r#"{"key":"zone","operator":"Lt","values":["5"]}"#, false),
            (r#"{"key":"size","operator":"Gte","values":["4"]}"#, false),
        ];
        for (condition, expected) in cases {
            let term = format!(r#"{{"nodeSelectorTerms":[{{"matchExpressions":[{condition}]}}]}}"#);
            let selector = serde_json::from_str(&term).unwrap();
            assert_eq!(selects(&selector, "n", &labels()), expected, "{condition}");
        }
    }

    #[test]
    fn terms_are_alternatives_and_an_empty_one_matches_nothing() {
        let cases = [
            (r"[]", false),
            (r"[{}]", false),
            (
                r#"[{},{"matchFields":[{"key":"metadata.name","operator":"In","values":["n"]}]}]"#,
                true,
            ),
            (
                r#"[{"matchFields":[{"key":"metadata.name","operator":"NotIn","values":["n"]}]}]"#,
                false,
            ),
            (
                r#"[{"matchExpressions":[{"key":"zone","operator":"Exists"}],
                     "matchFields":[{"key":"metadata.name","operator":"In","values":["m"]}]}]"#,
                false,
            ),
        ];
        for (terms, expected) in cases {
            let selector = serde_json::from_str(&format!(r#"{{"nodeSelectorTerms":{terms}}}"#)).unwrap();
            assert_eq!(selects(&selector, "n", &labels()), expected, "{terms}");
        }
    }
}
