//! Who watches, what they have been told, and what they are told next.
//!
//! A watcher that comes, or comes back from too long ago, is told everything; the others are told what has changed since
//! what they know. A slow one skips what it missed: nothing is kept for it beyond a few deltas.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::sync::{Notify, watch};

use crate::Document;

/// Deltas that are kept for those who come back.
const KEPT: usize = 64;
/// Bytes of them: those who miss more are told everything anew.
const KEPT_BYTES: usize = 1 << 20;
/// Watchers at once.
const MOST_WATCHERS: usize = 32;

/// What all watchers share.
#[derive(Debug)]
pub(crate) struct Hub {
    told: Mutex<Told>,
    news: watch::Sender<u64>,
    watchers: AtomicUsize,
    came: Notify,
    /// Of this process: numbers of another mean nothing here.
    epoch: String,
}

#[derive(Debug, Default)]
struct Told {
    document: Document,
    number: u64,
    deltas: VecDeque<(u64, Arc<str>)>,
    bytes: usize,
}

/// Somebody who watches, until this is dropped.
#[derive(Debug)]
pub(crate) struct Watcher {
    hub: Arc<Hub>,
    /// What it knows; none: nothing.
    knows: Option<u64>,
    news: watch::Receiver<u64>,
}

impl Hub {
    pub(crate) fn new(epoch: String) -> Arc<Self> {
        Arc::new(Self {
            told: Mutex::default(),
            news: watch::Sender::new(0),
            watchers: AtomicUsize::new(0),
            came: Notify::new(),
            epoch,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What everybody is told from now on.
    pub(crate) fn publish(&self, document: Document) {
        let mut told = self.lock();
        let is_first = told.number == 0;
        let Some(delta) = document.delta_from(&told.document) else {
            return;
        };
        told.number += 1;
        told.document = document;
        if !is_first {
            let (number, delta): (u64, Arc<str>) = (told.number, delta.into());
            told.bytes += delta.len();
            told.deltas.push_back((number, delta));
        }
        while told.deltas.len() > KEPT || told.bytes > KEPT_BYTES {
            let Some((_, gone)) = told.deltas.pop_front() else {
                break;
            };
            told.bytes -= gone.len();
        }
        let number = told.number;
        drop(told);
        self.news.send_replace(number);
    }

    /// Everything, as JSON; none before the first look.
    pub(crate) fn text(&self) -> Option<String> {
        let told = self.lock();
        (told.number > 0).then(|| told.document.text())
    }

    /// Waits until somebody watches.
    pub(crate) async fn watched(&self) {
        while self.watchers.load(Ordering::SeqCst) == 0 {
            self.came.notified().await;
        }
    }

    pub(crate) fn is_watched(&self) -> bool {
        self.watchers.load(Ordering::SeqCst) > 0
    }

    /// Somebody watches from now on, who knows what the event of this id told; none when there are too many.
    pub(crate) fn watch(self: &Arc<Self>, last_event: Option<&str>) -> Option<Watcher> {
        let before = self.watchers.fetch_add(1, Ordering::SeqCst);
        let watcher = Watcher {
            hub: Arc::clone(self),
            knows: last_event.and_then(|id| self.number_of(id)),
            news: self.news.subscribe(),
        };
        self.came.notify_waiters();
        // Permits are for those who ask later.
        self.came.notify_one();
        (before < MOST_WATCHERS).then_some(watcher)
    }

    fn number_of(&self, id: &str) -> Option<u64> {
        let (epoch, number) = id.rsplit_once('-')?;
        (epoch == self.epoch).then(|| number.parse().ok())?
    }

    /// What to tell somebody who knows this much: events, and how much they know then. None when there is nothing.
    fn since(&self, knows: Option<u64>) -> Option<(String, u64)> {
        let told = self.lock();
        let now = told.number;
        if now == 0 || knows == Some(now) {
            return None;
        }
        let oldest = told.deltas.front().map_or(u64::MAX, |(number, _)| *number);
        let reachable = knows.filter(|knows| *knows < now && *knows + 1 >= oldest);
        let Some(knows) = reachable else {
            let text = told.document.text();
            return Some((
                format!("event: snapshot\nid: {}-{now}\ndata: {text}\n\n", self.epoch),
                now,
            ));
        };
        let mut events = String::new();
        for (number, delta) in told.deltas.iter().filter(|(number, _)| *number > knows) {
            events.push_str(&format!("event: delta\nid: {}-{number}\ndata: {delta}\n\n", self.epoch));
        }
        Some((events, now))
    }
}

impl Watcher {
    /// The next events, once there are any. None when there will be none.
    pub(crate) async fn next(&mut self) -> Option<String> {
        loop {
            self.news.borrow_and_update();
            if let Some((events, knows)) = self.hub.since(self.knows) {
                self.knows = Some(knows);
                return Some(events);
            }
            self.news.changed().await.ok()?;
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.hub.watchers.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(cpu: usize) -> Document {
        let mut document = Document::default();
        document.put("nodes", "a", &cpu);
        document
    }

    fn hub() -> Arc<Hub> {
        Hub::new("e".to_owned())
    }

    #[tokio::test]
    async fn a_watcher_is_told_everything_once_and_then_what_changes() {
        let hub = hub();
        hub.publish(document(1));
        let mut watcher = hub.watch(None).unwrap();
        assert_eq!(
            watcher.next().await.unwrap(),
            "event: snapshot\nid: e-1\ndata: {\"nodes\":{\"a\":1}}\n\n"
        );
        hub.publish(document(1));
        hub.publish(document(2));
        hub.publish(document(3));
        assert_eq!(
            watcher.next().await.unwrap(),
            "event: delta\nid: e-2\ndata: {\"set\":{\"nodes\":{\"a\":2}},\"drop\":{}}\n\n\
             event: delta\nid: e-3\ndata: {\"set\":{\"nodes\":{\"a\":3}},\"drop\":{}}\n\n"
        );
    }

    #[tokio::test]
    async fn who_comes_back_is_told_what_it_missed_or_everything() {
        let hub = hub();
        for cpu in 1..=KEPT + 10 {
            hub.publish(document(cpu));
        }
        let newest = KEPT + 10;
        for (id, is_whole) in [
            (format!("e-{}", newest - 1), false),
            ("e-1".to_owned(), true),
            (format!("other-{}", newest - 1), true),
            ("e-99999".to_owned(), true),
            ("nonsense".to_owned(), true),
        ] {
            let told = hub.watch(Some(&id)).unwrap().next().await.unwrap();
            assert_eq!(told.starts_with("event: snapshot"), is_whole, "{id}");
            assert!(told.contains(&format!("id: e-{newest}\n")), "{id}");
        }
    }

    #[tokio::test]
    async fn it_is_known_whether_anybody_watches_and_there_may_be_too_many() {
        let hub = hub();
        assert!(!hub.is_watched());
        let watchers: Vec<_> = (0..MOST_WATCHERS).map(|_| hub.watch(None).unwrap()).collect();
        hub.watched().await;
        assert!(hub.watch(None).is_none());
        drop(watchers);
        assert!(!hub.is_watched());
    }

    #[test]
    fn deltas_that_are_kept_stay_within_their_bytes() {
        let hub = hub();
        for round in 0..20 {
            let mut document = Document::default();
            document.put("nodes", "a", &"x".repeat(KEPT_BYTES / 5 + round));
            hub.publish(document);
        }
        let told = hub.lock();
        assert!(told.bytes <= KEPT_BYTES && told.deltas.len() < 6);
    }
}
