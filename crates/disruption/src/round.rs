//! One round: the methods in order, until one finds something.

use std::collections::BTreeMap;

use jiff::Timestamp;
use model::{object::NodePoolName, price::Price, snapshot::Snapshot};

use crate::{
    budget::Budgets,
    command::Command,
    facts::{Facts, Rotation},
    method::Method,
    options::Options,
    refusal::Refusal,
};

/// What a round comes to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Round {
    /// What to do: all of one method; independent of each other, to be started together.
    pub commands: Vec<Command>,
    /// Why the other nodes stay, as far as a method that was asked would have taken them.
    pub refusals: Vec<Refusal>,
    /// The methods that were asked, in order.
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
    /// It stopped for lack of work budget.
    pub is_cut_short: bool,
}

/// Asks the methods in order; the first that finds something ends the round.
///
/// The snapshot is the cluster as it is; claims in `facts.marked` count as going.
pub fn decide(snapshot: &Snapshot, facts: &Facts, options: &Options, now: Timestamp) -> Round {
    let _ = (snapshot, facts, options, now);
    Round::default()
}

/// Asks one method, whatever the others would find.
pub fn ask(method: Method, snapshot: &Snapshot, facts: &Facts, options: &Options, now: Timestamp) -> Pass {
    let _ = (snapshot, facts, options, now);
    Pass {
        method,
        eligible: 0,
        budgets: None,
        commands: Vec::new(),
        refusals: Vec::new(),
        settled: None,
        is_cut_short: false,
    }
}

/// What the nodes of each NodePool cost together: every claim with a type, a zone and a capacity type, going or not.
pub fn tracked_costs(snapshot: &Snapshot) -> BTreeMap<NodePoolName, Price> {
    let _ = snapshot;
    BTreeMap::new()
}
