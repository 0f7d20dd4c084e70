//! What is known of a node that goes away: its claim, its pods, and the volumes it must let go.

use std::{collections::BTreeSet, sync::Arc};

use cloud::NodeClassKind;
use jiff::Timestamp;
use model::object::{Node, NodeClaim, ObjectKey, PersistentVolumeClaim, Pod, Text, VolumeAttachment};
use state::{Kind, State};

use super::super::{claim_of, is_leaving};

/// A node that goes away.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Seen {
    pub(super) node: Arc<Node>,
    /// None when there is not exactly one.
    pub(super) claim: Option<Arc<NodeClaim>>,
    pub(super) pods: Vec<Arc<Pod>>,
    /// Names of the attachments that must go before the machine does.
    pub(super) attachments: Vec<Text>,
}

impl Seen {
    /// A label of the node; empty when it has none.
    pub(super) fn label(&self, key: &str) -> String {
        self.node
            .metadata
            .labels
            .get(key)
            .map(ToString::to_string)
            .unwrap_or_default()
    }
}

/// Nothing can be said of a node before its claim and its pods are known.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{kind} have not been listed yet; if this lasts, see the log for why the list fails")]
pub(super) struct Unlisted {
    pub(super) node: Arc<Node>,
    kind: &'static str,
}

/// Looks at a node. None when it is not on its way out, or not ours.
pub(super) fn observe(
    state: &State,
    key: &ObjectKey,
    kinds: &[NodeClassKind],
    now: Timestamp,
) -> Result<Option<Seen>, Unlisted> {
    let Some(node) = state.get::<Node>(key).filter(|node| is_leaving(node, kinds)) else {
        return Ok(None);
    };
    for (kind, plural) in [(Kind::NodeClaim, "NodeClaims"), (Kind::Pod, "Pods")] {
        if !state.is_listed(kind) {
            let node = Arc::clone(node);
            return Err(Unlisted { node, kind: plural });
        }
    }
    let pods: Vec<_> = state.pods_on_node(&key.name).cloned().collect();
    Ok(Some(Seen {
        node: Arc::clone(node),
        claim: claim_of(state, node).cloned(),
        attachments: attachments(state, &key.name, &pods, now),
        pods,
    }))
}

/// The attachments of a node that must go. As long as volumes are not known, something may be attached.
fn attachments(state: &State, node: &str, pods: &[Arc<Pod>], now: Timestamp) -> Vec<Text> {
    let volumes = [Kind::VolumeAttachment, Kind::PersistentVolumeClaim];
    if volumes.iter().any(|kind| !state.is_listed(*kind)) {
        return vec!["not listed yet".into()];
    }
    let attached: Vec<_> = state.attachments_of_node(node).cloned().collect();
    let kept = kept_volumes(pods, |claim| state.get::<PersistentVolumeClaim>(claim).cloned(), now);
    pending(&attached, &kept)
}

/// The volumes of pods that stay on the node whatever happens. A claim that is gone keeps nothing.
fn kept_volumes(
    pods: &[Arc<Pod>],
    claim: impl Fn(&ObjectKey) -> Option<Arc<PersistentVolumeClaim>>,
    now: Timestamp,
) -> BTreeSet<Text> {
    let mut kept = BTreeSet::new();
    for pod in pods.iter().filter(|pod| !pod.is_drainable(now)) {
        let names = pod
            .spec
            .volumes
            .iter()
            .filter_map(|volume| volume.claim_name(&pod.metadata.name));
        let claims = names.filter_map(|name| claim(&ObjectKey::new(&pod.metadata.namespace, &name)));
        kept.extend(claims.map(|claim| claim.spec.volume_name.clone()));
    }
    kept
}

/// The attachments of volumes that no pod keeps; those without a volume's name are nobody's.
fn pending(attached: &[Arc<VolumeAttachment>], kept: &BTreeSet<Text>) -> Vec<Text> {
    let of_volume = |attachment: &&Arc<VolumeAttachment>| {
        let volume = attachment.spec.source.persistent_volume_name.as_ref();
        volume.is_some_and(|volume| !kept.contains(volume))
    };
    let left = attached.iter().filter(of_volume);
    left.map(|attachment| attachment.metadata.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn attachment(name: &str, volume: &Value) -> Arc<VolumeAttachment> {
        let json = json!({
            "metadata": {"name": name},
            "spec": {"attacher": "csi", "nodeName": "n", "source": {"persistentVolumeName": volume}},
        });
        Arc::new(serde_json::from_value(json).unwrap())
    }

    fn pod(spec: &Value) -> Arc<Pod> {
        let json = json!({"metadata": {"namespace": "ns", "name": "db-0"}, "spec": spec});
        Arc::new(serde_json::from_value(json).unwrap())
    }

    #[test]
    fn volumes_of_pods_that_stay_are_not_waited_for() {
        let tolerations = json!([{"operator": "Exists"}]);
        let volumes = json!([
            {"name": "data", "persistentVolumeClaim": {"claimName": "data-claim"}},
            {"name": "scratch", "ephemeral": {}},
            {"name": "gone", "persistentVolumeClaim": {"claimName": "no-such-claim"}},
        ]);
        let claim = |key: &ObjectKey| {
            let volume = match key.to_string().as_str() {
                "ns/data-claim" => "pv-data",
                "ns/db-0-scratch" => "pv-scratch",
                _ => return None,
            };
            let json = json!({"metadata": {"name": "c"}, "spec": {"volumeName": volume}});
            Some(Arc::new(serde_json::from_value(json).unwrap()))
        };
        let attached = [
            attachment("a-data", &json!("pv-data")),
            attachment("a-scratch", &json!("pv-scratch")),
            attachment("a-other", &json!("pv-other")),
            attachment("a-nameless", &Value::Null),
        ];
        let now = "2026-11-16T10:00:00Z".parse().unwrap();
        let left = |spec: &Value| pending(&attached, &kept_volumes(&[pod(spec)], claim, now));
        assert_eq!(
            left(&json!({"tolerations": tolerations, "volumes": volumes})),
            ["a-other".into()]
        );
        assert_eq!(
            left(&json!({"volumes": volumes})),
            ["a-data".into(), "a-scratch".into(), "a-other".into()]
        );
    }
}
