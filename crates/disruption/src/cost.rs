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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(annotations: &Value, priority: &Value) -> Pod {
        let pod = json!({ "metadata": { "name": "p", "annotations": annotations }, "spec": { "priority": priority } });
        serde_json::from_value(pod).unwrap()
    }

    #[test]
    fn a_pod_costs_one_and_what_its_owner_and_its_priority_add() {
        const OWN: &str = "karpenter.sh/disruption-cost";
        const OTHER: &str = "controller.kubernetes.io/pod-deletion-cost";
        let cases = [
            (json!({}), json!(null), 1.0),
            (json!({ OWN: "134217728" }), json!(null), 2.0),
            (json!({ OTHER: "134217728" }), json!(null), 2.0),
            (json!({ OWN: "-134217728", OTHER: "134217728" }), json!(null), 0.0),
            (json!({ OWN: "much", OTHER: "134217728" }), json!(null), 1.0),
            (json!({ OWN: "1.5" }), json!(null), 1.0),
            (json!({ OWN: "2147483648" }), json!(null), 1.0),
            (json!({ OWN: "2147483647" }), json!(null), 10.0),
            (json!({ OWN: "-2147483648" }), json!(null), -10.0),
            (json!({}), json!(33_554_432), 2.0),
            (json!({}), json!(1_000_000_000), 10.0),
            (json!({}), json!(-33_554_432), 0.0),
        ];
        for (annotations, priority, expected) in cases {
            let cost = eviction_cost(&pod(&annotations, &priority), &FeatureGates::default()).to_f64();
            assert!((cost - expected).abs() < 1e-6, "{annotations} {priority}: {cost}");
        }
    }

    #[test]
    fn costs_that_a_controller_writes_are_not_the_owners_word() {
        let gates = FeatureGates {
            pod_deletion_cost_management: true,
            ..FeatureGates::default()
        };
        let written = pod(
            &json!({ "controller.kubernetes.io/pod-deletion-cost": "134217728" }),
            &json!(null),
        );
        assert_eq!(eviction_cost(&written, &gates), Cost::NODE);
        let both = pod(
            &json!({ "karpenter.sh/disruption-cost": "-134217728", "controller.kubernetes.io/pod-deletion-cost": "134217728" }),
            &json!(null),
        );
        assert_eq!(
            eviction_cost(&both, &gates),
            Cost::ZERO,
            "the owner's own word counts all the same"
        );
    }

    #[test]
    fn cheap_pods_make_no_node_cheaper() {
        let cheap = pod(&json!({ "karpenter.sh/disruption-cost": "-2147483648" }), &json!(null));
        let usual = pod(&json!({}), &json!(null));
        let gates = FeatureGates::default();
        assert_eq!(reschedule_cost([&cheap], &gates), Cost::NODE);
        assert_eq!(reschedule_cost([&cheap, &usual], &gates), Cost::NODE + Cost::NODE);
    }

    #[test]
    fn a_node_near_its_end_costs_less_to_disturb() {
        let claim = |expire_after: &str| -> NodeClaim {
            let claim = json!({
                "metadata": { "name": "c", "creationTimestamp": "2026-11-16T10:00:00Z" },
                "spec": { "requirements": [], "expireAfter": expire_after },
            });
            serde_json::from_value(claim).unwrap()
        };
        let now = "2026-11-16T13:00:00Z".parse().unwrap();
        let pods = [pod(&json!({}), &json!(null)), pod(&json!({}), &json!(null))];
        for (expire_after, expected) in [("Never", 2.0), ("4h", 0.5), ("2h", 0.0)] {
            let cost = disruption_cost(pods.iter(), &claim(expire_after), &FeatureGates::default(), now).to_f64();
            assert!((cost - expected).abs() < 1e-6, "{expire_after}: {cost}");
        }
    }

    #[test]
    fn nodes_compare_by_price_for_each_disturbance() {
        let price = |dollars: &str| dollars.parse::<Price>().unwrap();
        let cost = |pods: usize| Cost::NODE + std::iter::repeat_n(Cost::NODE, pods).sum();
        let cases = [
            (("4.84", 0), ("4.84", 0), Ordering::Equal),
            (("4.84", 3), ("1.21", 0), Ordering::Equal),
            (("4.84", 3), ("1.22", 0), Ordering::Less),
            (("4.84", 3), ("4.84", 2), Ordering::Less),
            (("0", 3), ("0.01", 40), Ordering::Less),
        ];
        for (a, b, expected) in cases {
            let found = compare_savings((price(a.0), cost(a.1)), (price(b.0), cost(b.1)));
            assert_eq!(found, expected, "{a:?} {b:?}");
        }
    }
}
