//! The latest decisions, as many as fit: in shards, of which the oldest goes when a new one is needed.

use std::collections::{BTreeMap, VecDeque};

use jiff::{SignedDuration, Timestamp};

use crate::{Id, Prefix, Record};

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Shards, each stored by itself.
    pub shards: usize,
    /// Records of a shard.
    pub records: usize,
    /// Bytes of a shard, written down and not compressed.
    pub bytes: usize,
}

impl Default for Limits {
    /// Ten thousand records in ten shards, of which none can outgrow what a ConfigMap holds.
    fn default() -> Self {
        Self {
            shards: 10,
            records: 1000,
            bytes: 2 << 20,
        }
    }
}

/// A shard that only heard again of what it knows is stored this seldom: that must not keep a store busy.
const PATIENCE: SignedDuration = SignedDuration::from_mins(10);

/// The latest decisions.
#[derive(Debug, Clone)]
pub struct Ring {
    limits: Limits,
    /// Oldest first.
    shards: VecDeque<Shard>,
    /// Where each record is: the shard's number, and the position in it.
    places: BTreeMap<Id, (u64, usize)>,
}

#[derive(Debug, Clone)]
struct Shard {
    number: u64,
    records: Vec<Record>,
    bytes: usize,
    /// Something in it is new since it was stored.
    is_changed: bool,
    /// Something in it was found again since it was stored.
    is_touched: bool,
    saved_at: Option<Timestamp>,
}

impl Shard {
    fn new(number: u64) -> Self {
        Self {
            number,
            records: Vec::new(),
            bytes: 0,
            is_changed: false,
            is_touched: false,
            saved_at: None,
        }
    }
}

/// A shard that is to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    /// Its number; the one that is ten later takes its place.
    pub number: u64,
    /// The place it has among those that are stored.
    pub slot: usize,
    /// What is in it.
    pub records: Vec<Record>,
}

/// What a prefix finds.
#[derive(Debug, Clone, PartialEq)]
pub enum Found<'a> {
    /// One decision.
    One(&'a Record),
    /// Several, oldest first.
    Several(Vec<&'a Record>),
    /// None.
    None,
}

impl Default for Ring {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl Ring {
    /// An empty ring.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            shards: VecDeque::new(),
            places: BTreeMap::new(),
        }
    }

    /// A ring of what was stored. Of two records of one id the one seen later stays.
    pub fn restored(limits: Limits, mut stored: Vec<(u64, Vec<Record>)>) -> Self {
        stored.sort_by_key(|(number, _)| *number);
        let mut ring = Self::new(limits);
        for (number, records) in stored {
            ring.begin(number);
            for record in records {
                let is_known = ring
                    .get(record.id)
                    .is_some_and(|known| known.last_seen >= record.last_seen);
                if !is_known {
                    ring.put(record);
                }
            }
        }
        for shard in &mut ring.shards {
            (shard.is_changed, shard.is_touched) = (false, false);
        }
        ring
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// True when nothing was decided yet.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The decision of an id.
    pub fn get(&self, id: Id) -> Option<&Record> {
        let (number, at) = self.places.get(&id)?;
        self.shard(*number)?.records.get(*at)
    }

    /// All decisions, in the order in which they were first taken.
    pub fn iter(&self) -> impl Iterator<Item = &Record> {
        let current = |shard: u64, at: usize, record: &Record| self.places.get(&record.id) == Some(&(shard, at));
        self.shards.iter().flat_map(move |shard| {
            let records = shard.records.iter().enumerate();
            records
                .filter(move |(at, record)| current(shard.number, *at, record))
                .map(|(_, record)| record)
        })
    }

    /// What begins with these digits.
    pub fn find(&self, prefix: &Prefix) -> Found<'_> {
        let ids = self.places.range(prefix.from..=prefix.to).map(|(id, _)| *id);
        let mut found: Vec<&Record> = ids.filter_map(|id| self.get(id)).collect();
        found.sort_by_key(|record| record.time);
        match (found.len(), found.pop()) {
            (1, Some(one)) => Found::One(one),
            (_, Some(last)) => {
                found.push(last);
                Found::Several(found)
            }
            (_, None) => Found::None,
        }
    }

    /// Takes in a decision: a new one, or the new state of one that is known.
    pub fn put(&mut self, record: Record) {
        let (id, weight) = (record.id, record.weight());
        if let Some((number, at)) = self.places.get(&id).copied()
            && let Some(shard) = self.shard_mut(number)
            && let Some(known) = shard.records.get_mut(at)
        {
            shard.bytes = shard.bytes + weight - known.weight().min(shard.bytes);
            *known = record;
            shard.is_changed = true;
            return;
        }
        let limits = self.limits;
        let is_full = |shard: &Shard| shard.records.len() >= limits.records || shard.bytes + weight > limits.bytes;
        if self.shards.back().is_none_or(is_full) {
            let next = self.shards.back().map_or(0, |last| last.number + 1);
            self.begin(next);
        }
        if let Some(last) = self.shards.back_mut() {
            self.places.insert(id, (last.number, last.records.len()));
            last.records.push(record);
            last.bytes += weight;
            last.is_changed = true;
        }
    }

    /// Changes a decision that is known; false when it is not.
    pub fn change(&mut self, id: Id, change: impl FnOnce(&mut Record)) -> bool {
        let Some(mut record) = self.get(id).cloned() else {
            return false;
        };
        change(&mut record);
        self.put(record);
        true
    }

    /// Notes that a decision was found again; false when it is not known.
    pub fn touch(&mut self, id: Id, now: Timestamp) -> bool {
        let Some((number, at)) = self.places.get(&id).copied() else {
            return false;
        };
        let Some(shard) = self.shard_mut(number) else {
            return false;
        };
        let Some(record) = shard.records.get_mut(at) else {
            return false;
        };
        record.last_seen = record.last_seen.max(now);
        record.count = record.count.saturating_add(1);
        shard.is_touched = true;
        true
    }

    /// The shards that are to be stored now, which count as stored from now on. With `is_last` also those that could wait.
    pub fn take_unsaved(&mut self, now: Timestamp, is_last: bool) -> Vec<Saved> {
        let slots = self.limits.shards.max(1) as u64;
        let mut unsaved = Vec::new();
        for shard in &mut self.shards {
            let is_long_ago = shard.saved_at.is_none_or(|at| now.duration_since(at) >= PATIENCE);
            if shard.is_changed || shard.is_touched && (is_last || is_long_ago) {
                (shard.is_changed, shard.is_touched, shard.saved_at) = (false, false, Some(now));
                unsaved.push(Saved {
                    number: shard.number,
                    slot: usize::try_from(shard.number % slots).unwrap_or(0),
                    records: shard.records.clone(),
                });
            }
        }
        unsaved
    }

    /// A shard could not be stored: it is tried again the next time.
    pub fn not_saved(&mut self, number: u64) {
        if let Some(shard) = self.shard_mut(number) {
            shard.is_changed = true;
        }
    }

    /// Begins a shard; the oldest goes when there are too many.
    fn begin(&mut self, number: u64) {
        self.shards.push_back(Shard::new(number));
        while self.shards.len() > self.limits.shards.max(1) {
            let Some(gone) = self.shards.pop_front() else { return };
            for record in gone.records {
                if self
                    .places
                    .get(&record.id)
                    .is_some_and(|(shard, _)| *shard == gone.number)
                {
                    self.places.remove(&record.id);
                }
            }
        }
    }

    fn shard(&self, number: u64) -> Option<&Shard> {
        let at = self.shards.binary_search_by_key(&number, |shard| shard.number).ok()?;
        self.shards.get(at)
    }

    fn shard_mut(&mut self, number: u64) -> Option<&mut Shard> {
        let at = self.shards.binary_search_by_key(&number, |shard| shard.number).ok()?;
        self.shards.get_mut(at)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Action, Phase};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn record(name: &str, second: i64) -> Record {
        let id = Id::of("keep", [name]);
        let mut record = Record::new(id, Action::Keep, Phase::Done, "NotCheaper", at(second));
        record.detail = name.to_owned();
        record
    }

    fn small() -> Ring {
        Ring::new(Limits {
            shards: 3,
            records: 4,
            bytes: 1 << 20,
        })
    }

    #[test]
    fn the_oldest_shard_goes_when_a_new_one_is_needed() {
        let mut ring = small();
        for number in 0..14 {
            ring.put(record(&number.to_string(), number));
        }
        let kept: Vec<_> = ring.iter().map(|record| record.detail.clone()).collect();
        assert_eq!(kept, (4..14).map(|number| number.to_string()).collect::<Vec<_>>());
        assert_eq!(ring.len(), 10);
        assert!(ring.get(Id::of("keep", ["3"])).is_none());
    }

    #[test]
    fn a_shard_is_closed_before_it_is_too_large() {
        let mut ring = Ring::new(Limits {
            shards: 100,
            records: 1000,
            bytes: 1000,
        });
        for number in 0..20 {
            ring.put(record(&number.to_string(), number));
        }
        assert!(ring.shards.len() >= 7);
        assert!(ring.shards.iter().all(|shard| shard.bytes <= 1000));
    }

    #[test]
    fn what_is_found_again_is_the_same_record_seen_later() {
        let mut ring = small();
        ring.put(record("a", 1));
        assert!(ring.touch(Id::of("keep", ["a"]), at(9)));
        assert!(!ring.touch(Id::of("keep", ["b"]), at(9)));
        let known = ring.get(Id::of("keep", ["a"])).unwrap();
        assert_eq!((known.time, known.last_seen, known.count), (at(1), at(9), 2));
        assert_eq!(ring.len(), 1);
    }

    #[test]
    fn only_shards_that_changed_are_stored_and_those_that_were_only_seen_again_seldom() {
        let mut ring = small();
        for number in 0..6 {
            ring.put(record(&number.to_string(), number));
        }
        let slots = |saved: Vec<Saved>| saved.into_iter().map(|saved| saved.slot).collect::<Vec<_>>();
        assert_eq!(slots(ring.take_unsaved(at(100), false)), [0, 1]);
        assert_eq!(slots(ring.take_unsaved(at(130), false)), [] as [usize; 0]);
        ring.touch(Id::of("keep", ["1"]), at(131));
        assert_eq!(slots(ring.take_unsaved(at(160), false)), [] as [usize; 0]);
        assert_eq!(slots(ring.take_unsaved(at(700), false)), [0]);
        ring.touch(Id::of("keep", ["1"]), at(701));
        assert_eq!(slots(ring.take_unsaved(at(710), true)), [0], "the last time is now");
        ring.change(Id::of("keep", ["5"]), |record| record.step("deleted", at(720)));
        assert_eq!(slots(ring.take_unsaved(at(721), false)), [1]);
        ring.not_saved(1);
        assert_eq!(slots(ring.take_unsaved(at(722), false)), [1]);
    }

    #[test]
    fn a_prefix_finds_one_or_lists_several() {
        let mut ring = Ring::default();
        for (id, second) in [("6c5900000000", 2), ("6c5980000000", 1), ("7f3a00000000", 3)] {
            let mut record = record(id, second);
            record.id = id.parse().unwrap();
            ring.put(record);
        }
        let find = |text: &str| match ring.find(&text.parse().unwrap()) {
            Found::One(one) => vec![one.detail.clone()],
            Found::Several(all) => all.iter().map(|record| record.detail.clone()).collect(),
            Found::None => Vec::new(),
        };
        assert_eq!(find("7f3a"), ["7f3a00000000"]);
        assert_eq!(find("6c598"), ["6c5980000000"]);
        assert_eq!(find("6c59"), ["6c5980000000", "6c5900000000"]);
        assert_eq!(find("0000"), [] as [&str; 0]);
    }

    #[test]
    fn a_restored_ring_goes_on_where_the_last_one_ended() {
        let mut ring = small();
        for number in 0..14 {
            ring.put(record(&number.to_string(), number));
        }
        let stored = ring.take_unsaved(at(100), true);
        let stored = stored.into_iter().map(|saved| (saved.number, saved.records)).collect();
        let mut restored = Ring::restored(ring.limits, stored);
        assert!(restored.iter().eq(ring.iter()));
        assert!(restored.take_unsaved(at(101), true).is_empty());
        restored.put(record("new", 200));
        let saved = restored.take_unsaved(at(201), false);
        assert_eq!(saved.iter().map(|saved| saved.number).collect::<Vec<_>>(), [3]);
    }

    proptest! {
        #[test]
        fn however_it_is_used_a_ring_stays_within_its_limits(names in prop::collection::vec(0_u8..40, 0..300)) {
            let mut ring = small();
            for (second, name) in (0..).zip(&names) {
                let name = name.to_string();
                if !ring.touch(Id::of("keep", [name.as_str()]), at(second)) {
                    ring.put(record(&name, second));
                }
                prop_assert!(ring.shards.len() <= 3);
                prop_assert!(ring.shards.iter().all(|shard| shard.records.len() <= 4));
                prop_assert_eq!(ring.iter().count(), ring.len());
            }
            if let Some(last) = names.last() {
                let last = ring.get(Id::of("keep", [last.to_string().as_str()]));
                prop_assert!(last.is_some(), "the latest is never forgotten");
            }
        }
    }
}
