//! What the cloud offers, kept up to date in the state: asked again when a pool, a node class or the cloud's own mind
//! changes, and every five minutes.

mod merge;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use cloud::CloudError;
use jiff::Timestamp;
use model::{
    object::{NodeClaim, NodePool, NodePoolName},
    snapshot::CatalogType,
};
use runtime::{Settings, queue::Backoff};
use state::{Change, State, Transition};

use crate::{Cluster, Controller, Next, Problem, node_claim::Managed};

/// How long an answer is taken for true while nothing is known to have changed.
const FRESH: Duration = Duration::from_mins(5);
/// How long the types of a pool are kept in use while the cloud fails to answer.
const KEPT: Duration = Duration::from_mins(15);
/// The one item of work.
const ALL: &str = "catalog";

/// Keeps the catalogue. Named after upstream's controller that refreshes prices.
#[derive(Default)]
pub struct CatalogController {
    known: Mutex<Known>,
}

/// What the cloud said last.
#[derive(Default)]
struct Known {
    pools: BTreeMap<NodePoolName, Answer>,
    /// What the answers were for: when they were asked for, the cloud's count, and what the pools looked like.
    asked: Option<Asked>,
}

#[derive(Debug, Clone, PartialEq)]
struct Asked {
    at: Timestamp,
    offers_version: u64,
    subjects: Vec<Subject>,
}

/// What an answer depends on: a pool, as it is written, and its node class, with its status.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Subject {
    pool: NodePoolName,
    generation: i64,
    node_class: Option<String>,
}

/// A pool's types, and why they could not be read the last time.
#[derive(Debug, Default)]
struct Answer {
    types: Option<(Timestamp, Vec<Arc<CatalogType>>)>,
    problem: Option<CloudError>,
}

impl CatalogController {
    /// Why a pool's types could not be read; none when they could.
    pub fn problem(&self, pool: &NodePoolName) -> Option<CloudError> {
        self.lock().pools.get(pool).and_then(|answer| answer.problem.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the cloud must be asked again.
    fn is_stale(&self, now: &Asked) -> bool {
        let known = self.lock();
        let failed = known.pools.values().any(|answer| answer.problem.is_some());
        failed || known.asked.as_ref().is_none_or(|before| is_outdated(before, now))
    }

    async fn ask(&self, cluster: &Cluster, pools: &[Arc<NodePool>], asked: Asked) {
        let mut answers = Vec::new();
        for pool in pools {
            answers.push((pool.name(), cluster.cloud().instance_types(pool).await));
        }
        let mut known = self.lock();
        let mut before = std::mem::take(&mut known.pools);
        for (pool, answer) in answers {
            let earlier = before.remove(&pool).unwrap_or_default();
            known.pools.insert(pool.clone(), take(&pool, earlier, answer, asked.at));
        }
        known.asked = Some(asked);
    }
}

/// An answer that was given long ago, or for something else.
fn is_outdated(before: &Asked, now: &Asked) -> bool {
    before.offers_version != now.offers_version
        || before.subjects != now.subjects
        || now.at.duration_since(before.at).unsigned_abs() >= FRESH
}

/// The answer to go by: the new one, or for a while the earlier one if there is none.
fn take(
    pool: &NodePoolName,
    earlier: Answer,
    answer: Result<Vec<Arc<CatalogType>>, CloudError>,
    now: Timestamp,
) -> Answer {
    match answer {
        Ok(types) => {
            if types.is_empty() {
                tracing::info!("NodePool.name" = %pool, "skipping, no resolved instance types found");
            }
            Answer {
                types: Some((now, types)),
                problem: None,
            }
        }
        Err(problem) => {
            tracing::error!("NodePool.name" = %pool, error = %problem, "skipping, unable to resolve instance types");
            let types = earlier
                .types
                .filter(|(at, _)| is_passing(&problem) && now.duration_since(*at).unsigned_abs() < KEPT);
            Answer {
                types,
                problem: Some(problem),
            }
        }
    }
}

/// A failure that says nothing about what the pool may use.
fn is_passing(problem: &CloudError) -> bool {
    matches!(problem, CloudError::Throttled { .. } | CloudError::Other(_))
}

fn subject(pool: &NodePool, state: &State) -> Subject {
    let reference = pool.spec.template.spec.node_class_ref.as_ref();
    let class = reference.and_then(|reference| state.node_class(reference));
    Subject {
        pool: pool.name(),
        generation: pool.metadata.generation,
        node_class: class.map(|class| format!("{} {:?}", class.metadata.uid, class.metadata.resource_version)),
    }
}

#[async_trait]
impl Controller for CatalogController {
    type Key = &'static str;

    fn name(&self) -> &'static str {
        "state.pricing"
    }

    fn workers(&self, _: &Settings) -> usize {
        1
    }

    /// A cloud that fails is not asked a hundred times a second.
    fn backoff(&self) -> Backoff {
        Backoff {
            least: Duration::from_secs(1),
            most: FRESH,
        }
    }

    fn initial(&self) -> Vec<&'static str> {
        vec![ALL]
    }

    fn concerns(&self, change: &Change, _: &State) -> Vec<&'static str> {
        let concerns = match change {
            // Status aside: usage and conditions of a pool change all the time.
            Change::NodePool(pool) => pool.changes_generation(),
            Change::NodeClass(_) => true,
            // A claim that was given up may have taught the cloud what is not to be had.
            Change::NodeClaim(claim) => is_given_up(claim),
            _ => false,
        };
        if concerns { vec![ALL] } else { Vec::new() }
    }

    async fn reconcile(&self, cluster: &Cluster, _: &Self::Key) -> Result<Next, Problem> {
        let offers_version = cluster.cloud().offers_version();
        let managed = Managed::by(&**cluster.cloud());
        let (pools, asked) = cluster.look(|state| {
            let pools = state.all::<NodePool>().iter();
            let pools: Vec<_> = pools.filter(|pool| managed.pool(pool)).cloned().collect();
            let subjects = pools.iter().map(|pool| subject(pool, state)).collect();
            let asked = Asked {
                at: cluster.now(),
                offers_version,
                subjects,
            };
            (pools, asked)
        });
        if !self.is_stale(&asked) {
            return Ok(Next::After(FRESH));
        }
        self.ask(cluster, &pools, asked).await;
        let (catalog, problems) = {
            let known = self.lock();
            let types = |answer: &Answer| {
                answer
                    .types
                    .as_ref()
                    .map(|(_, types)| types.clone())
                    .unwrap_or_default()
            };
            let offers = known.pools.iter().map(|(pool, answer)| (pool.clone(), types(answer)));
            let problems = known.pools.values().filter_map(|answer| answer.problem.clone());
            let catalog = merge::merge(offers, &cluster.cloud().well_known_labels());
            (catalog, problems.map(Problem::Cloud).collect::<Vec<_>>())
        };
        cluster.fold(|state| {
            if *state.catalog() != catalog {
                state.set_catalog(catalog);
            }
            None
        });
        if problems.is_empty() {
            Ok(Next::After(FRESH))
        } else {
            Err(Problem::Several(problems))
        }
    }
}

fn is_given_up(claim: &Transition<NodeClaim>) -> bool {
    let is_deleting = |claim: &Option<Arc<NodeClaim>>| claim.as_ref().is_some_and(|it| it.metadata.is_deleting());
    claim.is_gone() || is_deleting(&claim.after) && !is_deleting(&claim.before)
}

#[cfg(test)]
mod tests;
