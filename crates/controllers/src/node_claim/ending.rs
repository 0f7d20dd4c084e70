//! Deleting a claim on purpose: once, only the one that was judged, and counted by its reason.

use api::labels;
use cloud::NoticeKind;
use model::object::{NodeClaim, ObjectKey, Pod, Uid};
use runtime::{ApiError, Delete};

use crate::{Cluster, records};

/// Why a claim is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The cloud has no such machine to give.
    InsufficientCapacity,
    /// The node class cannot be launched from.
    NodeClassNotReady,
    /// No machine came in time.
    LaunchTimeout,
    /// No node came in time.
    RegistrationTimeout,
    /// It is as old as it may be.
    Expired,
    /// Its machine is gone.
    GarbageCollected,
    /// It is broken.
    Unhealthy,
    /// The cloud will take its machine, or stops it.
    Interrupted(NoticeKind),
}

impl Reason {
    /// The `reason` label of `karpenter_nodeclaims_disrupted_total`.
    pub fn label(self) -> &'static str {
        match self {
            Self::InsufficientCapacity => "insufficient_capacity",
            Self::NodeClassNotReady => "nodeclass_not_ready",
            Self::LaunchTimeout => "launch_timeout",
            Self::RegistrationTimeout => "registration_timeout",
            Self::Expired => "expired",
            Self::GarbageCollected => "garbage_collected",
            Self::Unhealthy => "unhealthy",
            Self::Interrupted(kind) => kind.label(),
        }
    }

    /// Whether pods may be running on the node by then, so that they are counted too.
    fn disturbs_pods(self) -> bool {
        matches!(
            self,
            Self::Expired | Self::GarbageCollected | Self::Unhealthy | Self::Interrupted(_)
        )
    }
}

/// Whether a refusal means that the claim is gone. A conflict says that another has its name by now, or only that the
/// server could not settle who came first: then it is still there, and must be asked for again.
pub(crate) async fn is_gone(
    cluster: &Cluster,
    claim: &ObjectKey,
    uid: &Uid,
    error: &ApiError,
) -> Result<bool, ApiError> {
    if !error.is_conflict() {
        return Ok(error.is_not_found());
    }
    match cluster.api().get::<NodeClaim>(claim).await {
        Ok(found) => Ok(found.metadata.uid != *uid),
        Err(error) if error.is_not_found() => Ok(true),
        Err(error) => Err(error),
    }
}

/// Deletes a claim and counts it. False when it was gone already.
pub(crate) async fn end(cluster: &Cluster, claim: &NodeClaim, reason: Reason) -> Result<bool, ApiError> {
    let only_this = Delete {
        uid: Some(claim.metadata.uid.clone()),
        ..Delete::default()
    };
    let key = claim.metadata.key();
    match cluster.delete::<NodeClaim>(&key, &only_this).await {
        Ok(()) => {}
        Err(error) if is_gone(cluster, &key, &claim.metadata.uid, &error).await? => return Ok(false),
        Err(error) => return Err(error),
    }
    let labels = [
        reason.label(),
        label(claim, labels::NODEPOOL),
        label(claim, labels::CAPACITY_TYPE),
        "",
        termination_mode(claim),
    ];
    cluster.metrics().nodeclaims_disrupted_total.inc(labels);
    records::ended(cluster, claim, reason);
    if reason.disturbs_pods() {
        let pods = cluster.look(|state| {
            let node = claim.status.node_name.as_ref();
            node.map_or(0, |node| {
                let pods = state.pods_on_node(node.as_str());
                pods.filter(|pod| is_reschedulable(pod)).count()
            })
        });
        let pods = u32::try_from(pods).unwrap_or(u32::MAX);
        cluster
            .metrics()
            .pods_disruption_initiated_total
            .add(labels, f64::from(pods));
    }
    Ok(true)
}

/// The value of a claim's label, empty without one.
pub(crate) fn label<'a>(claim: &'a NodeClaim, key: &str) -> &'a str {
    claim.metadata.labels.get(key).map_or("", |value| value)
}

/// The `termination_mode` label: how far the claim's grace period lets a drain go.
pub(crate) fn termination_mode(claim: &NodeClaim) -> &'static str {
    match claim.spec.termination_grace_period {
        None => "graceful",
        Some(period) if period.as_nanos() <= 0 => "forceful",
        Some(_) => "eventual",
    }
}

/// Whether a pod needs a place elsewhere when its node goes. All of:
/// - it is active, or is being deleted and a StatefulSet will make it anew;
/// - no DaemonSet owns it;
/// - it is no static pod.
fn is_reschedulable(pod: &Pod) -> bool {
    let returns = pod.metadata.is_deleting() && pod.metadata.is_owned_by("apps/v1", "StatefulSet");
    (pod.is_active() || returns) && !pod.is_owned_by_daemon_set() && !pod.is_owned_by_node()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grace_period_tells_the_termination_mode() {
        let claim = |period: &str| -> NodeClaim {
            serde_json::from_str(&format!(r#"{{"spec":{{"requirements":[]{period}}}}}"#)).unwrap()
        };
        let cases = [
            ("", "graceful"),
            (r#","terminationGracePeriod":"0s""#, "forceful"),
            (r#","terminationGracePeriod":"5m""#, "eventual"),
        ];
        for (period, mode) in cases {
            assert_eq!(termination_mode(&claim(period)), mode, "{period}");
        }
    }

    #[test]
    fn pods_that_nobody_places_anew_do_not_count_as_disturbed() {
        let pod = |json: &str| -> Pod { serde_json::from_str(json).unwrap() };
        let cases = [
            (r#"{"metadata":{},"status":{"phase":"Running"}}"#, true),
            (r#"{"metadata":{},"status":{"phase":"Succeeded"}}"#, false),
            (r#"{"metadata":{"deletionTimestamp":"2026-11-16T10:00:00Z"}}"#, false),
            (
                r#"{"metadata":{"deletionTimestamp":"2026-11-16T10:00:00Z","ownerReferences":[
                    {"apiVersion":"apps/v1","kind":"StatefulSet","name":"s","uid":"u"}]}}"#,
                true,
            ),
            (
                r#"{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"DaemonSet","name":"d","uid":"u"}]}}"#,
                false,
            ),
            (
                r#"{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n","uid":"u"}]}}"#,
                false,
            ),
        ];
        for (json, expected) in cases {
            assert_eq!(is_reschedulable(&pod(json)), expected, "{json}");
        }
    }
}
