//! When to look, and what it comes to: often at what can be said at once, seldom at what takes a plan.
//!
//! Nobody watches: a glance a minute, for the trend. Somebody does: at most four looks a second, and after each a pause
//! twice as long as it took, so that the page never takes more than a third of a thread, whatever the cluster's size.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use insight::{Dollars, Prices};
use jiff::Timestamp;
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

use crate::{
    Answers, Document, Eye, Seen, Title,
    deep::{Deep, deep},
    hub::Hub,
    look::{PriceBook, look},
    trend::{Point, Trend},
    worker::{NoAnswer, Worker},
};

/// Looks are at least so far apart.
const LOOKS: Duration = Duration::from_millis(250);
/// What takes a plan is worked out at most this often,
const THOUGHTS: Duration = Duration::from_secs(2);
/// and when nothing but time has changed, this often.
const UNCHANGED: Duration = Duration::from_secs(30);
/// How often the trend gets a point while nobody watches.
const UNWATCHED: Duration = Duration::from_mins(1);
/// How long a look may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long an answer may take.
const ANSWER: Duration = Duration::from_mins(2);
/// After work, so many times as long is rest.
const REST: u32 = 2;
/// After thinking, so many times,
const LONG_REST: u32 = 4;
/// but not longer than this: on a machine that has much else to do, thinking takes long without taking much.
const LONGEST_REST: Duration = Duration::from_secs(20);

/// Looks, thinks, and tells the hub.
pub(crate) struct Desk {
    eye: Arc<dyn Eye>,
    answers: Arc<dyn Answers>,
    title: Arc<Title>,
    hub: Arc<Hub>,
    looking: Worker,
    thinking: Worker,
    answering: Worker,
    prices: Arc<Mutex<PriceBook>>,
    kept: Mutex<Kept>,
}

/// What outlasts a look.
#[derive(Default)]
struct Kept {
    trend: Trend,
    quick: Document,
    deep: Document,
    bounds: Option<(Dollars, Dollars)>,
    /// Why the cluster cannot be seen; empty when it can.
    blind: String,
}

/// Why a question has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The cluster cannot be seen.
    Blind(String),
    /// Too many ask.
    Busy,
    /// It takes too long, or stopped in the middle.
    Failed,
}

impl Desk {
    pub(crate) fn new(
        eye: Arc<dyn Eye>,
        answers: Arc<dyn Answers>,
        title: Title,
        hub: Arc<Hub>,
    ) -> std::io::Result<Self> {
        Ok(Self {
            eye,
            answers,
            title: Arc::new(title),
            hub,
            looking: Worker::start("page-look", 1)?,
            thinking: Worker::start("page-think", 1)?,
            answering: Worker::start("page-answer", 8)?,
            prices: Arc::default(),
            kept: Mutex::default(),
        })
    }

    pub(crate) fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    pub(crate) fn eye(&self) -> &dyn Eye {
        &*self.eye
    }

    /// Looks and thinks, for ever.
    pub(crate) async fn run(&self) {
        tokio::join!(self.looks(), self.thoughts());
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn looks(&self) {
        loop {
            let began = Instant::now();
            match self.seen().await {
                Ok(seen) => self.look_at(seen).await,
                Err(why) => self.kept().blind = why,
            }
            self.tell();
            sleep(LOOKS.max(began.elapsed() * REST)).await;
            if !self.hub.is_watched() {
                let _ = timeout(UNWATCHED, self.hub.watched()).await;
            }
        }
    }

    /// Looks now, if nobody watches: otherwise what is known is fresh.
    pub(crate) async fn glance(&self) {
        if self.hub.is_watched() {
            return;
        }
        if let Ok(seen) = self.seen().await {
            self.look_at(seen).await;
            self.tell();
        }
    }

    async fn look_at(&self, seen: Seen) {
        let (answers, title, prices) = (
            Arc::clone(&self.answers),
            Arc::clone(&self.title),
            Arc::clone(&self.prices),
        );
        let found = self.looking.run(move || {
            let prices = priced(&prices, &seen);
            look(&seen, &prices, &title, &*answers)
        });
        if let Ok((document, point)) = found.await {
            self.kept().take(document, point);
        }
    }

    async fn thoughts(&self) {
        let mut last: Option<(Fingerprint, Timestamp, Instant)> = None;
        loop {
            self.hub.watched().await;
            let began = Instant::now();
            if let Ok(seen) = self.seen().await {
                let (print, at) = (fingerprint(&seen), seen.snapshot.taken_at());
                let is_old = last
                    .as_ref()
                    .is_none_or(|(known, then, when)| *known != print || (*then != at && when.elapsed() >= UNCHANGED));
                if is_old && self.think(seen).await {
                    last = Some((print, at, Instant::now()));
                }
            }
            sleep((began.elapsed() * LONG_REST).clamp(THOUGHTS, LONGEST_REST)).await;
        }
    }

    async fn think(&self, seen: Seen) -> bool {
        let (answers, prices) = (Arc::clone(&self.answers), Arc::clone(&self.prices));
        let found = self.thinking.run(move || {
            let prices = priced(&prices, &seen);
            deep(&seen, &prices, &*answers)
        });
        let Ok(Deep {
            document,
            bound_usd_h,
            baseline_usd_h,
        }) = found.await
        else {
            return false;
        };
        let mut kept = self.kept();
        kept.deep = document;
        kept.bounds = Some((bound_usd_h, baseline_usd_h));
        true
    }

    /// Tells what is known by now.
    fn tell(&self) {
        let document = self.kept().whole();
        if document.len("title") > 0 {
            self.hub.publish(document);
        }
    }

    async fn seen(&self) -> Result<Seen, String> {
        match timeout(PATIENCE, self.eye.look()).await {
            Ok(seen) => seen,
            Err(_) => Err("the controller is too busy to be looked at".to_owned()),
        }
    }

    /// Answers from what was seen, where that takes no time.
    pub(crate) async fn recall<R>(&self, of: impl FnOnce(&Seen, &dyn Answers) -> R) -> Result<R, Trouble> {
        let seen = self.seen().await.map_err(Trouble::Blind)?;
        Ok(of(&seen, &*self.answers))
    }

    /// Answers a question about the cluster as it is now.
    pub(crate) async fn ask<R: Send + 'static>(
        &self,
        work: impl FnOnce(&Seen, &Prices, &dyn Answers) -> R + Send + 'static,
    ) -> Result<R, Trouble> {
        let seen = self.seen().await.map_err(Trouble::Blind)?;
        let (answers, prices) = (Arc::clone(&self.answers), Arc::clone(&self.prices));
        let answered = self.answering.run(move || {
            let prices = priced(&prices, &seen);
            work(&seen, &prices, &*answers)
        });
        match timeout(ANSWER, answered).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(NoAnswer::Busy)) => Err(Trouble::Busy),
            Ok(Err(NoAnswer::Stopped)) | Err(_) => Err(Trouble::Failed),
        }
    }
}

impl Kept {
    fn take(&mut self, document: Document, mut point: Point) {
        if let Some((bound, baseline)) = self.bounds {
            (point.bound_usd_h, point.baseline_usd_h) = (Some(bound), Some(baseline));
        }
        self.quick = document;
        self.blind.clear();
        self.trend.push(point);
    }

    fn whole(&self) -> Document {
        let mut document = self.quick.clone();
        document.take(&self.deep);
        document.open("trend");
        for point in self.trend.points() {
            document.put("trend", &format!("{:015}", point.at.as_millisecond()), point);
        }
        document.put("eye", "", &json!({"blind": self.blind}));
        document
    }
}

fn priced(book: &Mutex<PriceBook>, seen: &Seen) -> Arc<Prices> {
    book.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .prices(&seen.snapshot)
}

type Fingerprint = Vec<(&'static str, u64)>;

/// What was looked at, as numbers: the versions of all objects.
fn fingerprint(seen: &Seen) -> Fingerprint {
    seen.snapshot.objects().versions()
}
