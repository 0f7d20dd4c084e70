//! Who sees everything that happens: counts it, checks it, and writes it down.

use std::{
    fmt::Write,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use simulator::{Change, Event, RequestFacts, Verb};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::{
    Tally, Violation, World,
    caller::Called,
    fault::Listen,
    ground::key,
    invariant::Checker,
    process::{holder_at, process_of},
};

/// A witness, until it is dropped.
pub struct Witness {
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    tally: Tally,
    checker: Checker,
    log: Option<String>,
}

impl Witness {
    /// A witness of a world, who writes down everything if asked to. `changes` are those of the world's server.
    pub fn new(is_writing: bool) -> Self {
        let seen = Seen {
            log: is_writing.then(String::new),
            ..Seen::default()
        };
        Self {
            seen: Arc::new(Mutex::new(seen)),
        }
    }

    /// Hears of the requests of the autoscaler.
    pub(crate) fn listener(&self, world: &World) -> Listen {
        let seen = Arc::clone(&self.seen);
        let (server, clock, settings) = (world.server.clone(), world.clock.clone(), Arc::clone(&world.settings));
        Arc::new(move |facts: &RequestFacts| {
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            if facts.resource.plural == "pods" && facts.verb == Verb::Delete {
                seen.checker.deletes_pod(format!("{}/{}", facts.namespace, facts.name));
            }
            let Some(process) = process_of(&facts.agent).filter(|_| facts.write.is_some()) else {
                return;
            };
            match facts.resource.plural.as_str() {
                "leases" => seen.checker.renews(process, clock.now()),
                // Events only tell.
                "events" => {}
                plural => {
                    let what = format!("{:?} {plural} {}", facts.verb, facts.name);
                    let holder = holder_at(&server, &settings);
                    seen.checker.acts(process, holder.as_deref(), &what, clock.now());
                }
            }
        })
    }

    /// Hears of what processes that elect a leader ask of the cloud.
    pub(crate) fn caller(&self, world: &World) -> Called {
        let seen = Arc::clone(&self.seen);
        let (server, clock, settings) = (world.server.clone(), world.clock.clone(), Arc::clone(&world.settings));
        Arc::new(move |process: &str, what: &str| {
            let holder = holder_at(&server, &settings);
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.checker.acts(process, holder.as_deref(), what, clock.now());
        })
    }

    /// Watches a world while this future is polled.
    pub(crate) async fn watch(&self, world: &World, mut changes: UnboundedReceiver<Change>) {
        let mut minute = tokio::time::interval(Duration::from_mins(1));
        loop {
            tokio::select! {
                biased;
                change = changes.recv() => match change {
                    Some(change) => self.see(&change, world),
                    None => return,
                },
                _ = minute.tick() => self.lock().checker.look(world),
            }
        }
    }

    /// What has happened and not been seen yet.
    pub(crate) fn see(&self, change: &Change, world: &World) {
        let now = world.clock.now();
        let journal = world.region.take_journal();
        let mut seen = self.lock();
        seen.tally.see(change, now);
        seen.checker.see(change, now, world);
        if let Some(log) = &mut seen.log {
            for (at, line) in journal {
                let _ = writeln!(log, "{at} cloud {line}");
            }
            write_down(log, change, now);
        }
    }

    pub(crate) fn disturbed(&self) {
        self.lock().checker.disturbed();
    }

    pub(crate) fn end(&self, world: &World, is_still: bool) {
        self.lock().checker.end(world, is_still);
    }

    /// What must not be and was.
    pub fn violations(&self) -> Vec<Violation> {
        self.lock().checker.found()
    }

    /// The counts.
    pub fn tally(&self) -> Tally {
        self.lock().tally.clone()
    }

    pub(crate) fn take_log(&self) -> String {
        self.lock().log.take().unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A line for a change: when, what, to which object, and what of it differs in the end.
fn write_down(log: &mut String, change: &Change, now: Timestamp) {
    let event = match change.event {
        Event::Added => "added",
        Event::Modified => "modified",
        Event::Deleted => "deleted",
    };
    let _ = writeln!(
        log,
        "{now} {} {event} {} {} {}",
        change.version,
        change.resource.plural,
        key(&change.object),
        change.object
    );
}
