//! How many places capacity reservations have left: as EC2 said, and as we have used and freed them since.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use crate::border::ReservationNote;

/// How long a count is believed without being read again.
const BELIEVED: SignedDuration = SignedDuration::from_hours(24);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Count {
    left: u32,
    read_at: Timestamp,
}

/// Places left, by reservation. Rather too many than too few: one too many costs a failed launch, one too few is paid
/// for and never used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reservations {
    counts: BTreeMap<String, Count>,
    version: u64,
}

impl Reservations {
    /// What EC2 says now.
    pub fn read(&mut self, id: &str, left: u32, now: Timestamp) {
        let before = self.counts.insert(id.to_owned(), Count { left, read_at: now });
        self.version += u64::from(before.map(|it| it.left) != Some(left));
    }

    /// Something happened since. Of reservations that were never read, nothing is known.
    pub fn note(&mut self, id: &str, note: ReservationNote) {
        let Some(count) = self.counts.get_mut(id) else {
            return;
        };
        let left = match note {
            ReservationNote::Launched => count.left.saturating_sub(1),
            ReservationNote::Terminated => count.left.saturating_add(1),
            ReservationNote::Unavailable => 0,
        };
        self.version += u64::from(left != count.left);
        count.left = left;
    }

    /// Places left.
    pub fn left(&self, id: &str, now: Timestamp) -> u32 {
        let count = self.counts.get(id);
        let fresh = count.filter(|count| now.duration_since(count.read_at) < BELIEVED);
        fresh.map_or(0, |count| count.left)
    }

    /// Counts changes.
    pub fn version(&self) -> u64 {
        self.version
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn launches_take_places_and_terminations_give_them_back() {
        use ReservationNote::{Launched, Terminated, Unavailable};
        let mut known = Reservations::default();
        known.read("cr-1", 2, at(0));
        let mut left = Vec::new();
        for note in [Launched, Launched, Launched, Terminated, Unavailable] {
            known.note("cr-1", note);
            left.push(known.left("cr-1", at(1)));
        }
        assert_eq!(left, [1, 0, 0, 1, 0]);
        known.read("cr-1", 2, at(60));
        assert_eq!(known.left("cr-1", at(61)), 2);
    }

    #[test]
    fn nothing_is_known_of_a_reservation_that_was_never_read_or_not_for_a_day() {
        let mut known = Reservations::default();
        known.note("cr-1", ReservationNote::Terminated);
        assert_eq!(known.left("cr-1", at(0)), 0);
        known.read("cr-1", 5, at(0));
        assert_eq!([known.left("cr-1", at(86_399)), known.left("cr-1", at(86_400))], [5, 0]);
    }
}
