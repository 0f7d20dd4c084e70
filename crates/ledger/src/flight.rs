//! What a decision was made on, written down so that it can be made again: a base, what changed since, and the decisions.
//!
//! A tape is lines of JSON. It begins with a whole snapshot; every change of an object follows as it was folded into the
//! state, and before a decision whatever changed of the catalogue. A decision's line says what no snapshot can: what was
//! under way, under which options, and what the answer was.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Cursor},
    sync::Arc,
};

use jiff::Timestamp;
use model::{
    dump::{self, Source},
    object::{InstanceTypeName, List, NodeClass, NodePoolName, Object, Text},
    snapshot::{Catalog, CatalogType, Settings, Snapshot, Title},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

use crate::Id;

/// A decision on a tape.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Frame {
    /// Whose it is: `provisioning` or `disruption`.
    pub kind: String,
    /// When.
    pub at: Timestamp,
    /// The records it led to.
    pub ids: Vec<Id>,
    /// A number for the whole answer, sixteen hexadecimal digits.
    pub answer: String,
    /// A number for everything it was made on.
    pub inputs: String,
    /// The same for each part, by name.
    pub parts: Vec<(String, String)>,
    /// The version of the engine.
    pub engine: String,
    /// What no snapshot says.
    pub given: Value,
}

/// What changed of a catalogue.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct CatalogChange {
    /// Types that are new, or not as they were.
    changed: Vec<Arc<CatalogType>>,
    /// All names in order, if that is another order or there are others.
    #[serde(skip_serializing_if = "Option::is_none")]
    names: Option<Vec<InstanceTypeName>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pools: Option<BTreeMap<NodePoolName, List<InstanceTypeName>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    variants: Option<BTreeMap<NodePoolName, Vec<Arc<CatalogType>>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    well_known_labels: Option<List<Text>>,
}

/// Names an object: its kind, its namespace and its name.
type Key = (String, String, String);

/// A line of a tape, as it is read.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line<'a> {
    #[serde(borrow)]
    Base(&'a RawValue),
    #[serde(borrow)]
    Apply(&'a RawValue),
    Delete(Key),
    Catalogue(CatalogChange),
    Decision(Box<Frame>),
}

/// The line of a base.
pub fn base_line(snapshot: &Snapshot) -> io::Result<Vec<u8>> {
    let mut line = b"{\"base\":".to_vec();
    dump::write(snapshot, &mut line)?;
    // The file has an object a line; no text in JSON has a bare line break.
    line.retain(|byte| *byte != b'\n');
    line.extend_from_slice(b"}\n");
    Ok(line)
}

/// The line of an object that is new or changed.
pub fn apply_line<T: Object>(object: &T) -> io::Result<Vec<u8>> {
    written("apply", &object.document())
}

/// The line of a node class that is new or changed.
pub fn apply_class_line(class: &NodeClass) -> io::Result<Vec<u8>> {
    written("apply", class)
}

/// The line of an object that is gone.
pub fn delete_line(kind: &str, namespace: &str, name: &str) -> io::Result<Vec<u8>> {
    written("delete", &(kind, namespace, name))
}

/// The line of a decision.
pub fn decision_line(frame: &Frame) -> io::Result<Vec<u8>> {
    written("decision", frame)
}

/// The line of what changed of a catalogue; none when nothing did.
pub fn catalog_line(before: &Catalog, after: &Catalog) -> io::Result<Option<Vec<u8>>> {
    let known: BTreeMap<&InstanceTypeName, &Arc<CatalogType>> =
        before.instance_types.iter().map(|entry| (&entry.name, entry)).collect();
    let is_new = |entry: &&Arc<CatalogType>| {
        let known = known.get(&entry.name);
        !known.is_some_and(|known| Arc::ptr_eq(known, entry) || known == entry)
    };
    let names = |catalog: &Catalog| -> Vec<InstanceTypeName> {
        catalog.instance_types.iter().map(|entry| entry.name.clone()).collect()
    };
    let change = CatalogChange {
        changed: after.instance_types.iter().filter(is_new).cloned().collect(),
        names: Some(names(after)).filter(|now| *now != names(before)),
        pools: Some(&after.node_pool_instance_types)
            .filter(|now| **now != before.node_pool_instance_types)
            .cloned(),
        variants: Some(&after.node_pool_variants)
            .filter(|now| **now != before.node_pool_variants)
            .cloned(),
        well_known_labels: Some(&after.well_known_labels)
            .filter(|now| **now != before.well_known_labels)
            .cloned(),
    };
    if change == CatalogChange::default() {
        return Ok(None);
    }
    written("catalogue", &change).map(Some)
}

fn written(what: &str, value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = format!("{{\"{what}\":").into_bytes();
    serde_json::to_writer(&mut line, value)?;
    line.extend_from_slice(b"}\n");
    Ok(line)
}

/// Why a tape cannot be read on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// A line is none of a tape.
    #[error("line {line}: {cause}")]
    Line {
        /// Which, from 1.
        line: usize,
        /// What is wrong with it.
        cause: String,
    },
    /// Changes come before what they change.
    #[error("line {0} comes before the snapshot that a tape begins with")]
    NoBase(usize),
    /// What is on the tape makes no snapshot.
    #[error("the objects on the tape make no snapshot: {0}")]
    Objects(String),
}

/// A tape that is being read: everything as it is at the line that was read last.
#[derive(Debug, Clone, Default)]
pub struct Tape {
    line: usize,
    settings: Settings,
    catalog: Arc<Catalog>,
    objects: BTreeMap<Key, String>,
    has_base: bool,
}

/// What an object says of itself.
#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow)]
    kind: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    metadata: HeadMetadata<'a>,
}

#[derive(Deserialize)]
struct HeadMetadata<'a> {
    #[serde(default, borrow)]
    namespace: std::borrow::Cow<'a, str>,
    #[serde(default, borrow)]
    name: std::borrow::Cow<'a, str>,
}

#[derive(Deserialize)]
struct BaseHead<'a> {
    #[serde(borrow)]
    objects: Vec<&'a RawValue>,
}

impl Tape {
    /// Reads a line; a decision is given out, with the tape standing where it was made.
    pub fn read(&mut self, line: &str) -> Result<Option<Frame>, Broken> {
        self.line += 1;
        let number = self.line;
        let broken = |cause: String| Broken::Line { line: number, cause };
        let read: Line<'_> = serde_json::from_str(line).map_err(|error| broken(error.to_string()))?;
        if !self.has_base && !matches!(read, Line::Base(_)) {
            return Err(Broken::NoBase(number));
        }
        match read {
            Line::Base(base) => self.begin(base.get()).map_err(broken)?,
            Line::Apply(object) => {
                let key = key(object.get()).map_err(broken)?;
                self.objects.insert(key, object.get().to_owned());
            }
            Line::Delete(key) => {
                self.objects.remove(&key);
            }
            Line::Catalogue(change) => self.catalog = Arc::new(changed(&self.catalog, change)),
            Line::Decision(frame) => return Ok(Some(*frame)),
        }
        Ok(None)
    }

    fn begin(&mut self, base: &str) -> Result<(), String> {
        let snapshot = parsed(base.to_owned())?;
        self.settings = snapshot.settings().clone();
        self.catalog = Arc::clone(snapshot.shared_catalog());
        let head: BaseHead<'_> = serde_json::from_str(base).map_err(|error| error.to_string())?;
        self.objects.clear();
        for object in head.objects {
            self.objects.insert(key(object.get())?, object.get().to_owned());
        }
        self.has_base = true;
        Ok(())
    }

    /// Everything as it is now, for a decision at a time.
    pub fn snapshot(&self, at: Timestamp) -> Result<Snapshot, Broken> {
        let objects: Vec<&str> = self.objects.values().map(String::as_str).collect();
        let list = format!(
            "{{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[{}]}}",
            objects.join(",")
        );
        let read = parsed(list).map_err(Broken::Objects)?;
        let title = Title {
            name: "live".to_owned(),
            taken_at: at,
            origin: "watch".to_owned(),
        };
        let settings = Arc::new(self.settings.clone());
        Ok(Snapshot::sharing(
            title,
            settings,
            read.objects().clone(),
            Arc::clone(&self.catalog),
        ))
    }
}

fn parsed(text: String) -> Result<Snapshot, String> {
    let options = dump::Options {
        mode: dump::Mode::Strict,
        taken_at: Timestamp::UNIX_EPOCH,
    };
    let stream = Source::Stream("the tape".into(), Box::new(Cursor::new(text.into_bytes())));
    let (snapshot, _) = dump::read([stream], options).map_err(|faults| {
        let faults: Vec<_> = faults.0.iter().take(3).map(ToString::to_string).collect();
        faults.join("; ")
    })?;
    Ok(snapshot)
}

fn key(object: &str) -> Result<Key, String> {
    let head: Head<'_> = serde_json::from_str(object).map_err(|error| error.to_string())?;
    Ok((
        head.kind.into_owned(),
        head.metadata.namespace.into_owned(),
        head.metadata.name.into_owned(),
    ))
}

fn changed(before: &Catalog, change: CatalogChange) -> Catalog {
    let mut known: BTreeMap<InstanceTypeName, Arc<CatalogType>> = before
        .instance_types
        .iter()
        .chain(&change.changed)
        .map(|entry| (entry.name.clone(), Arc::clone(entry)))
        .collect();
    let names = change.names.unwrap_or_else(|| {
        let names = before.instance_types.iter().map(|entry| entry.name.clone());
        names.collect()
    });
    Catalog {
        instance_types: names.iter().filter_map(|name| known.remove(name)).collect(),
        node_pool_instance_types: change.pools.unwrap_or_else(|| before.node_pool_instance_types.clone()),
        node_pool_variants: change.variants.unwrap_or_else(|| before.node_pool_variants.clone()),
        well_known_labels: change
            .well_known_labels
            .unwrap_or_else(|| before.well_known_labels.clone()),
    }
}

impl Frame {
    /// The first part of the inputs that is not what it was.
    pub fn first_difference(&self, inputs: &model::snapshot::Inputs) -> Option<String> {
        let now: BTreeSet<(String, String)> = inputs
            .parts
            .iter()
            .map(|(name, number)| ((*name).to_owned(), hex(*number)))
            .collect();
        let mut parts = self.parts.iter();
        parts.find(|part| !now.contains(*part)).map(|(name, _)| name.clone())
    }
}

/// A number as tapes and records have it.
pub fn hex(number: u64) -> String {
    format!("{number:016x}")
}

#[cfg(test)]
mod tests {
    use model::object::NodePool;

    use super::*;

    fn pool(name: &str, version: &str) -> NodePool {
        let json = format!(r#"{{"metadata":{{"name":"{name}","uid":"u-{name}","resourceVersion":"{version}"}}}}"#);
        serde_json::from_str(&json).unwrap()
    }

    fn of_type(name: &str, price: u64) -> Arc<CatalogType> {
        let json = format!(r#"{{"name":"{name}","offerings":[{{"price":"{price}","available":true}}]}}"#);
        Arc::new(serde_json::from_str(&json).unwrap())
    }

    fn catalog(types: &[(&str, u64)]) -> Catalog {
        Catalog {
            instance_types: types.iter().map(|(name, price)| of_type(name, *price)).collect(),
            ..Catalog::default()
        }
    }

    fn snapshot(pools: Vec<NodePool>, catalog: &Catalog) -> Snapshot {
        let title = Title {
            name: "live".to_owned(),
            taken_at: Timestamp::UNIX_EPOCH,
            origin: "watch".to_owned(),
        };
        let empty = Snapshot::new(
            title,
            Settings::default(),
            model::snapshot::Objects::default(),
            catalog.clone(),
        );
        let pools: Vec<_> = pools.into_iter().map(Arc::new).collect();
        empty.overlaid(|objects| objects.node_pools = objects.node_pools.with(pools))
    }

    fn play(tape: &mut Tape, lines: &[Vec<u8>]) -> Result<Option<Frame>, Broken> {
        let mut last = Ok(None);
        for line in lines {
            last = tape.read(std::str::from_utf8(line).unwrap());
        }
        last
    }

    #[test]
    fn a_tape_gives_back_what_was_there_when_a_decision_was_made() {
        let (first, second) = (catalog(&[("a", 1), ("b", 2)]), catalog(&[("b", 3), ("c", 4), ("a", 1)]));
        let lines = [
            base_line(&snapshot(vec![pool("one", "1"), pool("two", "2")], &first)).unwrap(),
            apply_line(&pool("three", "3")).unwrap(),
            apply_line(&pool("one", "4")).unwrap(),
            delete_line("NodePool", "", "two").unwrap(),
            catalog_line(&first, &second).unwrap().unwrap(),
        ];
        let mut tape = Tape::default();
        assert_eq!(play(&mut tape, &lines), Ok(None));
        let now = snapshot(vec![pool("one", "4"), pool("three", "3")], &second);
        let rebuilt = tape.snapshot(Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(rebuilt, now);
        assert_eq!(rebuilt.inputs(), now.inputs());
        assert_eq!(catalog_line(&second, &second).unwrap(), None);
    }

    #[test]
    fn a_change_that_is_missing_is_found_by_the_part_it_belongs_to() {
        let now = snapshot(vec![pool("one", "4")], &Catalog::default());
        let inputs = now.inputs();
        let frame = Frame {
            kind: "provisioning".to_owned(),
            at: Timestamp::UNIX_EPOCH,
            ids: Vec::new(),
            answer: String::new(),
            inputs: hex(inputs.digest),
            parts: inputs
                .parts
                .iter()
                .map(|(name, number)| ((*name).to_owned(), hex(*number)))
                .collect(),
            engine: String::new(),
            given: Value::Null,
        };
        assert_eq!(frame.first_difference(&inputs), None);
        let earlier = snapshot(vec![pool("one", "3")], &Catalog::default());
        assert_eq!(frame.first_difference(&earlier.inputs()).as_deref(), Some("NodePool"));
        let mut tape = Tape::default();
        let lines = [base_line(&now).unwrap(), decision_line(&frame).unwrap()];
        assert_eq!(play(&mut tape, &lines), Ok(Some(frame)));
    }

    #[test]
    fn a_tape_without_a_beginning_is_refused_by_line() {
        let lines = [delete_line("Pod", "a", "b").unwrap()];
        assert_eq!(play(&mut Tape::default(), &lines), Err(Broken::NoBase(1)));
        let error = Tape::default().read("{\"rewind\":1}").unwrap_err();
        assert!(
            error.to_string().starts_with("line 1: unknown variant `rewind`"),
            "{error}"
        );
    }
}
