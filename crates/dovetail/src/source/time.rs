//! Of which time is a dump? What somebody says, what a snapshot file says, or else the newest time in its objects.

use jiff::{SignedDuration, Timestamp};
use model::snapshot::{Snapshot, Title};
use runtime::Clock;

use super::rebuilt;

/// Stands for a time that nobody has said; the dump reader wants one.
pub(super) const UNKNOWN: Timestamp = Timestamp::MIN;

/// A time as people write it: RFC 3339, `14:03` of today in UTC, `2h ago`.
pub(crate) fn parsed(text: &str) -> Result<Timestamp, String> {
    parsed_at(text, Clock::system().now())
}

fn parsed_at(text: &str, now: Timestamp) -> Result<Timestamp, String> {
    let relative = text
        .strip_suffix(" ago")
        .map(|span| span.trim().parse::<SignedDuration>());
    let found = match relative {
        Some(span) => span.ok().and_then(|span| now.checked_sub(span).ok()),
        None => text.parse::<Timestamp>().ok().or_else(|| clock_time(text, now)),
    };
    found.ok_or_else(|| format!("{text:?} is no time: write 2026-11-16T15:42:00Z, 15:42, or \"2h ago\""))
}

fn clock_time(text: &str, now: Timestamp) -> Option<Timestamp> {
    let day = now.strftime("%Y-%m-%d");
    let seconds = if text.matches(':').count() == 1 { ":00" } else { "" };
    format!("{day}T{text}{seconds}Z").parse().ok()
}

/// The snapshot with its time, and how that was found where nobody said it.
pub(super) fn dated(said: Option<Timestamp>, snapshot: Snapshot, now: Timestamp) -> (Snapshot, Option<String>) {
    if said.is_none() && snapshot.taken_at() != UNKNOWN {
        return (snapshot, None);
    }
    let newest = newest(&snapshot).filter(|time| *time <= now);
    let title = |taken_at| Title {
        taken_at,
        ..snapshot.title().clone()
    };
    match (said, newest) {
        (Some(said), _) => (rebuilt(&snapshot, title(said), None), None),
        (None, Some(newest)) => {
            let word = format!("taken at {newest}, the newest time in its objects (--at says another)");
            (rebuilt(&snapshot, title(newest), None), Some(word))
        }
        (None, None) => (rebuilt(&snapshot, title(now), None), None),
    }
}

/// The newest time at which something happened to any of the objects.
fn newest(snapshot: &Snapshot) -> Option<Timestamp> {
    let objects = snapshot.objects();
    let pods = objects.pods.iter().flat_map(|pod| {
        let conditions = pod.status.conditions.iter();
        let times = [pod.metadata.creation_timestamp, pod.status.start_time];
        times
            .into_iter()
            .chain(conditions.map(|condition| condition.last_transition_time))
    });
    let claims = objects.node_claims.iter().flat_map(|claim| {
        let conditions = claim.status.conditions.iter();
        let times = [claim.metadata.creation_timestamp, claim.status.last_pod_event_time];
        times
            .into_iter()
            .chain(conditions.map(|condition| condition.last_transition_time))
    });
    let nodes = objects.nodes.iter().flat_map(|node| {
        let conditions = node.status.conditions.iter();
        let times = [node.metadata.creation_timestamp];
        times
            .into_iter()
            .chain(conditions.map(|condition| condition.last_transition_time))
    });
    let pools = objects.node_pools.iter().flat_map(|pool| {
        let conditions = pool.status.conditions.iter();
        let times = [pool.metadata.creation_timestamp];
        times
            .into_iter()
            .chain(conditions.map(|condition| condition.last_transition_time))
    });
    pods.chain(claims).chain(nodes).chain(pools).flatten().max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_in_full_as_a_clock_shows_it_or_as_so_long_ago() {
        let now = "2026-11-16T15:42:00Z".parse().unwrap();
        let cases = [
            ("2026-11-16T14:03:00Z", Some("2026-11-16T14:03:00Z")),
            ("14:03", Some("2026-11-16T14:03:00Z")),
            ("14:03:07", Some("2026-11-16T14:03:07Z")),
            ("2h ago", Some("2026-11-16T13:42:00Z")),
            ("1h 2m ago", Some("2026-11-16T14:40:00Z")),
            ("yesterday", None),
            ("25:00", None),
        ];
        for (text, expected) in cases {
            let expected = expected.map(|time| time.parse().unwrap());
            assert_eq!(parsed_at(text, now).ok(), expected, "{text}");
        }
    }
}
