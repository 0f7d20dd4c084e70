//! What an object is after a patch: JSON merge patch, strategic merge patch, JSON patch.

use serde_json::{Map, Value};

use crate::Failure;

/// JSON merge patch (RFC 7386).
pub(crate) fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Some(object) = target.as_object_mut() else { return };
    for (field, value) in fields {
        if value.is_null() {
            object.remove(field);
        } else {
            merge(object.entry(field.clone()).or_insert(Value::Null), value);
        }
    }
}

/// What a list of built-in kinds is merged by; none where it is replaced whole, as taints and tolerations are.
fn merge_key(field: &str) -> Option<&'static str> {
    match field {
        "conditions" | "addresses" => Some("type"),
        "ownerReferences" => Some("uid"),
        "containers"
        | "initContainers"
        | "ephemeralContainers"
        | "volumes"
        | "env"
        | "imagePullSecrets"
        | "resourceClaims"
        | "schedulingGates"
        | "secrets" => Some("name"),
        "volumeMounts" => Some("mountPath"),
        "hostAliases" => Some("ip"),
        "topologySpreadConstraints" => Some("topologyKey"),
        _ => None,
    }
}

/// Lists of plain values that are merged rather than replaced.
fn is_set(field: &str) -> bool {
    matches!(field, "finalizers" | "volumesInUse" | "podCIDRs")
}

/// Strategic merge patch, for the lists that built-in kinds declare mergeable.
pub(crate) fn strategic(target: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *target = patch.clone();
        return;
    };
    if fields.get("$patch").is_some_and(|directive| directive == "replace") {
        let mut whole = fields.clone();
        whole.remove("$patch");
        *target = Value::Object(whole);
        return;
    }
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Some(object) = target.as_object_mut() else { return };
    for (field, value) in fields {
        strategic_field(object, field, value);
    }
}

fn strategic_field(object: &mut Map<String, Value>, field: &str, value: &Value) {
    if let Some(list) = field.strip_prefix("$deleteFromPrimitiveList/") {
        if let Some(items) = object.get_mut(list).and_then(Value::as_array_mut) {
            items.retain(|item| !value.as_array().is_some_and(|gone| gone.contains(item)));
        }
        return;
    }
    if field == "$retainKeys" || field.starts_with("$setElementOrder/") {
        return;
    }
    match value {
        Value::Null => {
            object.remove(field);
        }
        Value::Array(items) => {
            let list = object
                .entry(field.to_owned())
                .or_insert_with(|| Value::Array(Vec::new()));
            match (merge_key(field), list.as_array_mut()) {
                (Some(key), Some(list)) => merge_list(list, items, key),
                (None, Some(list)) if is_set(field) => {
                    let order = list.clone();
                    list.retain(|known| !items.contains(known));
                    *list = interleave(items.clone(), std::mem::take(list), |item| {
                        order.iter().position(|known| known == item)
                    });
                }
                _ => *list = value.clone(),
            }
        }
        _ => strategic(object.entry(field.to_owned()).or_insert(Value::Null), value),
    }
}

fn merge_list(list: &mut Vec<Value>, items: &[Value], key: &str) {
    if items.iter().any(|item| item["$patch"] == "replace") {
        list.clear();
    }
    let order: Vec<Value> = list.iter().map(|known| known[key].clone()).collect();
    let mut patched = Vec::new();
    for item in items {
        let at = list.iter().position(|known| known[key] == item[key]);
        let known = at.map(|at| list.remove(at));
        match (item["$patch"].as_str(), known) {
            (Some("delete"), _) | (Some("replace"), None) => {}
            (_, Some(mut known)) => {
                strategic(&mut known, item);
                patched.push(known);
            }
            (_, None) => patched.push(item.clone()),
        }
    }
    *list = interleave(patched, std::mem::take(list), |item| {
        order.iter().position(|known| *known == item[key])
    });
}

/// What a patch names and what it does not, in one list: known items keep their order, new ones go first.
fn interleave(patched: Vec<Value>, others: Vec<Value>, rank: impl Fn(&Value) -> Option<usize>) -> Vec<Value> {
    let mut merged = Vec::with_capacity(patched.len() + others.len());
    let mut others = others.into_iter().peekable();
    for item in patched {
        let at = rank(&item);
        while let Some(other) = others.next_if(|other| at.is_some() && rank(other) < at) {
            merged.push(other);
        }
        merged.push(item);
    }
    merged.extend(others);
    merged
}

/// JSON patch (RFC 6902).
pub(crate) fn json(target: &mut Value, patch: &Value) -> Result<(), Failure> {
    for step in patch.as_array().into_iter().flatten() {
        let path = step["path"].as_str().unwrap_or_default();
        let done = match step["op"].as_str() {
            Some("test") => target.pointer(path) == Some(&step["value"]),
            Some("add") => add(target, path, step["value"].clone()),
            Some("remove") => remove(target, path),
            Some("replace") => remove(target, path) && add(target, path, step["value"].clone()),
            Some(word @ ("copy" | "move")) => {
                let from = step["from"].as_str().unwrap_or_default();
                let value = target.pointer(from).cloned();
                let is_free = word == "copy" || remove(target, from);
                value.is_some_and(|value| is_free && add(target, path, value))
            }
            _ => false,
        };
        if !done {
            return Err(Failure {
                code: 422,
                reason: "Invalid".to_owned(),
                message: "the server rejected our request due to an error in our request".to_owned(),
                details: Some(serde_json::json!({})),
            });
        }
    }
    Ok(())
}

fn parent<'a>(target: &'a mut Value, path: &str) -> Option<(&'a mut Value, String)> {
    let (parent, last) = path.rsplit_once('/')?;
    let last = last.replace("~1", "/").replace("~0", "~");
    Some((target.pointer_mut(parent)?, last))
}

fn add(target: &mut Value, path: &str, value: Value) -> bool {
    match parent(target, path) {
        Some((Value::Object(object), field)) => {
            object.insert(field, value);
            true
        }
        Some((Value::Array(list), index)) => {
            let at = if index == "-" {
                Some(list.len())
            } else {
                index.parse().ok()
            };
            let at = at.filter(|at| *at <= list.len());
            at.inspect(|at| list.insert(*at, value)).is_some()
        }
        _ => false,
    }
}

fn remove(target: &mut Value, path: &str) -> bool {
    match parent(target, path) {
        Some((Value::Object(object), field)) => object.remove(&field).is_some(),
        Some((Value::Array(list), index)) => {
            let at = index.parse().ok().filter(|at: &usize| *at < list.len());
            at.map(|at| list.remove(at)).is_some()
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_merge_patch_replaces_lists_and_removes_nulls() {
        let mut object = json!({"a": {"x": 1, "y": 2}, "list": [1, 2]});
        merge(
            &mut object,
            &json!({"a": {"x": null, "z": 3}, "list": [3], "new": {"deep": null}}),
        );
        assert_eq!(object, json!({"a": {"y": 2, "z": 3}, "list": [3], "new": {}}));
    }

    #[test]
    fn a_strategic_patch_merges_conditions_and_finalizers_and_replaces_taints() {
        let mut node = json!({
            "metadata": {"finalizers": ["a"]},
            "spec": {"taints": [{"key": "x", "effect": "NoSchedule"}]},
            "status": {"conditions": [{"type": "Ready", "status": "False", "reason": "r"}, {"type": "DiskPressure"}]},
        });
        let patch = json!({
            "metadata": {"finalizers": ["b"]},
            "spec": {"taints": [{"key": "y", "effect": "NoExecute"}]},
            "status": {"conditions": [
                {"type": "Ready", "status": "True"}, {"type": "New"}, {"type": "DiskPressure", "$patch": "delete"},
            ]},
        });
        strategic(&mut node, &patch);
        assert_eq!(
            node,
            json!({
                "metadata": {"finalizers": ["b", "a"]},
                "spec": {"taints": [{"key": "y", "effect": "NoExecute"}]},
                "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "r"}, {"type": "New"}]},
            })
        );
        strategic(
            &mut node,
            &json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}),
        );
        assert_eq!(node["metadata"], json!({"finalizers": ["b"]}));
    }

    #[test]
    fn a_json_patch_applies_step_by_step_or_not_at_all() {
        let mut object = json!({"metadata": {"finalizers": ["a", "b"]}});
        let patch = json!([
            {"op": "test", "path": "/metadata/finalizers/0", "value": "a"},
            {"op": "remove", "path": "/metadata/finalizers/0"},
            {"op": "add", "path": "/metadata/labels", "value": {"x/y": "1"}},
            {"op": "replace", "path": "/metadata/labels/x~1y", "value": "2"},
        ]);
        json(&mut object, &patch).unwrap();
        assert_eq!(
            object,
            json!({"metadata": {"finalizers": ["b"], "labels": {"x/y": "2"}}})
        );
        let wrong = json!([{"op": "test", "path": "/metadata/finalizers/0", "value": "a"}]);
        assert_eq!(json(&mut object, &wrong).unwrap_err().code, 422);
    }
}
