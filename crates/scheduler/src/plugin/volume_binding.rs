//! Can the node reach the volumes of the pod, or have them made?
//!
//! Where a claim is looked up, the filter fails for every node when it is missing, lost, or unbound without waiting for
//! a consumer. Capacity of storage is not looked at: a snapshot does not know it.

use std::sync::Arc;

use model::{
    object::{PersistentVolume, PersistentVolumeClaim, Pod, StorageClass},
    snapshot::Snapshot,
    volume::driver_of_provisioner,
};

use super::node_affinity::{self, NodeLabels};

/// Annotation without which a claim with a volume name is not bound yet.
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// The provisioner that makes nothing.
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

/// What the claims of a pod resolve to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PodVolumes {
    /// Volumes bound already.
    pub bound: Vec<Arc<PersistentVolume>>,
    /// Claims that wait for the pod, with their class.
    pub waiting: Vec<Waiting>,
    /// What is attached to the node, by driver: one name per volume, the same for pods that share it.
    pub attachments: Vec<(Arc<str>, Arc<str>)>,
}

/// A claim that waits for its first consumer.
#[derive(Debug, Clone, PartialEq)]
pub struct Waiting {
    /// Its class.
    pub class: Arc<StorageClass>,
    /// Volumes made by hand that it may take.
    pub candidates: Vec<Arc<PersistentVolume>>,
}

/// The claims of a pod, or why no node can have it.
pub fn resolve(snapshot: &Snapshot, pod: &Pod) -> Result<PodVolumes, String> {
    let mut volumes = PodVolumes::default();
    for volume in &pod.spec.volumes {
        let Some(name) = volume.claim_name(&pod.metadata.name) else {
            continue;
        };
        let namespace = &pod.metadata.namespace;
        let claims = &snapshot.objects().persistent_volume_claims;
        let claim = claims
            .find(namespace, &name)
            .ok_or_else(|| format!("persistentvolumeclaim \"{name}\" not found"))?;
        add(&mut volumes, snapshot, claim)?;
    }
    Ok(volumes)
}

fn add(volumes: &mut PodVolumes, snapshot: &Snapshot, claim: &PersistentVolumeClaim) -> Result<(), String> {
    let name = &claim.metadata.name;
    if *claim.status.phase == *"Lost" {
        return Err(format!(
            "persistentvolumeclaim \"{name}\" bound to non-existent persistentvolume"
        ));
    }
    if claim.metadata.is_deleting() {
        return Err(format!("persistentvolumeclaim \"{name}\" is being deleted"));
    }
    let volume_name = &claim.spec.volume_name;
    if volume_name.is_empty() || claim.metadata.annotations.get(BIND_COMPLETED).is_none() {
        return wait(volumes, snapshot, claim);
    }
    let volume = snapshot.objects().persistent_volumes.find("", volume_name);
    let volume = volume.ok_or_else(|| format!("persistentvolume \"{volume_name}\" not found"))?;
    if let Some(csi) = &volume.spec.csi {
        volumes
            .attachments
            .push((csi.driver.clone(), csi.volume_handle.clone()));
    } else if let Some(ebs) = &volume.spec.aws_elastic_block_store {
        volumes
            .attachments
            .push((model::volume::EBS_DRIVER.into(), ebs.volume_id.clone()));
    }
    volumes.bound.push(Arc::clone(volume));
    Ok(())
}

fn wait(volumes: &mut PodVolumes, snapshot: &Snapshot, claim: &PersistentVolumeClaim) -> Result<(), String> {
    let name = &claim.metadata.name;
    let unbound = || format!("persistentvolumeclaim \"{name}\" is not bound and does not wait for a consumer");
    let class = claim.spec.storage_class_name.as_ref().filter(|class| !class.is_empty());
    let class = class.ok_or_else(unbound)?;
    let class = snapshot.objects().storage_classes.find("", class);
    let class = class.ok_or_else(|| format!("the storage class of persistentvolumeclaim \"{name}\" not found"))?;
    if class.volume_binding_mode.as_deref() != Some("WaitForFirstConsumer") {
        return Err(unbound());
    }
    let driver = driver_of_provisioner(&class.provisioner);
    let handle = format!("{}/{name}", claim.metadata.namespace);
    volumes.attachments.push((driver.into(), handle.into()));
    let free = snapshot.objects().persistent_volumes.iter().filter(|volume| {
        let spec = &volume.spec;
        spec.claim_ref.is_none() && spec.storage_class_name == class.metadata.name
    });
    volumes.waiting.push(Waiting {
        class: Arc::clone(class),
        candidates: free.cloned().collect(),
    });
    Ok(())
}

/// Whether the node reaches what is bound and what waits can be made, or found, for it.
pub fn admits(volumes: &PodVolumes, node: &str, labels: &dyn NodeLabels) -> bool {
    volumes.bound.iter().all(|volume| reaches(volume, node, labels))
        && volumes.waiting.iter().all(|claim| {
            let is_found = claim.candidates.iter().any(|volume| reaches(volume, node, labels));
            is_found || can_be_made(&claim.class, labels)
        })
}

fn reaches(volume: &PersistentVolume, node: &str, labels: &dyn NodeLabels) -> bool {
    let affinity = volume.spec.node_affinity.as_ref();
    let required = affinity.and_then(|affinity| affinity.required.as_ref());
    required.is_none_or(|selector| node_affinity::selects(selector, node, labels))
}

fn can_be_made(class: &StorageClass, labels: &dyn NodeLabels) -> bool {
    let allowed = &class.allowed_topologies;
    let is_allowed = allowed.is_empty()
        || allowed.iter().any(|term| {
            term.match_label_expressions.iter().all(|expression| {
                let value = labels.label(&expression.key);
                value.is_some_and(|value| expression.values.iter().any(|listed| **listed == *value))
            })
        });
    is_allowed && *class.provisioner != *NO_PROVISIONER
}
