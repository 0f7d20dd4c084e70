//! Where decisions are written down: the ring, and which of them are still going on.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use jiff::Timestamp;
use ledger::{Action, Id, Phase, Record, Ring};
use model::object::Text;

/// The decisions of this process and of those before it.
#[derive(Debug, Default)]
pub(crate) struct Book {
    is_on: bool,
    pages: Mutex<Pages>,
}

/// What the book holds.
#[derive(Debug, Default)]
pub(super) struct Pages {
    pub(super) ring: Ring,
    /// Claims that go, and by which decision.
    pub(super) leaving: BTreeMap<Text, Id>,
}

impl Book {
    pub(crate) fn new(is_on: bool) -> Self {
        Self {
            is_on,
            pages: Mutex::default(),
        }
    }

    /// Whether anything is written down.
    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }

    /// All decisions, in the order they were first taken.
    pub(crate) fn records(&self) -> Vec<Record> {
        self.pages().ring.iter().cloned().collect()
    }

    /// The latest decisions, at most so many.
    pub(crate) fn latest(&self, most: usize) -> Vec<Record> {
        let pages = self.pages();
        let before = pages.ring.len().saturating_sub(most);
        pages.ring.iter().skip(before).cloned().collect()
    }

    pub(super) fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in what was stored. What was decided since the start is kept.
    pub(super) fn restore(&self, stored: Ring) {
        let mut pages = self.pages();
        let since: Vec<Record> = pages.ring.iter().cloned().collect();
        pages.ring = stored;
        for record in since {
            pages.ring.put(record);
        }
        let going: Vec<(Text, Id)> = pages
            .ring
            .iter()
            .filter(|record| {
                record.phase == Phase::UnderWay && matches!(record.action, Action::Delete | Action::Replace)
            })
            .flat_map(|record| {
                let claims = record.there().map(|target| target.claim.as_str());
                claims.map(|claim| (Text::from(claim), record.id)).collect::<Vec<_>>()
            })
            .collect();
        for (claim, id) in going {
            pages.leaving.entry(claim).or_insert(id);
        }
    }

    /// Ends what ended while nobody looked: claims that go and are gone, claims that were to come and are not there.
    pub(super) fn settle(&self, claims: &BTreeSet<Text>, now: Timestamp) {
        let mut pages = self.pages();
        let gone: Vec<Text> = pages
            .leaving
            .keys()
            .filter(|claim| !claims.contains(*claim))
            .cloned()
            .collect();
        for claim in gone {
            pages.left(&claim, now);
        }
        let lost: Vec<Id> = pages
            .ring
            .iter()
            .filter(|record| record.phase == Phase::UnderWay && record.action == Action::Launch)
            .filter(|record| record.coming().all(|target| !claims.contains(target.claim.as_str())))
            .map(|record| record.id)
            .collect();
        for id in lost {
            pages.ring.change(id, |record| {
                record.phase = Phase::Aborted;
                "its NodeClaim was gone when a new process began to lead".clone_into(&mut record.detail);
                record.last_seen = now;
            });
        }
    }
}

impl Pages {
    /// Claims go, because of a decision.
    pub(super) fn leave<'a>(&mut self, id: Id, claims: impl IntoIterator<Item = &'a str>) {
        for claim in claims {
            self.leaving.insert(claim.into(), id);
        }
    }

    /// A claim is gone; its decision is carried out once all of its claims are.
    pub(super) fn left(&mut self, claim: &str, now: Timestamp) {
        let Some(id) = self.leaving.remove(claim) else { return };
        let is_last = self.leaving.values().all(|other| *other != id);
        if is_last {
            self.ring.change(id, |record| {
                record.phase = Phase::Done;
                record.step("deleted", now);
            });
        }
    }

    /// The claims of a decision stay after all.
    pub(super) fn stay(&mut self, id: Id) {
        self.leaving.retain(|_, other| *other != id);
    }
}

#[cfg(test)]
mod tests {
    use ledger::Target;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn target(claim: &str, comes: bool) -> Target {
        Target {
            claim: claim.to_owned(),
            comes,
            ..Target::default()
        }
    }

    fn book(action: Action, targets: Vec<Target>) -> (Book, Id) {
        let book = Book::new(true);
        let id = Id::of("delete", ["a", "b"]);
        let mut record = Record::new(id, action, Phase::UnderWay, "Empty", at(0));
        record.targets = targets;
        book.pages().ring.put(record);
        (book, id)
    }

    #[test]
    fn a_move_is_over_when_the_last_of_its_claims_is_gone() {
        let (book, id) = book(Action::Delete, Vec::new());
        book.pages().leave(id, ["a", "b"]);
        book.pages().left("a", at(1));
        assert_eq!(book.records()[0].phase, Phase::UnderWay);
        book.pages().left("b", at(2));
        let record = &book.records()[0];
        assert_eq!((record.phase, record.steps[0].at), (Phase::Done, at(2)));
    }

    #[test]
    fn what_ended_while_nobody_looked_is_ended_by_the_next_process() {
        for (action, targets, phase) in [
            (
                Action::Delete,
                vec![target("a", false), target("b", false)],
                Phase::Done,
            ),
            (Action::Launch, vec![target("a", true)], Phase::Aborted),
        ] {
            let (before, _) = book(action, targets);
            let stored = before.pages().ring.clone();
            let after = Book::new(true);
            after.restore(stored);
            after.settle(&["a".into(), "b".into()].into(), at(5));
            assert_eq!(after.records()[0].phase, Phase::UnderWay, "{action:?}: all are there");
            after.settle(&BTreeSet::new(), at(6));
            assert_eq!(after.records()[0].phase, phase, "{action:?}");
        }
    }
}
