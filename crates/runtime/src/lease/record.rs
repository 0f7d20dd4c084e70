//! What a Lease says, and what follows from it: client-go's fields, client-go's rules.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

/// The spec of a Lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    /// Empty when it was given back.
    pub(super) holder: String,
    pub(super) duration_seconds: u64,
    pub(super) acquired: String,
    pub(super) renewed: String,
    pub(super) transitions: u64,
}

/// What to do about a Lease.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Move {
    /// Somebody else holds it.
    Wait,
    /// It is ours, or free.
    Write(Record),
}

impl Record {
    pub(super) fn of(lease: &Value) -> Self {
        let spec = &lease["spec"];
        let text = |field: &str| spec[field].as_str().unwrap_or_default().to_owned();
        let number = |field: &str| spec[field].as_u64().unwrap_or_default();
        Self {
            holder: text("holderIdentity"),
            duration_seconds: number("leaseDurationSeconds"),
            acquired: text("acquireTime"),
            renewed: text("renewTime"),
            transitions: number("leaseTransitions"),
        }
    }

    pub(super) fn held_by(holder: &str, duration: Duration, now: String, transitions: u64) -> Self {
        Self {
            holder: holder.to_owned(),
            duration_seconds: duration.as_secs(),
            acquired: now.clone(),
            renewed: now,
            transitions,
        }
    }

    /// Held by nobody: the next one need not wait.
    pub(super) fn released(now: String, transitions: u64) -> Self {
        Self::held_by("", Duration::from_secs(1), now, transitions)
    }

    pub(super) fn spec(&self) -> Value {
        json!({
            "holderIdentity": self.holder,
            "leaseDurationSeconds": self.duration_seconds,
            "acquireTime": self.acquired,
            "renewTime": self.renewed,
            "leaseTransitions": self.transitions,
        })
    }
}

/// The next move, from the record and for how long it has not changed.
///
/// - Nobody holds it, or its holder has been silent for as long as it promised: we take it.
/// - We hold it: we renew it, and keep when and how often it was taken.
/// - Otherwise we wait.
pub(super) fn next_move(seen: Option<(&Record, Duration)>, me: &str, duration: Duration, now: String) -> Move {
    let Some((record, unchanged)) = seen else {
        return Move::Wait;
    };
    let held = Record::held_by(me, duration, now, record.transitions);
    if record.holder == me {
        return Move::Write(Record {
            acquired: record.acquired.clone(),
            ..held
        });
    }
    if !record.holder.is_empty() && unchanged < Duration::from_secs(record.duration_seconds) {
        return Move::Wait;
    }
    Move::Write(Record {
        transitions: record.transitions + 1,
        ..held
    })
}

/// A time as `MicroTime` is written.
pub(super) fn micro_time(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIFTEEN: Duration = Duration::from_secs(15);

    fn record(holder: &str) -> Record {
        Record::held_by(holder, FIFTEEN, "then".to_owned(), 4)
    }

    #[test]
    fn a_lease_is_taken_when_it_is_free_or_its_holder_silent_and_renewed_when_it_is_ours() {
        let taken = Move::Write(Record {
            transitions: 5,
            ..Record::held_by("me", FIFTEEN, "now".to_owned(), 5)
        });
        let renewed = Move::Write(Record {
            acquired: "then".to_owned(),
            ..Record::held_by("me", FIFTEEN, "now".to_owned(), 4)
        });
        let cases = [
            ("held", record("other"), 14, Move::Wait),
            ("silent", record("other"), 15, taken),
            ("ours", record("me"), 3, renewed),
        ];
        for (name, record, seconds, expected) in cases {
            let seen = Some((&record, Duration::from_secs(seconds)));
            assert_eq!(next_move(seen, "me", FIFTEEN, "now".to_owned()), expected, "{name}");
        }
        let released = Record::released("then".to_owned(), 4);
        let taken = next_move(Some((&released, Duration::ZERO)), "me", FIFTEEN, "now".to_owned());
        assert_eq!(taken, Move::Write(Record::held_by("me", FIFTEEN, "now".to_owned(), 5)));
    }

    #[test]
    fn times_have_six_digits() {
        let time = "2026-11-16T03:00:00.0125Z".parse().unwrap();
        assert_eq!(micro_time(time), "2026-11-16T03:00:00.012500Z");
    }
}
