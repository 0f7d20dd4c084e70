//! The NodePool's drift hash: a node whose claim carries another hash than its pool is replaced.
//!
//! Bit-equal to upstream's version `v3`. Hashed is the template without its requirements; fields are folded in Go's
//! declaration order.

use super::{NodeClaimTemplate, NodeClaimTemplateSpec, NodeClassReference, NodePool, ObjectMeta, Taint};
use crate::{
    duration::{Duration, NillableDuration},
    hash::{self, Struct},
    time::Time,
};

/// What `karpenter.sh/nodepool-hash-version` says next to this hash.
pub const NODEPOOL_HASH_VERSION: &str = "v3";

impl NodePool {
    /// The text of the annotation `karpenter.sh/nodepool-hash`.
    pub fn hash(&self) -> String {
        self.spec.template.hash().to_string()
    }
}

impl NodeClaimTemplate {
    fn hash(&self) -> u64 {
        Struct::new("NodeClaimTemplate")
            .field("ObjectMeta", self.metadata.hash())
            .field("Spec", self.spec.hash())
            .done()
    }
}

impl ObjectMeta {
    /// `None` when Go would see an all-zero struct. An empty map is not zero, an absent one is.
    fn hash(&self) -> Option<u64> {
        let labels = self.labels.as_ref().map(hash::string_map);
        let annotations = self.annotations.as_ref().map(hash::string_map);
        if labels.is_none() && annotations.is_none() {
            return None;
        }
        Some(
            Struct::new("ObjectMeta")
                .field("Labels", labels)
                .field("Annotations", annotations)
                .done(),
        )
    }
}

impl NodeClaimTemplateSpec {
    fn hash(&self) -> u64 {
        let taints = |taints: &Option<Vec<Taint>>| taints.as_ref().map(|t| hash::set(t.iter().map(Taint::hash)));
        Struct::new("NodeClaimTemplateSpec")
            .field("Taints", taints(&self.taints))
            .field("StartupTaints", taints(&self.startup_taints))
            .field("NodeClassRef", self.node_class_ref.hash())
            .field(
                "TerminationGracePeriod",
                self.termination_grace_period.map(Duration::hash),
            )
            .field("ExpireAfter", self.expire_after.hash())
            .done()
    }
}

impl Taint {
    fn hash(&self) -> u64 {
        Struct::new("Taint")
            .field("Key", text(&self.key))
            .field("Value", text(&self.value))
            .field("Effect", text(self.effect.as_str()))
            .field("TimeAdded", self.time_added.map(Time::hash))
            .done()
    }
}

impl NodeClassReference {
    fn hash(&self) -> u64 {
        Struct::new("NodeClassReference")
            .field("Kind", text(&self.kind))
            .field("Name", text(&self.name))
            .field("Group", text(&self.group))
            .done()
    }
}

/// A Go string field: the empty string is zero and skipped.
fn text(text: &str) -> Option<u64> {
    (!text.is_empty()).then(|| hash::string(text))
}

impl Time {
    /// A `*metav1.Time`, whose inner time hashes as Go's binary encoding: a version byte, seconds since the year 1,
    /// nanoseconds, and the zone's offset in minutes. Upstream reads times into the local zone, which is an offset of
    /// 0 in its container and not the -1 that stands for UTC.
    fn hash(self) -> u64 {
        const SECONDS_TO_UNIX_EPOCH: i64 = 62_135_596_800;
        let mut encoded = vec![1];
        encoded.extend((self.0.as_second() + SECONDS_TO_UNIX_EPOCH).to_be_bytes());
        encoded.extend(self.0.subsec_nanosecond().to_be_bytes());
        encoded.extend([0, 0]);
        Struct::new("Time").field("Time", hash::bytes(&encoded)).done()
    }
}

impl Duration {
    /// A `*metav1.Duration`: the pointer keeps a zero span in the hash, as a struct without fields.
    pub(crate) fn hash(self) -> u64 {
        let nanos = (self.as_nanos() != 0).then(|| hash::int64(self.as_nanos()));
        Struct::new("Duration").field("Duration", nanos).done()
    }
}

impl NillableDuration {
    /// A `NillableDuration` holds a pointer: `Never` is zero, and a zero span is not.
    pub(crate) fn hash(&self) -> Option<u64> {
        let span = self.span()?;
        Some(
            Struct::new("NillableDuration")
                .field("Duration", hash::int64(span.as_nanos()))
                .done(),
        )
    }
}

#[cfg(test)]
mod tests;
