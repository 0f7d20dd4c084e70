//! Creates claims: several at a time, each once, none beyond its pool's limits.

use futures_util::{StreamExt, stream};
use model::object::{NodeClaim, ObjectKey};
use runtime::ApiError;

use super::{
    claim::Draft,
    reserve::{LimitReached, Reservations},
    tell,
};
use crate::{Cluster, Problem};

/// How many claims are created at the same time.
const AT_ONCE: usize = 32;
/// How many names are tried before a claim is left to the next pass.
const NAMES: u32 = 5;

/// Why claims are made; the `reason` of `nodeclaims_created_total`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reason(pub &'static str);

impl Reason {
    /// Pods need them, or a static pool does.
    pub const PROVISIONED: Self = Self("provisioned");
}

/// Why a claim was not made.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum NotCreated {
    /// Its pool is full.
    #[error("creating node claim, {0}")]
    Limit(#[from] LimitReached),
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
pub async fn all(
    cluster: &Cluster,
    reservations: &Reservations,
    drafts: Vec<Draft>,
    reason: Reason,
) -> Vec<Result<NodeClaim, NotCreated>> {
    let each = drafts
        .into_iter()
        .map(|draft| one(cluster, reservations, draft, reason));
    stream::iter(each).buffered(AT_ONCE).collect().await
}

/// What failed, as one problem; none when all went well.
pub fn problems(results: &[Result<NodeClaim, NotCreated>]) -> Option<Problem> {
    let failed = results.iter().filter_map(|result| result.as_ref().err());
    let failed: Vec<_> = failed.map(|error| Problem::Other(error.to_string())).collect();
    (!failed.is_empty()).then_some(Problem::Several(failed))
}

async fn one(
    cluster: &Cluster,
    reservations: &Reservations,
    mut draft: Draft,
    reason: Reason,
) -> Result<NodeClaim, NotCreated> {
    for attempt in 0..NAMES {
        let name = draft.claim.metadata.name.clone();
        reserve(cluster, reservations, &draft)?;
        let error = match cluster.create::<NodeClaim>("", &draft.document()).await {
            Ok(claim) => return Ok(created(cluster, &draft, claim, reason)),
            Err(error) => error,
        };
        if error.is_already_exists() {
            let there = cluster.api().get::<NodeClaim>(&ObjectKey::cluster_scoped(&name)).await;
            if let Ok(there) = there
                && draft.is_made(&there)
            {
                cluster.fold(|state| state.apply(there.clone()));
                return Ok(created(cluster, &draft, there, reason));
            }
        }
        reservations.release(&name);
        if !error.is_already_exists() {
            return Err(error.into());
        }
        draft.claim.metadata.name = draft.seed.name(&draft.pool.metadata.name, attempt + 1).into();
    }
    Err(NotCreated::Taken(draft.claim.metadata.name.to_string()))
}

/// Sets room aside by the pool as it is now: it may have been changed or deleted since the plan was made.
fn reserve(cluster: &Cluster, reservations: &Reservations, draft: &Draft) -> Result<(), NotCreated> {
    let key = draft.pool.metadata.key();
    cluster.look(|state| {
        let pool = state.get::<model::object::NodePool>(&key);
        let Some(pool) = pool.filter(|pool| !pool.metadata.is_deleting()) else {
            return Err(NotCreated::NoPool(key.name.to_string()));
        };
        let reserved = reservations.reserve(state, pool, &draft.claim.metadata.name, &draft.most);
        reserved.map_err(NotCreated::from)
    })
}

fn created(cluster: &Cluster, draft: &Draft, claim: NodeClaim, reason: Reason) -> NodeClaim {
    tracing::info!(
        "NodePool.name" = %draft.pool.metadata.name,
        "NodeClaim.name" = %claim.metadata.name,
        requests = %claim.spec.resources.requests,
        "instance-types" = tell::some(sorted(draft), 5),
        "created nodeclaim"
    );
    let relaxed = claim
        .metadata
        .annotations
        .get(api::annotations::NODECLAIM_MIN_VALUES_RELAXED);
    let relaxed = relaxed.map_or("false", |relaxed| relaxed);
    let metrics = cluster.metrics();
    metrics
        .nodeclaims_created_total
        .inc([reason.0, &draft.pool.metadata.name, relaxed]);
    for pod in &draft.pods {
        cluster.publish(tell::nominated(pod, Some(&claim), None));
    }
    claim
}

fn sorted(draft: &Draft) -> Vec<&str> {
    let mut names: Vec<&str> = draft.types.iter().map(|name| &**name).collect();
    names.sort_unstable();
    names
}
