//! What if these nodes were gone? Prepared once, asked thousands of times.
//!
//! A simulation costs in proportion to the pods that move, not to the cluster: it starts from counts and rooms that were
//! worked out once, and takes back what it did.

mod cheaper;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use model::{
    instance_type::{MinValuesUnmet, needed_for_min_values},
    object::{NodeName, NodePoolName, Pod, Text},
    plan::{Plan, PlannedClaim, Unplaced},
    price::Price,
    requirement::Requirement,
    resources::ResourceList,
    snapshot::Snapshot,
    vocabulary::{KeyId, ValueId},
};
use rustc_hash::FxHashMap;

use crate::{
    Options, Warm, Work,
    bitmap::has,
    demand::{DemandPod, Origin},
    finish,
    index::Index,
    limits::Limits,
    problem::Problem,
    refusal,
    run::Run,
    space::StateId,
    supply::{StateNode, members},
};

pub use self::cheaper::{Way, Worth};

/// A cluster ready to be asked about.
#[derive(Debug)]
pub struct Prepared {
    problem: Problem,
    nodes: BTreeMap<NodeName, NodeEntry>,
    /// Place of each pod in the queue.
    ranks: Vec<u32>,
    /// The pods that need a place whatever goes, in the order they are tried.
    pending: Vec<u32>,
}

#[derive(Debug, Default)]
struct NodeEntry {
    /// Position among the nodes that take pods.
    at: usize,
    /// Position among the nodes topology counts on.
    scene_at: Option<u32>,
    residents: Vec<u32>,
    /// What it takes of its NodePool's limits, and which template that is.
    capacity: ResourceList,
    template: Option<usize>,
}

/// A node the cluster does not have, or has no room on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("node \"{0}\" is not among the nodes that stay: name one that exists and is not being deleted")]
pub struct UnknownNode(pub NodeName);

/// Where the pods of removed nodes would go.
#[derive(Debug, Clone, PartialEq)]
pub struct Simulation {
    /// Nodes to launch, pods on existing nodes, pods left over.
    pub plan: Plan,
    /// Pods that had to move.
    pub moved: usize,
    /// What it took.
    pub work: Work,
}

impl Prepared {
    /// Works out everything simulations share.
    pub fn new(snapshot: &Snapshot, options: &Options) -> Self {
        Warm::default().prepare(snapshot, options)
    }

    pub(crate) fn of(snapshot: &Snapshot, problem: Problem) -> Self {
        let mut ranks = vec![0; problem.order.len()];
        for (rank, pod) in (0..).zip(&problem.order) {
            ranks[*pod as usize] = rank;
        }
        let nodes = entries(snapshot, &problem);
        let pending = problem.demand().collect();
        Self {
            problem,
            nodes,
            ranks,
            pending,
        }
    }

    /// Somebody to ask; one per thread.
    pub fn simulator(&self) -> Simulator<'_> {
        let mut run = Run::new(&self.problem);
        run.begin();
        Simulator {
            limits: run.limits.clone(),
            run,
            prepared: self,
            queue: VecDeque::new(),
            prices: Prices::default(),
        }
    }

    /// How many pods need a place whatever is asked.
    pub fn waiting_pods(&self) -> usize {
        self.pending.len()
    }

    /// Whether there is nothing to launch nodes from: upstream then simulates nothing at all.
    pub fn has_no_pools(&self) -> bool {
        self.problem.has_no_pools
    }

    /// The nodes that can be asked about, by name.
    pub fn nodes(&self) -> impl Iterator<Item = &NodeName> {
        self.nodes.keys()
    }
}

fn entries(snapshot: &Snapshot, problem: &Problem) -> BTreeMap<NodeName, NodeEntry> {
    let mut entries: BTreeMap<NodeName, NodeEntry> = BTreeMap::new();
    for (at, node) in problem.nodes.iter().enumerate() {
        let pool = node.labels.get(api::labels::NODEPOOL);
        let of_pool = |pool: &Text| {
            let mut templates = problem.templates.iter();
            templates.position(|entry| entry.template.pool.metadata.name == *pool)
        };
        let entry = NodeEntry {
            at,
            template: pool.and_then(of_pool),
            ..NodeEntry::default()
        };
        entries.insert(node.name.clone(), entry);
    }
    for (at, node) in (0..).zip(&problem.bound.nodes) {
        if let Some(entry) = entries.get_mut(&node.name()) {
            entry.scene_at = Some(at);
        }
    }
    for member in members(snapshot) {
        if let Some(entry) = entries.get_mut(&NodeName::from(member.name())) {
            entry.capacity = member.capacity();
        }
    }
    // Pods of a node come one after the other.
    let of_node = |(_, a): &(u32, &DemandPod), (_, b): &(u32, &DemandPod)| a.origin == b.origin;
    let pods: Vec<(u32, &DemandPod)> = (0..).zip(&problem.pods).collect();
    for pods in pods.chunk_by(of_node) {
        if let [(_, first), ..] = pods
            && let Origin::Resident(node) = &first.origin
            && let Some(entry) = entries.get_mut(node)
        {
            entry.residents.extend(pods.iter().map(|(pod, _)| *pod));
        }
    }
    entries
}

/// Answers questions about a prepared cluster, one after the other.
pub struct Simulator<'p> {
    prepared: &'p Prepared,
    run: Run<'p>,
    limits: Vec<Limits>,
    /// The queue of the simulation under way, kept for its memory.
    queue: VecDeque<u32>,
    prices: Prices,
}

impl<'p> Simulator<'p> {
    /// Where the pods of these nodes would go if the nodes were gone.
    #[expect(
        clippy::redundant_closure_for_method_calls,
        reason = "the method itself is of one lifetime, and does not pass for all"
    )]
    pub fn without(&mut self, nodes: &[NodeName]) -> Result<Simulation, UnknownNode> {
        self.ask(nodes, |_| true, |aftermath| aftermath.simulation())
    }

    /// Takes these nodes away, moves those of their pods that `moves` lets go, and looks at what comes of it.
    pub fn ask<T>(
        &mut self,
        nodes: &[NodeName],
        moves: impl Fn(&Pod) -> bool,
        look: impl FnOnce(&mut Aftermath<'_, 'p>) -> T,
    ) -> Result<T, UnknownNode> {
        self.ask_by(Way::Faithful, nodes, moves, look)
    }

    /// The same, with the pods placed in another way.
    pub fn ask_by<T>(
        &mut self,
        way: Way,
        nodes: &[NodeName],
        moves: impl Fn(&Pod) -> bool,
        look: impl FnOnce(&mut Aftermath<'_, 'p>) -> T,
    ) -> Result<T, UnknownNode> {
        let prepared = self.prepared;
        let pods = &prepared.problem.pods;
        let mut queue = std::mem::take(&mut self.queue);
        queue.clear();
        queue.extend(&prepared.pending);
        let before = self.run.work;
        for name in nodes {
            let Some(entry) = prepared.nodes.get(name) else {
                self.run.roll_back(&self.limits);
                return Err(UnknownNode(name.clone()));
            };
            let (moving, first) = (entry.residents.iter(), queue.len());
            queue.extend(moving.filter(|pod| moves(&pods[**pod as usize].pod)));
            self.remove(entry, queue.range(first..));
        }
        let moved = queue.len() - prepared.pending.len();
        self.run.leave_devices(nodes, queue.range(prepared.pending.len()..));
        let rank = |pod: &u32| prepared.ranks[*pod as usize];
        queue.make_contiguous().sort_unstable_by_key(rank);
        cheaper::place(&mut self.run, &mut queue, way);
        let mut aftermath = Aftermath {
            run: &mut self.run,
            prices: &mut self.prices,
            left: queue.make_contiguous(),
            moved,
            before,
        };
        let answer = look(&mut aftermath);
        self.run.roll_back(&self.limits);
        self.queue = queue;
        Ok(answer)
    }

    fn remove<'q>(&mut self, entry: &NodeEntry, moving: impl Iterator<Item = &'q u32>) {
        let problem = &self.prepared.problem;
        self.run.gone.insert(entry.at);
        if let Some(node) = entry.scene_at {
            for pod in moving {
                self.run.uncount(*pod, node);
            }
        }
        if let Some(template) = entry.template {
            self.run.limits[template].give_back(&entry.capacity, &problem.templates[template], &problem.index);
        }
    }
}

/// What a simulation came to, while it can still be looked at from all sides.
pub struct Aftermath<'r, 'p> {
    run: &'r mut Run<'p>,
    prices: &'r mut Prices,
    left: &'r [u32],
    moved: usize,
    before: Work,
}

impl Aftermath<'_, '_> {
    /// How many pods had to move.
    pub fn moved(&self) -> usize {
        self.moved
    }

    /// What it took so far.
    pub fn work(&self) -> Work {
        self.run.work.since(self.before)
    }

    /// How many nodes would be launched.
    pub fn claims(&self) -> usize {
        self.run.claims.len()
    }

    /// The pods without a place, in the order of the queue.
    pub fn left(&self) -> impl Iterator<Item = &Arc<Pod>> {
        self.left.iter().map(|pod| &self.run.problem.pods[*pod as usize].pod)
    }

    /// Pods that would have to go to nodes of ours that are not up yet, but for those whose node goes away already.
    pub fn on_unready_nodes(&self) -> Vec<(&StateNode, &Arc<Pod>)> {
        let problem = self.run.problem;
        // Nodes that are up come first.
        let ready = problem.nodes.partition_point(|node| node.is_initialized);
        let mut found = Vec::new();
        for (node, pods) in problem.nodes.iter().zip(&self.run.nodes.pods).skip(ready) {
            let pods = pods.iter().map(|pod| &problem.pods[*pod as usize]);
            let relying = pods.filter(|entry| !matches!(entry.origin, Origin::Moving(_)));
            found.extend(relying.map(|entry| (node, &entry.pod)));
        }
        found
    }

    /// What the nodes to be launched cost an hour at the cheapest launch of each.
    pub fn price(&mut self) -> Price {
        let claims = 0..self.claims();
        let cheapest = |claim| self.choices(claim).types.first().and_then(|priced| priced.cheapest);
        claims.filter_map(cheapest).sum()
    }

    /// The pods of a node to be launched.
    pub fn pods_of_claim(&self, claim: usize) -> impl Iterator<Item = &Arc<Pod>> {
        let pods = self.run.claims.pods[claim].iter();
        pods.map(|pod| &self.run.problem.pods[*pod as usize].pod)
    }

    /// Whose template a node to be launched is made from.
    pub fn pool_of_claim(&self, claim: usize) -> NodePoolName {
        let template = self.run.claims.templates[claim] as usize;
        self.run.problem.templates[template].template.pool.name()
    }

    /// Why these of the pods without a place have none: positions in [`Aftermath::left`].
    pub fn reasons(&mut self, which: &[usize]) -> Vec<Unplaced> {
        let left: Vec<u32> = which.iter().filter_map(|at| self.left.get(*at).copied()).collect();
        refusal::refusals(self.run, &left)
    }

    /// The simulation as data.
    pub fn simulation(&mut self) -> Simulation {
        Simulation {
            plan: self.plan(),
            moved: self.moved,
            work: self.work(),
        }
    }

    /// The plan: only what the simulation touched is looked at.
    pub fn plan(&mut self) -> Plan {
        let mut used: Vec<usize> = self.run.used_nodes().collect();
        used.sort_unstable();
        used.dedup();
        finish::plan_beside(self.run, self.left, &used)
    }

    /// Whether a node to be launched must keep a number of different types, zones or the like open.
    pub fn has_min_values(&self, claim: usize) -> bool {
        self.run.space.state(self.run.claims.states[claim]).has_min_values
    }

    /// What a node to be launched may become.
    pub fn choices(&mut self, claim: usize) -> Choices {
        let state = finish::final_state(self.run, claim);
        let requirements = &self.run.space.state(state).requirements;
        let admits = |kind| {
            let capacity_type = requirements.get(KeyId::CAPACITY_TYPE);
            capacity_type.is_none_or(|asked| asked.admits(kind, &self.run.problem.vocabulary))
        };
        let (admits_spot, admits_on_demand) = (admits(ValueId::SPOT), admits(ValueId::ON_DEMAND));
        let has_min_values = self.run.space.state(state).has_min_values;
        let (index, entry) = (&self.run.problem.index, self.run.space.state(state));
        let order = self.prices.of(index, &entry.classes);
        let rows = self.run.claims.rows(claim);
        let fitting = order.iter().filter(|priced| index.has_type(rows, priced.entry));
        Choices {
            claim,
            state,
            admits_spot,
            admits_on_demand,
            has_min_values,
            types: fitting.take(finish::MOST_TYPES).copied().collect(),
        }
    }

    /// The choices once only spot capacity will do, in the same order; types that cannot be had as spot stay, without a
    /// price.
    #[must_use]
    pub fn as_spot(&mut self, choices: &Choices) -> Choices {
        let state = self.spot_state(choices);
        let (index, entry) = (&self.run.problem.index, self.run.space.state(state));
        let order = self.prices.of(index, &entry.classes);
        let mut known: Vec<Option<TypePrice>> = vec![None; index.types.len()];
        for priced in order.iter() {
            known[priced.entry as usize] = Some(*priced);
        }
        let types = choices.types.iter();
        Choices {
            state,
            admits_on_demand: false,
            types: types.filter_map(|priced| known[priced.entry as usize]).collect(),
            ..choices.clone()
        }
    }

    fn spot_state(&mut self, choices: &Choices) -> StateId {
        let entry = self.run.space.state(choices.state);
        let (mut requirements, side) = (entry.requirements.clone(), entry.side);
        requirements.add(
            Requirement::one_of(KeyId::CAPACITY_TYPE, [ValueId::SPOT]),
            &self.run.problem.vocabulary,
        );
        self.run.space.intern(requirements, side)
    }

    /// How many of the choices, from the first, it takes to meet `minValues`, whatever the policy.
    pub fn needed_for_min_values(&self, choices: &Choices) -> Result<usize, MinValuesUnmet> {
        let problem = self.run.problem;
        let types = choices.types.iter();
        let types = types.map(|priced| &*problem.index.types[priced.entry as usize]);
        let requirements = &self.run.space.state(choices.state).requirements;
        needed_for_min_values(types, requirements, &problem.vocabulary)
    }

    /// The names of the choices, in order.
    pub fn names<'c>(&'c self, choices: &'c Choices) -> impl Iterator<Item = &'c Text> {
        let types = &self.run.problem.index.types;
        choices.types.iter().map(|priced| &types[priced.entry as usize].name)
    }

    /// The node to be launched, with these choices only.
    pub fn claim(&mut self, choices: &Choices) -> PlannedClaim {
        let options = choices.types.iter().map(|priced| priced.entry).collect();
        finish::narrowed(self.run, choices.claim, choices.state, options)
    }
}

/// What a node to be launched may become, cheapest first.
#[derive(Debug, Clone)]
pub struct Choices {
    claim: usize,
    state: StateId,
    /// It may be spot capacity.
    pub admits_spot: bool,
    /// It may be on demand.
    pub admits_on_demand: bool,
    /// It must keep a number of different types, zones or the like open.
    pub has_min_values: bool,
    /// The types, at most 600.
    pub types: Vec<TypePrice>,
}

/// A type, and what it may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TypePrice {
    entry: u32,
    /// Some compatible offering is believed to be there, if only a reservation that is full.
    pub is_available: bool,
    /// The cheapest launch; none when nothing can be launched now.
    pub cheapest: Option<Price>,
    /// The dearest launch of the kind of capacity that would be tried first.
    pub worst: Option<Price>,
}

/// What every type may cost, by the offers that will do; worked out once.
#[derive(Debug, Default)]
struct Prices {
    known: FxHashMap<Box<[u64]>, Arc<[TypePrice]>>,
}

impl Prices {
    fn of(&mut self, index: &Index, classes: &[u64]) -> Arc<[TypePrice]> {
        if let Some(known) = self.known.get(classes) {
            return Arc::clone(known);
        }
        let order = price_order(index, classes);
        self.known.insert(classes.into(), Arc::clone(&order));
        order
    }
}

fn price_order(index: &Index, classes: &[u64]) -> Arc<[TypePrice]> {
    let kinds = [ValueId::RESERVED, ValueId::SPOT, ValueId::ON_DEMAND];
    let mut dearest: Vec<[Option<Price>; 3]> = vec![[None; 3]; index.types.len()];
    let mut available = vec![false; index.types.len()];
    for offer in index.offers.iter().filter(|offer| has(classes, offer.class as usize)) {
        available[offer.entry as usize] = true;
        let kind = kinds.iter().position(|kind| offer.capacity_type == Some(*kind));
        if let Some(kind) = kind.filter(|_| offer.is_launchable) {
            let most = &mut dearest[offer.entry as usize][kind];
            *most = (*most).max(Some(offer.price));
        }
    }
    let priced = |(entry, offer): (&u32, &Option<u32>)| TypePrice {
        entry: *entry,
        is_available: available[*entry as usize],
        cheapest: offer.map(|offer| index.offers[offer as usize].price),
        worst: dearest[*entry as usize].iter().find_map(|most| *most),
    };
    let order = index.by_price(classes);
    order.entries.iter().zip(&order.offers).map(priced).collect()
}
