//! Every kind of object survives reading and writing with all the fields decisions read, whatever part of it is there.
//!
//! `data/objects.json` holds at least one object of each kind with every retained field set, in the spelling we write.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking and may print"
)]

use model::{
    dump::{self, Mode, Options, Source},
    snapshot::Snapshot,
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn fixtures() -> Vec<Value> {
    serde_json::from_str(include_str!("data/objects.json")).unwrap()
}

fn read(json: &Value, mode: Mode) -> (Snapshot, dump::Report) {
    let options = Options {
        mode,
        taken_at: jiff::Timestamp::UNIX_EPOCH,
    };
    let stream = std::io::Cursor::new(json.to_string().into_bytes());
    dump::read([Source::Stream("test".into(), Box::new(stream))], options).unwrap()
}

fn written(snapshot: &Snapshot) -> Value {
    let mut bytes = Vec::new();
    dump::write(snapshot, &mut bytes).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

/// Pods and templates write `status`, `spec` and `metadata` even when empty; that is the same object to the API.
fn without_empty_maps(value: &mut Value) {
    if let Some(map) = value.as_object_mut() {
        map.values_mut().for_each(without_empty_maps);
        map.retain(|key, value| !(matches!(key.as_str(), "metadata" | "spec" | "status") && *value == json!({})));
    } else if let Some(list) = value.as_array_mut() {
        list.iter_mut().for_each(without_empty_maps);
    }
}

#[test]
fn every_retained_field_of_every_kind_is_written_back() {
    for fixture in fixtures() {
        let (snapshot, _) = read(&fixture, Mode::Strict);
        let mut actual = written(&snapshot)["objects"].clone();
        let mut expected = json!([fixture]);
        without_empty_maps(&mut actual);
        without_empty_maps(&mut expected);
        assert_eq!(actual, expected);
    }
}

#[test]
fn fields_nobody_reads_are_skipped_wherever_they_are() {
    let plain = read(&Value::Array(fixtures()), Mode::Strict).0;
    let noise = json!({ "f:metadata": [1, { "deep": null }], "text": "\u{e9}\"" });
    let mut noisy = fixtures();
    for object in &mut noisy {
        for part in [
            "",
            "/metadata",
            "/spec",
            "/status",
            "/spec/template/spec",
            "/spec/containers/0",
            "/spec/devices",
        ] {
            if let Some(map) = object.pointer_mut(part).and_then(Value::as_object_mut) {
                map.insert("zzUnknown".into(), noise.clone());
            }
        }
    }
    assert_eq!(read(&Value::Array(noisy), Mode::Strict).0, plain);
}

/// Removes the parts of a value that the picks point at, one number per step down.
fn prune(value: &mut Value, picks: &[usize]) {
    let Some((pick, rest)) = picks.split_first() else {
        return;
    };
    if let Some(map) = value.as_object_mut()
        && !map.is_empty()
    {
        let key = map.keys().nth(pick % map.len()).cloned().unwrap();
        match rest {
            [] => drop(map.remove(&key)),
            rest => prune(&mut map[&key], rest),
        }
    } else if let Some(list) = value.as_array_mut()
        && !list.is_empty()
    {
        let at = pick % list.len();
        if rest.is_empty() {
            drop(list.remove(at));
        } else {
            prune(&mut list[at], rest);
        }
    }
}

proptest! {
    #[test]
    fn reading_what_was_written_changes_nothing(prunings in prop::collection::vec(prop::collection::vec(0usize..64, 1..9), 0..60)) {
        let mut objects = Value::Array(fixtures());
        for picks in &prunings {
            prune(&mut objects, picks);
        }
        let (snapshot, _) = read(&objects, Mode::Lenient);
        let first = written(&snapshot);
        let (again, report) = read(&first, Mode::Strict);
        prop_assert_eq!(&again.objects(), &snapshot.objects());
        prop_assert_eq!(report.faults, vec![]);
        prop_assert_eq!(written(&again), first);
    }
}
