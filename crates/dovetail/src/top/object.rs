//! An object of the snapshot on the screen in full: as YAML, or described in sections as kubectl does.

use std::fmt::Write;

use anyhow::Context;
use model::snapshot::Snapshot;
use serde_json::{Value, json};

use crate::document;

/// The object of a kind and name as text.
pub(super) fn text(snapshot: &Snapshot, kind: &str, name: &str, is_described: bool) -> anyhow::Result<String> {
    let object = found(snapshot, kind, name).with_context(|| format!("{kind} {name} is gone"))?;
    if is_described {
        return Ok(described(&object));
    }
    let yaml = document::yaml(&object)?;
    Ok(format!("# what decisions read of it; kubectl has all\n{yaml}"))
}

fn found(snapshot: &Snapshot, kind: &str, name: &str) -> Option<Value> {
    let objects = snapshot.objects();
    let (namespace, bare) = name.split_once('/').unwrap_or(("", name));
    let (version, object) = match kind {
        "Pod" => (
            "v1",
            serde_json::to_value(objects.pods.find(namespace, bare)?.as_ref()).ok()?,
        ),
        "NodePool" => (
            "karpenter.sh/v1",
            serde_json::to_value(objects.node_pools.find("", bare)?.as_ref()).ok()?,
        ),
        _ => return node(snapshot, bare),
    };
    Some(titled(version, kind, object))
}

/// A node; a machine that has none yet is its claim.
fn node(snapshot: &Snapshot, name: &str) -> Option<Value> {
    let objects = snapshot.objects();
    if let Some(node) = objects.nodes.find("", name) {
        return Some(titled("v1", "Node", serde_json::to_value(node.as_ref()).ok()?));
    }
    let claim = objects.node_claims.find("", name)?;
    Some(titled(
        "karpenter.sh/v1",
        "NodeClaim",
        serde_json::to_value(claim.as_ref()).ok()?,
    ))
}

fn titled(version: &str, kind: &str, mut object: Value) -> Value {
    object["apiVersion"] = json!(version);
    object["kind"] = json!(kind);
    object
}

/// The parts of an object that people look for first, each under its name.
fn described(object: &Value) -> String {
    let mut text = String::new();
    let metadata = &object["metadata"];
    let mut line = |name: &str, value: &Value| {
        if let Some(value) = plain(value) {
            let _ = writeln!(text, "{:14} {value}", format!("{name}:"));
        }
    };
    line("Kind", &object["kind"]);
    line("Namespace", &metadata["namespace"]);
    line("Name", &metadata["name"]);
    line("Created", &metadata["creationTimestamp"]);
    line("Deleted", &metadata["deletionTimestamp"]);
    line("Node", &object["spec"]["nodeName"]);
    line("Provider ID", &object["spec"]["providerID"]);
    line("Phase", &object["status"]["phase"]);
    line("Unschedulable", &object["spec"]["unschedulable"]);
    let (spec, status) = (&object["spec"], &object["status"]);
    pairs(&mut text, "Labels", &metadata["labels"]);
    pairs(&mut text, "Annotations", &metadata["annotations"]);
    pairs(&mut text, "Node selector", &spec["nodeSelector"]);
    pairs(&mut text, "Limits", &spec["limits"]);
    list(&mut text, "Taints", &spec["taints"]);
    list(&mut text, "Tolerations", &spec["tolerations"]);
    list(&mut text, "Requirements", &spec["template"]["spec"]["requirements"]);
    list(&mut text, "Containers", &spec["containers"]);
    pairs(&mut text, "Disruption", &spec["disruption"]);
    pairs(&mut text, "Capacity", &status["capacity"]);
    pairs(&mut text, "Allocatable", &status["allocatable"]);
    conditions(&mut text, &status["conditions"]);
    text
}

/// A value on one line; none where there is nothing.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) if text.is_empty() => None,
        Value::String(text) => Some(text.clone()),
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .filter_map(|(key, value)| Some(format!("{key}={}", plain(value)?)));
            Some(fields.collect::<Vec<_>>().join(" "))
        }
        Value::Array(items) => Some(items.iter().filter_map(plain).collect::<Vec<_>>().join(", ")),
        other => Some(other.to_string()),
    }
}

fn pairs(text: &mut String, title: &str, value: &Value) {
    let fields = value.as_object().into_iter().flatten();
    for (at, (key, value)) in fields.enumerate() {
        let start = if at == 0 { format!("{title}:") } else { String::new() };
        let _ = writeln!(text, "{start:14} {key}: {}", plain(value).unwrap_or_default());
    }
}

fn list(text: &mut String, title: &str, value: &Value) {
    for (at, item) in value.as_array().into_iter().flatten().enumerate() {
        let start = if at == 0 { format!("{title}:") } else { String::new() };
        let _ = writeln!(text, "{start:14} {}", plain(item).unwrap_or_default());
    }
}

fn conditions(text: &mut String, value: &Value) {
    for (at, one) in value.as_array().into_iter().flatten().enumerate() {
        let start = if at == 0 { "Conditions:" } else { "" };
        let part = |field: &str| plain(&one[field]).unwrap_or_default();
        let line = format!(
            "{start:14} {:24} {:8} {} {} {}",
            part("type"),
            part("status"),
            part("lastTransitionTime"),
            part("reason"),
            part("message")
        );
        let _ = writeln!(text, "{}", line.trim_end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_described_by_the_parts_that_it_has() {
        let node = json!({"kind": "Node", "metadata": {"name": "a", "labels": {"team": "shop", "zone": "b"}},
            "spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        let expected = "Kind:          Node\nName:          a\nLabels:        team: shop\n               zone: b\n\
                        Taints:        effect=NoSchedule key=gpu\nConditions:    Ready                    True\n";
        assert_eq!(described(&node), expected);
    }
}
