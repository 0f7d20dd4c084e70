//! What a cloud says about machines before anybody asks: it will take one back, it stops one, it repairs its host.

use std::collections::{BTreeMap, BTreeSet};

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
        let names = names(id);
        self.machines.iter().any(|machine| names.contains(&&**machine))
    }
}

/// What notices may call a machine.
fn names(id: &ProviderId) -> [&str; 2] {
    let id = id.as_str();
    [id, id.rsplit('/').next().unwrap_or(id)]
}

/// Which of many notices are about which machines: so that a machine is looked at once, however many notices there are.
#[derive(Debug)]
pub struct Meant<'a> {
    /// The places of notices among all, by what they call machines.
    by_name: BTreeMap<&'a str, Vec<usize>>,
}

impl<'a> Meant<'a> {
    /// By these notices.
    pub fn of(notices: &'a [Notice]) -> Self {
        let mut by_name: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (place, notice) in notices.iter().enumerate() {
            for machine in &notice.machines {
                by_name.entry(machine).or_default().push(place);
            }
        }
        Self { by_name }
    }

    /// The places of the notices about a machine.
    pub fn about(&self, id: &ProviderId) -> BTreeSet<usize> {
        let named = names(id).into_iter().filter_map(|name| self.by_name.get(name));
        named.flatten().copied().collect()
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

    #[test]
    fn among_many_notices_those_about_a_machine_are_found_once_each() {
        let notice = |machines: &[&str]| Notice {
            receipt: "r".into(),
            kind: NoticeKind::Stopping,
            machines: machines.iter().map(|name| (*name).into()).collect(),
            at: Timestamp::UNIX_EPOCH,
            deadline: None,
        };
        let notices = [
            notice(&["i-1", "i-2"]),
            notice(&["i-2", "aws:///a/i-2"]),
            notice(&["i-1"]),
        ];
        let meant = Meant::of(&notices);
        for (id, expected) in [
            ("aws:///a/i-1", vec![0, 2]),
            ("aws:///a/i-2", vec![0, 1]),
            ("aws:///a/i-3", vec![]),
        ] {
            let about = meant.about(&id.into());
            assert_eq!(about.into_iter().collect::<Vec<_>>(), expected, "{id}");
            let alone = (0..notices.len()).filter(|at| notices[*at].is_about(&id.into()));
            assert_eq!(alone.collect::<Vec<_>>(), expected, "{id}");
        }
    }
}
