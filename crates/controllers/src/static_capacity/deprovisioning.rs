//! Takes away what a static pool has too much of.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use model::object::{NodeClaim, NodePool, ObjectKey};
use runtime::{ApiError, Delete, Settings};
use state::{Change, State};

use super::{
    candidates::{self, Costs, Resident},
    changes_replicas, static_pool_of,
};
use crate::{Cluster, Controller, Next, Problem, provisioning::is_managed};

const RESYNC: Duration = Duration::from_mins(1);
const AT_ONCE: usize = 32;

/// Takes nodes from static pools that have too many.
#[derive(Debug, Default)]
pub struct StaticDeprovisioning;

#[async_trait]
impl Controller for StaticDeprovisioning {
    type Key = ObjectKey;

    fn name(&self) -> &'static str {
        "static.deprovisioning"
    }

    fn workers(&self, _: &Settings) -> usize {
        10
    }

    fn concerns(&self, change: &Change, state: &State) -> Vec<ObjectKey> {
        match change {
            Change::NodePool(pool) => {
                let after = pool
                    .after
                    .iter()
                    .filter(|after| after.is_static() && changes_replicas(pool));
                after.map(|pool| pool.metadata.key()).collect()
            }
            Change::NodeClaim(claim) => static_pool_of(claim.after.as_ref().filter(|_| claim.is_new()), state),
            _ => Vec::new(),
        }
    }

    async fn reconcile(&self, cluster: &Cluster, key: &ObjectKey) -> Result<Next, Problem> {
        let Some(pool) = cluster.get::<NodePool>(key) else {
            return Ok(Next::Change);
        };
        let takes_part = is_managed(&pool, cluster) && !pool.metadata.is_deleting();
        let Some(replicas) = pool.spec.replicas.filter(|_| takes_part) else {
            return Ok(Next::Change);
        };
        let active = cluster.look(|state| state.node_counts(&pool.name()).active);
        let surplus = active.saturating_sub(usize::try_from(replicas).unwrap_or(0));
        if surplus == 0 {
            return Ok(Next::After(RESYNC));
        }
        tracing::info!(
            "NodePool.name" = %pool.metadata.name, current = active, desired = replicas,
            "deprovision-count" = surplus, "deprovisioning nodeclaims to satisfy replica count"
        );
        let gates = &cluster.settings().decisions.feature_gates;
        let costs = Costs {
            is_deletion_cost_managed: gates.pod_deletion_cost_management,
            now: cluster.now(),
        };
        let residents = cluster.look(|state| residents(state, &pool));
        delete(cluster, candidates::first(residents, surplus, costs)).await?;
        Ok(Next::After(RESYNC))
    }
}

/// The claims of a pool that stay, with what runs on their nodes.
fn residents(state: &State, pool: &NodePool) -> Vec<Resident> {
    let claims = state.claims_of_pool(&pool.metadata.name);
    let staying = claims.filter(|claim| !state.is_marked_for_deletion(state.machine_of_claim(claim)));
    staying
        .map(|claim| {
            let node = state.machine_of_claim(claim).node;
            let pods = node
                .into_iter()
                .flat_map(|node| state.pods_on_node(&node.metadata.name));
            Resident {
                claim: Arc::clone(claim),
                pods: pods.cloned().collect(),
            }
        })
        .collect()
}

/// Deletes claims; each counts as leaving as soon as the API server has agreed.
async fn delete(cluster: &Cluster, claims: Vec<Arc<NodeClaim>>) -> Result<(), Problem> {
    let each = claims.into_iter().map(|claim| delete_one(cluster, claim));
    let results: Vec<Result<(), ApiError>> = stream::iter(each).buffered(AT_ONCE).collect().await;
    let failed: Vec<_> = results.into_iter().filter_map(Result::err).map(Problem::Api).collect();
    if failed.is_empty() {
        Ok(())
    } else {
        Err(Problem::Several(failed))
    }
}

async fn delete_one(cluster: &Cluster, claim: Arc<NodeClaim>) -> Result<(), ApiError> {
    let options = Delete {
        uid: Some(claim.metadata.uid.clone()),
        ..Delete::default()
    };
    match cluster.delete::<NodeClaim>(&claim.metadata.key(), &options).await {
        Err(error) if !error.is_not_found() => return Err(error),
        _ => {}
    }
    tracing::debug!("NodeClaim.name" = %claim.metadata.name, "deleting nodeclaim");
    crate::records::scaled_down(cluster, &claim);
    cluster.fold(|state| state.mark_for_deletion(&claim.name()));
    Ok(())
}
