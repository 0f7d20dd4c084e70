//! What an `AKSNodeClass` resolved to, and the conditions its readiness follows from.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::{AKSNodeClass, condition};
use crate::{
    condition::{Condition, ConditionStatus, names::AWAITING_RECONCILIATION_MESSAGE, set::find},
    image_requirement::ImageRequirement,
    open_enum::open_enum,
};

/// What the class resolved to.
#[derive(Clone, Debug, Default, PartialEq, Eq, KubeSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AKSNodeClassStatus {
    /// Node images to choose from, the preferred first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<NodeImage>,
    /// The Kubernetes version of new nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubernetes_version: Option<String>,
    /// Observed aspects of the class.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Whether new nodes run the local DNS cache. Once on under mode Preferred, it stays on.
    #[serde(rename = "localDNSState", skip_serializing_if = "Option::is_none")]
    pub local_dns_state: Option<LocalDnsState>,
}

/// A node image.
#[derive(Clone, Debug, Default, PartialEq, Eq, KubeSchema, Serialize, Deserialize)]
pub struct NodeImage {
    /// The image's id in its gallery.
    pub id: String,
    /// What an instance type must have to boot it.
    pub requirements: Vec<ImageRequirement>,
}

open_enum! {
    /// The decision on the local DNS cache.
    LocalDnsState {
        /// On.
        Enabled = "Enabled",
        /// Off.
        Disabled = "Disabled",
    }
}

/// Why a value in the status must not be used yet. The texts are upstream's, which users meet in events.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StaleStatus {
    /// The condition that vouches for the value does not hold.
    #[error("NodeClass condition {condition}, is in Ready={status}, {message}")]
    NotReady {
        /// Its type.
        condition: &'static str,
        /// Its status.
        status: ConditionStatus,
        /// Its message.
        message: String,
    },
    /// The condition speaks of an older spec.
    #[error(
        "NodeClass condition {condition} ObservedGeneration {observed} does not match the NodeClass Generation {generation}"
    )]
    Outdated {
        /// Its type.
        condition: &'static str,
        /// The generation it speaks of.
        observed: i64,
        /// The generation of the spec.
        generation: i64,
    },
    /// There is no Kubernetes version.
    #[error("NodeClass KubernetesVersion is uninitialized")]
    NoKubernetesVersion,
}

impl AKSNodeClass {
    /// The images new nodes may boot, if they were found for the present spec.
    pub fn images(&self) -> Result<&[NodeImage], StaleStatus> {
        self.check_current(condition::IMAGES_READY)?;
        Ok(self.status.as_ref().map_or(&[], |status| &status.images))
    }

    /// The Kubernetes version of new nodes, if it was found for the present spec.
    pub fn kubernetes_version(&self) -> Result<&str, StaleStatus> {
        self.check_current(condition::KUBERNETES_VERSION_READY)?;
        let version = self
            .status
            .as_ref()
            .and_then(|status| status.kubernetes_version.as_deref());
        version
            .filter(|version| !version.is_empty())
            .ok_or(StaleStatus::NoKubernetesVersion)
    }

    fn check_current(&self, condition: &'static str) -> Result<(), StaleStatus> {
        let conditions = self.status.as_ref().map_or(&[][..], |status| &status.conditions);
        let generation = self.metadata.generation.unwrap_or_default();
        match find(conditions, condition) {
            None => Err(StaleStatus::NotReady {
                condition,
                status: ConditionStatus::Unknown,
                message: AWAITING_RECONCILIATION_MESSAGE.to_owned(),
            }),
            Some(Condition { status, message, .. }) if *status != ConditionStatus::True => Err(StaleStatus::NotReady {
                condition,
                status: status.clone(),
                message: message.clone(),
            }),
            Some(Condition {
                observed_generation, ..
            }) if *observed_generation != generation => Err(StaleStatus::Outdated {
                condition,
                observed: *observed_generation,
                generation,
            }),
            Some(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn node_class(conditions: &Value, version: Option<&str>) -> AKSNodeClass {
        serde_json::from_value(json!({
            "apiVersion": "karpenter.azure.com/v1beta1",
            "kind": "AKSNodeClass",
            "metadata": { "name": "default", "generation": 2 },
            "status": {
                "images": [{ "id": "/image", "requirements": [{ "key": "kubernetes.io/arch", "operator": "Exists" }] }],
                "kubernetesVersion": version,
                "conditions": conditions,
            },
        }))
        .unwrap()
    }

    fn condition(type_: &str, status: &str, observed_generation: i64) -> Value {
        json!([{
            "type": type_,
            "status": status,
            "reason": "Why",
            "message": "because",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
            "observedGeneration": observed_generation,
        }])
    }

    #[test]
    fn images_are_given_only_when_their_condition_holds_for_the_present_spec() {
        let images = |conditions: &Value| {
            let found = node_class(conditions, None).images().map(<[NodeImage]>::len);
            found.map_err(|error| error.to_string())
        };
        let refused = |text: &str| Err(text.to_owned());
        let cases = [
            (condition("ImagesReady", "True", 2), Ok(1)),
            (
                condition("ImagesReady", "True", 1),
                refused(
                    "NodeClass condition ImagesReady ObservedGeneration 1 does not match the NodeClass Generation 2",
                ),
            ),
            (
                condition("ImagesReady", "False", 2),
                refused("NodeClass condition ImagesReady, is in Ready=False, because"),
            ),
            (
                condition("SubnetsReady", "True", 2),
                refused("NodeClass condition ImagesReady, is in Ready=Unknown, object is awaiting reconciliation"),
            ),
        ];
        for (conditions, expected) in cases {
            assert_eq!(images(&conditions), expected, "{conditions}");
        }
    }

    #[test]
    fn a_kubernetes_version_must_be_there_and_current() {
        let current = condition("KubernetesVersionReady", "True", 2);
        let cases = [
            (&current, Some("1.36.1"), Ok("1.36.1".to_owned())),
            (&current, Some(""), Err(StaleStatus::NoKubernetesVersion)),
            (&current, None, Err(StaleStatus::NoKubernetesVersion)),
            (
                &condition("KubernetesVersionReady", "True", 1),
                Some("1.36.1"),
                Err(StaleStatus::Outdated {
                    condition: "KubernetesVersionReady",
                    observed: 1,
                    generation: 2,
                }),
            ),
        ];
        for (conditions, version, expected) in cases {
            assert_eq!(
                node_class(conditions, version).kubernetes_version().map(str::to_owned),
                expected,
                "{version:?}"
            );
        }
    }
}
