//! How many pods of a class go to which zone? Settled before anything is packed, so that zones need no bookkeeping later.
//!
//! Pods to be spread fill the emptiest zone first, ties going to the zone that was given least so far. Pods that want to
//! be together all go to the zone where they are cheapest.

use std::collections::BTreeMap;

use super::{
    problem::{Amounts, CPU, Problem, WIDTH, Zones},
    space::inverse,
    value::cheapest_shares,
};

/// Some pods of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    /// Position in [`Problem::classes`].
    pub class: usize,
    /// The zone they must be in, when that matters.
    pub zone: Option<usize>,
    /// How many.
    pub count: u32,
}

/// All pods the passes deal with, in parts of one zone each where zones matter; the largest cpu requests first.
pub(crate) fn parts(problem: &Problem) -> Vec<Part> {
    let mut dealer = Dealer::new(problem);
    let mut order: Vec<usize> = (0..problem.classes.len()).collect();
    order.sort_by_key(|&class| std::cmp::Reverse(problem.classes[class].requests.0[CPU]));
    let wanted = order
        .into_iter()
        .filter(|&class| !problem.classes[class].is_unsupported && problem.classes[class].count > 0);
    wanted.flat_map(|class| dealer.deal(class)).collect()
}

struct Dealer<'a> {
    problem: &'a Problem,
    /// Zones a reach has anything in.
    zones: Vec<Vec<usize>>,
    /// Pods per spread and zone.
    placed: Vec<Vec<u32>>,
    /// Cpu given to each zone.
    load: Vec<i64>,
    /// Where classes that stay together go.
    together: BTreeMap<usize, Option<usize>>,
    /// Their members.
    members: BTreeMap<usize, Vec<usize>>,
    /// The cheapest share of each zone, by who may use what, and what is asked for.
    shares: BTreeMap<(usize, Amounts), Vec<f64>>,
    /// One over what each offer has, once somebody asked.
    scales: Vec<[f64; WIDTH]>,
}

impl<'a> Dealer<'a> {
    fn new(problem: &'a Problem) -> Self {
        let padded = |placed: &[u32]| {
            (0..problem.zones)
                .map(|z| placed.get(z).copied().unwrap_or(0))
                .collect()
        };
        let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (at, class) in problem.classes.iter().enumerate() {
            if let Zones::Together(number) = class.zones {
                members.entry(number).or_default().push(at);
            }
        }
        Self {
            problem,
            members,
            shares: BTreeMap::new(),
            scales: Vec::new(),
            zones: (0..problem.reaches.len())
                .map(|reach| zones_of(problem, reach))
                .collect(),
            placed: problem.spreads.iter().map(|spread| padded(&spread.placed)).collect(),
            load: vec![0; problem.zones],
            together: BTreeMap::new(),
        }
    }

    fn deal(&mut self, class: usize) -> Vec<Part> {
        let count = self.problem.classes[class].count;
        match self.problem.classes[class].zones {
            Zones::Any => vec![Part {
                class,
                zone: None,
                count,
            }],
            Zones::Spread(spread) => self.spread(class, spread),
            Zones::Together(number) => {
                let zone = self.home(number);
                vec![Part { class, zone, count }]
            }
        }
    }

    fn spread(&mut self, class: usize, spread: usize) -> Vec<Part> {
        let Self {
            problem,
            zones,
            placed,
            load,
            ..
        } = self;
        let it = &problem.classes[class];
        let (zones, placed) = (&zones[it.reach], &mut placed[spread]);
        let mut quota = vec![0; problem.zones];
        for _ in 0..it.count {
            let Some(&zone) = zones.iter().min_by_key(|&&z| (placed[z], load[z])) else {
                break;
            };
            quota[zone] += 1;
            placed[zone] += 1;
            load[zone] += it.requests.0[CPU];
        }
        let part = |(zone, count)| Part {
            class,
            zone: Some(zone),
            count,
        };
        quota
            .into_iter()
            .enumerate()
            .filter(|(_, count)| *count > 0)
            .map(part)
            .collect()
    }

    fn home(&mut self, number: usize) -> Option<usize> {
        if let Some(zone) = self.together.get(&number) {
            return *zone;
        }
        let mut demand: BTreeMap<(usize, Amounts), u32> = BTreeMap::new();
        for class in self.members.get(&number).into_iter().flatten() {
            let class = &self.problem.classes[*class];
            *demand.entry((class.reach, class.requests)).or_default() += class.count;
        }
        if self.scales.is_empty() {
            let offers = self.problem.offers.iter();
            self.scales = offers.map(|offer| inverse(&offer.allocatable)).collect();
        }
        for look in demand.keys() {
            let shares = self.shares.entry(*look);
            shares.or_insert_with(|| cheapest_shares(self.problem, &self.scales, look.0, &look.1));
        }
        let cost = |zone: usize| -> f64 {
            let shares = demand
                .iter()
                .map(|(look, count)| f64::from(*count) * self.shares[look][zone]);
            shares.sum()
        };
        let costs = (0..self.problem.zones).map(|zone| (cost(zone), self.load[zone], zone));
        let best = costs.min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let zone = best.map(|(_, _, zone)| zone);
        if let Some(zone) = zone {
            let cpu = demand
                .iter()
                .map(|((_, requests), count)| requests.0[CPU] * i64::from(*count));
            self.load[zone] += cpu.sum::<i64>();
        }
        self.together.insert(number, zone);
        zone
    }
}

/// The zones in which a reach has an offer or a room.
fn zones_of(problem: &Problem, reach: usize) -> Vec<usize> {
    let reach = &problem.reaches[reach];
    let offers = reach.offers.iter().map(|offer| problem.offers[offer as usize].zone);
    let rooms = reach.rooms.iter().map(|room| problem.rooms[room as usize].zone);
    let mut found = vec![false; problem.zones];
    for zone in offers.chain(rooms) {
        found[zone] = true;
    }
    (0..problem.zones).filter(|&zone| found[zone]).collect()
}
