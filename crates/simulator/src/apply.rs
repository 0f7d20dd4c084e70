//! What becomes of an object when somebody applies what they want of it? Fields have owners: who applies owns what they
//! say, loses what they no longer say, and is told when another owns what they want to change.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    Failure,
    fieldset::{FieldSet, named},
    schema::{List, Schema, identity},
    write,
};

/// Who writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Writer {
    pub(crate) manager: String,
    pub(crate) api_version: String,
    /// Empty for the object itself.
    pub(crate) subresource: String,
}

/// An entry of `managedFields`.
#[derive(Debug, Clone)]
struct Entry {
    writer: Writer,
    is_apply: bool,
    time: Value,
    fields: FieldSet,
}

impl Entry {
    fn read(entry: &Value) -> Self {
        let text = |field: &str| entry[field].as_str().unwrap_or_default().to_owned();
        Self {
            writer: Writer {
                manager: text("manager"),
                api_version: text("apiVersion"),
                subresource: text("subresource"),
            },
            is_apply: entry["operation"] == "Apply",
            time: entry["time"].clone(),
            fields: FieldSet::read(&entry["fieldsV1"]),
        }
    }

    fn write(&self) -> Value {
        let mut entry = json!({
            "manager": self.writer.manager, "operation": if self.is_apply { "Apply" } else { "Update" },
            "apiVersion": self.writer.api_version, "time": self.time,
            "fieldsType": "FieldsV1", "fieldsV1": self.fields.write(),
        });
        if !self.writer.subresource.is_empty() {
            entry["subresource"] = json!(self.writer.subresource);
        }
        entry
    }

    fn is_of(&self, writer: &Writer, is_apply: bool) -> bool {
        self.is_apply == is_apply
            && self.writer.manager == writer.manager
            && self.writer.subresource == writer.subresource
            && (is_apply || self.writer.api_version == writer.api_version)
    }

    fn title(&self) -> String {
        let part = match self.writer.subresource.as_str() {
            "" => String::new(),
            part => format!(" with subresource {part:?}"),
        };
        let name = format!("{:?}{part}", self.writer.manager);
        if self.is_apply {
            return name;
        }
        format!("{name} using {}", self.writer.api_version)
    }
}

fn read(object: &Value) -> Vec<Entry> {
    let entries = object["metadata"]["managedFields"].as_array();
    entries.into_iter().flatten().map(Entry::read).collect()
}

fn note(object: &mut Value, entries: &[Entry]) {
    let entries: Vec<Value> = entries
        .iter()
        .filter(|entry| !entry.fields.is_empty())
        .map(Entry::write)
        .collect();
    let metadata = write::fields(&mut object["metadata"]);
    if entries.is_empty() {
        metadata.remove("managedFields");
    } else {
        metadata.insert("managedFields".to_owned(), Value::Array(entries));
    }
}

/// Notes who set what in a new object: what they said of it.
pub(crate) fn note_creation(
    said: &Value,
    object: &mut Value,
    writer: &Writer,
    schema: Option<&Schema>,
    now: Timestamp,
) {
    let mut fields = FieldSet::of_object(said, schema);
    fields.keep_existing(object, schema);
    let entry = Entry {
        writer: writer.clone(),
        is_apply: false,
        time: write::time(now),
        fields,
    };
    note(object, &[entry]);
}

/// Notes who set what by a change that is no application.
pub(crate) fn note_update(before: &Value, after: &mut Value, writer: &Writer, schema: Option<&Schema>, now: Timestamp) {
    // What a client says of owners counts, and most of all if it takes them all away.
    let said = after["metadata"].get("managedFields");
    if said.is_some_and(|said| *said == json!([]) || *said == json!([{}])) {
        note(after, &[]);
        return;
    }
    let mut entries = if said.is_some() { read(after) } else { read(before) };
    let changed = FieldSet::changed(before, after, schema);
    for entry in &mut entries {
        if !entry.is_of(writer, false) {
            entry.fields.subtract(&changed);
        }
        entry.fields.keep_existing(after, schema);
    }
    if !changed.is_empty() {
        match entries.iter_mut().find(|entry| entry.is_of(writer, false)) {
            Some(entry) => {
                entry.fields.add(&changed);
                entry.time = write::time(now);
            }
            None => entries.push(Entry {
                writer: writer.clone(),
                is_apply: false,
                time: write::time(now),
                fields: changed,
            }),
        }
    }
    note(after, &entries);
}

/// What an object is after an application; `live` is null where there is none.
pub(crate) fn apply(
    live: &Value,
    config: &Value,
    writer: &Writer,
    force: bool,
    schema: Option<&Schema>,
    now: Timestamp,
) -> Result<Value, Failure> {
    let mut entries = read(live);
    if !live.is_null() && entries.is_empty() {
        // Nobody knows who set what is there: somebody did.
        let before = Writer {
            manager: "before-first-apply".to_owned(),
            ..writer.clone()
        };
        entries.push(Entry {
            writer: before,
            is_apply: false,
            time: write::time(now),
            fields: FieldSet::of_object(live, schema),
        });
    }
    let wanted = FieldSet::of_object(config, schema);
    let mut merged = live.clone();
    merge(&mut merged, config, schema);
    let owned = entries
        .iter()
        .position(|entry| entry.is_of(writer, true))
        .map(|at| entries.remove(at));
    if let Some(owned) = &owned {
        let mut others = FieldSet::default();
        for entry in &entries {
            others.add(&entry.fields);
        }
        others.add(&wanted);
        let mut dropped = owned.fields.clone();
        dropped.subtract(&wanted);
        dropped.remove_from(&mut merged, &others);
    }
    let changed = FieldSet::changed(live, &merged, schema);
    conflicts(&mut entries, &wanted.common(&changed), force)?;
    for entry in &mut entries {
        entry.fields.keep_existing(&merged, schema);
    }
    let is_same = owned.as_ref().is_some_and(|owned| owned.fields == wanted) && changed.is_empty();
    let time = match owned {
        Some(owned) if is_same => owned.time,
        _ => write::time(now),
    };
    entries.insert(
        0,
        Entry {
            writer: writer.clone(),
            is_apply: true,
            time,
            fields: wanted,
        },
    );
    note(&mut merged, &entries);
    Ok(merged)
}

/// Whoever else owns what changes loses it, if that is forced; else it is a conflict.
fn conflicts(entries: &mut [Entry], changed: &FieldSet, force: bool) -> Result<(), Failure> {
    let mut found: Vec<(String, String)> = Vec::new();
    for entry in entries {
        let common = entry.fields.common(changed);
        if force {
            entry.fields.subtract(&common);
        } else {
            found.extend(common.paths().iter().map(|path| (entry.title(), named(path))));
        }
    }
    let message = match found.as_slice() {
        [] => return Ok(()),
        [(manager, path)] => format!("Apply failed with 1 conflict: conflict with {manager}: {path}"),
        several => {
            let mut lines = Vec::new();
            let mut last = "";
            for (manager, path) in several {
                if manager != last {
                    lines.push(format!("conflicts with {manager}:"));
                    last = manager;
                }
                lines.push(format!("- {path}"));
            }
            format!("Apply failed with {} conflicts: {}", several.len(), lines.join("\n"))
        }
    };
    let cause = |(manager, path): &(String, String)| json!({"reason": "FieldManagerConflict", "message": format!("conflict with {manager}"), "field": path});
    let causes: Vec<Value> = found.iter().map(cause).collect();
    Err(Failure {
        code: 409,
        reason: "Conflict".to_owned(),
        message,
        details: Some(json!({"causes": causes})),
    })
}

/// Puts what is wanted into what is there.
fn merge(live: &mut Value, config: &Value, schema: Option<&Schema>) {
    let is_whole = schema.is_some_and(|schema| schema.is_atomic);
    match config {
        Value::Object(fields) if !is_whole => {
            let into = write::fields(live);
            for (name, value) in fields {
                let schema = schema.and_then(|schema| schema.field(name));
                merge(into.entry(name.clone()).or_insert(Value::Null), value, schema);
            }
        }
        Value::Array(items) => match (schema.map(|schema| &schema.list), live.as_array_mut()) {
            (Some(List::Map(keys)), Some(known)) => {
                let below = schema.and_then(|schema| schema.items.as_deref());
                for item in items {
                    let wanted = identity(item, keys);
                    match known.iter_mut().find(|known| identity(known, keys) == wanted) {
                        Some(known) => merge(known, item, below),
                        None => known.push(item.clone()),
                    }
                }
            }
            (Some(List::Set), Some(known)) => {
                for item in items {
                    if !known.contains(item) {
                        known.push(item.clone());
                    }
                }
            }
            _ => *live = config.clone(),
        },
        _ => *live = config.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Resource;

    fn writer(manager: &str) -> Writer {
        Writer {
            manager: manager.to_owned(),
            api_version: "apps/v1".to_owned(),
            subresource: String::new(),
        }
    }

    fn schema() -> Option<&'static Schema> {
        crate::builtin::schema(&Resource::new("apps", "deployments"))
    }

    fn deployment(replicas: Option<u32>, image: &str) -> Value {
        let mut object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {
            "template": {"spec": {"containers": [{"name": "c", "image": image}]}}}});
        if let Some(replicas) = replicas {
            object["spec"]["replicas"] = json!(replicas);
        }
        object
    }

    fn applied(live: &Value, config: &Value, manager: &str, force: bool) -> Result<Value, Failure> {
        apply(live, config, &writer(manager), force, schema(), Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn what_is_no_longer_applied_goes_and_what_others_own_stays() {
        let live = applied(&Value::Null, &deployment(Some(3), "a"), "one", false).unwrap();
        let sidecar = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {
            "template": {"spec": {"containers": [{"name": "side", "image": "s"}]}}}});
        let live = applied(&live, &sidecar, "two", false).unwrap();
        let live = applied(&live, &deployment(None, "b"), "one", false).unwrap();
        assert_eq!(
            live["spec"],
            json!({"template": {"spec": {"containers": [{"name": "c", "image": "b"}, {"name": "side", "image": "s"}]}}})
        );
    }

    #[test]
    fn changing_what_another_owns_is_a_conflict_unless_it_is_forced() {
        let live = applied(&Value::Null, &deployment(Some(3), "a"), "one", false).unwrap();
        let refused = applied(&live, &deployment(Some(4), "a"), "two", false).unwrap_err();
        assert_eq!(
            (refused.code, refused.message.as_str()),
            (
                409,
                "Apply failed with 1 conflict: conflict with \"one\": .spec.replicas"
            )
        );
        let live = applied(&live, &deployment(Some(4), "a"), "two", true).unwrap();
        assert_eq!(live["spec"]["replicas"], 4);
        let owners = |live: &Value| -> Vec<(String, bool)> {
            let entries = live["metadata"]["managedFields"].as_array().unwrap().iter();
            entries
                .map(|entry| {
                    let manager = entry["manager"].as_str().unwrap().to_owned();
                    (manager, !entry["fieldsV1"]["f:spec"]["f:replicas"].is_null())
                })
                .collect()
        };
        assert_eq!(owners(&live), [("two".to_owned(), true), ("one".to_owned(), false)]);
    }

    #[test]
    fn an_update_takes_over_what_it_changes() {
        let live = applied(&Value::Null, &deployment(Some(3), "a"), "one", false).unwrap();
        let mut after = live.clone();
        after["spec"]["replicas"] = json!(5);
        note_update(
            &live,
            &mut after,
            &writer("kubectl-scale"),
            schema(),
            Timestamp::UNIX_EPOCH,
        );
        let refused = applied(&after, &deployment(Some(3), "a"), "one", false).unwrap_err();
        assert_eq!(
            refused.message,
            "Apply failed with 1 conflict: conflict with \"kubectl-scale\" using apps/v1: .spec.replicas"
        );
    }
}
