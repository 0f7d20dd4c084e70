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
