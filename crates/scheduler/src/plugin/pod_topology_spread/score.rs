//! Which nodes would even the pods out?

use super::super::MAX_NODE_SCORE;

/// What the score counts for.
pub(crate) const WEIGHT: i64 = 2;

/// One `ScheduleAnyway` constraint while the nodes for one pod are scored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SoftSpread {
    max_skew: i64,
    weight: f64,
}

impl SoftSpread {
    /// A constraint over so many domains among the nodes that are left; the more there are, the more a pod counts.
    #[expect(clippy::cast_precision_loss, reason = "upstream computes with fractions here")]
    pub(crate) fn new(max_skew: i64, domains: usize) -> Self {
        Self {
            max_skew,
            weight: ((domains + 2) as f64).ln(),
        }
    }

    /// What so many pods in the node's domain count for.
    #[expect(clippy::cast_precision_loss, reason = "upstream computes with fractions here")]
    pub(crate) fn of_count(self, count: i64) -> f64 {
        count as f64 * self.weight + (self.max_skew - 1) as f64
    }
}

/// Turns sums of [`SoftSpread::of_count`] into scores: the least gets the most. A node that lacks a topology label has
/// none and gets nothing.
pub(crate) fn normalize(sums: &mut [Option<i64>]) {
    let least = sums.iter().flatten().copied().min().unwrap_or(0);
    let most = sums.iter().flatten().copied().max().unwrap_or(0).max(0);
    for sum in sums.iter_mut().flatten() {
        *sum = if most == 0 {
            MAX_NODE_SCORE
        } else {
            MAX_NODE_SCORE * (most + least - *sum) / most
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emptier_domains_score_higher_and_nodes_without_a_domain_nothing() {
        let mut sums = [Some(3), Some(6), None, Some(4)];
        normalize(&mut sums);
        assert_eq!(sums, [Some(100), Some(50), None, Some(83)]);
        let mut even = [Some(0), Some(0)];
        normalize(&mut even);
        assert_eq!(even, [Some(100), Some(100)]);
    }
}
