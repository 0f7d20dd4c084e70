//! What ran out lately: offerings, whole capacity types, subnets without addresses. Each is believed for three minutes
//! from when it was last seen.
//!
//! A placement group's shortages are its own: they say nothing about machines outside it. What is known can be written
//! down and read again, so that a restart does not run into all of it anew.

use std::collections::BTreeMap;

use jiff::Timestamp;
use model::object::InstanceTypeName;
use serde::{Deserialize, Serialize};

use crate::border::Shortage;

/// What is short.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Scope {
    /// A type in a zone; an absent part means all.
    #[serde(rename_all = "camelCase")]
    Offering {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        instance_type: Option<InstanceTypeName>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        zone: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        capacity_type: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        placement_group: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        partition: Option<String>,
    },
    /// A subnet has no address left.
    Subnet(String),
}

/// One line of what is written down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    scope: Scope,
    until: Timestamp,
    reason: String,
}

/// What ran out lately.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<Record>", into = "Vec<Record>")]
pub struct Shortages {
    marks: BTreeMap<Scope, (Timestamp, String)>,
    /// Counts what changed about all types at once.
    sequence: u64,
    /// Counts what changed about one type.
    sequences: BTreeMap<InstanceTypeName, u64>,
}

/// An offering that is asked about.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The type.
    pub instance_type: &'a InstanceTypeName,
    /// The zone.
    pub zone: &'a str,
    /// `spot`, `on-demand` or `reserved`.
    pub capacity_type: &'a str,
    /// The class's subnets in that zone.
    pub subnets: &'a [&'a str],
    /// The class's placement group.
    pub placement_group: Option<&'a str>,
    /// And the partition meant.
    pub partition: Option<&'a str>,
}

impl Shortages {
    /// Notes a shortage. One that is noted already is believed anew from now.
    pub fn mark(&mut self, shortage: &Shortage, now: Timestamp) {
        let until = now.saturating_add(cloud::BELIEVED).unwrap_or(Timestamp::MAX);
        let scope = match &shortage.subnet {
            Some(subnet) => Scope::Subnet(subnet.clone()),
            None => Scope::Offering {
                instance_type: shortage.instance_type.clone(),
                zone: shortage.zone.clone(),
                capacity_type: shortage.capacity_type.clone(),
                placement_group: shortage.placement_group.as_ref().map(|(group, _)| group.clone()),
                partition: shortage.placement_group.as_ref().and_then(|(_, it)| it.clone()),
            },
        };
        self.count(&scope);
        self.marks.insert(scope, (until, shortage.reason.clone()));
    }

    /// Whether an offering is not to be had now.
    pub fn is_unavailable(&self, wanted: &Wanted<'_>, now: Timestamp) -> bool {
        let is_out = |subnet: &&str| {
            let mark = self.marks.get(&Scope::Subnet((*subnet).to_owned()));
            mark.is_some_and(|(until, _)| *until > now)
        };
        let are_subnets_out = !wanted.subnets.is_empty() && wanted.subnets.iter().all(is_out);
        are_subnets_out || self.in_force(now).any(|scope| scope.includes(wanted))
    }

    /// Forgets what is no longer believed. Returns how often the answers about a type changed so far: noting something
    /// counts, and so does forgetting.
    pub fn sequence(&mut self, instance_type: &InstanceTypeName, now: Timestamp) -> u64 {
        self.forget(now);
        self.sequence + self.sequences.get(instance_type).copied().unwrap_or(0)
    }

    /// How often the answers about any type changed so far.
    pub fn version(&mut self, now: Timestamp) -> u64 {
        self.forget(now);
        self.sequence + self.sequences.values().sum::<u64>()
    }

    /// Whether nothing is short.
    pub fn is_empty(&self, now: Timestamp) -> bool {
        self.marks.values().all(|(until, _)| *until <= now)
    }

    fn forget(&mut self, now: Timestamp) {
        let over: Vec<Scope> = self
            .marks
            .iter()
            .filter(|(_, (until, _))| *until <= now)
            .map(|(scope, _)| scope.clone())
            .collect();
        for scope in over {
            self.marks.remove(&scope);
            self.count(&scope);
        }
    }

    fn count(&mut self, scope: &Scope) {
        match scope {
            Scope::Offering {
                instance_type: Some(name),
                ..
            } => *self.sequences.entry(name.clone()).or_default() += 1,
            _ => self.sequence += 1,
        }
    }

    fn in_force(&self, now: Timestamp) -> impl Iterator<Item = &Scope> {
        let marks = self.marks.iter().filter(move |(_, (until, _))| *until > now);
        marks.map(|(scope, _)| scope)
    }
}

impl Scope {
    fn includes(&self, wanted: &Wanted<'_>) -> bool {
        let Self::Offering {
            instance_type,
            zone,
            capacity_type,
            placement_group,
            partition,
        } = self
        else {
            return false;
        };
        instance_type.as_ref().is_none_or(|it| it == wanted.instance_type)
            && zone.as_deref().is_none_or(|it| it == wanted.zone)
            && capacity_type.as_deref().is_none_or(|it| it == wanted.capacity_type)
            && placement_group
                .as_deref()
                .is_none_or(|it| Some(it) == wanted.placement_group)
            && partition.as_deref().is_none_or(|it| Some(it) == wanted.partition)
    }
}

impl From<Vec<Record>> for Shortages {
    fn from(records: Vec<Record>) -> Self {
        let mark = |record: Record| (record.scope, (record.until, record.reason));
        Self {
            marks: records.into_iter().map(mark).collect(),
            ..Self::default()
        }
    }
}

impl From<Shortages> for Vec<Record> {
    fn from(known: Shortages) -> Self {
        let record = |(scope, (until, reason))| Record { scope, until, reason };
        known.marks.into_iter().map(record).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn short(name: Option<&str>, zone: Option<&str>, kind: Option<&str>) -> Shortage {
        Shortage {
            instance_type: name.map(Into::into),
            zone: zone.map(str::to_owned),
            capacity_type: kind.map(str::to_owned),
            reason: "InsufficientInstanceCapacity".to_owned(),
            ..Shortage::default()
        }
    }

    fn is_short(
        known: &Shortages,
        name: &str,
        subnets: &[&str],
        group: Option<(&str, Option<&str>)>,
        second: i64,
    ) -> bool {
        let wanted = Wanted {
            instance_type: &name.into(),
            zone: "us-west-2a",
            capacity_type: "spot",
            subnets,
            placement_group: group.map(|(group, _)| group),
            partition: group.and_then(|(_, partition)| partition),
        };
        known.is_unavailable(&wanted, at(second))
    }

    #[test]
    fn an_offering_that_ran_out_is_avoided_for_three_minutes_from_when_it_was_last_seen() {
        let mut known = Shortages::default();
        let shortage = short(Some("m5.large"), Some("us-west-2a"), Some("spot"));
        known.mark(&shortage, at(0));
        known.mark(&shortage, at(60));
        assert!(is_short(&known, "m5.large", &[], None, 239));
        assert!(!is_short(&known, "m5.large", &[], None, 240));
        assert!(!is_short(&known, "m5.xlarge", &[], None, 100));
    }

    #[test]
    fn a_zone_is_out_when_all_of_its_subnets_are() {
        let mut known = Shortages::default();
        let out = |subnet: &str| Shortage {
            subnet: Some(subnet.to_owned()),
            ..Shortage::default()
        };
        known.mark(&out("subnet-a"), at(0));
        assert!(!is_short(&known, "m5.large", &["subnet-a", "subnet-b"], None, 1));
        known.mark(&out("subnet-b"), at(0));
        assert!(is_short(&known, "m5.large", &["subnet-a", "subnet-b"], None, 1));
        assert!(!is_short(&known, "m5.large", &[], None, 1));
    }

    #[test]
    fn what_a_placement_group_lacks_is_there_outside_it() {
        let mut known = Shortages::default();
        let group = |partition: Option<&str>| Shortage {
            placement_group: Some(("pg-1".to_owned(), partition.map(str::to_owned))),
            ..short(Some("m5.large"), Some("us-west-2a"), Some("spot"))
        };
        known.mark(&group(Some("2")), at(0));
        assert!(is_short(&known, "m5.large", &[], Some(("pg-1", Some("2"))), 1));
        assert!(!is_short(&known, "m5.large", &[], Some(("pg-1", Some("1"))), 1));
        known.mark(&group(None), at(0));
        assert!(is_short(&known, "m5.large", &[], Some(("pg-1", Some("1"))), 1));
        assert!(!is_short(&known, "m5.large", &[], Some(("pg-2", None)), 1));
        assert!(!is_short(&known, "m5.large", &[], None, 1));
    }

    #[test]
    fn the_sequence_of_a_type_moves_with_its_own_shortages_and_with_those_of_all() {
        let mut known = Shortages::default();
        let (large, small): (InstanceTypeName, InstanceTypeName) = ("m5.large".into(), "t3.small".into());
        known.mark(&short(Some("m5.large"), Some("us-west-2a"), Some("spot")), at(0));
        assert_eq!([known.sequence(&large, at(1)), known.sequence(&small, at(1))], [1, 0]);
        known.mark(&short(None, None, Some("spot")), at(1));
        assert_eq!([known.sequence(&large, at(2)), known.sequence(&small, at(2))], [2, 1]);
        // Forgetting counts too.
        assert_eq!(
            [known.sequence(&large, at(180)), known.sequence(&small, at(180))],
            [3, 1]
        );
        assert_eq!(
            [known.sequence(&large, at(181)), known.sequence(&small, at(181))],
            [4, 2]
        );
    }

    #[test]
    fn what_ran_out_is_known_after_a_restart() {
        let mut known = Shortages::default();
        known.mark(&short(Some("m5.large"), Some("us-west-2a"), Some("spot")), at(0));
        let text = serde_json::to_string(&known).unwrap();
        let expected = concat!(
            r#"[{"scope":{"offering":{"instanceType":"m5.large","zone":"us-west-2a","capacityType":"spot"}},"#,
            r#""until":"1970-01-01T00:03:00Z","reason":"InsufficientInstanceCapacity"}]"#
        );
        assert_eq!(text, expected);
        let again: Shortages = serde_json::from_str(&text).unwrap();
        assert!(is_short(&again, "m5.large", &[], None, 179));
        assert!(again.is_empty(at(180)));
    }
}
