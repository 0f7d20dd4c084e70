//! Quantiles of what was observed in the last ten minutes: one series of a summary.
//!
//! As client_golang ages them: five spans of two minutes, the oldest dropped as a new one begins. Within a span, values
//! stand for themselves until they are many; then every other one stands for two, of those in turn every other one for
//! four, and so on, which keeps ranks within one in a hundred.

use std::time::Duration;

use tokio::time::Instant;

use super::{
    family::{About, Shown},
    observations::as_float,
};

const SPANS: usize = 5;
const SPAN: Duration = Duration::from_mins(2);
/// Past this many values of one weight, every other one is dropped and the rest weigh twice as much.
const MOST: usize = 512;
const SHOWN: [(f64, &str); 5] = [(0.0, "0"), (0.5, "0.5"), (0.9, "0.9"), (0.99, "0.99"), (1.0, "1")];

/// Quantiles of what was lately observed.
#[derive(Debug)]
pub(super) struct Quantiles {
    began: Instant,
    spans: [Span; SPANS],
    sum: f64,
    count: u64,
}

#[derive(Debug, Default)]
struct Span {
    /// Which span since the beginning this is.
    number: u64,
    /// Values by weight: 1, 2, 4, …
    levels: Vec<Vec<f64>>,
    /// Which of two neighbours goes next time, so that neither side is favoured.
    drops_odd: bool,
    least: f64,
    most: f64,
}

impl Default for Quantiles {
    fn default() -> Self {
        Self {
            began: Instant::now(),
            spans: std::array::from_fn(|_| Span::default()),
            sum: 0.0,
            count: 0,
        }
    }
}

impl Quantiles {
    /// Counts one observation, now.
    pub(super) fn observe(&mut self, value: f64) {
        let number = self.number();
        let at = usize::try_from(number).unwrap_or_default() % SPANS;
        if let Some(span) = self.spans.get_mut(at) {
            span.observe(number, value);
        }
        self.sum += value;
        self.count += 1;
    }

    /// The number of the present span.
    fn number(&self) -> u64 {
        self.began.elapsed().as_secs() / SPAN.as_secs()
    }

    /// What is still young enough, with its weight, sorted.
    fn recent(&self) -> Vec<(f64, u64)> {
        let now = self.number();
        let young = self.spans.iter().filter(|span| span.number + (SPANS as u64) > now);
        let mut values: Vec<(f64, u64)> = young.flat_map(Span::weighted).collect();
        values.sort_by(|one, two| one.0.total_cmp(&two.0));
        values
    }
}

impl Span {
    fn observe(&mut self, number: u64, value: f64) {
        if self.number != number || self.levels.is_empty() {
            *self = Self {
                number,
                levels: vec![Vec::new()],
                drops_odd: false,
                least: value,
                most: value,
            };
        }
        (self.least, self.most) = (self.least.min(value), self.most.max(value));
        self.put(0, value);
    }

    fn put(&mut self, level: usize, value: f64) {
        if self.levels.len() == level {
            self.levels.push(Vec::new());
        }
        let Some(values) = self.levels.get_mut(level) else {
            return;
        };
        values.push(value);
        if values.len() < MOST {
            return;
        }
        let mut full = std::mem::take(values);
        full.sort_by(f64::total_cmp);
        self.drops_odd = !self.drops_odd;
        for kept in full.into_iter().skip(usize::from(self.drops_odd)).step_by(2) {
            self.put(level + 1, kept);
        }
    }

    /// The values with their weights; the least and the most are never lost.
    fn weighted(&self) -> impl Iterator<Item = (f64, u64)> {
        let ends = (self.levels.len() > 1).then_some([(self.least, 0), (self.most, 0)]);
        let values = (0u32..).zip(&self.levels);
        let values = values.flat_map(|(level, values)| values.iter().map(move |value| (*value, 1u64 << level)));
        values.chain(ends.into_iter().flatten())
    }
}

/// The value at a share of all, by nearest rank; not a number when there is none.
fn quantile(sorted: &[(f64, u64)], share: f64) -> f64 {
    let total: u64 = sorted.iter().map(|(_, weight)| weight).sum();
    let rank = (share * as_float(total)).ceil();
    if share >= 1.0 {
        return sorted.last().map_or(f64::NAN, |(value, _)| *value);
    }
    let mut seen = 0;
    let reached = sorted.iter().find(|(_, weight)| {
        seen += weight;
        as_float(seen) >= rank
    });
    reached.or(sorted.last()).map_or(f64::NAN, |(value, _)| *value)
}

impl Shown for Quantiles {
    fn show(&self, about: &About, values: &[Box<str>], out: &mut String) {
        let sorted = self.recent();
        for (share, name) in SHOWN {
            about.part(out, "", values, Some(("quantile", name)), quantile(&sorted, share));
        }
        about.part::<Box<str>>(out, "_sum", values, None, self.sum);
        about.part::<Box<str>>(out, "_count", values, None, as_float(self.count));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(quantiles: &Quantiles) -> Vec<f64> {
        let sorted = quantiles.recent();
        SHOWN.iter().map(|(share, _)| quantile(&sorted, *share)).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_older_than_ten_minutes_counts_no_more() {
        let mut quantiles = Quantiles::default();
        quantiles.observe(100.0);
        tokio::time::advance(SPAN * 4).await;
        quantiles.observe(1.0);
        assert_eq!(shown(&quantiles), [1.0, 1.0, 100.0, 100.0, 100.0]);
        tokio::time::advance(SPAN).await;
        assert_eq!(shown(&quantiles), [1.0; 5]);
        tokio::time::advance(SPAN * 5).await;
        assert!(shown(&quantiles).iter().all(|value| value.is_nan()));
        assert_eq!((quantiles.count, quantiles.sum), (2, 101.0));
    }

    #[tokio::test(start_paused = true)]
    async fn many_observations_keep_their_ranks_within_one_in_a_hundred() {
        let mut quantiles = Quantiles::default();
        // 37 and 100,000 have no common factor, so this is every number below 100,000 once, out of order.
        for step in 0..100_000u32 {
            quantiles.observe(f64::from(step * 37 % 100_000));
        }
        let got = shown(&quantiles);
        assert_eq!((got[0], got[4]), (0.0, 99_999.0));
        for (value, rank) in got[1..4].iter().zip([50_000.0, 90_000.0, 99_000.0]) {
            assert!((value - rank).abs() <= 1000.0, "{value} should be near {rank}");
        }
        assert!(
            quantiles
                .spans
                .iter()
                .flat_map(|span| &span.levels)
                .all(|level| level.len() < MOST)
        );
    }
}
