//! Which decisions has nobody been told of yet?

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    str::FromStr,
};

use jiff::Timestamp;
use ledger::{Action, Id, Record};

/// News that wait for a receiver; of more, the oldest go.
const MOST: usize = 500;

/// What can come of a decision, as [`Record::word`] says it.
const WORDS: [&str; 12] = [
    "refused",
    "kept",
    "planned",
    "aborted",
    "launching",
    "launched",
    "replacing",
    "replaced",
    "deleting",
    "deleted",
    "rebooting",
    "rebooted",
];

/// How acts end, and what is refused: what is under way will end, and that a node stays is no news.
const USUAL: [&str; 6] = ["refused", "aborted", "launched", "replaced", "deleted", "rebooted"];

/// What a receiver wants to hear of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted(BTreeSet<&'static str>);

impl Default for Wanted {
    fn default() -> Self {
        Self(USUAL.into())
    }
}

/// A word that no decision has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is nothing that comes of a decision: write some of {words}, separated by commas", words = WORDS.join(", "))]
pub struct UnknownWord(pub String);

impl FromStr for Wanted {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
        let words = words.map(|word| {
            let known = WORDS.into_iter().find(|known| *known == word);
            known.ok_or_else(|| UnknownWord(word.to_owned()))
        });
        let words = words.collect::<Result<BTreeSet<_>, _>>()?;
        Ok(if words.is_empty() { Self::default() } else { Self(words) })
    }
}

/// What is known to a receiver, and what waits for it.
#[derive(Debug)]
pub struct News {
    wanted: Wanted,
    since: Timestamp,
    told: BTreeMap<Id, &'static str>,
    waiting: VecDeque<Record>,
    dropped: usize,
}

impl News {
    /// Of these words, of what comes to be from now on. What an earlier process decided, and told, is read back at leisure
    /// and is no news.
    pub fn new(wanted: Wanted, since: Timestamp) -> Self {
        Self {
            wanted,
            since,
            told: BTreeMap::new(),
            waiting: VecDeque::new(),
            dropped: 0,
        }
    }

    /// Takes in all decisions there are; those that came to something else than when they were last seen are news.
    pub fn learn(&mut self, records: &[Record]) {
        let is_new = |record: &&Record| {
            // What is refused is found again and again.
            let came_to_be = match record.action {
                Action::Refuse | Action::Keep => record.time,
                _ => record.last_seen,
            };
            came_to_be >= self.since && self.told.get(&record.id) != Some(&record.word())
        };
        let is_wanted = |record: &&Record| self.wanted.0.contains(record.word());
        let new: Vec<&Record> = records.iter().filter(is_new).filter(is_wanted).collect();
        for record in new {
            // The last word counts.
            self.waiting.retain(|waiting| waiting.id != record.id);
            self.waiting.push_back(record.clone());
        }
        while self.waiting.len() > MOST {
            self.waiting.pop_front();
            self.dropped += 1;
        }
        self.told = records.iter().map(|record| (record.id, record.word())).collect();
    }

    /// What waits, oldest first, and how many before it were given up.
    pub fn waiting(&self) -> (Vec<&Record>, usize) {
        (self.waiting.iter().collect(), self.dropped)
    }

    /// All that waited has been told.
    pub fn clear(&mut self) {
        self.waiting.clear();
        self.dropped = 0;
    }
}

#[cfg(test)]
mod tests {
    use ledger::Phase;

    use super::*;

    const START: Timestamp = Timestamp::UNIX_EPOCH;

    fn record(name: &str, action: Action, phase: Phase) -> Record {
        Record::new(Id::of("act", [name]), action, phase, "Provisioned", START)
    }

    fn words(news: &News) -> Vec<&'static str> {
        news.waiting().0.into_iter().map(Record::word).collect()
    }

    #[test]
    fn what_was_decided_before_is_no_news_and_what_ends_after_is() {
        let long_ago = |mut record: Record| {
            record.time = Timestamp::MIN;
            record
        };
        let mut refused = long_ago(record("c", Action::Refuse, Phase::Done));
        let mut deleted = long_ago(record("a", Action::Delete, Phase::Done));
        deleted.last_seen = Timestamp::MIN;
        let mut news = News::new(Wanted::default(), START);
        let launching = long_ago(record("b", Action::Launch, Phase::UnderWay));
        news.learn(&[deleted.clone(), refused.clone(), launching]);
        assert!(words(&news).is_empty(), "a launch is told when it ends");
        refused.count = 2;
        let ended = [deleted, refused, long_ago(record("b", Action::Launch, Phase::Done))];
        news.learn(&ended);
        news.learn(&ended);
        assert_eq!(words(&news), ["launched"], "once");
        news.clear();
        news.learn(&ended);
        assert!(words(&news).is_empty(), "told");
    }

    #[test]
    fn of_a_decision_that_went_on_while_it_waited_only_the_last_word_is_told() {
        let wanted = "launching, launched".parse().unwrap();
        let mut news = News::new(wanted, START);
        news.learn(&[record("a", Action::Launch, Phase::UnderWay)]);
        news.learn(&[record("a", Action::Launch, Phase::Done)]);
        assert_eq!(words(&news), ["launched"]);
    }

    #[test]
    fn more_than_can_wait_loses_the_oldest_and_counts_them() {
        let mut news = News::new(Wanted::default(), START);
        let many: Vec<Record> = (0..MOST + 3)
            .map(|at| record(&at.to_string(), Action::Refuse, Phase::Done))
            .collect();
        news.learn(&many);
        let (waiting, dropped) = news.waiting();
        assert_eq!((waiting.len(), dropped), (MOST, 3));
        assert_eq!(waiting[0].id, many[3].id);
    }

    #[test]
    fn a_word_that_no_decision_has_is_refused_with_those_that_there_are() {
        let error = "launched,exploded".parse::<Wanted>().unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with(r#""exploded" is nothing that comes of a decision"#),
            "{error}"
        );
        assert_eq!("".parse::<Wanted>().unwrap(), Wanted::default());
    }

    #[test]
    fn every_word_of_a_decision_can_be_wanted() {
        let actions = [
            Action::Launch,
            Action::Replace,
            Action::Delete,
            Action::Reboot,
            Action::Refuse,
            Action::Keep,
        ];
        let phases = [Phase::Planned, Phase::UnderWay, Phase::Done, Phase::Aborted];
        for word in actions
            .iter()
            .flat_map(|action| phases.map(|phase| record("a", *action, phase).word()))
        {
            assert!(WORDS.contains(&word), "{word}");
        }
    }
}
