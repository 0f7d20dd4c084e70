//! Rules on PodDisruptionBudgets, PD01 to PD04: arithmetic, not timing.

use model::object::{IntOrString, PodDisruptionBudget};
use serde_json::Value;

use crate::{
    finding::Found,
    world::{Scaler, Workload, World},
};

/// A PodDisruptionBudget and its place.
struct Pdb {
    document: usize,
    budget: PodDisruptionBudget,
}

impl World {
    fn budgets(&self) -> Vec<Pdb> {
        let read = |at: &usize| {
            let budget = serde_json::from_value::<PodDisruptionBudget>(self.value(*at).clone()).ok()?;
            Some(Pdb { document: *at, budget })
        };
        self.pdbs.iter().filter_map(read).collect()
    }

    /// The workloads whose pods a budget protects.
    fn protected(&self, pdb: &Pdb) -> Vec<&Workload> {
        let Some(selector) = &pdb.budget.spec.selector else {
            return Vec::new();
        };
        let is_its = |workload: &&Workload| {
            let is_near = *pdb.budget.metadata.namespace == *workload.namespace;
            is_near && !workload.is_fragment() && !workload.ends() && selector.matches(&workload.labels)
        };
        self.workloads.iter().filter(is_its).collect()
    }

    /// The scalers of a budget's pods: of its workloads, or of one that is not here and has a name it selects by.
    fn scalers_of(&self, pdb: &Pdb) -> Vec<&Scaler> {
        let protected = self.protected(pdb);
        let is_its = |scaler: &&Scaler| {
            if let Some(target) = self.target_of(scaler) {
                return protected.iter().any(|workload| workload.document == target.document);
            }
            let selectors = pdb.budget.spec.selector.iter();
            let labels = selectors.flat_map(|selector| selector.match_labels.iter());
            let mut names = labels.filter(|(key, _)| matches!(&**key, "app" | "app.kubernetes.io/name"));
            *pdb.budget.metadata.namespace == *scaler.namespace && names.any(|(_, name)| **name == *scaler.target.1)
        };
        self.scalers.iter().filter(is_its).collect()
    }
}

/// How many of so many pods may go at once; as the disruption controller counts, shares are rounded up.
fn allowed(budget: &PodDisruptionBudget, pods: i64) -> Option<i64> {
    let spec = &budget.spec;
    let scaled = |bound: &IntOrString| match bound {
        IntOrString::Int(count) => Some(i64::from(*count)),
        IntOrString::String(share) => {
            let percent: i64 = share.strip_suffix('%')?.parse().ok()?;
            Some((pods * percent + 99) / 100)
        }
    };
    match (&spec.max_unavailable, &spec.min_available) {
        (Some(most), _) => scaled(most),
        (None, Some(least)) => Some(pods - scaled(least)?),
        // Without either, at least one must stay.
        (None, None) => Some(pods - 1),
    }
}

pub(crate) fn never_evicts(world: &World) -> Vec<Found> {
    let mut found = Vec::new();
    for pdb in world.budgets() {
        let written = world.value(pdb.document);
        let spec = &written["spec"];
        let field = if spec["maxUnavailable"].is_null() {
            "minAvailable"
        } else {
            "maxUnavailable"
        };
        let says = format!("{field} {}", bare(&spec[field]));
        let protected = world.protected(&pdb);
        // With any number of pods: nothing may be missing.
        let is_closed = [1, 7, 1000]
            .iter()
            .all(|pods| allowed(&pdb.budget, *pods).is_some_and(|allowed| allowed <= 0))
            && !matches!(pdb.budget.spec.min_available, Some(IntOrString::Int(_)));
        let text = if is_closed {
            Some(format!("can never allow an eviction: {says}"))
        } else {
            most_pods(world, &protected)
                .filter(|pods| *pods > 0 && allowed(&pdb.budget, *pods).is_some_and(|allowed| allowed <= 0))
                .map(|pods| format!("can never allow an eviction: {says} of {pods} {}", replicas(pods)))
        };
        if let Some(text) = text {
            let path = format!("spec.{field}");
            let value = bare(&spec[field]);
            let one = Found::new(pdb.document, path, text).fix("maxUnavailable: 1");
            found.push(if value.is_empty() {
                one
            } else {
                one.replacing(format!("{field}: {}", spelled(&spec[field])), "maxUnavailable: 1")
            });
        }
    }
    found
}

fn replicas(pods: i64) -> &'static str {
    if pods == 1 { "replica" } else { "replicas" }
}

/// The most pods a budget's workloads can have, where all of them say it.
fn most_pods(world: &World, protected: &[&Workload]) -> Option<i64> {
    if protected.is_empty() {
        return None;
    }
    let most = |workload: &&Workload| match world.scaler_of(workload) {
        Some(scaler) => Some(scaler.most),
        None if workload.kind == "Pod" => Some(1),
        None if workload.kind == "DaemonSet" => None,
        // A Deployment that says nothing has one pod, or the number somebody set by hand.
        None => workload.replicas,
    };
    protected.iter().map(most).sum()
}

pub(crate) fn two_pdbs(world: &World) -> Vec<Found> {
    let budgets = world.budgets();
    let mut found = Vec::new();
    for (at, pdb) in budgets.iter().enumerate() {
        for workload in world.protected(pdb) {
            let earlier = budgets.iter().take(at);
            let other = earlier.rev().find(|other| {
                world
                    .protected(other)
                    .iter()
                    .any(|protected| protected.document == workload.document)
            });
            if let Some(other) = other {
                let text = format!(
                    "selects the pods of {}/{}, as pdb/{} does: the eviction API refuses pods with two budgets",
                    workload.kind.to_lowercase(),
                    workload.name,
                    other.budget.metadata.name
                );
                found.push(Found::new(pdb.document, "spec.selector", text));
            }
        }
    }
    found
}

pub(crate) fn min_number(world: &World) -> Vec<Found> {
    let mut found = Vec::new();
    for pdb in world.budgets() {
        let Some(IntOrString::Int(least)) = pdb.budget.spec.min_available else {
            continue;
        };
        let scalers = world.scalers_of(&pdb);
        let at_minimum = scalers.iter().map(|scaler| scaler.least).min();
        if at_minimum.is_none_or(|pods| pods > i64::from(least)) || least < 1 {
            continue;
        }
        let text = format!("minAvailable: {least}: with {least} replicas no eviction ever; use maxUnavailable: 1");
        found.push(
            Found::new(pdb.document, "spec.minAvailable", text)
                .fix("maxUnavailable: 1, which holds at any number of replicas")
                .replacing(format!("minAvailable: {least}"), "maxUnavailable: 1"),
        );
    }
    found
}

fn bare(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// As it is most often written.
fn spelled(value: &Value) -> String {
    value.to_string()
}
