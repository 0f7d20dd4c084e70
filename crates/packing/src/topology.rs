//! Which constraints tie pods to domains, and what is counted for them.

pub(crate) mod bound;
pub(crate) mod filter;
pub(crate) mod group;
pub(crate) mod identity;

use std::sync::Arc;

use model::{
    object::{
        LabelSelector, LabelSelectorRequirement, Labels, Node, PodAffinityTerm, Taint, Text, Toleration,
        TopologySpreadConstraint,
    },
    requirement::Requirements,
    snapshot::Snapshot,
    taint::check_tolerated,
    vocabulary::{KeyId, ValueId},
};
use rustc_hash::FxHashMap;

use self::{
    bound::BoundPods,
    filter::Filter,
    group::{Counts, Group, HostCounts, LabelCounts},
    identity::{Identity, Kind},
};
use crate::{
    bitmap::positions,
    ladder::Wishes,
    rules::HostRule,
    space::{MANY, Space, StateId},
    supply::{Domain, StateNode},
};

/// Position of a group.
pub(crate) type GroupId = u32;

/// Whose constraints are being looked at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Owner<'a> {
    pub(crate) namespace: &'a Text,
    pub(crate) labels: &'a Labels,
}

/// What never changes while pods are placed.
#[derive(Debug)]
pub(crate) struct Scene<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) nodes: &'a [StateNode],
    pub(crate) universe: &'a [Domain],
    pub(crate) bound: &'a BoundPods,
    /// Host number by hostname.
    pub(crate) hosts: FxHashMap<Text, u32>,
    /// What each node with pods fulfils, by position in `bound.nodes`.
    pub(crate) bound_requirements: &'a [Requirements],
    /// What each state node's labels fulfil, by position in `nodes`.
    pub(crate) node_requirements: &'a [Requirements],
}

/// Where a node of the cluster counts for a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spot {
    /// Not looked up yet.
    Unknown,
    /// It does not take part.
    Nowhere,
    Host(u32),
    Domain(u32),
    /// A host that takes no pods in this run.
    Elsewhere,
}

/// All groups of a run.
#[derive(Debug, Default, Clone)]
pub(crate) struct Topology {
    pub(crate) groups: Vec<Group>,
    pub(crate) keys: Vec<KeyId>,
    ids: FxHashMap<Identity, GroupId>,
    pub(crate) filters: Vec<Arc<Filter>>,
    /// Where nodes of the cluster count, by group and position in the scene, once somebody asked.
    spots: Vec<Vec<Spot>>,
    /// Whether a node filter passes a state, by filter, state and taints.
    matches: FxHashMap<(u32, StateId, u32), bool>,
}

impl Topology {
    /// The groups that bind a pod at one step of its ladder; new ones are counted from the cluster as it is.
    pub(crate) fn owned(
        &mut self,
        owner: Owner<'_>,
        wishes: &Wishes,
        scene: &Scene<'_>,
        space: &Space<'_>,
    ) -> Vec<GroupId> {
        let mut owned = Vec::new();
        for spread in &wishes.spreads {
            owned.push(self.spread(owner, spread, wishes, scene, space));
        }
        for term in wishes.affinity_terms() {
            owned.push(self.term(Kind::Affinity, owner, term, &wishes.tolerations, scene, space));
        }
        for term in wishes.anti_affinity_terms() {
            owned.push(self.term(Kind::AntiAffinity, owner, term, &wishes.tolerations, scene, space));
        }
        owned.sort_unstable();
        owned.dedup();
        owned
    }

    /// The groups that count a pod because it avoids others.
    pub(crate) fn inverse(
        &mut self,
        owner: Owner<'_>,
        wishes: &Wishes,
        scene: &Scene<'_>,
        space: &Space<'_>,
    ) -> Vec<GroupId> {
        let mut owned: Vec<GroupId> = wishes
            .anti_affinity
            .iter()
            .map(|term| self.term(Kind::Inverse, owner, term, &wishes.tolerations, scene, space))
            .collect();
        owned.sort_unstable();
        owned.dedup();
        owned
    }

    fn spread(
        &mut self,
        owner: Owner<'_>,
        spread: &TopologySpreadConstraint,
        wishes: &Wishes,
        scene: &Scene<'_>,
        space: &Space<'_>,
    ) -> GroupId {
        let key = topology_key(&spread.topology_key, space);
        let selector = with_match_label_keys(spread, owner.labels);
        let filter = Filter::new(spread, wishes, space.vocabulary);
        let identity = Identity::of_spread(key, owner.namespace, spread, selector.as_ref(), &filter);
        if let Some(id) = self.ids.get(&identity) {
            return *id;
        }
        let tolerations = filter.honors_taints.then_some(&wishes.tolerations[..]);
        let filter = (!filter.is_open()).then(|| self.add_filter(filter));
        let group = Group {
            kind: Kind::Spread,
            namespaces: vec![owner.namespace.clone()],
            selector,
            max_skew: spread.max_skew,
            min_domains: spread.min_domains,
            filter,
            counts: empty_counts(key, tolerations, scene, space),
        };
        self.add(identity, group, scene, space)
    }

    fn term(
        &mut self,
        kind: Kind,
        owner: Owner<'_>,
        term: &PodAffinityTerm,
        tolerations: &[Toleration],
        scene: &Scene<'_>,
        space: &Space<'_>,
    ) -> GroupId {
        let key = topology_key(&term.topology_key, space);
        let namespaces = namespaces(owner.namespace, term, scene.snapshot);
        let identity = Identity::of_term(kind, key, namespaces.clone(), term);
        if let Some(id) = self.ids.get(&identity) {
            return *id;
        }
        let group = Group {
            kind,
            namespaces,
            selector: term.label_selector.clone(),
            max_skew: i32::MAX,
            min_domains: None,
            filter: None,
            counts: empty_counts(key, Some(tolerations), scene, space),
        };
        self.add(identity, group, scene, space)
    }

    fn add_filter(&mut self, filter: Filter) -> u32 {
        self.filters.push(Arc::new(filter));
        self.filters.len() as u32 - 1
    }

    fn add(&mut self, identity: Identity, mut group: Group, scene: &Scene<'_>, space: &Space<'_>) -> GroupId {
        let id = self.groups.len() as GroupId;
        // Groups of avoiders are counted by their owners, not by their selector.
        if identity.kind != Kind::Inverse {
            let filter = group.filter.map(|at| Arc::clone(&self.filters[at as usize]));
            register_nodes(&mut group, filter.as_deref(), scene, space);
            count_bound(&mut group, identity.key, filter.as_deref(), scene, space);
        }
        self.keys.push(identity.key);
        self.groups.push(group);
        self.ids.insert(identity, id);
        id
    }

    /// Counts the pods of the cluster that avoid others.
    pub(crate) fn count_avoiders(
        &mut self,
        avoiders: &[(Owner<'_>, &Wishes, u32)],
        scene: &Scene<'_>,
        space: &Space<'_>,
    ) {
        for (owner, wishes, node) in avoiders {
            let node = &scene.bound.nodes[*node as usize];
            for id in self.inverse(*owner, wishes, scene, space) {
                self.count_avoider(id, node, 1, scene, space);
            }
        }
    }

    /// Counts a pod of the cluster that avoids others, or takes it back.
    pub(crate) fn count_avoider(&mut self, id: GroupId, node: &Node, step: i32, scene: &Scene<'_>, space: &Space<'_>) {
        let key = self.keys[id as usize];
        if let Some(value) = node.metadata.labels.get(space.vocabulary.key_name(key)) {
            count_value(&mut self.groups[id as usize], key, value, step, scene, space);
        }
    }

    /// Counts a pod on a node of the cluster, by its position in the scene, or takes it back. In a group of avoiders it
    /// is counted as one of them.
    pub(crate) fn count_on_node(&mut self, id: GroupId, node: u32, step: i32, scene: &Scene<'_>, space: &Space<'_>) {
        let spot = self.spot(id, node, scene, space);
        let group = &mut self.groups[id as usize];
        match spot {
            Spot::Host(host) => group.add_host(host as usize, step),
            Spot::Domain(domain) => group.add_domain(domain as usize, step),
            Spot::Elsewhere => {
                let filter = group.filter.map(|at| &*self.filters[at as usize]);
                count_on(group, self.keys[id as usize], filter, node, step, scene, space);
            }
            Spot::Unknown | Spot::Nowhere => {}
        }
    }

    fn spot(&mut self, id: GroupId, node: u32, scene: &Scene<'_>, space: &Space<'_>) -> Spot {
        if self.spots.len() <= id as usize {
            self.spots.resize_with(self.groups.len(), Vec::new);
        }
        let spots = &mut self.spots[id as usize];
        if spots.is_empty() {
            spots.resize(scene.bound.nodes.len(), Spot::Unknown);
        }
        if spots[node as usize] == Spot::Unknown {
            let group = &self.groups[id as usize];
            let filter = group.filter.map(|at| &*self.filters[at as usize]);
            spots[node as usize] = spot(group, self.keys[id as usize], filter, node, scene, space);
        }
        spots[node as usize]
    }

    /// Counts a placed pod, or takes it back with a negative step.
    pub(crate) fn record(&mut self, id: GroupId, host: usize, state: StateId, step: i32, space: &Space<'_>) {
        let group = &mut self.groups[id as usize];
        let key = match &group.counts {
            Counts::Hosts(_) => return group.add_host(host, step),
            Counts::Labels(labels) => labels.key,
        };
        match group.kind {
            Kind::AntiAffinity | Kind::Inverse => {
                for domain in positions(space.listed(state, key)) {
                    group.add_domain(domain, step);
                }
            }
            Kind::Spread | Kind::Affinity => {
                let only = space.state(state).single[key];
                if only != MANY {
                    group.add_domain(only as usize, step);
                }
            }
        }
    }

    /// Forgets the groups from a position on.
    pub(crate) fn truncate(&mut self, groups: usize) {
        self.groups.truncate(groups);
        self.keys.truncate(groups);
        self.spots.truncate(groups);
        self.ids.retain(|_, id| (*id as usize) < groups);
    }

    /// The hosts of a word that a rule leaves open.
    #[inline]
    pub(crate) fn open_hosts(&self, rule: HostRule, at: usize) -> u64 {
        match &self.groups[rule.group as usize].counts {
            Counts::Hosts(hosts) if rule.is_open => hosts.above[rule.threshold].word(at),
            Counts::Hosts(hosts) => !hosts.above[rule.threshold].word(at),
            Counts::Labels(_) => u64::MAX,
        }
    }

    /// Whether nodes of a state with these taints count for a group.
    #[inline]
    pub(crate) fn counts_on(
        &mut self,
        id: GroupId,
        state: StateId,
        taints: (u32, &[Taint]),
        space: &Space<'_>,
    ) -> bool {
        let Some(filter) = self.groups[id as usize].filter else {
            return true;
        };
        let filters = &self.filters;
        *self.matches.entry((filter, state, taints.0)).or_insert_with(|| {
            let requirements = &space.state(state).requirements;
            filters[filter as usize].matches(taints.1, requirements, space.vocabulary)
        })
    }
}

/// Constraints name labels as they are; only requirements know aliases.
fn topology_key(name: &str, space: &Space<'_>) -> KeyId {
    space.vocabulary.key(name).unwrap_or(KeyId::HOSTNAME)
}

/// The spread's selector, narrowed by the pod's own values of its `matchLabelKeys`.
fn with_match_label_keys(spread: &TopologySpreadConstraint, labels: &Labels) -> Option<LabelSelector> {
    let selector = spread.label_selector.as_ref()?;
    let own = spread.match_label_keys.iter().filter_map(|key| {
        labels.get(key).map(|value| LabelSelectorRequirement {
            key: key.clone(),
            operator: "In".into(),
            values: vec![value.clone()].into(),
        })
    });
    Some(LabelSelector {
        match_labels: selector.match_labels.clone(),
        match_expressions: selector.match_expressions.iter().cloned().chain(own).collect(),
    })
}

/// The namespaces a term is about, sorted.
fn namespaces(own: &Text, term: &PodAffinityTerm, snapshot: &Snapshot) -> Vec<Text> {
    let mut names = match (&term.namespace_selector, term.namespaces.is_empty()) {
        (None, true) => vec![own.clone()],
        (None, false) => term.namespaces.to_vec(),
        (Some(selector), _) => {
            let all = snapshot.objects().namespaces.iter();
            let picked = all.filter(|namespace| bound::selects(selector, &namespace.metadata.labels));
            let picked = picked.map(|namespace| namespace.metadata.name.clone());
            picked.chain(term.namespaces.iter().cloned()).collect()
        }
    };
    names.sort_unstable();
    names.dedup();
    names
}

/// No counts yet, over the domains that nodes to be launched could have; with tolerations only over those under
/// tolerated taints.
fn empty_counts(key: KeyId, tolerations: Option<&[Toleration]>, scene: &Scene<'_>, space: &Space<'_>) -> Counts {
    let Some(at) = space.topology_key(key) else {
        return Counts::Hosts(HostCounts::default());
    };
    let entry = &space.keys[at];
    let mut labels = LabelCounts::new(at, entry.values.len(), entry.words);
    let tolerations: Option<Vec<_>> = tolerations.map(|list| list.iter().map(Toleration::view).collect());
    let is_open = |domain: &&Domain| {
        let tolerated =
            |taints: &Vec<Taint>, views: &[_]| check_tolerated(taints.iter().map(Taint::view), views).is_ok();
        let is_tolerated = |views: &Vec<_>| domain.taints.iter().any(|taints| tolerated(taints, views));
        domain.key == key && tolerations.as_ref().is_none_or(is_tolerated)
    };
    for domain in scene.universe.iter().filter(is_open) {
        if let Some(ordinal) = entry.ordinal(domain.value) {
            labels.register(ordinal);
        }
    }
    Counts::Labels(labels)
}

/// Domains of nodes there are, with pods on them or not.
fn register_nodes(group: &mut Group, filter: Option<&Filter>, scene: &Scene<'_>, space: &Space<'_>) {
    let Counts::Labels(labels) = &mut group.counts else {
        return;
    };
    let entry = &space.keys[labels.key];
    let name = space.vocabulary.key_name(entry.key);
    for (node, requirements) in scene.nodes.iter().zip(scene.node_requirements) {
        let Some(object) = &node.node else { continue };
        let takes_part =
            filter.is_none_or(|filter| filter.matches(&object.spec.taints, requirements, space.vocabulary));
        let value = node.labels.get(name).filter(|_| takes_part);
        if let Some(ordinal) = value.and_then(|value| ordinal(entry, value, space)) {
            labels.register(ordinal);
        }
    }
}

fn ordinal(entry: &crate::space::TopologyKey, value: &str, space: &Space<'_>) -> Option<usize> {
    let value: ValueId = space.vocabulary.value(entry.key, value)?;
    entry.ordinal(value)
}

/// Pods the selector picks that are on nodes that take part.
fn count_bound(group: &mut Group, key: KeyId, filter: Option<&Filter>, scene: &Scene<'_>, space: &Space<'_>) {
    let picked: Vec<u32> = scene.bound.picked(&group.namespaces, group.selector.as_ref()).collect();
    for at in picked {
        count_on(group, key, filter, at, 1, scene, space);
    }
}

fn count_on(
    group: &mut Group,
    key: KeyId,
    filter: Option<&Filter>,
    at: u32,
    step: i32,
    scene: &Scene<'_>,
    space: &Space<'_>,
) {
    let node = &scene.bound.nodes[at as usize];
    let requirements = &scene.bound_requirements[at as usize];
    let takes_part = filter.is_none_or(|filter| filter.matches(&node.spec.taints, requirements, space.vocabulary));
    let fallback = (key == KeyId::HOSTNAME).then_some(&node.metadata.name);
    let name = space.vocabulary.key_name(key);
    if let Some(value) = node.metadata.labels.get(name).or(fallback).filter(|_| takes_part) {
        count_value(group, key, value, step, scene, space);
    }
}

/// Where a node of the scene counts.
fn spot(group: &Group, key: KeyId, filter: Option<&Filter>, at: u32, scene: &Scene<'_>, space: &Space<'_>) -> Spot {
    let node = &scene.bound.nodes[at as usize];
    let requirements = &scene.bound_requirements[at as usize];
    let takes_part = filter.is_none_or(|filter| filter.matches(&node.spec.taints, requirements, space.vocabulary));
    // Avoiders are counted by label alone.
    let has_fallback = key == KeyId::HOSTNAME && group.kind != Kind::Inverse;
    let fallback = has_fallback.then_some(&node.metadata.name);
    let name = space.vocabulary.key_name(key);
    let Some(value) = node.metadata.labels.get(name).or(fallback).filter(|_| takes_part) else {
        return Spot::Nowhere;
    };
    match &group.counts {
        Counts::Labels(labels) => {
            let domain = ordinal(&space.keys[labels.key], value, space);
            domain.map_or(Spot::Nowhere, |domain| Spot::Domain(domain as u32))
        }
        Counts::Hosts(_) => scene.hosts.get(value).map_or(Spot::Elsewhere, |host| Spot::Host(*host)),
    }
}

fn count_value(group: &mut Group, key: KeyId, value: &Text, step: i32, scene: &Scene<'_>, space: &Space<'_>) {
    if let Counts::Labels(labels) = &group.counts {
        let entry = &space.keys[labels.key];
        if let Some(ordinal) = ordinal(entry, value, space) {
            group.add_domain(ordinal, step);
        }
        return;
    }
    debug_assert_eq!(key, KeyId::HOSTNAME);
    match scene.hosts.get(value) {
        Some(host) => group.add_host(*host as usize, step),
        None => {
            if let Counts::Hosts(hosts) = &mut group.counts {
                match hosts.elsewhere.iter_mut().find(|(name, _)| name == value) {
                    Some((_, count)) => *count = count.saturating_add_signed(step),
                    None => hosts.elsewhere.push((value.clone(), 1)),
                }
            }
        }
    }
}
