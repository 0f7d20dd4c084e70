//! What is said of nodes and pods on their way out, in upstream's words.

use jiff::Timestamp;
use model::{
    eviction::Protection,
    object::{Node, Object, ObjectKey, Pod, Text},
};
use runtime::{
    Event,
    EventKind::{Normal, Warning},
};

/// How many names a message lists before it counts the rest.
const NAMED: usize = 5;

/// A pod was asked to go.
pub(super) fn evicted(pod: &Pod, reason: &str) -> Event {
    said_of(
        pod,
        Event::new(pod, Normal, "Evicted", format!("Evicted pod: {reason}")),
    )
}

/// A pod is deleted, because its node ends before the pod would.
pub(super) fn deleted(pod: &Pod, granted: i64, deadline: Timestamp) -> Event {
    let own = pod.spec.termination_grace_period_seconds.unwrap_or_default();
    let deadline = deadline.strftime("%Y-%m-%d %H:%M:%S +0000 UTC");
    let message = format!(
        "Deleting the pod to accommodate the terminationTime {deadline} of the node. The pod was granted {granted} seconds \
         of grace-period of its {own} terminationGracePeriodSeconds. This bypasses the PDB of the pod and the \
         do-not-disrupt annotation."
    );
    said_of(pod, Event::new(pod, Normal, "Disrupted", message))
}

/// What a pod's protection has to say; nothing when it is plain.
pub(crate) fn protection(pod: &Pod, protection: &Protection) -> Option<Event> {
    // Asked for every pod in every round, and nearly always for nothing: the words come last.
    let uid = || pod.metadata.uid.to_string();
    match protection {
        Protection::Invalid(why) => {
            let why = why.to_string();
            let message = format!("Invalid karpenter.sh/do-not-disrupt annotation: {why}, ignoring annotation");
            let event = Event::new(pod, Warning, "InvalidDoNotDisruptAnnotation", message);
            Some(event.deduped_by(vec![uid(), why]))
        }
        Protection::Until(until) => {
            let until = until.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
            let message = format!("The karpenter.sh/do-not-disrupt grace period will elapse at {until}");
            Some(Event::new(pod, Normal, "DoNotDisruptUntil", message).deduped_by(vec![uid(), until]))
        }
        Protection::Elapsed => {
            let message = "The karpenter.sh/do-not-disrupt grace period has elapsed, pod is now disruptable".to_owned();
            Some(Event::new(pod, Normal, "DoNotDisruptGracePeriodElapsed", message))
        }
        Protection::None | Protection::Always | Protection::FromStart => None,
    }
}

/// What a drain waits for.
pub(super) fn failed_draining(node: &Node, why: &str) -> Event {
    let message = format!("Failed to drain node, {why}");
    said_of(node, Event::new(node, Warning, "FailedDraining", message))
}

/// Which budget rule holds a pod of a node. Upstream's key is the node's name alone, so that the count of waiting pods,
/// said every second, always comes first and nobody learns why they wait. Ours is said once for each rule.
pub(super) fn held_by_budget(node: &Node, why: &str, pod: &ObjectKey) -> Event {
    let name = node.metadata.name.to_string();
    failed_draining(node, &format!("{why} (Pod={pod})")).deduped_by(vec![name, why.to_owned()])
}

/// Which volumes are still attached.
pub(super) fn awaiting_volumes(node: &Node, names: &[Text]) -> Event {
    let message = format!("Awaiting deletion of bound volumeattachments ({})", list(names));
    said_of(node, Event::new(node, Normal, "AwaitingVolumeDetachment", message))
}

/// When the last pod will be gone.
pub(super) fn grace_period_expiring(node: &Node, deadline: &str) -> Event {
    let message = format!("All pods will be deleted by {deadline}");
    said_of(
        node,
        Event::new(node, Warning, "TerminationGracePeriodExpiring", message),
    )
}

/// Upstream tells these events apart by the object's name.
fn said_of<T: Object>(object: &T, event: Event) -> Event {
    event.deduped_by(vec![object.metadata().name.to_string()])
}

fn list(names: &[Text]) -> String {
    let named: Vec<&str> = names.iter().take(NAMED).map(AsRef::as_ref).collect();
    let others = match names.len().saturating_sub(NAMED) {
        0 => String::new(),
        others => format!(" and {others} other(s)"),
    };
    format!("{}{others}", named.join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod() -> Pod {
        serde_json::from_value(json!({
            "metadata": {"namespace": "ns", "name": "web-1", "uid": "u-1"},
            "spec": {"terminationGracePeriodSeconds": 300},
        }))
        .unwrap()
    }

    #[test]
    fn deleted_pod_is_told_how_long_it_has() {
        let event = deleted(&pod(), 12, "2026-11-16T10:00:00Z".parse().unwrap());
        let expected = "Deleting the pod to accommodate the terminationTime 2026-11-16 10:00:00 +0000 UTC of the node. \
                        The pod was granted 12 seconds of grace-period of its 300 terminationGracePeriodSeconds. This \
                        bypasses the PDB of the pod and the do-not-disrupt annotation.";
        assert_eq!(
            (event.message.as_str(), event.dedupe),
            (expected, vec!["web-1".to_owned()])
        );
    }

    #[test]
    fn rule_that_holds_a_pod_is_not_lost_behind_the_count_of_waiting_pods() {
        let node: Node = serde_json::from_value(json!({"metadata": {"name": "n"}})).unwrap();
        let waiting = failed_draining(&node, "2 pods are waiting to be evicted");
        let held = held_by_budget(&node, "evicting pod violates a PDB", &ObjectKey::new("ns", "web-1"));
        assert_eq!(
            held.message,
            "Failed to drain node, evicting pod violates a PDB (Pod=ns/web-1)"
        );
        assert_ne!(held.dedupe, waiting.dedupe);
    }

    #[test]
    fn five_volumes_are_named_and_the_rest_counted() {
        let node: Node = serde_json::from_value(json!({"metadata": {"name": "n"}})).unwrap();
        let message = |count: usize| {
            let names: Vec<Text> = (0..count).map(|at| format!("v{at}").into()).collect();
            awaiting_volumes(&node, &names).message
        };
        assert_eq!(message(1), "Awaiting deletion of bound volumeattachments (v0)");
        assert_eq!(
            message(7),
            "Awaiting deletion of bound volumeattachments (v0, v1, v2, v3, v4 and 2 other(s))"
        );
    }

    #[test]
    fn protection_that_ends_says_when() {
        let event = protection(&pod(), &Protection::Until("2026-11-16T10:00:00Z".parse().unwrap())).unwrap();
        assert_eq!(
            (&*event.reason, event.message.as_str(), event.dedupe),
            (
                "DoNotDisruptUntil",
                "The karpenter.sh/do-not-disrupt grace period will elapse at 2026-11-16T10:00:00Z",
                vec!["u-1".to_owned(), "2026-11-16T10:00:00Z".to_owned()]
            )
        );
        assert_eq!(protection(&pod(), &Protection::Always), None);
    }
}
