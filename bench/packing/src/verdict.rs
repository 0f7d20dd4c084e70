//! Did we decide as upstream does? Fact by fact, with room only where upstream's own runs differ.
//!
//! Go's map order breaks ties in upstream, so one file has several right answers. Ours is right when it is one of those
//! upstream gave, or lies between them: a count or a price within their range, a pod placed as in one of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use model::price::Price;

use crate::outcome::{Claim, Outcome};

/// What prices may differ by: upstream adds floats.
const ROUNDING: u64 = 1_000_000;

/// A fact on which plans can differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fact {
    /// Which pods are not tried, and why.
    Ignored,
    /// Which pods have no place.
    Unplaced,
    /// How many nodes are launched.
    Claims,
    /// What they cost.
    Price,
    /// Which pods go to which nodes that exist.
    Nodes,
    /// What a claim with the same pods on it asks for and may be.
    Options,
    /// Why pods have no place.
    Words,
}

/// All facts, the weightiest first.
pub const FACTS: [Fact; 7] = [
    Fact::Ignored,
    Fact::Unplaced,
    Fact::Claims,
    Fact::Price,
    Fact::Nodes,
    Fact::Options,
    Fact::Words,
];

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ignored => "ignored",
            Self::Unplaced => "unplaced",
            Self::Claims => "claims",
            Self::Price => "price",
            Self::Nodes => "nodes",
            Self::Options => "options",
            Self::Words => "words",
        })
    }
}

/// How our plan stands to upstream's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// All facts are those of one run.
    Same,
    /// Facts differ from every single run, but no more than those differ among themselves.
    Tie(Vec<Fact>),
    /// Facts no run of upstream shows, each with what differs.
    Different(BTreeMap<Fact, String>),
}

/// True when all facts are those of one run.
pub fn is_same(ours: &Outcome, run: &Outcome) -> bool {
    FACTS
        .into_iter()
        .all(|fact| difference(fact, ours, std::slice::from_ref(run)).is_none())
}

/// How our plan stands to the runs of upstream.
pub fn judge(ours: &Outcome, runs: &[Outcome]) -> Verdict {
    if runs.iter().any(|run| is_same(ours, run)) {
        return Verdict::Same;
    }
    let different: BTreeMap<Fact, String> = FACTS
        .into_iter()
        .filter_map(|fact| Some((fact, difference(fact, ours, runs)?)))
        .collect();
    if !different.is_empty() {
        return Verdict::Different(different);
    }
    let first = runs.first().map_or(&[][..], std::slice::from_ref);
    let open = FACTS
        .into_iter()
        .filter(|fact| difference(*fact, ours, first).is_some());
    Verdict::Tie(open.collect())
}

/// What differs from all runs; none when ours lies between them.
fn difference(fact: Fact, ours: &Outcome, runs: &[Outcome]) -> Option<String> {
    match fact {
        Fact::Ignored => texts(&ours.ignored, runs, |run| &run.ignored),
        Fact::Unplaced => unplaced(ours, runs),
        Fact::Claims => claims(ours, runs),
        Fact::Price => price(ours, runs),
        Fact::Nodes => nodes(ours, runs),
        Fact::Options => options(ours, runs),
        Fact::Words => words(ours, runs),
    }
}

type Texts = BTreeMap<String, String>;

fn texts(ours: &Texts, runs: &[Outcome], of: fn(&Outcome) -> &Texts) -> Option<String> {
    if runs.iter().any(|run| of(run) == ours) {
        return None;
    }
    let theirs = of(runs.first()?);
    let pods: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
    let differing = pods.into_iter().find(|pod| ours.get(*pod) != theirs.get(*pod))?;
    Some(format!(
        "{differing}: {:?}, upstream {:?}",
        ours.get(differing),
        theirs.get(differing)
    ))
}

/// A pod may be without a place if it is in some run, and must be if it is in all.
fn unplaced(ours: &Outcome, runs: &[Outcome]) -> Option<String> {
    let lacks = |run: &Outcome, pod: &String| run.unplaced.contains_key(pod);
    let more = |pod: &&String| !runs.iter().any(|run| lacks(run, pod));
    let extra: Vec<&String> = ours.unplaced.keys().filter(more).collect();
    let first = runs.first()?;
    let always = |pod: &&String| runs.iter().all(|run| lacks(run, pod)) && !lacks(ours, pod);
    let missing: Vec<&String> = first.unplaced.keys().filter(always).collect();
    let mut parts = Vec::new();
    if let Some(pod) = extra.first() {
        let why = ours.unplaced.get(*pod).map_or("", String::as_str);
        parts.push(format!("{} only here, first {pod}: {why}", extra.len()));
    }
    if let Some(pod) = missing.first() {
        let why = first.unplaced.get(*pod).map_or("", String::as_str);
        parts.push(format!("{} only upstream, first {pod}: {why}", missing.len()));
    }
    (!parts.is_empty()).then(|| parts.join(" | "))
}

fn claims(ours: &Outcome, runs: &[Outcome]) -> Option<String> {
    let counts = runs.iter().map(|run| run.claims.len());
    let (low, high) = (counts.clone().min()?, counts.max()?);
    let count = ours.claims.len();
    (!(low..=high).contains(&count)).then(|| format!("{count}, upstream {}", range(low, high)))
}

fn price(ours: &Outcome, runs: &[Outcome]) -> Option<String> {
    let prices = runs.iter().map(|run| run.price);
    let (low, high) = (prices.clone().min()?, prices.max()?);
    let within = ours.price.picos() + ROUNDING >= low.picos() && ours.price.picos() <= high.picos() + ROUNDING;
    (!within).then(|| format!("{}, upstream {}", ours.price, range(low, high)))
}

fn range<T: Copy + PartialEq + fmt::Display>(low: T, high: T) -> String {
    if low == high {
        low.to_string()
    } else {
        format!("{low}..{high}")
    }
}

/// A pod goes to a node, or to none, as in some run.
fn nodes(ours: &Outcome, runs: &[Outcome]) -> Option<String> {
    let known = runs.iter().flat_map(|run| run.on_nodes.keys());
    let pods: BTreeSet<&String> = ours.on_nodes.keys().chain(known).collect();
    let differs = |pod: &&String| !runs.iter().any(|run| run.on_nodes.get(*pod) == ours.on_nodes.get(*pod));
    let differing: Vec<&String> = pods.into_iter().filter(differs).collect();
    let first = differing.first()?;
    Some(format!(
        "{} pods, first {first}: {}, upstream {}",
        differing.len(),
        node_of(ours, first),
        node_of(runs.first()?, first)
    ))
}

fn node_of<'a>(outcome: &'a Outcome, pod: &str) -> &'a str {
    outcome.on_nodes.get(pod).map_or("no node", String::as_str)
}

/// A claim with the same pods on it as in some run is, in one of those runs, the same claim.
fn options(ours: &Outcome, runs: &[Outcome]) -> Option<String> {
    ours.claims.iter().find_map(|claim| {
        let same_pods = |other: &&Claim| other.pods == claim.pods;
        let twins: Vec<&Claim> = runs
            .iter()
            .flat_map(|run| run.claims.iter().filter(same_pods))
            .collect();
        let first = twins.first()?;
        (!twins.iter().any(|twin| is_alike(claim, twin))).then(|| {
            let pod = claim.pods.first().map_or("nobody", String::as_str);
            format!("claim of {pod}: {}", unlike(claim, first))
        })
    })
}

fn is_alike(ours: &Claim, theirs: &Claim) -> bool {
    ours.node_pool == theirs.node_pool
        && ours.requirements == theirs.requirements
        && ours.types == theirs.types
        && is_near(ours.price, theirs.price)
}

fn is_near(ours: Option<Price>, theirs: Option<Price>) -> bool {
    match (ours, theirs) {
        (Some(ours), Some(theirs)) => ours.picos().abs_diff(theirs.picos()) <= ROUNDING,
        (ours, theirs) => ours == theirs,
    }
}

fn unlike(ours: &Claim, theirs: &Claim) -> String {
    if ours.node_pool != theirs.node_pool {
        return format!("pool {}, upstream {}", ours.node_pool, theirs.node_pool);
    }
    if ours.requirements != theirs.requirements {
        let here: Vec<_> = ours
            .requirements
            .iter()
            .filter(|r| !theirs.requirements.contains(r))
            .collect();
        let there: Vec<_> = theirs
            .requirements
            .iter()
            .filter(|r| !ours.requirements.contains(r))
            .collect();
        let text = |list| serde_json::to_string(&list).unwrap_or_default();
        return format!("requirements {}, upstream {}", text(here), text(there));
    }
    if ours.types != theirs.types {
        let odd: Vec<&String> = ours.types.symmetric_difference(&theirs.types).take(3).collect();
        return format!(
            "{} types, upstream {}, for example {odd:?}",
            ours.types.len(),
            theirs.types.len()
        );
    }
    format!("price {:?}, upstream {:?}", ours.price, theirs.price)
}

/// A pod is refused in the words of some run, unless upstream's own runs do not agree on them.
fn words(ours: &Outcome, runs: &[Outcome]) -> Option<String> {
    ours.unplaced.iter().find_map(|(pod, said)| {
        let theirs: BTreeSet<&String> = runs.iter().filter_map(|run| run.unplaced.get(pod)).collect();
        let first = theirs.first()?;
        let agreed = runs.len() == 1 || theirs.len() == 1;
        (agreed && !theirs.contains(said)).then(|| format!("{pod}: {said}\n      upstream: {first}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(claims: usize, unplaced: &[&str]) -> Outcome {
        let claim = |number: usize| Claim {
            pods: BTreeSet::from([format!("default/{number}")]),
            node_pool: "default".to_owned(),
            requirements: Vec::new(),
            types: BTreeSet::new(),
            price: None,
        };
        Outcome {
            claims: (0..claims).map(claim).collect(),
            unplaced: unplaced
                .iter()
                .map(|pod| ((*pod).to_owned(), "no room".to_owned()))
                .collect(),
            ..Outcome::default()
        }
    }

    #[test]
    fn what_one_run_shows_is_the_same() {
        let runs = [outcome(1, &["a"]), outcome(3, &[])];
        assert_eq!(judge(&outcome(3, &[]), &runs), Verdict::Same);
    }

    #[test]
    fn what_lies_between_the_runs_is_a_tie() {
        let runs = [outcome(1, &["a"]), outcome(3, &[])];
        assert_eq!(judge(&outcome(2, &["a"]), &runs), Verdict::Tie(vec![Fact::Claims]));
    }

    #[test]
    fn what_no_run_shows_is_a_difference() {
        let runs = [outcome(1, &["a"]), outcome(1, &[])];
        let expected = BTreeMap::from([
            (Fact::Claims, "2, upstream 1".to_owned()),
            (Fact::Unplaced, "1 only here, first b: no room".to_owned()),
        ]);
        assert_eq!(judge(&outcome(2, &["b"]), &runs), Verdict::Different(expected));
    }
}
