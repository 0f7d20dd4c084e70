//! Which pod next? Every shape that may still go on a node, scored by what is still free.
//!
//! Nothing is done as often as this, so shapes are laid out by column: a few of them are scored by one instruction.

use super::{
    problem::{Amounts, WIDTH},
    space::{as_weights, inverse},
};

/// Resources most clusters ask for: cpu, memory and a place among the pods of a node.
pub(super) const USUAL: usize = 3;

/// How many shapes are scored in one stride; columns are filled up to whole strides with shapes that never fit.
const STRIDE: usize = 2;

/// The shapes that a node is filled with, each through the most valuable of its items that may still be added.
#[derive(Debug, Clone, Default)]
pub(super) struct Board {
    /// What each asks for, by resource.
    weights: [Vec<f64>; WIDTH],
    /// What its item is worth, in the order the node is filled by.
    gains: Vec<f64>,
    scores: Vec<f64>,
    pub(super) heads: Vec<Head>,
    /// What holds the item of each back, see [`super::space::Ground::bonds`]; nothing for shapes left out.
    bonds: Vec<u64>,
    /// How many fitted when last looked at.
    pub(super) fitting: usize,
}

/// Where a shape stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head {
    pub(super) item: u32,
    /// Position of the shape in its lane, and of the item among the shape's.
    pub(super) at: u32,
    pub(super) cursor: u32,
}

/// Of what does not fit.
const NONE: f64 = f64::NEG_INFINITY;
/// A weight that never fits, and that scores can be worked out with.
const TOO_MUCH: f64 = 1e300;

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
        self.bonds.clear();
        self.fitting = 0;
    }

    pub(super) fn push(&mut self, weights: &[f64; WIDTH], value: f64, head: Head, bonds: u64) {
        for (column, weight) in self.weights.iter_mut().zip(weights) {
            column.push(*weight);
        }
        self.gains.push(value);
        self.heads.push(head);
        self.bonds.push(bonds);
        self.fitting += 1;
    }

    /// Fills columns up to whole strides, once all shapes are in.
    pub(super) fn seal<const LANES: usize>(&mut self) {
        let whole = self.len().next_multiple_of(STRIDE);
        for column in &mut self.weights[..LANES] {
            column.truncate(self.heads.len());
            column.resize(whole, TOO_MUCH);
        }
        self.gains.truncate(self.heads.len());
        self.gains.resize(whole, 0.0);
    }

    /// Takes over the shapes of an empty node; `gain` is what an item of a value counts for.
    pub(super) fn begin<const LANES: usize>(&mut self, from: &Self, gain: impl Fn(f64) -> f64) {
        for (column, theirs) in self.weights.iter_mut().zip(&from.weights[..LANES]) {
            column.clone_from(theirs);
        }
        self.gains.clear();
        self.gains.extend(from.gains.iter().map(|value| gain(*value)));
        self.heads.clone_from(&from.heads);
        self.bonds.clone_from(&from.bonds);
        self.fitting = from.fitting;
    }

    /// Leaves a shape out from now on.
    pub(super) fn drop(&mut self, at: usize) {
        self.weights[0][at] = TOO_MUCH;
        self.bonds[at] = 0;
    }

    /// Puts another item in a shape's place.
    pub(super) fn go_on(&mut self, at: usize, item: u32, cursor: usize, gain: f64, bonds: u64) {
        self.heads[at] = Head {
            item,
            cursor: cursor as u32,
            ..self.heads[at]
        };
        self.gains[at] = gain;
        self.bonds[at] = bonds;
    }

    /// The next shape whose item some of these bonds hold back.
    pub(super) fn next_held(&self, from: usize, bonds: u64) -> Option<usize> {
        let held = self.bonds[from..].iter().position(|held| held & bonds != 0);
        held.map(|at| from + at)
    }

    /// The shape with the best score of those that fit, the first of equal ones.
    pub(super) fn best<const LANES: usize>(&mut self, free: &Amounts) -> Option<usize> {
        let (most, fitting) = self.score::<LANES>(free);
        self.fitting = fitting;
        if fitting == 0 {
            return None;
        }
        let at = self.scores.iter().position(|score| *score >= most)?;
        Some(if fitting * 2 > self.len() {
            at
        } else {
            self.close_up::<LANES>(at)
        })
    }

    /// Takes out what does not fit, and tells where a shape that stays is then.
    fn close_up<const LANES: usize>(&mut self, followed: usize) -> usize {
        let (mut to, mut follows) = (0, followed);
        for at in 0..self.len() {
            if self.scores[at] > NONE {
                for column in &mut self.weights[..LANES] {
                    column[to] = column[at];
                }
                (self.gains[to], self.heads[to], self.bonds[to]) = (self.gains[at], self.heads[at], self.bonds[at]);
                if at == followed {
                    follows = to;
                }
                to += 1;
            }
        }
        self.heads.truncate(to);
        self.bonds.truncate(to);
        self.seal::<LANES>();
        follows
    }

    /// Scores all shapes; tells the best score, and how many fit.
    fn score<const LANES: usize>(&mut self, free: &Amounts) -> (f64, usize) {
        let count = self.gains.len();
        self.scores.resize(count, NONE);
        let (free, scale) = (as_weights(free), inverse(free));
        let columns: [&[[f64; STRIDE]]; LANES] = std::array::from_fn(|lane| self.weights[lane][..count].as_chunks().0);
        let scores = self.scores.as_chunks_mut::<STRIDE>().0;
        let strides = self.gains.as_chunks::<STRIDE>().0.iter().zip(scores);
        let (mut most, mut fitting) = ([NONE; STRIDE], [0_u64; STRIDE]);
        for (at, (gains, scores)) in strides.enumerate() {
            // No branch depends on what fits, so that one instruction does for all of a stride.
            let (mut gains, mut shares, mut room): ([f64; STRIDE], _, _) = (*gains, [0.0; STRIDE], [0.0; STRIDE]);
            for lane in 0..LANES {
                let weights = columns[lane][at];
                for place in 0..STRIDE {
                    shares[place] += weights[place] * scale[lane];
                    let spare = free[lane] - weights[place];
                    room[place] = if spare < room[place] { spare } else { room[place] };
                }
            }
            for place in 0..STRIDE {
                let fits = room[place] >= 0.0;
                gains[place] = if fits { gains[place] } else { NONE };
                fitting[place] += u64::from(fits);
            }
            for place in 0..STRIDE {
                let score = gains[place] / shares[place];
                most[place] = if score > most[place] { score } else { most[place] };
                scores[place] = score;
            }
        }
        let most = most
            .into_iter()
            .fold(NONE, |most, score| if score > most { score } else { most });
        (most, fitting.iter().sum::<u64>() as usize)
    }
}
