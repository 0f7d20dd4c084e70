//! What one plan can take over from the one before: all that follows from the catalogue, for as long as it stays.
//!
//! A plan is the same with and without it. It belongs to whoever plans again and again; nothing is kept anywhere else.

use std::sync::Arc;

use model::{
    plan::{Plan, Unplaced},
    snapshot::Snapshot,
};

use crate::{
    Options, Packing, Planned, Prepared, Work,
    demand::Demand,
    finish,
    index::Index,
    portfolio,
    problem::Problem,
    run::Run,
    supply::{Offered, Stock, Supply},
    with_ignored,
};

/// What is kept between plans.
#[derive(Debug, Default)]
pub struct Warm {
    stock: Option<Arc<Stock>>,
    offered: Option<Arc<Offered>>,
    index: Option<Arc<Index>>,
}

/// A part of the work of one plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Which pods need a place.
    Demand,
    /// What there is to place them on.
    Supply,
    /// Both as numbers, and the index of instance types.
    Problem,
    /// Ladders, groups and counts before the first pod.
    Run,
    /// Placing pods.
    Solve,
    /// Writing the plan.
    Finish,
}

impl Warm {
    /// The plan for the pods of a snapshot that need a place.
    pub fn plan(&mut self, snapshot: &Snapshot, options: &Options) -> Plan {
        match options.packing {
            Packing::Cheapest => self.planned(snapshot, options).plan,
            Packing::Faithful => self.faithful(snapshot, options, |_| {}).0,
        }
    }

    /// Upstream's algorithm alone, and the work of placing pods; `done` hears of each step when it is over.
    pub fn faithful(&mut self, snapshot: &Snapshot, options: &Options, mut done: impl FnMut(Step)) -> (Plan, Work) {
        let mut demand = Demand::of(snapshot);
        done(Step::Demand);
        let supply = self.supply(snapshot, options);
        done(Step::Supply);
        let ignored = std::mem::take(&mut demand.ignored);
        let problem = Problem::warm(snapshot, demand, supply, options, &mut self.index);
        done(Step::Problem);
        let mut run = Run::new(&problem);
        done(Step::Run);
        let left = run.solve();
        done(Step::Solve);
        let work = run.work;
        let plan = with_ignored(finish::plan(&mut run, &left), ignored);
        done(Step::Finish);
        (plan, work)
    }

    /// The plan, with the plans it was chosen from and a lower bound.
    pub fn planned(&mut self, snapshot: &Snapshot, options: &Options) -> Planned {
        let supply = self.supply(snapshot, options);
        let dropped = supply.dropped.clone();
        let (problem, ignored) = self.problem(snapshot, supply, options);
        let (plan, report) = portfolio::best(&problem);
        Planned {
            plan: with_ignored(plan, ignored),
            report,
            dropped,
        }
    }

    /// A cluster ready to be asked about.
    pub fn prepare(&mut self, snapshot: &Snapshot, options: &Options) -> Prepared {
        let (demand, supply) = (Demand::with_residents(snapshot), self.supply(snapshot, options));
        let problem = Problem::warm(snapshot, demand, supply, options, &mut self.index);
        Prepared::of(snapshot, problem)
    }

    /// The pods of a snapshot and what there is for them, as numbers.
    pub(crate) fn problem_of(&mut self, snapshot: &Snapshot, options: &Options) -> Problem {
        let supply = self.supply(snapshot, options);
        self.problem(snapshot, supply, options).0
    }

    fn problem(&mut self, snapshot: &Snapshot, supply: Supply, options: &Options) -> (Problem, Vec<Unplaced>) {
        let mut demand = Demand::of(snapshot);
        let ignored = std::mem::take(&mut demand.ignored);
        let problem = Problem::warm(snapshot, demand, supply, options, &mut self.index);
        (problem, ignored)
    }

    /// What the node class of every NodePool offers.
    pub fn offered(&mut self, snapshot: &Snapshot) -> Arc<Offered> {
        let stock = self.stock(snapshot);
        match &self.offered {
            Some(known) if known.is_of(snapshot) => Arc::clone(known),
            _ => {
                let offered = Arc::new(Offered::from_stock(snapshot, &stock));
                self.offered = Some(Arc::clone(&offered));
                offered
            }
        }
    }

    fn supply(&mut self, snapshot: &Snapshot, options: &Options) -> Supply {
        Supply::from_stock(snapshot, options, &self.stock(snapshot))
    }

    fn stock(&mut self, snapshot: &Snapshot) -> Arc<Stock> {
        match &self.stock {
            Some(stock) if stock.is_of(snapshot) => Arc::clone(stock),
            _ => {
                let stock = Arc::new(Stock::of(snapshot));
                (self.stock, self.offered) = (Some(Arc::clone(&stock)), None);
                stock
            }
        }
    }
}
