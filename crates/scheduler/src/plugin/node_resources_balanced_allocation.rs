//! Would the pod make the shares of processors and memory that are taken more alike?

use super::MAX_NODE_SCORE;

/// What the score counts for.
pub(crate) const WEIGHT: i64 = 1;

/// 75 when the pod changes nothing, up to 100 when it evens the shares out, down to 50 when it sets them apart.
pub(crate) fn score(requested: [i64; 2], allocated: [i64; 2], allocatable: [i64; 2]) -> i64 {
    let half = MAX_NODE_SCORE / 2;
    half + (half + balance(requested, allocatable) - balance(allocated, allocatable)) / 2
}

/// How alike the shares are. The one place where the scheduler computes with fractions, so we do too.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "upstream rounds like this, and the score must be the same"
)]
fn balance(requested: [i64; 2], allocatable: [i64; 2]) -> i64 {
    let share = |requested: i64, allocatable: i64| (requested as f64 / allocatable as f64).min(1.0);
    let deviation = if allocatable.contains(&0) {
        0.0
    } else {
        let [cpu, memory] = [share(requested[0], allocatable[0]), share(requested[1], allocatable[1])];
        ((cpu - memory) / 2.0).abs()
    };
    ((1.0 - deviation) * MAX_NODE_SCORE as f64) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evening_the_shares_out_scores_above_75_and_setting_them_apart_below() {
        let cases = [
            // 60 % and 25 % after, nothing before: 50 + (50 + 82 - 100) / 2
            (([6000, 5000], [0, 0], [10000, 20000]), 66),
            // 30 % and 50 % before, 60 % and 50 % after: 50 + (50 + 95 - 90) / 2
            (([6000, 10000], [3000, 10000], [10000, 20000]), 77),
            (([5000, 10000], [0, 0], [10000, 20000]), 75),
            (([5000, 0], [0, 0], [10000, 0]), 75),
        ];
        for ((requested, allocated, allocatable), expected) in cases {
            assert_eq!(score(requested, allocated, allocatable), expected, "{requested:?}");
        }
    }
}
