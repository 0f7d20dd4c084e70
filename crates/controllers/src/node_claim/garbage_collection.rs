//! Claims whose machine is gone although nobody asked for that, and machines whose claim is. Clouds answer late, so an
//! absence is believed only when it was seen twice, of a claim that is not young, whose node is not Ready; and only so many
//! machines go at a time.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use api::condition::names::nodeclaim;
use async_trait::async_trait;
use cloud::{Findings, Instance, Sweep};
use jiff::{SignedDuration, Timestamp};
use model::object::{NodeClaim, ProviderId, Uid, condition};
use runtime::Settings;
use state::{Change, Kind, State};

use super::{
    Managed, Reason, ending,
    ownership::{Joined, is_ready},
};
use crate::{Cluster, Controller, Next, Problem};

/// How often the cloud is asked.
const PERIOD: Duration = Duration::from_mins(2);
/// How soon an absence is looked at again: a machine that is gone need not be missed for two periods.
const RECHECK: Duration = Duration::from_secs(10);
/// Younger claims are not judged: the cloud's list may not know their machines yet.
const GRACE: SignedDuration = SignedDuration::from_mins(1);
/// How many lists in a row must lack a machine.
const ABSENCES: u32 = 2;

/// The only key: all claims at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Everything;

impl fmt::Display for Everything {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("all NodeClaims")
    }
}

/// `nodeclaim.garbagecollection`
pub struct GarbageCollection {
    managed: Managed,
    /// How many lists in a row lacked a claim's machine.
    absences: Mutex<BTreeMap<Uid, u32>>,
    sweep: Mutex<Sweep>,
}

impl GarbageCollection {
    /// For the claims that are ours.
    pub fn new(managed: Managed) -> Self {
        Self {
            managed,
            absences: Mutex::default(),
            sweep: Mutex::default(),
        }
    }

    /// Counts who is missing from this list, and forgets who is back. Returns those missing often enough.
    fn count(&self, missing: Vec<Arc<NodeClaim>>) -> Vec<Arc<NodeClaim>> {
        let mut absences = self.absences.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::take(&mut *absences);
        for claim in &missing {
            let uid = &claim.metadata.uid;
            absences.insert(uid.clone(), before.get(uid).map_or(1, |count| count.saturating_add(1)));
        }
        let is_sure = |claim: &Arc<NodeClaim>| {
            absences
                .get(&claim.metadata.uid)
                .is_some_and(|count| *count >= ABSENCES)
        };
        missing.into_iter().filter(is_sure).collect()
    }

    /// Machines that were launched for claims which are no more. Nothing is said while not all claims are known.
    fn orphans(&self, instances: &[Instance], state: &State, now: Timestamp) -> Findings {
        if !state.is_listed(Kind::NodeClaim) {
            return Findings::default();
        }
        let claims = state.all::<NodeClaim>().iter().map(AsRef::as_ref);
        let mut sweep = self.sweep.lock().unwrap_or_else(PoisonError::into_inner);
        sweep.look(instances, claims, now)
    }

    fn has_suspects(&self) -> bool {
        !self.absences.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

/// The machines that are there to stay.
fn running(instances: &[Instance]) -> BTreeSet<ProviderId> {
    let staying = instances.iter().filter(|instance| !instance.is_terminating);
    staying.map(|instance| instance.provider_id.clone()).collect()
}

/// Whether a claim's machine is missing: registered long enough ago, not on its way out, and not among those that run.
fn is_missing(claim: &NodeClaim, running: &BTreeSet<ProviderId>, now: Timestamp) -> bool {
    let registered = condition::find(&claim.status.conditions, nodeclaim::REGISTERED)
        .filter(|_| condition::holds(&claim.status.conditions, nodeclaim::REGISTERED));
    let is_young = |since: Timestamp| now.duration_since(since) < GRACE;
    registered.is_some_and(|registered| !registered.last_transition_time.is_some_and(is_young))
        && !claim.metadata.is_deleting()
        && !claim.status.provider_id.as_ref().is_some_and(|id| running.contains(id))
}

/// A node that is Ready has a kubelet that runs, whatever the cloud says.
fn is_alive(joined: Joined) -> bool {
    joined.one().is_some_and(|node| is_ready(&node))
}

async fn collect(cluster: &Cluster, claim: &NodeClaim) -> Result<(), Problem> {
    if ending::end(cluster, claim, Reason::GarbageCollected).await? {
        let id = claim.status.provider_id.as_ref().map_or("", |id| id.as_str());
        let node = claim.status.node_name.as_ref().map_or("", |name| name.as_str());
        tracing::debug!(
            "NodeClaim.name" = %claim.metadata.name, "Node.name" = node, "provider-id" = id,
            "garbage collecting nodeclaim with no cloudprovider representation"
        );
    }
    Ok(())
}

#[async_trait]
impl Controller for GarbageCollection {
    type Key = Everything;

    fn name(&self) -> &'static str {
        "nodeclaim.garbagecollection"
    }

    fn workers(&self, _: &Settings) -> usize {
        1
    }

    fn initial(&self) -> Vec<Everything> {
        vec![Everything]
    }

    fn concerns(&self, _: &Change, _: &State) -> Vec<Everything> {
        Vec::new()
    }

    async fn reconcile(&self, cluster: &Cluster, _: &Everything) -> Result<Next, Problem> {
        let instances = cluster.cloud().list().await?;
        let (running, now) = (running(&instances), cluster.now());
        let (missing, orphans) = cluster.look(|state| {
            let ours = state
                .all::<NodeClaim>()
                .iter()
                .filter(|claim| self.managed.claim(claim));
            let missing = ours.filter(|claim| is_missing(claim, &running, now));
            let missing = missing.filter(|claim| !is_alive(Joined::of(claim, state))).cloned();
            (missing.collect(), self.orphans(&instances, state, now))
        });
        let mut problems = Vec::new();
        for claim in self.count(missing) {
            problems.extend(collect(cluster, &claim).await.err());
        }
        for (machine, reason) in &orphans.held {
            tracing::debug!("provider-id" = %machine, %reason, "leaving an instance without a nodeclaim alone");
        }
        for machine in &orphans.delete {
            problems.extend(sweep(cluster, machine).await.err());
        }
        if !problems.is_empty() {
            return Err(Problem::Several(problems));
        }
        Ok(Next::After(if self.has_suspects() { RECHECK } else { PERIOD }))
    }
}

/// Removes a machine that nobody claims.
async fn sweep(cluster: &Cluster, machine: &Instance) -> Result<(), Problem> {
    let claim = machine.claim.as_ref().map_or("", |name| name.as_str());
    tracing::info!("provider-id" = %machine.provider_id, "NodeClaim.name" = claim, "deleting an instance without a nodeclaim");
    match cluster.cloud().delete(&machine.to_claim()).await {
        Err(error) if !error.is_not_found() => Err(error.into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use cloud::Launched;
    use serde_json::json;

    use super::*;

    fn claim(registered: &str, since: i64) -> Arc<NodeClaim> {
        let since = Timestamp::from_second(since).unwrap().to_string();
        let condition = json!({"type": "Registered", "status": registered, "lastTransitionTime": since});
        let claim =
            json!({"metadata": {"name": "a", "uid": "u"}, "status": {"providerID": "p", "conditions": [condition]}});
        Arc::new(serde_json::from_value(claim).unwrap())
    }

    fn instance(id: &str, is_terminating: bool) -> Instance {
        Instance {
            provider_id: id.into(),
            claim: None,
            claim_uid: None,
            launched_at: None,
            is_terminating,
            launched: Launched::default(),
        }
    }

    #[test]
    fn only_registered_claims_that_are_not_young_can_miss_their_machine() {
        let now = Timestamp::from_second(1000).unwrap();
        let cases = [
            (claim("True", 100), vec![instance("p", false)], false),
            (claim("True", 100), vec![instance("other", false)], true),
            (claim("True", 100), vec![instance("p", true)], true),
            (claim("True", 100), vec![], true),
            (claim("True", 990), vec![], false),
            (claim("Unknown", 100), vec![], false),
        ];
        for (claim, instances, expected) in cases {
            assert_eq!(
                is_missing(&claim, &running(&instances), now),
                expected,
                "{claim:?} {instances:?}"
            );
        }
        let mut leaving = NodeClaim::clone(&claim("True", 100));
        leaving.metadata.deletion_timestamp = Some(now);
        assert!(!is_missing(&leaving, &BTreeSet::new(), now));
    }

    #[test]
    fn one_absence_is_not_believed_and_a_return_clears_it() {
        let controller = GarbageCollection::new(Managed::of(&[]));
        let gone = || vec![claim("True", 100)];
        assert_eq!(controller.count(gone()), vec![]);
        assert_eq!(controller.count(vec![]), vec![]);
        assert_eq!(controller.count(gone()), vec![]);
        assert_eq!(controller.count(gone()), gone());
    }

    #[test]
    fn a_ready_node_speaks_for_its_machine() {
        let node = |ready: &str| {
            let conditions = json!({"conditions": [{"type": "Ready", "status": ready}]});
            Joined::One(Arc::new(
                serde_json::from_value(json!({ "status": conditions })).unwrap(),
            ))
        };
        let cases = [
            (node("True"), true),
            (node("False"), false),
            (node("Unknown"), false),
            (Joined::None, false),
            (Joined::Several, false),
        ];
        for (joined, expected) in cases {
            assert_eq!(is_alive(joined.clone()), expected, "{joined:?}");
        }
    }
}
