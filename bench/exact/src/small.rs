//! Inputs small enough to be solved to the end: a few mixed Deployments on kwok's machines of up to eight cores.

use packing::cost::Problem;
use workloads::{catalogue::kwok, mixed};

use crate::picture;

/// Pods per input.
const PODS: u64 = 30;
/// Millicores of the largest machine.
const LARGEST: i64 = 8000;

/// The input of a seed; zones are left out, as fillings of single nodes do not know them.
pub fn problem(seed: u64) -> Problem {
    let mut machines = picture::machines(&kwok());
    machines.retain(|machine| machine.capacity[0] <= LARGEST);
    for machine in &mut machines {
        machine.offers.retain(|(_, zone, _)| zone.ends_with('a'));
    }
    picture::picture(&mixed::pending(PODS, seed), &machines)
}
