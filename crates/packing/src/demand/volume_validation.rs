//! Whether a pod's volume claims can come about at all; if not, the pod is not worth a node.

use model::object::{ObjectKey, PersistentVolumeClaim, Pod, Text};

use super::volume::{NotFound, Storage, claim_names};

/// Its presence says that binding is complete.
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";

/// Why a pod's claim will not come about, in upstream's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum VolumeFault {
    #[error("getting persistent volume claim, {error} (PersistentVolumeClaim={claim})")]
    NoClaim { claim: Text, error: NotFound },
    #[error("persistentvolumeclaim is being deleted (PersistentVolumeClaim={0})")]
    ClaimDeleting(ObjectKey),
    #[error(
        "persistentvolumeclaim bound to non-existent persistentvolume (PersistentVolume={volume}, PersistentVolumeClaim={claim})"
    )]
    Lost { claim: ObjectKey, volume: Text },
    #[error(
        "failed to validate pvc, {reason} (PersistentVolume={volume}, PersistentVolumeClaim={claim}, StorageClass={class})"
    )]
    Volume {
        claim: ObjectKey,
        volume: Text,
        class: Text,
        reason: String,
    },
    #[error(
        "pvc is considered unbound because it does not contain annotation (PersistentVolume={volume}, PersistentVolumeClaim={claim}, annotation={BIND_COMPLETED})"
    )]
    BindingIncomplete { claim: Text, volume: Text },
    #[error("unbound pvc must define a storage class (PersistentVolumeClaim={0}, StorageClass=)")]
    NoClass(ObjectKey),
    #[error(
        "failed to validate pvc, failed to get storage class, {error} (PersistentVolumeClaim={claim}, StorageClass={class})"
    )]
    ClassMissing {
        claim: ObjectKey,
        class: Text,
        error: NotFound,
    },
    #[error(
        "failed to validate pvc, pvc with immediate volume binding mode must be bound (PersistentVolumeClaim={claim}, StorageClass={class})"
    )]
    Immediate { claim: ObjectKey, class: Text },
}

impl Storage<'_> {
    /// The fault of the first claim that has one.
    pub(super) fn validate(self, pod: &Pod) -> Result<(), VolumeFault> {
        for name in claim_names(pod) {
            let claim = self.claim(pod, &name);
            let claim = claim.map_err(|error| VolumeFault::NoClaim { claim: name, error })?;
            self.validate_claim(claim)?;
        }
        Ok(())
    }

    fn validate_claim(self, claim: &PersistentVolumeClaim) -> Result<(), VolumeFault> {
        let key = claim.metadata.key();
        if claim.metadata.is_deleting() {
            return Err(VolumeFault::ClaimDeleting(key));
        }
        let volume = &claim.spec.volume_name;
        if *claim.status.phase == *"Lost" {
            let volume = volume.clone();
            return Err(VolumeFault::Lost { claim: key, volume });
        }
        if volume.is_empty() {
            self.validate_unbound(claim)
        } else {
            self.validate_bound(claim)
        }
    }

    fn validate_bound(self, claim: &PersistentVolumeClaim) -> Result<(), VolumeFault> {
        let volume = &claim.spec.volume_name;
        let reason = match self.volume(volume) {
            Ok(volume) if !volume.metadata.is_deleting() => None,
            Ok(_) => Some("persistentvolume is being deleted".to_owned()),
            Err(error) => Some(error.to_string()),
        };
        if let Some(reason) = reason {
            return Err(VolumeFault::Volume {
                claim: claim.metadata.key(),
                volume: volume.clone(),
                class: claim.spec.storage_class_name.clone().unwrap_or_default(),
                reason,
            });
        }
        if claim.metadata.annotations.get(BIND_COMPLETED).is_none() {
            return Err(VolumeFault::BindingIncomplete {
                claim: claim.metadata.name.clone(),
                volume: volume.clone(),
            });
        }
        Ok(())
    }

    fn validate_unbound(self, claim: &PersistentVolumeClaim) -> Result<(), VolumeFault> {
        let key = claim.metadata.key();
        let name = claim.spec.storage_class_name.clone().unwrap_or_default();
        match self.class_of(claim) {
            None => Err(VolumeFault::NoClass(key)),
            Some(Err(error)) => Err(VolumeFault::ClassMissing {
                claim: key,
                class: name,
                error,
            }),
            Some(Ok(class)) if class.volume_binding_mode.as_deref() == Some("Immediate") => {
                Err(VolumeFault::Immediate {
                    claim: key,
                    class: name,
                })
            }
            Some(Ok(_)) => Ok(()),
        }
    }
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "literals read better by value")]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::demand::fixture::{object, pending, pod, snapshot};

    fn claim(parts: Value) -> Value {
        object("v1", "PersistentVolumeClaim", "ns", "data", parts)
    }

    fn class(mode: Value) -> Value {
        object(
            "storage.k8s.io/v1",
            "StorageClass",
            "",
            "fast",
            json!({ "provisioner": "x", "volumeBindingMode": mode }),
        )
    }

    fn volume(parts: Value) -> Value {
        object("v1", "PersistentVolume", "", "pv", parts)
    }

    /// What a pod with the claim `data` is told beside these objects.
    fn fault(mut objects: Vec<Value>) -> Option<String> {
        let volumes = json!([{ "name": "v", "persistentVolumeClaim": { "claimName": "data" } }, { "name": "tmp", "emptyDir": {} }]);
        objects.push(pending("p", json!({ "spec": { "volumes": volumes } })));
        let snapshot = snapshot(objects);
        let fault = Storage(snapshot.objects()).validate(pod(&snapshot, "p")).err();
        fault.map(|fault| fault.to_string())
    }

    #[test]
    fn claim_that_will_come_about_is_no_fault() {
        let bound = json!({ "metadata": { "annotations": { BIND_COMPLETED: "yes" } }, "spec": { "volumeName": "pv" } });
        let unbound = json!({ "spec": { "storageClassName": "fast" } });
        for objects in [
            vec![claim(bound), volume(json!({}))],
            vec![claim(unbound.clone()), class(json!("WaitForFirstConsumer"))],
            vec![claim(unbound), class(Value::Null)],
        ] {
            assert_eq!(fault(objects.clone()), None, "{objects:?}");
        }
    }

    #[test]
    fn claim_that_will_not_come_about_is_named_with_the_reason() {
        let deleted = json!({ "deletionTimestamp": "2026-11-15T12:00:00Z" });
        let bound = json!({ "spec": { "volumeName": "pv", "storageClassName": "fast" } });
        let unbound = json!({ "spec": { "storageClassName": "fast" } });
        let cases = [
            (
                vec![],
                "getting persistent volume claim, PersistentVolumeClaim \"data\" not found (PersistentVolumeClaim=data)",
            ),
            (
                vec![claim(json!({ "metadata": deleted }))],
                "persistentvolumeclaim is being deleted (PersistentVolumeClaim=ns/data)",
            ),
            (
                vec![claim(
                    json!({ "spec": { "volumeName": "pv" }, "status": { "phase": "Lost" } }),
                )],
                "persistentvolumeclaim bound to non-existent persistentvolume (PersistentVolume=pv, PersistentVolumeClaim=ns/data)",
            ),
            (
                vec![claim(bound.clone())],
                "failed to validate pvc, PersistentVolume \"pv\" not found (PersistentVolume=pv, PersistentVolumeClaim=ns/data, StorageClass=fast)",
            ),
            (
                vec![claim(bound.clone()), volume(json!({ "metadata": deleted }))],
                "failed to validate pvc, persistentvolume is being deleted (PersistentVolume=pv, PersistentVolumeClaim=ns/data, StorageClass=fast)",
            ),
            (
                vec![claim(bound), volume(json!({}))],
                "pvc is considered unbound because it does not contain annotation (PersistentVolume=pv, PersistentVolumeClaim=data, annotation=pv.kubernetes.io/bind-completed)",
            ),
            (
                vec![claim(json!({}))],
                "unbound pvc must define a storage class (PersistentVolumeClaim=ns/data, StorageClass=)",
            ),
            (
                vec![claim(unbound.clone())],
                "failed to validate pvc, failed to get storage class, StorageClass.storage.k8s.io \"fast\" not found (PersistentVolumeClaim=ns/data, StorageClass=fast)",
            ),
            (
                vec![claim(unbound), class(json!("Immediate"))],
                "failed to validate pvc, pvc with immediate volume binding mode must be bound (PersistentVolumeClaim=ns/data, StorageClass=fast)",
            ),
        ];
        for (objects, expected) in cases {
            assert_eq!(fault(objects).as_deref(), Some(expected));
        }
    }
}
