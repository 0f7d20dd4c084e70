//! Creates claims: several at a time, each once, none beyond its pool's limits.
//!
//! Reserve, create, settle: room is set aside in the state's ledger before the API server is asked, and the state settles
//! it when the claim is launched. Each step may be the last before a crash: a reservation dies with us, and a claim that
//! was created is found by its name.

use std::sync::Arc;

use futures_util::{StreamExt, stream};
use ledger::Id;
use model::{
    object::{NodeClaim, NodeClaimName, NodePool, ObjectKey},
    resources::ResourceName,
};
use runtime::ApiError;
use state::{LimitExceeded, State};

use super::{buffer::is_stand_in, claim::Draft, tell};
use crate::{
    Cluster, Problem,
    mutation::{self, Mutation},
    records,
};

/// How many claims are created at the same time.
const AT_ONCE: usize = 32;
/// How many names are tried before a claim is left to the next pass.
const NAMES: u32 = 5;

/// Why claims are made; the `reason` of `nodeclaims_created_total`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reason(pub &'static str);

impl Reason {
    /// Pods need them, or a static pool does.
    pub(crate) const PROVISIONED: Self = Self("provisioned");
}

/// Why a claim was not made.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum NotCreated {
    /// Its pool is full.
    #[error("creating node claim, resource usage exceeds limit, {0}")]
    Limit(#[from] LimitExceeded),
    /// Its pool is gone, or going.
    #[error("creating node claim, NodePool \"{0}\" is gone")]
    NoPool(String),
    /// The API server would not have it.
    #[error("creating node claim, {0}")]
    Api(#[from] ApiError),
    /// Too many others had its name.
    #[error("creating node claim, every name up to \"{0}\" is taken")]
    Taken(String),
}

/// Creates claims. What goes wrong with one does not keep the others from being made.
pub(crate) async fn all(cluster: &Cluster, drafts: Vec<Draft>, reason: Reason) -> Vec<Result<NodeClaim, NotCreated>> {
    let each = drafts.into_iter().map(|draft| one(cluster, draft, reason));
    stream::iter(each).buffered(AT_ONCE).collect().await
}

/// What failed, as one problem; none when all went well.
pub(crate) fn problems(results: &[Result<NodeClaim, NotCreated>]) -> Option<Problem> {
    let failed = results.iter().filter_map(|result| result.as_ref().err());
    let failed: Vec<_> = failed.map(|error| Problem::Other(error.to_string())).collect();
    (!failed.is_empty()).then_some(Problem::Several(failed))
}

/// Whether a name is, or was lately, a claim's. A name that comes back with another machine behind it misleads everybody
/// who knows claims by their names.
pub(crate) fn is_taken(state: &State, name: &str) -> bool {
    state.is_gone(name) || state.get::<NodeClaim>(&ObjectKey::cluster_scoped(name)).is_some()
}

async fn one(cluster: &Cluster, mut draft: Draft, reason: Reason) -> Result<NodeClaim, NotCreated> {
    cluster.look(|state| {
        if state.is_gone(&draft.claim.metadata.name) {
            draft.name_it(|name| is_taken(state, name));
        }
    });
    for attempt in 1..=NAMES {
        let name = draft.claim.name();
        let decision = records::decision_of(cluster, &draft);
        if let Some(decision) = decision {
            draft.annotate(api::annotations::DECISION, &decision.to_string());
        }
        reserve(cluster, &draft)?;
        let error = match cluster.create::<NodeClaim>("", &draft.document()).await {
            Ok(claim) => return Ok(created(cluster, &draft, claim, reason, decision)),
            Err(error) => error,
        };
        if let Some(claim) = found(cluster, &draft, &error).await {
            return Ok(created(cluster, &draft, claim, reason, decision));
        }
        release(cluster, &name);
        if !error.is_already_exists() {
            return Err(error.into());
        }
        draft.claim.metadata.name = draft.seed.name(&draft.pool.metadata.name, attempt).into();
    }
    Err(NotCreated::Taken(draft.claim.metadata.name.to_string()))
}

/// The claim itself, if that is why it could not be created: an answer was lost, or another leader was before us.
async fn found(cluster: &Cluster, draft: &Draft, error: &ApiError) -> Option<NodeClaim> {
    if !error.is_already_exists() {
        return None;
    }
    let key = ObjectKey::cluster_scoped(&draft.claim.metadata.name);
    let there: NodeClaim = cluster.api().get(&key).await.ok()?;
    if !draft.is_made(&there) {
        return None;
    }
    cluster.fold(|state| state.apply(there.clone()));
    Some(there)
}

/// Sets room aside by the pool as it is now: it may have been changed or deleted since the plan was made. A static pool
/// has set its nodes aside already.
fn reserve(cluster: &Cluster, draft: &Draft) -> Result<(), NotCreated> {
    if mutation::has(Mutation::IgnoresLimits) {
        return Ok(());
    }
    let (key, now) = (draft.pool.metadata.key(), cluster.now());
    cluster.note(|state| {
        let pool = state.get::<NodePool>(&key).map(Arc::clone);
        let pool = pool.filter(|pool| !pool.metadata.is_deleting());
        let pool = pool.ok_or_else(|| NotCreated::NoPool(key.name.to_string()))?;
        let mut limits = pool.spec.limits.clone();
        if pool.is_static() {
            limits.remove(ResourceName::Nodes.as_str());
        }
        for (name, amount) in draft.freed.iter() {
            if let Some(limit) = limits.get(name.as_str()) {
                limits.set(name.clone(), limit + amount);
            }
        }
        state.reserve(&pool.name(), &draft.claim.name(), &draft.most, &limits, now)?;
        Ok(())
    })
}

fn release(cluster: &Cluster, claim: &NodeClaimName) {
    cluster.note(|state| state.release(claim));
}

fn created(cluster: &Cluster, draft: &Draft, claim: NodeClaim, reason: Reason, decision: Option<Id>) -> NodeClaim {
    cluster.note(|state| {
        for pod in &draft.pods {
            state.map_pod_to_claim(&pod.metadata.key(), &claim.name());
        }
    });
    tracing::info!(
        "NodePool.name" = %draft.pool.metadata.name,
        "NodeClaim.name" = %claim.metadata.name,
        requests = %claim.spec.resources.requests,
        "instance-types" = tell::some(draft.types(), 5),
        decision = decision.map(tracing::field::display),
        "created nodeclaim"
    );
    if let Some(decision) = decision {
        records::launched(cluster, draft, &claim, decision);
    }
    let relaxed = api::annotations::NODECLAIM_MIN_VALUES_RELAXED;
    let relaxed = claim
        .metadata
        .annotations
        .get(relaxed)
        .map_or("false", |relaxed| relaxed);
    cluster
        .metrics()
        .nodeclaims_created_total
        .inc([reason.0, &draft.pool.metadata.name, relaxed]);
    for pod in draft.pods.iter().filter(|pod| !is_stand_in(pod)) {
        cluster.publish(tell::nominated(pod, Some(&claim), None).decided(decision));
    }
    claim
}
