//! Pods that are known to come soon: would the nodes of a command be missing then?

use std::sync::OnceLock;

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use model::object::NodeName;
use packing::Prepared;

use crate::{
    budget::zone_named,
    candidate::Candidate,
    cron::Cron,
    options::Consolidation,
    refusal::Rule,
    trial::{self, prepared},
    world::World,
};

/// `"off"` lets nodes of a NodePool go although pods of CronJobs will need them in a few minutes. On a NodePool.
pub const EXPECTED_PODS_GUARD: &str = "dovetail.dev/expected-pods-guard";

/// Whether a schedule hits within a span from now on. One that cannot be read never does.
pub fn fires_within(schedule: &str, zone: Option<&str>, now: Timestamp, span: SignedDuration) -> bool {
    let zone = match zone {
        Some(name) => zone_named(name),
        None => Some(TimeZone::UTC),
    };
    let (Some(zone), Ok(cron)) = (zone, Cron::parse(schedule)) else {
        return false;
    };
    let until = now.saturating_add(span).unwrap_or(Timestamp::MAX);
    cron.next(now, &zone).is_some_and(|hit| hit <= until)
}

/// The cluster with the pods that will come, asked once.
#[derive(Default)]
pub(crate) struct Expected {
    prepared: OnceLock<Prepared>,
    baseline: OnceLock<Need>,
}

/// What pods lack: nodes that must come for them, and a place at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Need {
    claims: usize,
    left: usize,
}

impl Expected {
    fn prepared(&self, world: &World<'_>) -> &Prepared {
        self.prepared.get_or_init(|| {
            let pods = world.facts.expected.clone();
            let snapshot = world
                .snapshot
                .overlaid(|objects| objects.pods = objects.pods.with(pods));
            prepared(world, &snapshot, false)
        })
    }

    fn need(&self, world: &World<'_>, without: &[NodeName]) -> Option<Need> {
        let asked = self
            .prepared(world)
            .simulator()
            .ask(without, trial::moves(world), |after| Need {
                claims: after.claims(),
                left: after.left().count(),
            });
        asked.ok()
    }

    fn baseline(&self, world: &World<'_>) -> Option<Need> {
        if let Some(known) = self.baseline.get() {
            return Some(*known);
        }
        let need = self.need(world, &[])?;
        Some(*self.baseline.get_or_init(|| need))
    }
}

/// Why nodes had better stay, replaced by so many others: pods that are about to come would need more new nodes without
/// them than with them.
pub(crate) fn check(world: &World<'_>, candidates: &[Candidate], replacements: usize) -> Option<Rule> {
    let is_off = world.facts.expected.is_empty() || world.options.consolidation == Consolidation::Faithful;
    if is_off || candidates.iter().all(|candidate| is_unguarded(world, candidate)) {
        return None;
    }
    let with = world.expected.baseline(world)?;
    let without = world.expected.need(world, &trial::names(candidates))?;
    let is_missed = without.claims > with.claims + replacements || without.left > with.left;
    is_missed.then_some(Rule::NeededSoon(world.facts.expected.len()))
}

fn is_unguarded(world: &World<'_>, candidate: &Candidate) -> bool {
    let pool = world.pool(&candidate.node_pool);
    let word = pool.and_then(|pool| pool.metadata.annotations.get(EXPECTED_PODS_GUARD));
    word.is_some_and(|word| **word == *"off")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_is_near_when_it_hits_within_the_span() {
        let now = "2026-11-16T07:55:00Z".parse().unwrap();
        let ten = SignedDuration::from_mins(10);
        let cases = [
            ("0 8 * * *", None, true),
            ("5 8 * * *", None, true),
            ("6 8 * * *", None, false),
            ("55 7 * * *", None, false),
            ("0 9 * * *", Some("Europe/Vienna"), true),
            ("0 8 * * *", Some("Europe/Vienna"), false),
            ("0 8 * * *", Some("Atlantis"), false),
            ("soon", None, false),
        ];
        for (schedule, zone, expected) in cases {
            assert_eq!(fires_within(schedule, zone, now, ten), expected, "{schedule} {zone:?}");
        }
    }
}
