//! Carries commands on: waits until every replacement is up, and only then deletes what they replace. A replacement that
//! does not come up ends the command, and the nodes stay.

use std::{sync::Arc, time::Duration};

use api::{annotations::NODECLAIM_TERMINATION_TIMESTAMP, condition::names::nodeclaim::INITIALIZED};
use async_trait::async_trait;
use disruption::{Candidate, MachineShape, PastMove};
use futures_util::future::join_all;
use jiff::{SignedDuration, Timestamp};
use model::object::{Labels, NodeClaim, NodeClaimName, ObjectKey, Text, condition};
use runtime::{ApiError, Delete, Settings, queue::Backoff};
use state::{Change, State};

use super::{
    measure,
    memory::{Memory, UnderWay},
    start, tell,
};
use crate::{
    Cluster, Controller, Next, Problem,
    mutation::{self, Mutation},
    node_claim::is_gone,
    patch::Lock,
    records,
};

/// How often a command that waits is looked at when nothing changes.
const POLL: Duration = Duration::from_secs(1);

/// `disruption.queue`
pub(super) struct CommandQueue {
    memory: Arc<Memory>,
}

/// What is seen of a replacement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sight {
    /// It is up.
    Initialized,
    /// It is on its way.
    Starting,
    /// It will not come.
    Gone,
}

/// What is to be done about a command.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    /// Replacements are on their way.
    Wait,
    /// All is there: the nodes may go.
    Terminate,
    /// It is given up.
    GiveUp(&'static str),
}

fn decide(sights: &[Sight], age: SignedDuration, patience: SignedDuration) -> Step {
    if sights.contains(&Sight::Gone) {
        Step::GiveUp("replacement was deleted")
    } else if sights.iter().all(|sight| *sight == Sight::Initialized) {
        Step::Terminate
    } else if age > patience {
        Step::GiveUp("command reached timeout, waiting for replacement initialization")
    } else {
        Step::Wait
    }
}

impl CommandQueue {
    pub(super) fn new(memory: Arc<Memory>) -> Self {
        Self { memory }
    }

    /// Deletes the claims that are to go; false when some could not be.
    async fn terminate(&self, cluster: &Cluster, mut under_way: UnderWay) -> Result<bool, Problem> {
        let left: Vec<_> = under_way
            .command
            .candidates
            .iter()
            .filter(|candidate| !under_way.deleted.contains(&candidate.claim))
            .cloned()
            .collect();
        let deletions = left.iter().map(|candidate| delete(cluster, &under_way, candidate));
        let results = join_all(deletions).await;
        let mut failed = Vec::new();
        for (candidate, result) in left.iter().zip(results) {
            match result {
                Ok(()) => {
                    under_way.deleted.insert(candidate.claim.clone());
                }
                Err(error) => failed.push(Problem::Api(error)),
            }
        }
        self.memory.update(under_way);
        for problem in &failed {
            tracing::error!(error = %problem, "deleting a nodeclaim that is being disrupted");
        }
        Ok(failed.is_empty())
    }

    async fn give_up(&self, cluster: &Cluster, under_way: &UnderWay, why: &str) {
        start::unmark(cluster, &under_way.command.candidates).await;
        let lost = self.memory.fail(&under_way.id, cluster.now());
        measure::failed(cluster.metrics(), &under_way.command, lost);
        tell::failed(&under_way.command, &under_way.id, why);
        records::aborted(cluster, under_way.decision, &under_way.command, why);
    }

    fn succeed(&self, cluster: &Cluster, under_way: &UnderWay) {
        let moves = cluster.look(|state| past_moves(state, under_way));
        self.memory.succeed(&under_way.id, moves, cluster.now());
        records::went_on(cluster, under_way.decision, "draining");
        tracing::debug!(command = %under_way.command.log_text(&under_way.id), "command succeeded");
    }
}

/// Looks at a replacement; who is not in the state may only not have been seen yet.
async fn look_at(cluster: &Cluster, name: &NodeClaimName) -> Result<(Sight, Option<Arc<NodeClaim>>), ApiError> {
    let key = ObjectKey::cluster_scoped(name.as_str());
    let claim = match cluster.get::<NodeClaim>(&key) {
        Some(claim) => claim,
        None => match cluster.api().get::<NodeClaim>(&key).await {
            Err(error) if error.is_not_found() => return Ok((Sight::Gone, None)),
            read => {
                let claim = read?;
                cluster.fold(|state| state.apply(claim.clone()));
                claim.into()
            }
        },
    };
    let sight = if claim.metadata.is_deleting() {
        Sight::Gone
    } else if condition::holds(&claim.status.conditions, INITIALIZED) || mutation::has(Mutation::GoesFirst) {
        Sight::Initialized
    } else {
        Sight::Starting
    };
    Ok((sight, Some(claim)))
}

/// Deletes a candidate's claim, and only the one that was judged. Fine when it is gone.
async fn delete(cluster: &Cluster, under_way: &UnderWay, candidate: &Candidate) -> Result<(), ApiError> {
    let Some(uid) = under_way.leaving.get(&candidate.claim) else {
        return Ok(());
    };
    if let Some(bound) = candidate.drain_bound {
        tighten(cluster, &candidate.claim, bound).await?;
    }
    let key = ObjectKey::cluster_scoped(candidate.claim.as_str());
    let options = Delete {
        uid: Some(uid.clone()),
        ..Delete::default()
    };
    match cluster.delete::<NodeClaim>(&key, &options).await {
        Ok(()) => {
            tell::terminating(cluster, &under_way.command, candidate, under_way.decision);
            measure::disrupted(cluster, &under_way.command, candidate);
            Ok(())
        }
        Err(error) if is_gone(cluster, &key, uid, &error).await? => Ok(()),
        Err(error) => Err(error),
    }
}

/// Writes by when a drain must be over. A moment that is there and not later is kept.
async fn tighten(cluster: &Cluster, claim: &NodeClaimName, bound: SignedDuration) -> Result<(), ApiError> {
    let key = ObjectKey::cluster_scoped(claim.as_str());
    let claim: NodeClaim = match cluster.api().get(&key).await {
        Err(error) if error.is_not_found() => return Ok(()),
        read => read?,
    };
    let deadline = cluster.now().saturating_add(bound).unwrap_or(Timestamp::MAX);
    cluster.update(&claim, &due(&claim, deadline), Lock::Version).await?;
    Ok(())
}

/// The claim whose drain must be over by then, or earlier if it must be already.
fn due(claim: &NodeClaim, deadline: Timestamp) -> NodeClaim {
    let mut after = claim.clone();
    let known = claim.metadata.annotations.get(NODECLAIM_TERMINATION_TIMESTAMP);
    let known = known.and_then(|known| known.parse::<Timestamp>().ok());
    if known.is_none_or(|known| deadline < known) {
        let mut annotations = claim.metadata.annotations.to_vec();
        let text = deadline.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        annotations.push((NODECLAIM_TERMINATION_TIMESTAMP.into(), text.into()));
        after.metadata.annotations = Labels::from_pairs(annotations);
    }
    after
}

/// What the loop breaker remembers of a command: nothing of one that only deletes.
fn past_moves(state: &State, under_way: &UnderWay) -> Vec<PastMove> {
    let command = &under_way.command;
    let launched: Vec<MachineShape> = under_way
        .awaited
        .iter()
        .filter_map(|awaited| state.get::<NodeClaim>(&ObjectKey::cluster_scoped(awaited.name.as_str())))
        .map(|claim| shape(claim))
        .collect();
    if launched.is_empty() {
        return Vec::new();
    }
    let pools = command.node_pools().into_iter();
    let moves = pools.map(|pool| PastMove {
        at: under_way.began,
        pool: pool.clone(),
        removed: command
            .candidates
            .iter()
            .filter(|candidate| candidate.node_pool == *pool)
            .map(|candidate| MachineShape {
                instance_type: candidate.instance_type.clone(),
                capacity_type: candidate.capacity_type.clone(),
            })
            .collect(),
        launched: launched.clone(),
        requests_digest: command.requests_digest(),
    });
    moves.collect()
}

fn shape(claim: &NodeClaim) -> MachineShape {
    let label = |key: &str| claim.metadata.labels.get(key).cloned().unwrap_or_default();
    MachineShape {
        instance_type: label(api::labels::INSTANCE_TYPE).into(),
        capacity_type: label(api::labels::CAPACITY_TYPE),
    }
}

#[async_trait]
impl Controller for CommandQueue {
    type Key = Text;

    fn name(&self) -> &'static str {
        "disruption.queue"
    }

    fn workers(&self, settings: &Settings) -> usize {
        settings.workers(100, 1000)
    }

    fn backoff(&self) -> Backoff {
        Backoff {
            least: POLL,
            most: Duration::from_secs(10),
        }
    }

    /// Claims that commands wait for or take.
    fn concerns(&self, change: &Change, _: &State) -> Vec<Text> {
        match change {
            Change::NodeClaim(claim) => claim
                .latest()
                .map(|claim| self.memory.concerned_by(&claim.metadata.name))
                .unwrap_or_default(),
            _ => Vec::new(),
        }
    }

    async fn reconcile(&self, cluster: &Cluster, id: &Text) -> Result<Next, Problem> {
        let Some(mut under_way) = self.memory.get(id) else {
            return Ok(Next::Change);
        };
        let mut sights = Vec::new();
        for awaited in &mut under_way.awaited {
            if !awaited.is_initialized {
                let (sight, claim) = look_at(cluster, &awaited.name).await?;
                awaited.is_initialized = sight == Sight::Initialized;
                if let Some(claim) = claim {
                    let decision = under_way.decision;
                    tell::awaited(cluster, &under_way.command, &claim, awaited.is_initialized, decision);
                }
                sights.push(sight);
            }
        }
        self.memory.update(under_way.clone());
        let age = cluster.now().duration_since(under_way.began);
        match decide(&sights, age, self.memory.patience()) {
            Step::GiveUp(why) => {
                self.give_up(cluster, &under_way, why).await;
                Ok(Next::Change)
            }
            Step::Terminate if self.terminate(cluster, under_way.clone()).await? => {
                self.succeed(cluster, &under_way);
                Ok(Next::Change)
            }
            Step::Terminate if age > self.memory.patience() => {
                self.give_up(cluster, &under_way, "command reached timeout, deleting nodeclaims")
                    .await;
                Ok(Next::Change)
            }
            Step::Wait | Step::Terminate => Ok(Next::After(POLL)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_end_of_a_drain_is_only_ever_brought_forward() {
        let cases = [
            (None, "2026-11-16T10:05:00Z"),
            (Some("2026-11-16T10:01:00Z"), "2026-11-16T10:01:00Z"),
            (Some("2026-11-16T10:05:00Z"), "2026-11-16T10:05:00Z"),
            (Some("2026-11-16T11:00:00Z"), "2026-11-16T10:05:00Z"),
            (Some("soon"), "2026-11-16T10:05:00Z"),
        ];
        for (known, expected) in cases {
            let annotations = json!({NODECLAIM_TERMINATION_TIMESTAMP: known, "a": "b"});
            let claim: NodeClaim = serde_json::from_value(json!({"metadata": {"annotations": annotations}}))
                .or_else(|_| serde_json::from_value(json!({"metadata": {"annotations": {"a": "b"}}})))
                .unwrap();
            let after = due(&claim, "2026-11-16T10:05:00Z".parse().unwrap());
            let written = after.metadata.annotations.get(NODECLAIM_TERMINATION_TIMESTAMP);
            assert_eq!(written.map(|text| &**text), Some(expected), "{known:?}");
        }
    }

    #[test]
    fn nodes_go_only_when_every_replacement_is_up() {
        use Sight::{Gone, Initialized, Starting};
        let minutes = SignedDuration::from_mins;
        let late = "command reached timeout, waiting for replacement initialization";
        let cases = [
            (vec![], 0, Step::Terminate),
            (vec![Initialized], 0, Step::Terminate),
            (vec![Initialized, Starting], 0, Step::Wait),
            (vec![Initialized, Starting], 10, Step::Wait),
            (vec![Initialized, Starting], 11, Step::GiveUp(late)),
            (vec![Initialized, Initialized], 11, Step::Terminate),
            (vec![Gone, Initialized], 0, Step::GiveUp("replacement was deleted")),
        ];
        for (sights, age, expected) in cases {
            let step = decide(&sights, minutes(age), minutes(10));
            assert_eq!(step, expected, "{sights:?} after {age} minutes");
        }
    }
}
