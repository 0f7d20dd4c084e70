//! Which nodes had better go together? Searched in memory, among sets of nodes.
//!
//! A set stands for the fleet without its nodes and with whatever their pods need instead, planned anew for every set: so
//! a node that the search itself thought of is given up again for nothing, no pod moves twice, and what is carried out
//! is the net difference. The search grows the set from several rankings by waste, as long as that gains anything.

use std::{cmp::Ordering, collections::BTreeSet};

use model::{
    object::{NodeName, Pod},
    price::Price,
};
use packing::{Simulator, Way, cost::Variant};

use super::Fleet;
use crate::{
    budget::Purse,
    candidate::Candidate,
    command::{Command, Saving},
    cost::Cost,
    guard::digest,
    trial::{self, Rules, Stage, Words},
    world::World,
};

/// How many nodes go together at most.
const MOST_TOGETHER: usize = 100;
/// How often the set is changed at most.
const MOST_ROUNDS: usize = 8;
/// Permille of what the candidates cost that must be wasted for a search to be worth its while.
const LEAST_WASTE: i128 = 50;
/// So many pods may be planned anew in a search; counted, so that it ends alike on every machine.
const MOST_PODS: u64 = 150_000;
/// A look costs at least as much as so many pods.
const LOOK: u64 = 20;

/// A search under way.
pub(super) struct Search<'w, 's> {
    world: &'w World<'w>,
    fleet: Fleet,
    rules: Rules,
    simulator: Simulator<'s>,
    moves: Box<dyn Fn(&Pod) -> bool + 'w>,
    candidates: &'w [Candidate],
    /// What each candidate costs beyond what its pods are worth.
    waste: Vec<i128>,
    purse: Purse,
    seen: BTreeSet<Vec<usize>>,
    work: u64,
}

/// Nodes by position, ascending, and what their going is worth.
#[derive(Debug, Clone, Default)]
struct Set {
    nodes: Vec<usize>,
    worth: i128,
}

impl<'w, 's> Search<'w, 's> {
    pub(super) fn new(world: &'w World<'w>, stage: &'s Stage, candidates: &'w [Candidate], purse: Purse) -> Self {
        let prepared = stage.consolidation(world);
        let worth = prepared.worth();
        let of = |candidate: &Candidate| worth.nodes.get(&candidate.node).copied().unwrap_or_default();
        let waste = |candidate: &Candidate| Saving::between(candidate.price, of(candidate)).0;
        Self {
            fleet: Fleet::of(world),
            rules: Rules::of(world),
            simulator: prepared.simulator(),
            moves: Box::new(trial::moves(world)),
            waste: candidates.iter().map(waste).collect(),
            candidates,
            purse,
            seen: BTreeSet::new(),
            work: 0,
            world,
        }
    }

    /// Pods that were planned anew.
    pub(super) fn work(&self) -> u64 {
        self.work
    }

    /// Whether more could have been looked at.
    pub(super) fn is_cut_short(&self) -> bool {
        self.work >= MOST_PODS || self.work >= self.world.options.work
    }

    /// The sets that are worth going, the best first.
    pub(super) fn sets(&mut self, rivals: &[Command]) -> Vec<Vec<Candidate>> {
        if !self.is_anything_wasted() {
            return Vec::new();
        }
        let mut steps: Vec<Set> = Vec::new();
        let mut current = Set::default();
        for rival in rivals {
            let start = self.positions(rival);
            if let Some(found) = self.look(start).filter(|found| found.worth > current.worth) {
                current = found;
            }
        }
        for _ in 0..MOST_ROUNDS {
            let Some(better) = self.better(&current) else { break };
            steps.push(std::mem::replace(&mut current, better));
        }
        steps.push(self.pruned(current));
        let worthwhile = steps.into_iter().rev().filter(|set| !set.nodes.is_empty());
        worthwhile.map(|set| self.of_positions(&set.nodes)).collect()
    }

    /// Whether so much is wasted that something may be gained.
    fn is_anything_wasted(&self) -> bool {
        let price: i128 = self.candidates.iter().map(|it| i128::from(it.price.picos())).sum();
        let waste: i128 = self.waste.iter().map(|waste| (*waste).max(0)).sum();
        waste.saturating_mul(1000) >= price.saturating_mul(LEAST_WASTE)
    }

    /// The best set with more nodes than this one, if it is better.
    fn better(&mut self, current: &Set) -> Option<Set> {
        let rest: Vec<usize> = (0..self.candidates.len())
            .filter(|at| current.nodes.binary_search(at).is_err())
            .collect();
        let mut best: Option<Set> = None;
        for ranking in self.rankings(&rest) {
            for length in lengths(ranking.len()) {
                let more = ranking.iter().take(length);
                let nodes = self.within_budgets(current.nodes.iter().chain(more));
                let least = best.as_ref().map_or(current.worth, |best| best.worth);
                if let Some(found) = self.look(nodes).filter(|found| found.worth > least) {
                    best = Some(found);
                }
            }
        }
        best
    }

    /// The set without nodes that need not go.
    fn pruned(&mut self, mut set: Set) -> Set {
        for node in set.nodes.clone() {
            let fewer = set.nodes.iter().copied().filter(|other| *other != node).collect();
            if let Some(found) = self.look(fewer).filter(|found| found.worth >= set.worth) {
                set = found;
            }
        }
        set
    }

    /// What a set is worth; none when it was looked at before, nothing may be looked at any more, or a pod would have no
    /// place.
    fn look(&mut self, nodes: Vec<usize>) -> Option<Set> {
        if nodes.is_empty() || self.is_cut_short() || !self.seen.insert(nodes.clone()) {
            return None;
        }
        let (mut names, mut removed, mut cost) = (Vec::new(), Price::ZERO, Cost::ZERO);
        for candidate in nodes.iter().filter_map(|at| self.candidates.get(*at)) {
            names.push(candidate.node.clone());
            removed = removed + candidate.price;
            cost = cost + candidate.reschedule_cost;
            self.work += candidate.reschedulable.len() as u64;
        }
        self.work += LOOK;
        let (rules, way) = (self.rules, QUICK);
        let after = self.simulator.ask_by(way, &names, &self.moves, |after| {
            trial::outcome(after, rules, Words::Unwanted).ok()?;
            Some(after.price())
        });
        let after = after.ok().flatten()?;
        let worth = self.fleet.worth(Saving::between(removed, after).0, cost);
        Some(Set { nodes, worth })
    }

    fn within_budgets<'n>(&self, nodes: impl Iterator<Item = &'n usize>) -> Vec<usize> {
        let mut purse = self.purse.clone();
        let may_go = |at: &&usize| {
            let candidate = self.candidates.get(**at);
            candidate.is_some_and(|candidate| purse.take(&candidate.node_pool))
        };
        let mut nodes: Vec<usize> = nodes.filter(may_go).take(MOST_TOGETHER).copied().collect();
        nodes.sort_unstable();
        nodes
    }

    fn positions(&self, command: &Command) -> Vec<usize> {
        let names: BTreeSet<&NodeName> = command.nodes().collect();
        let numbered = self.candidates.iter().enumerate();
        let named = numbered.filter(|(_, candidate)| names.contains(&candidate.node));
        named.map(|(at, _)| at).collect()
    }

    fn of_positions(&self, nodes: &[usize]) -> Vec<Candidate> {
        let candidates = nodes.iter().filter_map(|at| self.candidates.get(*at));
        candidates.cloned().collect()
    }

    /// By waste, by waste for what is disturbed, by the share of the price that is waste, and twice by waste that lots
    /// were drawn about: the same lots each time, or two rounds would not agree.
    fn rankings(&self, rest: &[usize]) -> Vec<Vec<usize>> {
        let candidate = |at: usize| self.candidates.get(at);
        let waste = |at: usize| self.waste.get(at).copied().unwrap_or(0);
        let cost = |at: usize| candidate(at).map_or(1, |it| i128::from(it.reschedule_cost.units()).max(1));
        let price = |at: usize| candidate(at).map_or(1, |it| i128::from(it.price.picos()).max(1));
        let drawn = |salt: u8| {
            move |at: usize| {
                let name = candidate(at).map(|it| it.node.as_str()).unwrap_or_default();
                let lot = digest(name.bytes().chain([salt])) >> 32 & 1023;
                waste(at).saturating_mul(i128::from(lot) + 512)
            }
        };
        let (first, second) = (drawn(1), drawn(2));
        let by = |of: &dyn Fn(usize) -> (i128, i128)| {
            let mut ranking = rest.to_vec();
            ranking.sort_by(|a, b| fraction(of(*b), of(*a)).then(a.cmp(b)));
            ranking
        };
        vec![
            by(&|at| (waste(at), 1)),
            by(&|at| (waste(at), cost(at))),
            by(&|at| (waste(at), price(at))),
            by(&|at| (first(at), 1)),
            by(&|at| (second(at), 1)),
        ]
    }
}

/// How sets are looked at.
const QUICK: Way = Way::Cheap {
    variant: Variant::Mixed,
    passes: 1,
};

/// Which of two fractions is larger.
fn fraction(a: (i128, i128), b: (i128, i128)) -> Ordering {
    a.0.saturating_mul(b.1).cmp(&b.0.saturating_mul(a.1))
}

/// One by one up to six, then by a quarter more each time.
fn lengths(most: usize) -> Vec<usize> {
    let most = most.min(MOST_TOGETHER);
    let mut lengths = Vec::new();
    let mut length = 1;
    while length < most {
        lengths.push(length);
        length += if length < 6 { 1 } else { (length / 4).max(1) };
    }
    lengths.push(most);
    lengths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_grow_one_by_one_and_then_by_quarters() {
        assert_eq!(lengths(14), [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14]);
        assert_eq!(lengths(1), [1]);
        assert_eq!(lengths(1000).last(), Some(&MOST_TOGETHER));
    }
}
