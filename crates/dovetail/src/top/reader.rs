//! The thread that reads the source: a dump once, a cluster for ever. Whatever it waits for, nobody waits for it.

use std::{
    sync::{Arc, mpsc::Sender},
    thread,
    time::Duration,
};

use insight::Prices;
use model::{
    object::{ResourceVersion, Text},
    snapshot::Snapshot,
};
use tui::{Choices, Event, Picture, Title};

use super::{News, follow, instant, latest::Latest, place};
use crate::{
    decisions::ShelfArgs,
    failure::Failure,
    source::{self, Needs, SourceArgs},
};

/// Everything is read anew this often, whatever watches say.
const ANEW: Duration = Duration::from_mins(5);
/// Decisions are read this often.
const DECISIONS: Duration = Duration::from_secs(10);
/// After a failure it is tried again after so long, then twice as long, up to the last.
const TRIES: [u64; 6] = [1, 2, 4, 8, 15, 30];

/// Objects, and which version of each.
type Versions = Vec<(Text, ResourceVersion)>;

/// Makes pictures of snapshots and hands them on.
pub(super) struct Publisher {
    choices: Choices,
    newest: Arc<Latest<Arc<Picture>>>,
    tell: Sender<News>,
    serial: u64,
    /// What types cost, and for which pools that was worked out.
    prices: Option<(Versions, Arc<Prices>)>,
    pub(super) title: Title,
}

impl Publisher {
    /// Hands on a snapshot; false when nobody listens any more.
    pub(super) fn publish(&mut self, snapshot: Snapshot) -> bool {
        self.serial += 1;
        let prices = self.prices_of(&snapshot);
        let picture = Picture::of(
            self.serial,
            Arc::new(snapshot),
            prices,
            self.title.clone(),
            &self.choices,
        );
        let picture = Arc::new(picture);
        self.newest.put(Arc::clone(&picture));
        self.say(Event::Picture(picture))
    }

    pub(super) fn say(&self, event: Event) -> bool {
        self.tell.send(event.into()).is_ok()
    }

    /// Prices change with pools and overlays only; working them out takes longer than all the rest.
    fn prices_of(&mut self, snapshot: &Snapshot) -> Arc<Prices> {
        let objects = snapshot.objects();
        let pools = objects.node_pools.iter().map(|pool| &pool.metadata);
        let overlays = objects.node_overlays.iter().map(|overlay| &overlay.metadata);
        let key: Versions = pools
            .chain(overlays)
            .map(|metadata| (metadata.name.clone(), metadata.resource_version.clone()))
            .collect();
        match &self.prices {
            Some((known, prices)) if *known == key => Arc::clone(prices),
            _ => {
                let prices = Arc::new(Prices::of(snapshot));
                self.prices = Some((key, Arc::clone(&prices)));
                prices
            }
        }
    }
}

/// Starts to read.
pub(super) fn start(
    source: SourceArgs,
    choices: Choices,
    interval: Duration,
    newest: &Arc<Latest<Arc<Picture>>>,
    tell: &Sender<News>,
) {
    decisions(source.clone(), tell.clone());
    let mut publisher = Publisher {
        choices,
        newest: Arc::clone(newest),
        tell: tell.clone(),
        serial: 0,
        prices: None,
        title: Title::default(),
    };
    thread::spawn(move || {
        if place::is_live(&source) {
            watched(&source, interval, &mut publisher);
        } else {
            match source::read(&source, Needs::Decisions) {
                Ok(input) => {
                    publisher.title = place::title(&input);
                    publisher.publish(input.snapshot);
                }
                Err(error) => {
                    let _ = publisher.tell.send(News::Failed(error));
                }
            }
        }
    });
}

/// Reads a cluster, follows it, and reads it again now and then.
fn watched(source: &SourceArgs, interval: Duration, publisher: &mut Publisher) {
    let mut failures = 0;
    loop {
        let input = match source::read(source, Needs::Decisions) {
            Ok(input) => input,
            Err(error) if publisher.serial == 0 => {
                let _ = publisher.tell.send(News::Failed(error));
                return;
            }
            Err(error) => {
                let wait = TRIES.get(failures).or(TRIES.last()).copied().unwrap_or(30);
                failures += 1;
                let lost = Event::Lost {
                    why: brief(&error),
                    next_try_s: wait,
                };
                if !publisher.say(lost) {
                    return;
                }
                thread::sleep(Duration::from_secs(wait));
                continue;
            }
        };
        failures = 0;
        publisher.title = place::title(&input);
        let first = input.snapshot.clone();
        if !publisher.publish(input.snapshot) {
            return;
        }
        let began = instant();
        let place = place::whereabouts(source);
        let followed = crate::live::wait_for(follow::follow(&place, &first, interval, ANEW, publisher));
        if let Err(error) = followed {
            let why = brief(&error);
            if !publisher.say(Event::Lost { why, next_try_s: 1 }) {
                return;
            }
        }
        // A server that ends every watch at once is not asked at once again.
        thread::sleep(Duration::from_secs(1).saturating_sub(began.elapsed()));
    }
}

/// Why a source is away, in a few words.
pub(super) fn brief(error: &anyhow::Error) -> String {
    let text = match error.downcast_ref::<Failure>() {
        Some(failure) => failure.why.clone(),
        None => format!("{error:#}"),
    };
    let line = text.lines().next().unwrap_or_default();
    line.chars().take(60).collect()
}

/// Reads decisions: of a dump once, of a cluster again and again.
fn decisions(source: SourceArgs, tell: Sender<News>) {
    thread::spawn(move || {
        let shelf = ShelfArgs::of(&source, None);
        loop {
            let event = match shelf.read() {
                Ok(shelf) => Event::Decisions(shelf.ring.iter().cloned().collect()),
                Err(error) => Event::NoDecisions(crate::failure::text(&error)),
            };
            if tell.send(event.into()).is_err() || !place::is_live(&source) {
                return;
            }
            thread::sleep(DECISIONS);
        }
    });
}
