//! What does an object become once somebody pastes a patch? As `kubectl patch` does for the fields that fixes touch.

use serde_json::Value;

/// Lists whose entries are told apart by a field; all other lists are replaced.
const KEYED: [(&str, &str); 4] = [
    ("containers", "name"),
    ("volumes", "name"),
    ("resourceClaims", "name"),
    ("ports", "containerPort"),
];

/// Puts a patch over an object.
pub(crate) fn apply(object: &mut Value, patch: &Value) {
    let Some(fields) = patch.as_object() else {
        *object = patch.clone();
        return;
    };
    if !object.is_object() {
        *object = Value::Object(serde_json::Map::new());
    }
    for (name, value) in fields {
        let keyed = KEYED.iter().find(|(list, _)| list == name);
        match (keyed, value) {
            (_, Value::Null) => {
                object.as_object_mut().unwrap().remove(name);
            }
            (Some((_, key)), Value::Array(entries)) => merge(&mut object[name.as_str()], entries, key),
            _ => apply(&mut object[name.as_str()], value),
        }
    }
}

fn merge(list: &mut Value, entries: &[Value], key: &str) {
    let list = list.as_array_mut().unwrap();
    for entry in entries {
        let Some(at) = list.iter().position(|it| it[key] == entry[key]) else {
            panic!("{entry} is not in the list it patches");
        };
        if entry["$patch"] == "delete" {
            list.remove(at);
        } else {
            apply(&mut list[at], entry);
        }
    }
}
