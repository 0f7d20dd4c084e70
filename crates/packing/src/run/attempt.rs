//! One try to place a pod, at one step of its ladder.

use super::{Decision, Run};
use crate::{
    bitmap::intersects,
    intake::{PLAIN, PodEntry},
    space::{Side, State, StateId, Step},
    variant::Variant,
};

/// What came of trying to place a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It has a place.
    Placed,
    /// It has none at this step of its ladder.
    Refused,
    /// It waits for reserved capacity; giving up preferences would not be right.
    Deferred,
    /// It asks for devices, which are not looked at.
    DevicesIgnored,
}

/// A pod and what it asks for in this attempt.
#[derive(Clone, Copy)]
pub(super) struct Candidate {
    pub(super) pod: u32,
    pub(super) entry: PodEntry,
    pub(super) step: usize,
    pub(super) fit: usize,
}

impl Run<'_> {
    /// Tries existing nodes, then claims of this run, then new claims.
    pub(super) fn attempt(&mut self, pod: u32, entry: PodEntry, step: usize) -> Outcome {
        self.work.attempts += 1;
        if let Some(outcome) = self.hopeless(entry) {
            return outcome;
        }
        let variant = &self.ladders.all[entry.combo as usize].variants[step];
        let fit = self.memo.fit(entry.shape, variant.set, variant.tolerations);
        let candidate = Candidate { pod, entry, step, fit };
        let hosts = self.nodes.states.len() + self.claims.len();
        self.decisions.begin();
        if !self.rules.evaluate(variant, &self.topology, hosts) {
            return Outcome::Refused;
        }
        if self.rules.is_used_host_fine && (self.try_nodes(candidate) || self.try_claims(candidate)) {
            return Outcome::Placed;
        }
        if !self.rules.is_fresh_host_fine {
            return Outcome::Refused;
        }
        self.try_templates(candidate)
    }

    /// What no node can change.
    pub(super) fn hopeless(&self, entry: PodEntry) -> Option<Outcome> {
        if entry.extra == PLAIN {
            return None;
        }
        let extra = &self.problem.intake.extras[entry.extra as usize];
        if extra.has_devices && self.problem.snapshot.settings().ignore_dra_requests {
            return Some(Outcome::DevicesIgnored);
        }
        let claims = self
            .problem
            .devices
            .as_ref()
            .and_then(|devices| devices.claims.get(entry.extra as usize));
        if claims.is_some_and(Result::is_err) {
            return Some(Outcome::Refused);
        }
        let has_no_attachments = extra
            .volumes
            .as_ref()
            .is_some_and(|volumes| volumes.attachments.is_err());
        has_no_attachments.then_some(Outcome::Refused)
    }

    pub(super) fn variant(&self, candidate: Candidate) -> &Variant {
        &self.ladders.all[candidate.entry.combo as usize].variants[candidate.step]
    }

    pub(super) fn try_nodes(&mut self, candidate: Candidate) -> bool {
        if self.problem.is_too_large.get(candidate.entry.shape as usize) == Some(&true) {
            return false;
        }
        let nodes = self.nodes.states.len();
        for at in 0..nodes.div_ceil(64) {
            let all = if (at + 1) * 64 <= nodes {
                u64::MAX
            } else {
                (1 << (nodes % 64)) - 1
            };
            self.work.words += 1;
            let closed = self.memo.nodes[candidate.fit].word(at) | self.gone.word(at);
            let mut open = all & !closed & self.open_hosts(at);
            while open != 0 {
                let node = at * 64 + open.trailing_zeros() as usize;
                open &= open - 1;
                if self.try_node(candidate, node) {
                    return true;
                }
            }
        }
        false
    }

    /// The hosts of a word that the rules leave open.
    #[inline]
    pub(super) fn open_hosts(&self, at: usize) -> u64 {
        let mut open = u64::MAX;
        for rule in &self.rules.hosts {
            open &= self.topology.open_hosts(*rule, at);
        }
        open
    }

    fn try_claims(&mut self, candidate: Candidate) -> bool {
        match self.find_claim(candidate) {
            Some((claim, target)) => {
                self.add_to_claim(candidate, claim, target);
                true
            }
            None => false,
        }
    }

    fn find_claim(&mut self, candidate: Candidate) -> Option<(usize, StateId)> {
        let mut from = 0;
        while let Some(count) = self.claims.next_count(from) {
            if self.has_open_claim(candidate, count) {
                let mut positions = self.claims.positions(count);
                let found = positions.find_map(|position| self.try_position(candidate, position));
                if found.is_some() {
                    return found;
                }
            }
            from = count + 1;
        }
        None
    }

    /// Whether a claim with so many pods may take the pod, as far as is remembered.
    fn has_open_claim(&mut self, candidate: Candidate, count: usize) -> bool {
        let first_word = self.nodes.first_claim_host / 64;
        let mut from = 0;
        while let Some((at, word)) = self.claims.next_word(count, from) {
            self.work.words += 1;
            let mut open = word & !self.memo.claims[candidate.fit].word(at) & self.open_hosts(first_word + at);
            for state in &self.decisions.denied {
                open &= !self.claims.in_state(*state, at);
            }
            if open != 0 {
                return true;
            }
            from = at + 1;
        }
        false
    }

    fn try_position(&mut self, candidate: Candidate, position: usize) -> Option<(usize, StateId)> {
        let claim = self.claims.at(position);
        let host = self.claim_host(claim);
        let closed = self.memo.claims[candidate.fit].word(claim / 64) | !self.open_hosts(host / 64);
        if closed >> (claim % 64) & 1 == 1 {
            return None;
        }
        if candidate.entry.extra != PLAIN {
            let target = self.probe_claim_with_extras(candidate, claim)?;
            return Some((claim, target));
        }
        let state = self.claims.states[claim];
        match self.decide(candidate, state) {
            Decision::Denied { is_final } => {
                if is_final {
                    self.memo.reject_claim(candidate.fit, claim);
                }
                // Every other claim of this state is out as well.
                if !self.decisions.denied.contains(&state) {
                    self.decisions.denied.push(state);
                }
                None
            }
            Decision::To { base, target } => {
                let is_taken = self.probe_claim(candidate, claim, base, target);
                is_taken.then_some((claim, target))
            }
        }
    }

    /// Whether a pod may join nodes or claims of a state, as far as labels and topology go; pods with alternatives of
    /// volumes ask for each of them.
    pub(super) fn decide(&mut self, candidate: Candidate, state: StateId) -> Decision {
        if let Some(decision) = self.decisions.get(state) {
            return decision;
        }
        let variant = &self.ladders.all[candidate.entry.combo as usize].variants[candidate.step];
        let decision = match self.joined(variant.set, variant.tolerations, state) {
            Err(is_final) => Decision::Denied { is_final },
            Ok(base) => match self.narrow(base) {
                Some(target) => Decision::To { base, target },
                None => Decision::Denied { is_final: false },
            },
        };
        self.decisions.set(state, decision);
        decision
    }

    /// The state once the topology picked its domains.
    pub(crate) fn narrow(&mut self, base: StateId) -> Option<StateId> {
        let templates = &self.problem.templates;
        let is_usable = |state: &State| match state.side {
            Side::Node => true,
            Side::Claim(template) => intersects(&state.rows, &templates[template as usize].rows),
        };
        self.rules.narrow(base, &self.topology, &mut self.space, is_usable)
    }

    /// The state with the pod's requirements; an error says whether it is for ever.
    fn joined(&mut self, set: u32, tolerations: u32, state: StateId) -> Result<StateId, bool> {
        if let Side::Claim(template) = self.space.state(state).side {
            let taints = self.problem.templates[template as usize].taints;
            if !self.tolerance.tolerates(tolerations, taints) {
                return Err(true);
            }
        }
        match self.space.join(state, set) {
            Step::To(base) => Ok(base),
            Step::Conflict => Err(true),
            Step::Undefined => Err(false),
        }
    }

    fn try_templates(&mut self, candidate: Candidate) -> Outcome {
        for template in 0..self.problem.templates.len() {
            match self.probe_template(candidate, template) {
                Ok(opening) => {
                    self.open_claim(candidate, template, opening);
                    return Outcome::Placed;
                }
                // A pod that waits for reserved capacity of one pool does not take a lighter pool instead.
                Err(refusal) if refusal.is_deferral() => return Outcome::Deferred,
                Err(_) => {}
            }
        }
        Outcome::Refused
    }
}
