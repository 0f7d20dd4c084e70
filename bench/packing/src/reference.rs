//! What does upstream plan? One process of the oracle that answers any number of files.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use model::requirement::RequirementSpec;
use serde::{Deserialize, Serialize};

use crate::given::Given;

/// A running oracle.
pub struct Reference {
    child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// What to ask about a file.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Ask {
    /// How often to solve; upstream's answers vary.
    pub runs: u32,
    /// Goroutines that try nodes for a pod.
    pub workers: u32,
    /// Whether to write down each decision.
    pub log: bool,
}

impl Ask {
    /// A number of runs with upstream's defaults.
    pub const fn runs(runs: u32) -> Self {
        Self {
            runs,
            workers: 1,
            log: false,
        }
    }
}

#[derive(Serialize)]
struct Question<'a> {
    file: &'a Path,
    #[serde(flatten)]
    ask: Ask,
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    plans: Vec<Plan>,
    #[serde(default)]
    error: String,
}

/// One run of upstream's scheduler.
#[derive(Debug, Clone, Deserialize)]
pub struct Plan {
    /// Pods it tried to place.
    pub pods: u64,
    /// What its claims cost an hour, at the cheapest launch of each.
    pub price: f64,
    /// Nodes to launch.
    pub claims: Vec<Claim>,
    /// Nodes that get pods.
    pub existing: Vec<Existing>,
    /// Pods without a place, and why.
    pub errors: BTreeMap<String, String>,
    /// Pods it did not try, and why.
    pub ignored: BTreeMap<String, String>,
    /// What making the scheduler cost.
    pub construct: Cost,
    /// What solving cost.
    pub solve: Cost,
    /// What it started from, when the log was asked for.
    pub given: Option<Given>,
    /// Each decision in order, when asked for.
    #[serde(default)]
    pub log: Vec<Decision>,
}

/// A node to launch.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Claim {
    /// Whose template it is made from.
    pub node_pool: String,
    /// The pods on it.
    pub pods: Vec<String>,
    /// What the NodeClaim to be created asks of a machine, but for the types.
    pub launch: Vec<RequirementSpec>,
    /// The types that remain.
    pub instance_types: Vec<String>,
    /// The cheapest launch.
    pub cheapest_price: Option<f64>,
}

/// A node that gets pods.
#[derive(Debug, Clone, Deserialize)]
pub struct Existing {
    /// The node.
    pub node: String,
    /// The pods it gets.
    pub pods: Vec<String>,
}

/// What a step took.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cost {
    /// Time on the wall.
    pub nanoseconds: u64,
    /// Bytes allocated in total.
    pub bytes_allocated: u64,
    /// Allocations.
    pub allocations: u64,
}

/// What became of a pod taken from the queue.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// The pod.
    pub pod: String,
    /// How often it was tried; each try but the last ended in a relaxation.
    pub attempts: u32,
    /// Where it went.
    pub place: Place,
    /// The node, when it went to one.
    pub node: Option<String>,
    /// The claim's number in the order of opening, when it went to one.
    pub claim: Option<usize>,
    /// The claim's NodePool.
    pub node_pool: Option<String>,
    /// The claim's requirements with the pod on it.
    #[serde(default)]
    pub requirements: Vec<RequirementSpec>,
    /// How many types the claim has left.
    #[serde(default)]
    pub types: usize,
}

/// Where a pod went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// To a node there is.
    Node,
    /// To a claim opened earlier.
    Claim,
    /// To a claim opened for it.
    New,
    /// Back to the queue.
    None,
}

impl Reference {
    /// Starts the oracle; builds it first when need be.
    pub fn start() -> Result<Self> {
        let program = rig::reference::program()?;
        let mut child = Command::new(&program)
            .arg("serve")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot run {}", program.display()))?;
        let questions = child.stdin.take().context("the oracle has no input")?;
        let answers = BufReader::new(child.stdout.take().context("the oracle has no output")?);
        Ok(Self {
            child,
            questions,
            answers,
        })
    }

    /// Upstream's plans for a snapshot file, one for each run.
    pub fn solve(&mut self, file: &Path, ask: Ask) -> Result<Vec<Plan>> {
        let question = serde_json::to_string(&Question { file, ask })?;
        writeln!(self.questions, "{question}").context("the oracle does not listen")?;
        let mut line = String::new();
        self.answers
            .read_line(&mut line)
            .context("the oracle does not answer")?;
        let answer: Answer =
            serde_json::from_str(&line).with_context(|| format!("the oracle's answer on {}", file.display()))?;
        if !answer.error.is_empty() {
            bail!("the oracle on {}: {}", file.display(), answer.error);
        }
        Ok(answer.plans)
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        // It ends by itself once its input does; killing it spares the wait for a run nobody reads.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
