//! Pods in, numbers out: what pods have in common is looked at once, however many replicas there are.
//!
//! Three things are numbered separately, because workloads mix them freely: what a pod takes (shape), where it wants to
//! be (wishes), and which selectors could mean it (namespace and labels). A combination of the last two is a combo. Parts
//! that pods share in memory are recognised by address first and by content only when the address is new.

use std::sync::Arc;

use model::{
    host_port::HostPort,
    object::{
        LabelSelector, Labels, ObjectKey, Pod, PodAffinityTerm, PodPhase, PodSpec, Text, TopologySpreadConstraint,
    },
    quantity::Quantity,
    requirement::Requirements,
    resources::{ResourceList, ResourceName},
    snapshot::PreferencePolicy,
    vocabulary::{KeyId, Vocabulary},
};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::{
    demand::{DemandPod, Origin, PodVolumes},
    ladder::{Wishes, Written},
};

/// The pods of a run as numbers.
#[derive(Debug, Default)]
pub(crate) struct Intake {
    pub(crate) pods: Vec<PodEntry>,
    pub(crate) shapes: Vec<ResourceList>,
    pub(crate) combos: Vec<Combo>,
    pub(crate) wishes: Vec<Wishes>,
    pub(crate) extras: Vec<Extra>,
    /// The labels whose values are topology domains, hostnames aside.
    pub(crate) topology_keys: Vec<KeyId>,
}

/// One pod.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PodEntry {
    pub(crate) combo: u32,
    pub(crate) shape: u32,
    /// Position in [`Intake::extras`]; [`PLAIN`] for most.
    pub(crate) extra: u32,
    /// It may go to nodes that must not be consolidated yet.
    pub(crate) is_homeless: bool,
}

/// A pod without ports, volumes and devices.
pub(crate) const PLAIN: u32 = u32::MAX;

/// Pods that the same constraints bind and the same selectors pick.
#[derive(Debug, Clone)]
pub(crate) struct Combo {
    pub(crate) namespace: Text,
    pub(crate) labels: Labels,
    pub(crate) wishes: u32,
    /// Its volumes could not be looked up, so it starts without constraints on other pods.
    pub(crate) is_unresolved: bool,
}

/// What few pods have.
#[derive(Debug, Clone)]
pub(crate) struct Extra {
    pub(crate) key: ObjectKey,
    pub(crate) ports: Vec<HostPort>,
    pub(crate) volumes: Option<Arc<PodVolumes>>,
    /// Alternatives of the volumes, understood.
    pub(crate) alternatives: Vec<Requirements>,
    pub(crate) has_devices: bool,
}

/// What a spec's pods have in common.
#[derive(Clone, Copy)]
struct SpecEntry {
    wishes: u32,
    shape: u32,
    is_plain: bool,
}

#[derive(Default)]
struct Tables {
    specs: FxHashMap<usize, SpecEntry>,
    written_by_parts: FxHashMap<[usize; 4], u32>,
    written: FxHashMap<Written, u32>,
    shapes_by_parts: FxHashMap<[usize; 2], u32>,
    shapes: FxHashMap<ResourceList, u32>,
    namespaces: FxHashMap<Text, u32>,
    /// Where the last namespace looked up is in memory, and its number.
    last_namespace: Option<(*const u8, u32)>,
    labels_by_address: FxHashMap<usize, u32>,
    labels: FxHashMap<Vec<(Text, Text)>, u32>,
    combos: FxHashMap<(u32, u32, u32, bool), u32>,
}

impl Intake {
    pub(crate) fn new(
        pods: &[DemandPod],
        avoiders: &[Arc<Pod>],
        policy: PreferencePolicy,
        vocabulary: &mut Vocabulary,
    ) -> (Self, Vec<u32>) {
        let (mut intake, mut tables) = (Self::default(), Tables::default());
        let specs: Vec<SpecEntry> = pods
            .iter()
            .map(|entry| intake.spec(&entry.pod, policy, &mut tables, vocabulary))
            .collect();
        let avoiders: Vec<u32> = avoiders
            .iter()
            .map(|pod| intake.wishes(&pod.spec, policy, &mut tables, vocabulary))
            .collect();
        let mentioned = intake.mentioned_labels();
        intake.pods.reserve(pods.len());
        for (entry, spec) in pods.iter().zip(specs) {
            let extra = intake.extra(entry, spec, vocabulary);
            let is_unresolved = entry.volumes.as_ref().is_some_and(|volumes| volumes.is_unresolved);
            let combo = intake.combo(&entry.pod, spec.wishes, is_unresolved, &mentioned, &mut tables);
            intake.pods.push(PodEntry {
                combo,
                shape: spec.shape,
                extra,
                is_homeless: entry.pod.status.phase == PodPhase::Pending || matches!(entry.origin, Origin::Moving(_)),
            });
        }
        intake.topology_keys = intake.topology_keys(vocabulary);
        (intake, avoiders)
    }

    fn spec(
        &mut self,
        pod: &Pod,
        policy: PreferencePolicy,
        tables: &mut Tables,
        vocabulary: &mut Vocabulary,
    ) -> SpecEntry {
        let address = Arc::as_ptr(&pod.spec) as usize;
        let is_resized = !pod.status.container_statuses.is_empty() || !pod.status.init_container_statuses.is_empty();
        if let Some(entry) = tables.specs.get(&address).filter(|_| !is_resized) {
            return *entry;
        }
        let entry = SpecEntry {
            wishes: self.wishes(&pod.spec, policy, tables, vocabulary),
            shape: self.shape(pod, is_resized, tables),
            is_plain: pod.spec.host_ports().next().is_none() && !pod.has_device_claims(),
        };
        if !is_resized {
            tables.specs.insert(address, entry);
        }
        entry
    }

    fn wishes(
        &mut self,
        spec: &PodSpec,
        policy: PreferencePolicy,
        tables: &mut Tables,
        vocabulary: &mut Vocabulary,
    ) -> u32 {
        let parts = [
            spec.node_selector.as_ptr() as usize,
            spec.affinity
                .as_ref()
                .map_or(0, |affinity| Arc::as_ptr(affinity) as usize),
            spec.tolerations.as_ptr() as usize,
            spec.topology_spread_constraints.as_ptr() as usize,
        ];
        if let Some(id) = tables.written_by_parts.get(&parts) {
            return *id;
        }
        let written = Written {
            node_selector: spec.node_selector.clone(),
            affinity: spec.affinity.clone(),
            tolerations: spec.tolerations.clone(),
            spreads: spec.topology_spread_constraints.clone(),
        };
        let id = if let Some(id) = tables.written.get(&written) {
            *id
        } else {
            let id = self.wishes.len() as u32;
            self.wishes.push(Wishes::new(&written, policy, vocabulary));
            tables.written.insert(written, id);
            id
        };
        tables.written_by_parts.insert(parts, id);
        id
    }

    fn shape(&mut self, pod: &Pod, is_resized: bool, tables: &mut Tables) -> u32 {
        let spec = &pod.spec;
        let is_simple = !is_resized && spec.overhead.is_empty() && spec.resources.is_none();
        let parts = [
            spec.containers.as_ptr() as usize,
            spec.init_containers.as_ptr() as usize,
        ];
        if let Some(id) = tables.shapes_by_parts.get(&parts).filter(|_| is_simple) {
            return *id;
        }
        let mut requests = pod.resources().requests();
        requests.set(ResourceName::Pods, Quantity::from_units(1));
        let id = if let Some(id) = tables.shapes.get(&requests) {
            *id
        } else {
            let id = self.shapes.len() as u32;
            self.shapes.push(requests.clone());
            tables.shapes.insert(requests, id);
            id
        };
        if is_simple {
            tables.shapes_by_parts.insert(parts, id);
        }
        id
    }

    fn extra(&mut self, entry: &DemandPod, spec: SpecEntry, vocabulary: &mut Vocabulary) -> u32 {
        if spec.is_plain && entry.volumes.is_none() {
            return PLAIN;
        }
        let alternatives = entry.volumes.iter().flat_map(|volumes| &volumes.alternatives);
        let alternatives = alternatives
            .map(|specs| Requirements::from_specs(specs, vocabulary))
            .collect();
        self.extras.push(Extra {
            key: entry.pod.metadata.key(),
            ports: entry.pod.spec.host_ports().collect(),
            volumes: entry.volumes.clone(),
            alternatives,
            has_devices: entry.pod.has_device_claims(),
        });
        self.extras.len() as u32 - 1
    }

    fn combo(
        &mut self,
        pod: &Pod,
        wishes: u32,
        is_unresolved: bool,
        mentioned: &FxHashSet<Text>,
        tables: &mut Tables,
    ) -> u32 {
        let (namespace, labels) = (&pod.metadata.namespace, &pod.metadata.labels);
        let namespace_id = tables.namespace_id(namespace);
        let labels_id = tables.labels_id(labels, mentioned);
        let next = self.combos.len() as u32;
        let id = *tables
            .combos
            .entry((namespace_id, labels_id, wishes, is_unresolved))
            .or_insert(next);
        if id == next {
            self.combos.push(Combo {
                namespace: namespace.clone(),
                labels: labels.clone(),
                wishes,
                is_unresolved,
            });
        }
        id
    }

    fn terms(&self) -> impl Iterator<Item = &PodAffinityTerm> {
        self.wishes
            .iter()
            .flat_map(|wishes| wishes.affinity_terms().chain(wishes.anti_affinity_terms()))
    }

    fn spreads(&self) -> impl Iterator<Item = &TopologySpreadConstraint> {
        self.wishes.iter().flat_map(|wishes| &wishes.spreads)
    }

    /// The label keys that some selector looks at: pods that differ elsewhere are alike.
    fn mentioned_labels(&self) -> FxHashSet<Text> {
        let selectors = self
            .terms()
            .map(|term| &term.label_selector)
            .chain(self.spreads().map(|spread| &spread.label_selector));
        let mut keys = FxHashSet::default();
        for selector in selectors.flatten() {
            keys.extend(selector_keys(selector));
        }
        keys.extend(
            self.spreads()
                .flat_map(|spread| spread.match_label_keys.iter().cloned()),
        );
        keys
    }

    fn topology_keys(&self, vocabulary: &mut Vocabulary) -> Vec<KeyId> {
        let names = self
            .terms()
            .map(|term| &term.topology_key)
            .chain(self.spreads().map(|spread| &spread.topology_key));
        let mut keys: Vec<KeyId> = names.map(|name| vocabulary.intern_key(name)).collect();
        keys.sort_unstable();
        keys.dedup();
        keys.retain(|key| *key != KeyId::HOSTNAME);
        keys
    }

    /// The label keys that decide whether a pod may go on a node.
    pub(crate) fn node_keys(&self) -> FxHashSet<KeyId> {
        let alternatives = self.extras.iter().flat_map(|extra| &extra.alternatives);
        let wishes = self.wishes.iter().flat_map(Wishes::all_requirements);
        let mut keys: FxHashSet<KeyId> = wishes
            .chain(alternatives)
            .flat_map(|requirements| requirements.iter().map(model::requirement::Requirement::key))
            .collect();
        keys.extend(&self.topology_keys);
        keys.remove(&KeyId::HOSTNAME);
        keys
    }
}

impl Tables {
    fn namespace_id(&mut self, namespace: &Text) -> u32 {
        if let Some((address, id)) = self.last_namespace
            && address == namespace.as_ptr()
        {
            return id;
        }
        let next = self.namespaces.len() as u32;
        let id = *self.namespaces.entry(namespace.clone()).or_insert(next);
        self.last_namespace = Some((namespace.as_ptr(), id));
        id
    }

    fn labels_id(&mut self, labels: &Labels, mentioned: &FxHashSet<Text>) -> u32 {
        let address = labels.as_ptr() as usize;
        if let Some(id) = self.labels_by_address.get(&address) {
            return *id;
        }
        let seen = labels.iter().filter(|(key, _)| mentioned.contains(key)).cloned();
        let next = self.labels.len() as u32;
        let id = *self.labels.entry(seen.collect()).or_insert(next);
        self.labels_by_address.insert(address, id);
        id
    }
}

fn selector_keys(selector: &LabelSelector) -> impl Iterator<Item = Text> + '_ {
    let labels = selector.match_labels.iter().map(|(key, _)| key.clone());
    labels.chain(
        selector
            .match_expressions
            .iter()
            .map(|expression| expression.key.clone()),
    )
}

/// What a node's labels fulfil, as far as anybody asks.
#[derive(Debug)]
pub(crate) struct NodeLabels {
    keys: FxHashSet<KeyId>,
    names: FxHashMap<Text, Option<KeyId>>,
}

impl NodeLabels {
    pub(crate) fn new(keys: FxHashSet<KeyId>) -> Self {
        Self {
            keys,
            names: FxHashMap::default(),
        }
    }

    /// The requirements that the labels somebody asks for amount to.
    pub(crate) fn requirements(&mut self, labels: &Labels, vocabulary: &mut Vocabulary) -> Requirements {
        let mut asked: Vec<(&str, &str)> = Vec::new();
        for (name, value) in labels {
            if self.is_asked(name, vocabulary) {
                asked.push((name, value));
            }
        }
        Requirements::from_labels(asked, vocabulary)
    }

    fn is_asked(&mut self, name: &Text, vocabulary: &mut Vocabulary) -> bool {
        if let Some(known) = self.names.get(name) {
            return known.is_some();
        }
        let key = vocabulary.intern_normalized(name);
        let is_asked = self.keys.contains(&key);
        self.names.insert(name.clone(), is_asked.then_some(key));
        is_asked
    }
}
