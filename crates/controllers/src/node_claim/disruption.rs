//! May a claim's node go, and why? The conditions `Drifted` and `Consolidatable`, which the disruption loop reads.

mod consolidatable;
mod drift;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use api::condition::names::nodeclaim;
use async_trait::async_trait;
use cloud::CloudError;
use jiff::Timestamp;
use model::object::{NodeClaim, NodePool, ObjectKey, Text, Uid};
use runtime::Settings;
use state::{Change, State};

use super::{Managed, changed_claim};
use crate::{Cluster, Controller, Next, Problem, conditions, patch::Lock};
use consolidatable::Consolidatable;
use drift::Drift;

/// `nodeclaim.disruption`
pub struct Disruption {
    managed: Managed,
    /// When a claim's instance type was last found among those its pool offers.
    offered: Mutex<BTreeMap<Uid, Timestamp>>,
}

impl Disruption {
    /// For the claims that are ours.
    pub fn new(managed: Managed) -> Self {
        Self {
            managed,
            offered: Mutex::default(),
        }
    }

    /// Why a launched claim is no longer what its pool and its cloud want; the cloud is asked last.
    async fn drift(&self, cluster: &Cluster, pool: &NodePool, claim: &NodeClaim) -> Result<Option<Text>, CloudError> {
        if let Some(reason) = ::disruption::drift_from_pool(pool, claim) {
            return Ok(Some(reason.into()));
        }
        let now = cluster.now();
        if drift::is_type_due(claim, self.last_offered(&claim.metadata.uid), now) {
            match cluster.look(|state| drift::of_instance_type(claim, pool, state.catalog())) {
                Some(reason) => return Ok(Some(reason.into())),
                None => self.found(&claim.metadata.uid, now),
            }
        }
        let reason = cluster.cloud().is_drifted(claim).await?;
        Ok(reason.filter(|reason| !reason.is_empty()).map(Text::from))
    }

    fn last_offered(&self, claim: &Uid) -> Option<Timestamp> {
        let offered = self.offered.lock().unwrap_or_else(PoisonError::into_inner);
        offered.get(claim).copied()
    }

    fn found(&self, claim: &Uid, now: Timestamp) {
        let mut offered = self.offered.lock().unwrap_or_else(PoisonError::into_inner);
        offered.retain(|_, at| now.duration_since(*at) < drift::TYPE_CHECKED);
        offered.insert(claim.clone(), now);
    }
}

/// The claim as its drift makes it.
fn with_drift(claim: &NodeClaim, drift: &Drift, now: Timestamp) -> NodeClaim {
    let kind = nodeclaim::DRIFTED;
    let has = claim.condition(kind).is_some();
    let mut after = claim.clone();
    match drift {
        Drift::Unknown => {}
        Drift::None if !has => {}
        Drift::None => conditions::change(
            nodeclaim::TYPES,
            &claim.metadata,
            &mut after.status.conditions,
            now,
            |set| {
                set.clear(kind).ok();
            },
        ),
        Drift::Drifted(reason) => {
            if !has {
                tracing::debug!("NodeClaim.name" = %claim.metadata.name, reason = %reason, "marking drifted");
            }
            let (metadata, list) = (&claim.metadata, &mut after.status.conditions);
            conditions::change(nodeclaim::TYPES, metadata, list, now, |set| {
                set.set_true_with_reason(kind, reason, reason);
            });
        }
    }
    after
}

/// The claim as its quiet makes it.
fn with_quiet(claim: NodeClaim, quiet: Consolidatable, now: Timestamp) -> NodeClaim {
    let kind = nodeclaim::CONSOLIDATABLE;
    let has = claim.condition(kind).is_some();
    let is = quiet == Consolidatable::Yes;
    if !is && !has {
        return claim;
    }
    let mut after = claim.clone();
    let (metadata, list) = (&claim.metadata, &mut after.status.conditions);
    conditions::change(nodeclaim::TYPES, metadata, list, now, |set| {
        if is {
            set.set_true(kind);
        } else {
            set.clear(kind).ok();
        }
    });
    if is && !has {
        tracing::debug!("NodeClaim.name" = %claim.metadata.name, "marking consolidatable");
    }
    after
}

/// Writes the claim as it should be. Somebody faster makes us look again.
async fn write(cluster: &Cluster, before: &NodeClaim, after: &NodeClaim) -> Result<bool, Problem> {
    match cluster.update_status(before, after, Lock::Version).await {
        Err(error) if error.is_conflict() => Ok(false),
        Err(error) if !error.is_not_found() => Err(error.into()),
        _ => Ok(true),
    }
}

#[async_trait]
impl Controller for Disruption {
    type Key = Text;

    fn name(&self) -> &'static str {
        "nodeclaim.disruption"
    }

    fn workers(&self, settings: &Settings) -> usize {
        settings.workers(10, 1000)
    }

    /// Pods are heard of through the claim: their coming and going is written there.
    fn concerns(&self, change: &Change, state: &State) -> Vec<Text> {
        let names = |claims: Vec<&Arc<NodeClaim>>| {
            let ours = claims.into_iter().filter(|claim| self.managed.claim(claim));
            ours.map(|claim| claim.metadata.name.clone()).collect()
        };
        match change {
            Change::NodePool(pool) => {
                let name = pool.latest().map(|pool| &pool.metadata.name);
                names(name.map_or_else(Vec::new, |name| state.claims_of_pool(name).collect()))
            }
            Change::NodeClass(class) => {
                let reference = class.latest().map(|class| class.reference());
                let is_of = |claim: &&Arc<NodeClaim>| claim.spec.node_class_ref == reference;
                names(state.all::<NodeClaim>().iter().filter(is_of).collect())
            }
            _ => changed_claim(change, self.managed),
        }
    }

    async fn reconcile(&self, cluster: &Cluster, name: &Text) -> Result<Next, Problem> {
        let Some(claim) = cluster.get::<NodeClaim>(&ObjectKey::cluster_scoped(name)) else {
            return Ok(Next::Change);
        };
        let pool = claim.node_pool().filter(|_| !claim.metadata.is_deleting());
        let pool = pool.and_then(|pool| cluster.get::<NodePool>(&ObjectKey::cluster_scoped(pool.as_str())));
        let Some(pool) = pool.filter(|_| self.managed.claim(&claim)) else {
            return Ok(Next::Change);
        };
        let mut problem = None;
        let drift = if drift::is_launched(&claim) {
            match self.drift(cluster, &pool, &claim).await {
                Ok(Some(reason)) => Drift::Drifted(reason),
                Ok(None) => Drift::None,
                Err(CloudError::NotFound(_)) => Drift::Unknown,
                Err(error) => {
                    problem = Some(Problem::Other(format!("getting drift, {error}")));
                    Drift::Unknown
                }
            }
        } else {
            Drift::None
        };
        let now = cluster.now();
        let quiet = (!pool.is_static()).then(|| consolidatable::of(&pool, &claim, now));
        let mut after = with_drift(&claim, &drift, now);
        if let Some(quiet) = quiet {
            after = with_quiet(after, quiet, now);
        }
        if !write(cluster, &claim, &after).await? {
            return Ok(Next::Again);
        }
        let becomes = |kind: &str| claim.condition(kind).is_none() && after.condition(kind).is_some();
        if becomes(nodeclaim::CONSOLIDATABLE) {
            // Upstream would look again within five minutes only.
            cluster.note(State::mark_unconsolidated);
        }
        if let Some(problem) = problem {
            return Err(problem);
        }
        let again = match (&drift, drift::is_launched(&claim)) {
            (Drift::Unknown, _) | (_, false) => Next::Change,
            _ => Next::After(drift::PERIOD),
        };
        Ok(match quiet {
            Some(Consolidatable::In(left)) => again.or_sooner(Next::After(left)),
            _ => again,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn drift_keeps_its_time_while_its_reason_changes_and_loses_it_when_it_ends() {
        let claim: NodeClaim = serde_json::from_value(json!({"metadata": {"name": "a", "generation": 1}})).unwrap();
        let since = |claim: &NodeClaim| {
            let drifted = claim.condition("Drifted").unwrap();
            (drifted.reason.to_string(), drifted.last_transition_time)
        };
        let one = with_drift(&claim, &Drift::Drifted("NodePoolDrifted".into()), at(10));
        assert_eq!(since(&one), ("NodePoolDrifted".to_owned(), Some(at(10))));
        let two = with_drift(&one, &Drift::Drifted("RequirementsDrifted".into()), at(20));
        assert_eq!(since(&two), ("RequirementsDrifted".to_owned(), Some(at(10))));
        assert_eq!(with_drift(&two, &Drift::Unknown, at(30)), two);
        let none = with_drift(&two, &Drift::None, at(30));
        assert_eq!(none.condition("Drifted"), None);
        let again = with_drift(&none, &Drift::Drifted("RequirementsDrifted".into()), at(40));
        assert_eq!(since(&again).1, Some(at(40)));
    }

    #[test]
    fn a_node_that_is_not_quiet_any_more_is_no_longer_consolidatable() {
        let claim: NodeClaim = serde_json::from_value(json!({"metadata": {"name": "a", "generation": 1}})).unwrap();
        let quiet = with_quiet(claim.clone(), Consolidatable::Yes, at(10));
        assert!(quiet.condition("Consolidatable").is_some());
        for now in [
            Consolidatable::No,
            Consolidatable::In(std::time::Duration::from_secs(1)),
        ] {
            assert_eq!(
                with_quiet(quiet.clone(), now, at(20)).condition("Consolidatable"),
                None,
                "{now:?}"
            );
        }
        assert_eq!(with_quiet(claim.clone(), Consolidatable::No, at(10)), claim);
    }
}
