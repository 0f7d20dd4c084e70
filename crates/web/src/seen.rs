//! What the page is told: a cluster at a moment, who looks at it, and who answers what the command line answers too.

use async_trait::async_trait;
use jiff::Timestamp;
use ledger::Record;
use model::snapshot::Snapshot;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A cluster at a moment.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Everything a decision needs.
    pub snapshot: Snapshot,
    /// The latest decisions, in the order they were first taken.
    pub decisions: Vec<Record>,
    /// How the demo fares, where it is one.
    pub stage: Option<Stage>,
}

/// How a demo fares.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Stage {
    /// How many times faster than the wall time passes; 0: it stands still.
    pub speed: u32,
    /// What happened last, in words.
    pub said: Option<(Timestamp, String)>,
}

/// Looks at a cluster.
#[async_trait]
pub trait Eye: Send + Sync + 'static {
    /// The cluster now, or why it cannot be seen.
    async fn look(&self) -> Result<Seen, String>;

    /// Does something to the simulation of a demo, and says what.
    async fn act(&self, act: &str, argument: Option<u32>) -> Result<String, String> {
        let _ = argument;
        Err(format!("{act} is not for this cluster: nothing on the page changes it"))
    }
}

/// Answers as the command line does, so that a document has one shape wherever it is read.
pub trait Answers: Send + Sync + 'static {
    /// A decision in a few words.
    fn what(&self, record: &Record) -> String;

    /// A decision as `dovetail why ID -o json` has it.
    fn decision(&self, record: &Record) -> Value;

    /// What each NodePool allows in the coming days, as in `dovetail budgets -o json`, by its name.
    fn budgets(&self, snapshot: &Snapshot) -> Vec<(String, Value)>;

    /// What a change comes to, as in `dovetail whatif -o json`.
    fn whatif(&self, snapshot: &Snapshot, asked: &Asked) -> Result<Value, Refused>;
}

/// Changes to look at, each written as the flag of `dovetail whatif` that it is named after.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Asked {
    /// `shop/deploy/web=50`
    pub scale: Vec<String>,
    /// `b`
    pub zone_down: Vec<String>,
    /// `+40%`
    pub spot_price: Option<String>,
    /// `-m5`
    pub instance_family: Vec<String>,
    /// A node's name.
    pub remove_node: Vec<String>,
    /// `nodepool/general.spec.limits.cpu=276`
    pub set: Vec<String>,
}

/// A question that cannot be answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// What was asked.
    pub error: String,
    /// Why that cannot be.
    pub why: String,
    /// What to ask instead.
    pub next: String,
}

/// What kind of cluster it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Simulated; people may do things to it.
    Demo,
    /// A controller acts on it.
    Acting,
    /// Read from files: nothing changes.
    Dump,
}

/// What stays the same while the page is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Title {
    /// What people call the cluster.
    pub cluster: String,
    /// The cloud and its region, where that is known.
    pub place: String,
    /// What kind of cluster it is.
    pub mode: Mode,
    /// Our version.
    pub version: String,
    /// What can be done to a demo.
    pub acts: Vec<Act>,
}

/// Something that can be done to a demo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Act {
    /// What it is called in requests.
    pub id: String,
    /// On its button.
    pub label: String,
    /// In a sentence.
    pub about: String,
}
