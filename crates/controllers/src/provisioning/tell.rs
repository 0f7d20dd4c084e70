//! What people hear: events and log lines about pods and their places, in upstream's words.

use std::{fmt::Display, sync::Arc, time::Duration};

use ledger::Id;
use model::{
    object::{Node, NodeClaim, Pod},
    plan::{RefusalKind, Unplaced},
};
use runtime::{Event, EventKind, event::Bucket};

use super::decide::NoTypes;

/// A pod has no place.
pub(crate) fn failed(refusal: &Unplaced) -> Event {
    let message = format!("Failed to schedule pod, {}", refusal.message);
    Event::new(&*refusal.pod, EventKind::Warning, "FailedScheduling", message).quiet_for(Duration::from_mins(5))
}

/// A pod has a place.
pub(crate) fn nominated(pod: &Pod, claim: Option<&NodeClaim>, node: Option<&Node>) -> Event {
    let claim = claim.map(|claim| format!("nodeclaim/{}", claim.metadata.name));
    let node = node.map(|node| format!("node/{}", node.metadata.name));
    let places: Vec<String> = claim.into_iter().chain(node).collect();
    let message = format!("Pod should schedule on: {}", places.join(", "));
    Event::new(pod, EventKind::Normal, "Nominated", message).within(Bucket::Nominated)
}

/// Nothing of a pool can be launched.
pub(crate) fn no_types(dropped: &NoTypes) -> Event {
    let due = if dropped.is_min_values {
        " due to minValues incompatibility"
    } else {
        ""
    };
    let message = format!("NodePool requirements filtered out all compatible available instance types{due}");
    let event = Event::new(&*dropped.pool, EventKind::Warning, "NoCompatibleInstanceTypes", message);
    event.quiet_for(Duration::from_mins(1))
}

/// Says in the log why a pod has no place.
pub(crate) fn log_refusal(refusal: &Unplaced, decision: Option<Id>) {
    let decision = decision.map(tracing::field::display);
    let (namespace, name) = (&*refusal.pod.metadata.namespace, &*refusal.pod.metadata.name);
    let error = &*refusal.message;
    match refusal.kind {
        RefusalKind::OptedOut | RefusalKind::Invalid => {
            tracing::debug!("Pod.namespace" = namespace, "Pod.name" = name, error, "ignoring pod");
        }
        RefusalKind::Unschedulable => {
            tracing::error!(
                "Pod.namespace" = namespace,
                "Pod.name" = name,
                error,
                decision,
                "could not schedule pod"
            );
        }
        RefusalKind::DeviceRequestsIgnored => tracing::info!(
            "Pod.namespace" = namespace,
            "Pod.name" = name,
            "skipping pod with Dynamic Resource Allocation requirements, not yet supported by Karpenter"
        ),
        RefusalKind::Deferred => {}
    }
}

/// The first few of many.
pub(crate) fn some<T: Display>(items: impl IntoIterator<Item = T>, most: usize) -> String {
    let mut text = String::new();
    let mut items = items.into_iter();
    for (at, item) in items.by_ref().take(most).enumerate() {
        if at > 0 {
            text.push_str(", ");
        }
        text.push_str(&item.to_string());
    }
    match items.count() {
        0 => text,
        more => format!("{text} and {more} other(s)"),
    }
}

/// The names of a few of many pods.
pub(crate) fn some_pods<'a>(pods: impl IntoIterator<Item = &'a Arc<Pod>>) -> String {
    some(pods.into_iter().map(|pod| pod.metadata.key()), 5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_cut_and_counted() {
        assert_eq!(some(0..3, 5), "0, 1, 2");
        assert_eq!(some(0..7, 5), "0, 1, 2, 3, 4 and 2 other(s)");
        assert_eq!(some(Vec::<u8>::new(), 5), "");
    }
}
