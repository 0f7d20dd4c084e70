//! What keeps a fleet from being churned: the memory of past moves.

use crate::candidate::Candidate;

/// A number for what the pods of some candidates ask for; equal pods, equal number.
pub(crate) fn requests_digest(candidates: &[Candidate]) -> u64 {
    let pods = candidates.iter().flat_map(|candidate| &candidate.reschedulable);
    let mut shapes: Vec<String> = pods
        .map(|pod| format!("{}/{:?}", pod.metadata.namespace, pod.spec.resources().requests()))
        .collect();
    shapes.sort_unstable();
    shapes
        .iter()
        .flat_map(|shape| shape.bytes())
        .fold(FNV_START, |digest, byte| {
            (digest ^ u64::from(byte)).wrapping_mul(FNV_STEP)
        })
}

const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_STEP: u64 = 0x0100_0000_01b3;
