//! How far a pod without a place came: how many instance types each condition leaves, which one leaves none, and the
//! smallest change that would let it in.

use model::price::Price;
use packing::explain::{self, Explanation, PoolFunnel, Target};
use serde::{Deserialize, Serialize};

use crate::usd;

/// The way of one pod through the NodePool where it gets furthest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Funnel {
    /// The pool.
    pub node_pool: String,
    /// In the order they are checked; the first is what there is before any condition.
    pub steps: Vec<Step>,
    /// Other NodePools, and what rules each out.
    pub other_pools: Vec<RuledOut>,
    /// The smallest change that helps.
    pub fix: Option<Fix>,
    /// Other changes that help, as sentences.
    pub other_fixes: Vec<String>,
}

/// One condition.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// What is looked at: `arch`, `zone`, `fits`, …
    pub name: String,
    /// What is asked of it.
    pub note: String,
    /// How many instance types are left.
    pub left: usize,
}

/// A NodePool the pod has no use for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuledOut {
    /// The pool.
    pub node_pool: String,
    /// What rules it out.
    pub why: String,
}

/// How far a pod comes in one NodePool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Way {
    /// The pool.
    pub node_pool: String,
    /// In the order they are checked; the first is what there is before any condition.
    pub steps: Vec<Step>,
}

impl Way {
    /// The way through every pool that was tried, the heaviest first.
    pub(crate) fn all(explanation: &Explanation) -> Vec<Self> {
        let way = |pool: &PoolFunnel| Self {
            node_pool: pool.pool.to_string(),
            steps: steps(pool),
        };
        explanation.pools.iter().map(way).collect()
    }
}

/// A change that lets the pod in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fix {
    /// What to change: `NodePool/general: raise limits.cpu by 12`.
    pub text: String,
    /// Lines of YAML, each with `+`, `-` or a blank in front.
    pub patch: Vec<String>,
    /// What the node it then gets costs.
    #[serde(with = "usd::maybe")]
    pub usd_h: Option<Price>,
    /// The words of `dovetail whatif` that try it first; none where it takes no such change.
    #[serde(default)]
    pub whatif: Vec<String>,
}

impl Fix {
    fn of(fix: &explain::Fix) -> Self {
        let texts: Vec<_> = fix.changes.iter().map(|change| change.text.as_str()).collect();
        let lines = fix.changes.iter().flat_map(|change| change.patch.lines());
        Self {
            text: texts.join("; and "),
            patch: lines.map(|line| format!("  {line}")).collect(),
            usd_h: fix.launch.as_ref().map(|launch| launch.price),
            whatif: whatif(fix),
        }
    }
}

/// A what-if sets limits of NodePools; what takes anything else, it cannot try.
fn whatif(fix: &explain::Fix) -> Vec<String> {
    let words = fix.changes.iter().map(|change| {
        let Target::NodePool(pool) = &change.target else {
            return None;
        };
        let new = change
            .new
            .as_ref()
            .filter(|_| change.path.starts_with("spec.limits."))?;
        Some(["--set".to_owned(), format!("nodepool/{pool}.{}={new}", change.path)])
    });
    let words: Option<Vec<_>> = words.collect();
    words.unwrap_or_default().into_iter().flatten().collect()
}

/// What there is, and every condition that leaves fewer, up to the one that leaves none.
fn steps(funnel: &PoolFunnel) -> Vec<Step> {
    let until = funnel.blocking.map_or(funnel.stages.len(), |at| at + 1);
    let mut before = usize::MAX;
    let mut steps = Vec::new();
    for stage in &funnel.stages[..until] {
        if stage.remaining < before {
            steps.push(Step {
                name: stage.constraint.name(),
                note: stage.text.clone(),
                left: stage.remaining,
            });
        }
        before = stage.remaining;
    }
    steps
}

impl Funnel {
    /// The NodePool that a change would help, or where the pod gets furthest, and what else is worth a line; none for pods that were not tried.
    pub fn of(explanation: &Explanation) -> Option<Self> {
        let pools = explanation.pools.iter();
        let fix = explanation.fixes.first();
        let changed = |fix: &explain::Fix| {
            fix.changes.iter().find_map(|change| match &change.target {
                Target::NodePool(pool) => Some(pool.clone()),
                Target::Pod | Target::Settings => None,
            })
        };
        let helped = fix.and_then(|fix| fix.node_pool.clone().or_else(|| changed(fix)));
        let helped = helped.and_then(|helped| pools.clone().find(|pool| pool.pool == helped));
        // Of pools that are equally far the heaviest, which comes first.
        let furthest = helped.or_else(|| {
            pools
                .clone()
                .rev()
                .max_by_key(|pool| (!pool.is_beside, pool.progress()))
        })?;
        let others = pools.filter(|pool| pool.pool != furthest.pool);
        let ruled_out = |pool: &PoolFunnel| RuledOut {
            node_pool: pool.pool.to_string(),
            why: pool
                .blocking_stage()
                .map_or_else(String::new, |stage| stage.text.clone()),
        };
        Some(Self {
            node_pool: furthest.pool.to_string(),
            steps: steps(furthest),
            other_pools: others.map(ruled_out).collect(),
            fix: fix.map(Fix::of),
            other_fixes: explanation.fixes.iter().skip(1).map(|fix| Fix::of(fix).text).collect(),
        })
    }

    /// The condition that leaves nothing.
    pub fn stops_at(&self) -> Option<&Step> {
        self.steps.iter().find(|step| step.left == 0)
    }
}
