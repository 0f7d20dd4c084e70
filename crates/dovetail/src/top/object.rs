//! The object under the cursor in full: as YAML, or described in sections as kubectl does, with what was said about it.

use std::fmt::Write;

use anyhow::Context;
use model::{object::NodeName, snapshot::Snapshot};
use serde_json::{Value, json};

use super::{
    event,
    written::{self, Wanted},
};
use crate::{document, place::Place};

/// How wide events are where they stand below a description, which knows no screen.
const WIDTH: usize = 110;

/// The object of a kind and name as text.
pub(super) fn text(
    place: &Place,
    snapshot: &Snapshot,
    kind: &'static str,
    name: &str,
    is_described: bool,
) -> anyhow::Result<String> {
    let wanted = meant(snapshot, kind, name);
    let (object, note) = match written::object(place, &wanted) {
        Ok(Some(object)) => (object, String::new()),
        other => {
            let object = found(snapshot, kind, name).with_context(|| format!("{kind} {name} is gone"))?;
            let why = other.err().map(|error| format!(", because {error:#}"));
            let note = format!(
                "# only what decisions read of it{}\n",
                why.unwrap_or_default().replace('\n', " ")
            );
            (object, note)
        }
    };
    if is_described {
        let said = events(place, snapshot, kind, name, WIDTH).unwrap_or_else(|error| format!("{error:#}"));
        let pods = pods(snapshot, &wanted);
        return Ok(format!("{note}{}{pods}\nEvents:\n{said}", described(&object)));
    }
    let mut object = object;
    // Who wrote which field is longer than all the rest; kubectl hides it, too.
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    Ok(format!("{note}{}", document::yaml(&object)?))
}

/// What was said about an object; about a node also what was said about its claim.
pub(super) fn events(
    place: &Place,
    snapshot: &Snapshot,
    kind: &'static str,
    name: &str,
    width: usize,
) -> anyhow::Result<String> {
    let mut about = vec![meant(snapshot, kind, name)];
    if kind == "Node" {
        let node = NodeName::from(name);
        let claims = snapshot.objects().node_claims.iter();
        let own = claims.filter(|claim| claim.status.node_name.as_ref() == Some(&node));
        about.extend(own.map(|claim| Wanted::of("NodeClaim", &claim.metadata.name)));
    }
    let found = written::events(place, &about)?;
    if !found.is_empty() {
        return Ok(event::table(found, snapshot.title().taken_at, width));
    }
    let kind = kind.to_lowercase();
    Ok(if place.from.is_empty() {
        format!("no events about {kind} {name}; an API server forgets them after an hour\n")
    } else {
        format!(
            "no events about {kind} {name} in the dump\n\
             kubectl get events -A -o yaml > events.yaml adds what the cluster still knows\n"
        )
    })
}

/// What a name on the screen means: a machine that has no node yet is its claim.
fn meant(snapshot: &Snapshot, kind: &'static str, name: &str) -> Wanted {
    let is_claim = kind == "Node" && snapshot.objects().nodes.find("", name).is_none();
    Wanted::of(if is_claim { "NodeClaim" } else { kind }, name)
}

/// The pods of a node, a line each.
fn pods(snapshot: &Snapshot, wanted: &Wanted) -> String {
    let mut text = String::new();
    if wanted.kind != "Node" {
        return text;
    }
    let node = NodeName::from(wanted.name.as_str());
    let on_it = snapshot.pods_on_node(&node);
    for (at, pod) in on_it.filter(|pod| !pod.is_terminal()).enumerate() {
        let start = if at == 0 { "Pods:" } else { "" };
        let _ = writeln!(text, "{start:14} {}", pod.metadata.key());
    }
    text
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
    list(&mut text, "Taints", &spec["taints"], taint);
    list(&mut text, "Tolerations", &spec["tolerations"], toleration);
    let template = &spec["template"]["spec"];
    list(&mut text, "Taints", &template["taints"], taint);
    list(&mut text, "Requirements", &template["requirements"], requirement);
    list(&mut text, "Requirements", &spec["requirements"], requirement);
    list(&mut text, "Containers", &spec["containers"], container);
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

fn list(text: &mut String, title: &str, value: &Value, said: fn(&Value) -> String) {
    for (at, item) in value.as_array().into_iter().flatten().enumerate() {
        let start = if at == 0 { format!("{title}:") } else { String::new() };
        let _ = writeln!(text, "{start:14} {}", said(item));
    }
}

/// `gpu=yes:NoSchedule`, as kubectl writes it.
fn taint(item: &Value) -> String {
    let part = |field: &str| plain(&item[field]).unwrap_or_default();
    match part("value") {
        value if value.is_empty() => format!("{}:{}", part("key"), part("effect")),
        value => format!("{}={value}:{}", part("key"), part("effect")),
    }
}

/// `gpu=yes:NoSchedule for 300s`, `gpu op=Exists`.
fn toleration(item: &Value) -> String {
    let part = |field: &str| plain(&item[field]).unwrap_or_default();
    let mut text = part("key");
    if !part("value").is_empty() {
        let _ = write!(text, "={}", part("value"));
    }
    if !part("effect").is_empty() {
        let _ = write!(text, ":{}", part("effect"));
    }
    if part("operator") == "Exists" {
        text.push_str(" op=Exists");
    }
    if let Some(seconds) = plain(&item["tolerationSeconds"]) {
        let _ = write!(text, " for {seconds}s");
    }
    text.trim_start().to_owned()
}

/// `karpenter.sh/capacity-type In spot, on-demand`.
fn requirement(item: &Value) -> String {
    let part = |field: &str| plain(&item[field]).unwrap_or_default();
    let least = plain(&item["minValues"]).map(|least| format!(" (at least {least})"));
    let text = format!("{} {} {}", part("key"), part("operator"), part("values"));
    format!("{}{}", text.trim_end(), least.unwrap_or_default())
}

/// Its name, image, and what it asks for.
fn container(item: &Value) -> String {
    let parts = [
        plain(&item["name"]),
        plain(&item["image"]),
        plain(&item["resources"]["requests"]).map(|asks| format!("requests {asks}")),
        plain(&item["resources"]["limits"]).map(|asks| format!("limits {asks}")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
    parts.join("  ")
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
            "spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}],
                "tolerations": [{"operator": "Exists"}, {"key": "a", "value": "b", "effect": "NoExecute"}],
                "requirements": [{"key": "k", "operator": "In", "values": ["x", "y"], "minValues": 2}],
                "containers": [{"name": "c", "image": "i:1", "resources": {"requests": {"cpu": "1"}}}]},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        let expected = "Kind:          Node\nName:          a\nLabels:        team: shop\n               zone: b\n\
                        Taints:        gpu:NoSchedule\n\
                        Tolerations:   op=Exists\n               a=b:NoExecute\nRequirements:  k In x, y (at least 2)\n\
                        Containers:    c  i:1  requests cpu=1\nConditions:    Ready                    True\n";
        assert_eq!(described(&node), expected);
    }
}
