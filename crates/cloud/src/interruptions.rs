//! How often does a cloud take machines back? A ledger by offering, and what machines cost once that is counted in.
//!
//! Rates, not counts: an offering with many machines loses more of them. So machine time is written down beside
//! interruptions, both by day and for a week. What was never seen is not taken for safe: every spot offering begins with a
//! little of both, which weighs less the more is known.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use api::labels::{CAPACITY_TYPE, CAPACITY_TYPE_SPOT, INSTANCE_TYPE, ZONE};
use jiff::Timestamp;
use model::{
    object::{InstanceTypeName, NodeClaim, Text},
    price::Price,
};
use serde::{Deserialize, Serialize};

const DAY: i64 = 24 * 60 * 60;
/// Days that are remembered, the present one among them.
const DAYS: i64 = 7;
/// Offerings that are remembered; those with the least machine time go first.
const MOST: usize = 512;
/// Machine time that every offering is credited with.
const ASSUMED_SECONDS: u64 = 24 * 60 * 60;
/// Interruptions of a spot offering in that time: one in so many.
const ASSUMED_PART: u64 = 20;
const HOUR: u128 = 60 * 60;
const MILLION: u128 = 1_000_000;

/// A type in a zone as one kind of capacity.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OfferingKey {
    /// The type.
    pub instance_type: InstanceTypeName,
    /// The zone.
    pub zone: Text,
    /// `spot`, `on-demand` or `reserved`.
    pub capacity_type: Text,
}

impl OfferingKey {
    /// What a claim's machine was launched as; none while that is not known.
    pub fn of(claim: &NodeClaim) -> Option<Self> {
        let label = |key: &str| claim.metadata.labels.get(key).filter(|value| !value.is_empty());
        Some(Self {
            instance_type: InstanceTypeName::from(&**label(INSTANCE_TYPE)?),
            zone: label(ZONE)?.clone(),
            capacity_type: label(CAPACITY_TYPE)?.clone(),
        })
    }
}

/// What happened to an offering's machines on a day.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Day {
    interruptions: u32,
    machine_seconds: u64,
}

/// One line of what is written down.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    #[serde(flatten)]
    offering: OfferingKey,
    /// By the number of the day since 1970.
    days: BTreeMap<i64, Day>,
}

/// The interruptions of a week. It can be written down and read again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<Line>", into = "Vec<Line>")]
pub struct Interruptions {
    offerings: BTreeMap<OfferingKey, BTreeMap<i64, Day>>,
}

/// How often an offering's machines are taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate {
    /// In a million hours of machine time.
    pub per_million_hours: u64,
}

impl Interruptions {
    /// A machine is taken back.
    pub fn interrupted(&mut self, offering: &OfferingKey, now: Timestamp) {
        self.today(offering, now).interruptions += 1;
        self.forget(now);
    }

    /// Machines ran for so long in total.
    pub fn ran(&mut self, offering: &OfferingKey, machine_time: Duration, now: Timestamp) {
        let day = self.today(offering, now);
        day.machine_seconds = day.machine_seconds.saturating_add(machine_time.as_secs());
        self.forget(now);
    }

    /// How often an offering's machines are taken back, as far as is known.
    pub fn rate(&self, offering: &OfferingKey, now: Timestamp) -> Rate {
        let (interruptions, seconds) = self.seen(offering, now);
        let assumed = u64::from(*offering.capacity_type == *CAPACITY_TYPE_SPOT);
        let interruptions = u128::from(u64::from(interruptions) * ASSUMED_PART + assumed);
        let seconds = u128::from(seconds) + u128::from(ASSUMED_SECONDS);
        let rate = interruptions * MILLION * HOUR / (u128::from(ASSUMED_PART) * seconds);
        Rate {
            per_million_hours: u64::try_from(rate).unwrap_or(u64::MAX),
        }
    }

    /// The offerings that something is known of, with interruptions and seconds of machine time.
    pub fn all(&self, now: Timestamp) -> impl Iterator<Item = (&OfferingKey, u32, u64)> {
        self.offerings.keys().map(move |offering| {
            let (interruptions, seconds) = self.seen(offering, now);
            (offering, interruptions, seconds)
        })
    }

    fn seen(&self, offering: &OfferingKey, now: Timestamp) -> (u32, u64) {
        let since = first_day(now);
        let days = self.offerings.get(offering).into_iter().flatten();
        let recent = days.filter(|(day, _)| **day >= since);
        recent.fold((0, 0), |(interruptions, seconds), (_, day)| {
            let interruptions = day.interruptions.saturating_add(interruptions);
            (interruptions, day.machine_seconds.saturating_add(seconds))
        })
    }

    fn today(&mut self, offering: &OfferingKey, now: Timestamp) -> &mut Day {
        let days = self.offerings.entry(offering.clone()).or_default();
        days.entry(day_of(now)).or_default()
    }

    /// Forgets what is older than a week, and offerings beyond the most that are kept.
    fn forget(&mut self, now: Timestamp) {
        let since = first_day(now);
        self.offerings.retain(|_, days| {
            days.retain(|day, _| *day >= since);
            !days.is_empty()
        });
        let excess = self.offerings.len().saturating_sub(MOST);
        if excess == 0 {
            return;
        }
        let known = self.all(now).map(|(key, count, seconds)| (count, seconds, key.clone()));
        let by_weight: BTreeSet<(u32, u64, OfferingKey)> = known.collect();
        for (_, _, key) in by_weight.into_iter().take(excess) {
            self.offerings.remove(&key);
        }
    }
}

impl Rate {
    /// What an hour costs once interruptions are counted in, if each costs as much as the machine does in so much time.
    pub fn expected(self, price: Price, each: Duration) -> Price {
        let picos = u128::from(price.picos());
        let lost = picos.saturating_mul(u128::from(self.per_million_hours) * u128::from(each.as_secs()));
        let expected = picos.saturating_add(lost / (HOUR * MILLION));
        Price::from_picos(u64::try_from(expected).unwrap_or(u64::MAX))
    }
}

impl From<Vec<Line>> for Interruptions {
    fn from(lines: Vec<Line>) -> Self {
        let offerings = lines.into_iter().map(|line| (line.offering, line.days));
        Self {
            offerings: offerings.collect(),
        }
    }
}

impl From<Interruptions> for Vec<Line> {
    fn from(ledger: Interruptions) -> Self {
        let lines = ledger.offerings.into_iter();
        lines.map(|(offering, days)| Line { offering, days }).collect()
    }
}

fn day_of(time: Timestamp) -> i64 {
    time.as_second().div_euclid(DAY)
}

fn first_day(now: Timestamp) -> i64 {
    day_of(now) - (DAYS - 1)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const HOURS: Duration = Duration::from_hours(1);

    fn key(name: &str, capacity_type: &str) -> OfferingKey {
        OfferingKey {
            instance_type: name.into(),
            zone: "zone-a".into(),
            capacity_type: capacity_type.into(),
        }
    }

    fn on(day: i64) -> Timestamp {
        Timestamp::from_second(day * DAY + 1).unwrap()
    }

    #[test]
    fn before_anything_is_known_all_spot_is_a_little_risky_and_nothing_else_is() {
        let ledger = Interruptions::default();
        let rate = |capacity_type| ledger.rate(&key("m5.large", capacity_type), on(9)).per_million_hours;
        // One in twenty days of machine time.
        assert_eq!(rate("spot"), 1_000_000 / (20 * 24));
        assert_eq!([rate("on-demand"), rate("reserved")], [0, 0]);
    }

    #[test]
    fn many_machines_that_lose_some_are_safer_than_few_that_lose_as_many() {
        let (many, few) = (key("m5.large", "spot"), key("c5.large", "spot"));
        let mut ledger = Interruptions::default();
        for offering in [&many, &few] {
            ledger.interrupted(offering, on(9));
            ledger.interrupted(offering, on(9));
        }
        ledger.ran(&many, 976 * HOURS, on(9));
        ledger.ran(&few, 16 * HOURS, on(9));
        assert_eq!(ledger.rate(&many, on(9)).per_million_hours, 2_050);
        assert_eq!(ledger.rate(&few, on(9)).per_million_hours, 51_250);
    }

    #[test]
    fn an_interruption_costs_what_the_machine_does_in_the_time_that_is_named() {
        let price: Price = "0.10".parse().unwrap();
        let rate = Rate {
            per_million_hours: 50_000,
        };
        let expected = |each| rate.expected(price, each).to_decimal();
        assert_eq!(expected(Duration::ZERO), "0.1");
        assert_eq!(expected(HOURS), "0.105");
        assert_eq!(expected(HOURS / 2), "0.1025");
        let worst = Rate {
            per_million_hours: u64::MAX,
        };
        assert_eq!(worst.expected(Price::MAX, 1000 * HOURS), Price::MAX);
    }

    #[test]
    fn a_cheaper_machine_that_is_taken_back_often_ranks_behind_a_dearer_one_that_is_not() {
        let (cheap, dear) = (key("m5.large", "spot"), key("m6i.large", "spot"));
        let mut ledger = Interruptions::default();
        for _ in 0..6 {
            ledger.interrupted(&cheap, on(9));
        }
        for offering in [&cheap, &dear] {
            ledger.ran(offering, 96 * HOURS, on(9));
        }
        let cost = |offering: &OfferingKey, price: &str| {
            let price = price.parse().unwrap();
            ledger.rate(offering, on(9)).expected(price, 2 * HOURS)
        };
        assert!(cost(&cheap, "0.0400") > cost(&dear, "0.0420"));
    }

    #[test]
    fn a_week_later_everything_is_forgotten() {
        let offering = key("m5.large", "spot");
        let mut ledger = Interruptions::default();
        ledger.interrupted(&offering, on(9));
        let fresh = Interruptions::default().rate(&offering, on(9));
        assert!(ledger.rate(&offering, on(15)) > fresh);
        assert_eq!(ledger.rate(&offering, on(16)), fresh);
        ledger.ran(&key("c5.large", "spot"), HOURS, on(16));
        assert_eq!(ledger.all(on(16)).count(), 1);
    }

    #[test]
    fn it_stays_bounded_and_keeps_those_that_were_interrupted() {
        let mut ledger = Interruptions::default();
        let taken = key("a", "spot");
        ledger.interrupted(&taken, on(9));
        for number in 0..2 * MOST {
            ledger.ran(&key(&format!("m{number}"), "spot"), HOURS, on(9));
        }
        assert_eq!(ledger.all(on(9)).count(), MOST);
        assert!(
            ledger
                .all(on(9))
                .any(|(offering, count, _)| (offering, count) == (&taken, 1))
        );
    }

    #[test]
    fn it_can_be_written_down_and_read_again() {
        let mut ledger = Interruptions::default();
        ledger.interrupted(&key("m5.large", "spot"), on(9));
        ledger.ran(&key("m5.large", "spot"), HOURS, on(8));
        let written = serde_json::to_value(&ledger).unwrap();
        let days =
            json!({"8": {"interruptions": 0, "machineSeconds": 3600}, "9": {"interruptions": 1, "machineSeconds": 0}});
        let line = json!({"instanceType": "m5.large", "zone": "zone-a", "capacityType": "spot", "days": days});
        assert_eq!(written, json!([line]));
        assert_eq!(
            serde_json::from_str::<Interruptions>(&written.to_string()).unwrap(),
            ledger
        );
    }

    #[test]
    fn an_offering_is_named_by_the_labels_of_a_claim() {
        let labels = json!({INSTANCE_TYPE: "m5.large", ZONE: "zone-a", CAPACITY_TYPE: "spot"});
        let claim: NodeClaim = serde_json::from_value(json!({"metadata": {"labels": labels}})).unwrap();
        assert_eq!(OfferingKey::of(&claim), Some(key("m5.large", "spot")));
        assert_eq!(OfferingKey::of(&NodeClaim::default()), None);
    }
}
