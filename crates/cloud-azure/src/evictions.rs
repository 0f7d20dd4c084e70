//! Which spot machines will Azure take back in a moment?
//!
//! Azure tells the machine itself, half a minute before. An agent of AKS on the node writes it down as the condition
//! `PreemptionScheduled`; whoever waits for the machine to be gone has lost that time.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use api::labels::{CAPACITY_TYPE, CAPACITY_TYPE_SPOT};
use cloud::{Notice, NoticeKind};
use jiff::{SignedDuration, Timestamp};
use model::object::{ConditionStatus, Node, ObjectKey, Text};
use runtime::{
    Api, Clock, Resource,
    watch::{Belief, Observed, Selection, Watched, follow_some},
};
use tokio::sync::Notify;

/// The condition that AKS's agent writes.
pub(crate) const CONDITION: &str = "PreemptionScheduled";
/// How long a machine is there after Azure has said that it will take it.
const NOTICE: SignedDuration = SignedDuration::from_secs(30);

/// The evictions that were announced.
pub(crate) struct Evictions {
    clock: Clock,
    known: Mutex<BTreeMap<ObjectKey, Announced>>,
    arrived: Notify,
}

struct Announced {
    notice: Notice,
    is_heeded: bool,
}

impl Evictions {
    pub(crate) fn new(clock: Clock) -> Self {
        Self {
            clock,
            known: Mutex::default(),
            arrived: Notify::new(),
        }
    }

    /// Follows spot nodes until dropped.
    pub(crate) async fn follow(&self, api: &Api) {
        let watched = Watched {
            resource: Resource::of::<Node>(),
            read: Box::new(|json: &[u8]| serde_json::from_slice::<Node>(json)),
            key: |node: &Node| node.metadata.key(),
        };
        let spot = Selection {
            labels: format!("{CAPACITY_TYPE}={CAPACITY_TYPE_SPOT}"),
            ..Selection::default()
        };
        let see = |observed: Observed<Node>| {
            match observed {
                Observed::Applied(node) => self.see(&node),
                Observed::Deleted(node) => drop(self.lock().remove(&node.metadata.key())),
                Observed::Listed { named, .. } => self.lock().retain(|key, _| named.contains(key)),
                Observed::Failed(error) => tracing::error!(%error, "watching spot nodes"),
                Observed::Listing => {}
            }
            Belief::Taken
        };
        follow_some(api, watched, &spot, see).await;
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Announced>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what a node says. An announcement that was taken back is forgotten.
    fn see(&self, node: &Node) {
        let key = node.metadata.key();
        let Some(notice) = notice(node, self.clock.now()) else {
            self.lock().remove(&key);
            return;
        };
        let mut known = self.lock();
        let is_old = known.get(&key).is_some_and(|old| old.notice.receipt == notice.receipt);
        if !is_old {
            let announced = Announced {
                notice,
                is_heeded: false,
            };
            known.insert(key, announced);
            self.arrived.notify_one();
        }
    }

    /// Waits until there are notices that nobody has acted on.
    pub(crate) async fn wait(&self) -> Vec<Notice> {
        loop {
            let waiting: Vec<Notice> = {
                let known = self.lock();
                let waiting = known.values().filter(|it| !it.is_heeded);
                waiting.map(|it| it.notice.clone()).collect()
            };
            if !waiting.is_empty() {
                return waiting;
            }
            self.arrived.notified().await;
        }
    }

    /// A notice was acted on.
    pub(crate) fn heed(&self, receipt: &Text) {
        let mut known = self.lock();
        for announced in known.values_mut().filter(|it| it.notice.receipt == *receipt) {
            announced.is_heeded = true;
        }
    }
}

/// What a node says of its machine; none where it stays.
fn notice(node: &Node, now: Timestamp) -> Option<Notice> {
    let condition = node.condition(CONDITION)?;
    if condition.status != ConditionStatus::True {
        return None;
    }
    let machine = node.spec.provider_id.as_ref()?;
    let since = condition.last_transition_time;
    let at = since.unwrap_or(now);
    Some(Notice {
        // A node that is announced anew is another announcement.
        receipt: format!("{}/{since:?}", node.metadata.uid).as_str().into(),
        kind: NoticeKind::SpotInterruption,
        machines: vec![machine.as_str().into()],
        at,
        deadline: at.checked_add(NOTICE).ok(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(status: &str, since: &str) -> Node {
        serde_json::from_value(json!({
            "metadata": {"name": "n", "uid": "u"}, "spec": {"providerID": "azure:///x/vm"},
            "status": {"conditions": [{"type": CONDITION, "status": status, "lastTransitionTime": since}]},
        }))
        .unwrap()
    }

    fn evictions() -> Evictions {
        Evictions::new(Clock::starting_at("2026-11-17T10:00:00Z".parse().unwrap()))
    }

    #[tokio::test]
    async fn an_announced_eviction_names_the_machine_and_leaves_half_a_minute() {
        let evictions = evictions();
        evictions.see(&node("True", "2026-11-17T10:00:00Z"));
        let notices = evictions.wait().await;
        assert_eq!(notices.len(), 1);
        assert_eq!(&*notices[0].machines[0], "azure:///x/vm");
        assert_eq!(notices[0].kind, NoticeKind::SpotInterruption);
        assert_eq!(notices[0].deadline, Some("2026-11-17T10:00:30Z".parse().unwrap()));
        assert_eq!(evictions.wait().await, notices, "until somebody has acted on it");
    }

    #[tokio::test]
    async fn an_eviction_that_was_acted_on_does_not_come_again_but_another_does() {
        let evictions = evictions();
        evictions.see(&node("True", "2026-11-17T10:00:00Z"));
        let first = evictions.wait().await;
        evictions.heed(&first[0].receipt);
        evictions.see(&node("True", "2026-11-17T10:00:00Z"));
        assert!(evictions.lock().values().all(|it| it.is_heeded));
        evictions.see(&node("True", "2026-11-17T11:00:00Z"));
        assert_ne!(evictions.wait().await[0].receipt, first[0].receipt);
    }

    #[test]
    fn a_node_that_is_to_stay_announces_nothing() {
        let evictions = evictions();
        evictions.see(&node("True", "2026-11-17T10:00:00Z"));
        evictions.see(&node("False", "2026-11-17T10:00:10Z"));
        assert!(evictions.lock().is_empty());
        let mut nameless = node("True", "2026-11-17T10:00:00Z");
        nameless.spec.provider_id = None;
        evictions.see(&nameless);
        assert!(evictions.lock().is_empty());
    }
}
