//! Why a pod has no place, as data: what each condition of each NodePool leaves, and the smallest change that helps.
//!
//! Upstream's words come from the same last step of the pod's ladder. A change counts as a fix only after a run with it
//! placed the pod.

mod candidate;
mod change;
mod constraint;
mod excerpt;
mod existing;
mod funnel;
mod labels;
mod pod_walk;
mod search;
#[cfg(test)]
mod tests;
mod topology_walk;
mod trial;

use std::{collections::BTreeSet, sync::Arc};

use model::{
    object::{NodePoolName, ObjectKey},
    plan::{Plan, RefusalKind, Unplaced},
    snapshot::Snapshot,
};
use rustc_hash::FxHashMap;

pub use self::{
    change::{Change, Fix, Target},
    constraint::{Constraint, LabelField, TopologyKind},
    existing::{NodeReason, NodeVerdict},
};
use self::{excerpt::Excerpt, funnel::Funnels, search::Search};
use crate::{Options, Warm, demand::Demand, finish, problem::Problem, refusal, run::Run, supply::Supply};

/// Why one pod has no place.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// The pod.
    pub pod: ObjectKey,
    /// What kind of refusal it is.
    pub kind: RefusalKind,
    /// Upstream's words for it.
    pub message: Arc<str>,
    /// Every NodePool, heaviest first; empty for pods that are not tried at all.
    pub pools: Vec<PoolFunnel>,
    /// What speaks against the nodes there are, the commonest reason first.
    pub existing: Vec<NodeVerdict>,
    /// It would have a place if no other pod wanted one.
    pub is_crowded_out: bool,
    /// Changes that let it in, the smallest first.
    pub fixes: Vec<Fix>,
}

/// How far a pod comes with one NodePool.
#[derive(Debug, Clone, PartialEq)]
pub struct PoolFunnel {
    /// The pool.
    pub pool: NodePoolName,
    /// In the order of upstream's tests; the first is what there is before any.
    pub stages: Vec<Stage>,
    /// The first stage that leaves nothing.
    pub blocking: Option<usize>,
    /// Its nodes lack a label that the pod asks for and another NodePool has: that one is meant.
    pub is_beside: bool,
}

impl PoolFunnel {
    /// The stage that leaves nothing.
    pub fn blocking_stage(&self) -> Option<&Stage> {
        self.blocking.and_then(|at| self.stages.get(at))
    }

    /// How far the pod comes: the place of the blocking condition among all, and what was left before it.
    pub fn progress(&self) -> (u8, usize) {
        let Some(at) = self.blocking else {
            return (u8::MAX, 0);
        };
        let before = at.checked_sub(1).map_or(0, |before| self.stages[before].remaining);
        (self.stages[at].constraint.place(), before)
    }
}

/// What one condition leaves.
#[derive(Debug, Clone, PartialEq)]
pub struct Stage {
    /// The condition.
    pub constraint: Constraint,
    /// The field it comes from, and its value.
    pub text: String,
    /// How many instance types are left.
    pub remaining: usize,
}

/// Why these pods have no place; pods that have one are left out.
pub fn explain(snapshot: &Snapshot, options: &Options, pods: &[ObjectKey]) -> Vec<Explanation> {
    let wanted: BTreeSet<&ObjectKey> = pods.iter().collect();
    planned(snapshot, options, |key| wanted.contains(key)).1
}

/// The faithful plan of a snapshot and why its unplaced pods have no place, from one run.
pub fn plan_explained(snapshot: &Snapshot, options: &Options) -> (Plan, Vec<Explanation>) {
    planned(snapshot, options, |_| true)
}

fn planned(snapshot: &Snapshot, options: &Options, is_wanted: impl Fn(&ObjectKey) -> bool) -> (Plan, Vec<Explanation>) {
    let (demand, supply) = (Demand::of(snapshot), Supply::of(snapshot, options));
    let ignored = demand.ignored.clone();
    let problem = Problem::new(snapshot, demand, supply, options);
    let mut run = Run::new(&problem);
    let left = run.solve();
    let mut plan = finish::plan(&mut run, &left);
    plan.unplaced.extend(ignored);
    plan.unplaced.sort_by_key(|unplaced| unplaced.pod.metadata.key());
    let unplaced: Vec<_> = plan
        .unplaced
        .iter()
        .filter(|unplaced| is_wanted(&unplaced.pod.metadata.key()))
        .collect();
    let excerpt = (!unplaced.is_empty()).then(|| Excerpt::of(&problem)).flatten();
    let explanations = explanations(&mut run, &unplaced, excerpt.as_ref());
    (plan, explanations)
}

/// Why a finished run left these pods out. Pods of a class have their reasons in common, which are worked out once.
fn explanations(run: &mut Run<'_>, unplaced: &[&Unplaced], excerpt: Option<&Excerpt<'_>>) -> Vec<Explanation> {
    let problem = run.problem;
    let mut positions: FxHashMap<ObjectKey, u32> = FxHashMap::default();
    for (at, entry) in (0..).zip(&problem.pods) {
        positions.insert(entry.pod.metadata.key(), at);
    }
    let mut known: FxHashMap<(u32, u32, u32), Explanation> = FxHashMap::default();
    let mut warm = Warm::default();
    let mut explanations = Vec::with_capacity(unplaced.len());
    for unplaced in unplaced {
        let key = unplaced.pod.metadata.key();
        let Some(pod) = positions.get(&key).copied() else {
            explanations.push(bare(unplaced));
            continue;
        };
        let entry = problem.intake.pods[pod as usize];
        let class = (entry.combo, entry.shape, entry.extra);
        let like = known
            .entry(class)
            .or_insert_with(|| of_pod(run, pod, unplaced, &mut warm, excerpt));
        explanations.push(Explanation {
            pod: key,
            ..like.clone()
        });
    }
    explanations
}

/// The explanation of a pod that is not tried at all.
fn bare(unplaced: &Unplaced) -> Explanation {
    Explanation {
        pod: unplaced.pod.metadata.key(),
        kind: unplaced.kind,
        message: Arc::clone(&unplaced.message),
        pools: Vec::new(),
        existing: Vec::new(),
        is_crowded_out: false,
        fixes: Vec::new(),
    }
}

fn of_pod(
    run: &mut Run<'_>,
    pod: u32,
    unplaced: &Unplaced,
    warm: &mut Warm,
    excerpt: Option<&Excerpt<'_>>,
) -> Explanation {
    let entry = run.problem.intake.pods[pod as usize];
    let refused = refusal::refused(run, pod, entry);
    let pools = Funnels::new(run, pod, &refused).all();
    let existing = existing::verdicts(run, pod, refused.step);
    let mut search = Search::new(run.problem, unplaced, warm, excerpt);
    let fixes = search.fixes(&pools);
    Explanation {
        pools,
        existing,
        is_crowded_out: search.is_crowded_out,
        fixes,
        ..bare(unplaced)
    }
}
