//! Which node next? The one that costs least for the value it holds, again and again until no pod is left.
//!
//! A node's ratio only gets worse as pods run out, so offers wait in a heap under their last known ratio, at first an
//! optimistic one, and only the head is looked at again. As long as the pods of a known filling are all there, the
//! filling stands.

use std::{cmp::Ordering, collections::BinaryHeap};

use super::{
    budget::Budget,
    item::position,
    knapsack::{Filling, Knapsack, Lane, Start},
    market::Listing,
    problem::{Pool, WIDTH},
    space::{Space, as_score, inverse},
};

/// Equal nodes a pass buys.
#[derive(Debug, Clone)]
pub(crate) struct Bought {
    /// What is bought.
    pub listing: Listing,
    /// The pods of each node: item, how many.
    pub pods: Filling,
    /// How many nodes.
    pub copies: u32,
}

/// How much worse than the best ratio hoped for a node may be and still be bought at once. Catalogues with a type of
/// every size would otherwise have most of them looked at for every node.
const SLACK: f64 = 1.003;

/// What is left while a pass runs.
#[derive(Debug, Clone)]
pub(crate) struct Left {
    /// Pods per item.
    pub pods: Vec<u32>,
    /// Limits per pool.
    pub pools: Vec<Pool>,
}

/// Buys nodes until no pod is left that fits any, or the budget is used up.
///
/// `bias` adds to the value of large pods, so that small ones are kept as filler for later nodes.
pub(crate) fn ratio_greedy(
    space: &Space,
    values: &[f64],
    bias: f64,
    left: &mut Left,
    budget: &mut Budget,
) -> Vec<Bought> {
    let values = biased(values, bias);
    let mut shop = Shop::new(space, &values, left);
    let mut bought = Vec::new();
    while let Some(mut turn) = shop.heap.pop() {
        budget.spend(1);
        if budget.is_used_up() {
            break;
        }
        let filling = shop.entries[turn.entry].filling.as_ref();
        if !filling.is_some_and(|filling| is_there(filling, &left.pods)) {
            let value = shop.refill(turn.entry, left);
            budget.spend(shop.knapsack.steps());
            let Some(value) = value else { continue };
            turn.ratio = as_score(shop.entries[turn.entry].listing.price) / value;
            if shop.heap.peek().is_some_and(|next| turn.ratio > next.ratio * SLACK) {
                shop.heap.push(turn);
                continue;
            }
        }
        if let Some(node) = shop.buy(turn.entry, left) {
            bought.push(node);
            shop.heap.push(turn);
        }
    }
    bought
}

fn biased(values: &[f64], bias: f64) -> Vec<f64> {
    let top = values.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    values
        .iter()
        .map(|value| value * (1.0 + bias * (value / top)))
        .collect()
}

/// Whether a node could be filled so with what is left.
fn is_there(filling: &Filling, left: &[u32]) -> bool {
    filling.iter().all(|(item, count)| *count <= left[*item])
}

struct Shop<'a> {
    space: &'a Space<'a>,
    values: &'a [f64],
    lanes: Vec<Lane>,
    knapsack: Knapsack<'a>,
    entries: Vec<Entry>,
    heap: BinaryHeap<Turn>,
}

impl<'a> Shop<'a> {
    fn new(space: &'a Space<'a>, values: &'a [f64], left: &Left) -> Self {
        let lane = |market: &super::market::Market| {
            Lane::new(space, values, &left.pods, |kind| market.kinds.contains(position(kind)))
        };
        let lanes: Vec<Lane> = space.markets.iter().map(lane).collect();
        let (mut entries, mut turns) = (Vec::new(), Vec::new());
        for (market, (it, lane)) in space.markets.iter().zip(&lanes).enumerate() {
            let most = lane.worth(space, values, &left.pods);
            for &at in &it.searched {
                let listing = it.offers[at];
                let Some(ratio) = hopeful(space, values, lane, most, &listing) else {
                    continue;
                };
                turns.push(Turn {
                    ratio,
                    offer: listing.offer,
                    entry: entries.len(),
                });
                entries.push(Entry {
                    market,
                    listing,
                    filling: None,
                });
            }
        }
        let heap = turns.into();
        Self {
            entries,
            space,
            values,
            lanes,
            knapsack: Knapsack::new(space),
            heap,
        }
    }

    /// Looks at an offer again, and tells what a node of it may hold; none when nothing that is left fits it.
    fn refill(&mut self, entry: usize, left: &Left) -> Option<f64> {
        let entry = &mut self.entries[entry];
        let start = Start::empty(entry.listing.allocatable);
        let lane = &self.lanes[entry.market];
        let (value, filling) = self.knapsack.fill(lane, &start, self.values, &left.pods)?;
        entry.filling = Some(filling);
        Some(value)
    }

    /// Buys as many nodes as pods and limits allow; none when limits allow none.
    fn buy(&mut self, entry: usize, left: &mut Left) -> Option<Bought> {
        let entry = &self.entries[entry];
        let filling = entry.filling.as_ref()?;
        let offer = &self.space.problem.offers[entry.listing.offer];
        let by_pods = filling.iter().map(|(item, count)| left.pods[*item] / count).min()?;
        let by_limit = left
            .pools
            .get(offer.pool)
            .map_or(u32::MAX, |pool| pool.allows(&offer.capacity));
        let copies = by_pods.min(by_limit);
        if copies == 0 {
            return None;
        }
        if let Some(pool) = left.pools.get_mut(offer.pool) {
            pool.take(&offer.capacity, copies);
        }
        for (item, count) in filling {
            left.pods[*item] -= count * copies;
        }
        if filling.iter().any(|(item, _)| left.pods[*item] == 0) {
            for lane in &mut self.lanes {
                lane.drop_exhausted(self.space, self.values, &left.pods);
            }
        }
        Some(Bought {
            listing: entry.listing,
            pods: filling.clone(),
            copies,
        })
    }
}

/// An offer, and the pods it was last found to hold.
#[derive(Debug)]
struct Entry {
    market: usize,
    listing: Listing,
    filling: Option<Filling>,
}

/// The ratio an offer can at best have: no pod is worth more of a resource than the best one. Nor can a node hold more
/// than all pods there are.
fn hopeful(space: &Space, values: &[f64], lane: &Lane, most_of_all: f64, listing: &Listing) -> Option<f64> {
    let scale = inverse(&listing.allocatable);
    let mut most = [0.0_f64; WIDTH + 1];
    for (shape, item) in lane.heads() {
        let shape = &space.shapes[shape];
        if !shape.requests.fits(&listing.allocatable) {
            continue;
        }
        let shares: [f64; WIDTH] = std::array::from_fn(|r| shape.weights[r] * scale[r]);
        let both = f64::midpoint(shares[0], shares[1]);
        for (most, share) in most.iter_mut().zip(shares.into_iter().chain([both])) {
            *most = most.max(if share > 0.0 {
                values[item] / share
            } else {
                f64::INFINITY
            });
        }
    }
    let value = most.into_iter().fold(most_of_all, f64::min);
    (value > 0.0).then(|| as_score(listing.price) / value)
}

/// An offer in the heap; the lowest ratio is the greatest.
#[derive(Debug)]
struct Turn {
    ratio: f64,
    offer: usize,
    /// Position among the entries.
    entry: usize,
}

impl PartialEq for Turn {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Turn {}

impl PartialOrd for Turn {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Turn {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_ratio = other.ratio.total_cmp(&self.ratio);
        by_ratio.then_with(|| other.offer.cmp(&self.offer))
    }
}
