//! What is not to be had for a while: offerings that ran out, so that the next plan does not ask for them again.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use api::labels::{CAPACITY_TYPE, ZONE};
use jiff::Timestamp;
use model::{
    object::{InstanceTypeName, Text},
    requirement::Operator,
    snapshot::{CatalogOffering, CatalogType},
};
use serde::{Deserialize, Serialize};

use crate::UnavailableOffering;

/// How long a shortage is believed, unless the cloud's code says more.
pub const BELIEVED: Duration = Duration::from_mins(3);

/// The shortages known. It can be written down and read again, so that a restart does not run into all of them anew.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<Record>", into = "Vec<Record>")]
pub struct UnavailableOfferings {
    marks: BTreeMap<Scope, Mark>,
    version: u64,
}

/// What is short; an absent part means all.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Scope {
    instance_type: Option<InstanceTypeName>,
    zone: Option<Text>,
    capacity_type: Option<Text>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Mark {
    until: Timestamp,
    reason: Text,
}

#[derive(Serialize, Deserialize)]
struct Record {
    #[serde(flatten)]
    offering: UnavailableOffering,
    until: Timestamp,
}

impl UnavailableOfferings {
    /// Notes a shortage. One that is noted already is believed anew from now.
    pub fn mark(&mut self, offering: &UnavailableOffering, now: Timestamp) {
        let believed = offering.retry_after.unwrap_or(BELIEVED);
        let until = now.saturating_add(believed).unwrap_or(Timestamp::MAX);
        let reason = offering.reason.clone();
        let before = self.marks.insert(Scope::of(offering), Mark { until, reason });
        if before.is_none_or(|before| before.until <= now) {
            self.version += 1;
        }
    }

    /// Why an offering is not to be had now; none when it is.
    pub fn is_unavailable(
        &self,
        instance_type: &InstanceTypeName,
        zone: &str,
        capacity_type: &str,
        now: Timestamp,
    ) -> Option<&Text> {
        let is_meant = |scope: &Scope| scope.includes(instance_type, Some(zone), Some(capacity_type));
        self.in_force(now)
            .find(|(scope, _)| is_meant(scope))
            .map(|(_, mark)| &mark.reason)
    }

    /// Forgets what is no longer believed. Returns how often the answers changed so far: noting something new counts, and
    /// so does forgetting.
    pub fn version(&mut self, now: Timestamp) -> u64 {
        let known = self.marks.len();
        self.marks.retain(|_, mark| mark.until > now);
        if self.marks.len() < known {
            self.version += 1;
        }
        self.version
    }

    /// The types as they can be had now: offerings that are short are there, but not available. Types without any keep
    /// their allocation.
    pub fn overlay(&self, types: &[Arc<CatalogType>], now: Timestamp) -> Vec<Arc<CatalogType>> {
        types.iter().map(|entry| self.overlaid(entry, now)).collect()
    }

    fn overlaid(&self, entry: &Arc<CatalogType>, now: Timestamp) -> Arc<CatalogType> {
        let is_short = |offering: &CatalogOffering| offering.available && self.is_short(&entry.name, offering, now);
        if !entry.offerings.iter().any(is_short) {
            return Arc::clone(entry);
        }
        let mut masked = CatalogType::clone(entry);
        for offering in &mut masked.offerings {
            offering.available = offering.available && !is_short(offering);
        }
        Arc::new(masked)
    }

    fn is_short(&self, instance_type: &InstanceTypeName, offering: &CatalogOffering, now: Timestamp) -> bool {
        let (zone, capacity_type) = (only_value(offering, ZONE), only_value(offering, CAPACITY_TYPE));
        self.in_force(now)
            .any(|(scope, _)| scope.includes(instance_type, zone, capacity_type))
    }

    fn in_force(&self, now: Timestamp) -> impl Iterator<Item = (&Scope, &Mark)> {
        self.marks.iter().filter(move |(_, mark)| mark.until > now)
    }
}

impl Scope {
    fn of(offering: &UnavailableOffering) -> Self {
        Self {
            instance_type: offering.instance_type.clone(),
            zone: offering.zone.clone(),
            capacity_type: offering.capacity_type.clone(),
        }
    }

    fn includes(&self, instance_type: &InstanceTypeName, zone: Option<&str>, capacity_type: Option<&str>) -> bool {
        self.instance_type.as_ref().is_none_or(|it| it == instance_type)
            && self.zone.as_deref().is_none_or(|it| Some(it) == zone)
            && self.capacity_type.as_deref().is_none_or(|it| Some(it) == capacity_type)
    }
}

fn only_value<'a>(offering: &'a CatalogOffering, key: &str) -> Option<&'a str> {
    let requirement = offering
        .requirements
        .iter()
        .find(|requirement| requirement.key == key)?;
    match (requirement.operator, requirement.values.as_slice()) {
        (Operator::In, [value]) => Some(value),
        _ => None,
    }
}

impl From<Vec<Record>> for UnavailableOfferings {
    fn from(records: Vec<Record>) -> Self {
        let mark = |Record { offering, until }: Record| {
            let reason = offering.reason.clone();
            (Scope::of(&offering), Mark { until, reason })
        };
        Self {
            marks: records.into_iter().map(mark).collect(),
            version: 0,
        }
    }
}

impl From<UnavailableOfferings> for Vec<Record> {
    fn from(known: UnavailableOfferings) -> Self {
        let record = |(scope, mark): (Scope, Mark)| Record {
            offering: UnavailableOffering {
                instance_type: scope.instance_type,
                zone: scope.zone,
                capacity_type: scope.capacity_type,
                reason: mark.reason,
                retry_after: None,
            },
            until: mark.until,
        };
        known.marks.into_iter().map(record).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn short(instance_type: Option<&str>, zone: Option<&str>, capacity_type: Option<&str>) -> UnavailableOffering {
        UnavailableOffering {
            instance_type: instance_type.map(Into::into),
            zone: zone.map(Into::into),
            capacity_type: capacity_type.map(Into::into),
            reason: "InsufficientInstanceCapacity".into(),
            retry_after: None,
        }
    }

    fn offered(name: &str, zone: &str) -> Arc<CatalogType> {
        let requirement = |key: &str, value: &str| format!(r#"{{"key":"{key}","operator":"In","values":["{value}"]}}"#);
        let offering = |kind: &str| {
            let (zone, kind) = (requirement(ZONE, zone), requirement(CAPACITY_TYPE, kind));
            format!(r#"{{"price":"1","available":true,"requirements":[{zone},{kind}]}}"#)
        };
        let json = format!(
            r#"{{"name":"{name}","offerings":[{},{}]}}"#,
            offering("spot"),
            offering("on-demand")
        );
        Arc::new(serde_json::from_str(&json).unwrap())
    }

    fn available(types: &[Arc<CatalogType>]) -> Vec<bool> {
        types
            .iter()
            .flat_map(|entry| &entry.offerings)
            .map(|it| it.available)
            .collect()
    }

    #[test]
    fn a_shortage_is_believed_for_three_minutes_from_when_it_was_last_seen() {
        let mut known = UnavailableOfferings::default();
        known.mark(&short(Some("large"), Some("a"), Some("spot")), at(0));
        known.mark(&short(Some("large"), Some("a"), Some("spot")), at(60));
        let why = |second| {
            known
                .is_unavailable(&"large".into(), "a", "spot", at(second))
                .map(AsRef::as_ref)
        };
        assert_eq!([why(239), why(240)], [Some("InsufficientInstanceCapacity"), None]);
    }

    #[test]
    fn an_absent_part_means_all_of_them() {
        let types = [offered("large", "a"), offered("small", "b")];
        let cases = [
            (short(Some("large"), Some("a"), Some("spot")), [false, true, true, true]),
            (short(Some("large"), None, None), [false, false, true, true]),
            (short(None, Some("b"), None), [true, true, false, false]),
            (short(None, None, Some("spot")), [false, true, false, true]),
            (short(Some("large"), Some("b"), Some("spot")), [true; 4]),
        ];
        for (offering, expected) in cases {
            let mut known = UnavailableOfferings::default();
            known.mark(&offering, at(0));
            assert_eq!(available(&known.overlay(&types, at(1))), expected, "{offering:?}");
        }
    }

    #[test]
    fn types_without_a_shortage_are_shared_and_none_is_left_out() {
        let types = [offered("large", "a"), offered("small", "b")];
        let mut known = UnavailableOfferings::default();
        known.mark(&short(Some("large"), None, None), at(0));
        let overlaid = known.overlay(&types, at(0));
        assert_eq!(overlaid.len(), 2);
        assert!(Arc::ptr_eq(&overlaid[1], &types[1]));
    }

    #[test]
    fn the_version_counts_new_shortages_and_forgotten_ones() {
        let mut known = UnavailableOfferings::default();
        let offering = short(Some("large"), Some("a"), Some("spot"));
        known.mark(&offering, at(0));
        known.mark(&offering, at(10));
        let versions = [known.version(at(20)), known.version(at(190)), known.version(at(191))];
        assert_eq!(versions, [1, 2, 2]);
    }

    #[test]
    fn what_is_known_survives_a_restart() {
        let mut known = UnavailableOfferings::default();
        let for_an_hour = UnavailableOffering {
            retry_after: Some(Duration::from_hours(1)),
            ..short(None, None, Some("spot"))
        };
        known.mark(&for_an_hour, at(0));
        let text = serde_json::to_string(&known).unwrap();
        let expected =
            r#"[{"capacityType":"spot","reason":"InsufficientInstanceCapacity","until":"1970-01-01T01:00:00Z"}]"#;
        assert_eq!(text, expected);
        let again: UnavailableOfferings = serde_json::from_str(&text).unwrap();
        assert!(again.is_unavailable(&"any".into(), "a", "spot", at(3599)).is_some());
    }
}
