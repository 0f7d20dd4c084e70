//! The drift hash of each pool, and of its claims when the way of hashing changed.

use std::sync::Arc;

use api::{annotations, condition::names::nodeclaim, karpenter::NODEPOOL_HASH_VERSION};
use async_trait::async_trait;
use model::object::{Labels, NodeClaim, NodePool, ObjectKey, Text};
use runtime::Settings;
use state::{Change, State};

use super::{as_written, changed_pool};
use crate::{
    Cluster, Controller, Next, Problem,
    node_claim::{Managed, with_pair},
    patch::Lock,
};

/// `nodepool.hash`
pub struct Hash {
    managed: Managed,
}

impl Hash {
    /// For the pools that are ours.
    pub fn new(managed: Managed) -> Self {
        Self { managed }
    }

    /// Claims hashed in another way get the pool's new hash: their own cannot be compared any more. One that has drifted
    /// stays drifted.
    async fn rehash_claims(&self, cluster: &Cluster, pool: &NodePool, hash: &str) -> Result<(), Problem> {
        let claims: Vec<Arc<NodeClaim>> = cluster.look(|state| {
            let claims = state.claims_of_pool(&pool.metadata.name);
            claims.filter(|claim| self.managed.claim(claim)).cloned().collect()
        });
        let mut problems = Vec::new();
        for claim in claims {
            match cluster.update(&*claim, &rehashed(&claim, hash), Lock::None).await {
                Err(error) if !error.is_not_found() => problems.push(Problem::Api(error)),
                _ => {}
            }
        }
        if problems.is_empty() {
            Ok(())
        } else {
            Err(Problem::Several(problems))
        }
    }
}

fn is_current(annotations: &Labels) -> bool {
    let version = annotations.get(annotations::NODEPOOL_HASH_VERSION);
    version.is_some_and(|version| **version == *NODEPOOL_HASH_VERSION)
}

fn rehashed(claim: &NodeClaim, hash: &str) -> NodeClaim {
    let mut after = claim.clone();
    if is_current(&claim.metadata.annotations) {
        return after;
    }
    let annotations = &claim.metadata.annotations;
    after.metadata.annotations = with_pair(annotations, annotations::NODEPOOL_HASH_VERSION, NODEPOOL_HASH_VERSION);
    if claim.condition(nodeclaim::DRIFTED).is_none() {
        after.metadata.annotations = with_pair(&after.metadata.annotations, annotations::NODEPOOL_HASH, hash);
    }
    after
}

fn stamped(pool: &NodePool, hash: &str) -> NodePool {
    let mut after = pool.clone();
    let annotations = with_pair(&pool.metadata.annotations, annotations::NODEPOOL_HASH, hash);
    after.metadata.annotations = with_pair(&annotations, annotations::NODEPOOL_HASH_VERSION, NODEPOOL_HASH_VERSION);
    after
}

#[async_trait]
impl Controller for Hash {
    type Key = Text;

    fn name(&self) -> &'static str {
        "nodepool.hash"
    }

    fn workers(&self, settings: &Settings) -> usize {
        settings.workers(10, 1000)
    }

    fn concerns(&self, change: &Change, _: &State) -> Vec<Text> {
        changed_pool(change, self.managed)
    }

    async fn reconcile(&self, cluster: &Cluster, name: &Text) -> Result<Next, Problem> {
        let Some(pool) = cluster.get::<NodePool>(&ObjectKey::cluster_scoped(name)) else {
            return Ok(Next::Change);
        };
        let written = as_written(&pool).map_err(|error| Problem::Other(format!("hashing NodePool {name}: {error}")))?;
        let hash = written.hash();
        if !is_current(&pool.metadata.annotations) {
            self.rehash_claims(cluster, &pool, &hash).await?;
        }
        match cluster.update(&*pool, &stamped(&pool, &hash), Lock::None).await {
            Err(error) if !error.is_not_found() => Err(error.into()),
            _ => Ok(Next::Change),
        }
    }
}

#[cfg(test)]
#[allow(
    clippy::needless_pass_by_value,
    reason = "a literal reads better without a reference"
)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn claim(version: &str, conditions: Value) -> NodeClaim {
        serde_json::from_value(json!({
            "metadata": {"annotations": {
                "karpenter.sh/nodepool-hash": "old", "karpenter.sh/nodepool-hash-version": version,
            }},
            "status": {"conditions": conditions},
        }))
        .unwrap()
    }

    #[test]
    fn claims_of_another_hash_version_get_the_pools_hash_unless_they_drifted() {
        let drifted = json!([{"type": "Drifted", "status": "True"}]);
        let cases = [
            (claim("v2", json!([])), ("new", "v3")),
            (claim("v2", drifted), ("old", "v3")),
            (claim("v3", json!([])), ("old", "v3")),
        ];
        for (claim, (hash, version)) in cases {
            let expected = json!({"karpenter.sh/nodepool-hash": hash, "karpenter.sh/nodepool-hash-version": version});
            let after = serde_json::to_value(rehashed(&claim, "new")).unwrap();
            assert_eq!(after["metadata"]["annotations"], expected, "{claim:?}");
        }
    }

    #[test]
    fn a_stamped_pool_is_not_stamped_again() {
        let once = stamped(&NodePool::default(), "7");
        assert_eq!(stamped(&once, "7"), once);
        assert!(is_current(&once.metadata.annotations));
    }
}
