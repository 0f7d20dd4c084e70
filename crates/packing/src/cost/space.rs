//! The problem, prepared for packing: items, the shapes they come in, and the markets open to them.

use std::ops::Deref;

use super::{
    item::{Item, Kind, items},
    market::{Market, markets},
    problem::{Amounts, Problem, WIDTH},
};

/// What follows from a problem whatever its offers cost, for every way to run the passes over it.
#[derive(Debug)]
pub(crate) struct Ground<'a> {
    /// What it was made from.
    pub problem: &'a Problem,
    /// Pods to pack, the largest requests first.
    pub items: Vec<Item>,
    /// Where they may go.
    pub kinds: Vec<Kind>,
    /// Their distinct requests.
    pub shapes: Vec<Shape>,
    /// The shape of each item.
    pub shape_of: Vec<usize>,
    /// What can hold each item back on a node, as bits: another item may do so only if it has a bit in common. Many
    /// groups share a bit, so having one in common says nothing yet.
    pub bonds: Vec<u64>,
    /// The bits of groups that no pod may be in.
    pub closed: u64,
    /// Resources beyond these nobody asks for.
    pub lanes: usize,
}

/// What every pass of one way shares.
#[derive(Debug)]
pub(crate) struct Space<'a> {
    ground: &'a Ground<'a>,
    /// Offers worth looking at.
    pub markets: Vec<Market>,
}

impl<'a> Deref for Space<'a> {
    type Target = Ground<'a>;

    fn deref(&self) -> &Self::Target {
        self.ground
    }
}

/// Requests that some items share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    /// Exact.
    pub requests: Amounts,
    /// For scores.
    pub weights: [f64; WIDTH],
}

impl<'a> Ground<'a> {
    /// Prepares a problem.
    pub(crate) fn new(problem: &'a Problem) -> Self {
        let (items, kinds) = items(problem);
        let (shapes, shape_of) = shapes(&items);
        let asked = |lane: &usize| shapes.iter().any(|shape| shape.requests.0[*lane] > 0);
        Self {
            problem,
            bonds: items.iter().map(bonds).collect(),
            closed: closed(problem),
            lanes: (0..WIDTH).rev().find(asked).map_or(0, |last| last + 1),
            items,
            kinds,
            shapes,
            shape_of,
        }
    }
}

impl<'a> Space<'a> {
    /// The markets of a problem; `price` says what an offer counts as, none to leave it out.
    pub(crate) fn new(ground: &'a Ground<'a>, price: impl Fn(usize) -> Option<u64>) -> Self {
        Self {
            ground,
            markets: markets(ground.problem, &ground.kinds, price),
        }
    }

    /// The same items in other markets.
    pub(crate) fn with_prices(&self, price: impl Fn(usize) -> Option<u64>) -> Self {
        Self::new(self.ground, price)
    }

    /// How many pods each item has.
    pub(crate) fn counts(&self) -> Vec<u32> {
        self.items.iter().map(|item| item.count).collect()
    }
}

/// The marks and groups of an item.
fn bonds(item: &Item) -> u64 {
    let groups = item.groups.iter().map(|group| bond(*group));
    groups.fold(item.carries | item.repels, |bonds, group| bonds | group)
}

fn closed(problem: &Problem) -> u64 {
    let groups = problem.groups.iter().enumerate().filter(|(_, group)| group.max == 0);
    groups.fold(0, |bonds, (at, _)| bonds | bond(at))
}

/// The bit of a group. Marks are numbered from the first bit on, so groups begin at the last.
pub(crate) fn bond(group: usize) -> u64 {
    1 << (63 - group % 64)
}

/// Items are sorted by requests, so equal ones are neighbours.
fn shapes(items: &[Item]) -> (Vec<Shape>, Vec<usize>) {
    let mut shapes: Vec<Shape> = Vec::new();
    let mut shape_of = Vec::with_capacity(items.len());
    for item in items {
        if shapes.last().is_none_or(|shape| shape.requests != item.requests) {
            let weights = as_weights(&item.requests);
            shapes.push(Shape {
                requests: item.requests,
                weights,
            });
        }
        shape_of.push(shapes.len() - 1);
    }
    (shapes, shape_of)
}

/// Amounts for scores, where the last digits of very large ones do not matter.
#[expect(clippy::cast_precision_loss, reason = "scores need no exact amounts")]
pub(crate) fn as_weights(amounts: &Amounts) -> [f64; WIDTH] {
    amounts.0.map(|amount| amount as f64)
}

/// One over each amount, for shares; one where there is nothing, so that no share is infinite.
pub(crate) fn inverse(amounts: &Amounts) -> [f64; WIDTH] {
    as_weights(amounts).map(|amount| if amount > 1.0 { 1.0 / amount } else { 1.0 })
}

/// Pico-dollars for scores.
#[expect(clippy::cast_precision_loss, reason = "scores need no exact prices")]
pub(crate) fn as_score(picos: u64) -> f64 {
    picos as f64
}
