//! Why does a node stay? Every rule that keeps it, in the order they are checked, not only the first.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use api::{
    annotations::DO_NOT_DISRUPT,
    condition::names::nodeclaim::{CONSOLIDATABLE, DRIFTED},
};
use disruption::{Fix, PoolBudget, Reason, Refusal, Rule, Window};
use jiff::SignedDuration;
use model::{
    object::{NodePool, ObjectKey, Pod, PodDisruptionBudget},
    pdb::{self, Blocking},
};

use crate::{
    Machine, View,
    rule::{Stay, StayFix, said},
};

const WEEK: SignedDuration = SignedDuration::from_hours(7 * 24);

/// Answers about the machines of one cluster.
#[derive(Debug)]
pub struct Holds<'v, 'a> {
    view: &'v View<'a>,
    budgets: BTreeMap<&'a str, Vec<&'a PodDisruptionBudget>>,
    refusals: BTreeMap<String, Vec<&'v Refusal>>,
    purses: BTreeMap<(String, Reason), PoolBudget>,
}

impl<'v, 'a> Holds<'v, 'a> {
    /// What keeps the machines of a view; `refusals` are the engine's own.
    pub fn of(view: &'v View<'a>, refusals: &'v [Refusal]) -> Self {
        let mut budgets: BTreeMap<&str, Vec<&PodDisruptionBudget>> = BTreeMap::new();
        for budget in view.snapshot.objects().pod_disruption_budgets.iter() {
            budgets.entry(&budget.metadata.namespace).or_default().push(budget);
        }
        let mut by_node: BTreeMap<String, Vec<&Refusal>> = BTreeMap::new();
        for refusal in refusals {
            by_node.entry(refusal.node.to_string()).or_default().push(refusal);
        }
        Self {
            view,
            budgets,
            refusals: by_node,
            purses: purses(view),
        }
    }

    /// Every rule that keeps a machine, in the order they are checked.
    pub fn stays(&self, machine: &Machine<'_>) -> Vec<Stay> {
        let mut stays = Vec::new();
        let pool = machine
            .pool
            .as_ref()
            .and_then(|name| self.view.snapshot.objects().node_pools.find("", name));
        let name = machine.pool.as_deref().unwrap_or_default();
        let annotations = machine.member.annotations();
        if annotations.get(DO_NOT_DISRUPT).is_some_and(|value| **value == *"true") {
            stays.push(with_fix(&Rule::DoNotDisrupt, name, Some(node_fix(machine))));
        }
        stays.extend(self.pods(machine, name));
        if let Some(pool) = pool {
            stays.extend(self.policy(machine, pool, name));
        }
        let said: BTreeSet<&str> = stays.iter().map(|stay| stay.rule).collect();
        let others = self.refusals.get(&*machine.name).into_iter().flatten();
        let others: Vec<Stay> = others
            .map(|refusal| Stay::of(refusal))
            .filter(|stay| !said.contains(stay.rule))
            .collect();
        for other in others {
            if stays.iter().all(|stay| stay.rule != other.rule) {
                stays.push(other);
            }
        }
        stays
    }

    /// Protected pods, each; then disruption budgets of pods, each once.
    fn pods(&self, machine: &Machine<'_>, pool: &str) -> Vec<Stay> {
        let now = self.view.now;
        let mut stays: Vec<Stay> = Vec::new();
        for pod in machine.pods.iter().filter(|pod| !pod.is_disruptable(now)) {
            let rule = Rule::ProtectedPod {
                pod: pod.metadata.key(),
                protection: pod.protection(now),
            };
            let change = format!("remove annotation {DO_NOT_DISRUPT}, or give it a duration");
            stays.push(with_fix(&rule, pool, Some(fix("Pod", pod.metadata.key(), change))));
        }
        let mut seen = BTreeSet::new();
        for pod in &machine.pods {
            let budgets = self.blocking(pod);
            if budgets.is_empty() || !seen.insert(budgets.clone()) {
                continue;
            }
            let change = "allow one more disruption: raise maxUnavailable, lower minAvailable, or add a replica";
            let fix = budgets
                .first()
                .map(|budget| fix("PodDisruptionBudget", budget.clone(), change.to_owned()));
            let rule = Rule::PodBudgets {
                pod: pod.metadata.key(),
                budgets,
            };
            stays.push(with_fix(&rule, pool, fix));
        }
        stays
    }

    fn blocking(&self, pod: &Arc<Pod>) -> Vec<ObjectKey> {
        match self.budgets.get(&*pod.metadata.namespace) {
            Some(budgets) => pdb::blocking(pod, budgets.iter().copied(), Blocking::Now, self.view.now),
            None => Vec::new(),
        }
    }

    /// What the pool's policy and budgets say of a machine that would otherwise be looked at.
    fn policy(&self, machine: &Machine<'_>, pool: &NodePool, name: &str) -> Vec<Stay> {
        let mut stays = Vec::new();
        let disruption = &pool.spec.disruption;
        let is_empty = machine.movable().next().is_none();
        let is_never = disruption
            .consolidate_after
            .as_ref()
            .is_none_or(|after| after.span().is_none());
        let pool_fix = |change: &str| Some(fix("NodePool", ObjectKey::cluster_scoped(name), change.to_owned()));
        if pool.is_static() {
            stays.push(with_fix(&Rule::StaticPool, name, None));
        } else if is_never {
            let fix = pool_fix("set spec.disruption.consolidateAfter to a duration");
            stays.push(with_fix(&Rule::ConsolidationDisabled, name, fix));
        } else if !is_empty && *disruption.consolidation_policy == *"WhenEmpty" {
            let fix = pool_fix("set spec.disruption.consolidationPolicy to WhenEmptyOrUnderutilized");
            stays.push(with_fix(&Rule::OnlyWhenEmpty, name, fix));
        }
        let reason = if machine.claim_says(DRIFTED) {
            Reason::Drifted
        } else if is_empty {
            Reason::Empty
        } else {
            Reason::Underutilized
        };
        stays.extend(self.budget(pool, name, reason));
        if !is_never && reason != Reason::Drifted && !machine.claim_says(CONSOLIDATABLE) && machine.is_managed() {
            let at = machine.member.claim.and_then(|claim| {
                let since = claim.status.last_pod_event_time.or(claim.metadata.creation_timestamp)?;
                let after = disruption.consolidate_after.as_ref()?.span()?;
                since.checked_add(after.to_signed()).ok()
            });
            let at = at.filter(|at| *at > self.view.now);
            stays.push(with_fix(&Rule::NotYetConsolidatable { at }, name, None));
        }
        stays
    }

    fn budget(&self, pool: &NodePool, name: &str, reason: Reason) -> Option<Stay> {
        let purse = self.purses.get(&(name.to_owned(), reason)).copied().unwrap_or_default();
        if purse.remaining() > 0 {
            return None;
        }
        let until = self.view.now.checked_add(WEEK).ok()?;
        let windows = disruption::windows(pool, purse.nodes, self.view.now, until).unwrap_or_default();
        let is_open = |window: &&Window| {
            let allowed = window.allowed.get(&reason).copied().unwrap_or_default();
            window.from > self.view.now && allowed > purse.disrupting
        };
        let opens = windows.iter().find(is_open).map(|window| window.from);
        let rule = Rule::Budget {
            reason,
            allowed: purse.allowed,
            disrupting: purse.disrupting,
            opens,
        };
        let change = format!(
            "allow {} at a time for reason {reason} in spec.disruption.budgets",
            purse.disrupting + 1
        );
        let fix = fix("NodePool", ObjectKey::cluster_scoped(name), change);
        Some(with_fix(&rule, name, Some(fix)))
    }
}

fn with_fix(rule: &Rule, pool: &str, fix: Option<Fix>) -> Stay {
    Stay {
        fix: fix.map(|fix| StayFix::of(&fix, rule)),
        ..said(rule, pool)
    }
}

fn node_fix(machine: &Machine<'_>) -> Fix {
    let change = format!("remove annotation {DO_NOT_DISRUPT}");
    fix("Node", ObjectKey::cluster_scoped(&machine.name), change)
}

fn fix(kind: &'static str, object: ObjectKey, change: String) -> Fix {
    Fix { kind, object, change }
}

/// What the budgets of every pool allow for every reason, and what counts already.
fn purses(view: &View<'_>) -> BTreeMap<(String, Reason), PoolBudget> {
    let mut purses = BTreeMap::new();
    for pool in view.snapshot.objects().node_pools.iter() {
        let machines = view
            .managed()
            .filter(|machine| machine.pool.as_ref() == Some(&pool.metadata.name));
        let (mut nodes, mut disrupting) = (0_u32, 0_u32);
        for machine in machines {
            match machine.state {
                crate::State::Launching | crate::State::Starting => {}
                crate::State::Leaving | crate::State::NotReady => {
                    nodes += 1;
                    disrupting += 1;
                }
                crate::State::Ready | crate::State::Cordoned => nodes += 1,
            }
        }
        for reason in Reason::ALL {
            let allowed = disruption::allowed(pool, nodes, reason, view.now);
            let budget = PoolBudget {
                nodes,
                disrupting,
                allowed,
            };
            purses.insert((pool.metadata.name.to_string(), reason), budget);
        }
    }
    purses
}
