//! What controllers of pods share: which pods they own, what a new one looks like, how far a template has changed.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};

use super::{is_deleting, pods, text};
use crate::{
    ApiServer,
    pod::{is_ready, set_condition},
};

/// All pods by the identity of the controller that owns them.
pub(super) struct Owned(BTreeMap<String, Vec<Arc<Value>>>);

impl Owned {
    pub(super) fn of(server: &ApiServer) -> Self {
        let mut owned: BTreeMap<String, Vec<Arc<Value>>> = BTreeMap::new();
        for pod in server.all(&pods()) {
            let owner = controller(&pod);
            if !owner.is_empty() {
                owned.entry(owner.to_owned()).or_default().push(pod);
            }
        }
        Self(owned)
    }

    /// The pods of an object.
    pub(super) fn by(&self, owner: &Value) -> &[Arc<Value>] {
        self.0.get(text(owner, "/metadata/uid")).map_or(&[], Vec::as_slice)
    }

    /// Those that neither go nor are over.
    pub(super) fn alive(&self, owner: &Value) -> Vec<Arc<Value>> {
        self.by(owner).iter().filter(|pod| !is_gone(pod)).cloned().collect()
    }
}

/// The identity of the controller of an object.
pub(super) fn controller(object: &Value) -> &str {
    let owners = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    let owner = owners.into_iter().find(|one| one["controller"] == true);
    owner.map_or("", |owner| text(owner, "/uid"))
}

pub(super) fn is_gone(pod: &Value) -> bool {
    is_deleting(pod) || matches!(text(pod, "/status/phase"), "Succeeded" | "Failed")
}

pub(super) fn ready(pods: &[Arc<Value>]) -> usize {
    pods.iter().filter(|pod| is_ready(pod)).count()
}

/// Who owns what a controller creates.
pub(super) fn owner_of(object: &Value) -> Value {
    json!({
        "apiVersion": object["apiVersion"], "kind": object["kind"], "name": object["metadata"]["name"],
        "uid": object["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
    })
}

/// A pod as a template has it.
pub(super) fn new_pod(owner: &Value, template: &Value) -> Value {
    let mut pod =
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": template["metadata"], "spec": template["spec"]});
    pod["metadata"]["generateName"] = json!(format!("{}-", text(owner, "/metadata/name")));
    pod["metadata"]["namespace"] = owner["metadata"]["namespace"].clone();
    pod["metadata"]["ownerReferences"] = json!([owner_of(owner)]);
    pod
}

/// A name for a template: equal ones have equal names.
pub(super) fn hash(template: &Value) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
    let mut left = template.to_string().bytes().fold(0xCBF2_9CE4_8422_2325, step);
    let mut name = String::new();
    for _ in 0..10 {
        let at = usize::try_from(left % LETTERS.len() as u64).unwrap_or(0);
        name.push(char::from(LETTERS[at]));
        left /= LETTERS.len() as u64;
    }
    name
}

/// Which of too many pods go first: those without a node, then those that are not ready, then the youngest.
pub(super) fn surplus(mut pods: Vec<Arc<Value>>, wanted: usize) -> Vec<Arc<Value>> {
    pods.sort_by_key(|pod| {
        let is_bound = !text(pod, "/spec/nodeName").is_empty();
        let age = std::cmp::Reverse(text(pod, "/metadata/creationTimestamp").to_owned());
        (is_bound, is_ready(pod), age, text(pod, "/metadata/name").to_owned())
    });
    pods.truncate(pods.len().saturating_sub(wanted));
    pods
}

pub(super) fn whole(object: &Value, pointer: &str, other: usize) -> usize {
    let number = object.pointer(pointer).and_then(Value::as_u64);
    number.map_or(other, |number| usize::try_from(number).unwrap_or(usize::MAX))
}

/// A number, or a percentage of another.
pub(super) fn share(value: &Value, of: usize, rounds_up: bool) -> Option<usize> {
    if let Some(number) = value.as_u64() {
        return usize::try_from(number).ok();
    }
    let percent: usize = value.as_str()?.strip_suffix('%')?.parse().ok()?;
    Some(if rounds_up {
        (of * percent).div_ceil(100)
    } else {
        of * percent / 100
    })
}

/// Writes a status where it differs; `conditions` are kept but for those given.
pub(super) fn tell(server: &ApiServer, object: &Value, status: &[(&str, Value)], conditions: &[Value]) {
    let now = server.now();
    let _ = server.update(text(object, "/kind"), &super::key(object), |object| {
        for (field, value) in status {
            // The API leaves out counts of none.
            if *value == json!(0)
                && !matches!(
                    *field,
                    "replicas"
                        | "desiredNumberScheduled"
                        | "currentNumberScheduled"
                        | "numberMisscheduled"
                        | "numberReady"
                        | "observedGeneration"
                        | "availableReplicas"
                )
            {
                crate::write::fields(&mut object["status"]).remove(*field);
            } else {
                object["status"][*field] = value.clone();
            }
        }
        for condition in conditions {
            set_condition(object, condition.clone(), now);
        }
    });
}
