//! Could upstream's decisions have been ours? Its log, step by step; of the log, only the choice among equally empty
//! domains is taken. `docs/decisions/0008-decision-replay.md` says what must hold.

use std::collections::VecDeque;

use model::{
    object::ObjectKey,
    requirement::{Operator, RequirementSpec},
};

use super::{
    Run,
    attempt::{Candidate, Outcome},
};
use crate::{bitmap::has, intake::PLAIN, run::Decision, space::StateId};

/// The key that tells claims apart while a run lasts; states leave it out.
const HOSTNAME: &str = "kubernetes.io/hostname";

/// A first pod of an affinity may open two domains at once upstream, by chance; then nothing is counted.
const TWO_DOMAINS: &str = "upstream opened two domains at once";

/// What upstream did with a pod it took from its queue.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The pod.
    pub pod: ObjectKey,
    /// How often it was tried; each try but the last ended in giving up a preference.
    pub attempts: usize,
    /// Where it went.
    pub place: Place,
    /// The claim's requirements with the pod on it.
    pub requirements: Vec<RequirementSpec>,
    /// How many types the claim had left.
    pub types: usize,
}

/// Where a pod went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// To a node there is.
    Node(String),
    /// To a claim, by the order of opening.
    Claim(usize),
    /// To a new claim of a NodePool.
    New(String),
    /// Back to the queue.
    Nowhere,
}

/// Where our rules and upstream's decision part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disagreement {
    /// The position in the log.
    pub step: usize,
    /// The pod.
    pub pod: ObjectKey,
    /// What should not have been.
    pub what: String,
}

impl Run<'_> {
    /// Does what the log says as long as our rules allow it.
    pub(crate) fn replay(&mut self, steps: &[Step]) -> Result<(), Disagreement> {
        let mut queue: VecDeque<u32> = self.problem.order.iter().copied().collect();
        for (at, step) in steps.iter().enumerate() {
            let disagree = |what| Disagreement {
                step: at,
                pod: step.pod.clone(),
                what,
            };
            let pod = queue
                .pop_front()
                .ok_or_else(|| disagree("the queue is empty".to_owned()))?;
            let next = self.problem.pods[pod as usize].pod.metadata.key();
            if next != step.pod {
                return Err(disagree(format!("{next} is next in the queue")));
            }
            match self.follow(pod, step) {
                // From here on upstream's claim is one that we never make: the rest of the log cannot be followed.
                Err(what) if what == TWO_DOMAINS => return Ok(()),
                followed => followed.map_err(disagree)?,
            }
            if step.place == Place::Nowhere {
                queue.push_back(pod);
            }
        }
        Ok(())
    }

    /// Tries the pod step by step of its ladder until the log's place takes it. Steps that change nothing are left out of
    /// our ladders, so there may be fewer of them than upstream tried.
    fn follow(&mut self, pod: u32, step: &Step) -> Result<(), String> {
        let entry = self.problem.intake.pods[pod as usize];
        self.hint(&step.requirements);
        let mut outcome = Outcome::Refused;
        let mut rung = 0;
        while outcome == Outcome::Refused && rung < step.attempts && self.climb(entry.combo, rung) {
            let is_last = rung + 1 == step.attempts || !self.climb(entry.combo, rung + 1);
            outcome = self.guided_attempt(pod, rung, step, is_last)?;
            rung += 1;
        }
        match &step.place {
            // With several domains to choose from, upstream may have tried one whose reserved capacity others hold: it waits.
            Place::Nowhere
                if outcome == Outcome::Refused && self.rules.has_choice() && self.problem.index.has_reserved =>
            {
                Ok(())
            }
            Place::Nowhere if outcome == Outcome::Refused && self.climb(entry.combo, rung) => {
                Err(format!("there is another attempt after {rung}"))
            }
            Place::Nowhere => Ok(()),
            place if outcome != Outcome::Placed => Err(format!("{place:?} does not take it: {outcome:?}")),
            Place::Claim(claim) => self.check_claim(*claim, step),
            Place::New(_) => self.check_claim(self.claims.len() - 1, step),
            Place::Node(_) => Ok(()),
        }
    }

    /// Takes from the log which of several domains upstream chose.
    fn hint(&mut self, requirements: &[RequirementSpec]) {
        self.rules.hints.clear();
        for (at, topology_key) in self.space.keys.iter().enumerate() {
            let name = self.space.vocabulary.key_name(topology_key.key);
            let of_key = |spec: &&RequirementSpec| spec.key == name && spec.operator == Operator::In;
            let values = requirements.iter().find(of_key).map(|spec| spec.values.as_slice());
            for name in values.filter(|values| values.len() <= 2).into_iter().flatten() {
                let value = self.space.vocabulary.value(topology_key.key, name);
                let ordinal = value.and_then(|value| topology_key.ordinal(value));
                self.rules.hints.extend(ordinal.map(|ordinal| (at, ordinal)));
            }
        }
    }

    /// One attempt: the log's place takes the pod, or nobody does; anything else is an error.
    fn guided_attempt(&mut self, pod: u32, rung: usize, step: &Step, is_last: bool) -> Result<Outcome, String> {
        let entry = self.problem.intake.pods[pod as usize];
        if let Some(outcome) = self.hopeless(entry) {
            return Ok(outcome);
        }
        let variant = &self.ladders.all[entry.combo as usize].variants[rung];
        let fit = self.memo.fit(entry.shape, variant.set, variant.tolerations);
        let candidate = Candidate {
            pod,
            entry,
            step: rung,
            fit,
        };
        let hosts = self.nodes.states.len() + self.claims.len();
        self.decisions.begin();
        let variant = &self.ladders.all[entry.combo as usize].variants[rung];
        if !self.rules.evaluate(variant, &self.topology, hosts) {
            return Ok(Outcome::Refused);
        }
        if self.rules.is_used_host_fine {
            if self.try_nodes(candidate) {
                return self.is_on_node(pod, &step.place);
            }
            if self.guided_claim(candidate, step, is_last)? {
                return Ok(Outcome::Placed);
            }
        }
        if !self.rules.is_fresh_host_fine {
            return Ok(Outcome::Refused);
        }
        self.guided_template(candidate, step, is_last)
    }

    fn is_on_node(&self, pod: u32, place: &Place) -> Result<Outcome, String> {
        let holds = |node: &usize| self.nodes.pods[*node].last() == Some(&pod);
        let node = (0..self.nodes.pods.len())
            .find(holds)
            .map(|node| self.problem.node_name(node).to_string());
        match (place, node) {
            (Place::Node(theirs), Some(ours)) if *theirs == ours => Ok(Outcome::Placed),
            (_, node) => Err(format!("node {} takes it", node.unwrap_or_default())),
        }
    }

    /// Claims one by one in upstream's order, without what was remembered about them.
    fn guided_claim(&mut self, candidate: Candidate, step: &Step, is_last: bool) -> Result<bool, String> {
        for position in 0..self.claims.len() {
            let claim = self.claims.at(position);
            let is_theirs = step.place == Place::Claim(claim);
            match self.probe_any_claim(candidate, claim) {
                Some(target) if is_theirs && (is_last || self.is_not_by_chance(target, step)) => {
                    self.add_to_claim(candidate, claim, target);
                    return Ok(true);
                }
                // With several domains to choose from, upstream may have tried another one here.
                Some(_) if self.rules.has_choice() => {}
                Some(_) => return Err(format!("claim {claim} takes it")),
                None => {}
            }
        }
        Ok(false)
    }

    fn probe_any_claim(&mut self, candidate: Candidate, claim: usize) -> Option<StateId> {
        let host = self.claim_host(claim);
        if !has(&[self.open_hosts(host / 64)], host % 64) {
            return None;
        }
        if candidate.entry.extra != PLAIN {
            return self.probe_claim_with_extras(candidate, claim);
        }
        match self.decide(candidate, self.claims.states[claim]) {
            Decision::Denied { .. } => None,
            Decision::To { base, target } => self.probe_claim(candidate, claim, base, target).then_some(target),
        }
    }

    /// With several domains to choose from, upstream's choice may have failed at this step of the ladder; then its claim
    /// is what a later step made of it.
    fn is_not_by_chance(&self, target: StateId, step: &Step) -> bool {
        let ours = sorted(self.space.state(target).requirements.to_specs(self.space.vocabulary));
        let theirs = step.requirements.iter().filter(|spec| spec.key != HOSTNAME);
        !self.rules.has_choice() || ours == sorted(theirs.cloned().collect())
    }

    fn guided_template(&mut self, candidate: Candidate, step: &Step, is_last: bool) -> Result<Outcome, String> {
        for template in 0..self.problem.templates.len() {
            let pool = self.problem.templates[template].template.pool.metadata.name.to_string();
            let is_theirs = step.place == Place::New(pool.clone());
            match self.probe_template(candidate, template) {
                Ok(opening) if is_theirs && (is_last || self.is_not_by_chance(opening.target, step)) => {
                    self.open_claim(candidate, template, opening);
                    return Ok(Outcome::Placed);
                }
                Ok(_) if self.rules.has_choice() => {}
                Ok(_) => return Err(format!("a new claim of {pool} takes it")),
                // The domain that upstream tried may have had no reserved capacity, so that it went on to its next attempt.
                Err(refusal) if refusal.is_deferral() && (is_last || !self.rules.has_choice()) => {
                    return Ok(Outcome::Deferred);
                }
                Err(_) => {}
            }
        }
        Ok(Outcome::Refused)
    }

    /// Whether the claim is now what it is upstream.
    fn check_claim(&self, claim: usize, step: &Step) -> Result<(), String> {
        let state = self.space.state(self.claims.states[claim]);
        let ours = sorted(state.requirements.to_specs(self.space.vocabulary));
        let theirs = step.requirements.iter().filter(|spec| spec.key != HOSTNAME);
        let theirs = sorted(theirs.cloned().collect());
        if ours != theirs {
            let odd = |these: &[RequirementSpec], those: &[RequirementSpec]| -> Vec<RequirementSpec> {
                these.iter().filter(|spec| !those.contains(spec)).cloned().collect()
            };
            let (here, there) = (odd(&ours, &theirs), odd(&theirs, &ours));
            if let ([ours], [theirs]) = (&here[..], &there[..])
                && self.rules.has_choice()
                && (&ours.key, ours.values.len(), theirs.values.len()) == (&theirs.key, 1, 2)
            {
                return Err(TWO_DOMAINS.to_owned());
            }
            return Err(format!("claim {claim} requires {here:?}, upstream {there:?}"));
        }
        let types = self.problem.index.types_in(self.claims.rows(claim)).count();
        if types != step.types {
            return Err(format!("claim {claim} has {types} types, upstream {}", step.types));
        }
        Ok(())
    }
}

fn sorted(mut specs: Vec<RequirementSpec>) -> Vec<RequirementSpec> {
    for spec in &mut specs {
        spec.values.sort();
    }
    specs.sort();
    specs
}
