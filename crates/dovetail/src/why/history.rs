//! What was decided and said about a machine: how it came, what the cloud told of it, and where it went.

use insight::{Machine, why::node::NodeExplanation};
use jiff::Timestamp;
use ledger::{Action, Id, Record, words::hourly};
use serde::Serialize;

use crate::{
    decisions::what,
    failure::Failure,
    notice::{Ledger, Notice},
};

/// Why a node is there, with what was decided and said about it.
#[derive(Debug, Serialize)]
pub(super) struct Explained {
    #[serde(flatten)]
    pub(super) node: NodeExplanation,
    /// The decision that brought it, by what its claim says; none where nobody wrote one.
    pub(super) decision: Option<String>,
    /// Decisions about it, the newest first.
    pub(super) decisions: Vec<Decided>,
    /// What the cloud said about it, in order.
    pub(super) notices: Vec<Notice>,
}

/// A decision in brief.
#[derive(Debug, Serialize)]
pub(super) struct Decided {
    pub(super) id: String,
    pub(super) time: Timestamp,
    pub(super) action: &'static str,
    pub(super) reason: String,
    pub(super) text: String,
    /// What else could have been done, with what became of it; only of the launch.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) options: Vec<String>,
}

impl Explained {
    pub(super) fn of(node: NodeExplanation, machine: &Machine<'_>, ledger: &Ledger) -> Self {
        let names = names(machine);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let own = machine.member.claim.and_then(|claim| {
            let id = claim.metadata.annotations.get(api::annotations::DECISION)?;
            id.parse::<Id>().ok()
        });
        let mut records = ledger.decisions(&names);
        // A launch names the claim only once it is made; the claim names it at once.
        let launch = ledger.records.iter().find(|record| Some(record.id) == own);
        if let Some(launch) = launch.filter(|launch| records.iter().all(|known| known.id != launch.id)) {
            records.push(launch);
        }
        Self {
            notices: ledger.notices(&names),
            decision: own.map(|id| id.to_string()),
            decisions: records.into_iter().map(Decided::of).collect(),
            node,
        }
    }

    /// The decision that brought it.
    pub(super) fn launch(&self) -> Option<&Decided> {
        let own = self.decision.as_deref()?;
        self.decisions.iter().find(|decided| decided.id == own)
    }
}

/// What a machine is called: by its claim and by its node.
fn names(machine: &Machine<'_>) -> Vec<String> {
    let claim = machine.member.claim.map(|claim| claim.metadata.name.to_string());
    let node = machine.member.node.map(|node| node.metadata.name.to_string());
    claim.into_iter().chain(node).collect()
}

impl Decided {
    fn of(record: &Record) -> Self {
        let option = |offer: &ledger::Offer| {
            let price = offer.usd_h.map(|usd| format!(" {}", hourly(usd))).unwrap_or_default();
            format!("{}{price}: {}", offer.offer, offer.verdict)
        };
        let is_launch = matches!(record.action, Action::Launch | Action::Replace);
        Self {
            id: record.id.to_string(),
            time: record.time,
            action: record.word(),
            reason: record.reason.clone(),
            text: what(record),
            options: record.options.iter().filter(|_| is_launch).map(option).collect(),
        }
    }
}

/// Nothing of this name is there; but perhaps somebody wrote down where it went.
pub(super) fn gone(failure: Failure, name: &str, ledger: &Ledger) -> Failure {
    let decisions = ledger.decisions(&[name]);
    let Some(last) = decisions.first() else { return failure };
    let id = last.id.to_string();
    Failure {
        why: format!(
            "it is gone; the last decision about it: {} {}, {} at {}",
            last.word(),
            what(last),
            last.reason,
            last.time
        ),
        next: format!("dovetail why {id}"),
        ..failure
    }
}
