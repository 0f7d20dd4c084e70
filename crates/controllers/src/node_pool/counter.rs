//! How much a pool holds, in its status: written when it changed, and not more often than upstream does.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use model::{
    object::{NODE_POOL_LABEL, NodeClaim, NodePool, ObjectKey, Text},
    quantity::Quantity,
    resources::{ResourceList, ResourceName},
};
use runtime::Settings;
use state::{Change, Kind, State};

use super::{StatusWriter, changed_pool};
use crate::{Cluster, Controller, Next, Problem, node_claim::Managed};

/// The least time between two writes of a pool.
const PERIOD: Duration = Duration::from_secs(5);
/// How often it is looked whether the pool has settled.
const POLL: Duration = Duration::from_secs(1);
/// The longest that claims which are being launched are waited for.
const PATIENCE: SignedDuration = SignedDuration::from_secs(15);

/// `nodepool.counter`
pub struct Counter {
    managed: Managed,
    writer: StatusWriter,
    written: Mutex<BTreeMap<Text, Timestamp>>,
}

impl Counter {
    /// For the pools that are ours.
    pub fn new(managed: Managed, writer: StatusWriter) -> Self {
        Self {
            managed,
            writer,
            written: Mutex::default(),
        }
    }

    /// How long to wait until a pool may be written again; none when it may now.
    fn wait(&self, pool: &Text, now: Timestamp) -> Option<Duration> {
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let since = now.duration_since(*written.get(pool)?);
        let left = PERIOD.saturating_sub(Duration::try_from(since).unwrap_or_default());
        (!left.is_zero()).then_some(left)
    }

    fn note(&self, pool: &Text, now: Timestamp) {
        self.written
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(pool.clone(), now);
    }
}

/// The pool with what it holds. Resources it holds none of are zero where people look for them.
fn counted(pool: &NodePool, usage: &ResourceList) -> NodePool {
    let names = ["cpu", "memory", "pods", "ephemeral-storage", "nodes"];
    let zeros: ResourceList = names
        .into_iter()
        .map(|name| (ResourceName::from(name), Quantity::from_units(0)))
        .collect();
    let mut after = pool.clone();
    after.status.resources = zeros.overlaid_with(usage);
    after.status.nodes = Some(usage.amount("nodes").value());
    after
}

/// Whether claims and nodes are all known, and no claim is just being launched: what is counted meanwhile would have to
/// be counted again at once.
fn has_settled(pool: &str, state: &State, now: Timestamp) -> bool {
    let is_launching = |claim: &NodeClaim| {
        let created = claim.metadata.creation_timestamp.unwrap_or(now);
        claim.status.provider_id.is_none() && now.duration_since(created) < PATIENCE
    };
    state.is_listed(Kind::NodeClaim)
        && state.is_listed(Kind::Node)
        && !state.claims_of_pool(pool).any(|claim| is_launching(claim))
}

fn pool_of(labels: &model::object::Labels) -> Option<Text> {
    labels.get(NODE_POOL_LABEL).cloned()
}

#[async_trait]
impl Controller for Counter {
    type Key = Text;

    fn name(&self) -> &'static str {
        "nodepool.counter"
    }

    fn workers(&self, settings: &Settings) -> usize {
        settings.workers(10, 1000)
    }

    fn concerns(&self, change: &Change, _: &State) -> Vec<Text> {
        match change {
            Change::NodePool(pool) if pool.is_new() => changed_pool(change, self.managed),
            Change::NodeClaim(claim) => claim
                .latest()
                .and_then(|claim| pool_of(&claim.metadata.labels))
                .into_iter()
                .collect(),
            Change::Node(node) => node
                .latest()
                .and_then(|node| pool_of(&node.metadata.labels))
                .into_iter()
                .collect(),
            _ => Vec::new(),
        }
    }

    async fn reconcile(&self, cluster: &Cluster, name: &Text) -> Result<Next, Problem> {
        let Some(pool) = cluster.get::<NodePool>(&ObjectKey::cluster_scoped(name)) else {
            return Ok(Next::Change);
        };
        if !self.managed.pool(&pool) {
            return Ok(Next::Change);
        }
        let now = cluster.now();
        let usage = cluster.look(|state| has_settled(name, state, now).then(|| state.usage(&pool.name())));
        let Some(usage) = usage else {
            return Ok(Next::After(POLL));
        };
        if counted(&pool, &usage) == *pool {
            return Ok(Next::Change);
        }
        if let Some(left) = self.wait(name, now) {
            return Ok(Next::After(left));
        }
        self.note(name, now);
        let change = |pool: &NodePool| Some(counted(pool, &usage));
        self.writer.write(cluster, name, change).await
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_pool_holds_is_shown_over_zeros() {
        let usage = |json: serde_json::Value| -> ResourceList { serde_json::from_value(json).unwrap() };
        let status = |used: serde_json::Value| {
            serde_json::to_value(counted(&NodePool::default(), &usage(used))).unwrap()["status"].clone()
        };
        let empty = json!({"cpu": "0", "memory": "0", "pods": "0", "ephemeral-storage": "0", "nodes": "0"});
        assert_eq!(status(json!({})), json!({"resources": empty, "nodes": 0}));
        let held = json!({"cpu": "8", "memory": "32Gi", "nodes": "2", "nvidia.com/gpu": "1"});
        let shown = json!({
            "cpu": "8", "memory": "32Gi", "nodes": "2", "nvidia.com/gpu": "1", "pods": "0", "ephemeral-storage": "0",
        });
        assert_eq!(status(held), json!({"resources": shown, "nodes": 2}));
    }

    #[test]
    fn a_pool_is_not_written_more_often_than_every_five_seconds() {
        let counter = Counter::new(Managed::of(&[]), StatusWriter::default());
        let (pool, at) = (Text::from("p"), |second: i64| Timestamp::from_second(second).unwrap());
        assert_eq!(counter.wait(&pool, at(0)), None);
        counter.note(&pool, at(1));
        assert_eq!(counter.wait(&pool, at(3)), Some(Duration::from_secs(3)));
        assert_eq!(counter.wait(&pool, at(6)), None);
    }

    #[test]
    fn a_pool_has_not_settled_while_a_claim_is_being_launched() {
        let mut state = State::default();
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        assert!(!has_settled("p", &state, at(5)));
        state.end_list::<NodeClaim>(&std::collections::BTreeSet::new(), &"1".into());
        state.end_list::<model::object::Node>(&std::collections::BTreeSet::new(), &"1".into());
        assert!(has_settled("p", &state, at(5)));
        let claim = json!({"metadata": {
            "name": "a", "resourceVersion": "2", "labels": {"karpenter.sh/nodepool": "p"},
            "creationTimestamp": at(0).to_string(),
        }});
        state.apply::<NodeClaim>(serde_json::from_value(claim).unwrap());
        assert_eq!(
            (has_settled("p", &state, at(5)), has_settled("q", &state, at(5))),
            (false, true)
        );
        assert!(has_settled("p", &state, at(15)));
    }
}
