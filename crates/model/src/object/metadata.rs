//! Who an object is: the part of `metadata` that decisions, watches and owners read.
//!
//! `managedFields`, `generateName` and `selfLink` are dropped. Of the annotations only those are kept that Karpenter or
//! its providers read ([`is_kept_annotation`]); the rest (checksums, last-applied manifests) is the bulk of many objects.

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};

use super::{List, Map, ObjectKey, ResourceVersion, Text, Uid, list};
use crate::sharing::Sharing;

/// Label or annotation pairs, sorted by key.
pub type Labels = Map<Text>;

/// The identity, labels and life cycle of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    /// Empty for cluster-scoped kinds.
    #[serde(skip_serializing_if = "is_unset")]
    pub namespace: Text,
    /// Unique within kind and namespace.
    #[serde(skip_serializing_if = "is_unset")]
    pub name: Text,
    /// Unique over time.
    #[serde(skip_serializing_if = "Uid::is_unset")]
    pub uid: Uid,
    /// For optimistic locking and for telling an old event from a new one.
    #[serde(skip_serializing_if = "ResourceVersion::is_unset")]
    pub resource_version: ResourceVersion,
    /// Counts changes of the spec; zero where the server does not count.
    #[serde(skip_serializing_if = "is_zero")]
    pub generation: i64,
    /// All labels.
    #[serde(with = "list::map", skip_serializing_if = "List::is_empty")]
    pub labels: Labels,
    /// Only the annotations of [`is_kept_annotation`].
    #[serde(
        serialize_with = "list::map::serialize",
        deserialize_with = "kept_annotations",
        skip_serializing_if = "List::is_empty"
    )]
    pub annotations: Labels,
    /// When the object was created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creation_timestamp: Option<Timestamp>,
    /// When the object is due to be gone; set means it is being deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<Timestamp>,
    /// Seconds granted when deletion began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_grace_period_seconds: Option<i64>,
    /// What the object belongs to.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub owner_references: List<OwnerReference>,
    /// What must happen before the object goes.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub finalizers: List<Text>,
}

/// One owner of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OwnerReference {
    /// Group and version of the owner.
    pub api_version: Text,
    /// Kind of the owner.
    pub kind: Text,
    /// Name of the owner, in the same namespace or cluster-scoped.
    pub name: Text,
    /// Identity of the owner.
    pub uid: Uid,
    /// True for the one owner that manages the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<bool>,
    /// True when the owner's deletion waits for this object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_owner_deletion: Option<bool>,
}

impl Metadata {
    /// The object's key within its kind.
    pub fn key(&self) -> ObjectKey {
        ObjectKey {
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        }
    }

    /// True once deletion was requested.
    pub fn is_deleting(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    /// The owner that manages the object.
    pub fn controller(&self) -> Option<&OwnerReference> {
        self.owner_references
            .iter()
            .find(|owner| owner.controller == Some(true))
    }

    /// True when any owner, not only the managing one, has exactly this apiVersion and kind.
    pub fn is_owned_by(&self, api_version: &str, kind: &str) -> bool {
        self.owner_references
            .iter()
            .any(|owner| *owner.api_version == *api_version && *owner.kind == *kind)
    }

    pub(crate) fn share(&mut self, pool: &mut Sharing) {
        pool.text(&mut self.namespace);
        pool.labels(&mut self.labels);
        pool.labels(&mut self.annotations);
        pool.owners(&mut self.owner_references);
        pool.texts(&mut self.finalizers);
    }
}

/// Annotation domains and keys outside the `karpenter` domains that something reads:
/// - `controller.kubernetes.io/pod-deletion-cost`: eviction cost;
/// - `pv.kubernetes.io/bind-completed`: a claim counts as bound only with it.
const KEPT_ANNOTATIONS: [&str; 2] = [
    "controller.kubernetes.io/pod-deletion-cost",
    "pv.kubernetes.io/bind-completed",
];

/// True for the annotations a slim object keeps: every key whose domain has a `karpenter` label (`karpenter.sh`,
/// `karpenter.k8s.aws`, `compatibility.karpenter.sh`, …) or is under `dovetail.dev`, and the few of other domains that upstream reads.
pub fn is_kept_annotation(key: &str) -> bool {
    let domain = key.split_once('/').map_or("", |(domain, _)| domain);
    domain.split('.').any(|label| label == "karpenter")
        || domain == "dovetail.dev"
        || domain.ends_with(".dovetail.dev")
        || KEPT_ANNOTATIONS.contains(&key)
}

/// The manifest `kubectl apply` leaves behind: the bulk of an object, and nothing to hand on.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Reads the metadata of kinds whose annotations are handed on to nodes: all of them are kept.
pub(crate) fn with_all_annotations<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Metadata, D::Error> {
    AllAnnotations::deserialize(deserializer)
}

/// [`Metadata`] with all annotations.
#[derive(Deserialize)]
#[serde(remote = "Metadata", rename_all = "camelCase")]
struct AllAnnotations {
    #[serde(default)]
    namespace: Text,
    #[serde(default)]
    name: Text,
    #[serde(default)]
    uid: Uid,
    #[serde(default)]
    resource_version: ResourceVersion,
    #[serde(default)]
    generation: i64,
    #[serde(default, with = "list::map")]
    labels: Labels,
    #[serde(default, deserialize_with = "annotations_but_the_manifest")]
    annotations: Labels,
    #[serde(default)]
    creation_timestamp: Option<Timestamp>,
    #[serde(default)]
    deletion_timestamp: Option<Timestamp>,
    #[serde(default)]
    deletion_grace_period_seconds: Option<i64>,
    #[serde(default)]
    owner_references: List<OwnerReference>,
    #[serde(default)]
    finalizers: List<Text>,
}

fn annotations_but_the_manifest<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Labels, D::Error> {
    list::map::deserialize_where(deserializer, |key| key != LAST_APPLIED)
}

fn kept_annotations<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Labels, D::Error> {
    list::map::deserialize_where(deserializer, is_kept_annotation)
}

pub(crate) fn is_unset(text: &Text) -> bool {
    text.is_empty()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
pub(crate) fn is_zero(number: &i64) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
pub(crate) fn is_false(flag: &bool) -> bool {
    !flag
}

/// Reads an optional name, taking the empty string for none as the API does.
pub(crate) fn non_empty<'de, N: From<Text>, D: Deserializer<'de>>(deserializer: D) -> Result<Option<N>, D::Error> {
    let text = Option::<Text>::deserialize(deserializer)?;
    Ok(text.filter(|text| !text.is_empty()).map(N::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_annotations_that_something_reads_are_kept() {
        let cases = [
            ("karpenter.sh/do-not-disrupt", true),
            ("karpenter.k8s.aws/ec2nodeclass-hash", true),
            ("compatibility.karpenter.k8s.aws/cluster-name-tagged", true),
            ("controller.kubernetes.io/pod-deletion-cost", true),
            ("pv.kubernetes.io/bind-completed", true),
            ("kubectl.kubernetes.io/last-applied-configuration", false),
            ("notkarpenter.sh/x", false),
            ("karpenter", false),
        ];
        for (key, kept) in cases {
            assert_eq!(is_kept_annotation(key), kept, "{key}");
        }
    }

    #[test]
    fn metadata_keeps_identity_and_drops_bookkeeping() {
        let json = r#"{"name":"web-1","namespace":"team","uid":"u","resourceVersion":"7","generateName":"web-","creationTimestamp":null,
            "labels":{"b":"2","a":"1"},"annotations":{"checksum/config":"x","karpenter.sh/do-not-disrupt":"true"},
            "managedFields":[{"fieldsV1":{"f:metadata":{}}}]}"#;
        let metadata: Metadata = serde_json::from_str(json).unwrap();
        let expected = concat!(
            r#"{"namespace":"team","name":"web-1","uid":"u","resourceVersion":"7","labels":{"a":"1","b":"2"},"#,
            r#""annotations":{"karpenter.sh/do-not-disrupt":"true"}}"#
        );
        assert_eq!(serde_json::to_string(&metadata).unwrap(), expected);
    }
}
