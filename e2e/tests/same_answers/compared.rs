//! What is taken out of answers before they are compared.
//!
//! | what | why |
//! |---|---|
//! | uids, versions, times, continue tokens, random names | nobody may depend on them |
//! | `managedFields` | see docs/reliability.md |
//! | `nodeInfo`, `daemonEndpoints` and other empty shells | fields Go shows although they are empty |
//! | objects and patches in messages, the words after `json: cannot unmarshal` and behind a pod's diff | they name types of Go |

use serde_json::{Value, json};

/// An object without what may differ.
pub(crate) fn object(object: &Value) -> Value {
    let mut object = object.clone();
    strip(&mut object);
    object
}

fn strip(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(strip),
        Value::Object(fields) => {
            for gone in [
                "uid",
                "resourceVersion",
                "managedFields",
                "creationTimestamp",
                "lastTransitionTime",
                "nodeInfo",
                "daemonEndpoints",
                "retryAfterSeconds",
            ] {
                fields.remove(gone);
            }
            fields.retain(|field, value| !(value.is_null() || (field == "message" && value == "")));
            for set in ["deletionTimestamp", "continue"] {
                fields
                    .entry(set)
                    .and_modify(|value| *value = json!(if value == "" { "" } else { "set" }));
            }
            if fields.get("field").is_some_and(|field| field == "patch") {
                fields.insert("message".to_owned(), json!("cannot be read"));
            }
            if let Some(causes) = fields.get_mut("causes").and_then(Value::as_array_mut) {
                // The real server tells causes in the order of a hash map, and some twice.
                causes.iter_mut().for_each(strip);
                causes.sort_by_key(ToString::to_string);
                causes.dedup();
            }
            if let Some(times) = fields.get_mut("disruptedPods").and_then(Value::as_object_mut) {
                times.values_mut().for_each(|time| *time = json!("set"));
            }
            // Causes that are told twice count once.
            fields.entry("details").and_modify(strip);
            let causes = fields.get("details").and_then(|details| details["causes"].as_array());
            if causes.is_some_and(|causes| causes.len() > 1) {
                fields.insert("message".to_owned(), json!("several"));
            }
            if let Some(Value::String(text)) = fields.get_mut("message") {
                *text = message(text);
            }
            fields.values_mut().for_each(strip);
        }
        _ => {}
    }
}

/// A message without identities, versions, times and names of Go's types.
pub(crate) fn message(text: &str) -> String {
    // What a patch made of an object is shown whole.
    if let (Some(start), Some(end)) = (text.find("patch: Invalid value: "), text.find("}\": "))
        && start < end
    {
        return message(&format!("{}patch: {}", &text[..start], &text[end + 3..]));
    }
    if let Some(end) = text.find("}\": ").filter(|_| text.starts_with("Invalid value: \"{")) {
        return message(&text[end + 3..]);
    }
    if let Some((head, rest)) = text.split_once("Invalid value: {")
        && let Some((_, detail)) = rest.split_once("}: ")
    {
        return message(&format!("{head}Invalid value: …: {detail}"));
    }
    for end in [" in scheme", ", got ", " \"\" is invalid: patch:"] {
        if let Some((head, _)) = text.split_once(end) {
            return format!("{head}{end}");
        }
    }
    for (before, after) in [
        ("json: cannot unmarshal", "…"),
        ("pod updates may not change fields", "…"),
    ] {
        if let Some((head, _)) = text.split_once(before) {
            return format!("{head}{before}{after}");
        }
    }
    let word = |word: &str| {
        let bare = word.trim_matches(|letter: char| ",.():\"\\".contains(letter));
        let is_uid = bare.len() == 36 && bare.matches('-').count() == 4;
        let is_number = !bare.is_empty() && bare.bytes().all(|byte| byte.is_ascii_digit());
        let is_time = bare.len() == 20 && bare.ends_with('Z') && bare.contains('T');
        if is_uid || is_number || is_time {
            word.replace(bare, "#")
        } else {
            word.to_owned()
        }
    };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}
