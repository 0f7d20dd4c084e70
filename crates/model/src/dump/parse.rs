//! What a document holds: one object, a list of them, an array of either, or our own snapshot file.

use std::{borrow::Cow, collections::HashSet, sync::Arc};

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use super::{
    Mode, Options, Report,
    fault::{Fault, Faults, ObjectLabel, Place},
    list::Read,
    null::drop_nulls,
};
use crate::{
    object::{InstanceTypeName, List, NodePoolName, Text},
    sharing::Sharing,
    snapshot::{Catalog, CatalogType, Draft, Settings, Snapshot, Title, TypeMeta},
};

/// What the snapshot file calls itself.
pub(super) const SNAPSHOT: TypeMeta<'_> = TypeMeta {
    api_version: "dovetail.dev/v1alpha1",
    kind: "Snapshot",
};

/// Lists of lists of lists are nobody's dump; the bound keeps a hostile one off the stack.
const MAX_NESTING: usize = 8;

/// Everything read so far.
#[derive(Debug, Default)]
pub(super) struct Reading {
    pub(super) report: Report,
    draft: Draft,
    pool: Sharing,
    frame: Option<Frame>,
}

/// What only a snapshot file has.
#[derive(Debug, Default)]
struct Frame {
    title: Option<Title>,
    settings: Settings,
    catalog: Catalog,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head<'a> {
    #[serde(default, borrow)]
    api_version: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    kind: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    metadata: Option<&'a RawValue>,
    #[serde(default, borrow)]
    items: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NameHead<'a> {
    #[serde(borrow)]
    namespace: Option<Cow<'a, str>>,
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SnapshotHead<'a> {
    #[serde(default, borrow)]
    metadata: Option<&'a RawValue>,
    #[serde(default, borrow)]
    settings: Option<&'a RawValue>,
    #[serde(default, borrow)]
    objects: Option<&'a RawValue>,
    #[serde(default, borrow)]
    instance_types: Option<&'a RawValue>,
    #[serde(default, borrow)]
    node_pool_instance_types: Option<&'a RawValue>,
    #[serde(default, borrow)]
    node_pool_variants: Option<&'a RawValue>,
    #[serde(default, borrow)]
    well_known_labels: Option<&'a RawValue>,
}

/// What pools describe in their own way.
type Variants = std::collections::BTreeMap<NodePoolName, Vec<Arc<CatalogType>>>;

impl Reading {
    pub(super) fn fault(&mut self, fault: Fault) {
        self.report.faults.push(fault);
    }

    /// Takes what was read elsewhere.
    pub(super) fn take(&mut self, read: Read) {
        self.report.objects += read.objects;
        for (kind, count) in read.skipped {
            *self.report.skipped.entry(kind).or_default() += count;
        }
        for draft in read.drafts {
            self.draft.append(draft);
        }
    }

    /// Reads one document.
    pub(super) fn document(&mut self, place: &Place, json: &str) {
        self.value(place, json, None, MAX_NESTING);
    }

    /// Reads a value that may hold others. `list` is what the surrounding list says its items are.
    fn value(&mut self, place: &Place, json: &str, list: Option<TypeMeta<'_>>, depth: usize) {
        let json = json.trim_start();
        if json == "null" {
            return;
        }
        if depth == 0 {
            return self.fault(Fault::of_place(
                place.clone(),
                "nests lists too deeply",
                "write the objects as one list",
            ));
        }
        if json.starts_with('[') {
            return self.items(place, json, "", None, depth);
        }
        let head: Head<'_> = match serde_json::from_slice(json.as_bytes()) {
            Ok(head) => head,
            Err(error) => return self.explained(place, "", json, &error),
        };
        let declared = head.api_version.as_deref().zip(head.kind.as_deref());
        let declared = declared.map(|(api_version, kind)| TypeMeta { api_version, kind });
        let Some(what) = declared.or(list) else {
            let fix = "every object needs apiVersion and kind, as kubectl prints them";
            return self.fault(Fault::of_place(place.clone(), "is not a Kubernetes object", fix));
        };
        match (head.items, what.kind.strip_suffix("List")) {
            _ if what == SNAPSHOT => self.snapshot_file(place, json, depth),
            (Some(items), Some(kind)) => {
                let items_are = (!kind.is_empty()).then_some(TypeMeta { kind, ..what });
                self.items(place, items.get(), "items", items_are, depth);
            }
            // A List without items is what kubectl prints for nothing found.
            (None, Some("")) => {}
            _ => self.object(place, json, what, head.metadata),
        }
    }

    fn items(&mut self, place: &Place, json: &str, field: &str, list: Option<TypeMeta<'_>>, depth: usize) {
        let items: Vec<&RawValue> = match serde_json::from_slice(json.as_bytes()) {
            Ok(items) => items,
            Err(_) if json.trim() == "null" => return,
            Err(error) => return self.explained(place, field, json, &error),
        };
        for (at, item) in items.into_iter().enumerate() {
            let place = Place {
                item: Some(at + 1),
                ..place.clone()
            };
            self.value(&place, item.get(), list, depth - 1);
        }
    }

    fn object(&mut self, place: &Place, json: &str, what: TypeMeta<'_>, metadata: Option<&RawValue>) {
        let TypeMeta { api_version, kind } = what;
        let Some(read) = Draft::reader(what) else {
            let count = self
                .report
                .skipped
                .entry((api_version.into(), kind.into()))
                .or_default();
            *count += 1;
            return;
        };
        let name: NameHead<'_> = metadata
            .and_then(|json| serde_json::from_slice(json.get().as_bytes()).ok())
            .unwrap_or_default();
        let label = ObjectLabel {
            kind: kind.into(),
            namespace: name.namespace.unwrap_or_default().into(),
            name: name.name.unwrap_or_default().into(),
        };
        if label.name.is_empty() {
            return self.nameless(place, label);
        }
        // Dropping nulls takes a copy, and few objects have one that matters.
        if read(&mut self.draft, &what, json, &mut self.pool).is_err() {
            let json = without_nulls(json);
            if let Err(error) = read(&mut self.draft, &what, &json, &mut self.pool) {
                return self.fault(Fault::of_field(place.clone(), Some(label), &error, &json));
            }
        }
        self.report.objects += 1;
    }

    fn nameless(&mut self, place: &Place, label: ObjectLabel) {
        self.fault(Fault {
            place: place.clone(),
            object: Some(label),
            field: "metadata.name".into(),
            value: String::new(),
            problem: "is missing".into(),
            fix: "give the object a name".into(),
        });
    }

    fn snapshot_file(&mut self, place: &Place, json: &str, depth: usize) {
        if self.frame.is_some() {
            let fix = "read one snapshot file at a time; dumps may be added to it";
            return self.fault(Fault::of_place(place.clone(), "is a second snapshot file", fix));
        }
        let head: SnapshotHead<'_> = match serde_json::from_slice(json.as_bytes()) {
            Ok(head) => head,
            Err(error) => return self.explained(place, "", json, &error),
        };
        if let Some(objects) = head.objects {
            self.items(place, objects.get(), "objects", None, depth);
        }
        let title = self.part::<Title>(place, "metadata", head.metadata);
        let settings = self
            .part::<Settings>(place, "settings", head.settings)
            .unwrap_or_default();
        let mut catalog = Catalog {
            instance_types: Vec::new(),
            node_pool_instance_types: self
                .part::<std::collections::BTreeMap<NodePoolName, List<InstanceTypeName>>>(
                    place,
                    "nodePoolInstanceTypes",
                    head.node_pool_instance_types,
                )
                .unwrap_or_default(),
            node_pool_variants: self
                .part::<Variants>(place, "nodePoolVariants", head.node_pool_variants)
                .unwrap_or_default(),
            well_known_labels: self
                .part::<List<Text>>(place, "wellKnownLabels", head.well_known_labels)
                .unwrap_or_default(),
        };
        self.instance_types(place, head.instance_types, &mut catalog);
        self.frame = Some(Frame {
            title,
            settings,
            catalog,
        });
    }

    fn instance_types(&mut self, place: &Place, json: Option<&RawValue>, catalog: &mut Catalog) {
        let types = self
            .part::<Vec<Arc<CatalogType>>>(place, "instanceTypes", json)
            .unwrap_or_default();
        let mut names = HashSet::new();
        for (at, entry) in types.into_iter().enumerate() {
            if names.insert(entry.name.clone()) {
                catalog.instance_types.push(entry);
            } else {
                self.fault(Fault {
                    place: place.clone(),
                    object: None,
                    field: format!("instanceTypes[{at}].name"),
                    value: format!("{:?}", entry.name.as_str()),
                    problem: "appears twice".into(),
                    fix: "give each instance type its own name".into(),
                });
            }
        }
        self.unknown_types(place, catalog, &names);
        self.unknown_variants(place, catalog, &names);
    }

    /// A pool cannot describe in its own way what nobody else describes; the type is reported and left out.
    fn unknown_variants(&mut self, place: &Place, catalog: &mut Catalog, names: &HashSet<InstanceTypeName>) {
        for (pool, variants) in &mut catalog.node_pool_variants {
            variants.sort_by(|one, other| one.name.cmp(&other.name));
            for unknown in variants.extract_if(.., |entry| !names.contains(&entry.name)) {
                self.fault(Fault {
                    place: place.clone(),
                    object: None,
                    field: format!("nodePoolVariants.{pool}"),
                    value: format!("{:?}", unknown.name.as_str()),
                    problem: "names no instance type of the file".into(),
                    fix: "add the type to instanceTypes or take the variant out".into(),
                });
            }
        }
    }

    /// A pool must not offer a type nobody describes; the name is reported and left out.
    fn unknown_types(&mut self, place: &Place, catalog: &mut Catalog, names: &HashSet<InstanceTypeName>) {
        for (pool, offered) in &mut catalog.node_pool_instance_types {
            let (known, unknown): (Vec<_>, Vec<_>) = offered.iter().cloned().partition(|name| names.contains(name));
            *offered = known.into();
            for name in unknown {
                self.fault(Fault {
                    place: place.clone(),
                    object: None,
                    field: format!("nodePoolInstanceTypes.{pool}"),
                    value: format!("{:?}", name.as_str()),
                    problem: "names no instance type of the file".into(),
                    fix: "add the type to instanceTypes or take the name out".into(),
                });
            }
        }
    }

    /// Reads a part of the snapshot file; a faulty part is reported and left out.
    fn part<T: DeserializeOwned>(&mut self, place: &Place, field: &str, json: Option<&RawValue>) -> Option<T> {
        let json = json?.get();
        let read = serde_json::from_slice(json.as_bytes());
        read.map_err(|error| self.explained(place, field, json, &error)).ok()
    }

    /// Tells where the reader of a part of a document gave up.
    fn explained(&mut self, place: &Place, field: &str, json: &str, error: &serde_json::Error) {
        let mut fault = Fault::of_field(place.clone(), None, error, json);
        fault.field = match (field, fault.field.as_str()) {
            ("", inner) => inner.into(),
            (outer, "." | "") => outer.into(),
            (outer, inner) if inner.starts_with('[') => format!("{outer}{inner}"),
            (outer, inner) => format!("{outer}.{inner}"),
        };
        self.fault(fault);
    }

    pub(super) fn finish(mut self, options: Options) -> Result<(Snapshot, Report), Faults> {
        if options.mode == Mode::Strict && !self.report.faults.is_empty() {
            return Err(Faults(std::mem::take(&mut self.report.faults)));
        }
        let frame = self.frame.unwrap_or_default();
        let untitled = || Title {
            name: String::new(),
            taken_at: options.taken_at,
            origin: String::new(),
        };
        let title = frame.title.unwrap_or_else(untitled);
        let (objects, node_classes, jobs) = self.draft.finish();
        self.report.node_classes = node_classes;
        self.report.repeated = self.report.objects.saturating_sub(objects.len() + jobs.len());
        self.report.jobs(jobs);
        Ok((
            Snapshot::new(title, frame.settings, objects, frame.catalog),
            self.report,
        ))
    }
}

/// The object with every field that is null left out, as the API server reads it.
fn without_nulls(json: &str) -> String {
    let mut value = serde_json::from_str(json).unwrap_or_default();
    drop_nulls(&mut value);
    value.to_string()
}
