//! What makes pods: the templates daemon overhead and buffers read, and the selectors default spread constraints read.

use serde::{Deserialize, Serialize};

use super::{BriefCondition, ConditionStatus, LabelSelector, Labels, List, Metadata, Object, PodTemplateSpec, list};
use crate::sharing::Sharing;

macro_rules! workloads {
    ($($(#[$doc:meta])* $kind:ident($api_version:literal) { $spec:ident };)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(default)]
        pub struct $kind {
            /// Who it is.
            pub metadata: Metadata,
            /// What it makes and owns.
            pub spec: $spec,
        }

        impl Object for $kind {
            const API_VERSION: &'static str = $api_version;
            const KIND: &'static str = stringify!($kind);

            fn metadata(&self) -> &Metadata {
                &self.metadata
            }

            fn share(&mut self, pool: &mut Sharing) {
                self.metadata.share(pool);
                self.spec.template.share(pool);
            }
        }
    )*};
}

workloads! {
    /// One pod on every node it tolerates: overhead of each new node.
    DaemonSet("apps/v1") { WorkloadSpec };
    /// Pods in revisions.
    Deployment("apps/v1") { WorkloadSpec };
    /// Pods with an identity.
    StatefulSet("apps/v1") { WorkloadSpec };
    /// The predecessor of ReplicaSets, with a plain map for a selector.
    ReplicationController("v1") { ReplicationControllerSpec };
}

/// One revision of a Deployment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct ReplicaSet {
    /// Who it is.
    pub metadata: Metadata,
    /// What it makes and owns.
    pub spec: WorkloadSpec,
    /// How that goes.
    #[serde(skip_serializing_if = "ReplicaSetStatus::is_unset")]
    pub status: ReplicaSetStatus,
}

/// How a ReplicaSet fares.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct ReplicaSetStatus {
    /// How many pods it had when it last looked.
    #[serde(skip_serializing_if = "is_none")]
    pub replicas: i32,
    /// In particular `ReplicaFailure`: its pods cannot be made.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub conditions: List<BriefCondition>,
}

impl ReplicaSetStatus {
    fn is_unset(&self) -> bool {
        self.replicas == 0 && self.conditions.is_empty()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_none(replicas: &i32) -> bool {
    *replicas == 0
}

impl ReplicaSet {
    /// Whether pods of it could not be made or deleted the last time, for want of quota for example.
    pub fn is_failing(&self) -> bool {
        let fails = |condition: &BriefCondition| {
            *condition.kind == *"ReplicaFailure" && condition.status == ConditionStatus::True
        };
        self.status.conditions.iter().any(fails)
    }
}

impl Object for ReplicaSet {
    const API_VERSION: &'static str = "apps/v1";
    const KIND: &'static str = "ReplicaSet";

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn share(&mut self, pool: &mut Sharing) {
        self.metadata.share(pool);
        self.spec.template.share(pool);
    }
}

/// What a workload of apps/v1 makes and owns.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadSpec {
    /// How many pods are wanted; DaemonSets have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// The pods it owns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
    /// The pods it makes.
    pub template: PodTemplateSpec,
}

/// What a ReplicationController makes and owns.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReplicationControllerSpec {
    /// How many pods are wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// The pods it owns.
    #[serde(with = "list::map", skip_serializing_if = "List::is_empty")]
    pub selector: Labels,
    /// The pods it makes.
    pub template: PodTemplateSpec,
}

/// A pod's shape kept for a CapacityBuffer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct PodTemplate {
    /// Who it is.
    pub metadata: Metadata,
    /// The shape.
    pub template: PodTemplateSpec,
}

impl Object for PodTemplate {
    const API_VERSION: &'static str = "v1";
    const KIND: &'static str = "PodTemplate";

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn share(&mut self, pool: &mut Sharing) {
        self.metadata.share(pool);
        self.template.share(pool);
    }
}

/// A service; only what it selects matters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Service {
    /// Who it is.
    pub metadata: Metadata,
    /// What it selects.
    pub spec: ServiceSpec,
}

/// What a service selects.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct ServiceSpec {
    /// Absent for services whose endpoints someone else manages; an empty one selects every pod.
    #[serde(with = "optional_selector", skip_serializing_if = "Option::is_none")]
    pub selector: Option<Labels>,
}

impl Object for Service {
    const API_VERSION: &'static str = "v1";
    const KIND: &'static str = "Service";

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn share(&mut self, pool: &mut Sharing) {
        self.metadata.share(pool);
    }
}

mod optional_selector {
    use serde::{Deserialize, Deserializer, Serializer};

    use super::{Labels, list};

    #[derive(Deserialize)]
    struct Selector(#[serde(with = "list::map")] Labels);

    #[expect(clippy::ref_option, reason = "the signature serde asks for")]
    pub(super) fn serialize<S: Serializer>(selector: &Option<Labels>, serializer: S) -> Result<S::Ok, S::Error> {
        match selector {
            Some(labels) => list::map::serialize(labels, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Labels>, D::Error> {
        Ok(Option::<Selector>::deserialize(deserializer)?.map(|selector| selector.0))
    }
}
