//! One round: the methods in order, until one finds something.

use std::collections::{BTreeMap, BTreeSet};

use api::labels::{CAPACITY_TYPE, INSTANCE_TYPE, ZONE};
use jiff::Timestamp;
use model::{
    object::{NodeName, NodePoolName},
    price::Price,
    snapshot::Snapshot,
};

use crate::{
    balanced::Totals,
    budget::{self, Budgets, Purse},
    candidate::Candidate,
    command::Command,
    consolidation, eligible,
    eligible::NotMine,
    emptiness,
    facts::{Constrained, Facts, Rotation},
    fix,
    method::Method,
    options::{Consolidation, Options},
    refusal::{Refusal, Rule},
    repack, replace,
    trial::Stage,
    warm::Warm,
    world::{Machine, World, price_of, with_marks},
};

/// What a round comes to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Round {
    /// What to do: all of one method; independent of each other, to be started together.
    pub commands: Vec<Command>,
    /// Why the other nodes stay, as far as a method that was asked would have taken them.
    pub refusals: Vec<Refusal>,
    /// The methods that were asked, in order; their commands and refusals are above.
    pub passes: Vec<Pass>,
    /// Where the next round goes on. Keep it in [`Facts::rotation`].
    pub rotation: Rotation,
    /// Candidates that were simulated one by one.
    pub evaluated: usize,
    /// Pods that were moved in thought.
    pub work: u64,
}

/// What one method found.
#[derive(Debug, Clone, PartialEq)]
pub struct Pass {
    /// Which.
    pub method: Method,
    /// How many candidates it has: the gauge `eligible_nodes`.
    pub eligible: usize,
    /// What its budgets are; none when it has no candidates, because upstream does not look then.
    pub budgets: Option<Budgets>,
    /// What it wants done.
    pub commands: Vec<Command>,
    /// Why nodes it would have taken stay.
    pub refusals: Vec<Refusal>,
    /// Set when it found nothing more to do until the cluster changes: keep it in [`Facts::settled_at`].
    pub settled: Option<Timestamp>,
    /// Set when it found nothing more to do with what budgets left it: keep it in [`Facts::constrained`].
    pub constrained: Option<Constrained>,
    /// Candidates it did not get to for lack of work budget, with the time since which they wait.
    pub waiting: Vec<(NodeName, Timestamp)>,
    /// Candidates that were simulated one by one.
    pub evaluated: usize,
    /// Pods that were moved in thought.
    pub work: u64,
}

/// Asks the methods in order; the first that finds something ends the round.
///
/// The snapshot is the cluster as it is; claims in `facts.marked` count as going.
pub fn decide(snapshot: &Snapshot, facts: &Facts, options: &Options, now: Timestamp) -> Round {
    Warm::default().decide(snapshot, facts, options, now)
}

/// Asks one method, whatever the others would find.
pub fn ask(method: Method, snapshot: &Snapshot, facts: &Facts, options: &Options, now: Timestamp) -> Pass {
    Warm::default().ask(method, snapshot, facts, options, now)
}

/// Asks every method, whatever the others find: for whoever wants to know of each node why it stays.
pub fn survey(snapshot: &Snapshot, facts: &Facts, options: &Options, now: Timestamp) -> Vec<Pass> {
    let (marked, warm) = (with_marks(snapshot, facts, now), Warm::default());
    let (world, stage) = (World::new(&marked, facts, options, &warm, now), Stage::default());
    let methods = Method::ALL.into_iter().filter(|method| is_asked(&world, *method));
    methods.map(|method| asked(&world, &stage, method, &[])).collect()
}

/// What the nodes of each NodePool cost together: every claim with a type, a zone and a capacity type, going or not.
pub fn tracked_costs(snapshot: &Snapshot) -> BTreeMap<NodePoolName, Price> {
    Warm::default().tracked_costs(snapshot)
}

impl Warm {
    /// As [`decide`] says.
    pub fn decide(&self, snapshot: &Snapshot, facts: &Facts, options: &Options, now: Timestamp) -> Round {
        let marked = with_marks(snapshot, facts, now);
        decided(&World::new(&marked, facts, options, self, now))
    }

    /// As [`ask`] says.
    pub fn ask(&self, method: Method, snapshot: &Snapshot, facts: &Facts, options: &Options, now: Timestamp) -> Pass {
        let marked = with_marks(snapshot, facts, now);
        let world = World::new(&marked, facts, options, self, now);
        asked(&world, &Stage::default(), method, &[])
    }

    /// As [`tracked_costs`] says.
    pub fn tracked_costs(&self, snapshot: &Snapshot) -> BTreeMap<NodePoolName, Price> {
        let offered = self.offered(snapshot);
        let mut costs: BTreeMap<NodePoolName, Price> = BTreeMap::new();
        for claim in snapshot.objects().node_claims.iter() {
            let labels = &claim.metadata.labels;
            let is_known = [INSTANCE_TYPE, ZONE, CAPACITY_TYPE]
                .iter()
                .all(|key| labels.get(key).is_some());
            let Some(pool) = claim.node_pool().filter(|_| is_known) else {
                continue;
            };
            let price = price_of(&offered, &pool, labels).unwrap_or_default();
            let sum = costs.entry(pool).or_default();
            *sum = *sum + price;
        }
        costs
    }
}

fn decided(world: &World<'_>) -> Round {
    let (facts, now, stage) = (world.facts, world.now, Stage::default());
    let mut round = Round {
        rotation: facts.rotation.clone(),
        ..Round::default()
    };
    if let Some(pause) = facts.pause.as_ref().filter(|pause| pause.is_on(now)) {
        let rule = Rule::Paused {
            reason: pause.reason.clone(),
            until: pause.until,
        };
        round.refusals = paused(world, &rule);
        return round;
    }
    for method in Method::ALL.into_iter().filter(|method| is_asked(world, *method)) {
        let mut pass = asked(world, &stage, method, &[]);
        let rival = rival(world, &stage, &pass);
        round.work += pass.work;
        round.evaluated += pass.evaluated;
        round.commands = std::mem::take(&mut pass.commands);
        round.refusals.append(&mut pass.refusals);
        if method == Method::SingleNodeConsolidation && round.commands.is_empty() {
            round.rotation.waiting.clone_from(&pass.waiting);
        }
        round.passes.push(pass);
        if let Some(mut better) = rival {
            round.work += better.work;
            round.commands = std::mem::take(&mut better.commands);
            round.passes.push(better);
        }
        if !round.commands.is_empty() {
            break;
        }
    }
    round.refusals = said_once(std::mem::take(&mut round.refusals), &round.commands);
    round
}

/// What m → n replacement would rather do than what one of upstream's own moves found: only what is worth more.
fn rival(world: &World<'_>, stage: &Stage, pass: &Pass) -> Option<Pass> {
    let is_consolidation = matches!(
        pass.method,
        Method::MultiNodeConsolidation | Method::SingleNodeConsolidation
    );
    if !is_consolidation || pass.commands.is_empty() || !is_asked(world, Method::Repack) {
        return None;
    }
    let better = asked(world, stage, Method::Repack, &pass.commands);
    (!better.commands.is_empty()).then_some(better)
}

/// What would come of taking exactly these nodes by consolidation, whatever the budgets and the other candidates: the
/// command, or the rule that is in the way.
pub fn consider(
    nodes: &[NodeName],
    snapshot: &Snapshot,
    facts: &Facts,
    options: &Options,
    now: Timestamp,
) -> Result<Command, Rule> {
    let marked = with_marks(snapshot, facts, now);
    let warm = Warm::default();
    let (world, stage) = (World::new(&marked, facts, options, &warm, now), Stage::default());
    let method = match nodes {
        [_] => Method::SingleNodeConsolidation,
        _ => Method::MultiNodeConsolidation,
    };
    let mut refusals = Vec::new();
    let mut taken = candidates(&world, method, &mut refusals);
    let wanted: BTreeSet<_> = nodes.iter().collect();
    taken.retain(|candidate| wanted.contains(&candidate.node));
    if taken.len() < wanted.len() {
        let missing = |refusal: &Refusal| wanted.contains(&refusal.node);
        let rule = refusals.into_iter().find(missing).map(|refusal| refusal.rule);
        return Err(rule.unwrap_or(Rule::Unmanaged));
    }
    consolidation::exactly(&world, &stage, &Totals::of(&world, method), taken)
}

fn is_asked(world: &World<'_>, method: Method) -> bool {
    match method {
        Method::Repair => world.gates().node_repair && !world.options.is_repair_legacy,
        Method::Repack => world.options.consolidation == Consolidation::Cheapest,
        _ => true,
    }
}

/// Asks a method; `rivals` are what m → n replacement has to be better than.
fn asked(world: &World<'_>, stage: &Stage, method: Method, rivals: &[Command]) -> Pass {
    let mut refusals = Vec::new();
    let mine = candidates(world, method, &mut refusals);
    let mut draft = Draft {
        method,
        budgets: (!mine.is_empty()).then(|| Budgets::of(world, method.reason())),
        refusals,
        ..Draft::new(method)
    };
    let eligible = mine.len();
    if !mine.is_empty() && !draft.is_settled(world) {
        match method {
            Method::Repair => replace::repair(world, stage, &mut draft, mine),
            Method::Emptiness => emptiness::decide(world, stage, &mut draft, mine),
            Method::StaticDrift => replace::static_drift(world, &mut draft, mine),
            Method::Drift => replace::drift(world, stage, &mut draft, mine),
            Method::MultiNodeConsolidation => {
                consolidation::multi(world, stage, &Totals::of(world, method), &mut draft, mine);
            }
            Method::SingleNodeConsolidation => {
                consolidation::single(world, stage, &Totals::of(world, method), &mut draft, mine);
            }
            Method::Repack => repack::decide(world, stage, &Totals::of(world, method), &mut draft, mine, rivals),
        }
    }
    draft.pass(eligible)
}

/// The candidates that are a method's own.
pub(crate) fn candidates(world: &World<'_>, method: Method, refusals: &mut Vec<Refusal>) -> Vec<Candidate> {
    let mut mine = Vec::new();
    for (machine, found) in world.machines.iter().zip(world.candidates(method.class())) {
        let found = match found {
            Ok(found) => found,
            Err(rule) => {
                refusals.push(refusal(machine, None, rule.clone()));
                continue;
            }
        };
        match eligible::is_mine(world, machine, found, method) {
            Ok(()) => mine.push(found.clone()),
            Err(NotMine::Because(rule)) => refusals.push(refusal(machine, Some(method), rule)),
            Err(NotMine::Elsewhere) => {}
        }
    }
    mine
}

fn refusal(machine: &Machine<'_>, method: Option<Method>, rule: Rule) -> Refusal {
    let node_pool = machine.node_pool();
    Refusal {
        node: machine.name.clone(),
        claim: machine.member.claim.map(|claim| claim.name()),
        fix: fix::of(machine, node_pool.as_ref(), &rule),
        would_save: Some(machine.price).filter(|price| *price > Price::ZERO),
        node_pool,
        method,
        rule,
    }
}

fn paused(world: &World<'_>, rule: &Rule) -> Vec<Refusal> {
    let ours = world.machines.iter().filter(|machine| machine.member.is_managed());
    ours.map(|machine| refusal(machine, None, rule.clone())).collect()
}

/// Several methods may stop at the same rule, and a node that goes needs no reason to stay.
fn said_once(refusals: Vec<Refusal>, commands: &[Command]) -> Vec<Refusal> {
    let going: BTreeSet<&NodeName> = commands.iter().flat_map(Command::nodes).collect();
    let mut by_node: BTreeMap<NodeName, Vec<Refusal>> = BTreeMap::new();
    for refusal in refusals.into_iter().filter(|refusal| !going.contains(&refusal.node)) {
        let said = by_node.entry(refusal.node.clone()).or_default();
        if said.iter().all(|other| other.rule != refusal.rule) {
            said.push(refusal);
        }
    }
    by_node.into_values().flatten().collect()
}

/// What a method writes down while it decides.
pub(crate) struct Draft {
    pub(crate) method: Method,
    pub(crate) budgets: Option<Budgets>,
    pub(crate) commands: Vec<Command>,
    pub(crate) refusals: Vec<Refusal>,
    pub(crate) settled: Option<Timestamp>,
    pub(crate) constrained: Option<Constrained>,
    pub(crate) waiting: Vec<(NodeName, Timestamp)>,
    pub(crate) evaluated: usize,
    pub(crate) work: u64,
}

impl Draft {
    fn new(method: Method) -> Self {
        Self {
            method,
            budgets: None,
            commands: Vec::new(),
            refusals: Vec::new(),
            settled: None,
            constrained: None,
            waiting: Vec::new(),
            evaluated: 0,
            work: 0,
        }
    }

    fn pass(self, eligible: usize) -> Pass {
        Pass {
            method: self.method,
            eligible,
            budgets: self.budgets,
            commands: self.commands,
            refusals: self.refusals,
            settled: self.settled,
            constrained: self.constrained,
            waiting: self.waiting,
            evaluated: self.evaluated,
            work: self.work,
        }
    }

    /// Whether nothing changed since the method last found nothing to do.
    fn is_settled(&self, world: &World<'_>) -> bool {
        let settled = world.facts.settled_at.get(&self.method);
        let is_settled = settled.is_some() && settled == world.facts.changed_at.as_ref();
        self.method.is_consolidation() && (is_settled || self.is_settled_within_budgets(world))
    }

    /// Whether nothing changed, budgets included, since the method last found nothing to do within them. Upstream asks
    /// again and again. Only where there is nobody to tell that a budget is in the way.
    fn is_settled_within_budgets(&self, world: &World<'_>) -> bool {
        let is_silent = self.method == Method::MultiNodeConsolidation;
        let known = world.facts.constrained.get(&self.method);
        is_silent
            && world.options.consolidation == Consolidation::Cheapest
            && known.is_some()
            && known == self.within_budgets(world).as_ref()
    }

    fn within_budgets(&self, world: &World<'_>) -> Option<Constrained> {
        Some(Constrained {
            changed_at: world.facts.changed_at?,
            left: self.purse().into_left(),
        })
    }

    /// Nothing is to be done until the cluster changes; unless a budget, which time alone may open, was in the way.
    pub(crate) fn settle(&mut self, world: &World<'_>, is_constrained: bool) {
        if is_constrained {
            self.constrained = self.within_budgets(world);
        } else {
            self.settled = world.facts.changed_at;
        }
    }

    /// What the budgets leave at the start of the round.
    pub(crate) fn purse(&self) -> Purse {
        self.budgets.as_ref().map(Budgets::purse).unwrap_or_default()
    }

    pub(crate) fn refuse(&mut self, world: &World<'_>, candidate: &Candidate, rule: Rule) {
        let machine = world
            .machines
            .binary_search_by(|machine| machine.name.cmp(&candidate.node));
        if let Some(machine) = machine.ok().and_then(|at| world.machines.get(at)) {
            self.refusals.push(refusal(machine, Some(self.method), rule));
        }
    }

    pub(crate) fn refuse_budget(&mut self, world: &World<'_>, candidate: &Candidate) {
        let reason = self.method.reason();
        let found = self
            .budgets
            .as_ref()
            .map(|budgets| budgets.get(&candidate.node_pool))
            .unwrap_or_default();
        let pool = world.pool(&candidate.node_pool);
        let rule = Rule::Budget {
            reason,
            allowed: found.allowed,
            disrupting: found.disrupting,
            opens: pool.and_then(|pool| budget::opens(pool, found, reason, world.now)),
        };
        self.refuse(world, candidate, rule);
    }

    /// Candidates the round does not get to.
    pub(crate) fn wait(&mut self, world: &World<'_>, candidates: &[Candidate]) {
        let since: BTreeMap<&NodeName, Timestamp> = world
            .facts
            .rotation
            .waiting
            .iter()
            .map(|(node, since)| (node, *since))
            .collect();
        for candidate in candidates {
            self.refuse(world, candidate, Rule::NotLookedAt);
            let since = since.get(&candidate.node).copied().unwrap_or(world.now);
            self.waiting.push((candidate.node.clone(), since));
        }
    }
}
