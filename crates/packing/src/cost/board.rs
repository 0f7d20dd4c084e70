//! Which pod next? Every shape that may still go on a node, scored by what is still free.
//!
//! Nothing is done as often as this, so shapes are laid out by column: a few of them are scored by one instruction.

use super::{
    problem::{Amounts, WIDTH},
    space::{Space, as_weights, inverse},
};

/// Resources most clusters ask for: cpu, memory and a place among the pods of a node.
pub(super) const USUAL: usize = 3;

/// The shapes that a node is filled with, each through the most valuable of its items that may still be added.
#[derive(Debug, Clone, Default)]
pub(super) struct Board {
    /// What each asks for, by resource.
    weights: [Vec<f64>; WIDTH],
    /// What its item is worth, in the order the node is filled by.
    pub(super) gains: Vec<f64>,
    scores: Vec<f64>,
    pub(super) heads: Vec<Head>,
    /// How many fitted when last looked at.
    pub(super) fitting: usize,
}

/// Where a shape stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head {
    pub(super) item: usize,
    /// No group and no mark holds the item back.
    pub(super) is_free: bool,
    /// Position of the shape in its lane, and of the item among the shape's.
    pub(super) at: usize,
    pub(super) cursor: usize,
}

impl Head {
    /// The shape at a position in a lane, through its first item.
    pub(super) fn new(space: &Space, item: usize, at: usize) -> Self {
        Self {
            item,
            is_free: space.is_free[item],
            at,
            cursor: 0,
        }
    }
}

/// Of what does not fit.
const NONE: f64 = f64::NEG_INFINITY;

impl Board {
    pub(super) fn len(&self) -> usize {
        self.heads.len()
    }

    pub(super) fn clear(&mut self) {
        for column in &mut self.weights {
            column.clear();
        }
        self.gains.clear();
        self.heads.clear();
        self.fitting = 0;
    }

    pub(super) fn push(&mut self, weights: &[f64; WIDTH], value: f64, head: Head) {
        for (column, weight) in self.weights.iter_mut().zip(weights) {
            column.push(*weight);
        }
        self.gains.push(value);
        self.heads.push(head);
        self.fitting += 1;
    }

    /// Takes over the shapes of an empty node; `gain` is what an item of a value counts for.
    pub(super) fn begin(&mut self, from: &Self, gain: impl Fn(f64) -> f64) {
        for (column, theirs) in self.weights.iter_mut().zip(&from.weights) {
            column.clone_from(theirs);
        }
        self.gains.clear();
        self.gains.extend(from.gains.iter().map(|value| gain(*value)));
        self.heads.clone_from(&from.heads);
        self.fitting = from.fitting;
    }

    /// Leaves a shape out from now on.
    pub(super) fn drop(&mut self, at: usize) {
        self.weights[0][at] = f64::INFINITY;
    }

    /// Whether an item that something holds back stands for a shape.
    pub(super) fn is_held(&self, at: usize) -> bool {
        !self.heads[at].is_free && self.weights[0][at] < f64::INFINITY
    }

    /// The shape with the best score of those that fit, the first of equal ones.
    pub(super) fn best<const LANES: usize>(&mut self, free: &Amounts) -> Option<usize> {
        self.score::<LANES>(free);
        let mut best = (NONE, None);
        let mut fitting = 0;
        for (at, &score) in self.scores.iter().enumerate() {
            fitting += usize::from(score > NONE);
            if score > best.0 {
                best = (score, Some(at));
            }
        }
        self.fitting = fitting;
        let at = best.1?;
        Some(if fitting * 2 > self.len() {
            at
        } else {
            self.close_up(at)
        })
    }

    /// Takes out what does not fit, and tells where a shape that stays is then.
    fn close_up(&mut self, followed: usize) -> usize {
        let (mut to, mut follows) = (0, followed);
        for at in 0..self.len() {
            if self.scores[at] > NONE {
                for column in &mut self.weights {
                    column[to] = column[at];
                }
                (self.gains[to], self.heads[to]) = (self.gains[at], self.heads[at]);
                if at == followed {
                    follows = to;
                }
                to += 1;
            }
        }
        for column in &mut self.weights {
            column.truncate(to);
        }
        self.gains.truncate(to);
        self.heads.truncate(to);
        follows
    }

    fn score<const LANES: usize>(&mut self, free: &Amounts) {
        let count = self.heads.len();
        self.scores.resize(count, NONE);
        let (free, scale) = (as_weights(free), inverse(free));
        let columns: [&[f64]; LANES] = std::array::from_fn(|lane| &self.weights[lane][..count]);
        let (gains, scores) = (&self.gains[..count], &mut self.scores[..count]);
        for at in 0..count {
            let (mut share, mut fits) = (0.0, true);
            for lane in 0..LANES {
                let weight = columns[lane][at];
                share += weight * scale[lane];
                fits &= weight <= free[lane];
            }
            scores[at] = if fits { gains[at] / share } else { NONE };
        }
    }
}
