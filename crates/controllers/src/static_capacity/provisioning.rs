//! Fills a static pool up to its number of nodes.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use model::{
    object::{NodeClaim, NodeClaimName, NodePool, ObjectKey},
    quantity::Quantity,
    resources::ResourceName,
};
use runtime::Settings;
use state::{Change, Kind, NodeCounts, State};

use super::{changes_replicas, static_pool_of};
use crate::{
    Cluster, Controller, Next, Problem,
    provisioning::{
        claim::{self, Draft},
        create::{self, Reason, is_taken},
        is_managed,
    },
};

const RESYNC: Duration = Duration::from_mins(1);
const AT_LIMIT: Duration = Duration::from_secs(30);
const UNLISTED: Duration = Duration::from_secs(1);

/// Fills static pools up.
#[derive(Debug, Default)]
pub struct StaticProvisioning;

/// How many nodes a pool lacks. Those that are about to be replaced count: somebody else makes their replacements.
fn lacking(replicas: i64, counts: NodeCounts) -> usize {
    let wanted = usize::try_from(replicas).unwrap_or(0);
    if counts.active + counts.pending_disruption + counts.reserved >= wanted {
        return 0;
    }
    wanted - counts.active - counts.reserved
}

#[async_trait]
impl Controller for StaticProvisioning {
    type Key = ObjectKey;

    fn name(&self) -> &'static str {
        "static.provisioning"
    }

    fn workers(&self, _: &Settings) -> usize {
        10
    }

    fn concerns(&self, change: &Change, state: &State) -> Vec<ObjectKey> {
        match change {
            Change::NodePool(pool) => {
                let was_ready = pool.before.as_ref().is_some_and(|pool| pool.is_ready());
                let after = pool.after.iter().filter(|pool| pool.is_static());
                let concerned = after.filter(|after| changes_replicas(pool) || !was_ready && after.is_ready());
                concerned.map(|pool| pool.metadata.key()).collect()
            }
            Change::NodeClaim(claim) => {
                let is_deleting =
                    |claim: &Option<Arc<NodeClaim>>| claim.as_ref().is_some_and(|it| it.metadata.is_deleting());
                let goes = claim.is_gone() || !is_deleting(&claim.before) && is_deleting(&claim.after);
                static_pool_of(claim.latest().filter(|_| goes), state)
            }
            _ => Vec::new(),
        }
    }

    async fn reconcile(&self, cluster: &Cluster, key: &ObjectKey) -> Result<Next, Problem> {
        let Some(pool) = cluster.get::<NodePool>(key) else {
            return Ok(Next::Change);
        };
        let takes_part = is_managed(&pool, cluster) && pool.is_ready() && !pool.metadata.is_deleting();
        let Some(replicas) = pool.spec.replicas.filter(|_| takes_part) else {
            return Ok(Next::Change);
        };
        if !cluster.look(|state| state.is_listed(Kind::NodeClaim) && state.is_listed(Kind::Node)) {
            return Ok(Next::After(UNLISTED));
        }
        let counts = cluster.look(|state| state.node_counts(&pool.name()));
        let lacking = lacking(replicas, counts);
        if lacking == 0 {
            return Ok(Next::After(RESYNC));
        }
        let drafts = granted(cluster, &pool, lacking)?;
        if drafts.is_empty() {
            tracing::info!("NodePool.name" = %pool.metadata.name, "nodepool node limit reached");
            return Ok(Next::After(AT_LIMIT));
        }
        tracing::info!(
            "NodePool.name" = %pool.metadata.name, current = counts.active, desired = replicas,
            "provision-count" = drafts.len(), "provisioning nodeclaims to satisfy replica count"
        );
        let results = create::all(cluster, drafts, Reason::PROVISIONED).await;
        create::problems(&results).map_or(Ok(Next::After(RESYNC)), Err)
    }
}

/// The claims to make, as many as the pool's limit on nodes lets us; room is set aside for each.
pub(crate) fn granted(cluster: &Cluster, pool: &Arc<NodePool>, lacking: usize) -> Result<Vec<Draft>, Problem> {
    let hash = claim::hash(pool).map_err(|error| Problem::Other(error.to_string()))?;
    let limit = pool.spec.limits.get(ResourceName::Nodes.as_str()).map(Quantity::value);
    let now = cluster.now();
    Ok(cluster.note(|state| {
        let mut drafts: Vec<Draft> = Vec::new();
        let mut ordinals = 0..;
        while let Some(ordinal) = ordinals.next().filter(|_| drafts.len() < lacking) {
            let draft = Draft::of_static(pool, &hash, ordinal, state.catalog());
            if !is_taken(state, &draft.claim.metadata.name) {
                drafts.push(draft);
            }
        }
        let names: Vec<NodeClaimName> = drafts.iter().map(|draft| draft.claim.name()).collect();
        let granted = state.reserve_nodes(&pool.name(), &names, limit, now);
        drafts.truncate(granted);
        drafts
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pool_lacks_what_neither_stays_nor_is_being_replaced_or_made() {
        let counts = |active, pending_disruption, deleting, reserved| NodeCounts {
            active,
            pending_disruption,
            deleting,
            reserved,
        };
        let cases = [
            (3, counts(0, 0, 0, 0), 3),
            (3, counts(2, 0, 0, 0), 1),
            (3, counts(2, 1, 0, 0), 0),
            (3, counts(2, 0, 5, 0), 1),
            (3, counts(1, 1, 0, 0), 2),
            (3, counts(1, 0, 0, 2), 0),
            (3, counts(5, 0, 0, 0), 0),
            (0, counts(0, 0, 0, 0), 0),
        ];
        for (replicas, counts, expected) in cases {
            assert_eq!(lacking(replicas, counts), expected, "{replicas} {counts:?}");
        }
    }
}
