//! Which constraints tie pods to domains, and what is counted for them.

pub(crate) mod bound;
pub(crate) mod filter;
pub(crate) mod group;
pub(crate) mod identity;
pub(crate) mod label_index;
mod view;

use std::sync::Arc;

use model::{
    object::{
        LabelSelector, LabelSelectorRequirement, Labels, PodAffinityTerm, Taint, Text, Toleration,
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
    view::{Lens, Spot, View},
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

/// All groups of a run.
#[derive(Debug, Default, Clone)]
pub(crate) struct Topology {
    pub(crate) groups: Vec<Group>,
    pub(crate) keys: Vec<KeyId>,
    ids: FxHashMap<Identity, GroupId>,
    pub(crate) filters: Vec<Arc<Filter>>,
    filter_ids: FxHashMap<Arc<Filter>, u32>,
    /// How the cluster looks to constraints of a kind; which one a group has, by group.
    views: Vec<View>,
    view_ids: FxHashMap<Lens, u32>,
    view_of: Vec<u32>,
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
        if let Some(id) = self.filter_ids.get(&filter) {
            return *id;
        }
        let (id, filter) = (self.filters.len() as u32, Arc::new(filter));
        self.filters.push(Arc::clone(&filter));
        self.filter_ids.insert(filter, id);
        id
    }

    fn view(&mut self, lens: Lens, scene: &Scene<'_>, space: &Space<'_>) -> u32 {
        if let Some(id) = self.view_ids.get(&lens) {
            return *id;
        }
        let filter = lens.filter.map(|at| &*self.filters[at as usize]);
        let id = self.views.len() as u32;
        self.views.push(View::new(lens, filter, scene, space));
        self.view_ids.insert(lens, id);
        id
    }

    fn add(&mut self, identity: Identity, mut group: Group, scene: &Scene<'_>, space: &Space<'_>) -> GroupId {
        let id = self.groups.len() as GroupId;
        let lens = Lens {
            key: identity.key,
            filter: group.filter,
            has_fallback: identity.kind != Kind::Inverse,
        };
        let view = self.view(lens, scene, space);
        // Groups of avoiders are counted by their owners, not by their selector.
        let is_counted = identity.kind != Kind::Inverse;
        if let Counts::Labels(labels) = &mut group.counts
            && is_counted
        {
            labels.register_all(&self.views[view as usize].known);
        }
        let picked = scene.bound.picked(&group.namespaces, group.selector.as_ref());
        let picked: Vec<u32> = picked.filter(|_| is_counted).collect();
        self.keys.push(identity.key);
        self.groups.push(group);
        self.view_of.push(view);
        self.ids.insert(identity, id);
        for node in picked {
            self.count_on_node(id, node, 1, scene, space);
        }
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
            for id in self.inverse(*owner, wishes, scene, space) {
                self.count_on_node(id, *node, 1, scene, space);
            }
        }
    }

    /// Counts a pod on a node of the cluster, by its position in the scene, or takes it back. In a group of avoiders it
    /// is counted as one of them.
    pub(crate) fn count_on_node(&mut self, id: GroupId, node: u32, step: i32, scene: &Scene<'_>, space: &Space<'_>) {
        let view = &mut self.views[self.view_of[id as usize] as usize];
        let filter = view.lens.filter.map(|at| &*self.filters[at as usize]);
        let group = &mut self.groups[id as usize];
        match view.spot(node, filter, scene, space) {
            Spot::Host(host) => group.add_host(host as usize, step),
            Spot::Domain(domain) => group.add_domain(domain as usize, step),
            Spot::Elsewhere => {
                if let Some(host) = view.value(node, scene, space) {
                    group.add_elsewhere(host, step);
                }
            }
            Spot::Unknown | Spot::Nowhere => {}
        }
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
        self.view_of.truncate(groups);
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

fn ordinal(entry: &crate::space::TopologyKey, value: &str, space: &Space<'_>) -> Option<usize> {
    let value: ValueId = space.vocabulary.value(entry.key, value)?;
    entry.ordinal(value)
}
