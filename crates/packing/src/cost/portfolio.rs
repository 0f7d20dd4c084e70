//! Which proposal is cheapest? A few passes, each with the values the one before learnt, for each variant asked for.

use super::{
    budget::Budget,
    downsize::downsize,
    free_room::use_rooms,
    knapsack::Filling,
    pattern::{Bin, Packed, Place},
    problem::Problem,
    ratio_greedy::{Bought, Left, ratio_greedy},
    space::{Ground, Space},
    value::{learn, values},
    variant::{Settings, Variant, prices},
    zone_balance::{ZoneBalance, is_settled},
};

/// How much more large pods count, pass by pass.
const BIASES: [f64; 4] = [0.05, 0.2, 0.0, 0.5];

/// What the passes found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Portfolio {
    /// The best of each variant: fewest pods without a place, then cheapest, then fewest nodes.
    pub candidates: Vec<Candidate>,
    /// Every pass that ran.
    pub passes: Vec<PassReport>,
    /// What a pod of each class was worth in each pass of the first variant, in pico-dollars an hour: a start for the
    /// lower bound.
    pub values: Vec<Vec<f64>>,
    /// Steps done.
    pub steps: u64,
    /// The budget ended the search.
    pub is_cut_short: bool,
}

/// A proposal and what it costs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// How it was made.
    pub variant: Variant,
    /// The pass that found it, counted from zero.
    pub pass: usize,
    /// The nodes and their pods.
    pub packed: Packed,
    /// Pico-dollars per hour at the offers' own prices.
    pub price: u64,
}

/// What a pass came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassReport {
    /// In which variant.
    pub variant: Variant,
    /// Counted from zero.
    pub pass: usize,
    /// Pico-dollars per hour.
    pub price: u64,
    /// Nodes to buy.
    pub nodes: usize,
    /// Pods without a place.
    pub unplaced: u64,
    /// Steps it took.
    pub steps: u64,
}

impl PassReport {
    /// What makes one pass better than another.
    fn rank(&self) -> (u64, u64, usize) {
        (self.unplaced, self.price, self.nodes)
    }
}

/// Runs the passes.
pub fn portfolio(problem: &Problem, settings: &Settings) -> Portfolio {
    portfolio_on(&Ground::new(problem), settings)
}

/// Runs the passes over a problem that is prepared.
pub(crate) fn portfolio_on(ground: &Ground<'_>, settings: &Settings) -> Portfolio {
    let mut budget = Budget::of(settings.steps);
    let mut found = Portfolio::default();
    for &variant in &settings.variants {
        let listed = prices(ground.problem, variant, settings);
        let search = Search {
            space: Space::new(ground, |offer| listed[offer]),
            settings,
            variant,
            // Pods that fit no offer of the variant may use any.
            rest: listed
                .contains(&None)
                .then(|| listed.iter().map(Option::is_some).collect()),
        };
        search.run(&mut budget, &mut found);
        if budget.is_used_up() {
            found.is_cut_short = true;
            break;
        }
    }
    found.steps = budget.spent();
    found
}

/// What a pod of each class is worth, in pico-dollars an hour: its cheapest share of any node, or what so many passes
/// learn from that.
pub(crate) fn worths(problem: &Problem, settings: &Settings, passes: usize) -> Vec<f64> {
    let learnt = (passes > 0)
        .then(|| portfolio(problem, settings).values.pop())
        .flatten();
    learnt.unwrap_or_else(|| {
        let listed = prices(problem, Variant::Mixed, settings);
        let ground = Ground::new(problem);
        let space = Space::new(&ground, |offer| listed[offer]);
        per_class(&space, &values(&space))
    })
}

struct Search<'a> {
    space: Space<'a>,
    settings: &'a Settings,
    variant: Variant,
    rest: Option<Vec<bool>>,
}

/// What one pass decided.
struct Pass {
    rooms: Vec<(usize, Filling)>,
    bought: Vec<Bought>,
    left: Left,
}

impl Search<'_> {
    fn run(&self, budget: &mut Budget, found: &mut Portfolio) {
        let is_first = found.passes.is_empty();
        let whole = self.rest.as_ref().map(|_| {
            self.space
                .with_prices(|offer| Some(self.space.problem.offers[offer].price + self.settings.node_surcharge))
        });
        let mut worth = values(&self.space);
        if let Some(whole) = &whole {
            fill_gaps(&mut worth, &values(whole));
        }
        let mut best: Option<(PassReport, Pass)> = None;
        for (number, bias) in BIASES.into_iter().enumerate().take(self.settings.passes.max(1)) {
            let before = budget.spent();
            let pass = self.pass(whole.as_ref(), &worth, bias, budget);
            if budget.is_used_up() && best.is_some() {
                break;
            }
            let report = self.report(number, &pass, budget.spent() - before);
            worth = learn(&worth, &pass.bought);
            if is_first {
                found.values.push(per_class(&self.space, &worth));
            }
            found.passes.push(report);
            if best.as_ref().is_none_or(|(leader, _)| report.rank() < leader.rank()) {
                best = Some((report, pass));
            }
            if budget.is_used_up() {
                break;
            }
        }
        if let Some((report, pass)) = best {
            let packed = self.packed(&pass);
            let price = total(self.space.problem, &packed);
            found.candidates.push(Candidate {
                variant: self.variant,
                pass: report.pass,
                packed,
                price,
            });
        }
    }

    fn pass(&self, whole: Option<&Space>, values: &[f64], bias: f64, budget: &mut Budget) -> Pass {
        let pools = self.space.problem.pools.clone();
        let mut left = Left {
            pods: self.space.counts(),
            pools,
        };
        let rooms = use_rooms(&self.space, values, &mut left, budget);
        let mut bought = ratio_greedy(&self.space, values, bias, &mut left, budget);
        if let Some(whole) = whole {
            bought.extend(ratio_greedy(whole, values, bias, &mut left, budget));
        }
        downsize(&self.space, &mut bought);
        Pass { rooms, bought, left }
    }

    fn report(&self, pass: usize, it: &Pass, steps: u64) -> PassReport {
        let offers = &self.space.problem.offers;
        let cost = |node: &Bought| offers[node.listing.offer].price.saturating_mul(u64::from(node.copies));
        PassReport {
            variant: self.variant,
            pass,
            price: it.bought.iter().map(cost).fold(0, u64::saturating_add),
            nodes: it.bought.iter().map(|node| node.copies as usize).sum(),
            unplaced: it.left.pods.iter().map(|&count| u64::from(count)).sum(),
            steps,
        }
    }

    /// The pass in terms of classes and single nodes.
    fn packed(&self, pass: &Pass) -> Packed {
        let space = &self.space;
        let mut queues = Queues::new(space);
        let mut bins = Vec::new();
        for (room, filling) in &pass.rooms {
            let pods = queues.draw(filling);
            bins.push(Bin {
                place: Place::Room(*room),
                pods,
                is_zone_settled: true,
            });
        }
        let mut balance = ZoneBalance::new(space.problem, self.settings.zone_tolerance);
        for node in &pass.bought {
            let is_zone_settled = is_settled(space, node);
            let twins = if is_zone_settled {
                vec![node.listing.offer]
            } else {
                balance.twins(space, node)
            };
            for _ in 0..node.copies {
                let offer = balance.deal(space.problem, &twins).unwrap_or(node.listing.offer);
                bins.push(Bin {
                    place: Place::Offer(offer),
                    pods: queues.draw(&node.pods),
                    is_zone_settled,
                });
            }
        }
        Packed {
            bins,
            unplaced: queues.rest(),
        }
    }
}

/// Pods that fit no offer of a variant are worth what they are worth elsewhere.
fn fill_gaps(values: &mut [f64], whole: &[f64]) {
    for (value, other) in values.iter_mut().zip(whole) {
        if *value == 0.0 {
            *value = *other;
        }
    }
}

fn total(problem: &Problem, packed: &Packed) -> u64 {
    let prices = packed.bins.iter().map(|bin| match bin.place {
        Place::Room(_) => 0,
        Place::Offer(offer) => problem.offers[offer].price,
    });
    prices.fold(0, u64::saturating_add)
}

/// The mean value of a class's pods over the items they are in.
fn per_class(space: &Space, values: &[f64]) -> Vec<f64> {
    let mut sums = vec![(0.0, 0.0); space.problem.classes.len()];
    for (item, value) in space.items.iter().zip(values) {
        for (class, count) in &item.members {
            sums[*class].0 += value * f64::from(*count);
            sums[*class].1 += f64::from(*count);
        }
    }
    sums.into_iter()
        .map(|(sum, pods)| if pods > 0.0 { sum / pods } else { 0.0 })
        .collect()
}

/// Gives the pods of items out, class by class.
struct Queues<'a> {
    space: &'a Space<'a>,
    /// Per item: the member being given out, and how many of it are gone.
    at: Vec<(usize, u32)>,
}

impl<'a> Queues<'a> {
    fn new(space: &'a Space<'a>) -> Self {
        Self {
            space,
            at: vec![(0, 0); space.items.len()],
        }
    }

    /// The classes of one node's pods, the largest requests first.
    fn draw(&mut self, filling: &Filling) -> Vec<(usize, u32)> {
        let mut items = filling.clone();
        items.sort_unstable();
        let mut pods = Vec::with_capacity(items.len());
        for (item, mut wanted) in items {
            let (member, gone) = &mut self.at[item];
            while let Some((class, count)) = self.space.items[item].members.get(*member).filter(|_| wanted > 0) {
                let given = wanted.min(count - *gone);
                if given > 0 {
                    pods.push((*class, given));
                }
                wanted -= given;
                *gone += given;
                if *gone == *count {
                    (*member, *gone) = (*member + 1, 0);
                }
            }
        }
        pods
    }

    /// What was not given out.
    fn rest(&self) -> Vec<(usize, u32)> {
        let mut rest = Vec::new();
        for (item, (member, gone)) in self.space.items.iter().zip(&self.at) {
            let members = item.members.iter().skip(*member).enumerate();
            let left = members.map(|(at, (class, count))| (*class, if at == 0 { count - gone } else { *count }));
            rest.extend(left.filter(|(_, count)| *count > 0));
        }
        rest.sort_unstable();
        rest
    }
}
