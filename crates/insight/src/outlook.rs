//! What will happen next? The moves the engine would make now, step by step until nothing is left to do; what waits, and
//! for what; what a rule keeps, and what lifting it is worth.

mod aftermath;

use std::collections::{BTreeMap, BTreeSet};

use api::condition::names::nodeclaim::DRIFTED;
use disruption::{Command, Decision, Facts, Options, Reason, Refusal};
use jiff::Timestamp;
use model::{
    object::{NodeName, NodePoolName, ObjectKey},
    price::Price,
    snapshot::Snapshot,
};
use packing::Simulator;
use serde::Serialize;

use crate::{
    Dollars, Machine, State, View,
    hold::Holds,
    removal::{NewNode, PodMove, Removals, moves},
    rule::{Class, Stay},
};

/// How far to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reach {
    /// Rounds of moves at most.
    pub rounds: usize,
    /// Nodes that are kept, of which at most so many are asked what they are worth; the dearest first.
    pub priced: usize,
    /// Pods moved in thought at most, each round.
    pub work: u64,
    /// Threads that simulate; the answer does not depend on it.
    pub threads: usize,
}

/// Machines beyond which one round is looked at, and fewer of the nodes that are kept.
const LARGE: usize = 1000;

impl Reach {
    /// As far as an answer within a second or two allows, by the number of machines.
    pub fn for_machines(machines: usize, threads: usize) -> Self {
        let is_large = machines > LARGE;
        Self {
            rounds: if is_large { 1 } else { 12 },
            priced: if is_large { 100 } else { 500 },
            work: if is_large { 200_000 } else { Options::default().work },
            threads,
        }
    }
}

/// What will happen next.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outlook {
    /// In the order they would be made.
    pub moves: Vec<Move>,
    /// Nodes that would go, and wait.
    pub waits: Vec<Kept>,
    /// Nodes that a rule keeps.
    pub held: Vec<Kept>,
    /// Pools in which people want nothing disrupted.
    pub paused: Vec<PausedPool>,
    /// What it comes to.
    pub total: Total,
}

/// A move the engine would make.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Move {
    /// Twelve hexadecimal digits, from what it does to which nodes.
    pub id: String,
    /// In which round: moves of the first are made now, the others when those before them are done.
    pub round: usize,
    /// What is done: `delete`, `replace`, `merge`, `repack`, `reboot`.
    pub action: &'static str,
    /// The nodes that go.
    pub targets: Vec<Target>,
    /// Their pools.
    pub pools: Vec<String>,
    /// Why, as budgets spell it.
    pub reason: &'static str,
    /// The nodes that come.
    pub new_nodes: Vec<NewNode>,
    /// What an hour costs more then; less than nothing when it saves.
    pub delta_usd_h: Dollars,
    /// The same for a month.
    pub delta_usd_mo: Dollars,
    /// How many pods are made anew elsewhere.
    pub pods: usize,
    /// Where they go.
    pub moves: Vec<PodMove>,
}

/// A node that goes, or stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Target {
    /// Its name.
    pub node: String,
    /// Its type.
    pub instance_type: String,
    /// Its kind of capacity.
    pub capacity_type: String,
    /// Its zone.
    pub zone: String,
    /// What it costs.
    pub usd_h: Dollars,
}

/// Nodes of one pool that one rule keeps.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Kept {
    /// The pool.
    pub pool: String,
    /// The rule.
    pub rule: &'static str,
    /// In a word.
    pub word: &'static str,
    /// What made the rule.
    pub by: String,
    /// For which reason they would go.
    pub reason: &'static str,
    /// In a sentence, about the first of them.
    pub text: String,
    /// When it ends by itself, if that is known.
    pub lifts_at: Option<Timestamp>,
    /// The nodes.
    pub targets: Vec<Target>,
    /// Their pods that would move.
    pub pods: usize,
    /// What an hour would cost less without them; none where it was not worked out, or there is nothing to save.
    pub saving_usd_h: Option<Dollars>,
    /// The same for a month.
    pub saving_usd_mo: Option<Dollars>,
}

/// A pool in which people want nothing disrupted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PausedPool {
    /// The pool.
    pub pool: String,
    /// Until when; none until they say so.
    pub until: Option<Timestamp>,
    /// In their words.
    pub reason: String,
}

/// What an outlook comes to.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Total {
    /// Machines now.
    pub nodes: usize,
    /// What they cost now.
    pub usd_h: Dollars,
    /// Machines when all moves are done.
    pub nodes_after: usize,
    /// What they cost then.
    pub usd_h_after: Dollars,
    /// What all moves save a month; less than nothing when they save.
    pub delta_usd_mo: Dollars,
    /// What nodes that wait would save.
    pub waiting_usd_mo: Dollars,
    /// What nodes that are held would save.
    pub held_usd_mo: Dollars,
    /// Nodes that are held.
    pub held_nodes: usize,
    /// Rounds that were looked at.
    pub rounds: usize,
    /// There may be more to do: the last round that was looked at still found something.
    pub is_cut: bool,
    /// Nodes that no round got to.
    pub not_looked_at: usize,
    /// Nodes that are kept and were not asked what they are worth.
    pub not_priced: usize,
}

impl Outlook {
    /// Looks ahead from a view.
    pub fn of(view: &View<'_>, reach: Reach) -> Self {
        let Ahead {
            refusals,
            moves,
            rounds,
            is_cut,
            settled,
        } = Ahead::of(view, reach);
        let going: BTreeSet<&str> = moves
            .iter()
            .flat_map(|step| step.targets.iter().map(|target| target.node.as_str()))
            .collect();
        let keeping = Keeping::of(view, &settled, &refusals, &going, reach);
        let mut outlook = Self {
            waits: keeping.waits(),
            held: keeping.held(),
            paused: paused(view),
            total: total(view, &moves),
            moves,
        };
        let saving = |kept: &[Kept]| kept.iter().filter_map(|kept| kept.saving_usd_mo).sum();
        outlook.total = Total {
            waiting_usd_mo: saving(&outlook.waits),
            held_usd_mo: saving(&outlook.held),
            held_nodes: outlook.held.iter().map(|kept| kept.targets.len()).sum(),
            rounds,
            is_cut,
            not_looked_at: not_looked_at(&refusals),
            not_priced: keeping.not_priced,
            ..outlook.total
        };
        outlook
    }
}

/// What the engine says of a cluster: why nodes stay, which moves it would make, and what they leave.
#[derive(Debug)]
pub(crate) struct Ahead {
    /// Every reason to keep a node, whatever the method.
    pub(crate) refusals: Vec<Refusal>,
    /// In the order they would be made.
    pub(crate) moves: Vec<Move>,
    rounds: usize,
    is_cut: bool,
    /// The cluster once they are made: what lifting a rule is worth is asked there, beside what happens anyway.
    pub(crate) settled: Snapshot,
}

impl Ahead {
    /// Looks ahead from a view.
    pub(crate) fn of(view: &View<'_>, reach: Reach) -> Self {
        let (snapshot, _) = disruption::paused(view.snapshot, view.now);
        let facts = facts(view);
        let options = Options {
            work: reach.work,
            threads: reach.threads,
            ..Options::default()
        };
        let refusals = surveyed(&snapshot, &facts, &options, view.now);
        let mut ahead = Self {
            refusals,
            moves: Vec::new(),
            rounds: 0,
            is_cut: false,
            settled: snapshot,
        };
        ahead.play(facts, &options, view, reach.rounds);
        ahead
    }

    /// Plays rounds one after the other, each on what the one before leaves.
    fn play(&mut self, mut facts: Facts, options: &Options, view: &View<'_>, most: usize) {
        while self.rounds < most {
            let round = disruption::decide(&self.settled, &facts, options, view.now);
            self.is_cut = !round.commands.is_empty();
            if !self.is_cut {
                break;
            }
            self.rounds += 1;
            self.moves
                .extend(round.commands.iter().map(|command| step(command, self.rounds)));
            self.settled = aftermath::of(&self.settled, &round.commands, self.rounds);
            facts.rotation = round.rotation;
        }
    }

    /// What an hour costs less without a node, once everything that happens anyway has happened; none when that saves
    /// nothing, or the node is gone by then.
    pub(crate) fn worth(&self, view: &View<'_>, machine: &Machine<'_>) -> Option<Dollars> {
        let removals = Removals::on(view, &self.settled);
        removals.saving(&mut removals.simulator(), &[machine.node_name()])
    }
}

/// What the engine must know and a snapshot does not say. Nothing is under way as far as anybody can see from here.
fn facts(view: &View<'_>) -> Facts {
    let mut pool_costs: BTreeMap<NodePoolName, Price> = BTreeMap::new();
    for machine in view.managed() {
        let price = machine.price.unwrap_or_default();
        if let Some(pool) = &machine.pool {
            let sum = pool_costs.entry(NodePoolName::from(pool.clone())).or_default();
            *sum = *sum + price;
        }
    }
    Facts {
        pool_costs,
        ..Facts::default()
    }
}

/// Every reason the engine has to keep a node, whatever the method.
fn surveyed(snapshot: &Snapshot, facts: &Facts, options: &Options, now: Timestamp) -> Vec<Refusal> {
    let passes = disruption::survey(snapshot, facts, options, now);
    passes.into_iter().flat_map(|pass| pass.refusals).collect()
}

fn step(command: &Command, round: usize) -> Move {
    let targets: Vec<Target> = command
        .candidates
        .iter()
        .map(|candidate| Target {
            node: candidate.node.to_string(),
            instance_type: candidate.instance_type.to_string(),
            capacity_type: candidate.capacity_type.to_string(),
            zone: candidate.zone.to_string(),
            usd_h: candidate.price.into(),
        })
        .collect();
    let action = match (command.decision(), targets.len(), command.replacements.len()) {
        (Decision::Delete | Decision::TerminateFirst, ..) => "delete",
        (Decision::Reboot, ..) => "reboot",
        (Decision::Replace, 1, 1) => "replace",
        (Decision::Replace, _, 1) => "merge",
        (Decision::Replace, ..) => "repack",
    };
    let pods = command.candidates.iter().flat_map(|candidate| &candidate.reschedulable);
    let pods: BTreeSet<ObjectKey> = pods.map(|pod| pod.metadata.key()).collect();
    let replacements = command.replacements.iter().map(|replacement| {
        let planned = replacement.planned();
        let launch = planned.and_then(|claim| claim.cheapest.as_ref());
        NewNode::of(
            replacement.node_pool().as_str(),
            launch,
            planned.map_or(0, |claim| claim.pods.len()),
        )
    });
    let delta = -Dollars(command.saving.0);
    Move {
        id: id(action, &targets),
        round,
        action,
        pools: command.node_pools().iter().map(ToString::to_string).collect(),
        reason: command.reason().as_str(),
        new_nodes: replacements.collect(),
        delta_usd_h: delta,
        delta_usd_mo: delta.monthly(),
        pods: command.pod_count(),
        moves: moves(&command.plan, |pod| pods.contains(pod)),
        targets,
    }
}

/// A name for what is done to which nodes: the same in every plan that finds it again.
fn id(action: &str, targets: &[Target]) -> String {
    let names = targets.iter().map(|target| target.node.as_str());
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for part in std::iter::once(action).chain(names) {
        for byte in part.bytes().chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    // The last step mixes poorly into the upper digits.
    hash ^= hash >> 29;
    hash = hash.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash ^= hash >> 32;
    format!("{:012x}", hash & 0xffff_ffff_ffff)
}

/// Nodes that are kept: which rule counts for each, and what they are worth.
struct Keeping<'v, 'a> {
    found: Vec<Keep<'v, 'a>>,
    not_priced: usize,
}

/// A node that is kept.
struct Keep<'v, 'a> {
    machine: &'v Machine<'a>,
    stay: Stay,
    reason: Reason,
    saving: Option<Dollars>,
}

/// Rules that keep a node whatever it is worth.
const FIRM: [&str; 5] = [
    "DoNotDisrupt",
    "ProtectedPod",
    "PodBudgets",
    "LoopGuard",
    "FailedReplacements",
];

/// Rules that keep a drifted node.
const ABOUT_DRIFT: [&str; 6] = [
    "DoNotDisrupt",
    "ProtectedPod",
    "PodBudgets",
    "Budget",
    "Paused",
    "Unschedulable",
];

impl<'v, 'a> Keeping<'v, 'a> {
    fn of(view: &'v View<'a>, settled: &Snapshot, refusals: &[Refusal], going: &BTreeSet<&str>, reach: Reach) -> Self {
        let holds = Holds::of(view, refusals);
        let mut found: Vec<Keep<'v, 'a>> = Vec::new();
        for machine in view.managed().filter(|machine| !going.contains(&*machine.name)) {
            if !matches!(machine.state, State::Ready | State::Cordoned | State::NotReady) {
                continue;
            }
            let mut stays = holds.stays(machine);
            let reason = reason(machine);
            if reason == Reason::Drifted {
                // What is only about saving money does not keep a drifted node.
                stays.retain(|stay| ABOUT_DRIFT.contains(&stay.rule));
            }
            // What somebody asked for counts before what time lifts.
            let first = |class: Class| stays.iter().find(|stay| stay.class == class).cloned();
            let Some(stay) = first(Class::Held).or_else(|| first(Class::Waits)) else {
                continue;
            };
            found.push(Keep {
                reason,
                machine,
                stay,
                saving: None,
            });
        }
        let mut keeping = Self { found, not_priced: 0 };
        keeping.price(view, settled, reach.priced);
        keeping
    }

    /// Asks what the dearest of them are worth, beside the moves that are made anyway.
    fn price(&mut self, view: &View<'_>, settled: &Snapshot, most: usize) {
        self.not_priced = self.found.len().saturating_sub(most);
        if self.found.is_empty() || most == 0 {
            return;
        }
        let removals = Removals::on(view, settled);
        let mut simulator = removals.simulator();
        let mut order: Vec<usize> = (0..self.found.len()).collect();
        order.sort_by_key(|at| {
            let keep = &self.found[*at];
            (std::cmp::Reverse(keep.machine.cost()), keep.machine.name.clone())
        });
        // Two nodes may count on the same room: what they save together is what counts.
        let (mut taken, mut together) = (Vec::new(), Dollars::ZERO);
        for at in order.into_iter().take(most) {
            let keep = &mut self.found[at];
            if keep.reason == Reason::Drifted {
                continue;
            }
            let name = keep.machine.node_name();
            keep.saving = more(&removals, &mut simulator, &mut taken, &mut together, name);
        }
    }

    fn waits(&self) -> Vec<Kept> {
        let is_worth_it = |keep: &&Keep<'_, '_>| keep.saving.is_some() || keep.reason == Reason::Drifted;
        grouped(
            self.found
                .iter()
                .filter(|keep| keep.stay.class == Class::Waits)
                .filter(is_worth_it),
        )
    }

    fn held(&self) -> Vec<Kept> {
        let counts = |keep: &&Keep<'_, '_>| {
            FIRM.contains(&keep.stay.rule) || keep.saving.is_some() || keep.reason == Reason::Drifted
        };
        let held = self.found.iter().filter(|keep| keep.stay.class == Class::Held);
        grouped(held.filter(counts))
    }
}

/// What one more node saves beside those taken already; it is taken if it saves anything.
fn more(
    removals: &Removals,
    simulator: &mut Simulator<'_>,
    taken: &mut Vec<NodeName>,
    together: &mut Dollars,
    name: NodeName,
) -> Option<Dollars> {
    taken.push(name);
    match removals.saving(simulator, taken) {
        Some(saving) if saving > *together => {
            let more = saving - *together;
            *together = saving;
            Some(more)
        }
        _ => {
            taken.pop();
            None
        }
    }
}

fn reason(machine: &Machine<'_>) -> Reason {
    if machine.claim_says(DRIFTED) {
        Reason::Drifted
    } else if machine.movable().next().is_none() {
        Reason::Empty
    } else {
        Reason::Underutilized
    }
}

/// Nodes of one pool, kept by one rule for one reason, together; most money first.
fn grouped<'k, 'v: 'k, 'a: 'v>(keeps: impl Iterator<Item = &'k Keep<'v, 'a>>) -> Vec<Kept> {
    type Alike = (String, &'static str, &'static str, String, Option<Timestamp>);
    let mut groups: BTreeMap<Alike, Kept> = BTreeMap::new();
    for keep in keeps {
        let (stay, machine) = (&keep.stay, keep.machine);
        let pool = machine.pool.as_deref().unwrap_or_default().to_owned();
        let reason = keep.reason.as_str();
        // Of pods and their budgets each is somebody's own; of times only those of a window are common.
        let by = if stay.rule == "ProtectedPod" {
            String::new()
        } else {
            stay.by.clone()
        };
        let at = stay.lifts_at.filter(|_| stay.rule != "NotYetConsolidatable");
        let group = groups
            .entry((pool.clone(), stay.rule, reason, by, at))
            .or_insert_with(|| Kept {
                pool,
                rule: stay.rule,
                word: stay.word,
                by: stay.by.clone(),
                reason,
                text: stay.text.clone(),
                lifts_at: stay.lifts_at,
                targets: Vec::new(),
                pods: 0,
                saving_usd_h: None,
                saving_usd_mo: None,
            });
        group.targets.push(target(machine));
        group.pods += machine.movable().count();
        group.lifts_at = group.lifts_at.max(stay.lifts_at);
        if let Some(saving) = keep.saving {
            let sum = group.saving_usd_h.unwrap_or_default() + saving;
            (group.saving_usd_h, group.saving_usd_mo) = (Some(sum), Some(sum.monthly()));
        }
    }
    let mut kept: Vec<Kept> = groups.into_values().collect();
    kept.sort_by_key(|kept| std::cmp::Reverse(kept.saving_usd_h));
    kept
}

pub(crate) fn target(machine: &Machine<'_>) -> Target {
    let text = |value: &Option<model::object::Text>| value.as_ref().map(ToString::to_string).unwrap_or_default();
    Target {
        node: machine.name.to_string(),
        instance_type: text(&machine.instance_type),
        capacity_type: text(&machine.capacity_type),
        zone: text(&machine.zone),
        usd_h: machine.cost(),
    }
}

fn paused(view: &View<'_>) -> Vec<PausedPool> {
    let pools = view.snapshot.objects().node_pools.iter();
    let paused = pools.filter_map(|pool| {
        let pause = disruption::pause_of(pool, view.now)?;
        Some(PausedPool {
            pool: pool.metadata.name.to_string(),
            until: pause.until,
            reason: pause.reason,
        })
    });
    paused.collect()
}

fn total(view: &View<'_>, moves: &[Move]) -> Total {
    let nodes = view.managed().count();
    let usd_h: Dollars = view.managed().map(Machine::cost).sum();
    let delta: Dollars = moves.iter().map(|step| step.delta_usd_h).sum();
    let gone: usize = moves
        .iter()
        .filter(|step| step.action != "reboot")
        .map(|step| step.targets.len())
        .sum();
    let come: usize = moves.iter().map(|step| step.new_nodes.len()).sum();
    Total {
        nodes,
        usd_h,
        nodes_after: (nodes + come).saturating_sub(gone),
        usd_h_after: usd_h + delta,
        delta_usd_mo: delta.monthly(),
        ..Total::default()
    }
}

fn not_looked_at(refusals: &[Refusal]) -> usize {
    let nodes = refusals
        .iter()
        .filter(|refusal| refusal.rule == disruption::Rule::NotLookedAt)
        .map(|refusal| &refusal.node);
    nodes.collect::<BTreeSet<_>>().len()
}
