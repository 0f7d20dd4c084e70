//! The pods that are asked to go: who, until when, and what comes then.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

use jiff::{SignedDuration, Timestamp};
use model::object::{Object, ObjectKey, Pod, Uid};
use state::Transition;

/// How long an answer that a pod goes is believed without the watch saying so too.
const BELIEVED: SignedDuration = SignedDuration::from_secs(10);

/// One incarnation of a pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct EvictionKey {
    /// Its name.
    pub object: ObjectKey,
    /// Its identity.
    pub uid: Uid,
}

impl EvictionKey {
    /// The key of a pod.
    pub fn of(pod: &Pod) -> Self {
        Self {
            object: pod.metadata.key(),
            uid: pod.metadata.uid.clone(),
        }
    }
}

impl fmt::Display for EvictionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.object.fmt(f)
    }
}

/// How a pod is asked to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// It is evicted, and deleted in time to be gone by the deadline. Without a deadline it is asked for ever.
    ForceDelete(Option<Timestamp>),
    /// It is evicted until the deadline, and then left alone.
    Timeout(Timestamp),
}

impl Order {
    /// Both orders in one. Deletion beats a time-out; of two of a kind, the earlier deadline counts.
    #[must_use]
    pub fn merged(self, other: Self) -> Self {
        match (self, other) {
            (Self::Timeout(one), Self::Timeout(two)) => Self::Timeout(one.min(two)),
            (Self::ForceDelete(one), Self::ForceDelete(two)) => {
                Self::ForceDelete([one, two].into_iter().flatten().min())
            }
            (forced @ Self::ForceDelete(_), Self::Timeout(_)) | (Self::Timeout(_), forced @ Self::ForceDelete(_)) => {
                forced
            }
        }
    }
}

#[derive(Debug)]
enum Entry {
    /// To be asked.
    Queued { order: Order, attempts: u32 },
    /// It said it would go. Until the watch has told us so, it is not asked again.
    Asked { at: Timestamp },
}

/// All entries.
#[derive(Debug, Default)]
pub(super) struct Entries(Mutex<BTreeMap<EvictionKey, Entry>>);

impl Entries {
    /// Adds a pod or makes its order stricter. True when it is new.
    pub(super) fn add(&self, key: EvictionKey, order: Order, now: Timestamp) -> bool {
        let mut entries = self.lock();
        match entries.get_mut(&key) {
            Some(Entry::Queued { order: known, .. }) => {
                *known = known.merged(order);
                return false;
            }
            Some(Entry::Asked { at }) if now.duration_since(*at) < BELIEVED => return false,
            _ => {}
        }
        entries.insert(key, Entry::Queued { order, attempts: 0 });
        true
    }

    /// How a pod is to be asked; none when it is not.
    pub(super) fn order(&self, key: &EvictionKey) -> Option<Order> {
        match self.lock().get(key) {
            Some(Entry::Queued { order, .. }) => Some(*order),
            _ => None,
        }
    }

    /// How often a pod was asked.
    pub(super) fn attempts(&self, key: &EvictionKey) -> u32 {
        match self.lock().get(key) {
            Some(Entry::Queued { attempts, .. }) => *attempts,
            _ => 0,
        }
    }

    /// Counts one more time a pod is asked.
    pub(super) fn count_attempt(&self, key: &EvictionKey) {
        if let Some(Entry::Queued { attempts, .. }) = self.lock().get_mut(key) {
            *attempts = attempts.saturating_add(1);
        }
    }

    /// The server said that the pod goes.
    pub(super) fn asked(&self, key: &EvictionKey, at: Timestamp) {
        self.lock().insert(key.clone(), Entry::Asked { at });
    }

    /// Forgets a pod.
    pub(super) fn remove(&self, key: &EvictionKey) {
        self.lock().remove(key);
    }

    /// Everybody who is to be asked.
    pub(super) fn queued(&self) -> Vec<EvictionKey> {
        self.queued_where(|_| true)
    }

    /// Everybody of a namespace who is to be asked.
    pub(super) fn queued_in(&self, namespace: &str) -> Vec<EvictionKey> {
        self.queued_where(|key| *key.object.namespace == *namespace)
    }

    fn queued_where(&self, keep: impl Fn(&EvictionKey) -> bool) -> Vec<EvictionKey> {
        let entries = self.lock();
        let queued = entries
            .iter()
            .filter(|(_, entry)| matches!(entry, Entry::Queued { .. }));
        queued.map(|(key, _)| key).filter(|key| keep(key)).cloned().collect()
    }

    /// Hears that a pod changed: one that goes need not be remembered, and one that is queued is looked at when it may
    /// have become easier to evict. Gives back who is to be looked at.
    pub(super) fn hear(&self, pod: &Transition<Pod>) -> Option<EvictionKey> {
        let key = EvictionKey::of(pod.before.as_ref().or(pod.after.as_ref())?);
        let mut entries = self.lock();
        let going = pod
            .after
            .as_ref()
            .is_none_or(|after| after.metadata.is_deleting() || after.metadata.uid != key.uid);
        match entries.get(&key)? {
            Entry::Asked { .. } if going => {
                entries.remove(&key);
                None
            }
            Entry::Asked { .. } => None,
            Entry::Queued { .. } => (going || freed(pod)).then_some(key),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<EvictionKey, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the pod ended, or its annotations changed.
fn freed(pod: &Transition<Pod>) -> bool {
    let annotations = |pod: &Option<std::sync::Arc<Pod>>| pod.as_ref().map(|pod| pod.metadata().annotations.clone());
    pod.after.as_ref().is_some_and(|after| after.is_terminal()) || annotations(&pod.before) != annotations(&pod.after)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn pod(uid: &str, metadata: &Value) -> Pod {
        let mut whole = json!({"namespace": "ns", "name": "p", "uid": uid});
        for (key, value) in metadata.as_object().unwrap() {
            whole[key] = value.clone();
        }
        serde_json::from_value(json!({"metadata": whole, "status": {"phase": "Running"}})).unwrap()
    }

    fn change(before: Option<Pod>, after: Option<Pod>) -> Transition<Pod> {
        Transition {
            before: before.map(Arc::new),
            after: after.map(Arc::new),
        }
    }

    #[test]
    fn deletion_beats_a_timeout_and_the_earlier_deadline_counts() {
        use Order::{ForceDelete, Timeout};
        let cases = [
            (ForceDelete(None), ForceDelete(Some(at(5))), ForceDelete(Some(at(5)))),
            (ForceDelete(Some(at(5))), ForceDelete(None), ForceDelete(Some(at(5)))),
            (
                ForceDelete(Some(at(5))),
                ForceDelete(Some(at(9))),
                ForceDelete(Some(at(5))),
            ),
            (ForceDelete(None), ForceDelete(None), ForceDelete(None)),
            (Timeout(at(5)), Timeout(at(3)), Timeout(at(3))),
            (Timeout(at(5)), ForceDelete(None), ForceDelete(None)),
            (Timeout(at(5)), ForceDelete(Some(at(9))), ForceDelete(Some(at(9)))),
            (ForceDelete(None), Timeout(at(5)), ForceDelete(None)),
            (ForceDelete(Some(at(9))), Timeout(at(5)), ForceDelete(Some(at(9)))),
        ];
        for (known, added, expected) in cases {
            assert_eq!(known.merged(added), expected, "{known:?} and {added:?}");
        }
    }

    #[test]
    fn only_a_new_pod_is_news_and_another_incarnation_is_new() {
        let entries = Entries::default();
        let [first, second] = ["a", "b"].map(|uid| EvictionKey::of(&pod(uid, &json!({}))));
        let added = [
            entries.add(first.clone(), Order::Timeout(at(9)), at(0)),
            entries.add(first.clone(), Order::ForceDelete(None), at(0)),
            entries.add(second, Order::ForceDelete(None), at(0)),
        ];
        assert_eq!(
            (added, entries.order(&first)),
            ([true, false, true], Some(Order::ForceDelete(None)))
        );
    }

    #[test]
    fn pod_that_said_it_goes_is_not_asked_again_until_the_watch_has_had_its_time() {
        let entries = Entries::default();
        let key = EvictionKey::of(&pod("a", &json!({})));
        entries.add(key.clone(), Order::ForceDelete(None), at(0));
        entries.asked(&key, at(0));
        assert!(!entries.add(key.clone(), Order::ForceDelete(None), at(9)));
        assert_eq!(entries.order(&key), None);
        assert!(entries.add(key, Order::ForceDelete(None), at(10)));
    }

    #[test]
    fn pod_that_goes_leaves_nothing_behind() {
        let entries = Entries::default();
        let running = pod("a", &json!({}));
        let key = EvictionKey::of(&running);
        for after in [
            None,
            Some(pod("a", &json!({"deletionTimestamp": "2026-11-16T10:00:00Z"}))),
            Some(pod("b", &json!({}))),
        ] {
            entries.asked(&key, at(0));
            assert_eq!(entries.hear(&change(Some(running.clone()), after)), None);
            assert!(entries.lock().is_empty());
        }
    }

    #[test]
    fn queued_pod_is_looked_at_when_it_goes_or_its_protection_changes() {
        let entries = Entries::default();
        let protected = pod("a", &json!({"annotations": {"karpenter.sh/do-not-disrupt": "true"}}));
        let key = EvictionKey::of(&protected);
        entries.add(key.clone(), Order::ForceDelete(None), at(0));
        let heard = |after| entries.hear(&change(Some(protected.clone()), after));
        assert_eq!(heard(Some(protected.clone())), None);
        assert_eq!(heard(Some(pod("a", &json!({})))), Some(key.clone()));
        assert_eq!(heard(None), Some(key));
    }
}
