//! Nodes that cost more than they are worth: several into one or none, one into one or none.

use std::collections::BTreeMap;

use jiff::Timestamp;
use model::object::{InstanceTypeName, NodeName};
use packing::{Prepared, Simulator};

use crate::{
    balanced::Totals,
    candidate::Candidate,
    command::{Command, PoolScore, Saving},
    eligible::{by_savings, interleaved},
    guard,
    method::Method,
    refusal::Rule,
    round::Draft,
    trial::{self, Move, Removed, Rules, SameTypePrices, Stage, Words},
    world::World,
};

/// The highest index of a prefix that is tried; so a prefix has one node more.
const MOST_TOGETHER: usize = 100;
/// So many candidates are looked at before the first that will do is taken.
const BATCH: usize = 256;

/// The most nodes that can be deleted together, or replaced by one that is cheaper.
pub(crate) fn multi(
    world: &World<'_>,
    stage: &Stage,
    totals: &Totals,
    draft: &mut Draft,
    mut candidates: Vec<Candidate>,
) {
    by_savings(&mut candidates);
    let mut purse = draft.purse();
    let offered = candidates.len();
    candidates.retain(|candidate| purse.take(&candidate.node_pool));
    let is_constrained = candidates.len() < offered;
    match longest_prefix(world, stage, totals, draft, &candidates) {
        Some(command) => draft.commands.push(command),
        None => draft.settle(world, is_constrained),
    }
}

/// Upstream takes it that what can be done with many can be done with fewer, and searches by halves.
fn longest_prefix(
    world: &World<'_>,
    stage: &Stage,
    totals: &Totals,
    draft: &mut Draft,
    candidates: &[Candidate],
) -> Option<Command> {
    if candidates.len() < 2 {
        return None;
    }
    let prepared = stage.consolidation(world);
    if prepared.has_no_pools() {
        return None;
    }
    let mut simulator = prepared.simulator();
    let (mut low, mut high) = (1, MOST_TOGETHER.min(candidates.len() - 1));
    let mut best = None;
    while low <= high {
        let middle = usize::midpoint(low, high);
        let prefix = candidates.get(..=middle)?;
        draft.work += prefix
            .iter()
            .map(|candidate| candidate.reschedulable.len() as u64)
            .sum::<u64>();
        match together(world, &mut simulator, totals, prefix) {
            Ok(command) => {
                best = Some(command);
                low = middle + 1;
            }
            Err(_) => high = middle - 1,
        }
    }
    best
}

/// What can be done with exactly these nodes.
pub(crate) fn exactly(
    world: &World<'_>,
    stage: &Stage,
    totals: &Totals,
    mut candidates: Vec<Candidate>,
) -> Result<Command, Rule> {
    by_savings(&mut candidates);
    let prepared = stage.consolidation(world);
    if prepared.has_no_pools() {
        return Err(Rule::NoNodePools);
    }
    let [only] = candidates.as_slice() else {
        return together(world, &mut prepared.simulator(), totals, &candidates);
    };
    let mut command = Crew::new(world, prepared).command(world, only)?;
    command.scores = approved(totals, std::iter::once(only), command.saving).map_err(Rule::Balanced)?;
    Ok(command)
}

/// What can be done with these nodes at once.
fn together(
    world: &World<'_>,
    simulator: &mut Simulator<'_>,
    totals: &Totals,
    candidates: &[Candidate],
) -> Result<Command, Rule> {
    let (rules, removed, same) = (
        Rules::of(world),
        Removed::of(candidates),
        same_type_prices(world, candidates),
    );
    let asked = simulator.ask(&trial::names(candidates), trial::moves(world), |after| {
        let mut found = trial::consolidation(after, removed, rules, Words::Unwanted)?;
        if let Move::Replace(choices) = &mut found {
            trial::without_same_type(after, choices, &same)?;
        }
        let saving = Saving::between(removed.price, found.price());
        let scores = approved(totals, candidates.iter(), saving).map_err(Rule::Balanced)?;
        let mut command = trial::command(after, Method::MultiNodeConsolidation, candidates.to_vec(), &found);
        command.scores = scores;
        match guard::check(world, &command) {
            Some(rule) => Err(rule),
            None => Ok(command),
        }
    });
    asked.map_err(|_| Rule::Leaving)?
}

/// The scores of a move, or those by which it is not worth it.
fn approved<'c>(
    totals: &Totals,
    candidates: impl Iterator<Item = &'c Candidate>,
    saving: Saving,
) -> Result<Vec<PoolScore>, Vec<PoolScore>> {
    let candidates: Vec<&Candidate> = candidates.collect();
    let scores = totals.scores(&candidates, saving);
    if scores.iter().all(|score| score.is_approved) {
        Ok(scores)
    } else {
        Err(scores)
    }
}

/// For each type among the nodes, the lowest price at which one like any of them could have been had.
fn same_type_prices(world: &World<'_>, candidates: &[Candidate]) -> SameTypePrices {
    let labels: BTreeMap<&NodeName, _> = world
        .machines
        .iter()
        .map(|machine| (&machine.name, &machine.labels))
        .collect();
    let mut prices: BTreeMap<InstanceTypeName, Option<model::price::Price>> = BTreeMap::new();
    for candidate in candidates {
        let it = world.instance_type(&candidate.node_pool, candidate.instance_type.as_str());
        let price = it
            .zip(labels.get(&candidate.node))
            .and_then(|(it, labels)| world.cheapest_like(it, labels));
        let known = prices.entry(candidate.instance_type.clone()).or_default();
        *known = match (*known, price) {
            (Some(known), Some(price)) => Some(known.min(price)),
            (known, price) => known.or(price),
        };
    }
    prices
        .into_iter()
        .map(|(name, price)| (name, price.unwrap_or_default()))
        .collect()
}

/// What one node's going would come to.
struct Verdict {
    saving: Saving,
}

/// The first node that can be deleted, or replaced by one that is cheaper.
pub(crate) fn single(
    world: &World<'_>,
    stage: &Stage,
    totals: &Totals,
    draft: &mut Draft,
    mut candidates: Vec<Candidate>,
) {
    by_savings(&mut candidates);
    let candidates = rotated(world, interleaved(candidates));
    let (mut open, mut is_constrained) = (Vec::new(), false);
    for candidate in candidates {
        if draft.purse().left(&candidate.node_pool) == 0 {
            is_constrained = true;
            draft.refuse_budget(world, &candidate);
        } else if !totals.may_pass(&candidate) {
            let saving = Saving::between(candidate.price, model::price::Price::ZERO);
            draft.refuse(world, &candidate, Rule::Balanced(totals.scores(&[&candidate], saving)));
        } else {
            open.push(candidate);
        }
    }
    let prepared = stage.consolidation(world);
    if prepared.has_no_pools() {
        for candidate in &open {
            draft.refuse(world, candidate, Rule::NoNodePools);
        }
        return;
    }
    let affordable = affordable(world, prepared, draft, &open);
    let mut crew = Crew::new(world, prepared);
    for batch in open.get(..affordable).unwrap_or_default().chunks(BATCH) {
        let verdicts = crew.verdicts(world, batch);
        draft.evaluated += batch.len();
        if let Some(command) = first(world, totals, draft, &mut crew, batch, verdicts) {
            draft.commands.push(command);
            return;
        }
    }
    let waiting = open.get(affordable..).unwrap_or_default();
    draft.wait(world, waiting);
    if waiting.is_empty() {
        draft.settle(world, is_constrained);
    }
}

/// Those that earlier rounds did not get to come first.
fn rotated(world: &World<'_>, candidates: Vec<Candidate>) -> Vec<Candidate> {
    let waiting: BTreeMap<&NodeName, Timestamp> = world
        .facts
        .rotation
        .waiting
        .iter()
        .map(|(node, since)| (node, *since))
        .collect();
    let (first, then): (Vec<_>, Vec<_>) = candidates
        .into_iter()
        .partition(|candidate| waiting.contains_key(&candidate.node));
    first.into_iter().chain(then).collect()
}

/// How many of the candidates the work budget covers; at least one, so that every round gets on.
fn affordable(world: &World<'_>, prepared: &Prepared, draft: &mut Draft, candidates: &[Candidate]) -> usize {
    let each = prepared.waiting_pods() as u64 + 1;
    let mut count = 0;
    for candidate in candidates {
        draft.work += each + candidate.reschedulable.len() as u64;
        if count > 0 && draft.work > world.options.work {
            break;
        }
        count += 1;
    }
    count
}

/// Of a batch, the first that will do; what stopped those before it is written down.
fn first(
    world: &World<'_>,
    totals: &Totals,
    draft: &mut Draft,
    crew: &mut Crew<'_>,
    batch: &[Candidate],
    verdicts: Vec<Result<Verdict, Rule>>,
) -> Option<Command> {
    let mut taken = None;
    for (candidate, verdict) in batch.iter().zip(verdicts) {
        let stopped = match verdict {
            Err(rule) => Some(rule),
            Ok(verdict) => match approved(totals, std::iter::once(candidate), verdict.saving) {
                Err(scores) => Some(Rule::Balanced(scores)),
                Ok(_) if taken.is_some() => Some(Rule::Later),
                Ok(scores) => match crew.command(world, candidate) {
                    Err(rule) => Some(rule),
                    Ok(mut command) => {
                        command.scores = scores;
                        taken = Some(command);
                        None
                    }
                },
            },
        };
        if let Some(rule) = stopped {
            draft.refuse(world, candidate, rule);
        }
    }
    taken
}

/// Simulators, one for each thread.
struct Crew<'p> {
    simulators: Vec<Simulator<'p>>,
    rules: Rules,
}

impl<'p> Crew<'p> {
    fn new(world: &World<'_>, prepared: &'p Prepared) -> Self {
        let count = world.options.threads.max(1);
        Self {
            simulators: (0..count).map(|_| prepared.simulator()).collect(),
            rules: Rules::of(world),
        }
    }

    /// What each candidate's going would come to. Which simulator is asked makes no difference: each takes back what it did.
    fn verdicts(&mut self, world: &World<'_>, batch: &[Candidate]) -> Vec<Result<Verdict, Rule>> {
        let (count, rules, moves) = (self.simulators.len(), self.rules, trial::moves(world));
        let moves = &moves;
        let share = move |simulator: &mut Simulator<'_>, at: usize| -> Vec<Result<Verdict, Rule>> {
            let mine = batch.iter().skip(at).step_by(count);
            mine.map(|candidate| verdict(simulator, candidate, rules, moves))
                .collect()
        };
        let shares: Vec<Vec<Result<Verdict, Rule>>> = match self.simulators.as_mut_slice() {
            [only] => vec![share(only, 0)],
            many => std::thread::scope(|scope| {
                let share = &share;
                let workers: Vec<_> = many
                    .iter_mut()
                    .enumerate()
                    .map(|(at, simulator)| scope.spawn(move || share(simulator, at)))
                    .collect();
                let joined = workers.into_iter().map(std::thread::ScopedJoinHandle::join);
                joined
                    .map(|share| share.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                    .collect()
            }),
        };
        let mut shares: Vec<_> = shares.into_iter().map(Vec::into_iter).collect();
        (0..batch.len())
            .filter_map(|at| shares.get_mut(at % count).and_then(Iterator::next))
            .collect()
    }

    /// The command for a candidate whose verdict was good.
    fn command(&mut self, world: &World<'_>, candidate: &Candidate) -> Result<Command, Rule> {
        let Some(simulator) = self.simulators.first_mut() else {
            return Err(Rule::Later);
        };
        let (rules, removed) = (self.rules, Removed::of([candidate]));
        let alone = std::slice::from_ref(&candidate.node);
        let command = simulator.ask(alone, trial::moves(world), |after| {
            let found = trial::consolidation(after, removed, rules, Words::Wanted)?;
            Ok(trial::command(
                after,
                Method::SingleNodeConsolidation,
                vec![candidate.clone()],
                &found,
            ))
        });
        let command: Command = command.map_err(|_| Rule::Leaving)??;
        match guard::check(world, &command) {
            Some(rule) => Err(rule),
            None => Ok(command),
        }
    }
}

fn verdict(
    simulator: &mut Simulator<'_>,
    candidate: &Candidate,
    rules: Rules,
    moves: &(impl Fn(&model::object::Pod) -> bool + Sync),
) -> Result<Verdict, Rule> {
    let (alone, removed) = (std::slice::from_ref(&candidate.node), Removed::of([candidate]));
    let asked = simulator.ask(alone, moves, |after| {
        trial::consolidation(after, removed, rules, Words::Wanted)
    });
    // A node that goes already is no place to ask about.
    let found = asked.map_err(|_| Rule::Leaving)??;
    Ok(Verdict {
        saving: Saving::between(candidate.price, found.price()),
    })
}
