//! The families of conditions and terminations: operatorpkg's, one set per kind, and the deprecated set of all kinds.

use std::{borrow::Cow, sync::Arc};

use api::labels::{INITIALIZED, NODEPOOL, node_class_key};
use cloud::NodeClassKind;
use jiff::Timestamp;
use model::{
    object::{CapacityBuffer, Node, NodeClaim, NodeClass, NodePool},
    snapshot::Snapshot,
};
use runtime::{
    Settings,
    metrics::{About, DEFAULT, Family, Kind, Observations, Sheet, TRANSITION},
    settings::MetricsProfile,
};
use state::Transition;

use super::transitions::{Conditioned, News, status_name};

const TRANSITION_SECONDS: &str =
    "The amount of time a condition was in a given state before transitioning to another state.";
const COUNT: &str = "The number of a condition for a given object, type and status.";
const CURRENT_STATUS: &str =
    "The current amount of time in seconds that a status condition has been in a specific state.";
const TRANSITIONS: &str = "The count of transitions of a given object, type and status.";
const TERMINATION_CURRENT: &str = "The current amount of time in seconds that an object has been in terminating state.";
const TERMINATION: &str = "The amount of time taken by an object to terminate completely.";

/// The families of every kind.
pub(super) struct StatusFamilies {
    pub(super) node_claims: Set,
    pub(super) node_pools: Set,
    pub(super) nodes: Set,
    pub(super) capacity_buffers: Set,
    pub(super) node_classes: Set,
    deprecated: Set,
    /// The kind of node class that is shown.
    shown_class: Option<NodeClassKind>,
}

/// The provider without a cloud, whose classes upstream shows nothing of.
const KWOK: &str = "karpenter.kwok.sh";

/// One set of families.
pub(super) struct Set {
    transition_seconds: Family<Observations>,
    transitions_total: Family<f64>,
    termination_seconds: Family<Observations>,
    count: About,
    current_seconds: About,
    termination_current_seconds: About,
    bounds: &'static [f64],
    /// Labels of objects that become labels of series.
    extra: Vec<String>,
}

impl Set {
    /// The families of a kind, or of all when it has no name.
    fn new(kind: &str, bounds: &'static [f64], extra: Vec<String>, extra_names: &[Cow<'static, str>]) -> Self {
        let about = |name: &str, help, sort, labels: &[&'static str], profile| {
            let name = match kind {
                "" => format!("operator_{name}"),
                kind => format!("operator_{kind}_{name}"),
            };
            let labels = labels.iter().map(|label| Cow::from(*label));
            About::new(
                name,
                help,
                sort,
                labels.chain(extra_names.iter().cloned()).collect(),
                profile,
            )
        };
        let (few, many) = (MetricsProfile::Minimal, MetricsProfile::Standard);
        let object = ["namespace", "name", "type", "status", "reason"];
        let condition = |name: &str| format!("status_condition_{name}");
        Self {
            transition_seconds: Family::new(about(
                &condition("transition_seconds"),
                TRANSITION_SECONDS,
                Kind::Histogram,
                &["type", "status", "to_status"],
                few,
            )),
            transitions_total: Family::new(about(
                &condition("transitions_total"),
                TRANSITIONS,
                Kind::Counter,
                &["type", "status", "reason"],
                few,
            )),
            termination_seconds: Family::new(about(
                "termination_duration_seconds",
                TERMINATION,
                Kind::Histogram,
                &[],
                few,
            )),
            count: about(&condition("count"), COUNT, Kind::Gauge, &object, many),
            current_seconds: about(
                &condition("current_status_seconds"),
                CURRENT_STATUS,
                Kind::Gauge,
                &object,
                many,
            ),
            termination_current_seconds: about(
                "termination_current_time_seconds",
                TERMINATION_CURRENT,
                Kind::Gauge,
                &["namespace", "name"],
                many,
            ),
            bounds,
            extra,
        }
    }

    fn of_kind(kind: &str, extra: Vec<String>) -> Self {
        let names = extra.iter().map(|label| label.replace(['/', '.', '-'], "_").into());
        let names: Vec<_> = names.collect();
        Self::new(kind, TRANSITION, extra, &names)
    }

    fn count(&self, news: &News, extra: &[&str]) {
        for shift in &news.shifts {
            let to = status_name(shift.to.status);
            let counted = with(&[&shift.to.kind, to, &shift.to.reason], extra);
            self.transitions_total.add(&counted, 1.0);
            if let (Some(from), Some(seconds)) = (&shift.from, shift.seconds()) {
                let observed = with(&[&shift.to.kind, status_name(from.status), to], extra);
                self.transition_seconds.observe(&observed, self.bounds, seconds);
            }
        }
        if let Some(seconds) = news.terminated_after {
            self.termination_seconds.observe(extra, self.bounds, seconds);
        }
    }

    /// What the set keeps.
    fn kept(&self) -> impl Iterator<Item = Sheet> {
        let kept = [
            self.transition_seconds.sheet(),
            self.transitions_total.sheet(),
            self.termination_seconds.sheet(),
        ];
        kept.into_iter().flatten()
    }

    /// What the set draws of objects.
    fn drawn<T: Conditioned>(&self, rows: &Rows<T>, now: Timestamp) -> Vec<Sheet> {
        let each = |about: &About, write: fn(&About, &Row<T>, Timestamp, &mut String)| {
            let rows = Arc::clone(rows);
            Sheet::each(about.clone(), 0..rows.len(), move |about, at, out| {
                if let Some(row) = rows.get(*at) {
                    write(about, row, now, out);
                }
            })
        };
        vec![
            each(&self.count, |about, row, _, out| conditions(about, row, out, |_| 1.0)),
            each(&self.current_seconds, |about, row, now, out| {
                conditions(about, row, out, |since| seconds(since, now));
            }),
            each(&self.termination_current_seconds, terminating),
        ]
    }
}

/// An object and the values of its extra labels.
type Row<T> = (Arc<T>, Vec<String>);
type Rows<T> = Arc<[Row<T>]>;

/// Writes how long an object has been deleting, if it has.
fn terminating<T: Conditioned>(about: &About, (object, extra): &Row<T>, now: Timestamp, out: &mut String) {
    let metadata = object.about();
    if metadata.is_deleting() {
        let own: [&str; 2] = [&metadata.namespace, &metadata.name];
        let values = with(&own, &borrowed(extra));
        about.sample(out, &values, seconds(metadata.deletion_timestamp, now));
    }
}

/// Writes a sample for each condition of an object.
fn conditions<T: Conditioned>(
    about: &About,
    (object, extra): &Row<T>,
    out: &mut String,
    value: impl Fn(Option<Timestamp>) -> f64,
) {
    let metadata = object.about();
    for seen in object.seen() {
        let own: [&str; 5] = [
            &metadata.namespace,
            &metadata.name,
            &seen.kind,
            status_name(seen.status),
            &seen.reason,
        ];
        about.sample(out, &with(&own, &borrowed(extra)), value(seen.since));
    }
}

fn seconds(since: Option<Timestamp>, now: Timestamp) -> f64 {
    since.map_or(0.0, |since| now.duration_since(since).as_secs_f64())
}

fn with<'a>(values: &[&'a str], extra: &[&'a str]) -> Vec<&'a str> {
    values.iter().chain(extra).copied().collect()
}

fn borrowed(values: &[String]) -> Vec<&str> {
    values.iter().map(String::as_str).collect()
}

impl StatusFamilies {
    pub(super) fn new(node_classes: &[NodeClassKind]) -> Self {
        let classes = node_classes.iter().map(|class| node_class_key(class.group, class.kind));
        let mut labels: Vec<String> = classes.collect();
        labels.push(NODEPOOL.to_owned());
        let mut node_labels = labels.clone();
        node_labels.push(INITIALIZED.to_owned());
        let shown_class = node_classes.iter().find(|class| class.group != KWOK).copied();
        let class = shown_class.map_or_else(|| "nodeclass".to_owned(), |class| class.kind.to_lowercase());
        Self {
            node_classes: Set::of_kind(&class, Vec::new()),
            shown_class,
            node_claims: Set::of_kind("nodeclaim", labels),
            node_pools: Set::of_kind("nodepool", Vec::new()),
            nodes: Set::of_kind("node", node_labels),
            capacity_buffers: Set::of_kind("capacitybuffer", Vec::new()),
            deprecated: Set::new("", DEFAULT, Vec::new(), &["group".into(), "kind".into()]),
        }
    }

    /// Whether a class is shown.
    pub(super) fn shows(&self, class: &NodeClass) -> bool {
        self.shown_class.is_some_and(|shown| *class.kind == *shown.kind)
    }

    /// Counts what is new about an object.
    pub(super) fn count<T: Conditioned>(&self, change: &Transition<T>, news: &News) {
        let Some(object) = change.latest() else { return };
        let set = T::set(self);
        set.count(news, &borrowed(&labels(object.as_ref(), &set.extra)));
        if T::IS_DEPRECATED_FORM_SHOWN {
            self.deprecated.count(news, &group_and_kind(object.as_ref()));
        }
    }

    /// Everything there is to show.
    pub(super) fn sheets(
        &self,
        snapshot: &Snapshot,
        classes: &[Arc<NodeClass>],
        settings: &Settings,
        profile: MetricsProfile,
    ) -> Vec<Sheet> {
        let sets = [
            &self.node_claims,
            &self.node_pools,
            &self.nodes,
            &self.capacity_buffers,
            &self.node_classes,
            &self.deprecated,
        ];
        let mut sheets: Vec<Sheet> = sets.into_iter().flat_map(Set::kept).collect();
        if profile < MetricsProfile::Standard {
            return sheets;
        }
        let (objects, now) = (snapshot.objects(), snapshot.taken_at());
        sheets.extend(self.drawn::<NodeClaim>(objects.node_claims.iter(), now));
        sheets.extend(self.drawn::<NodePool>(objects.node_pools.iter(), now));
        sheets.extend(self.drawn::<Node>(objects.nodes.iter(), now));
        if CapacityBuffer::is_shown(settings) {
            sheets.extend(self.drawn::<CapacityBuffer>(objects.capacity_buffers.iter(), now));
        }
        sheets.extend(self.drawn::<NodeClass>(classes.iter().filter(|class| self.shows(class)), now));
        sheets
    }

    fn drawn<'a, T: Conditioned>(&self, objects: impl Iterator<Item = &'a Arc<T>>, now: Timestamp) -> Vec<Sheet> {
        let set = T::set(self);
        let own: Rows<T> = objects
            .map(|object| (Arc::clone(object), labels(object.as_ref(), &set.extra)))
            .collect();
        let mut sheets = set.drawn(&own, now);
        if T::IS_DEPRECATED_FORM_SHOWN {
            let kind = |object: &T| group_and_kind(object).map(str::to_owned).into();
            let deprecated: Rows<T> = own
                .iter()
                .map(|(object, _)| (Arc::clone(object), kind(object)))
                .collect();
            sheets.extend(self.deprecated.drawn(&deprecated, now));
        }
        sheets
    }
}

/// The values of an object's labels, empty where it has none.
fn labels<T: Conditioned>(object: &T, keys: &[String]) -> Vec<String> {
    let labels = &object.about().labels;
    keys.iter()
        .map(|key| labels.get(key).map(ToString::to_string).unwrap_or_default())
        .collect()
}

fn group_and_kind<T: Conditioned>(object: &T) -> [&str; 2] {
    let (api_version, kind) = object.type_of();
    [api_version.split_once('/').map_or("", |(group, _)| group), kind]
}
