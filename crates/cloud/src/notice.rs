//! What a cloud says about machines before anybody asks: it will take one back, it stops one, it repairs its host.

use jiff::Timestamp;
use model::object::{ProviderId, Text};

/// What will happen to machines, or has begun to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoticeKind {
    /// The cloud wants its spot capacity back.
    SpotInterruption,
    /// It may want it back before long.
    Rebalance,
    /// The host will be repaired or retired.
    ScheduledChange,
    /// The machine stops, whoever asked for it.
    Stopping,
    /// The machine ends, whoever asked for it.
    Terminating,
    /// The cloud wants the capacity of an interruptible reservation back.
    ReservationInterruption,
    /// The cloud's own checks of the machine or its host fail: it will not get well by being drained.
    Impaired,
}

impl NoticeKind {
    /// As metrics name it: upstream's words.
    pub fn label(self) -> &'static str {
        match self {
            Self::SpotInterruption => "spot_interrupted",
            Self::Rebalance => "rebalance_recommendation",
            Self::ScheduledChange => "scheduled_change",
            Self::Stopping => "instance_stopped",
            Self::Terminating => "instance_terminated",
            Self::ReservationInterruption => "capacity_reservation_interrupted",
            Self::Impaired => "instance_status",
        }
    }

    /// Whether there is nothing to wait for: nothing on the machine can be counted on to end by itself.
    pub fn is_forceful(self) -> bool {
        self == Self::Impaired
    }

    /// Whether the machines will be gone, so that their nodes must be drained before.
    pub fn is_end(self) -> bool {
        self != Self::Rebalance
    }
}

/// A notice. It may come more than once, late, out of order, and about machines that are not ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// What to acknowledge it by.
    pub receipt: Text,
    /// What will happen.
    pub kind: NoticeKind,
    /// To which machines: their provider IDs, or what comes after the last slash of those.
    pub machines: Vec<Text>,
    /// When it was given.
    pub at: Timestamp,
    /// When it will happen, if that is known.
    pub deadline: Option<Timestamp>,
}

impl Notice {
    /// Whether it is about this machine.
    pub fn is_about(&self, id: &ProviderId) -> bool {
        let id = id.as_str();
        let last = id.rsplit('/').next().unwrap_or(id);
        self.machines
            .iter()
            .any(|machine| **machine == *id || **machine == *last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_named_by_its_provider_id_or_by_the_end_of_it() {
        let notice = Notice {
            receipt: "r".into(),
            kind: NoticeKind::SpotInterruption,
            machines: vec!["i-0abc".into(), "kwok://node-1".into()],
            at: Timestamp::UNIX_EPOCH,
            deadline: None,
        };
        let cases = [
            ("aws:///us-east-1a/i-0abc", true),
            ("aws:///us-east-1a/i-0abcd", false),
            ("aws:///us-east-1a/0abc", false),
            ("kwok://node-1", true),
            ("kwok://node-2", false),
        ];
        for (id, expected) in cases {
            assert_eq!(notice.is_about(&id.into()), expected, "{id}");
        }
    }
}
