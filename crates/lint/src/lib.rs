//! What hurts in NodePools, NodeClasses, budgets, workloads, PodDisruptionBudgets and the installation.
//!
//! A rule is a row of [`RULES`]: a code, a severity, what it finds, why that hurts, what mends it, and a function from
//! the [`World`] of all objects given to what it found. Rules compute with the engine's own parts: requirements and
//! catalogues, budgets and schedules. They read no file and ask no cluster.
//!
//! | to find | look in |
//! |---|---|
//! | the catalogue of rules | `rule.rs` |
//! | a rule | the file of its family: `node_pool/`, `node_class.rs`, `budget.rs`, `workload/`, `pdb.rs`, `installation.rs` |
//! | how text becomes objects with lines | [`document`] |
//! | the manifests that show a rule | `cases/CODE.yaml` |

mod budget;
pub mod document;
mod finding;
mod installation;
mod nearest;
mod node_class;
mod node_pool;
pub mod page;
mod pdb;
mod rejected;
mod rule;
mod supply;
mod workload;
mod world;

pub use finding::{Edit, Finding, Severity};
pub use nearest::nearest;
pub use rule::{Needs, RULES, Rule, rule};
pub use world::{IGNORE, Rejection, Scope, World};

/// Everything the rules find, the gravest first; within a severity by code, then in the order in which objects were
/// given. What an object's annotation [`IGNORE`] silences, with a reason, is left out.
pub fn findings(world: &World) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for rule in RULES {
        let found = (rule.check)(world);
        let told = found.into_iter().filter_map(|found| world.finding(rule, found));
        findings.extend(told);
    }
    findings.sort_by_key(|finding| finding.severity);
    findings
}
