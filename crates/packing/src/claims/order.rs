//! Which claim is tried before which? Those with fewer pods first; among equals, as upstream's sort happens to leave them.
//!
//! Upstream keeps one list and sorts it again once a claim got a pod, so at most one element is out of order. Mostly the
//! sort then moves just that one: to the front of those with as many pods as it has now, or, when it is new, behind the
//! others with one pod. Lists of 13 to 49 are parted all the same, and so is a longer one where the sort happens to
//! sample the element that is out of order; then equal claims change places, and we sort as it does.

use std::ops::Range;

use super::{
    ClaimId,
    go_sort::{self, LEAST_REPAIRED, MOST_INSERTED},
};

/// The claims of a run in the order they are tried.
#[derive(Debug, Default)]
pub(super) struct Order {
    list: Vec<ClaimId>,
    /// How many pods each claim has.
    counts: Vec<u32>,
    /// Where claims with so many pods begin, by number of pods.
    starts: Vec<usize>,
}

impl Order {
    /// A claim gets its first pod.
    pub(super) fn append(&mut self, claim: ClaimId) {
        let new = self.list.len();
        self.reach(2);
        self.counts.resize(claim as usize + 1, 0);
        self.counts[claim as usize] = 1;
        self.list.push(claim);
        let behind = self.starts[2];
        self.starts[2..].iter_mut().for_each(|start| *start += 1);
        // A new element is never among those sampled.
        if behind == new || !self.is_parted() {
            self.list[behind..].rotate_right(1);
        } else {
            self.sort();
        }
    }

    /// A claim gets another pod.
    pub(super) fn advance(&mut self, claim: ClaimId) {
        let count = self.counts[claim as usize] as usize;
        self.reach(count + 2);
        let group = self.with(count);
        let at = self.list[group.clone()].iter().position(|other| *other == claim);
        let Some(at) = at.map(|at| at + group.start) else {
            return;
        };
        self.counts[claim as usize] += 1;
        self.starts[count + 1] -= 1;
        let is_out_of_order = at + 1 < group.end;
        if is_out_of_order && (self.is_parted() || self.is_sampled(at)) {
            self.sort();
        } else {
            self.list[at..group.end].rotate_left(1);
        }
    }

    /// The positions of claims with so many pods.
    pub(super) fn with(&self, count: usize) -> Range<usize> {
        let end = self.starts.get(count + 1).copied().unwrap_or(self.list.len());
        self.starts.get(count).copied().unwrap_or(end)..end
    }

    #[inline]
    pub(super) fn at(&self, position: usize) -> usize {
        self.list[position] as usize
    }

    fn reach(&mut self, count: usize) {
        if self.starts.len() <= count {
            self.starts.resize(count + 1, self.list.len());
        }
    }

    /// Whether the sort parts a list of this length that is not in order.
    fn is_parted(&self) -> bool {
        (MOST_INSERTED + 1..LEAST_REPAIRED).contains(&self.list.len())
    }

    /// Whether the sort compares this element with the next while it looks for a pivot.
    fn is_sampled(&self, at: usize) -> bool {
        let quarter = self.list.len() / 4;
        let is_near = |middle: usize| at + 1 == middle || at == middle;
        self.list.len() >= LEAST_REPAIRED && (1..=3).any(|times| is_near(quarter * times))
    }

    fn sort(&mut self) {
        go_sort::sort_by_key(&mut self.list, |claim| self.counts[*claim as usize]);
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    proptest! {
        /// `sort.Slice` itself is held against Go's in `go_sort`.
        #[test]
        fn the_order_is_what_sorting_after_each_pod_leaves(picks in vec(0..1000_usize, 0..600), pods_a_claim in 1..8_usize) {
            let (mut order, mut list, mut counts) = (Order::default(), Vec::new(), Vec::<u32>::new());
            for pick in picks {
                if pick % pods_a_claim == 0 {
                    list.push(counts.len() as ClaimId);
                    order.append(counts.len() as ClaimId);
                    counts.push(1);
                } else if !counts.is_empty() {
                    let claim = list[pick % list.len()];
                    counts[claim as usize] += 1;
                    order.advance(claim);
                }
                go_sort::sort_by_key(&mut list, |claim| counts[*claim as usize]);
                prop_assert_eq!(&order.list, &list);
                for count in 0..10 {
                    let group = &order.list[order.with(count)];
                    let expected = list.iter().filter(|claim| counts[**claim as usize] as usize == count);
                    prop_assert!(group.iter().eq(expected));
                }
            }
        }
    }
}
