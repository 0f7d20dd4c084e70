//! Which plan is cheapest? Upstream's own and those the cheaper passes propose, all filled through the same tests.
//!
//! The faithful plan is always in the race, so no plan costs more than upstream's would. A proposal counts only if it
//! places every pod the faithful plan places and keeps spot claims as flexible.

use model::price::Price;
use rustc_hash::FxHashSet;

use crate::{
    bound::lower_bound,
    cost::{
        Portfolio, Settings,
        adapt::{self, ClassKey, Picture},
        portfolio,
    },
    finish::{self, ClaimSummary},
    options::Packing,
    problem::Problem,
    run::Run,
};

/// What every contender came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The faithful plan first, then the proposals.
    pub contenders: Vec<Contender>,
    /// Position of the one that won.
    pub winner: usize,
    /// What no plan for the placed pods costs less than.
    pub lower_bound: Price,
    /// Steps of all searches.
    pub steps: u64,
}

/// One plan in the race.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contender {
    /// Which pass.
    pub name: &'static str,
    /// What its nodes cost an hour.
    pub price: Price,
    /// Nodes to launch.
    pub claims: usize,
    /// Pods without a place.
    pub unplaced: usize,
    /// Instance types its claims may become, summed up.
    pub options: usize,
    /// It places what the faithful plan places, and is as flexible.
    pub is_valid: bool,
}

impl Report {
    /// The plan that won.
    pub fn winner(&self) -> Option<&Contender> {
        self.contenders.get(self.winner)
    }
}

/// Spot claims should have so many types to choose from.
const FLEXIBLE: usize = 15;
/// What a node counts as dearer than it is where few nodes are sought: two cents an hour.
const SURCHARGE: u64 = 20_000_000_000;

/// The cheapest run with the pods it left over, and how the race went.
pub(crate) fn best(problem: &Problem) -> (Run<'_>, Vec<u32>, Report) {
    let mut faithful = Run::new(problem);
    let left = faithful.solve();
    let mut race = Race::new(faithful, left);
    if problem.options.packing == Packing::Cheapest {
        race.enter_proposals(problem);
    }
    race.finish(problem)
}

struct Race<'p> {
    best: Run<'p>,
    left: Vec<u32>,
    /// Pods the faithful plan could not place.
    hopeless: FxHashSet<u32>,
    /// So many types every spot claim must have to choose from.
    flexibility: usize,
    report: Report,
    /// The classes of the picture the passes worked on.
    keys: Vec<ClassKey>,
    /// What pods of these were found to be worth, pass by pass.
    values: Vec<Vec<f64>>,
}

impl<'p> Race<'p> {
    fn new(mut faithful: Run<'p>, left: Vec<u32>) -> Self {
        let claims = finish::summaries(&mut faithful);
        let hopeless = unplaced(&faithful, &claims, &left);
        let flexibility = claims.iter().map(|claim| claim.options).fold(FLEXIBLE, usize::min);
        let contender = contender("faithful", &claims, hopeless.len(), true);
        Self {
            best: faithful,
            left,
            hopeless,
            flexibility,
            report: Report {
                contenders: vec![contender],
                ..Report::default()
            },
            keys: Vec::new(),
            values: Vec::new(),
        }
    }

    fn enter_proposals(&mut self, problem: &'p Problem) {
        let (mut run, left) = with_nodes_filled(problem);
        if left.is_empty() {
            return;
        }
        let picture = adapt::for_passes(&mut run, &left);
        let mut ready = Some((run, left));
        for (name, settings) in settings() {
            // Flexibility costs something, so it is asked for only when nothing else was flexible enough.
            if settings.stand_ins > 0 && self.report.contenders[1..].iter().any(|proposal| proposal.is_valid) {
                continue;
            }
            let found = portfolio(&picture.problem, &settings);
            self.report.steps += found.steps;
            let (run, left) = ready.take().unwrap_or_else(|| with_nodes_filled(problem));
            self.enter(name, run, &left, &picture, &found);
            if self.values.is_empty() {
                self.values = found.values;
            }
        }
        self.keys = picture.keys;
    }

    fn enter(&mut self, name: &'static str, mut run: Run<'p>, left: &[u32], picture: &Picture, found: &Portfolio) {
        let Some(candidate) = found.candidates.first() else {
            return;
        };
        let (guides, order) = picture.guides(&candidate.packed);
        let refused: FxHashSet<u32> = run.fill(&guides, &order).into_iter().collect();
        let guided: FxHashSet<u32> = order.iter().map(|(_, pod)| *pod).collect();
        let is_left = |pod: &&u32| refused.contains(*pod) || !guided.contains(*pod);
        let left = run.drain(left.iter().filter(is_left).copied().collect());
        let claims = finish::summaries(&mut run);
        let unplaced = unplaced(&run, &claims, &left);
        let is_valid = unplaced.is_subset(&self.hopeless) && is_flexible(&claims, self.flexibility);
        let contender = contender(name, &claims, unplaced.len(), is_valid);
        let is_better = is_valid && rank(&contender) < rank(&self.report.contenders[self.report.winner]);
        if is_better {
            self.report.winner = self.report.contenders.len();
            (self.best, self.left) = (run, left);
        }
        self.report.contenders.push(contender);
    }

    fn finish(mut self, problem: &'p Problem) -> (Run<'p>, Vec<u32>, Report) {
        let claims = finish::summaries(&mut self.best);
        let unplaced = unplaced(&self.best, &claims, &self.left);
        let placed: Vec<u32> = problem
            .order
            .iter()
            .copied()
            .filter(|pod| !unplaced.contains(pod))
            .collect();
        let picture = adapt::for_bound(&mut Run::new(problem), &placed);
        let starts = starts(&picture, &self.keys, &self.values);
        self.report.lower_bound = Price::from_picos(lower_bound(&picture.problem, &starts));
        (self.best, self.left, self.report)
    }
}

/// What counts between valid plans: money, then fewer pods left over, then fewer nodes, then more types to choose from.
fn rank(contender: &Contender) -> (Price, usize, usize, std::cmp::Reverse<usize>) {
    (
        contender.price,
        contender.unplaced,
        contender.claims,
        std::cmp::Reverse(contender.options),
    )
}

fn settings() -> [(&'static str, Settings); 3] {
    let plain = Settings::default();
    let few = Settings {
        node_surcharge: SURCHARGE,
        ..Settings::default()
    };
    let flexible = Settings {
        stand_ins: FLEXIBLE,
        ..Settings::default()
    };
    [
        ("cheap", plain),
        ("cheap, few nodes", few),
        ("cheap, flexible", flexible),
    ]
}

/// A run whose existing nodes are filled, and the pods that still need a place.
fn with_nodes_filled(problem: &Problem) -> (Run<'_>, Vec<u32>) {
    let mut run = Run::new(problem);
    let left = run.place_on_nodes(problem.order.iter().copied());
    (run, left)
}

fn contender(name: &'static str, claims: &[ClaimSummary], unplaced: usize, is_valid: bool) -> Contender {
    let kept = || claims.iter().filter(|claim| claim.is_kept);
    Contender {
        name,
        price: kept().map(|claim| claim.price).sum(),
        claims: kept().count(),
        unplaced,
        options: kept().map(|claim| claim.options).sum(),
        is_valid,
    }
}

/// Whether spot claims have at least so many types to choose from.
fn is_flexible(claims: &[ClaimSummary], wanted: usize) -> bool {
    claims.iter().all(|claim| !claim.is_spot || claim.options >= wanted)
}

/// Pods left over and those of claims that are given up.
fn unplaced(run: &Run<'_>, claims: &[ClaimSummary], left: &[u32]) -> FxHashSet<u32> {
    let lost = claims.iter().zip(&run.claims.pods).filter(|(claim, _)| !claim.is_kept);
    left.iter().chain(lost.flat_map(|(_, pods)| pods)).copied().collect()
}

/// What the passes learnt, for the classes of another picture.
fn starts(picture: &Picture, keys: &[ClassKey], found: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let places: std::collections::BTreeMap<&ClassKey, usize> = keys.iter().zip(0..).collect();
    let values = |values: &Vec<f64>| {
        let value = |key: &ClassKey| places.get(key).map_or(0.0, |at| values[*at]);
        picture.keys.iter().map(value).collect()
    };
    found.iter().map(values).collect()
}
