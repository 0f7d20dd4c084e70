//! What may a corpus file say? The words of `e2e/corpus/README.md` as types; an unknown word is an error.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use super::path::Path;
use super::{Kind, Verdict};
use crate::crd_set::CrdSet;

/// One file: one topic.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Topic {
    /// For the reader.
    #[serde(rename = "about")]
    pub _about: String,
    #[serde(rename = "for")]
    pub kinds: Kinds,
    #[serde(default, rename = "with")]
    pub common: BTreeMap<Path, Value>,
    pub sets: Option<BTreeSet<CrdSet>>,
    #[serde(default)]
    pub cases: Vec<Row>,
    #[serde(default)]
    pub tables: Vec<Table>,
}

/// The kinds a file is about: one, or several with what `$` stands for in each.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Kinds {
    One(Kind),
    Several(BTreeMap<Kind, Path>),
}

/// A change to an object.
#[derive(Deserialize, Clone, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct Change {
    #[serde(default)]
    pub set: BTreeMap<Path, Value>,
    #[serde(default)]
    pub remove: Vec<Path>,
}

/// One case as written.
#[derive(Deserialize, Clone)]
#[serde(deny_unknown_fields)]
pub(super) struct Row {
    pub name: String,
    pub only: Option<BTreeSet<Kind>>,
    pub since: Option<Since>,
    pub manifest: Option<String>,
    #[serde(default)]
    pub set: BTreeMap<Path, Value>,
    #[serde(default)]
    pub remove: Vec<Path>,
    #[serde(default)]
    pub stored: bool,
    pub update: Option<Change>,
    pub scale: Option<i64>,
    pub expect: Verdict,
    pub field: Option<String>,
    pub message: Option<String>,
    #[serde(default)]
    pub becomes: BTreeMap<Path, Value>,
}

/// Several cases that differ in one value.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    name: String,
    only: Option<BTreeSet<Kind>>,
    since: Option<Since>,
    #[serde(default)]
    set: BTreeMap<Path, Value>,
    at: Path,
    field: Option<String>,
    #[serde(default)]
    valid: Vec<Value>,
    #[serde(default)]
    invalid: Vec<Value>,
}

/// From which release on the stated verdict holds.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
pub(super) enum Since {
    /// Not yet in the AWS module, which is built on core 1.14.
    #[serde(rename = "core 1.15")]
    Core1_15,
}

impl Table {
    /// The table's cases, spelled out.
    pub(super) fn rows(&self) -> impl Iterator<Item = Row> {
        let valid = self.valid.iter().map(|value| self.row(value, Verdict::Valid, None));
        let blamed = self.field.clone().unwrap_or_else(|| self.at.to_string());
        let invalid = self
            .invalid
            .iter()
            .map(move |value| self.row(value, Verdict::Invalid, Some(blamed.clone())));
        valid.chain(invalid)
    }

    fn row(&self, value: &Value, expect: Verdict, field: Option<String>) -> Row {
        let mut set = self.set.clone();
        set.insert(self.at.clone(), value.clone());
        Row {
            name: format!("{}: {value}", self.name),
            only: self.only.clone(),
            since: self.since,
            manifest: None,
            set,
            remove: Vec::new(),
            stored: false,
            update: None,
            scale: None,
            expect,
            field,
            message: None,
            becomes: BTreeMap::new(),
        }
    }
}
