//! Which fields is one talking about? Sets of paths into an object, in the form `managedFields` keeps them.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::schema::{List, Schema, identity};

/// A set of paths. A step is `f:` and a field, `k:` and the keys of an item, or `v:` and an item.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FieldSet {
    is_member: bool,
    below: BTreeMap<String, FieldSet>,
}

impl FieldSet {
    fn leaf() -> Self {
        Self {
            is_member: true,
            below: BTreeMap::new(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        !self.is_member && self.below.is_empty()
    }

    /// From the `fieldsV1` of an entry.
    pub(crate) fn read(fields: &Value) -> Self {
        let Some(fields) = fields.as_object() else {
            return Self::default();
        };
        let mut set = Self::default();
        for (step, below) in fields {
            if step == "." {
                set.is_member = true;
            } else {
                let mut read = Self::read(below);
                read.is_member |= read.below.is_empty();
                set.below.insert(step.clone(), read);
            }
        }
        set
    }

    /// As the `fieldsV1` of an entry.
    pub(crate) fn write(&self) -> Value {
        let mut fields = Map::new();
        if self.is_member && !self.below.is_empty() {
            fields.insert(".".to_owned(), json!({}));
        }
        for (step, below) in &self.below {
            fields.insert(step.clone(), below.write());
        }
        Value::Object(fields)
    }

    /// The fields of an object that somebody can own.
    pub(crate) fn of_object(object: &Value, schema: Option<&Schema>) -> Self {
        let mut set = of(object, schema);
        set.is_member = false;
        set.drop_identity();
        set
    }

    /// What is new or different in an object, which was another one before.
    pub(crate) fn changed(before: &Value, after: &Value, schema: Option<&Schema>) -> Self {
        let mut set = changes(Some(before), after, schema);
        set.is_member = false;
        set.drop_identity();
        set
    }

    /// Nobody owns what makes an object the one it is.
    fn drop_identity(&mut self) {
        self.below.remove("f:apiVersion");
        self.below.remove("f:kind");
        if let Some(metadata) = self.below.get_mut("f:metadata") {
            metadata.is_member = false;
            for field in [
                "name",
                "namespace",
                "creationTimestamp",
                "selfLink",
                "uid",
                "generation",
                "managedFields",
                "resourceVersion",
                "deletionTimestamp",
                "deletionGracePeriodSeconds",
            ] {
                metadata.below.remove(&format!("f:{field}"));
            }
            if metadata.is_empty() {
                self.below.remove("f:metadata");
            }
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.is_member |= other.is_member;
        for (step, below) in &other.below {
            self.below.entry(step.clone()).or_default().add(below);
        }
    }

    pub(crate) fn subtract(&mut self, other: &Self) {
        if other.is_member {
            self.is_member = false;
        }
        for (step, below) in &other.below {
            if let Some(own) = self.below.get_mut(step) {
                own.subtract(below);
            }
        }
        self.below.retain(|_, below| !below.is_empty());
    }

    pub(crate) fn common(&self, other: &Self) -> Self {
        let below = self.below.iter().filter_map(|(step, below)| {
            let common = below.common(other.below.get(step)?);
            (!common.is_empty()).then(|| (step.clone(), common))
        });
        Self {
            is_member: self.is_member && other.is_member,
            below: below.collect(),
        }
    }

    /// Whether anything at or below a path is in it.
    fn touches(&self, path: &[String]) -> bool {
        match path.split_first() {
            None => !self.is_empty(),
            Some((step, rest)) => self.below.get(step).is_some_and(|below| below.touches(rest)),
        }
    }

    /// The paths, as steps.
    pub(crate) fn paths(&self) -> Vec<Vec<String>> {
        let mut paths = Vec::new();
        self.gather(&mut Vec::new(), &mut paths);
        paths
    }

    fn gather(&self, path: &mut Vec<String>, paths: &mut Vec<Vec<String>>) {
        if self.is_member {
            paths.push(path.clone());
        }
        for (step, below) in &self.below {
            path.push(step.clone());
            below.gather(path, paths);
            path.pop();
        }
    }

    /// Takes what is in this set, and in none of `kept`, out of an object.
    pub(crate) fn remove_from(&self, object: &mut Value, kept: &Self) {
        // An item that goes whole goes first: without its keys it could not be found.
        let mut paths = self.paths();
        paths.sort_by_key(Vec::len);
        for path in paths {
            if !kept.touches(&path) {
                remove(object, &path);
            }
        }
    }

    /// Takes out what an object does not have.
    pub(crate) fn keep_existing(&mut self, object: &Value, schema: Option<&Schema>) {
        let there = Self::of_object(object, schema);
        self.retain_in(&there);
    }

    fn retain_in(&mut self, there: &Self) {
        self.below.retain(|step, below| match there.below.get(step) {
            Some(there) => {
                below.retain_in(there);
                !below.is_empty()
            }
            None => false,
        });
    }
}

fn of(value: &Value, schema: Option<&Schema>) -> FieldSet {
    let is_whole = schema.is_some_and(|schema| schema.is_atomic);
    match value {
        Value::Object(fields) if !fields.is_empty() && !is_whole => FieldSet {
            is_member: false,
            below: fields
                .iter()
                .map(|(name, value)| {
                    let schema = schema.and_then(|schema| schema.field(name));
                    (format!("f:{name}"), of(value, schema))
                })
                .collect(),
        },
        Value::Array(items) => match schema.map(|schema| (&schema.list, schema.items.as_deref())) {
            Some((List::Map(keys), below)) => FieldSet {
                is_member: items.is_empty(),
                below: items
                    .iter()
                    .map(|item| {
                        let mut set = of(item, below);
                        set.is_member = true;
                        (step_of(item, keys), set)
                    })
                    .collect(),
            },
            Some((List::Set, _)) => FieldSet {
                is_member: items.is_empty(),
                below: items
                    .iter()
                    .map(|item| (format!("v:{item}"), FieldSet::leaf()))
                    .collect(),
            },
            _ => FieldSet::leaf(),
        },
        _ => FieldSet::leaf(),
    }
}

fn step_of(item: &Value, keys: &[String]) -> String {
    format!("k:{}", identity(item, keys))
}

fn changes(before: Option<&Value>, after: &Value, schema: Option<&Schema>) -> FieldSet {
    if before == Some(after) {
        return FieldSet::default();
    }
    let Some(before) = before else {
        return of(after, schema);
    };
    let is_whole = schema.is_some_and(|schema| schema.is_atomic);
    match (before, after) {
        (Value::Object(_), Value::Object(fields)) if !fields.is_empty() && !is_whole => {
            let below = fields.iter().filter_map(|(name, value)| {
                let schema = schema.and_then(|schema| schema.field(name));
                let set = changes(before.get(name), value, schema);
                (!set.is_empty()).then(|| (format!("f:{name}"), set))
            });
            FieldSet {
                is_member: false,
                below: below.collect(),
            }
        }
        (Value::Array(known), Value::Array(items)) => {
            let Some(schema) = schema.filter(|schema| schema.list != List::Atomic) else {
                return FieldSet::leaf();
            };
            let below = items.iter().filter_map(|item| match &schema.list {
                List::Map(keys) => {
                    let step = step_of(item, keys);
                    let was = known.iter().find(|known| step_of(known, keys) == step);
                    let mut set = changes(was, item, schema.items.as_deref());
                    set.is_member |= was.is_none();
                    (!set.is_empty()).then_some((step, set))
                }
                _ => (!known.contains(item)).then(|| (format!("v:{item}"), FieldSet::leaf())),
            });
            FieldSet {
                is_member: false,
                below: below.collect(),
            }
        }
        _ => of(after, schema),
    }
}

fn remove(value: &mut Value, path: &[String]) {
    let Some((step, rest)) = path.split_first() else { return };
    let (sort, name) = step.split_at(2);
    match (sort, value) {
        ("f:", Value::Object(fields)) => match (rest.is_empty(), fields.get_mut(name)) {
            (true, _) => drop(fields.remove(name)),
            (false, Some(below)) => {
                remove(below, rest);
                // What nothing is left of goes, too.
                if *below == json!({}) || *below == json!([]) {
                    fields.remove(name);
                }
            }
            (false, None) => {}
        },
        ("k:", Value::Array(items)) => {
            let wanted: Value = serde_json::from_str(name).unwrap_or_default();
            let keys: Vec<String> = wanted
                .as_object()
                .into_iter()
                .flatten()
                .map(|(key, _)| key.clone())
                .collect();
            let is_it = |item: &Value| identity(item, &keys) == wanted;
            if rest.is_empty() {
                items.retain(|item| !is_it(item));
            } else if let Some(item) = items.iter_mut().find(|item| is_it(item)) {
                remove(item, rest);
            }
        }
        ("v:", Value::Array(items)) => {
            let wanted: Value = serde_json::from_str(name).unwrap_or_default();
            items.retain(|item| *item != wanted);
        }
        _ => {}
    }
}

/// A path as messages name it: `.spec.containers[name="c"].image`.
pub(crate) fn named(path: &[String]) -> String {
    let mut text = String::new();
    for step in path {
        let (sort, name) = step.split_at(2);
        match sort {
            "f:" => text.extend([".", name]),
            "k:" => {
                let keys: Value = serde_json::from_str(name).unwrap_or_default();
                let keys: Vec<String> = keys
                    .as_object()
                    .into_iter()
                    .flatten()
                    .map(|(key, value)| format!("{key}={value}"))
                    .collect();
                text.extend(["[", &keys.join(","), "]"]);
            }
            _ => text.extend(["[=", name, "]"]),
        }
    }
    text
}
