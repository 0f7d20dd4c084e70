//! What a plan says of CapacityBuffers: whether the room they keep is there, and on which machines it is.

use std::{collections::BTreeMap, sync::Arc};

use api::annotations::{CAPACITY_BUFFER_FAKE_POD, CAPACITY_BUFFER_NAME, CAPACITY_BUFFER_NAMESPACE};
use api::condition::names::capacity_buffer::{
    BUFFER_EMPTY, FITS_EXISTING_CAPACITY, NOT_READY_FOR_PROVISIONING, REQUIRES_NEW_CAPACITY,
};
use model::{
    object::{CapacityBuffer, ConditionStatus, ObjectKey, Pod, ProviderId},
    plan::Plan,
    snapshot::Snapshot,
};

/// What a plan says of a buffer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Verdict {
    /// The buffer, as it was planned for.
    pub buffer: Arc<CapacityBuffer>,
    /// Whether its room is there.
    pub status: ConditionStatus,
    /// In a word.
    pub reason: &'static str,
    /// In a sentence.
    pub message: String,
}

/// Where the stand-ins of a buffer went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Places {
    existing: usize,
    new: usize,
    failed: usize,
}

/// Whether a pod only stands for the room of a CapacityBuffer.
pub(crate) fn is_stand_in(pod: &Pod) -> bool {
    let mark = pod.metadata.annotations.get(CAPACITY_BUFFER_FAKE_POD);
    mark.is_some_and(|mark| **mark == *"true")
}

/// What a plan says of each buffer it has something to say of.
pub(crate) fn verdicts(snapshot: &Snapshot, plan: &Plan) -> Vec<Verdict> {
    if !snapshot.settings().feature_gates.capacity_buffer {
        return Vec::new();
    }
    let places = places(plan);
    let buffers = snapshot.objects().capacity_buffers.iter();
    buffers
        .filter_map(|buffer| verdict(buffer, places.get(&buffer.metadata.key()).copied()))
        .collect()
}

fn verdict(buffer: &Arc<CapacityBuffer>, places: Option<Places>) -> Option<Verdict> {
    let is = |status, reason, message| {
        Some(Verdict {
            buffer: Arc::clone(buffer),
            status,
            reason,
            message,
        })
    };
    if !buffer.is_ready_for_provisioning() {
        let message = "Buffer is not ReadyForProvisioning".to_owned();
        return is(ConditionStatus::False, NOT_READY_FOR_PROVISIONING, message);
    }
    let desired = buffer
        .status
        .replicas
        .and_then(|replicas| usize::try_from(replicas).ok());
    let Some(desired) = desired.filter(|desired| *desired > 0) else {
        let message = "Buffer has zero desired replicas".to_owned();
        return is(ConditionStatus::False, BUFFER_EMPTY, message);
    };
    let Places { existing, new, failed } = places?;
    if new > 0 || failed > 0 {
        let message = format!("{new}/{desired} virtual pods required new capacity, {failed} failed");
        return is(ConditionStatus::False, REQUIRES_NEW_CAPACITY, message);
    }
    if existing == desired {
        let message = format!("All {desired} virtual pods fit on existing capacity");
        return is(ConditionStatus::True, FITS_EXISTING_CAPACITY, message);
    }
    None
}

fn places(plan: &Plan) -> BTreeMap<ObjectKey, Places> {
    let mut places: BTreeMap<ObjectKey, Places> = BTreeMap::new();
    let mut count = |pod: &Pod, at: fn(&mut Places) -> &mut usize| {
        if let Some(buffer) = buffer_of(pod) {
            *at(places.entry(buffer).or_default()) += 1;
        }
    };
    for pod in plan.existing.iter().flat_map(|node| &node.pods) {
        count(pod, |places| &mut places.existing);
    }
    for pod in plan.claims.iter().flat_map(|claim| &claim.pods) {
        count(pod, |places| &mut places.new);
    }
    for refusal in &plan.unplaced {
        count(&refusal.pod, |places| &mut places.failed);
    }
    places
}

fn buffer_of(pod: &Pod) -> Option<ObjectKey> {
    let annotations = &pod.metadata.annotations;
    let namespace = annotations.get(CAPACITY_BUFFER_NAMESPACE)?;
    let name = annotations.get(CAPACITY_BUFFER_NAME)?;
    is_stand_in(pod).then(|| ObjectKey::new(namespace, name))
}

/// How many stand-ins each machine got that is there.
pub(crate) fn counts(snapshot: &Snapshot, plan: &Plan) -> BTreeMap<ProviderId, usize> {
    let mut counts = BTreeMap::new();
    for planned in &plan.existing {
        let stand_ins = planned.pods.iter().filter(|pod| is_stand_in(pod)).count();
        let node = snapshot.node(&planned.name);
        let id = node.and_then(|node| node.spec.provider_id.as_ref());
        let claim = || snapshot.objects().node_claims.find("", planned.name.as_str());
        let id = id.or_else(|| claim()?.status.provider_id.as_ref());
        if let Some(id) = id.filter(|_| stand_ins > 0) {
            counts.insert(id.clone(), stand_ins);
        }
    }
    counts
}
