//! What it costs to disturb pods, exact: upstream's formula in whole numbers of its smallest unit.

use std::{cmp::Ordering, iter::Sum, ops::Add};

use api::annotations::{DISRUPTION_COST, POD_DELETION_COST};
use jiff::Timestamp;
use model::{
    object::{NodeClaim, Pod},
    price::Price,
    snapshot::FeatureGates,
};

/// Units in what an ordinary pod costs. One unit is one step of a pod's cost annotation; a step of priority is four.
const POD: i64 = 1 << 27;
const PRIORITY_STEP: i64 = 4;
const MOST: i64 = 10 * POD;

/// What disturbing costs; an ordinary pod is 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cost(i64);

impl Cost {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// What every node costs beside its pods.
    pub const NODE: Self = Self(POD);

    /// In units of one step of a pod's cost annotation.
    pub fn units(self) -> i64 {
        self.0
    }

    /// For people and metrics: an ordinary pod is 1.
    #[expect(clippy::cast_precision_loss, reason = "nobody decides by it")]
    pub fn to_f64(self) -> f64 {
        self.0 as f64 / POD as f64
    }
}

impl Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sum for Cost {
    fn sum<I: Iterator<Item = Self>>(costs: I) -> Self {
        costs.fold(Self::ZERO, Add::add)
    }
}

/// What evicting a pod costs, from -10 to 10: 1, its cost annotation, its priority.
///
/// An annotation that is no 32-bit number counts for nothing, and hides the other one all the same.
pub fn eviction_cost(pod: &Pod, gates: &FeatureGates) -> Cost {
    let annotations = &pod.metadata.annotations;
    let written = match annotations.get(DISRUPTION_COST) {
        Some(own) => Some(own),
        None if gates.pod_deletion_cost_management => None,
        None => annotations.get(POD_DELETION_COST),
    };
    let steps = written.and_then(|text| text.parse::<i32>().ok()).unwrap_or(0);
    let priority = i64::from(pod.spec.priority.unwrap_or(0)) * PRIORITY_STEP;
    Cost((POD + i64::from(steps) + priority).clamp(-MOST, MOST))
}

/// What disturbing a node costs by the pods that would be made anew elsewhere. Cheap pods make no node cheaper.
pub fn reschedule_cost<'a>(pods: impl IntoIterator<Item = &'a Pod>, gates: &FeatureGates) -> Cost {
    let pods = pods.into_iter().map(|pod| eviction_cost(pod, gates).max(Cost::ZERO));
    Cost::NODE + pods.sum()
}

/// What evicting all pods of a node costs, less the nearer the node is to its end anyway.
pub(crate) fn disruption_cost<'a>(
    pods: impl IntoIterator<Item = &'a Pod>,
    claim: &NodeClaim,
    gates: &FeatureGates,
    now: Timestamp,
) -> Cost {
    let all: Cost = pods.into_iter().map(|pod| eviction_cost(pod, gates)).sum();
    let (remaining, whole) = lifetime_remaining(claim, now);
    let share = i128::from(all.0) * remaining / whole;
    Cost(i64::try_from(share).unwrap_or(i64::MAX))
}

/// How much of its life a node has left, as a fraction.
fn lifetime_remaining(claim: &NodeClaim, now: Timestamp) -> (i128, i128) {
    let span = claim
        .spec
        .expire_after
        .as_ref()
        .and_then(api::duration::NillableDuration::span);
    let (Some(span), Some(born)) = (span, claim.metadata.creation_timestamp) else {
        return (1, 1);
    };
    let whole = span.to_signed().as_nanos();
    if whole <= 0 {
        return (0, 1);
    }
    let age = now.duration_since(born).as_nanos();
    ((whole - age).clamp(0, whole), whole)
}

/// Which of two nodes saves more for what it disturbs; the greater goes first.
pub(crate) fn compare_savings(a: (Price, Cost), b: (Price, Cost)) -> Ordering {
    let product = |price: Price, cost: Cost| u128::from(price.picos()) * u128::from(cost.0.max(0).unsigned_abs());
    product(a.0, b.1).cmp(&product(b.0, a.1))
}
