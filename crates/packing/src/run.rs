//! One planning run, upstream's way: pods one by one, existing nodes first, then claims of the run, then new claims.
//!
//! Largest pods first; a pod that finds no place gives up preferences step by step, and if that does not help it goes to
//! the end of the queue with all of them restored, until a whole lap places nobody. Claims with the fewest pods are tried
//! first, equal ones in the order that upstream's sort leaves them. What upstream leaves to chance is decided here: equal
//! domains by name.

mod attempt;
mod commit;
mod device;
mod guided;
mod probe;
pub(crate) mod promised;
pub(crate) mod replay;
mod rollback;
mod sparing;

use std::collections::VecDeque;

use model::{object::ObjectKey, volume::Volumes};
use rustc_hash::FxHashMap;

pub(crate) use self::{attempt::Outcome, guided::Guide, probe::TemplateRefusal};
use crate::{
    bitmap::{Bitmap, words_for},
    claims::{ClaimId, Claims},
    intake::PodEntry,
    limits::Limits,
    problem::Problem,
    reserved::Reserved,
    rules::Rules,
    space::{SetId, Side, Space, StateId},
    tolerance::{Tolerance, TolerationsId},
    topology::{Scene, Topology},
    variant::{Ladders, Workshop},
};

/// What was done, counted: the same on every machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Work {
    /// Pods taken from the queue.
    pub pops: u64,
    /// Steps of ladders tried.
    pub attempts: u64,
    /// Nodes and claims tested in full.
    pub probes: u64,
    /// Words of candidates looked at.
    pub words: u64,
    /// Claims opened.
    pub opened: u64,
}

impl Work {
    /// What was done since then.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            pops: self.pops - before.pops,
            attempts: self.attempts - before.attempts,
            probes: self.probes - before.probes,
            words: self.words - before.words,
            opened: self.opened - before.opened,
        }
    }
}

/// The state of a run.
pub(crate) struct Run<'p> {
    pub(crate) problem: &'p Problem,
    pub(crate) scene: Scene<'p>,
    pub(crate) space: Space<'p>,
    pub(crate) topology: Topology,
    pub(crate) tolerance: Tolerance,
    pub(crate) ladders: Ladders,
    pub(crate) nodes: Nodes,
    pub(crate) claims: Claims,
    pub(crate) limits: Vec<Limits>,
    pub(crate) template_states: Vec<StateId>,
    pub(crate) reserved: Reserved,
    /// Nodes that take no pods in this simulation.
    pub(crate) gone: Bitmap,
    journal: rollback::Journal,
    devices: Option<device::Devices>,
    extras: Extras,
    memo: Memo,
    pub(crate) rules: Rules,
    decisions: Decisions,
    /// Rows that a probe left.
    survivors: Vec<u64>,
    /// Rows that a probe begins with.
    rows: Vec<u64>,
    /// Hosts in the order they got pods, one entry for each pod.
    pub(crate) order: Vec<u32>,
    pub(crate) work: Work,
}

/// Nodes there are, while pods are added to them.
#[derive(Debug)]
pub(crate) struct Nodes {
    pub(crate) states: Vec<StateId>,
    pub(crate) room: Vec<i64>,
    pub(crate) pods: Vec<Vec<u32>>,
    /// Host numbers of claims begin here, a multiple of 64 so that words of hosts and claims line up.
    pub(crate) first_claim_host: usize,
}

/// Ports and volumes that pods of this run brought.
#[derive(Debug, Default)]
struct Extras {
    node_ports: FxHashMap<usize, Vec<(ObjectKey, Vec<model::host_port::HostPort>)>>,
    node_volumes: FxHashMap<usize, model::volume::VolumeUsage<ObjectKey>>,
    claim_ports: FxHashMap<usize, Vec<(ObjectKey, Vec<model::host_port::HostPort>)>>,
    claim_volumes: FxHashMap<usize, Volumes>,
    /// Alternatives of a pod's volumes as sets, by position in the intake's extras.
    alternatives: FxHashMap<u32, Vec<probe::Alternative>>,
}

/// What was found out and stays true.
#[derive(Debug, Default)]
struct Memo {
    fits: FxHashMap<(u32, SetId, TolerationsId), u32>,
    /// Nodes that will never take a fit, by fit.
    nodes: Vec<Bitmap>,
    /// Claims that will never take a fit, by fit.
    claims: Vec<Bitmap>,
    /// Fits for which some claim was found out.
    found: Bitmap,
    /// When a class of pods last failed, in pods placed.
    failures: FxHashMap<(u32, u32, u32), (u64, Outcome)>,
    placed: u64,
}

impl Memo {
    /// A claim will never take a fit.
    #[inline]
    fn reject_claim(&mut self, fit: usize, claim: usize) {
        self.claims[fit].insert(claim);
        self.found.insert(fit);
    }

    /// The claims there were are gone.
    fn forget_claims(&mut self) {
        let mut from = 0;
        while let Some(fit) = self.found.next(from) {
            self.claims[fit].clear();
            from = fit + 1;
        }
        self.found.clear();
    }

    /// The number of a combination of request, requirements and tolerations.
    fn fit(&mut self, shape: u32, set: SetId, tolerations: TolerationsId) -> usize {
        let next = self.nodes.len() as u32;
        let id = *self.fits.entry((shape, set, tolerations)).or_insert(next);
        if id == next {
            self.nodes.push(Bitmap::default());
            self.claims.push(Bitmap::default());
        }
        id as usize
    }
}

/// What an attempt found out about states, by state.
#[derive(Debug, Default)]
struct Decisions {
    stamp: u32,
    seen: Vec<(u32, Decision)>,
    denied: Vec<StateId>,
}

/// Whether a pod may join nodes or claims of a state.
#[derive(Debug, Clone, Copy)]
enum Decision {
    /// Not now, or never.
    Denied { is_final: bool },
    /// `base` is the state with the pod's requirements, `target` with the topology's choice as well.
    To { base: StateId, target: StateId },
}

impl Decisions {
    fn begin(&mut self) {
        self.stamp += 1;
        self.denied.clear();
    }

    fn get(&self, state: StateId) -> Option<Decision> {
        let seen = self.seen.get(state as usize);
        seen.filter(|(stamp, _)| *stamp == self.stamp)
            .map(|(_, decision)| *decision)
    }

    fn set(&mut self, state: StateId, decision: Decision) {
        if self.seen.len() <= state as usize {
            self.seen
                .resize(state as usize + 1, (0, Decision::Denied { is_final: false }));
        }
        self.seen[state as usize] = (self.stamp, decision);
    }
}

impl<'p> Run<'p> {
    /// A run before its first pod.
    pub(crate) fn new(problem: &'p Problem) -> Self {
        let scene = problem.scene();
        let topology_keys = problem.intake.topology_keys.iter().copied();
        let mut space = Space::new(&problem.vocabulary, &problem.index, topology_keys);
        let (mut topology, mut tolerance) = (Topology::default(), problem.tolerance.clone());
        let node_states = problem
            .node_requirements
            .iter()
            .map(|requirements| space.intern(requirements.clone(), Side::Node))
            .collect();
        let template_states = (0..)
            .zip(&problem.templates)
            .map(|(at, entry)| space.intern(entry.template.requirements.clone(), Side::Claim(at)))
            .collect();
        let ladders = Ladders::new(&mut Workshop {
            problem,
            scene: &scene,
            space: &mut space,
            topology: &mut topology,
            tolerance: &mut tolerance,
        });
        let limits = problem
            .templates
            .iter()
            .map(|template| Limits::new(template, &problem.index))
            .collect();
        Self {
            problem,
            scene,
            space,
            topology,
            tolerance,
            ladders,
            nodes: Nodes {
                states: node_states,
                room: problem.node_room.clone(),
                pods: vec![Vec::new(); problem.nodes.len()],
                first_claim_host: words_for(problem.nodes.len()) * 64,
            },
            claims: Claims::new(problem.index.words, problem.lanes.len()),
            limits,
            template_states,
            reserved: Reserved::new(problem),
            gone: Bitmap::default(),
            journal: rollback::Journal::default(),
            devices: problem
                .devices
                .as_ref()
                .map(|devices| device::Devices::new(devices.allocator.clone())),
            extras: Extras::default(),
            memo: Memo::default(),
            rules: Rules::default(),
            decisions: Decisions::default(),
            survivors: vec![0; problem.index.words],
            rows: Vec::with_capacity(problem.index.words),
            order: Vec::new(),
            work: Work::default(),
        }
    }

    /// Places what can be placed; returns the pods left over, in the order of the queue.
    pub(crate) fn solve(&mut self) -> Vec<u32> {
        self.drain(self.problem.demand().collect())
    }

    /// Places what can be placed of a queue; returns the rest.
    pub(crate) fn drain(&mut self, mut queue: VecDeque<u32>) -> Vec<u32> {
        self.empty(&mut queue);
        queue.into()
    }

    /// Places what can be placed of a queue, and leaves the rest in it.
    pub(crate) fn empty(&mut self, queue: &mut VecDeque<u32>) {
        let mut lengths: FxHashMap<u32, usize> = FxHashMap::default();
        while let Some(&pod) = queue.front() {
            if lengths.get(&pod) == Some(&queue.len()) {
                break;
            }
            queue.pop_front();
            self.work.pops += 1;
            if self.place(pod) != Outcome::Placed {
                queue.push_back(pod);
                lengths.insert(pod, queue.len());
            }
            if self.is_exhausted() {
                break;
            }
        }
    }

    /// Places what existing nodes take, at the first step of each ladder; returns the rest in order.
    pub(crate) fn place_on_nodes(&mut self, queue: impl IntoIterator<Item = u32>) -> Vec<u32> {
        let is_left = |pod: &u32| !self.place_on_node(*pod);
        queue.into_iter().filter(is_left).collect()
    }

    /// Finds a pod a place, if there is one.
    pub(crate) fn place(&mut self, pod: u32) -> Outcome {
        let entry = self.problem.intake.pods[pod as usize];
        let class = (entry.combo, entry.shape, entry.extra);
        // Nothing was placed since pods like this one failed: it fails again.
        if let Some((at, outcome)) = self.memo.failures.get(&class)
            && *at == self.memo.placed
        {
            return *outcome;
        }
        let outcome = self.try_ladder(pod, entry);
        match outcome {
            Outcome::Placed => self.memo.placed += 1,
            _ => {
                self.memo.failures.insert(class, (self.memo.placed, outcome));
            }
        }
        outcome
    }

    fn try_ladder(&mut self, pod: u32, entry: PodEntry) -> Outcome {
        let mut step = 0;
        while self.climb(entry.combo, step) {
            match self.attempt(pod, entry, step) {
                Outcome::Refused => step += 1,
                outcome => return outcome,
            }
        }
        Outcome::Refused
    }

    /// Whether a combo has a step on its ladder.
    pub(crate) fn climb(&mut self, combo: u32, step: usize) -> bool {
        let mut shop = Workshop {
            problem: self.problem,
            scene: &self.scene,
            space: &mut self.space,
            topology: &mut self.topology,
            tolerance: &mut self.tolerance,
        };
        let groups = shop.topology.groups.len();
        let has_step = self.ladders.climb(combo as usize, step, &mut shop);
        self.uncount_moved(groups);
        has_step
    }

    /// The host number of a claim.
    pub(crate) fn claim_host(&self, claim: usize) -> usize {
        self.nodes.first_claim_host + claim
    }

    pub(crate) fn claim_id(claim: usize) -> ClaimId {
        claim as ClaimId
    }
}
