//! May a command still be carried out? Asked again on a later snapshot, before anybody acts.

use std::collections::BTreeSet;

use jiff::Timestamp;
use model::{object::InstanceTypeName, object::NodeName, snapshot::Snapshot};

use crate::{
    balanced::Totals,
    budget::Budgets,
    candidate::Candidate,
    command::Command,
    emptiness,
    facts::Facts,
    method::Method,
    options::Options,
    repack,
    round::candidates,
    trial::{self, Rules, Stage, Words},
    warm::Warm,
    world::{World, with_marks},
};

/// Why a command may no longer be carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// Nodes are no longer candidates.
    #[error("{0} candidates are no longer valid")]
    Churn(usize),
    /// A node is about to get pods.
    #[error("a candidate was nominated during validation")]
    Nominated,
    /// Budgets no longer allow it.
    #[error("a candidate can no longer be disrupted without violating budgets")]
    Budget,
    /// The pods would go elsewhere, or nowhere.
    #[error("{0}")]
    Scheduling(String),
}

const NEW_RESULTS: &str = "scheduling simulation produced new results";

impl Invalid {
    /// The reason in `ConsolidationRejected`.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Churn(_) => "churn",
            Self::Nominated | Self::Budget => "budget",
            Self::Scheduling(_) => "scheduling",
        }
    }
}

/// Whether a command may still be carried out, by upstream's rules, on a later snapshot: what is left of it.
///
/// Emptiness goes on with the nodes that are still empty; m → n replacement is planned anew; every other command goes on
/// as it is or not at all. Methods that upstream does not validate (repair and both drifts) are held to being candidates still.
pub fn validate(
    command: &Command,
    snapshot: &Snapshot,
    facts: &Facts,
    options: &Options,
    now: Timestamp,
) -> Result<Command, Invalid> {
    Warm::default().validate(command, snapshot, facts, options, now)
}

impl Warm {
    /// As [`validate`] says.
    pub fn validate(
        &self,
        command: &Command,
        snapshot: &Snapshot,
        facts: &Facts,
        options: &Options,
        now: Timestamp,
    ) -> Result<Command, Invalid> {
        let marked = with_marks(snapshot, facts, now);
        valid(&World::new(&marked, facts, options, self, now), command)
    }
}

fn valid(world: &World<'_>, command: &Command) -> Result<Command, Invalid> {
    let current = still_candidates(world, command);
    match command.method {
        Method::Emptiness => emptiness_left(world, command, current),
        Method::Repair | Method::StaticDrift | Method::Drift => {
            all_there(command, &current)?;
            Ok(command.clone())
        }
        Method::Repack => {
            // What is left of it is planned anew, so nodes that emptied in the meantime need not be there.
            if current.is_empty() {
                return Err(Invalid::Churn(command.candidates.len()));
            }
            within_budgets(world, &current)?;
            let again = repack::repacked(world, &Stage::default(), &Totals::of(world, command.method), &current);
            again
                .map(|again| again.command)
                .map_err(|_| Invalid::Scheduling(NEW_RESULTS.to_owned()))
        }
        Method::MultiNodeConsolidation | Method::SingleNodeConsolidation => {
            all_there(command, &current)?;
            within_budgets(world, &current)?;
            simulates_alike(world, command, &current)?;
            Ok(command.clone())
        }
    }
}

/// The command's candidates as they are now, those that still are.
fn still_candidates(world: &World<'_>, command: &Command) -> Vec<Candidate> {
    let mine = candidates(world, command.method, &mut Vec::new());
    let wanted: BTreeSet<&NodeName> = command.nodes().collect();
    mine.into_iter()
        .filter(|candidate| wanted.contains(&candidate.node))
        .collect()
}

fn all_there(command: &Command, current: &[Candidate]) -> Result<(), Invalid> {
    let missing = command.candidates.len() - current.len();
    if missing == 0 {
        Ok(())
    } else {
        Err(Invalid::Churn(missing))
    }
}

fn emptiness_left(world: &World<'_>, command: &Command, current: Vec<Candidate>) -> Result<Command, Invalid> {
    if current.is_empty() {
        return Err(Invalid::Churn(command.candidates.len()));
    }
    let mut purse = Budgets::of(world, command.reason()).purse();
    let left: Vec<Candidate> = current
        .into_iter()
        .filter(|candidate| purse.take(&candidate.node_pool))
        .collect();
    if left.is_empty() {
        return Err(Invalid::Budget);
    }
    Ok(emptiness::command(left))
}

fn within_budgets(world: &World<'_>, current: &[Candidate]) -> Result<(), Invalid> {
    let mut purse = Budgets::of(world, crate::method::Reason::Underutilized).purse();
    for candidate in current {
        if world.facts.nominated.contains(&candidate.provider_id) {
            return Err(Invalid::Nominated);
        }
        if !purse.take(&candidate.node_pool) {
            return Err(Invalid::Budget);
        }
    }
    Ok(())
}

/// The pods must go as before: to existing nodes only, or to one new node that may become any of the types chosen.
fn simulates_alike(world: &World<'_>, command: &Command, current: &[Candidate]) -> Result<(), Invalid> {
    let stage = Stage::default();
    let (rules, prepared) = (Rules::of(world), stage.consolidation(world));
    let names = trial::names(current);
    let asked = prepared.simulator().ask(&names, trial::moves(world), |after| {
        let claims =
            trial::outcome(after, rules, Words::Wanted).map_err(|stuck| Invalid::Scheduling(stuck.to_string()))?;
        let new_results = Err(Invalid::Scheduling(NEW_RESULTS.to_owned()));
        match (claims.as_slice(), command.replacements.as_slice()) {
            ([], []) => Ok(()),
            ([claim], [replacement]) => {
                let choices = after.choices(*claim);
                let offered: BTreeSet<&str> = after.names(&choices).map(AsRef::as_ref).collect();
                let mut chosen = replacement.planned().into_iter().flat_map(|claim| claim.options.iter());
                let is_subset = chosen.all(|name: &InstanceTypeName| offered.contains(name.as_str()));
                if is_subset { Ok(()) } else { new_results }
            }
            _ => new_results,
        }
    });
    asked.map_err(|_| Invalid::Churn(1))?
}
