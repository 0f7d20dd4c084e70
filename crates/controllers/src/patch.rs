//! What differs between an object as it was read and as it should be, as the JSON merge patch that makes it so.

use model::object::{
    CapacityBuffer, CapacityBufferSpec, CapacityBufferStatus, Node, NodeClaim, NodeClaimSpec, NodeClaimStatus,
    NodeOverlay, NodeOverlaySpec, NodeOverlayStatus, NodePool, NodePoolSpec, NodePoolStatus, NodeSpec, NodeStatus,
    Object,
};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// Whether a write may overtake one of somebody else's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lock {
    /// It fails with a conflict if the object has changed since it was read. Needed where a list is replaced.
    Version,
    /// It does not care.
    None,
}

/// An object in the three parts that are compared. A part that is the same is not looked into: of the many writes to a
/// claim nearly all leave its spec alone, which is by far the largest part.
pub trait Written: Object {
    /// What is wanted.
    type Spec: Serialize + PartialEq;
    /// What there is.
    type Status: Serialize + PartialEq;

    /// What is wanted.
    fn spec(&self) -> &Self::Spec;
    /// What there is.
    fn status(&self) -> &Self::Status;
}

macro_rules! written {
    ($($kind:ident { $spec:ident, $status:ident })*) => {$(
        impl Written for $kind {
            type Spec = $spec;
            type Status = $status;

            fn spec(&self) -> &$spec {
                &self.spec
            }

            fn status(&self) -> &$status {
                &self.status
            }
        }
    )*};
}

written! {
    CapacityBuffer { CapacityBufferSpec, CapacityBufferStatus }
    Node { NodeSpec, NodeStatus }
    NodeClaim { NodeClaimSpec, NodeClaimStatus }
    NodeOverlay { NodeOverlaySpec, NodeOverlayStatus }
    NodePool { NodePoolSpec, NodePoolStatus }
}

/// The patch of everything but the status; none when nothing differs.
pub(crate) fn of_object<T: Written>(before: &T, after: &T, lock: Lock) -> Option<Value> {
    let mut difference = Map::new();
    add(&mut difference, "metadata", before.metadata(), after.metadata());
    add(&mut difference, "spec", before.spec(), after.spec());
    finish(difference, before, lock)
}

/// The patch of the status; none when nothing differs.
pub(crate) fn of_status<T: Written>(before: &T, after: &T, lock: Lock) -> Option<Value> {
    let mut difference = Map::new();
    add(&mut difference, "status", before.status(), after.status());
    finish(difference, before, lock)
}

/// Adds what differs in a part.
fn add<T: Serialize + PartialEq>(patch: &mut Map<String, Value>, part: &str, before: &T, after: &T) {
    if before != after {
        let difference = between(before, after);
        if !difference.is_empty() {
            patch.insert(part.to_owned(), Value::Object(difference));
        }
    }
}

fn finish<T: Object>(mut patch: Map<String, Value>, before: &T, lock: Lock) -> Option<Value> {
    if patch.is_empty() {
        return None;
    }
    if lock == Lock::Version {
        let metadata = patch.entry("metadata").or_insert_with(|| json!({}));
        metadata["resourceVersion"] = json!(before.metadata().resource_version);
    }
    Some(Value::Object(patch))
}

fn between(before: &impl Serialize, after: &impl Serialize) -> Map<String, Value> {
    let as_object = |value: Result<Value, _>| match value {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    fields(
        &as_object(serde_json::to_value(before)),
        as_object(serde_json::to_value(after)),
    )
}

fn fields(before: &Map<String, Value>, after: Map<String, Value>) -> Map<String, Value> {
    let gone = before.keys().filter(|field| !after.contains_key(*field));
    let mut patch: Map<String, Value> = gone.map(|field| (field.clone(), Value::Null)).collect();
    for (field, value) in after {
        match (before.get(&field), value) {
            (Some(Value::Object(old)), Value::Object(new)) => {
                let inner = fields(old, new);
                if !inner.is_empty() {
                    patch.insert(field, Value::Object(inner));
                }
            }
            (old, new) if old != Some(&new) => {
                patch.insert(field, new);
            }
            _ => {}
        }
    }
    patch
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(json: &str) -> Node {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn only_what_differs_is_written_and_lists_are_written_whole() {
        let before = node(
            r#"{"metadata":{"name":"n","resourceVersion":"7","labels":{"a":"1","b":"2"},"finalizers":["x"]},
                "spec":{"taints":[{"key":"t","effect":"NoExecute"}]}}"#,
        );
        let after = node(
            r#"{"metadata":{"name":"n","resourceVersion":"7","labels":{"a":"1","c":"3"},"finalizers":["x","y"]}}"#,
        );
        let expected = json!({
            "metadata": {"labels": {"b": null, "c": "3"}, "finalizers": ["x", "y"], "resourceVersion": "7"},
            "spec": {"taints": null},
        });
        assert_eq!(of_object(&before, &after, Lock::Version), Some(expected));
        assert_eq!(of_object(&before, &before, Lock::Version), None);
    }

    #[test]
    fn status_and_the_rest_are_separate_writes() {
        let before = node(r#"{"metadata":{"name":"n","resourceVersion":"7"}}"#);
        let after = node(
            r#"{"metadata":{"name":"n","resourceVersion":"7","labels":{"a":"1"}},"status":{"capacity":{"cpu":"1"}}}"#,
        );
        let object = json!({"metadata": {"labels": {"a": "1"}}});
        let status = json!({"status": {"capacity": {"cpu": "1"}}});
        assert_eq!(of_object(&before, &after, Lock::None), Some(object));
        assert_eq!(of_status(&before, &after, Lock::None), Some(status));
    }
}
