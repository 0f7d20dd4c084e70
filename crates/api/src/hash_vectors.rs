//! Checks a drift hash against hashes that upstream's own code printed for the same objects.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Deserialize)]
struct Vectors {
    base: Value,
    vectors: Vec<Vector>,
}

/// A spec, given as a patch of the base or of nothing, and its hash.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Vector {
    name: String,
    start: Start,
    patch: Value,
    ca_bundle: Option<String>,
    hash: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum Start {
    Base,
    Empty,
}

/// Hashes the spec of each vector in a JSON document and compares. `hash` gets the spec and the CA bundle.
pub(crate) fn check(document: &str, hash: impl Fn(Value, Option<&str>) -> String) {
    let Vectors { base, vectors } = serde_json::from_str(document).unwrap();
    let (mut expected, mut actual) = (BTreeMap::new(), BTreeMap::new());
    for vector in vectors {
        let start = match vector.start {
            Start::Base => &base,
            Start::Empty => &Value::Null,
        };
        let spec = merge(start, &vector.patch);
        actual.insert(vector.name.clone(), hash(spec, vector.ca_bundle.as_deref()));
        expected.insert(vector.name, vector.hash);
    }
    assert_eq!(actual, expected);
    assert!(!expected.is_empty());
}

/// RFC 7386.
pub(crate) fn merge(target: &Value, patch: &Value) -> Value {
    let Value::Object(patch) = patch else {
        return patch.clone();
    };
    let mut merged = target.as_object().cloned().unwrap_or_else(Map::new);
    for (key, value) in patch {
        match value {
            Value::Null => merged.remove(key),
            value => merged.insert(key.clone(), merge(merged.get(key).unwrap_or(&Value::Null), value)),
        };
    }
    merged.into()
}
