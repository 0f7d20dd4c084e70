//! Objects for these tests, written as JSON, and a server's counter for their versions.

use std::cell::Cell;

use jiff::Timestamp;
use model::{
    object::{Node, NodeClaim, NodeClaimName, NodePool, NodePoolName, ObjectKey, Pod},
    resources::ResourceList,
};
use serde_json::{Value, json};
use state::{State, Tracked};

pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

pub(crate) fn pool() -> NodePoolName {
    "pool".into()
}

pub(crate) fn claim_name(name: &str) -> NodeClaimName {
    name.into()
}

pub(crate) fn pod_key(name: &str) -> ObjectKey {
    ObjectKey::new("ns", name)
}

pub(crate) fn resources(json: Value) -> ResourceList {
    serde_json::from_value(json).unwrap()
}

thread_local! {
    static REVISION: Cell<u64> = const { Cell::new(0) };
}

/// Takes in an object as the next version the server has of anything.
pub(crate) fn apply<T: Tracked>(state: &mut State, mut object: Value) {
    let revision = REVISION.with(|revision| {
        revision.set(revision.get() + 1);
        revision.get()
    });
    object["metadata"]["resourceVersion"] = revision.to_string().into();
    if object["metadata"]["uid"].is_null() {
        object["metadata"]["uid"] = object["metadata"]["name"].clone();
    }
    let object: T = serde_json::from_value(object).unwrap();
    assert!(state.apply(object).is_some());
}

/// Takes an object out.
pub(crate) fn delete<T: Tracked>(state: &mut State, key: &ObjectKey) {
    let last = state.get::<T>(key).cloned().unwrap();
    assert!(state.delete(last.as_ref()).is_some());
}

/// A claim of the pool, launched when it has a provider ID.
pub(crate) fn claim(name: &str, provider_id: &str) -> Value {
    let capacity = if provider_id.is_empty() {
        json!({})
    } else {
        json!({ "cpu": "4", "memory": "8Gi" })
    };
    json!({
        "metadata": { "name": name, "labels": { "karpenter.sh/nodepool": "pool" } },
        "spec": { "requirements": [
            { "key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["small", "large"] },
        ] },
        "status": { "providerID": provider_id, "capacity": capacity },
    })
}

/// A node of the pool that is up.
pub(crate) fn node(name: &str, provider_id: &str) -> Value {
    json!({
        "metadata": { "name": name, "labels": {
            "karpenter.sh/nodepool": "pool", "node.kubernetes.io/instance-type": "small",
            "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true",
        } },
        "spec": { "providerID": provider_id },
        "status": { "capacity": { "cpu": "3", "memory": "7Gi", "hugepages-2Mi": "0" } },
    })
}

pub(crate) fn node_pool(generation: i64, registers: &str) -> Value {
    json!({
        "metadata": { "name": "pool", "generation": generation },
        "status": { "conditions": [{ "type": "NodeRegistrationHealthy", "status": registers }] },
    })
}

pub(crate) fn pod(name: &str, node: &str) -> Value {
    json!({ "metadata": { "namespace": "ns", "name": name }, "spec": { "nodeName": node } })
}

pub(crate) fn deleting(mut object: Value) -> Value {
    object["metadata"]["deletionTimestamp"] = "2026-11-15T12:00:00Z".into();
    object
}

/// An empty cluster in which each kind has been listed.
pub(crate) fn cluster() -> State {
    let mut state = State::default();
    let none = std::collections::BTreeSet::new();
    state.end_list::<NodeClaim>(&none, &"".into());
    state.end_list::<Node>(&none, &"".into());
    state.end_list::<NodePool>(&none, &"".into());
    state.end_list::<Pod>(&none, &"".into());
    state
}
