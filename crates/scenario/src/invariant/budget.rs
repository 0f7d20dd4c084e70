//! How many nodes of a pool may be disrupted at a time: the contract read anew, apart from the engine's own reading.

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use serde_json::Value;

use crate::time;

/// The most nodes that may be disrupted for a reason; none when no budget is in force for it.
pub(super) fn allowed(budgets: &[Value], reason: &str, nodes: usize, now: Timestamp) -> Option<usize> {
    let in_force = budgets
        .iter()
        .filter(|budget| is_meant(budget, reason) && is_active(budget, now));
    in_force.filter_map(|budget| count(&budget["nodes"], nodes)).min()
}

fn is_meant(budget: &Value, reason: &str) -> bool {
    let reasons = budget["reasons"].as_array();
    reasons.is_none_or(|reasons| reasons.is_empty() || reasons.iter().any(|one| one == reason))
}

/// A number, or a percentage rounded up.
fn count(value: &Value, nodes: usize) -> Option<usize> {
    if let Some(number) = value.as_u64() {
        return usize::try_from(number).ok();
    }
    let text = value.as_str()?;
    match text.strip_suffix('%') {
        Some(percent) => Some((nodes * percent.parse::<usize>().ok()?).div_ceil(100)),
        None => text.parse().ok(),
    }
}

/// Whether a budget is in force. Schedules other than once a day are taken for not in force, so that nothing is said of
/// them that may be wrong.
fn is_active(budget: &Value, now: Timestamp) -> bool {
    let (Some(schedule), Some(duration)) = (budget["schedule"].as_str(), budget["duration"].as_str()) else {
        return budget["schedule"].is_null();
    };
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    let [minute, hour, "*", "*", "*"] = fields.as_slice() else {
        return false;
    };
    let (Ok(minute), Ok(hour), Ok(lasts)) = (minute.parse::<i64>(), hour.parse::<i64>(), time::parse(duration)) else {
        return false;
    };
    let zoned = now.to_zoned(TimeZone::UTC);
    let into_day = SignedDuration::from_secs(
        i64::from(zoned.hour()) * 3600 + i64::from(zoned.minute()) * 60 + i64::from(zoned.second()),
    );
    let opens = SignedDuration::from_secs(hour * 3600 + minute * 60);
    let since = if into_day >= opens {
        into_day - opens
    } else {
        into_day + SignedDuration::from_hours(24) - opens
    };
    since < SignedDuration::try_from(lasts).unwrap_or(SignedDuration::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_strictest_budget_in_force_counts() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let budgets = [
            json!({"nodes": "10%"}),
            json!({"nodes": "0", "schedule": "0 9 * * *", "duration": "8h"}),
            json!({"nodes": "1", "reasons": ["Drifted"]}),
        ];
        let asked = |reason, now| allowed(&budgets, reason, 25, at(now));
        assert_eq!(asked("Empty", "2026-01-05T08:59:59Z"), Some(3));
        assert_eq!(asked("Empty", "2026-01-05T09:00:00Z"), Some(0));
        assert_eq!(asked("Empty", "2026-01-05T17:00:00Z"), Some(3));
        assert_eq!(asked("Drifted", "2026-01-05T20:00:00Z"), Some(1));
    }
}
