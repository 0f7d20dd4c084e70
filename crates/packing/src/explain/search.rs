//! Which smallest change lets a pod in? Changes that could help are tried, the smallest first, until a run agrees.
//!
//! A pod is tried alone, so that a change is not credited with what other pods give up, and then among all the others; a
//! pod that has a place when it is alone is tried among the others only. Where no single change is enough, the one that
//! gets furthest is added to.

use std::cmp::Reverse;

use model::{
    object::{NodePool, Pod},
    plan::{Plan, RefusalKind, Unplaced},
    quantity::Quantity,
    resources::ResourceName,
    snapshot::{Snapshot, Table},
};

use super::{
    PoolFunnel,
    candidate::{self, Pools},
    change::{Candidate, Change, Fix},
    constraint::Constraint,
    excerpt::{Excerpt, is_plain},
    trial::{Trial, Verdict},
};
use crate::{Warm, problem::Problem};

/// How many fixes are enough.
const MOST_FIXES: usize = 3;
/// How many changes make a fix at most.
const MOST_CHANGES: usize = 3;

/// The search for one pod.
#[derive(Debug)]
pub(super) struct Search<'a> {
    snapshot: &'a Snapshot,
    kind: RefusalKind,
    trial: Trial<'a>,
    /// The pod has a place when it is alone.
    pub(super) is_crowded_out: bool,
}

/// What changes are tried on.
#[derive(Debug, Clone)]
struct Scene {
    snapshot: Snapshot,
    /// No other pod waits in it.
    is_alone: bool,
}

impl Scene {
    fn changed(&self, change: impl Fn(&Snapshot) -> Snapshot) -> Self {
        Self {
            snapshot: change(&self.snapshot),
            ..*self
        }
    }
}

/// Changes that were not enough, and how far the pod comes with them.
struct Attempt {
    candidates: Vec<Candidate>,
    scene: Scene,
    funnel: PoolFunnel,
}

impl<'a> Search<'a> {
    pub(super) fn new(
        problem: &'a Problem,
        unplaced: &Unplaced,
        warm: &'a mut Warm,
        excerpt: Option<&'a Excerpt<'a>>,
    ) -> Self {
        Self {
            snapshot: &problem.snapshot,
            kind: unplaced.kind,
            trial: Trial::new(problem, unplaced.pod.metadata.key(), warm, excerpt),
            is_crowded_out: false,
        }
    }

    /// Changes that let the pod in, the smallest first.
    pub(super) fn fixes(&mut self, pools: &[PoolFunnel]) -> Vec<Fix> {
        let pod = self.snapshot.objects().pods.get(self.trial.key());
        let Some(pod) = pod else { return Vec::new() };
        match self.kind {
            RefusalKind::Unschedulable | RefusalKind::Deferred => {}
            RefusalKind::DeviceRequestsIgnored => return self.device_fixes(pod),
            RefusalKind::OptedOut | RefusalKind::Invalid => return Vec::new(),
        }
        let (base, funnels) = self.base(pod, pools);
        // Where the pod's labels say which NodePool is meant, that one is helped; another one only if nothing else helps.
        let (beside, meant): (Vec<_>, Vec<_>) = funnels.into_iter().partition(|funnel| funnel.is_beside);
        let fixes = self.fixes_of(&base, &meant);
        // What takes no part is to be made ready, which no change to an object does.
        let is_out = |funnel: &PoolFunnel| {
            let stage = funnel.blocking_stage();
            stage.is_some_and(|stage| stage.constraint == Constraint::TakesNoPart)
        };
        if fixes.is_empty() && (meant.is_empty() || !meant.iter().all(is_out)) {
            return self.fixes_of(&base, &beside);
        }
        fixes
    }

    /// Changes to what blocks these NodePools.
    fn fixes_of(&mut self, base: &Scene, funnels: &[PoolFunnel]) -> Vec<Fix> {
        let mut candidates: Vec<_> = funnels
            .iter()
            .flat_map(|funnel| self.candidates(base, funnel))
            .collect();
        candidates.sort_by_key(|(candidate, funnel)| (candidate.weight, Reverse(funnel.progress())));
        let (mut fixes, mut attempts) = (Vec::new(), Vec::new());
        let mut tried: Vec<Change> = Vec::new();
        for (candidate, funnel) in candidates {
            let is_known =
                tried.contains(&candidate.change) || fixes.iter().any(|fix| is_more_than(&candidate.change, fix));
            if fixes.len() == MOST_FIXES || is_known {
                continue;
            }
            tried.push(candidate.change.clone());
            fixes.extend(self.attempt(&[], base, &candidate, &funnel, &mut attempts));
        }
        if fixes.is_empty() {
            fixes.extend(self.add_changes(attempts));
        }
        fixes
    }

    /// Looking at device requests, or doing without them.
    fn device_fixes(&mut self, pod: &Pod) -> Vec<Fix> {
        let candidates = candidate::with_devices(pod, self.snapshot.settings());
        let found = candidates.into_iter().filter_map(|candidate| {
            let changed = candidate.applied(self.snapshot);
            match self.trial.run(&changed) {
                Verdict::Placed(plan) => Some(self.fix(&[candidate], &plan)),
                Verdict::Blocked(_) | Verdict::Spent => None,
            }
        });
        found.collect()
    }

    /// What changes are made to: the pod alone, or among the others if alone it has a place or needs them.
    fn base(&mut self, pod: &Pod, pools: &[PoolFunnel]) -> (Scene, Vec<PoolFunnel>) {
        let affinity = pod.spec.affinity.as_ref().and_then(|it| it.pod_affinity.as_ref());
        if affinity.is_none_or(|it| it.required.is_empty()) {
            let alone = self.alone();
            match self.tried(&alone) {
                Verdict::Blocked(funnels) => return (alone, funnels),
                Verdict::Placed(_) => self.is_crowded_out = true,
                Verdict::Spent => {}
            }
        }
        (self.among(), pools.to_vec())
    }

    /// The cluster as it is.
    fn among(&self) -> Scene {
        Scene {
            snapshot: self.snapshot.clone(),
            is_alone: false,
        }
    }

    fn alone(&self) -> Scene {
        let others = self.snapshot.provisionable_pods().map(|pod| pod.metadata.key());
        let others = others.filter(|key| key != self.trial.key());
        let pods = self.snapshot.objects().pods.without(others);
        let snapshot = self.snapshot.overlaid(|objects| {
            objects.pods = pods;
            objects.capacity_buffers = Table::default();
        });
        Scene {
            snapshot,
            is_alone: true,
        }
    }

    /// What could help with the condition that blocks a NodePool.
    fn candidates(&mut self, scene: &Scene, funnel: &PoolFunnel) -> Vec<(Candidate, PoolFunnel)> {
        let base = &scene.snapshot;
        let pod = base.objects().pods.get(self.trial.key());
        let (Some(stage), Some(pod), Some(pool)) = (funnel.blocking_stage(), pod, base.node_pool(&funnel.pool)) else {
            return Vec::new();
        };
        let candidates = match &stage.constraint {
            Constraint::Limit { .. } => self.limits(scene, pool, &stage.constraint),
            Constraint::Resource { .. } => {
                let mut found = self.narrowing(scene, pool, funnel);
                found.extend(candidate::candidates(pod, pool, base.settings(), funnel));
                found
            }
            _ => candidate::candidates(pod, pool, base.settings(), funnel),
        };
        candidates
            .into_iter()
            .map(|candidate| (candidate, funnel.clone()))
            .collect()
    }

    fn attempt(
        &mut self,
        before: &[Candidate],
        base: &Scene,
        candidate: &Candidate,
        funnel: &PoolFunnel,
        attempts: &mut Vec<Attempt>,
    ) -> Option<Fix> {
        let candidates: Vec<_> = before.iter().chain([candidate]).cloned().collect();
        let mut scene = base.changed(|snapshot| candidate.applied(snapshot));
        let mut verdict = self.tried(&scene);
        if let Verdict::Placed(alone) = &mut verdict
            && scene.is_alone
            && !self.is_settled(&scene.snapshot, alone)
        {
            // The others may leave it no room; what its node costs without them is what the change costs.
            let alone = std::mem::take(alone);
            scene = candidates
                .iter()
                .fold(self.among(), |all, candidate| all.changed(|all| candidate.applied(all)));
            verdict = match self.tried(&scene) {
                Verdict::Placed(_) => Verdict::Placed(alone),
                other => other,
            };
        }
        match verdict {
            Verdict::Placed(plan) => Some(self.fix(&candidates, &plan)),
            Verdict::Blocked(funnels) => {
                let funnel = funnels.into_iter().find(|after| {
                    let is_further = after.progress() > funnel.progress();
                    let is_other = after.blocking_stage().map(|stage| &stage.constraint)
                        != funnel.blocking_stage().map(|stage| &stage.constraint);
                    after.pool == funnel.pool && (is_further || is_other)
                });
                attempts.extend(funnel.map(|funnel| Attempt {
                    candidates,
                    scene,
                    funnel,
                }));
                None
            }
            Verdict::Spent => None,
        }
    }

    fn tried(&mut self, scene: &Scene) -> Verdict {
        if scene.is_alone {
            self.trial.run_alone(&scene.snapshot)
        } else {
            self.trial.run_among(&scene.snapshot)
        }
    }

    /// Whether the place that a plan has for the pod alone is its own, whatever the other pods do: a node to be launched,
    /// where no limit, reservation or rule about other pods is in the way.
    fn is_settled(&self, snapshot: &Snapshot, plan: &Plan) -> bool {
        let Some(claim) = self.trial.claim(plan) else {
            return false;
        };
        let is_limited = |pool: &NodePool| !pool.spec.limits.is_empty();
        let launch = claim
            .cheapest
            .as_ref()
            .and_then(|launch| launch.capacity_type.as_deref());
        let is_reserved = launch == Some(api::labels::CAPACITY_TYPE_RESERVED);
        !is_reserved
            && snapshot
                .node_pool(&claim.node_pool)
                .is_some_and(|pool| !is_limited(pool))
            && snapshot.settings().default_constraints.is_empty()
            && self.snapshot.provisionable_pods().all(|pod| is_plain(pod))
    }

    fn fix(&self, candidates: &[Candidate], plan: &Plan) -> Fix {
        let claim = self.trial.claim(plan);
        Fix {
            changes: candidates.iter().map(|candidate| candidate.change.clone()).collect(),
            is_verified: true,
            node_pool: claim.map(|claim| claim.node_pool.clone()),
            launch: claim.and_then(|claim| claim.cheapest.clone()),
        }
    }

    /// One more change on top of those that got furthest.
    fn add_changes(&mut self, mut attempts: Vec<Attempt>) -> Option<Fix> {
        loop {
            attempts.retain(|attempt| attempt.candidates.len() < MOST_CHANGES);
            let key = |attempt: &Attempt| (attempt.funnel.progress(), Reverse(attempt.candidates.len()));
            let best = (0..attempts.len()).rev().max_by_key(|at| key(&attempts[*at]))?;
            let best = attempts.swap_remove(best);
            let mut candidates = self.candidates(&best.scene, &best.funnel);
            candidates.sort_by_key(|(candidate, _)| candidate.weight);
            for (candidate, funnel) in candidates {
                let fix = self.attempt(&best.candidates, &best.scene, &candidate, &funnel, &mut attempts);
                if fix.is_some() {
                    return fix;
                }
            }
        }
    }

    /// Limits that left no type as large as the pod: each is in its way as much as what the types left lack.
    fn narrowing(&mut self, scene: &Scene, pool: &NodePool, funnel: &PoolFunnel) -> Vec<Candidate> {
        let stages = funnel.stages.windows(2).filter_map(|pair| match pair {
            [before, after] if after.remaining < before.remaining => match &after.constraint {
                limit @ Constraint::Limit { .. } => Some(limit),
                _ => None,
            },
            _ => None,
        });
        let limits: Vec<_> = stages.collect();
        let raised = limits.into_iter().flat_map(|limit| self.limits(scene, pool, limit));
        raised.filter(|candidate| candidate.change.new.is_some()).collect()
    }

    /// A limit that leaves room: for one more node of the smallest type that would do, for what the cheapest plan buys, or
    /// for all that upstream's may come to.
    fn limits(&mut self, scene: &Scene, pool: &NodePool, limit: &Constraint) -> Vec<Candidate> {
        let Constraint::Limit {
            resource,
            in_nodes,
            used,
            ..
        } = limit
        else {
            return Vec::new();
        };
        let mut open = pool.clone();
        open.spec.limits.remove(resource.as_str());
        let (base, open) = (&scene.snapshot, scene.changed(|base| base.with_node_pool(open.clone())));
        let plan = match self.tried(&open) {
            Verdict::Placed(plan) => plan,
            Verdict::Blocked(_) => return vec![Pools::limit(pool, resource, None)],
            Verdict::Spent => return Vec::new(),
        };
        let mut raised: Vec<_> = self
            .smallest(base, pool, &plan, resource)
            .map(|more| *used + more)
            .into_iter()
            .collect();
        if self.is_crowded_out {
            let bought = self
                .trial
                .cheapest(&open.snapshot)
                .map(|plan| bought(base, pool, &plan, resource));
            raised.extend(bought.map(|more| *in_nodes + more));
            raised.push((*used).max(Quantity::ZERO) + needed(base, pool, &plan, resource));
        }
        let mut raised: Vec<_> = raised.into_iter().map(|new| rounded_up(resource, new)).collect();
        raised.sort();
        raised.dedup();
        let raise = |new: Quantity| Pools::limit(pool, resource, Some(new));
        raised.into_iter().map(raise).collect()
    }

    /// The least of a resource among the types the pod's claim may become.
    fn smallest(&self, base: &Snapshot, pool: &NodePool, plan: &Plan, resource: &ResourceName) -> Option<Quantity> {
        if *resource == ResourceName::Nodes {
            return Some(Quantity::from_units(1));
        }
        let claim = self.trial.claim(plan).filter(|claim| claim.node_pool == pool.name())?;
        let types = claim.options.iter().filter_map(|name| base.catalog().get(name));
        types.map(|entry| entry.capacity.amount(resource.as_str())).min()
    }
}

/// Whether a limit is raised further than is enough already: that is no other way out.
fn is_more_than(change: &Change, fix: &Fix) -> bool {
    let is_same = |other: &Change| (&other.target, &other.path) == (&change.target, &change.path);
    let is_limit = change.path.starts_with("spec.limits.") && change.new.is_some();
    is_limit && matches!(&fix.changes[..], [enough] if is_same(enough))
}

/// What a plan buys of a resource in a NodePool, if every claim becomes the machine it is meant for.
fn bought(base: &Snapshot, pool: &NodePool, plan: &Plan, resource: &ResourceName) -> Quantity {
    let claims = plan.claims.iter().filter(|claim| claim.node_pool == pool.name());
    if *resource == ResourceName::Nodes {
        return Quantity::from_units(i64::try_from(claims.count()).unwrap_or(i64::MAX));
    }
    let launches = claims.filter_map(|claim| claim.cheapest.as_ref());
    let entries = launches.filter_map(|launch| base.catalog().get(&launch.instance_type));
    let amounts = entries.map(|entry| entry.capacity.amount(resource.as_str()));
    amounts.fold(Quantity::ZERO, |sum, amount| sum + amount)
}

/// What all claims of a plan in a NodePool may take of a resource.
fn needed(base: &Snapshot, pool: &NodePool, plan: &Plan, resource: &ResourceName) -> Quantity {
    let claims = plan.claims.iter().filter(|claim| claim.node_pool == pool.name());
    let largest = claims.map(|claim| {
        let types = claim.options.iter().filter_map(|name| base.catalog().get(name));
        types.map(|entry| entry.capacity.amount(resource.as_str())).max()
    });
    largest.flatten().fold(Quantity::ZERO, |sum, largest| sum + largest)
}

/// A number people would write: whole units, whole Gi.
fn rounded_up(resource: &ResourceName, quantity: Quantity) -> Quantity {
    let unit = match resource {
        ResourceName::Memory | ResourceName::EphemeralStorage => 1_000_000_000 << 30,
        _ => 1_000_000_000_i128,
    };
    let units = quantity.nanos().div_euclid(unit) + i128::from(quantity.nanos().rem_euclid(unit) != 0);
    Quantity::from_nanos(units * unit, quantity.format())
}
