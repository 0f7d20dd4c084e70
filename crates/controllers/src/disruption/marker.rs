//! What tells others that a node is about to go: a taint on the node, and the reason on its claim. A marker that belongs
//! to no command, as after a crash, is taken away again.

use api::{
    condition::names::nodeclaim::{DISRUPTION_REASON, TYPES},
    taints::DISRUPTED,
};
use disruption::Reason;
use futures_util::{StreamExt, stream};
use jiff::Timestamp;
use model::object::{Node, NodeClaim, NodeClaimName, NodeName, ObjectKey, Taint};
use runtime::ApiError;
use state::{State, Tracked};

use super::memory::Memory;
use crate::{
    Cluster, conditions,
    patch::{Lock, Written},
};

/// How often a write that somebody was faster than is tried again.
const TRIES: usize = 4;
/// How many writes are under way at a time.
const AT_ONCE: usize = 32;

/// Which part of an object a change is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Object,
    Status,
}

/// Closes a node to new pods, and says on its claim why. Fine when either is gone.
pub(super) async fn put(
    cluster: &Cluster,
    node: &NodeName,
    claim: &NodeClaimName,
    reason: Reason,
) -> Result<(), ApiError> {
    change(cluster, &key(node.as_str()), Part::Object, tainted).await?;
    let now = cluster.now();
    change(cluster, &key(claim.as_str()), Part::Status, |claim| {
        because(claim, reason, now)
    })
    .await
}

/// Opens a node again, and takes the reason back once it is initialised.
pub(super) async fn remove(cluster: &Cluster, node: &NodeName, claim: &NodeClaimName) -> Result<(), ApiError> {
    change(cluster, &key(node.as_str()), Part::Object, untainted).await?;
    let is_initialized = cluster.look(|state| {
        let known = state.get::<NodeClaim>(&key(claim.as_str()));
        known.is_some_and(|claim| state.machine_of_claim(claim).is_initialized())
    });
    if !is_initialized {
        return Ok(());
    }
    let now = cluster.now();
    change(cluster, &key(claim.as_str()), Part::Status, |claim| {
        unexplained(claim, now)
    })
    .await
}

/// Takes away every marker that belongs to no command.
pub(super) async fn clean(cluster: &Cluster, memory: &Memory) -> Result<(), ApiError> {
    let queued = memory.queued();
    let stale = cluster.look(|state| stale(state, |id| queued.iter().any(|queued| queued.as_str() == id)));
    let removals = stale
        .into_iter()
        .map(|(node, claim)| async move { remove(cluster, &node, &claim).await });
    let results: Vec<_> = stream::iter(removals).buffer_unordered(AT_ONCE).collect().await;
    results.into_iter().collect()
}

/// The nodes with a marker that are neither in a command, nor going, nor rebooting.
fn stale(state: &State, is_queued: impl Fn(&str) -> bool) -> Vec<(NodeName, NodeClaimName)> {
    let marked = state.machines().filter_map(|member| {
        let (node, claim) = (member.node?, member.claim?);
        let is_tainted = node.spec.taints.iter().any(is_ours) && !node.metadata.is_deleting();
        let is_explained = member.is_initialized() && claim.condition(DISRUPTION_REASON).is_some();
        let is_busy = state.is_marked_for_deletion(member)
            || member.is_rebooting()
            || claim
                .status
                .provider_id
                .as_ref()
                .is_some_and(|id| is_queued(id.as_str()));
        let is_stale = (is_tainted || is_explained) && !is_busy;
        is_stale.then(|| (NodeName::from(node.metadata.name.clone()), claim.name()))
    });
    marked.collect()
}

/// Changes an object as it is; if somebody was faster, as it is now. Fine when it is gone.
async fn change<T: Tracked + Written>(
    cluster: &Cluster,
    key: &ObjectKey,
    part: Part,
    change: impl Fn(&T) -> T,
) -> Result<(), ApiError> {
    let Some(mut seen) = cluster.get::<T>(key) else {
        return Ok(());
    };
    let mut tries = 0;
    loop {
        let after = change(&seen);
        let written = match part {
            Part::Object => cluster.update(&*seen, &after, Lock::Version).await,
            Part::Status => cluster.update_status(&*seen, &after, Lock::Version).await,
        };
        tries += 1;
        match written {
            Ok(_) => return Ok(()),
            Err(error) if error.is_not_found() => return Ok(()),
            Err(error) if !error.is_conflict() || tries == TRIES => return Err(error),
            Err(_) => {}
        }
        let fresh: T = match cluster.api().get(key).await {
            Err(error) if error.is_not_found() => return Ok(()),
            read => read?,
        };
        cluster.fold(|state| state.apply(fresh.clone()));
        seen = fresh.into();
    }
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::cluster_scoped(name)
}

fn is_ours(taint: &Taint) -> bool {
    *taint.key == *DISRUPTED && *taint.effect == *"NoSchedule"
}

fn tainted(node: &Node) -> Node {
    let mut after = node.clone();
    if !node.spec.taints.iter().any(is_ours) {
        let others = node.spec.taints.iter().filter(|taint| *taint.key != *DISRUPTED);
        let disrupted = Taint {
            key: DISRUPTED.into(),
            effect: "NoSchedule".into(),
            ..Taint::default()
        };
        after.spec.taints = others.cloned().chain([disrupted]).collect();
    }
    after
}

/// A node that is going keeps its taint.
fn untainted(node: &Node) -> Node {
    let mut after = node.clone();
    if !node.metadata.is_deleting() {
        let others = node.spec.taints.iter().filter(|taint| !is_ours(taint));
        after.spec.taints = others.cloned().collect();
    }
    after
}

fn because(claim: &NodeClaim, reason: Reason, now: Timestamp) -> NodeClaim {
    let mut after = claim.clone();
    let (metadata, list) = (&claim.metadata, &mut after.status.conditions);
    conditions::change(TYPES, metadata, list, now, |set| {
        set.set_true_with_reason(DISRUPTION_REASON, reason.as_str(), reason.as_str());
    });
    after
}

fn unexplained(claim: &NodeClaim, now: Timestamp) -> NodeClaim {
    let mut after = claim.clone();
    if claim.condition(DISRUPTION_REASON).is_some() {
        let (metadata, list) = (&claim.metadata, &mut after.status.conditions);
        conditions::change(TYPES, metadata, list, now, |set| {
            set.clear(DISRUPTION_REASON).ok();
        });
    }
    after
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn node(taints: &Value, deletion: Option<&str>) -> Node {
        let json = json!({"metadata": {"name": "n", "deletionTimestamp": deletion}, "spec": {"taints": taints}});
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn a_node_is_closed_once_and_opened_again_unless_it_goes() {
        let other = json!({"key": "a", "effect": "NoSchedule"});
        let ours = json!({"key": "karpenter.sh/disrupted", "effect": "NoSchedule"});
        let open = node(&json!([other]), None);
        let closed = node(&json!([other, ours]), None);
        assert_eq!(tainted(&open), closed);
        assert_eq!(tainted(&closed), closed);
        assert_eq!(untainted(&closed), open);
        let going = node(&json!([ours]), Some("2026-11-16T10:00:00Z"));
        assert_eq!(untainted(&going), going);
    }

    #[test]
    fn the_reason_stands_on_the_claim_while_a_command_is_under_way() {
        let claim: NodeClaim = serde_json::from_value(json!({"metadata": {"name": "a", "generation": 1}})).unwrap();
        let now = "2026-11-16T10:00:00Z".parse().unwrap();
        let marked = because(&claim, Reason::Drifted, now);
        let condition = marked.condition("DisruptionReason").unwrap();
        assert_eq!((&*condition.reason, &*condition.message), ("Drifted", "Drifted"));
        assert_eq!(unexplained(&marked, now).condition("DisruptionReason"), None);
    }
}
