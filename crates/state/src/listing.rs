//! Which kinds the state still waits for, and since when.
//!
//! A decision waits for the kinds it reads, and for no others: what is missing is named, and how long it has been.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::{Kind, State, Tracked};

/// A kind whose list has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// The kind.
    pub kind: Kind,
    /// Since when it is waited for.
    pub since: Timestamp,
    /// True when it was listed before, so that what is known of it is old rather than nothing.
    pub is_again: bool,
}

/// Since when kinds are waited for.
#[derive(Debug, Default)]
pub(crate) struct Waits(BTreeMap<Kind, Timestamp>);

impl Waits {
    fn begin(&mut self, kind: Kind, now: Timestamp) {
        self.0.entry(kind).or_insert(now);
    }

    pub(crate) fn end(&mut self, kind: Kind) {
        self.0.remove(&kind);
    }
}

impl State {
    /// From now on, waits for the first lists of these kinds.
    pub fn expect(&mut self, kinds: impl IntoIterator<Item = Kind>, now: Timestamp) {
        for kind in kinds {
            if !self.is_listed(kind) {
                self.waits.begin(kind, now);
            }
        }
    }

    /// Begins a list: the first one, or one that the watch needs because it lost its place.
    ///
    /// To be called before the server is asked, because what the list does not know although we did by then shows that
    /// the server is behind.
    pub fn begin_list<T: Tracked>(&mut self, now: Timestamp) {
        T::begin_list(self);
        self.waits.begin(T::TRACKED, now);
    }

    /// Whether the last list of a kind was older than what was known before: it should be listed again.
    pub fn is_list_in_doubt<T: Tracked>(&self) -> bool {
        T::store(self).is_list_in_doubt()
    }

    /// Those of these kinds that have never been listed in full.
    pub fn missing(&self, required: &[Kind]) -> Vec<Kind> {
        required.iter().copied().filter(|kind| !self.is_listed(*kind)).collect()
    }

    /// The kinds waited for, in their order.
    pub fn waits(&self) -> Vec<Wait> {
        let wait = |(kind, since): (&Kind, &Timestamp)| Wait {
            kind: *kind,
            since: *since,
            is_again: self.is_listed(*kind),
        };
        self.waits.0.iter().map(wait).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use model::object::{Node, Pod, ResourceVersion};

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn kind_is_waited_for_until_its_list_has_ended() {
        let mut state = State::default();
        let required = [Kind::Node, Kind::Pod];
        state.expect(required, at(1));
        state.begin_list::<Pod>(at(2));
        let wait = |kind, since, is_again| Wait {
            kind,
            since: at(since),
            is_again,
        };
        assert_eq!(state.waits(), [wait(Kind::Node, 1, false), wait(Kind::Pod, 1, false)]);
        assert_eq!(state.missing(&required), [Kind::Node, Kind::Pod]);

        state.end_list::<Pod>(&BTreeSet::new(), &ResourceVersion::from("7"));
        assert_eq!(state.missing(&required), [Kind::Node]);
        state.end_list::<Node>(&BTreeSet::new(), &ResourceVersion::from("8"));
        assert_eq!((state.missing(&required), state.waits()), (vec![], vec![]));

        state.begin_list::<Pod>(at(9));
        assert_eq!(state.waits(), [wait(Kind::Pod, 9, true)]);
        assert_eq!(state.missing(&required), [], "what is known is old, not missing");
    }
}
