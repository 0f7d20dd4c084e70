//! A change to one field, as a sentence, as values and as YAML to paste.

use std::fmt::Write;

use model::{
    object::{NodePool, NodePoolName, Pod},
    plan::Launch,
    snapshot::{Settings, Snapshot},
};
use serde_json::Value;

/// Changes that together let a pod in; one, wherever one is enough.
#[derive(Debug, Clone, PartialEq)]
pub struct Fix {
    /// The changes.
    pub changes: Vec<Change>,
    /// A run with them placed the pod.
    pub is_verified: bool,
    /// The NodePool that then launches a node for the pod; none when it goes to one there is.
    pub node_pool: Option<NodePoolName>,
    /// The cheapest launch of that node.
    pub launch: Option<Launch>,
}

/// A change to one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// What to change.
    pub target: Target,
    /// Which field.
    pub path: String,
    /// Its value now; none when it is not there.
    pub old: Option<String>,
    /// Its value then; none when it goes.
    pub new: Option<String>,
    /// The change as a sentence.
    pub text: String,
    /// The change as YAML, as `kubectl patch` takes it; of a pod that a workload made, for the workload.
    pub patch: String,
}

/// What to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The pod, by way of its workload.
    Pod,
    /// A NodePool.
    NodePool(NodePoolName),
    /// The options of the program.
    Settings,
}

/// An object after a change.
#[derive(Debug, Clone)]
pub(super) enum Edited {
    Pod(Box<Pod>),
    Pool(Box<NodePool>),
    Settings(Box<Settings>),
}

/// A change that might help.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    /// How much is asked of whom; the smallest first.
    pub(super) weight: u8,
    pub(super) change: Change,
    pub(super) edited: Edited,
}

impl Candidate {
    /// The snapshot after the change.
    pub(super) fn applied(&self, snapshot: &Snapshot) -> Snapshot {
        match &self.edited {
            Edited::Pod(pod) => snapshot.with_pods([(**pod).clone().into()]),
            Edited::Pool(pool) => snapshot.with_node_pool((**pool).clone()),
            Edited::Settings(settings) => snapshot.with_settings((**settings).clone()),
        }
    }
}

/// A value in the block style of YAML.
pub(super) fn yaml(value: &Value) -> String {
    let mut text = String::new();
    block(value, 0, &mut text);
    text
}

fn block(value: &Value, depth: usize, text: &mut String) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let _ = write!(text, "{indent}{}:", scalar(&Value::from(key.as_str())));
                nested(value, depth + 1, text);
            }
        }
        Value::Array(items) => {
            for item in items {
                let mut inner = String::new();
                block(item, depth + 1, &mut inner);
                let inner = inner.trim_start();
                let _ = write!(text, "{indent}- {inner}");
            }
        }
        scalar_value => {
            let _ = writeln!(text, "{indent}{}", scalar(scalar_value));
        }
    }
}

fn nested(value: &Value, depth: usize, text: &mut String) {
    match value {
        Value::Object(map) if map.is_empty() => text.push_str(" {}\n"),
        Value::Array(items) if items.is_empty() => text.push_str(" []\n"),
        Value::Array(items) if items.iter().all(|item| !item.is_object() && !item.is_array()) => {
            let items: Vec<_> = items.iter().map(scalar).collect();
            let _ = writeln!(text, " [{}]", items.join(", "));
        }
        Value::Object(_) | Value::Array(_) => {
            text.push('\n');
            block(value, depth, text);
        }
        _ => {
            let _ = writeln!(text, " {}", scalar(value));
        }
    }
}

/// Strings are quoted where YAML would read something else.
fn scalar(value: &Value) -> String {
    let Some(text) = value.as_str() else {
        return value.to_string();
    };
    let is_word = |text: &str| {
        let mut letters = text.chars();
        let starts_well = letters.next().is_some_and(char::is_alphabetic);
        starts_well && letters.all(|letter| letter.is_alphanumeric() || "./-_".contains(letter))
    };
    let is_reserved = ["true", "false", "yes", "no", "on", "off", "null", "y", "n"]
        .iter()
        .any(|word| text.eq_ignore_ascii_case(word));
    if is_word(text) && !is_reserved {
        text.to_owned()
    } else {
        value.to_string()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_patch_is_yaml_that_reads_back_as_what_was_meant() {
        let value = json!({ "spec": {
            "tolerations": [{ "key": "gpu", "operator": "Exists" }, { "key": "true", "value": "1" }],
            "nodeSelector": { "kubernetes.io/arch": null },
            "values": ["spot", "on-demand", "1"], "none": [], "skew": 2 } });
        let expected = r#"spec:
  nodeSelector:
    kubernetes.io/arch: null
  none: []
  skew: 2
  tolerations:
    - key: gpu
      operator: Exists
    - key: "true"
      value: "1"
  values: [spot, on-demand, "1"]
"#;
        assert_eq!(yaml(&value), expected);
    }
}
