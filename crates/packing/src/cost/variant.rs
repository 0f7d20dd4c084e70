//! In which ways are the passes run? Plans of other shapes are dearer on paper and may be cheaper once kube-scheduler
//! has placed the pods.

use super::{
    problem::{Amounts, CPU, MEMORY, Offer, Problem},
    stand_in::{have_stand_ins, robust_prices},
};

/// A way to run the passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Variant {
    /// Any offers.
    Mixed,
    /// Offers of one ratio of memory to cpu, the nearest above the pods' own, so that no pod fills the wrong node.
    OneRatio,
    /// No node larger than a share of the whole, so that the loss of one hurts less.
    SmallNodes,
    /// Both.
    OneRatioSmallNodes,
}

/// What the passes are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Which variants, the first being the one the report compares with.
    pub variants: Vec<Variant>,
    /// Passes per variant, at most four.
    pub passes: usize,
    /// Steps for everything.
    pub steps: u64,
    /// Pico-dollars an hour by which a node counts as dearer than it is: nodes cost addresses, daemons and image pulls.
    pub node_surcharge: u64,
    /// Permille of its price a node may cost more to be in an emptier zone.
    pub zone_tolerance: u64,
    /// Spot offers that fewer offers than this could stand in for are left out; 0 for none.
    pub stand_ins: usize,
    /// Spot offers count at the mean price of so many offers that hold the same; 0 or 1 for their own.
    pub robust_prices: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            variants: vec![Variant::Mixed],
            passes: 4,
            steps: 2_000_000_000,
            node_surcharge: 0,
            zone_tolerance: 0,
            stand_ins: 0,
            robust_prices: 0,
        }
    }
}

/// What each offer counts as in a variant; none for those left out.
pub(crate) fn prices(problem: &Problem, variant: Variant, settings: &Settings) -> Vec<Option<u64>> {
    let wanted = filter(problem, variant);
    let robust = (settings.robust_prices > 1).then(|| robust_prices(problem, settings.robust_prices));
    let flexible = (settings.stand_ins > 1).then(|| have_stand_ins(problem, settings.stand_ins));
    let price = |(at, offer): (usize, &Offer)| {
        let replaceable = !offer.is_spot || flexible.as_ref().is_none_or(|flexible| flexible[at]);
        let robust = robust.as_ref().filter(|_| offer.is_spot).map(|robust| robust[at]);
        let price = robust.unwrap_or(offer.price) + settings.node_surcharge;
        (replaceable && wanted(offer)).then_some(price)
    };
    problem.offers.iter().enumerate().map(price).collect()
}

fn filter(problem: &Problem, variant: Variant) -> impl Fn(&Offer) -> bool {
    let demand = demand(problem);
    let ratio = ratio_above(problem, &demand);
    let largest = demand.0[CPU] / SMALL_SHARE;
    let (one_ratio, small) = match variant {
        Variant::Mixed => (false, false),
        Variant::OneRatio => (true, false),
        Variant::SmallNodes => (false, true),
        Variant::OneRatioSmallNodes => (true, true),
    };
    move |offer| {
        let has_ratio = !one_ratio || ratio.is_none_or(|ratio| ratio_of(offer) == ratio);
        has_ratio && (!small || machine(offer).0[CPU] <= largest)
    }
}

/// A small node holds at most one part in so many of the demand.
const SMALL_SHARE: i64 = 8;

fn demand(problem: &Problem) -> Amounts {
    let mut demand = Amounts::default();
    for class in &problem.classes {
        demand.add(&class.requests, class.count);
    }
    demand
}

/// The machine's size: its full capacity where the caller told it.
fn machine(offer: &Offer) -> &Amounts {
    if offer.capacity.0[CPU] > 0 {
        &offer.capacity
    } else {
        &offer.allocatable
    }
}

/// Memory per cpu as a power of two, to the nearest; machines are sold in such steps.
fn ratio_of(offer: &Offer) -> u32 {
    let machine = machine(offer);
    let (cpu, memory) = (i128::from(machine.0[CPU].max(1)), i128::from(machine.0[MEMORY].max(0)));
    // Rounded up from 3/4 of the next step on.
    let scaled = memory * RATIO_SCALE * 4 / (cpu * 3);
    i128::BITS - scaled.leading_zeros()
}

/// Keeps ratios below one apart, for any units of memory and cpu.
const RATIO_SCALE: i128 = 1 << 20;

/// The lowest ratio on offer that is not below the demand's.
fn ratio_above(problem: &Problem, demand: &Amounts) -> Option<u32> {
    let enough = |offer: &&Offer| {
        let machine = machine(offer);
        let need = i128::from(demand.0[MEMORY]) * i128::from(machine.0[CPU]);
        i128::from(machine.0[MEMORY]) * i128::from(demand.0[CPU]) >= need
    };
    problem.offers.iter().filter(enough).map(ratio_of).min()
}
