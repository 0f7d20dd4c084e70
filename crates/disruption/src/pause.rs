//! Do people want nothing disrupted for now? They say so on NodePools; provisioning and repair do not ask.
//!
//! The switch is two annotations of a NodePool: until when, and why. A pool that is paused is decided on as if it had one
//! more budget, of no nodes, so everything that shows budgets shows it.

use std::sync::Arc;

use api::annotations::{PAUSE, PAUSE_REASON};
use jiff::Timestamp;
use model::{
    object::{Budget, NodePool},
    snapshot::Snapshot,
};

use crate::{facts::Pause, method::Reason};

/// Until when a pool is paused, if it is; a word that is no time means until the annotation goes.
pub fn pause_of(pool: &NodePool, now: Timestamp) -> Option<Pause> {
    let text = pool.metadata.annotations.get(PAUSE)?;
    let reason = pool.metadata.annotations.get(PAUSE_REASON);
    let pause = Pause {
        reason: reason.map(ToString::to_string).unwrap_or_default(),
        until: text.parse().ok(),
    };
    pause.is_on(now).then_some(pause)
}

/// The snapshot with paused pools held, and how many these are.
pub fn paused(snapshot: &Snapshot, now: Timestamp) -> (Snapshot, usize) {
    let pools = snapshot.objects().node_pools.iter();
    let held: Vec<_> = pools
        .filter(|pool| pause_of(pool, now).is_some())
        .map(|pool| Arc::new(with_none(pool)))
        .collect();
    let count = held.len();
    if count == 0 {
        return (snapshot.clone(), 0);
    }
    let snapshot = snapshot.overlaid(|objects| objects.node_pools = objects.node_pools.with(held));
    (snapshot, count)
}

/// The pool with a budget of no nodes, for every reason but one: what is broken is mended all the same.
fn with_none(pool: &NodePool) -> NodePool {
    let voluntary = Reason::ALL.into_iter().filter(|reason| *reason != Reason::Unhealthy);
    let none = Budget {
        nodes: "0".into(),
        reasons: Some(voluntary.map(|reason| reason.as_str().into()).collect()),
        ..Budget::default()
    };
    let mut pool = pool.clone();
    let budgets = pool.spec.disruption.budgets.iter().cloned().chain([none]);
    pool.spec.disruption.budgets = budgets.collect();
    pool
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pool_is_paused_until_its_time_is_over_or_for_as_long_as_it_says_so() {
        let now = "2026-11-16T10:00:00Z".parse().unwrap();
        let cases = [
            (json!({}), None),
            (
                json!({PAUSE: "2026-11-16T11:00:00Z", PAUSE_REASON: "sale"}),
                Some("sale"),
            ),
            (json!({PAUSE: "2026-11-16T10:00:00Z"}), None),
            (json!({PAUSE: "until-resumed"}), Some("")),
        ];
        for (annotations, expected) in cases {
            let pool: NodePool = serde_json::from_value(json!({"metadata": {"annotations": annotations}})).unwrap();
            let pause = pause_of(&pool, now);
            assert_eq!(pause.as_ref().map(|pause| &*pause.reason), expected, "{annotations}");
        }
    }
}
