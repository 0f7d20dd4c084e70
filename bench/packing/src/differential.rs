//! Where do our plans differ from upstream's, over many random clusters? A row for each, and the command that repeats it.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::str::FromStr;

use anyhow::{Context, Result, anyhow};
use packing::{Options, Packing};
use workloads::Shape;

use crate::input::Input;
use crate::outcome::Outcome;
use crate::reference::{Ask, Reference};
use crate::replay::replay;
use crate::verdict::{Fact, Verdict, is_same, judge};

/// How many runs of upstream are usual that a plan is held against when the first differs.
pub const RUNS: u32 = 40;

/// A part of the seeds, `i/n`: those whose number leaves `i` when divided by `n`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// Which part, from 0.
    pub index: u64,
    /// How many parts.
    pub of: u64,
}

impl FromStr for Shard {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = || anyhow!("{text:?} is no shard: write i/n with i from 0 to n-1, for example 0/4");
        let (index, of) = text.split_once('/').ok_or_else(wrong)?;
        let shard = Self {
            index: index.parse().map_err(|_| wrong())?,
            of: of.parse().map_err(|_| wrong())?,
        };
        if shard.index < shard.of {
            Ok(shard)
        } else {
            Err(wrong())
        }
    }
}

/// Reads `1..2000`, the end excluded, or one number.
pub fn seeds(text: &str) -> Result<Range<u64>> {
    let wrong = || format!("{text:?} is no range of seeds: write 1..2000, the end excluded, or one number");
    match text.split_once("..") {
        Some((from, to)) => Ok(from.parse().with_context(wrong)?..to.parse().with_context(wrong)?),
        None => text.parse().map(|seed| seed..seed + 1).with_context(wrong),
    }
}

impl Shard {
    /// The seeds of this part.
    pub fn of(self, seeds: Range<u64>) -> impl Iterator<Item = u64> {
        seeds.filter(move |seed| seed % self.of == self.index)
    }
}

/// How one input was decided.
#[derive(Debug, Clone)]
pub struct Row {
    /// The input's name.
    pub input: String,
    /// How our plan stands to upstream's.
    pub verdict: Verdict,
}

/// What a comparison found.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Each input that was compared.
    pub rows: Vec<Row>,
}

/// What we plan with: upstream's algorithm only, and its mistake about devices.
pub fn options() -> Options {
    Options {
        packing: Packing::Faithful,
        is_matching_devices_by_name: true,
        ..Options::default()
    }
}

/// Compares one more run of upstream with its others: how often the judge is wrong about a plan that is right.
pub fn compare_upstream(reference: &mut Reference, input: &Input, runs: u32) -> Result<Row> {
    let plans = reference.solve(&input.file, Ask::runs(runs + 1))?;
    let mut runs = plans.iter().map(Outcome::upstream);
    let one = runs.next().context("the oracle made no run")?;
    Ok(Row {
        input: input.name.clone(),
        verdict: judge(&one, &runs.collect::<Vec<_>>()),
    })
}

/// Plans an input on both sides and compares; upstream is asked again only when its first answer is not ours.
pub fn compare(reference: &mut Reference, input: &Input, most: u32) -> Result<Row> {
    let ours = Outcome::ours(&packing::plan(&input.snapshot, &options()));
    let mut ask = |runs| -> Result<Vec<Outcome>> {
        let plans = reference.solve(&input.file, Ask::runs(runs))?;
        Ok(plans.iter().map(Outcome::upstream).collect())
    };
    let mut runs = ask(1)?;
    if !runs.iter().any(|run| is_same(&ours, run)) {
        runs.extend(ask(most)?);
    }
    let mut verdict = judge(&ours, &runs);
    if let Verdict::Different(facts) = &verdict
        && is_tie(facts.keys(), &ours, &runs)
        && replay(reference, input)?.disagreement.is_none()
    {
        // Our rules allow all that upstream decided: what differs is the choice among equals, which its runs did not show.
        verdict = Verdict::Tie(facts.keys().copied().collect());
    }
    Ok(Row {
        input: input.name.clone(),
        verdict,
    })
}

/// Whether facts may differ by the choice among equals alone: where pods go may, and so may the words that count them.
fn is_tie<'a>(mut facts: impl Iterator<Item = &'a Fact>, ours: &Outcome, runs: &[Outcome]) -> bool {
    if facts.any(|fact| !matches!(fact, Fact::Words | Fact::Ignored)) {
        return true;
    }
    let runs: Vec<Outcome> = runs.iter().map(Outcome::without_counts).collect();
    !matches!(judge(&ours.without_counts(), &runs), Verdict::Different(_))
}

/// The random cluster of a seed.
pub fn random(seed: u64, dir: &Path) -> Result<Input> {
    Input::generate(&Shape::Random { seed }.generate(), dir)
}

impl Report {
    /// How many inputs were decided the same, as a tie, and differently.
    pub fn counts(&self) -> (usize, usize, usize) {
        let count = |wanted: fn(&Verdict) -> bool| self.rows.iter().filter(|row| wanted(&row.verdict)).count();
        (
            count(|verdict| matches!(verdict, Verdict::Same)),
            count(|verdict| matches!(verdict, Verdict::Tie(_))),
            count(|verdict| matches!(verdict, Verdict::Different(_))),
        )
    }

    /// How many inputs differ in each fact; one that differs in several counts for its weightiest.
    pub fn by_fact(&self) -> BTreeMap<Fact, usize> {
        let mut counts = BTreeMap::new();
        for row in &self.rows {
            if let Verdict::Different(facts) = &row.verdict
                && let Some(fact) = facts.keys().next()
            {
                *counts.entry(*fact).or_default() += 1;
            }
        }
        counts
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.verdict {
            Verdict::Same => write!(f, "{:<24} same", self.input),
            Verdict::Tie(facts) => {
                write!(f, "{:<24} tie", self.input)?;
                facts.iter().try_for_each(|fact| write!(f, " {fact}"))
            }
            Verdict::Different(facts) => {
                write!(f, "{:<24} DIFFERENT", self.input)?;
                facts
                    .iter()
                    .try_for_each(|(fact, what)| write!(f, "\n    {fact:<9}{what}"))?;
                match self.input.strip_prefix("random-") {
                    Some(seed) => write!(f, "\n    repeat   cargo xtask differential --seeds {seed}"),
                    None => Ok(()),
                }
            }
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (same, tie, different) = self.counts();
        write!(
            f,
            "{} inputs: {same} same, {tie} ties, {different} different",
            self.rows.len()
        )?;
        self.by_fact()
            .iter()
            .try_for_each(|(fact, count)| write!(f, "\n  {count} of them in {fact} first"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shards_of_a_range_are_the_range() {
        let shard = |index| Shard { index, of: 3 }.of(5..15).collect::<Vec<u64>>();
        let mut all: Vec<u64> = (0..3).flat_map(shard).collect();
        all.sort_unstable();
        assert_eq!(all, (5..15).collect::<Vec<u64>>());
    }

    #[test]
    fn seeds_are_a_range_or_one() {
        assert_eq!(seeds("1..20").unwrap(), 1..20);
        assert_eq!(seeds("7").unwrap(), 7..8);
        assert!(seeds("1-20").is_err());
        assert!("4/4".parse::<Shard>().is_err());
    }
}
