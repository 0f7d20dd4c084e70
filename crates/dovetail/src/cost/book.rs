//! What was spent in a window of time, and what was saved in it? From machines and how long each ran, and from what was
//! decided about them.
//!
//! A bill is the cloud's business: this is hours times prices, the prices being those that were known.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use ledger::{Action, Phase, Record, Usd};
use serde::Serialize;

/// A machine for as long as it ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stint {
    /// Its claim, or its node where it has none.
    pub(super) name: String,
    /// Its NodePool.
    pub(super) pool: String,
    /// From when on it was paid for.
    pub(super) from: Timestamp,
    /// Until when; none for what still runs.
    pub(super) to: Option<Timestamp>,
    /// What it costs an hour.
    pub(super) usd_h: Usd,
    /// What it would cost on demand, where that is known.
    pub(super) on_demand_usd_h: Option<Usd>,
}

/// A span of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Window {
    /// Its begin.
    pub(super) from: Timestamp,
    /// Its end.
    pub(super) to: Timestamp,
}

/// What a pool came to in an hour or in a window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(super) struct Entry {
    /// What was spent.
    pub(super) spent_usd: Usd,
    /// What the same machines would have cost more on demand.
    pub(super) saved_by_spot_usd: Usd,
    /// What nodes would have cost more that consolidation took away or replaced, from then on.
    pub(super) saved_by_consolidation_usd: Usd,
    /// Seconds that machines ran, all together.
    pub(super) machine_seconds: i64,
}

impl Entry {
    fn add(&mut self, other: Self) {
        self.spent_usd.0 += other.spent_usd.0;
        self.saved_by_spot_usd.0 += other.saved_by_spot_usd.0;
        self.saved_by_consolidation_usd.0 += other.saved_by_consolidation_usd.0;
        self.machine_seconds += other.machine_seconds;
    }
}

/// What was spent and saved, hour by hour and in all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Book {
    /// The whole of it.
    pub(super) window: Window,
    /// By the begin of an hour and the pool.
    pub(super) hours: BTreeMap<(Timestamp, String), Entry>,
    /// Machines that are gone and of which nobody knows when they came: counted from the begin of the window on.
    pub(super) of_unknown_begin: usize,
}

const HOUR: SignedDuration = SignedDuration::from_hours(1);

impl Book {
    /// Of machines that run now, and of decisions about those that are gone.
    pub(super) fn of(window: Window, running: &[Stint], records: &[&Record]) -> Self {
        let mut book = Self {
            window,
            hours: BTreeMap::new(),
            of_unknown_begin: 0,
        };
        for stint in running {
            book.count(stint);
        }
        for stint in book.gone(running, records) {
            book.count(&stint);
        }
        for record in records.iter().filter(|record| is_consolidation(record)) {
            let saved = record.money.map(|money| Usd(-money.delta().0)).unwrap_or_default();
            if saved.0 > 0 {
                book.spread(&record.pool, record.time, None, |entry, seconds| {
                    entry.saved_by_consolidation_usd.0 += share(saved, seconds);
                });
            }
        }
        book
    }

    /// Machines that went within the window, by what was decided about them.
    fn gone(&mut self, running: &[Stint], records: &[&Record]) -> Vec<Stint> {
        let still: BTreeSet<&str> = running.iter().map(|stint| stint.name.as_str()).collect();
        let mut came: BTreeMap<&str, Timestamp> = BTreeMap::new();
        for record in records.iter().filter(|record| record.is_acted()) {
            for target in record.targets.iter().filter(|target| target.comes) {
                came.insert(&target.claim, record.time);
            }
        }
        let mut gone = BTreeMap::new();
        for record in records.iter().filter(|record| is_removal(record)) {
            for target in record.targets.iter().filter(|target| !target.comes) {
                let name = if target.claim.is_empty() {
                    &target.node
                } else {
                    &target.claim
                };
                let (Some(usd_h), false) = (target.usd_h, still.contains(name.as_str())) else {
                    continue;
                };
                let from = came.get(name.as_str()).copied();
                self.of_unknown_begin += usize::from(from.is_none() && !gone.contains_key(name));
                let stint = Stint {
                    name: name.clone(),
                    pool: record.pool.clone(),
                    from: from.unwrap_or(self.window.from),
                    to: Some(record.steps.last().map_or(record.time, |step| step.at)),
                    usd_h,
                    on_demand_usd_h: None,
                };
                gone.insert(name.clone(), stint);
            }
        }
        gone.into_values().collect()
    }

    fn count(&mut self, stint: &Stint) {
        let less = stint
            .on_demand_usd_h
            .map_or(Usd(0), |listed| Usd((listed.0 - stint.usd_h.0).max(0)));
        self.spread(&stint.pool, stint.from, stint.to, |entry, seconds| {
            entry.spent_usd.0 += share(stint.usd_h, seconds);
            entry.saved_by_spot_usd.0 += share(less, seconds);
            entry.machine_seconds += seconds;
        });
    }

    /// Shares a span out over the hours of the window it touches.
    fn spread(&mut self, pool: &str, from: Timestamp, to: Option<Timestamp>, add: impl Fn(&mut Entry, i64)) {
        let (from, to) = (
            from.max(self.window.from),
            to.unwrap_or(self.window.to).min(self.window.to),
        );
        let mut at = from;
        while at < to {
            let begin = Timestamp::from_second(at.as_second().div_euclid(3600) * 3600).unwrap_or(at);
            let next = begin.checked_add(HOUR).unwrap_or(to).min(to);
            let seconds = next.duration_since(at).as_secs();
            add(self.hours.entry((begin, pool.to_owned())).or_default(), seconds);
            at = next;
        }
    }

    /// By pool.
    pub(super) fn by_pool(&self) -> BTreeMap<&str, Entry> {
        let mut pools: BTreeMap<&str, Entry> = BTreeMap::new();
        for ((_, pool), entry) in &self.hours {
            pools.entry(pool).or_default().add(*entry);
        }
        pools
    }

    /// All together.
    pub(super) fn total(&self) -> Entry {
        let mut total = Entry::default();
        for entry in self.hours.values() {
            total.add(*entry);
        }
        total
    }
}

/// What a rate comes to in so many seconds.
fn share(usd_h: Usd, seconds: i64) -> i64 {
    i64::try_from(i128::from(usd_h.0) * i128::from(seconds) / 3600).unwrap_or(i64::MAX)
}

fn is_consolidation(record: &Record) -> bool {
    record.is_acted() && matches!(record.reason.as_str(), "Empty" | "Underutilized")
}

/// Whether nodes went, or are about to, by it.
fn is_removal(record: &Record) -> bool {
    record.is_acted() && record.phase != Phase::Planned && matches!(record.action, Action::Delete | Action::Replace)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ledger::{Money, Target};

    fn at(text: &str) -> Timestamp {
        format!("2026-11-16T{text}Z").parse().unwrap()
    }

    fn window() -> Window {
        Window {
            from: at("10:00:00"),
            to: at("12:00:00"),
        }
    }

    fn stint(name: &str, from: &str, usd: i64, listed: i64) -> Stint {
        Stint {
            name: name.to_owned(),
            pool: "general".to_owned(),
            from: at(from),
            to: None,
            usd_h: Usd(usd),
            on_demand_usd_h: Some(Usd(listed)),
        }
    }

    fn removal(claim: &str, time: &str, usd: i64, after: i64) -> Record {
        let id = "6c5900000000".parse().unwrap();
        let mut record = Record::new(id, Action::Delete, Phase::Done, "Underutilized", at(time));
        record.pool = "general".to_owned();
        record.targets = vec![Target {
            claim: claim.to_owned(),
            usd_h: Some(Usd(usd)),
            ..Target::default()
        }];
        record.money = Some(Money {
            before_usd_h: Usd(usd),
            after_usd_h: Usd(after),
        });
        record
    }

    #[test]
    fn a_machine_is_paid_for_from_when_it_came_within_the_window() {
        let running = [stint("old", "08:00:00", 100, 300), stint("young", "11:30:00", 40, 40)];
        let book = Book::of(window(), &running, &[]);
        let total = book.total();
        assert_eq!(total.spent_usd, Usd(2 * 100 + 20));
        assert_eq!(total.saved_by_spot_usd, Usd(2 * 200));
        assert_eq!(total.machine_seconds, 2 * 3600 + 1800);
        let hours: Vec<_> = book
            .hours
            .iter()
            .map(|((hour, _), entry)| (*hour, entry.spent_usd))
            .collect();
        assert_eq!(hours, [(at("10:00:00"), Usd(100)), (at("11:00:00"), Usd(120))]);
    }

    #[test]
    fn a_machine_that_went_is_paid_for_until_then_and_its_saving_runs_on() {
        let record = removal("gone", "10:30:00", 100, 0);
        let book = Book::of(window(), &[], &[&record]);
        let total = book.total();
        assert_eq!((total.spent_usd, book.of_unknown_begin), (Usd(50), 1));
        assert_eq!(total.saved_by_consolidation_usd, Usd(150), "for an hour and a half");
        let with_it = Book::of(window(), &[stint("gone", "08:00:00", 100, 100)], &[&record]);
        assert_eq!(
            with_it.total().spent_usd,
            Usd(200),
            "what still runs is not counted twice"
        );
    }

    #[test]
    fn what_was_refused_or_dearer_saves_nothing() {
        let mut refused = removal("a", "10:30:00", 100, 0);
        refused.phase = Phase::Aborted;
        let dearer = removal("b", "11:00:00", 10, 50);
        let book = Book::of(window(), &[], &[&refused, &dearer]);
        assert_eq!(book.total().saved_by_consolidation_usd, Usd(0));
    }
}
