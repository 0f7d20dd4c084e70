//! The loop: one round after another, each asking the methods in upstream's order until one finds something to do.
//!
//! Where upstream sleeps before it validates a command, the loop goes on: a broken or outdated node does not wait for a
//! cheap one. Nor does the next cheap one, while all that waits only deletes: it is decided on as if that had happened.
//! A command that brings a node is waited for, because nobody can plan on what is not there.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use api::condition::names::nodeclaim::{CONSOLIDATABLE, DRIFTED, INITIALIZED};
use async_trait::async_trait;
use disruption::{Command, Consolidation, Method, Options, Reason, Round, Warm};
use futures_util::future::join_all;
use jiff::{SignedDuration, Timestamp};
use ledger::Id;
use model::{
    object::{NodeClaim, NodePool, ObjectKey, condition},
    snapshot::Snapshot,
};
use runtime::{Settings, queue::Backoff, random::Random};
use state::{Change, Kind, State, Transition};
use tokio::time::Instant;

use super::{
    cron_jobs,
    facts::{self, Seen},
    marker, measure,
    memory::{Memory, Waiting},
    queue::CommandQueue,
    repair::Policies,
    start, tell,
};
use crate::{
    Cluster, Controller, Next, Problem, Work,
    flight::{RoundGiven, Taped},
    mutation::{self, Mutation},
    provisioning::is_managed,
    records::{self, id_of_move},
};

/// How often the loop looks when nothing was found.
const POLL: Duration = Duration::from_secs(10);
/// How long it waits for kinds to be listed.
const UNLISTED: Duration = Duration::from_secs(1);
/// Rounds that changes ask for are at least so far apart.
const SPACING: SignedDuration = SignedDuration::from_secs(1);
/// How long a command that saves money waits before it is validated.
const VALIDATION: SignedDuration = SignedDuration::from_secs(15);
/// The one item of work.
const CLUSTER: &str = "cluster";

/// Without these a node may look empty that is not.
pub(super) const NEEDED: [Kind; 6] = [
    Kind::Pod,
    Kind::Node,
    Kind::NodeClaim,
    Kind::NodePool,
    Kind::DaemonSet,
    Kind::PodDisruptionBudget,
];

/// `disruption`
pub(super) struct Rounds {
    memory: Arc<Memory>,
    queue: Work<CommandQueue>,
    policies: Option<Arc<Policies>>,
    random: Random,
    last: Mutex<Option<Timestamp>>,
    /// What was last said of budgets that cannot be read.
    complained: Mutex<String>,
}

/// Which methods a round asks.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Asked {
    /// All, in order.
    All,
    /// These, in order.
    Only(Vec<Method>),
}

/// The methods that go on while a command waits.
fn while_waiting() -> Asked {
    Asked::Only(
        Method::ALL
            .into_iter()
            .filter(|method| !method.is_validated())
            .collect(),
    )
}

/// The methods that come after one whose command did not hold.
fn after(method: Method) -> Asked {
    Asked::Only(Method::ALL.into_iter().filter(|other| *other > method).collect())
}

fn ask(asked: &Asked, seen: &Seen, options: &Options, warm: &Warm) -> Round {
    let Seen {
        snapshot, facts, now, ..
    } = seen;
    let Asked::Only(methods) = asked else {
        return warm.decide(snapshot, facts, options, *now);
    };
    let mut round = Round {
        rotation: facts.rotation.clone(),
        ..Round::default()
    };
    for method in methods.iter().filter(|method| takes_part(**method, seen, options)) {
        let mut pass = warm.ask(*method, snapshot, facts, options, *now);
        round.refusals.append(&mut pass.refusals);
        round.commands = std::mem::take(&mut pass.commands);
        round.passes.push(pass);
        if !round.commands.is_empty() {
            break;
        }
    }
    round
}

/// What a round knew beside the snapshot.
fn given_of(cluster: &Cluster, seen: &Seen, asked: Asked) -> RoundGiven {
    let options = options(cluster.settings());
    RoundGiven {
        facts: seen.facts.clone(),
        asked: match asked {
            Asked::All => None,
            Asked::Only(methods) => Some(methods),
        },
        left_out: facts::theirs(&seen.whole, cluster)
            .iter()
            .map(|key| key.name.to_string())
            .collect(),
        is_faithful: options.consolidation == Consolidation::Faithful,
        is_repair_legacy: options.is_repair_legacy,
    }
}

/// The round that a snapshot and what is known beside it lead to, once more.
pub(crate) fn again(whole: &Snapshot, given: &RoundGiven, now: Timestamp) -> Round {
    let left_out = given.left_out.iter().map(|name| ObjectKey::cluster_scoped(name));
    let (snapshot, paused) = facts::seen_of(whole, left_out.collect(), now);
    let mut facts = given.facts.clone();
    facts.pool_costs = disruption::tracked_costs(&snapshot);
    let seen = Seen {
        whole: whole.clone(),
        snapshot,
        facts,
        paused,
        now,
    };
    let asked = given.asked.clone().map_or(Asked::All, Asked::Only);
    let options = Options {
        consolidation: if given.is_faithful {
            Consolidation::Faithful
        } else {
            Consolidation::Cheapest
        },
        is_repair_legacy: given.is_repair_legacy,
        ..Options::default()
    };
    ask(&asked, &seen, &options, &Warm::default())
}

fn takes_part(method: Method, seen: &Seen, options: &Options) -> bool {
    match method {
        Method::Repair => seen.snapshot.settings().feature_gates.node_repair && !options.is_repair_legacy,
        Method::Repack => options.consolidation == Consolidation::Cheapest,
        _ => true,
    }
}

fn options(settings: &Settings) -> Options {
    Options {
        consolidation: match settings.consolidation {
            runtime::settings::Consolidation::Cheapest => Consolidation::Cheapest,
            runtime::settings::Consolidation::Faithful => Consolidation::Faithful,
        },
        is_repair_legacy: settings.legacy_node_repair,
        threads: usize::try_from(settings.cpu_requests.div_ceil(1000))
            .unwrap_or(1)
            .max(1),
        ..Options::default()
    }
}

impl Rounds {
    /// Commands are named by chance from `seed`, which another process must not have had.
    pub(super) fn new(memory: Arc<Memory>, queue: Work<CommandQueue>, policies: Option<Policies>, seed: u64) -> Self {
        Self {
            memory,
            queue,
            policies: policies.map(Arc::new),
            random: Random::seeded(seed),
            last: Mutex::default(),
            complained: Mutex::default(),
        }
    }

    /// Logs which budgets cannot be read: they close their pools. Upstream says so every time, we when it changes.
    fn complain(&self, cluster: &Cluster, now: Timestamp) {
        let faults = cluster.look(|state| {
            let pools = state.all::<NodePool>().iter();
            let faults = pools.filter(|pool| is_managed(pool, cluster)).filter_map(|pool| {
                let error = disruption::checked(pool, 100, Reason::Empty, now).err()?;
                let name = &pool.metadata.name;
                Some(format!("invalid disruption budgets in nodepool {name}, {error}"))
            });
            faults.collect::<Vec<_>>().join("; ")
        });
        let mut complained = self.complained.lock().unwrap_or_else(PoisonError::into_inner);
        if *complained != faults && !faults.is_empty() {
            tracing::error!(error = faults, "detected disruption budget errors");
        }
        *complained = faults;
    }

    fn seen(&self, cluster: &Cluster) -> Seen {
        let seen = facts::seen(cluster, &self.memory, self.policies.as_deref());
        if mutation::has(Mutation::IgnoresBudgets) {
            return seen.without_budgets();
        }
        seen
    }

    /// How long to wait because the last round was just now; none when it was not, and then this is one.
    fn too_soon(&self, now: Timestamp) -> Option<Duration> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let left = last.map(|last| SPACING - now.duration_since(last));
        if let Some(left) = left
            .and_then(|left| Duration::try_from(left).ok())
            .filter(|left| !left.is_zero())
        {
            return Some(left);
        }
        *last = Some(now);
        None
    }

    /// What is asked while these commands wait.
    fn asked_beside(cluster: &Cluster, waiting: &[Waiting]) -> Asked {
        let mut commands = waiting.iter().flat_map(|waiting| &waiting.commands);
        let is_faithful = options(cluster.settings()).consolidation == Consolidation::Faithful;
        if waiting.is_empty() || !is_faithful && commands.all(|command| command.replacements.is_empty()) {
            Asked::All
        } else {
            while_waiting()
        }
    }

    /// Asks, takes in what is to be remembered, and tells what was found.
    async fn round(&self, cluster: &Cluster, asked: Asked, waiting: &[Waiting]) -> Result<(Seen, Round), Problem> {
        let inputs = cluster.inputs();
        let (seen, options) = (self.seen(cluster).foreseen(waiting), options(cluster.settings()));
        let taped = cluster.is_taped().then(|| asked.clone());
        let began = Instant::now();
        let (given, warm) = (seen.clone(), self.memory.warm());
        let round = cluster
            .engine()
            .run(move || ask(&asked, &given, &options, &warm))
            .await?;
        self.memory.settle(&round.passes);
        self.memory.rotate(round.rotation.clone());
        measure::round(cluster, &round, seen.paused, began.elapsed(), seen.now);
        tell::round(cluster, &seen.snapshot, &round);
        let mut ids = records::planned(cluster, &round.commands, &inputs, began.elapsed());
        ids.extend(records::kept(cluster, &seen.snapshot, &round, &inputs, began.elapsed()));
        if let Some(asked) = taped.filter(|_| !ids.is_empty()) {
            cluster.tape(&seen.whole, &inputs, || Taped::Disruption {
                given: Box::new(given_of(cluster, &seen, asked)),
                round: Box::new(round.clone()),
                ids,
            });
        }
        Ok((seen, round))
    }

    /// What is left of commands whose wait is over, on the cluster as it is now.
    async fn validate(&self, cluster: &Cluster, commands: Vec<Command>) -> Result<(Seen, Vec<(Id, Command)>), Problem> {
        let (seen, options) = (self.seen(cluster), options(cluster.settings()));
        let (given, warm) = (seen.clone(), self.memory.warm());
        let asked = commands.clone();
        let answers = cluster
            .engine()
            .run(move || {
                let Seen {
                    snapshot, facts, now, ..
                } = &given;
                let validate = |command: &Command| warm.validate(command, snapshot, facts, &options, *now);
                asked.iter().map(validate).collect::<Vec<_>>()
            })
            .await?;
        let mut valid = Vec::new();
        for (command, answer) in commands.iter().zip(answers) {
            match answer {
                // Less of it may be left; it is the same decision all the same.
                Ok(left) => valid.push((id_of_move(command), left)),
                Err(why) => {
                    records::aborted(cluster, id_of_move(command), command, &why.to_string());
                    // What was found beside it was found as if it had held.
                    cluster.note(State::mark_unconsolidated);
                    measure::rejected(cluster.metrics(), command, &why);
                    tell::rejected(cluster, &seen.snapshot, command, &why);
                }
            }
        }
        Ok((seen, valid))
    }

    /// Begins commands, all at once; true when any began.
    async fn begin(&self, cluster: &Cluster, seen: &Seen, commands: Vec<(Id, Command)>) -> Result<bool, Problem> {
        let ids: Vec<_> = commands.iter().map(|_| self.random.uuid().into()).collect();
        let asked = commands.clone();
        let starts = commands
            .into_iter()
            .zip(&ids)
            .map(|(command, id)| start::begin(cluster, &self.memory, id, &seen.snapshot, command));
        let results = join_all(starts).await;
        let mut began = false;
        let mut problems = Vec::new();
        for ((id, (decision, command)), result) in ids.into_iter().zip(&asked).zip(results) {
            match result {
                Ok(is_begun) => {
                    began |= is_begun;
                    self.queue.add(id);
                }
                Err(problem) => {
                    // A pool whose replacements cannot be had must not keep the loop from all others.
                    self.memory.fail_to_start(command, cluster.now());
                    if !self.memory.carries(*decision) {
                        records::aborted(cluster, *decision, command, &problem.to_string());
                    }
                    problems.push(problem);
                }
            }
        }
        match problems.pop() {
            None => Ok(began),
            Some(problem) if problems.is_empty() => Err(problem),
            Some(problem) => {
                problems.push(problem);
                Err(Problem::Several(problems))
            }
        }
    }

    /// What a round found is done at once, or kept until it has proved stable.
    async fn follow(&self, cluster: &Cluster, seen: Seen, round: Round) -> Result<Next, Problem> {
        let Some(first) = round.commands.first() else {
            return Ok(Next::After(self.patience(cluster.now())));
        };
        let method = first.method;
        if method.is_validated() {
            let due = seen.now.saturating_add(VALIDATION).unwrap_or(Timestamp::MAX);
            self.memory.wait(Waiting {
                method,
                commands: round.commands,
                due,
            });
            return Ok(Next::After(self.patience(cluster.now())));
        }
        let (seen, commands) = self.validate(cluster, round.commands).await?;
        let began = self.begin(cluster, &seen, commands).await?;
        Ok(Next::After(if began { Duration::ZERO } else { POLL }))
    }

    /// Until the next look: the poll, or what waits, if that is sooner.
    fn patience(&self, now: Timestamp) -> Duration {
        let due = self.memory.waits_until().map(|due| due.duration_since(now));
        let due = due.map(|due| Duration::try_from(due).unwrap_or_default());
        due.map_or(POLL, |due| due.min(POLL))
    }
}

/// Whether a claim's news may let a round find something: it is quiet, or outdated, or gone and no longer in the way.
fn matters(claim: &Transition<NodeClaim>) -> bool {
    let has =
        |claim: &Option<Arc<NodeClaim>>, kind| claim.as_ref().is_some_and(|claim| claim.condition(kind).is_some());
    let appears = |kind| !has(&claim.before, kind) && has(&claim.after, kind);
    claim.is_gone() || appears(CONSOLIDATABLE) || appears(DRIFTED)
}

/// Whether a claim's machine has just come up.
fn comes_up(claim: &Transition<NodeClaim>) -> bool {
    let is_up = |claim: &Option<Arc<NodeClaim>>| {
        claim
            .as_ref()
            .is_some_and(|claim| condition::holds(&claim.status.conditions, INITIALIZED))
    };
    !is_up(&claim.before) && is_up(&claim.after)
}

#[async_trait]
impl Controller for Rounds {
    type Key = &'static str;

    fn name(&self) -> &'static str {
        "disruption"
    }

    fn workers(&self, _: &Settings) -> usize {
        1
    }

    fn backoff(&self) -> Backoff {
        Backoff {
            least: Duration::from_millis(100),
            most: Duration::from_mins(1),
        }
    }

    fn initial(&self) -> Vec<&'static str> {
        vec![CLUSTER]
    }

    fn concerns(&self, change: &Change, _: &State) -> Vec<&'static str> {
        let is_news = match change {
            Change::NodeClaim(claim) => {
                if comes_up(claim)
                    && let Some(pool) = claim.after.as_ref().and_then(|claim| claim.node_pool())
                {
                    self.memory.forgive(&pool);
                }
                matters(claim)
            }
            Change::NodePool(pool) => {
                let changed = pool.changes_generation();
                if let Some(pool) = pool.latest().filter(|_| changed) {
                    self.memory.forgive(&pool.name());
                }
                changed
            }
            _ => false,
        };
        if is_news { vec![CLUSTER] } else { Vec::new() }
    }

    async fn reconcile(&self, cluster: &Cluster, _: &&'static str) -> Result<Next, Problem> {
        let now = cluster.now();
        if !cluster.look(|state| NEEDED.iter().all(|kind| state.is_listed(*kind))) {
            return Ok(Next::After(UNLISTED));
        }
        if let Some(left) = self.too_soon(now) {
            return Ok(Next::After(left));
        }
        self.complain(cluster, now);
        match marker::clean(cluster, &self.memory).await {
            Err(error) if error.is_conflict() => return Ok(Next::Again),
            cleaned => cleaned?,
        }
        cron_jobs::look(cluster, &self.memory).await;
        let rejected = if let Some(waiting) = self.memory.take_due(now) {
            let (seen, valid) = self.validate(cluster, waiting.commands).await?;
            if !valid.is_empty() {
                let began = self.begin(cluster, &seen, valid).await?;
                return Ok(Next::After(if began { Duration::ZERO } else { POLL }));
            }
            Some(after(waiting.method))
        } else {
            None
        };
        let waiting = self.memory.waiting();
        let asked = match (Self::asked_beside(cluster, &waiting), rejected) {
            (Asked::All, Some(rest)) => rest,
            (beside, _) => beside,
        };
        let (seen, round) = self.round(cluster, asked, &waiting).await?;
        self.follow(cluster, seen, round).await
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn methods_without_a_wait_go_on_while_a_command_waits() {
        let Asked::Only(methods) = while_waiting() else {
            panic!("not all of them");
        };
        assert_eq!(methods, [Method::Repair, Method::StaticDrift, Method::Drift]);
    }

    #[test]
    fn a_command_that_does_not_hold_gives_way_to_the_methods_after_it() {
        let Asked::Only(methods) = after(Method::MultiNodeConsolidation) else {
            panic!("not all of them");
        };
        assert_eq!(methods, [Method::SingleNodeConsolidation, Method::Repack]);
    }

    #[test]
    fn claims_that_become_candidates_or_go_wake_the_loop() {
        let claim = |kinds: &[&str]| {
            let conditions: Vec<_> = kinds
                .iter()
                .map(|kind| json!({"type": kind, "status": "True"}))
                .collect();
            let json = json!({"metadata": {"name": "a"}, "status": {"conditions": conditions}});
            Some(Arc::new(serde_json::from_value::<NodeClaim>(json).unwrap()))
        };
        let cases = [
            (claim(&[]), claim(&["Consolidatable"]), true),
            (claim(&["Consolidatable"]), claim(&["Consolidatable"]), false),
            (claim(&["Consolidatable"]), claim(&[]), false),
            (claim(&[]), claim(&["Drifted"]), true),
            (claim(&[]), None, true),
            (None, claim(&[]), false),
        ];
        for (before, after, expected) in cases {
            let change = Transition { before, after };
            assert_eq!(matters(&change), expected, "{change:?}");
        }
    }
}
