//! When does a pass begin? A moment after the last trigger, so that pods that come together are planned together.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use model::object::Uid;
use tokio::{sync::Notify, time};

/// Collects triggers into windows. A window opens at the first trigger and closes when none came for the idle time, or
/// at the longest time.
#[derive(Debug, Default)]
pub struct Batch {
    /// Who triggered in this window: asking twice does not hold it open.
    seen: Mutex<BTreeSet<Uid>>,
    armed: Notify,
}

impl Batch {
    /// An object wants a pass.
    pub fn trigger(&self, uid: &Uid) {
        let is_new = self
            .seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(uid.clone());
        if is_new {
            self.armed.notify_one();
        }
    }

    /// A pass is wanted, and nobody in particular asks.
    pub fn trigger_now(&self) {
        self.armed.notify_one();
    }

    /// Returns when a window has closed.
    pub async fn window(&self, idle: Duration, longest: Duration) {
        self.armed.notified().await;
        let end = time::Instant::now() + longest;
        loop {
            let close = end.min(time::Instant::now() + idle);
            tokio::select! {
                biased;
                () = time::sleep_until(close) => break,
                () = self.armed.notified() => {}
            }
        }
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    const IDLE: Duration = Duration::from_secs(1);
    const LONGEST: Duration = Duration::from_secs(10);

    /// When the window closes, in milliseconds, if these objects trigger at these times.
    async fn closes(triggers: &[(u64, Option<&str>)]) -> u128 {
        let batch = Arc::new(Batch::default());
        let began = time::Instant::now();
        let window = tokio::spawn({
            let batch = Arc::clone(&batch);
            async move {
                batch.window(IDLE, LONGEST).await;
                began.elapsed().as_millis()
            }
        });
        for (at, uid) in triggers {
            time::sleep_until(began + Duration::from_millis(*at)).await;
            match uid {
                Some(uid) => batch.trigger(&(*uid).into()),
                None => batch.trigger_now(),
            }
        }
        window.await.unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn window_stays_open_while_new_objects_come_and_not_for_ever() {
        type Triggers<'a> = &'a [(u64, Option<&'a str>)];
        let cases: [(Triggers<'_>, u128); 4] = [
            (&[(300, Some("a"))], 1300),
            (&[(0, Some("a")), (900, Some("b")), (1500, Some("c"))], 2500),
            (&[(0, Some("a")), (900, Some("a"))], 1000),
            (&[(0, Some("a")), (900, None), (950, None)], 1950),
        ];
        for (triggers, expected) in cases {
            assert_eq!(closes(triggers).await, expected, "{triggers:?}");
        }
        let names: Vec<String> = (0..30).map(|at| format!("pod-{at}")).collect();
        let flood: Vec<_> = (0..)
            .step_by(500)
            .zip(names.iter().map(|name| Some(name.as_str())))
            .collect();
        assert_eq!(closes(&flood[..21]).await, 10_000);
    }

    #[tokio::test(start_paused = true)]
    async fn trigger_between_windows_opens_the_next() {
        let batch = Batch::default();
        batch.trigger(&"a".into());
        batch.window(IDLE, LONGEST).await;
        let began = time::Instant::now();
        batch.trigger(&"a".into());
        batch.window(IDLE, LONGEST).await;
        assert_eq!(began.elapsed(), IDLE);
    }
}
