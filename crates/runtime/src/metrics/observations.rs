//! Observations counted by size: one series of a histogram.

use super::{
    family::{About, Shown},
    text,
};

/// Observations counted by size.
#[derive(Debug)]
pub struct Observations {
    bounds: &'static [f64],
    /// How many fell between the bound before and this one; the last is past all bounds.
    counts: Box<[u64]>,
    sum: f64,
}

impl Observations {
    /// None yet.
    pub fn new(bounds: &'static [f64]) -> Self {
        Self {
            bounds,
            counts: vec![0; bounds.len() + 1].into(),
            sum: 0.0,
        }
    }

    /// Counts one more.
    pub fn observe(&mut self, value: f64) {
        let at = self.bounds.partition_point(|bound| *bound < value);
        if let Some(count) = self.counts.get_mut(at) {
            *count += 1;
        }
        self.sum += value;
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

impl Shown for Observations {
    fn show(&self, about: &About, values: &[Box<str>], out: &mut String) {
        let mut so_far = 0;
        let bounds = self.bounds.iter().copied().chain([f64::INFINITY]);
        for (bound, count) in bounds.zip(&self.counts) {
            so_far += count;
            let mut le = String::new();
            text::number(&mut le, bound);
            about.part(out, "_bucket", values, Some(("le", &le)), as_float(so_far));
        }
        about.part::<Box<str>>(out, "_sum", values, None, self.sum);
        about.part::<Box<str>>(out, "_count", values, None, as_float(so_far));
    }
}

/// A count as the text format has it.
#[expect(clippy::cast_precision_loss, reason = "no count comes near 2^53")]
pub(super) fn as_float(count: u64) -> f64 {
    count as f64
}
