//! The nodes to be launched, while pods are still added to them.

mod go_sort;
mod order;

use std::ops::Range;

use self::order::Order;
use crate::{
    bitmap::{Bitmap, Bucket},
    index::Mask,
    space::StateId,
};

/// Position of a claim.
pub(crate) type ClaimId = u32;

/// All claims of a run, column by column.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    words: usize,
    lanes: usize,
    pub(crate) states: Vec<StateId>,
    pub(crate) templates: Vec<u32>,
    /// Rows that may still be launched, claim by claim.
    rows: Vec<u64>,
    /// What its pods ask for, claim by claim.
    requests: Vec<i64>,
    /// No row has more than this, claim by claim; it may be out of date, but never too low.
    most: Vec<i64>,
    pub(crate) pods: Vec<Vec<u32>>,
    /// Claims by number of pods.
    buckets: Vec<Bucket>,
    /// Numbers of pods that some claim has.
    used: Bitmap,
    order: Order,
    /// Claims by state.
    in_state: Vec<Bitmap>,
    /// `minValues` had to be lowered.
    pub(crate) is_relaxed: Vec<bool>,
}

impl Claims {
    pub(crate) fn new(words: usize, lanes: usize) -> Self {
        Self {
            words,
            lanes,
            ..Self::default()
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.states.len()
    }

    #[inline]
    pub(crate) fn rows(&self, claim: usize) -> &[u64] {
        &self.rows[claim * self.words..(claim + 1) * self.words]
    }

    #[inline]
    pub(crate) fn requests(&self, claim: usize) -> &[i64] {
        &self.requests[claim * self.lanes..(claim + 1) * self.lanes]
    }

    /// Whether the claim is too full for a shape whatever type it becomes.
    #[inline]
    pub(crate) fn is_too_full(&self, claim: usize, shape: &[i64]) -> bool {
        let range = claim * self.lanes..(claim + 1) * self.lanes;
        let room = self.requests[range.clone()].iter().zip(&self.most[range]);
        room.zip(shape)
            .any(|((requests, most), asked)| requests + asked > *most)
    }

    pub(crate) fn set_most(&mut self, claim: usize, lane: usize, most: i64) {
        self.most[claim * self.lanes + lane] = most;
    }

    /// Opens a claim without pods.
    pub(crate) fn open(&mut self, template: u32, state: StateId) -> usize {
        let claim = self.len();
        self.states.push(state);
        self.templates.push(template);
        self.rows.resize(self.rows.len() + self.words, 0);
        self.requests.resize(self.requests.len() + self.lanes, 0);
        self.most.resize(self.most.len() + self.lanes, i64::MAX);
        self.pods.push(Vec::new());
        self.is_relaxed.push(false);
        self.enter(claim, state);
        claim
    }

    /// Adds a pod.
    pub(crate) fn add(&mut self, claim: usize, pod: u32, shape: &[i64], state: StateId, rows: &[u64]) {
        let count = self.pods[claim].len();
        self.pods[claim].push(pod);
        self.rows[claim * self.words..(claim + 1) * self.words].copy_from_slice(rows);
        let requests = &mut self.requests[claim * self.lanes..(claim + 1) * self.lanes];
        requests
            .iter_mut()
            .zip(shape)
            .for_each(|(requests, asked)| *requests += asked);
        let old = self.states[claim];
        if old != state {
            self.in_state[old as usize].remove(claim);
            self.states[claim] = state;
            self.enter(claim, state);
        }
        self.bucket(count + 1).insert(claim);
        self.used.insert(count + 1);
        if count == 0 {
            return self.order.append(claim as ClaimId);
        }
        self.order.advance(claim as ClaimId);
        self.buckets[count].remove(claim);
        if self.buckets[count].is_empty() {
            self.used.remove(count);
        }
    }

    fn bucket(&mut self, count: usize) -> &mut Bucket {
        if self.buckets.len() <= count {
            self.buckets.resize_with(count + 1, Bucket::default);
        }
        &mut self.buckets[count]
    }

    fn enter(&mut self, claim: usize, state: StateId) {
        if self.in_state.len() <= state as usize {
            self.in_state.resize_with(state as usize + 1, Bitmap::default);
        }
        self.in_state[state as usize].insert(claim);
    }

    /// The claims of a word that are in a state.
    #[inline]
    pub(crate) fn in_state(&self, state: StateId, at: usize) -> u64 {
        self.in_state[state as usize].word(at)
    }

    /// The next number of pods that some claim has.
    #[inline]
    pub(crate) fn next_count(&self, from: usize) -> Option<usize> {
        self.used.next(from)
    }

    /// The claims with so many pods, a word at a time; words without claims are left out.
    #[inline]
    pub(crate) fn next_word(&self, count: usize, from: usize) -> Option<(usize, u64)> {
        self.buckets[count].next_word(from)
    }

    /// The positions of claims with so many pods, in the order they are tried.
    #[inline]
    pub(crate) fn positions(&self, count: usize) -> Range<usize> {
        self.order.with(count)
    }

    /// The claim at a position of the order they are tried in.
    #[inline]
    pub(crate) fn at(&self, position: usize) -> usize {
        self.order.at(position)
    }

    pub(crate) fn mask(&self, claim: usize) -> Mask {
        self.rows(claim).into()
    }
}
