//! Placing pods by a proposal: bins that a cheaper pass thought of, filled through the same tests as everything else.

use model::{
    requirement::{Requirement, Requirements},
    resources::ResourceName,
    vocabulary::{KeyId, ValueId},
};

use super::{Run, attempt::Candidate};
use crate::{
    cost::{Amounts, WIDTH},
    space::{StateId, Step},
};

/// A node somebody proposes to launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Guide {
    /// Position of the NodePool's template.
    pub(crate) template: usize,
    /// The zone it is meant for; none leaves it open.
    pub(crate) zone: Option<ValueId>,
    /// What the machine it is meant for takes of the NodePool's limits, by lane.
    pub(crate) capacity: Amounts,
}

/// What the nodes that are still to be opened will take of the limits of each template, for a claim counts as the largest
/// machine it may become: the first ones must not take all there is only to have more types to choose from.
struct Dues {
    templates: Vec<Due>,
    /// Whether a node still counts there.
    is_held: Vec<bool>,
}

/// What is due to nodes of one template, and how many they are.
#[derive(Debug, Clone, Copy, Default)]
struct Due {
    nodes: i64,
    capacity: Amounts,
}

impl Dues {
    fn new(guides: &[Guide], templates: usize) -> Self {
        let mut dues = Self {
            templates: vec![Due::default(); templates],
            is_held: vec![true; guides.len()],
        };
        for guide in guides {
            let due = &mut dues.templates[guide.template];
            due.nodes += 1;
            due.capacity.add(&guide.capacity, 1);
        }
        dues
    }

    /// Takes a node off, for it is being opened; what was due to its template with it.
    fn release(&mut self, at: usize, guide: &Guide) -> Due {
        let due = &mut self.templates[guide.template];
        if !std::mem::replace(&mut self.is_held[at], false) {
            due.nodes += 1;
            due.capacity.add(&guide.capacity, 1);
        }
        let before = *due;
        due.nodes -= 1;
        due.capacity.take(&guide.capacity, 1);
        before
    }
}

impl Run<'_> {
    /// Fills the proposed nodes as far as the rules allow; what finds no place that way stays to be placed.
    ///
    /// Every pod passes the tests it would pass in [`Run::solve`], so whatever was proposed, the result is valid.
    /// Pods come in the order given, each with the position of its guide: pods to be spread evenly must come in turns,
    /// whichever node they are for.
    pub(crate) fn fill(&mut self, guides: &[Guide], order: &[(usize, u32)]) -> Vec<u32> {
        let mut left = Vec::new();
        let mut claims: Vec<Option<usize>> = vec![None; guides.len()];
        let mut dues = Dues::new(guides, self.template_states.len());
        for &(guide, pod) in order {
            let is_placed = match claims[guide] {
                None => {
                    let due = dues.release(guide, &guides[guide]);
                    claims[guide] = self.open_guided(pod, &guides[guide], &due);
                    claims[guide].is_some()
                }
                Some(claim) => self.add_guided(pod, claim),
            };
            if !is_placed {
                left.push(pod);
            }
        }
        left
    }

    /// The pod at the first step of its ladder, if the counts of the moment leave it any host.
    fn candidate(&mut self, pod: u32) -> Option<Candidate> {
        let entry = self.problem.intake.pods[pod as usize];
        if self.hopeless(entry).is_some() {
            return None;
        }
        let variant = &self.ladders.all[entry.combo as usize].variants[0];
        let fit = self.memo.fit(entry.shape, variant.set, variant.tolerations);
        let hosts = self.nodes.states.len() + self.claims.len();
        self.decisions.begin();
        self.work.attempts += 1;
        let is_open = self.rules.evaluate(variant, &self.topology, hosts);
        is_open.then_some(Candidate {
            pod,
            entry,
            step: 0,
            fit,
        })
    }

    /// Places a pod on one existing node, if that takes it as it is.
    pub(super) fn place_on_that_node(&mut self, pod: u32, node: usize) -> bool {
        let Some(candidate) = self.candidate(pod).filter(|_| self.rules.is_used_host_fine) else {
            return false;
        };
        let (at, bit) = (node / 64, node % 64);
        let closed = self.memo.nodes[candidate.fit].word(at) | self.gone.word(at) | !self.open_hosts(at);
        let is_placed = closed >> bit & 1 == 0 && self.try_node(candidate, node);
        self.memo.placed += u64::from(is_placed);
        is_placed
    }

    /// Places a pod on an existing node, if one takes it as it is.
    pub(super) fn place_on_node(&mut self, pod: u32) -> bool {
        if self.nodes.states.is_empty() {
            return false;
        }
        let is_placed = match self.candidate(pod) {
            Some(candidate) => self.rules.is_used_host_fine && self.try_nodes(candidate),
            None => false,
        };
        self.memo.placed += u64::from(is_placed);
        is_placed
    }

    fn open_guided(&mut self, pod: u32, guide: &Guide, due: &Due) -> Option<usize> {
        let candidate = self.candidate(pod)?;
        if !self.rules.is_fresh_host_fine {
            return None;
        }
        let start = self.zoned(self.template_states[guide.template], guide.zone)?;
        let share = self.share(guide, due);
        let opening = match self.probe_template_within(candidate, guide.template, start, &share) {
            Ok(opening) => opening,
            Err(_) if share.is_empty() => return None,
            Err(_) => self.probe_template_from(candidate, guide.template, start).ok()?,
        };
        self.open_claim(candidate, guide.template, opening);
        self.memo.placed += 1;
        Some(self.claims.len() - 1)
    }

    /// How large a machine may be that leaves the nodes still to be opened theirs: its own size and its share of what is
    /// over. Empty where nothing is limited, or the proposal is past the limits anyway.
    fn share(&self, guide: &Guide, due: &Due) -> Vec<(ResourceName, i64)> {
        let Some(remaining) = self.limits[guide.template].remaining() else {
            return Vec::new();
        };
        let names = self.problem.lanes.names();
        let share = |(name, left): &(ResourceName, i64)| {
            let lane = names
                .iter()
                .position(|lane| lane == name)
                .filter(|lane| *lane < WIDTH)?;
            let over = left.saturating_sub(due.capacity.0[lane]);
            (over >= 0).then(|| {
                let share = guide.capacity.0[lane].saturating_add(over / due.nodes.max(1));
                (name.clone(), share)
            })
        };
        remaining.iter().filter_map(share).collect()
    }

    fn add_guided(&mut self, pod: u32, claim: usize) -> bool {
        let Some(candidate) = self.candidate(pod) else {
            return false;
        };
        let (at, bit) = (self.claim_host(claim) / 64, self.claim_host(claim) % 64);
        if self.open_hosts(at) >> bit & 1 == 0 {
            return false;
        }
        match self.probe_claim_with_extras(candidate, claim) {
            Some(target) => {
                self.add_to_claim(candidate, claim, target);
                self.memo.placed += 1;
                true
            }
            None => false,
        }
    }

    /// A template's state tied to a zone.
    fn zoned(&mut self, state: StateId, zone: Option<ValueId>) -> Option<StateId> {
        let Some(zone) = zone else { return Some(state) };
        let mut requirements = Requirements::default();
        requirements.replace(Requirement::one_of(KeyId::ZONE, [zone]));
        let set = self.space.set(requirements);
        match self.space.join(state, set) {
            Step::To(state) => Some(state),
            Step::Conflict | Step::Undefined => None,
        }
    }
}
