//! Documents of every command are what `dovetail schema` says they are: no field that it does not have, none missing that
//! it promises.
// Clippy sees tests only in test functions; here everything is one.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::{
    path::Path,
    process::{Command, Output},
};

use serde_json::Value;

fn dovetail(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dovetail"))
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .args(arguments)
        .output()
        .unwrap()
}

fn read(arguments: &[&str]) -> Value {
    let output = dovetail(arguments);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {output:?}"))
}

/// What of a value is not as a schema has it, with its path.
fn faults(schema: &Value, root: &Value, value: &Value, path: &str) -> Vec<String> {
    if let Some(name) = schema["$ref"].as_str() {
        let definition = &root["$defs"][name.trim_start_matches("#/$defs/")];
        return faults(definition, root, value, path);
    }
    if let Some(any) = schema["anyOf"].as_array() {
        let is_one = any.iter().any(|one| faults(one, root, value, path).is_empty());
        return if is_one {
            Vec::new()
        } else {
            vec![format!("{path}: none of {schema}")]
        };
    }
    if !is_of(&schema["type"], value) {
        return vec![format!("{path}: {value} is not {}", schema["type"])];
    }
    let mut found = Vec::new();
    if let Some(fields) = value.as_object() {
        let required = schema["required"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        let missing = required.filter(|name| !fields.contains_key(*name));
        found.extend(missing.map(|name| format!("{path}.{name}: missing")));
        for (name, field) in fields {
            let path = format!("{path}.{name}");
            let own = &schema["properties"][name.as_str()];
            let other = &schema["additionalProperties"];
            match (own.is_object(), other.is_object()) {
                (true, _) => found.extend(faults(own, root, field, &path)),
                (false, true) => found.extend(faults(other, root, field, &path)),
                (false, false) => found.push(format!("{path}: not in the schema")),
            }
        }
    }
    for (at, item) in value.as_array().into_iter().flatten().enumerate() {
        found.extend(faults(&schema["items"], root, item, &format!("{path}[{at}]")));
    }
    found
}

fn is_of(kinds: &Value, value: &Value) -> bool {
    let is = |kind: &str| match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("no type {other}"),
    };
    match kinds {
        Value::String(kind) => is(kind),
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).any(is),
        _ => true,
    }
}

const PLAN: &[&str] = &["--from", "examples/plan"];
const CHECKUP: &[&str] = &["--from", "examples/checkup/cluster"];

#[test]
fn every_document_is_as_its_schema_says() {
    let asked: [(&[&str], &[&str]); 15] = [
        (&["status"], PLAN),
        (&["plan"], PLAN),
        (&["cost"], PLAN),
        (&["cost", "--by", "namespace"], PLAN),
        (&["budgets"], PLAN),
        (&["why", "nodepool", "general"], PLAN),
        (&["whatif", "--spot-price", "+40%"], PLAN),
        (&["whatif", "--zone-down", "a"], PLAN),
        (&["lint"], PLAN),
        (&["lint", "-f", "examples/lint/mission"], &[]),
        (&["drift"], CHECKUP),
        (&["drift", "--preview", "-f", "examples/checkup/change"], CHECKUP),
        (&["doctor"], CHECKUP),
        (&["status"], CHECKUP),
        (&["version"], &[]),
    ];
    let mut wrong = Vec::new();
    let mut check = |arguments: &[&str]| {
        let document = read(&[arguments, &["-o", "json"]].concat());
        let kind = document["kind"]
            .as_str()
            .unwrap_or_else(|| panic!("{arguments:?}: {document}"));
        let schema = read(&["schema", kind]);
        let found = faults(&schema, &schema, &document, "");
        wrong.extend(found.into_iter().map(|fault| format!("{arguments:?}: {fault}")));
    };
    for (command, source) in asked {
        check(&[command, source].concat());
    }
    let snapshot = read(&["status", "--from", "examples/plan", "-o", "json"]);
    for pending in snapshot["pending"].as_array().unwrap() {
        let pod = pending["pods"][0].as_str().unwrap();
        check(&["why", "pod", pod, "--from", "examples/plan"]);
    }
    let nodes = read(&["drift", "--from", "examples/checkup/cluster", "-o", "json"]);
    let node = nodes["pools"][0]["nodes"][0]["node"].as_str().unwrap_or_default();
    if !node.is_empty() {
        check(&["why", "node", node, "--from", "examples/checkup/cluster"]);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn kinds_are_listed_and_one_with_a_slip_gets_the_nearest() {
    let listed = String::from_utf8(dovetail(&["schema"]).stdout).unwrap();
    assert!(
        listed.contains("Status               dovetail status -o json\n"),
        "{listed}"
    );
    let output = dovetail(&["schema", "Statos"]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("Status is the nearest"), "{error}");
}
