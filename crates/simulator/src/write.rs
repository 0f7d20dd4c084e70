//! What a write does to an object: creation, update of its parts, deletion.

use std::sync::Arc;

use jiff::{Timestamp, ToSpan};
use serde_json::{Map, Value, json};

use crate::{
    Failure, Resource,
    address::Key,
    definition::{self, Definition, definitions},
    kind::Facts,
    pod,
    store::Store,
};

/// Who creates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A request: what only others may write is dropped.
    Request,
    /// The test: the object is taken as it is, with its status.
    Test,
}

/// Which part of an object an update may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// All but the status.
    Main,
    /// The status.
    Status,
    /// The whole object.
    Whole,
}

/// As the API writes it.
pub(crate) fn time(at: Timestamp) -> Value {
    let seconds = Timestamp::from_second(at.as_second()).unwrap_or(at);
    json!(seconds.to_string())
}

/// Creates an object.
pub(crate) fn create(
    store: &mut Store,
    named: (&Resource, &str),
    namespace: &str,
    object: Value,
    origin: Origin,
    now: Timestamp,
) -> Result<Arc<Value>, Failure> {
    create_checked(store, named, namespace, object, origin, now, |_, _| Ok(()))
}

/// Creates an object once it is checked, and perhaps annotated.
pub(crate) fn create_checked(
    store: &mut Store,
    (resource, api_version): (&Resource, &str),
    namespace: &str,
    mut object: Value,
    origin: Origin,
    now: Timestamp,
    check: impl FnOnce(&mut Value, &Value) -> Result<(), Failure>,
) -> Result<Arc<Value>, Failure> {
    drop_nulls(&mut object);
    let kind = object["kind"].as_str().unwrap_or(&resource.plural).to_owned();
    store.kinds.learn(resource, &kind, !namespace.is_empty());
    let facts = store.kinds.facts(resource);
    let given = object["metadata"]["namespace"].as_str().unwrap_or_default();
    if !given.is_empty() && given != namespace {
        return Err(Failure::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    let name = name(store, &object, resource, &facts)?;
    let key = (namespace.to_owned(), name);
    object["apiVersion"] = json!(api_version);
    object["kind"] = json!(facts.kind);
    stamp(store, &mut object, &key, &facts, now);
    if origin == Origin::Request && facts.has_status && resource.plural != "nodes" {
        fields(&mut object).remove("status");
    }
    if origin == Origin::Request && facts.is_built_in && facts.has_status && !object["status"].is_object() {
        object["status"] = json!({});
    }
    if *resource == Resource::new("", "pods") {
        pod::rank(store, &key, &mut object)?;
        pod::complete(&mut object);
    }
    if origin == Origin::Request && *resource == Resource::new("", "nodes") {
        taint_not_ready(&mut object);
    }
    if *resource == Resource::new("policy", "poddisruptionbudgets") && is_blank(&object["status"]) {
        object["status"] =
            json!({"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0});
    }
    if *resource == Resource::new("", "namespaces") && is_blank(&object["status"]) {
        object["status"] = json!({"phase": "Active"});
    }
    if origin == Origin::Request && *resource == Resource::new("", "namespaces") {
        object["metadata"]["labels"]["kubernetes.io/metadata.name"] = json!(key.1);
    }
    if *resource == definitions() {
        definition::accept(&mut object, &time(now));
    }
    drop_empty(&mut object);
    check(&mut object, &Value::Null)?;
    if store.find(resource, &key).is_some() {
        return Err(Failure::already_exists(resource, &key));
    }
    redefine(store, resource, &object);
    Ok(store.put(resource, key, object))
}

fn is_blank(status: &Value) -> bool {
    status.as_object().is_none_or(Map::is_empty)
}

/// A definition changes what is served.
fn redefine(store: &mut Store, resource: &Resource, object: &Value) {
    if *resource == definitions() && !store.is_rehearsal {
        store.kinds.define(Definition::read(object));
    }
}

/// What a definition defined goes with it.
fn undefine(store: &mut Store, object: &Value, now: Timestamp) {
    let gone = Definition::read(object).resource;
    let keys: Vec<Key> = store
        .all(&gone)
        .map(|object| {
            let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
            (text("namespace"), text("name"))
        })
        .collect();
    for key in keys {
        let _ = delete(store, &gone, &key, &Deletion::default(), now);
    }
    store.kinds.undefine(&gone);
}

/// Takes an owner off everything it owns, so that nothing goes with it.
pub(crate) fn orphan(store: &mut Store, owner: &str) {
    let mut owned = Vec::new();
    for (resource, key, object) in store.entries() {
        let owners = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
        if owners.into_iter().any(|one| one["uid"] == owner) {
            owned.push((resource.clone(), key.clone(), (**object).clone()));
        }
    }
    for (resource, key, mut object) in owned {
        if let Some(owners) = object["metadata"]["ownerReferences"].as_array_mut() {
            owners.retain(|one| one["uid"] != owner);
        }
        let _ = update(store, &resource, &key, Part::Whole, object);
    }
}

/// Admission: no pod goes to a new node before its life cycle says that it is ready.
fn taint_not_ready(node: &mut Value) {
    let taint = json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"});
    match node.pointer_mut("/spec/taints").and_then(Value::as_array_mut) {
        Some(taints) if taints.contains(&taint) => {}
        Some(taints) => taints.push(taint),
        None => node["spec"]["taints"] = json!([taint]),
    }
}

fn name(store: &mut Store, object: &Value, resource: &Resource, facts: &Facts) -> Result<String, Failure> {
    if let Some(name) = object["metadata"]["name"].as_str().filter(|name| !name.is_empty()) {
        return Ok(name.to_owned());
    }
    match object["metadata"]["generateName"].as_str() {
        Some(base) if !base.is_empty() => Ok(format!("{base}{}", suffix(store.identity()))),
        _ => Err(Failure::invalid(
            &resource.group,
            &facts.kind,
            "",
            [
                "FieldValueRequired",
                "metadata.name",
                "Required value: name or generateName is required",
            ],
        )),
    }
}

/// Five letters that look as random as the API server's and are not.
fn suffix(identity: u64) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut seed = identity.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut letter = || {
        seed ^= seed >> 29;
        seed = seed.wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let at = usize::try_from(seed >> 40).unwrap_or(0) % LETTERS.len();
        char::from(LETTERS[at])
    };
    (0..5).map(|_| letter()).collect()
}

fn stamp(store: &mut Store, object: &mut Value, key: &Key, facts: &Facts, now: Timestamp) {
    let identity = store.identity();
    let metadata = fields(&mut object["metadata"]);
    for field in [
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "resourceVersion",
        "generation",
    ] {
        metadata.remove(field);
    }
    metadata.insert("name".to_owned(), json!(key.1));
    if !key.0.is_empty() {
        metadata.insert("namespace".to_owned(), json!(key.0));
    }
    metadata.insert(
        "uid".to_owned(),
        json!(format!("00000000-0000-4000-8000-{identity:012x}")),
    );
    metadata.insert("creationTimestamp".to_owned(), time(now));
    if facts.has_generation {
        metadata.insert("generation".to_owned(), json!(1));
    }
}

/// Changes a part of an object to what is wanted. Nothing is written when nothing changes.
pub(crate) fn update(
    store: &mut Store,
    resource: &Resource,
    key: &Key,
    part: Part,
    wanted: Value,
) -> Result<Arc<Value>, Failure> {
    update_checked(store, resource, key, part, wanted, |_, _| Ok(()))
}

/// Changes a part of an object once the change is checked, and perhaps annotated.
pub(crate) fn update_checked(
    store: &mut Store,
    resource: &Resource,
    key: &Key,
    part: Part,
    mut wanted: Value,
    check: impl FnOnce(&mut Value, &Value) -> Result<(), Failure>,
) -> Result<Arc<Value>, Failure> {
    let before = Arc::clone(store.get(resource, key)?);
    let facts = store.kinds.facts(resource);
    drop_nulls(&mut wanted);
    is_current(resource, key, &before, &wanted)?;
    let mut after = compose(&before, wanted, part, &facts);
    keep_identity(&before, &mut after);
    drop_empty(&mut after);
    no_new_finalizers(resource, key, &facts, &before, &after)?;
    let is_noted = part == Part::Main
        && *resource == Resource::new("apps", "deployments")
        && before["metadata"]["annotations"] != after["metadata"]["annotations"];
    if facts.has_generation && (is_noted || differs_in_substance(&before, &after)) {
        bump_generation(&mut after);
    }
    check(&mut after, &before)?;
    if after == *before {
        return Ok(before);
    }
    if is_over(&after) {
        // It goes without having been written once more, so it is last seen as it was.
        store.remove(resource, key, (*before).clone());
        return Ok(Arc::new(after));
    }
    redefine(store, resource, &after);
    Ok(store.put(resource, key.clone(), after))
}

pub(crate) fn is_current(resource: &Resource, key: &Key, before: &Value, wanted: &Value) -> Result<(), Failure> {
    let given = |field: &str| wanted["metadata"][field].as_str().filter(|text| !text.is_empty());
    let known = |field: &str| before["metadata"][field].as_str().unwrap_or_default();
    if let Some(uid) = given("uid").filter(|uid| *uid != known("uid")) {
        let why = format!(
            "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
            known("uid")
        );
        return Err(Failure::conflict(resource, key, &why));
    }
    match given("resourceVersion") {
        Some(version) if version != known("resourceVersion") => Err(Failure::modified(resource, key)),
        _ => Ok(()),
    }
}

fn compose(before: &Value, wanted: Value, part: Part, facts: &Facts) -> Value {
    let take = |into: &mut Value, from: &Value, field: &str| match from.get(field) {
        Some(value) => {
            fields(into).insert(field.to_owned(), value.clone());
        }
        None => {
            fields(into).remove(field);
        }
    };
    match part {
        Part::Whole => wanted,
        Part::Main => {
            let mut after = wanted;
            if facts.has_status {
                take(&mut after, before, "status");
            }
            after
        }
        Part::Status => {
            let mut after = before.clone();
            take(&mut after, &wanted, "status");
            if facts.is_built_in {
                take(&mut after, &wanted, "metadata");
            }
            after
        }
    }
}

/// What no update changes.
fn keep_identity(before: &Value, after: &mut Value) {
    for field in ["apiVersion", "kind"] {
        after[field] = before[field].clone();
    }
    let metadata = fields(&mut after["metadata"]);
    for field in [
        "name",
        "generateName",
        "namespace",
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "resourceVersion",
    ] {
        match before["metadata"].get(field) {
            Some(value) => metadata.insert(field.to_owned(), value.clone()),
            None => metadata.remove(field),
        };
    }
    if let Some(owners) = before["metadata"].get("managedFields") {
        metadata.entry("managedFields").or_insert_with(|| owners.clone());
    }
}

fn no_new_finalizers(
    resource: &Resource,
    key: &Key,
    facts: &Facts,
    before: &Value,
    after: &Value,
) -> Result<(), Failure> {
    if before["metadata"]["deletionTimestamp"].is_null() {
        return Ok(());
    }
    let known = finalizers(before);
    let new: Vec<String> = finalizers(after)
        .into_iter()
        .filter(|one| !known.contains(one))
        .collect();
    if new.is_empty() {
        return Ok(());
    }
    let quoted: Vec<String> = new.iter().map(|one| format!("\"{one}\"")).collect();
    let why = format!(
        "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
        quoted.join(", ")
    );
    Err(Failure::invalid(
        &resource.group,
        &facts.kind,
        &key.1,
        ["FieldValueForbidden", "metadata.finalizers", &why],
    ))
}

fn finalizers(object: &Value) -> Vec<String> {
    let list = object["metadata"]["finalizers"].as_array();
    list.into_iter()
        .flatten()
        .filter_map(|one| one.as_str().map(str::to_owned))
        .collect()
}

/// Whether objects differ in what a generation counts changes of.
fn differs_in_substance(before: &Value, after: &Value) -> bool {
    let counts = |field: &str| field != "metadata" && field != "status";
    let fields = |object: &Value| {
        object
            .as_object()
            .map_or(0, |fields| fields.keys().filter(|key| counts(key)).count())
    };
    let mut all = after
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(field, _)| counts(field));
    fields(before) != fields(after) || all.any(|(field, value)| before.get(field) != Some(value))
}

fn bump_generation(object: &mut Value) {
    if let Some(generation) = object["metadata"]["generation"].as_u64() {
        object["metadata"]["generation"] = json!(generation + 1);
    }
}

/// Whether an object that is being deleted has nothing left to wait for.
fn is_over(object: &Value) -> bool {
    let metadata = &object["metadata"];
    !metadata["deletionTimestamp"].is_null()
        && metadata["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) == 0
        && finalizers(object).is_empty()
}

/// What a deletion insists on.
#[derive(Debug, Clone, Default)]
pub(crate) struct Deletion {
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
    pub(crate) grace_seconds: Option<i64>,
}

impl Deletion {
    pub(crate) fn of(options: &Value) -> Self {
        let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        Self {
            uid: text(&options["preconditions"]["uid"]),
            resource_version: text(&options["preconditions"]["resourceVersion"]),
            grace_seconds: options["gracePeriodSeconds"].as_i64(),
        }
    }
}

/// Deletes an object, or marks it for deletion; true when it is gone.
pub(crate) fn delete(
    store: &mut Store,
    resource: &Resource,
    key: &Key,
    deletion: &Deletion,
    now: Timestamp,
) -> Result<(Arc<Value>, bool), Failure> {
    let before = Arc::clone(store.get(resource, key)?);
    preconditions(&resource.group, key, &before, deletion)?;
    let is_pod = *resource == Resource::new("", "pods");
    let grace = if is_pod {
        pod::grace_seconds(&before, deletion.grace_seconds)
    } else {
        0
    };
    let mut after = (*before).clone();
    let is_deleting = !before["metadata"]["deletionTimestamp"].is_null();
    let known = before["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0);
    if !is_deleting || grace < known {
        after["metadata"]["deletionTimestamp"] = time(now.saturating_add(grace.seconds()).unwrap_or(now));
        after["metadata"]["deletionGracePeriodSeconds"] = json!(grace);
    }
    if !is_deleting {
        bump_generation(&mut after);
    }
    if is_over(&after) {
        if *resource == definitions() && !store.is_rehearsal {
            undefine(store, &before, now);
        }
        // Only what ends gracefully shows that it was ending, and then twice: as it is marked, and as it goes.
        let last = if is_pod {
            (*store.put(resource, key.clone(), after)).clone()
        } else {
            (*before).clone()
        };
        return Ok((store.remove(resource, key, last), true));
    }
    if after == *before {
        return Ok((before, false));
    }
    Ok((store.put(resource, key.clone(), after), false))
}

/// Whether an object is the one that a deletion or an eviction insists on.
pub(crate) fn preconditions(group: &str, key: &Key, before: &Value, deletion: &Deletion) -> Result<(), Failure> {
    let checks = [
        ("UID", "uid", &deletion.uid, "deleted and then recreated"),
        (
            "ResourceVersion",
            "resourceVersion",
            &deletion.resource_version,
            "modified",
        ),
    ];
    for (what, field, wanted, guess) in checks {
        let known = before["metadata"][field].as_str().unwrap_or_default();
        if let Some(wanted) = wanted.as_deref().filter(|wanted| *wanted != known) {
            let why = format!(
                "the {what} in the precondition ({wanted}) does not match the {what} in record ({known}). The object might have been {guess}"
            );
            let kind = before["kind"].as_str().unwrap_or_default();
            return Err(Failure::conflict(&Resource::new(group, kind), key, &why));
        }
    }
    Ok(())
}

/// The fields of an object, which it becomes if it is none.
pub(crate) fn fields(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(fields) => fields,
        _ => unreachable!("made an object above"),
    }
}

pub(crate) fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// Fields that the API server does not show when they are empty.
fn drop_empty(object: &mut Value) {
    let is_empty = |value: &Value| match value {
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    };
    fields(&mut object["metadata"]).retain(|_, value| !is_empty(value));
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut)
        && spec.get("taints").is_some_and(is_empty)
    {
        spec.remove("taints");
    }
}
