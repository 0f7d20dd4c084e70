//! Which rows are meant: words, figures and states, each of which may be negated.
//!
//! Words match names, types, pools, zones and labels. `key=value` matches a column or a label, `cpu<40`, `mem>90`, `$>0.5`
//! and `age>7d` figures; `held`, `drifted`, `spot`, `od`, `going` and `notready` states; `!` negates.

use insight::{Fill, State};
use jiff::Timestamp;

use crate::{
    ahead::{Ahead, NextKind},
    figure,
    picture::Row,
};

/// What is meant; nothing said means everything.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Filter {
    terms: Vec<Term>,
}

#[derive(Debug, Clone, PartialEq)]
struct Term {
    is_negated: bool,
    test: Test,
}

#[derive(Debug, Clone, PartialEq)]
enum Test {
    Word(String),
    Is(String, String),
    Figure(Figure, Relation, f64),
    State(Word),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Figure {
    Cpu,
    Memory,
    Price,
    Age,
    Pods,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    Below,
    Above,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    Held,
    Drifted,
    Spot,
    OnDemand,
    Reserved,
    Going,
    Waiting,
    NotReady,
    Cordoned,
    Launching,
}

const WORDS: [(&str, Word); 13] = [
    ("held", Word::Held),
    ("drifted", Word::Drifted),
    ("spot", Word::Spot),
    ("od", Word::OnDemand),
    ("on-demand", Word::OnDemand),
    ("reserved", Word::Reserved),
    ("plan", Word::Reserved),
    ("going", Word::Going),
    ("next", Word::Going),
    ("waits", Word::Waiting),
    ("notready", Word::NotReady),
    ("cordoned", Word::Cordoned),
    ("launching", Word::Launching),
];

impl Filter {
    /// Reads what somebody typed. What is no figure and no state is a word, so nothing is wrong.
    pub(crate) fn read(text: &str) -> Self {
        let terms = text.split_whitespace().map(|word| match word.strip_prefix('!') {
            Some(rest) if !rest.is_empty() => Term {
                is_negated: true,
                test: test(rest),
            },
            _ => Term {
                is_negated: false,
                test: test(word),
            },
        });
        Self { terms: terms.collect() }
    }

    /// Whether a node is meant.
    pub(crate) fn takes(&self, row: &Row, ahead: Option<&Ahead>, now: Timestamp) -> bool {
        self.terms
            .iter()
            .all(|term| term.is_negated != passes(&term.test, row, ahead, now))
    }

    /// Whether texts that describe something are meant: every word is in one of them.
    pub(crate) fn takes_text(&self, texts: &[&str]) -> bool {
        let has = |word: &str| texts.iter().any(|text| contains(text, word));
        self.terms.iter().all(|term| {
            let found = match &term.test {
                Test::Word(word) => has(word),
                Test::Is(_, value) => has(value),
                Test::State(word) => {
                    let named = WORDS.iter().find(|(_, known)| known == word);
                    named.is_some_and(|(name, _)| has(name))
                }
                Test::Figure(..) => true,
            };
            term.is_negated != found
        })
    }
}

fn test(word: &str) -> Test {
    let lower = word.to_lowercase();
    if let Some((_, state)) = WORDS.iter().find(|(name, _)| *name == lower) {
        return Test::State(*state);
    }
    for (sign, relation) in [('<', Relation::Below), ('>', Relation::Above)] {
        let figure = lower.split_once(sign).and_then(|(name, value)| {
            let figure = match name {
                "cpu" => Figure::Cpu,
                "mem" | "memory" => Figure::Memory,
                "$" | "price" => Figure::Price,
                "age" => Figure::Age,
                "pods" => Figure::Pods,
                _ => return None,
            };
            Some((figure, amount(figure, value)?))
        });
        if let Some((figure, value)) = figure {
            return Test::Figure(figure, relation, value);
        }
    }
    match lower.split_once('=') {
        Some((key, value)) if !key.is_empty() => Test::Is(key.to_owned(), value.to_owned()),
        _ => Test::Word(lower),
    }
}

fn amount(figure: Figure, text: &str) -> Option<f64> {
    if figure != Figure::Age {
        return text.trim_end_matches('%').parse().ok();
    }
    let unit = text.chars().last()?;
    let seconds = match unit {
        's' => 1.0,
        'm' => 60.0,
        'h' => 3600.0,
        'd' => 86_400.0,
        'w' => 604_800.0,
        _ => return None,
    };
    let number: f64 = text.strip_suffix(unit)?.parse().ok()?;
    Some(number * seconds)
}

#[expect(clippy::cast_precision_loss, reason = "compared with what somebody typed")]
fn share(fill: Fill) -> Option<f64> {
    figure::per_mille(fill).map(|share| share as f64 / 10.0)
}

#[expect(clippy::cast_precision_loss, reason = "compared with what somebody typed")]
fn value(figure: Figure, row: &Row, now: Timestamp) -> Option<f64> {
    match figure {
        Figure::Cpu => share(row.node.cpu_m),
        Figure::Memory => share(row.node.memory_mib),
        Figure::Price => row.node.usd_h.map(|price| price.0 as f64 / 1e12),
        Figure::Age => row.age_s(now).map(|age| age as f64),
        Figure::Pods => Some(row.node.pods as f64),
    }
}

fn passes(test: &Test, row: &Row, ahead: Option<&Ahead>, now: Timestamp) -> bool {
    match test {
        Test::Word(word) => {
            let node = &row.node;
            let columns = [&node.pool, &node.instance_type, &node.zone, &node.capacity_type];
            contains(&node.name, word)
                || columns
                    .iter()
                    .any(|text| text.as_deref().is_some_and(|text| contains(text, word)))
                || row.labels.iter().any(|(_, value)| contains(value, word))
        }
        Test::Is(key, value) => {
            let column = match key.as_str() {
                "pool" => row.node.pool.clone(),
                "zone" => row.node.zone.clone(),
                "type" => row.node.instance_type.clone(),
                "cap" => row.node.capacity_type.clone(),
                "name" | "node" => Some(row.node.name.clone()),
                _ => None,
            };
            let label = || row.labels.get(key).map(ToString::to_string);
            let is = |text: String| {
                text.to_lowercase() == *value || key == "zone" && text.to_lowercase().ends_with(value.as_str())
            };
            column.or_else(label).is_some_and(is)
        }
        Test::Figure(figure, relation, limit) => {
            let value = value(*figure, row, now);
            value.is_some_and(|value| match relation {
                Relation::Below => value < *limit,
                Relation::Above => value > *limit,
            })
        }
        Test::State(word) => is(*word, row, ahead),
    }
}

fn is(word: Word, row: &Row, ahead: Option<&Ahead>) -> bool {
    let next = ahead.and_then(|ahead| ahead.next(&row.node.name)).map(|next| next.kind);
    match word {
        Word::Held => next == Some(NextKind::Held),
        Word::Going => next == Some(NextKind::Goes),
        Word::Waiting => next == Some(NextKind::Waits),
        Word::Drifted => row.node.drifted,
        Word::Spot => row.is_spot(),
        Word::Reserved => row.is_reserved(),
        Word::OnDemand => !row.is_spot() && !row.is_reserved(),
        Word::NotReady => row.node.state == State::NotReady,
        Word::Cordoned => row.node.state == State::Cordoned,
        Word::Launching => matches!(row.node.state, State::Launching | State::Starting),
    }
}

fn contains(text: &str, word: &str) -> bool {
    text.to_lowercase().contains(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_figure_and_no_state_is_a_word() {
        let filter = Filter::read("web cpu<40 !held pool=data age>7d cpu<much");
        let tests: Vec<_> = filter.terms.iter().map(|term| (term.is_negated, &term.test)).collect();
        assert_eq!(
            tests,
            [
                (false, &Test::Word("web".into())),
                (false, &Test::Figure(Figure::Cpu, Relation::Below, 40.0)),
                (true, &Test::State(Word::Held)),
                (false, &Test::Is("pool".into(), "data".into())),
                (false, &Test::Figure(Figure::Age, Relation::Above, 604_800.0)),
                (false, &Test::Word("cpu<much".into())),
            ]
        );
    }

    #[test]
    fn texts_are_taken_by_all_words_and_left_by_negated_ones() {
        let texts = ["refused", "no node for shop/web", "LimitReached"];
        let takes = |text: &str| Filter::read(text).takes_text(&texts);
        assert!(takes("shop limit") && takes("") && takes("!deleted"));
        assert!(!takes("shop deleted") && !takes("!limit"));
    }
}
