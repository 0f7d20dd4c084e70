//! What does upstream decide? Its three methods of consolidation on a snapshot file, each asked by itself.

use std::{collections::BTreeMap, path::Path, process::Command};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// What upstream's methods say.
#[derive(Debug, Clone, Deserialize)]
pub struct Consolidation {
    /// How many nodes there are.
    pub nodes: u64,
    /// In the order they are asked.
    pub methods: Vec<Method>,
}

/// What one method says.
#[derive(Debug, Clone, Deserialize)]
pub struct Method {
    /// `empty`, `multi` or `single`.
    pub name: String,
    /// By name of the node.
    pub candidates: Vec<Candidate>,
    /// How many nodes of each pool may go.
    pub budgets: BTreeMap<String, u64>,
    /// What it would do.
    pub commands: Vec<CommandOf>,
    /// What it published, by the name of the node or claim.
    pub events: BTreeMap<String, Vec<String>>,
    /// What deciding took.
    pub cost: Cost,
}

/// A node it may take.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Candidate {
    /// The node.
    pub node: String,
    /// Its pool.
    pub node_pool: String,
    /// What an hour costs.
    pub price: f64,
    /// What disturbing it costs.
    pub disruption_cost: f64,
}

/// What a method would do.
#[derive(Debug, Clone, Deserialize)]
pub struct CommandOf {
    /// `delete` or `replace`.
    pub decision: String,
    /// The nodes that go.
    pub candidates: Vec<String>,
    /// The nodes that come.
    pub replacements: Vec<Claim>,
    /// What an hour costs less.
    pub savings: f64,
}

/// A node that comes.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Claim {
    /// Whose template it is made from.
    pub node_pool: String,
    /// What it may become.
    pub instance_types: Vec<String>,
}

/// What a step took.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub struct Cost {
    /// Time on the wall.
    pub nanoseconds: u64,
}

/// Asks upstream about a file; the oracle is built when it is first asked.
pub fn consolidate(file: &Path) -> Result<Consolidation> {
    let program = rig::reference::program()?;
    let output = Command::new(&program).arg("consolidate").arg(file).output();
    let output = output.with_context(|| format!("cannot run {}", program.display()))?;
    if !output.status.success() {
        bail!(
            "the oracle on {}: {}",
            file.display(),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    serde_json::from_slice(&output.stdout).with_context(|| format!("the oracle's answer on {}", file.display()))
}
