//! What nodes have, what pods ask of them, and how much of it is used: one pass over all pods, when it is asked for.

use std::{borrow::Cow, collections::BTreeMap, collections::HashMap, sync::Arc};

use api::labels::{INITIALIZED, rules::WELL_KNOWN};
use model::{
    object::{Node, NodeClaim, Pod, PodSpec, Text},
    quantity::Quantity,
    resources::{ResourceList, ResourceName},
    snapshot::Snapshot,
};
use runtime::{
    Metrics,
    metrics::{About, Kind, Sheet},
    settings::MetricsProfile,
};

/// The families per node.
pub(super) struct NodeFamilies {
    /// Keys of node labels, in the order of the label names they become.
    keys: Vec<Vec<String>>,
    by_resource: Vec<(About, Measure)>,
    lifetime: About,
}

/// What a family shows of a node.
type Measure = fn(&Row) -> ResourceList;

/// A node and what uses it.
struct Row {
    node: Arc<Node>,
    claim: Option<Arc<NodeClaim>>,
    used: Used,
}

/// What the pods on a node ask for.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Used {
    pub(super) requests: ResourceList,
    pub(super) limits: ResourceList,
    pub(super) daemon_requests: ResourceList,
    pub(super) daemon_limits: ResourceList,
}

const BY_RESOURCE: &[(&str, &str, Measure)] = &[
    (
        "karpenter_nodes_allocatable",
        "Node allocatable are the resources allocatable by nodes.",
        |row| row.node.status.allocatable.clone(),
    ),
    (
        "karpenter_nodes_total_pod_requests",
        "Node total pod requests are the resources requested by pods bound to nodes, including the DaemonSet pods.",
        |row| row.used.requests.clone(),
    ),
    (
        "karpenter_nodes_total_pod_limits",
        "Node total pod limits are the resources specified by pod limits, including the DaemonSet pods.",
        |row| row.used.limits.clone(),
    ),
    (
        "karpenter_nodes_total_daemon_requests",
        "Node total daemon requests are the resource requested by DaemonSet pods bound to nodes.",
        |row| row.used.daemon_requests.clone(),
    ),
    (
        "karpenter_nodes_total_daemon_limits",
        "Node total daemon limits are the resources specified by DaemonSet pod limits.",
        |row| row.used.daemon_limits.clone(),
    ),
    (
        "karpenter_nodes_system_overhead",
        "Node system daemon overhead are the resources reserved for system overhead: capacity less allocatable.",
        |row| row.node.status.capacity.subtract(&row.node.status.allocatable),
    ),
];

impl NodeFamilies {
    /// With the labels that core and the provider know well.
    pub(super) fn new(of_provider: &[String]) -> Self {
        let well_known = WELL_KNOWN.iter().copied().chain(of_provider.iter().map(String::as_str));
        let mut keys: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for key in well_known {
            if let Some((_, name)) = key.split_once('/').filter(|(_, name)| !name.contains('/')) {
                let known = keys.entry(snake(name)).or_default();
                known.push(key.to_owned());
            }
        }
        let labels = |last: Option<&'static str>| -> Vec<Cow<'static, str>> {
            let names = keys.keys().cloned().map(Cow::Owned);
            let own = ["node_name", "phase", "managed"].into_iter().chain(last);
            names.chain(own.map(Cow::Borrowed)).collect()
        };
        let about = |name, help, last| About::new(name, help, Kind::Gauge, labels(last), MetricsProfile::Standard);
        Self {
            by_resource: BY_RESOURCE
                .iter()
                .map(|(name, help, of)| (about(*name, help, Some("resource_type")), *of))
                .collect(),
            lifetime: about("karpenter_nodes_current_lifetime_seconds", "Node age in seconds.", None),
            keys: keys.into_values().collect(),
        }
    }

    /// Everything there is to show.
    pub(super) fn sheets(&self, metrics: &Metrics, snapshot: &Snapshot, profile: MetricsProfile) -> Vec<Sheet> {
        let rows: Arc<[Row]> = rows(snapshot).into();
        let mut sheets = vec![metrics.cluster_utilization_percent.sheet_of(utilization(&rows))];
        if profile < MetricsProfile::Standard {
            return sheets;
        }
        let labels: Arc<[Vec<String>]> = rows.iter().map(|row| self.labels(row)).collect();
        for (about, of) in &self.by_resource {
            let (count, rows, labels, of) = (rows.len(), Arc::clone(&rows), Arc::clone(&labels), *of);
            let write = move |about: &About, at: &usize, out: &mut String| {
                if let (Some(row), Some(labels)) = (rows.get(*at), labels.get(*at)) {
                    resources(about, labels, &of(row), out);
                }
            };
            sheets.push(Sheet::each(about.clone(), 0..count, write));
        }
        let now = snapshot.taken_at();
        let age = |node: &Node| {
            node.metadata
                .creation_timestamp
                .map(|born| now.duration_since(born).as_secs_f64())
        };
        let ages: Vec<f64> = rows.iter().map(|row| age(&row.node).unwrap_or_default()).collect();
        let each = move |about: &About, at: &usize, out: &mut String| {
            if let (Some(age), Some(labels)) = (ages.get(*at), labels.get(*at)) {
                about.sample(out, labels, *age);
            }
        };
        sheets.push(Sheet::each(self.lifetime.clone(), 0..rows.len(), each));
        sheets
    }

    /// The values of a node's labels, in the order of their names. The node's phase is long gone from the API.
    fn labels(&self, row: &Row) -> Vec<String> {
        let labels = &row.node.metadata.labels;
        let value = |keys: &Vec<String>| {
            let found = keys.iter().find_map(|key| labels.get(key));
            found.map(ToString::to_string).unwrap_or_default()
        };
        let own = [
            row.node.metadata.name.to_string(),
            String::new(),
            row.claim.is_some().to_string(),
        ];
        self.keys.iter().map(value).chain(own).collect()
    }
}

/// Writes a sample for each resource.
fn resources(about: &About, labels: &[String], list: &ResourceList, out: &mut String) {
    let mut values = labels.to_vec();
    for (name, quantity) in list.iter() {
        values.push(snake(name.as_str()));
        about.sample(out, &values, amount(name, quantity));
        values.pop();
    }
}

/// Lower case, with `_` for `-`: how labels and resources become words of Prometheus.
pub(super) fn snake(name: &str) -> String {
    name.to_lowercase().replace('-', "_")
}

/// CPU in cores, everything else in whole units.
#[expect(clippy::cast_precision_loss, reason = "a gauge for people")]
pub(super) fn amount(name: &ResourceName, quantity: Quantity) -> f64 {
    match name {
        ResourceName::Cpu => quantity.milli_value() as f64 / 1000.0,
        _ => quantity.value() as f64,
    }
}

fn rows(snapshot: &Snapshot) -> Vec<Row> {
    let mut used = used(snapshot.objects().pods.iter());
    let nodes = snapshot.objects().nodes.iter();
    nodes
        .map(|node| Row {
            node: Arc::clone(node),
            claim: snapshot.claim_of_node(node).cloned(),
            used: used.remove(&node.metadata.name).unwrap_or_default(),
        })
        .collect()
}

/// What the pods that have not ended ask of their nodes, by node.
pub(super) fn used<'a>(pods: impl Iterator<Item = &'a Arc<Pod>>) -> BTreeMap<Text, Used> {
    let mut by_node: BTreeMap<Text, Used> = BTreeMap::new();
    let mut sizes = Sizes::default();
    for pod in pods.filter(|pod| !pod.is_terminal()) {
        let Some(node) = &pod.node_name else { continue };
        if !by_node.contains_key(node.as_str()) {
            by_node.insert(node.as_str().into(), Used::default());
        }
        let Some(used) = by_node.get_mut(node.as_str()) else {
            continue;
        };
        let (requests, limits) = sizes.of(pod);
        used.requests.add(&requests);
        used.limits.add(&limits);
        if pod.is_owned_by_daemon_set() {
            used.daemon_requests.add(&requests);
            used.daemon_limits.add(&limits);
        }
    }
    by_node
}

/// Requests and limits of pods. Replicas share their spec, so it is added up once for all of them.
#[derive(Default)]
struct Sizes(HashMap<*const PodSpec, Size>);

type Size = (Arc<ResourceList>, Arc<ResourceList>);

impl Sizes {
    fn of(&mut self, pod: &Pod) -> Size {
        if !pod.status.container_statuses.is_empty() || !pod.status.init_container_statuses.is_empty() {
            return size(pod);
        }
        let known = self.0.entry(Arc::as_ptr(&pod.spec));
        known.or_insert_with(|| size(pod)).clone()
    }
}

fn size(pod: &Pod) -> Size {
    let resources = pod.resources();
    let counted = |mut list: ResourceList| {
        list.set(ResourceName::Pods, Quantity::from_units(1));
        Arc::new(list)
    };
    (counted(resources.requests()), counted(resources.limits()))
}

/// How much of what all nodes have is asked for, in percent.
fn utilization(rows: &[Row]) -> Vec<([String; 1], f64)> {
    let (mut have, mut asked) = (ResourceList::EMPTY, ResourceList::EMPTY);
    for row in rows {
        have.add(&allocatable(row));
        asked.add(&row.used.requests);
    }
    let percent = |(name, all): (&ResourceName, Quantity)| {
        let part = 100.0 * amount(name, asked.amount(name.as_str())) / amount(name, all);
        ([snake(name.as_str())], part)
    };
    have.iter().filter(|(_, all)| all.value() != 0).map(percent).collect()
}

/// What a node offers, or will once it is initialized.
fn allocatable(row: &Row) -> ResourceList {
    let mut list = row.node.status.allocatable.clone();
    let is_initialized = row
        .node
        .metadata
        .labels
        .get(INITIALIZED)
        .is_some_and(|value| **value == *"true");
    let promised = row.claim.as_ref().filter(|_| !is_initialized);
    for (name, quantity) in promised.iter().flat_map(|claim| claim.status.allocatable.iter()) {
        if list.amount(name.as_str()).is_zero() {
            list.set(name.clone(), quantity);
        }
    }
    list
}
