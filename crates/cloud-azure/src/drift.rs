//! Is a claim's machine still what its node class asks for?

use api::{
    annotations::azure::{AKS_MACHINE_RESOURCE_ID, AKSNODECLASS_HASH, AKSNODECLASS_HASH_VERSION},
    azure::AKSNodeClass,
    labels::{NODEPOOL, azure::AKS_KUBELET_IDENTITY_CLIENT_ID},
};
use cloud::CloudError;
use http::Method;
use model::object::NodeClaim;
use serde::Deserialize;
use std::{collections::BTreeMap, time::Duration};

use crate::{launch::node_image_version, reads::ReadSide};

/// Every claim is looked at again and again: one list of the machines does for all of them for so long.
const LISTED: Duration = Duration::from_secs(30);

/// As much of a Node as drift asks for.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct NodeFacts {
    metadata: NodeMetadata,
    status: NodeStatus,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NodeMetadata {
    labels: BTreeMap<String, String>,
    deletion_timestamp: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NodeStatus {
    node_info: NodeInfo,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NodeInfo {
    kubelet_version: String,
}

/// Why it is not; none when it is. What costs no call is looked at first.
pub(crate) async fn drift(
    claim: &NodeClaim,
    class: &AKSNodeClass,
    read: &ReadSide,
) -> Result<Option<String>, CloudError> {
    if claim.metadata.labels.get(NODEPOOL).is_none() {
        return Ok(None);
    }
    if claim.status.provider_id.is_none() {
        let name = &claim.metadata.name;
        return Err(CloudError::Other(format!("nodeclaim {name} is missing provider ID")));
    }
    if is_hash_other(claim, class) {
        return Ok(Some("NodeClassDrift".to_owned()));
    }
    let node = node_of(claim, read).await?;
    let node = node.filter(|node| node.metadata.deletion_timestamp.is_none());
    let of_aks = claim.metadata.annotations.get(AKS_MACHINE_RESOURCE_ID).map(|id| &**id);
    let identity = &read.settings.azure.kubelet_identity_client_id;
    let reason = node.and_then(|node| {
        let version = version_drift(&node, class);
        // What identity its nodes have is AKS's own affair.
        version.or_else(|| of_aks.is_none().then(|| identity_drift(&node, identity)).flatten())
    });
    if reason.is_some() {
        return Ok(reason.map(str::to_owned));
    }
    let reason = match image_drift(claim, class, of_aks.is_some())? {
        Some(reason) => Some(reason),
        None => aks_drift(of_aks, read).await?,
    };
    Ok(reason.map(str::to_owned))
}

/// Whether AKS would make a machine anew, because the cluster is another than when it was made.
async fn aks_drift(machine: Option<&str>, read: &ReadSide) -> Result<Option<&'static str>, CloudError> {
    let (Some(id), Some(pool)) = (machine, &read.pool) else {
        return Ok(None);
    };
    let name = id.rsplit('/').next().unwrap_or_default();
    match read.aks_list.machine(&read.arm, pool, name, LISTED).await {
        Ok(machine) => Ok(action_drift(&machine.properties.status.drift_action)),
        Err(failure) if failure.is_not_found() => Err(CloudError::NotFound(format!("AKS machine {name} not found"))),
        Err(failure) => Err(failure.into_cloud("getting AKS machine")),
    }
}

/// An action that nobody knows yet is covered by making the machine anew.
fn action_drift(action: &str) -> Option<&'static str> {
    (!matches!(action, "" | "Synced")).then_some("ClusterConfigDrift")
}

async fn node_of(claim: &NodeClaim, read: &ReadSide) -> Result<Option<NodeFacts>, CloudError> {
    let Some(name) = &claim.status.node_name else {
        return Ok(None);
    };
    let path = format!("/api/v1/nodes/{}", name.as_str());
    match read
        .objects
        .api()
        .call(Method::GET, &path, None, "application/json")
        .await
    {
        Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(CloudError::Other(format!("getting node {name}, {error}"))),
    }
}

/// Only hashes of one recipe can be compared.
fn is_hash_other(claim: &NodeClaim, class: &AKSNodeClass) -> bool {
    let of_class = |key: &str| class.metadata.annotations.as_ref()?.get(key).map(String::as_str);
    let of_claim = |key: &str| claim.metadata.annotations.get(key).map(|it| &**it);
    let (Some(recipe), Some(other)) = (of_class(AKSNODECLASS_HASH_VERSION), of_claim(AKSNODECLASS_HASH_VERSION)) else {
        return false;
    };
    match (of_class(AKSNODECLASS_HASH), of_claim(AKSNODECLASS_HASH)) {
        (Some(one), Some(two)) => recipe == other && one != two,
        _ => false,
    }
}

/// A version that is not known yet says nothing.
fn version_drift(node: &NodeFacts, class: &AKSNodeClass) -> Option<&'static str> {
    let runs = node.status.node_info.kubelet_version.as_str();
    let runs = runs.strip_prefix('v').unwrap_or(runs);
    let wanted = class.kubernetes_version().ok()?;
    (wanted != runs).then_some("K8sVersionDrift")
}

/// A node of a time when the identity was no label says nothing.
fn identity_drift(node: &NodeFacts, identity: &str) -> Option<&'static str> {
    let has = node
        .metadata
        .labels
        .get(AKS_KUBELET_IDENTITY_CLIENT_ID)
        .filter(|it| !it.is_empty());
    has.filter(|it| *it != identity).map(|_| "KubeletIdentityDrift")
}

/// AKS names an image by its gallery, definition and version.
fn image_drift(claim: &NodeClaim, class: &AKSNodeClass, is_of_aks: bool) -> Result<Option<&'static str>, CloudError> {
    let Ok(images) = class.images() else {
        return Ok(None);
    };
    if images.is_empty() {
        return Err(CloudError::Other(
            "no images exist for the given constraints".to_owned(),
        ));
    }
    let has = &claim.status.image_id;
    if has.is_empty() {
        return Err(CloudError::Other("no image ID found in nodeClaim status".to_owned()));
    }
    let is_known = images.iter().any(|image| {
        if is_of_aks {
            return node_image_version(&image.id).is_ok_and(|version| *version == **has);
        }
        *image.id == **has
    });
    Ok((!is_known).then_some("ImageDrift"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::needless_pass_by_value, reason = "called with literals")]

    use serde_json::{Value, json};

    use super::*;

    fn class(annotations: Value) -> AKSNodeClass {
        let condition = |kind: &str| {
            json!({"type": kind, "status": "True", "observedGeneration": 1, "reason": kind,
            "message": "", "lastTransitionTime": "2026-11-17T10:00:00Z"})
        };
        serde_json::from_value(json!({
            "apiVersion": "karpenter.azure.com/v1beta1", "kind": "AKSNodeClass",
            "metadata": {"name": "c", "generation": 1, "annotations": annotations}, "spec": {},
            "status": {"kubernetesVersion": "1.34.1", "images": [{"id": "/i/1", "requirements": []}],
                "conditions": [condition("ImagesReady"), condition("KubernetesVersionReady")]},
        }))
        .unwrap()
    }

    fn claim(annotations: Value, image: &str) -> NodeClaim {
        serde_json::from_value(json!({"metadata": {"name": "a", "annotations": annotations},
            "status": {"imageID": image}}))
        .unwrap()
    }

    fn node(version: &str, identity: &str) -> NodeFacts {
        serde_json::from_value(
            json!({"metadata": {"labels": {AKS_KUBELET_IDENTITY_CLIENT_ID: identity}},
            "status": {"nodeInfo": {"kubeletVersion": version}}}),
        )
        .unwrap()
    }

    #[test]
    fn hashes_of_one_recipe_are_compared_and_no_others() {
        let annotations =
            |hash: &str, version: &str| json!({AKSNODECLASS_HASH: hash, AKSNODECLASS_HASH_VERSION: version});
        let is_other = |a: Value, b: Value| is_hash_other(&claim(a, ""), &class(b));
        assert!(is_other(annotations("1", "v3"), annotations("2", "v3")));
        assert!(!is_other(annotations("1", "v3"), annotations("1", "v3")));
        assert!(!is_other(annotations("1", "v2"), annotations("2", "v3")));
        assert!(!is_other(json!({}), annotations("2", "v3")));
        assert!(!is_other(annotations("1", "v3"), json!({AKSNODECLASS_HASH: "2"})));
    }

    #[test]
    fn a_node_drifts_with_its_version_and_its_identity() {
        let class = class(json!({}));
        assert_eq!(version_drift(&node("v1.34.1", "id"), &class), None);
        assert_eq!(version_drift(&node("v1.33.0", "id"), &class), Some("K8sVersionDrift"));
        assert_eq!(identity_drift(&node("v1.34.1", "id"), "id"), None);
        assert_eq!(
            identity_drift(&node("v1.34.1", "old"), "new"),
            Some("KubeletIdentityDrift")
        );
        assert_eq!(identity_drift(&node("v1.34.1", ""), "new"), None);
    }

    #[test]
    fn a_version_or_images_that_are_not_ready_drift_nothing() {
        let mut class = class(json!({}));
        class.metadata.generation = Some(2);
        assert_eq!(version_drift(&node("v1.33.0", "id"), &class), None);
        assert_eq!(image_drift(&claim(json!({}), "/i/0"), &class, false), Ok(None));
    }

    #[test]
    fn a_machine_drifts_when_its_image_is_no_longer_listed() {
        let class = class(json!({}));
        assert_eq!(image_drift(&claim(json!({}), "/i/1"), &class, false), Ok(None));
        assert_eq!(
            image_drift(&claim(json!({}), "/i/0"), &class, false),
            Ok(Some("ImageDrift"))
        );
        assert!(image_drift(&claim(json!({}), ""), &class, false).is_err());
    }

    #[test]
    fn a_machine_of_aks_drifts_when_its_node_image_version_is_no_longer_listed() {
        let mut class = class(json!({}));
        let id = "/subscriptions/s/resourceGroups/AKS-Ubuntu/providers/Microsoft.Compute/galleries/AKSUbuntu/images/2204gen2containerd/versions/2022.10.03";
        if let Some(image) = class.status.as_mut().and_then(|it| it.images.first_mut()) {
            id.clone_into(&mut image.id);
        }
        let drift = |image: &str| image_drift(&claim(json!({}), image), &class, true);
        assert_eq!(drift("AKSUbuntu-2204gen2containerd-2022.10.03"), Ok(None));
        assert_eq!(drift("AKSUbuntu-2204gen2containerd-2022.10.02"), Ok(Some("ImageDrift")));
    }

    #[test]
    fn whatever_aks_would_do_about_a_machine_is_drift_but_nothing() {
        assert_eq!(action_drift(""), None);
        assert_eq!(action_drift("Synced"), None);
        assert_eq!(action_drift("Recreate"), Some("ClusterConfigDrift"));
        assert_eq!(action_drift("Reimage"), Some("ClusterConfigDrift"));
    }
}
