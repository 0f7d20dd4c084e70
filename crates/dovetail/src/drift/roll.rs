//! In which windows nodes are replaced, how many at a time, and until when: by the budgets themselves.

use disruption::{Reason, UNLIMITED, windows};
use jiff::{SignedDuration, Timestamp};
use model::object::NodePool;
use serde::Serialize;

/// So far ahead windows are looked at.
const AHEAD: SignedDuration = SignedDuration::from_hours(60 * 24);

/// How a pool's nodes are replaced.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct Roll {
    /// When the first may go; none where no window opens.
    pub(super) starts_at: Option<Timestamp>,
    /// When the last is gone, an estimate.
    pub(super) ends_at: Option<Timestamp>,
    /// How many waves, at how many nodes at a time at most.
    pub(super) waves: usize,
    pub(super) at_a_time: usize,
    pub(super) wave_minutes: i64,
    /// Why nothing goes, where that is so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) closed: Option<String>,
}

/// How so many nodes of a pool of so many would be replaced, a wave taking so long.
pub(super) fn plan(pool: &NodePool, nodes: usize, total: usize, now: Timestamp, wave: SignedDuration) -> Roll {
    let mut roll = Roll {
        wave_minutes: wave.as_mins(),
        ..Roll::default()
    };
    if nodes == 0 || wave <= SignedDuration::ZERO {
        return roll;
    }
    let to = now.saturating_add(AHEAD).unwrap_or(now);
    let total = u32::try_from(total).unwrap_or(u32::MAX);
    let windows = match windows(pool, total, now, to) {
        Ok(windows) => windows,
        Err(error) => {
            roll.closed = Some(error.to_string());
            return roll;
        }
    };
    let mut left = nodes;
    for window in windows {
        let allowed = window.allowed.get(&Reason::Drifted).copied().unwrap_or(UNLIMITED);
        let allowed = usize::try_from(allowed).unwrap_or(usize::MAX).min(nodes);
        let mut at = window.from;
        while left > 0 && allowed > 0 && at < window.until {
            roll.starts_at = roll.starts_at.or(Some(at));
            roll.at_a_time = roll.at_a_time.max(allowed);
            roll.waves += 1;
            left = left.saturating_sub(allowed);
            // A wave that has begun ends, also after its window.
            at = at.saturating_add(wave).unwrap_or(window.until);
            roll.ends_at = Some(at);
        }
        if left == 0 {
            return roll;
        }
    }
    roll.ends_at = None;
    if roll.starts_at.is_none() {
        roll.closed = Some("no window for drift in 60 days".to_owned());
    }
    roll
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pool(budgets: &serde_json::Value) -> NodePool {
        serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": {"disruption": {"budgets": budgets}}}))
            .unwrap()
    }

    /// A Monday.
    fn now() -> Timestamp {
        "2026-11-16T15:42:00Z".parse().unwrap()
    }

    #[test]
    fn a_roll_waits_for_its_window_and_goes_on_in_the_next() {
        // Closed but for Saturday from 7 to 8.
        let budgets = json!([{"nodes": "2"}, {"nodes": "0", "schedule": "0 8 * * 6", "duration": "167h"}]);
        let roll = plan(&pool(&budgets), 11, 11, now(), SignedDuration::from_mins(15));
        let at = |text: &str| Some(text.parse().unwrap());
        assert_eq!(roll.starts_at, at("2026-11-21T07:00:00Z"));
        assert_eq!(
            (roll.waves, roll.at_a_time),
            (6, 2),
            "4 waves in the first window, 2 in the second"
        );
        assert_eq!(roll.ends_at, at("2026-11-28T07:30:00Z"));
    }

    #[test]
    fn a_pool_that_never_opens_says_so() {
        let roll = plan(
            &pool(&json!([{"nodes": "0"}])),
            3,
            3,
            now(),
            SignedDuration::from_mins(15),
        );
        assert_eq!((roll.starts_at, roll.waves), (None, 0));
        assert_eq!(roll.closed.as_deref(), Some("no window for drift in 60 days"));
    }
}
