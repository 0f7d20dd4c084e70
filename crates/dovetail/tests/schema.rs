//! Documents of every command are what `dovetail schema` says they are: no field that it does not have, none missing that
//! it promises.
// Clippy sees tests only in test functions; here everything is one.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::{
    path::Path,
    process::{Command, Output},
};

use serde_json::{Value, json};

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

/// What of a command's document is not as the schema of its kind has it.
fn wrong(arguments: &[&str]) -> Vec<String> {
    let document = read(&[arguments, &["-o", "json"]].concat());
    let kind = document["kind"]
        .as_str()
        .unwrap_or_else(|| panic!("{arguments:?}: {document}"));
    let schema = read(&["schema", kind]);
    let found = faults(&schema, &schema, &document, "");
    found
        .into_iter()
        .map(|fault| format!("{arguments:?}: {fault}"))
        .collect()
}

/// Records with everything a record may have, and with as little as it must.
fn records() -> String {
    let whole = json!({"id": "6c59aa00bb11", "time": "2026-11-16T15:15:11Z", "last_seen": "2026-11-16T15:16:35Z", "count": 2,
        "action": "replace", "phase": "done", "reason": "Underutilized", "pool": "general", "detail": "words", "nodes": 1,
        "targets": [{"node": "n1", "claim": "c1", "type": "m6i.large", "zone": "a", "capacity": "spot", "usd_h": 0.1},
            {"claim": "c2", "comes": true}],
        "money": {"before_usd_h": 0.2, "after_usd_h": 0.1}, "forgone_usd_h": 0.5,
        "score": {"saving_permille": 19, "disruption_permille": 6, "approved": true},
        "options": [{"offer": "a", "usd_h": 0.1, "verdict": "chosen"}, {"offer": "b", "verdict": "dearer"}],
        "pods": ["shop/web"], "pod_count": 1, "steps": [{"step": "planned", "at": "2026-11-16T15:15:11Z"}],
        "lift": {"object": "NodePool general", "change": "raise limits.cpu"},
        "inputs": {"digest": "681c9413edfd1d19", "pods": 1, "nodes": 1, "offers": 2, "engine": "0.1.0", "took_ms": 6}});
    let least = json!({"id": "6c60aa00bb11", "time": "2026-11-16T15:15:11Z", "last_seen": "2026-11-16T15:15:11Z",
        "action": "keep", "phase": "done", "reason": "DoNotDisrupt"});
    format!("{whole}\n{least}\n")
}

#[test]
fn decisions_are_as_their_schemas_say() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("decisions.jsonl");
    std::fs::write(&file, records()).unwrap();
    let file = file.to_str().unwrap();
    let questions: [&[&str]; 4] = [
        &["decisions", "--from", file],
        &["decisions", "export", "--from", file],
        &["why", "6c59", "--from", file],
        &["why", "6c60", "--from", file],
    ];
    let wrong: Vec<String> = questions.iter().flat_map(|question| wrong(question)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_was_observed_between_two_dumps_is_as_its_schema_says() {
    let folder = tempfile::tempdir().unwrap();
    let looks = ["early", "late"].map(|name| folder.path().join(name));
    for look in &looks {
        std::fs::create_dir(look).unwrap();
        for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/plan")).unwrap() {
            let path = entry.unwrap().path();
            // A time that is still to come says nothing about a dump, so all of it is long ago.
            let text = std::fs::read_to_string(&path).unwrap().replace("2026-", "2019-");
            std::fs::write(look.join(path.file_name().unwrap()), text).unwrap();
        }
    }
    let later = "apiVersion: v1\nkind: Pod\nmetadata: {name: later, namespace: a, creationTimestamp: '2020-01-01T00:00:00Z'}\n\
        spec: {containers: [{name: a}]}\nstatus: {phase: Succeeded}\n";
    std::fs::write(looks[1].join("later.yaml"), later).unwrap();
    let earlier = later
        .replace("2020-01-01T00", "2019-12-31T23")
        .replace("later", "earlier");
    std::fs::write(looks[0].join("earlier.yaml"), earlier).unwrap();
    let wrong = wrong(&["observe", "--from", folder.path().to_str().unwrap()]);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_decision_made_again_is_as_its_schema_says() {
    let folder = tempfile::tempdir().unwrap();
    let story = scenario::STORIES.iter().find(|story| story.name == "scale-in").unwrap();
    let mut story = scenario::Scenario::read(story.name, story.text).unwrap();
    let recorder = folder.path().to_str().unwrap();
    story.flags.push(format!("--flight-recorder={recorder}"));
    let how = scenario::Play {
        seed: 1,
        ..scenario::Play::default()
    };
    scenario::on_virtual_time(scenario::play(&story, &how))
        .unwrap()
        .unwrap();
    let wrong = wrong(&["replay", "--at", "2100-01-01T00:00:00Z", "--record", recorder]);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_a_demo_came_to_is_as_its_schema_says() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("config");
    let kubeconfig = kubeconfig.to_str().unwrap();
    let wrong = wrong(&[
        "demo",
        "--cloud",
        "kwok",
        "--speed",
        "60x",
        "--seconds",
        "1",
        "--kubeconfig",
        kubeconfig,
    ]);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn pauses_are_as_their_schema_says() {
    let server = simulator::ApiServer::new(|| jiff::Timestamp::UNIX_EPOCH);
    for definition in api::crds::installation(&[]) {
        server.create(serde_json::to_value(definition).unwrap()).unwrap();
    }
    let pool = json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "general"}, "spec": {
        "template": {"spec": {"requirements": [], "nodeClassRef": {"group": "a.b", "kind": "C", "name": "d"}}}}});
    server.create(pool).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    std::fs::write(&kubeconfig, simulator::http::kubeconfig(listener.local_addr().unwrap())).unwrap();
    std::thread::spawn(move || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_all().build().unwrap().block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            simulator::http::serve(server, listener).await;
        });
    });
    let kubeconfig = kubeconfig.to_str().unwrap();
    let questions: [&[&str]; 3] = [
        &[
            "pause",
            "--reason",
            "incident",
            "--for",
            "2h",
            "--yes",
            "--kubeconfig",
            kubeconfig,
        ],
        &["resume", "--yes", "--kubeconfig", kubeconfig],
        &["resume", "--yes", "--kubeconfig", kubeconfig],
    ];
    let wrong: Vec<String> = questions.iter().flat_map(|question| wrong(question)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_document_is_as_its_schema_says() {
    let folder = tempfile::tempdir().unwrap();
    let definitions = folder.path().to_str().unwrap();
    assert!(
        dovetail(&["crds", "--only", "aws", "--directory", definitions])
            .status
            .success()
    );
    let asked: [(&[&str], &[&str]); 21] = [
        (&["status"], PLAN),
        (&["plan"], PLAN),
        (&["cost"], PLAN),
        (&["cost", "--by", "namespace"], PLAN),
        (&["cost", "--by", "zone", "-l", "!none"], PLAN),
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
        (&["prices", "--catalogue", "azure", "--type", "Standard_D4s"], &[]),
        (&["prices", "--pool", "general", "--cpu", "64"], PLAN),
        (&["crds", "--diff", "--from", definitions], &[]),
        (&["crds", "--diff", "--only", "azure", "--from", definitions], &[]),
        (&["crds", "--diff", "--only", "core", "--from", definitions], &[]),
    ];
    let mut found = Vec::new();
    let mut check = |arguments: &[&str]| found.extend(wrong(arguments));
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
    assert!(found.is_empty(), "{}", found.join("\n"));
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
