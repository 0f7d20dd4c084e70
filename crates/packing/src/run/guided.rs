//! Placing pods by a proposal: bins that a cheaper pass thought of, filled through the same tests as everything else.

use model::{
    requirement::{Requirement, Requirements},
    vocabulary::{KeyId, ValueId},
};

use super::{Run, attempt::Candidate};
use crate::space::{StateId, Step};

/// A node somebody proposes to launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Guide {
    /// Position of the NodePool's template.
    pub(crate) template: usize,
    /// The zone it is meant for; none leaves it open.
    pub(crate) zone: Option<ValueId>,
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
        for &(guide, pod) in order {
            let is_placed = match claims[guide] {
                None => {
                    claims[guide] = self.open_guided(pod, &guides[guide]);
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

    fn open_guided(&mut self, pod: u32, guide: &Guide) -> Option<usize> {
        let candidate = self.candidate(pod)?;
        if !self.rules.is_fresh_host_fine {
            return None;
        }
        let start = self.zoned(self.template_states[guide.template], guide.zone)?;
        let opening = self.probe_template_from(candidate, guide.template, start).ok()?;
        self.open_claim(candidate, guide.template, opening);
        self.memo.placed += 1;
        Some(self.claims.len() - 1)
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
