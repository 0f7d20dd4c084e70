//! What ran out lately, and for how long that is believed.
//!
//! A size that ran out takes along those of its quota family that are as large or larger: they would run out too. What is
//! known can be written down and read again, so that a restart does not run into all of it anew.

use std::{collections::BTreeMap, time::Duration};

use api::labels::CAPACITY_TYPE_SPOT;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What ran out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shortage {
    /// Spot, whatever the size and the zone.
    AllSpot {
        /// Upstream's word for why.
        reason: &'static str,
        /// For how long to believe it.
        believed: Duration,
    },
    /// A size somewhere.
    Offering {
        /// The size.
        size: String,
        /// What quotas call its family.
        family: String,
        /// Its virtual CPUs.
        vcpu: i64,
        /// The zone.
        zone: String,
        /// `spot` or `on-demand`.
        capacity_type: String,
        /// Why.
        reason: String,
        /// For how long to believe it.
        believed: Duration,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Scope {
    AllSpot,
    Size {
        size: String,
        zone: String,
        capacity_type: String,
    },
    Family {
        family: String,
        zone: String,
        capacity_type: String,
    },
}

/// Until when, why, and for families from how many virtual CPUs on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Mark {
    until: Timestamp,
    reason: String,
    #[serde(default)]
    from_vcpu: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    scope: Scope,
    #[serde(flatten)]
    mark: Mark,
}

/// What ran out lately.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<Record>", into = "Vec<Record>")]
pub struct Shortages {
    marks: BTreeMap<Scope, Mark>,
    version: u64,
}

impl Shortages {
    /// Notes a shortage. What is noted already is believed anew from now.
    pub fn mark(&mut self, shortage: &Shortage, now: Timestamp) {
        let until = |believed: &Duration| now.saturating_add(*believed).unwrap_or(Timestamp::MAX);
        match shortage {
            Shortage::AllSpot { reason, believed } => {
                self.note(Scope::AllSpot, until(believed), reason, 0, now);
            }
            Shortage::Offering {
                size,
                family,
                vcpu,
                zone,
                capacity_type,
                reason,
                believed,
            } => {
                let (zone, capacity_type) = (zone.clone(), capacity_type.clone());
                let of_size = Scope::Size {
                    size: size.clone(),
                    zone: zone.clone(),
                    capacity_type: capacity_type.clone(),
                };
                self.note(of_size, until(believed), reason, 0, now);
                if !family.is_empty() {
                    let family = family.to_lowercase();
                    let of_family = Scope::Family {
                        family,
                        zone,
                        capacity_type,
                    };
                    self.note(of_family, until(believed), reason, *vcpu, now);
                }
            }
        }
    }

    /// A family's mark can only come down to fewer cores while it is believed.
    fn note(&mut self, scope: Scope, until: Timestamp, reason: &str, from_vcpu: i64, now: Timestamp) {
        let before = self.marks.get(&scope).filter(|mark| mark.until > now);
        let from_vcpu = before.map_or(from_vcpu, |mark| mark.from_vcpu.min(from_vcpu));
        if before.is_none_or(|mark| mark.from_vcpu != from_vcpu) {
            self.version += 1;
        }
        let reason = reason.to_owned();
        self.marks.insert(
            scope,
            Mark {
                until,
                reason,
                from_vcpu,
            },
        );
    }

    /// Why an offering is not to be had now; none when it is.
    pub fn why(
        &self,
        size: &str,
        family: &str,
        vcpu: i64,
        zone: &str,
        capacity_type: &str,
        now: Timestamp,
    ) -> Option<&str> {
        let in_force = |scope: &Scope| self.marks.get(scope).filter(|mark| mark.until > now);
        let (zone, capacity_type) = (zone.to_owned(), capacity_type.to_owned());
        let of_all = in_force(&Scope::AllSpot).filter(|_| capacity_type == CAPACITY_TYPE_SPOT);
        let of_size = Scope::Size {
            size: size.to_owned(),
            zone: zone.clone(),
            capacity_type: capacity_type.clone(),
        };
        let of_family = Scope::Family {
            family: family.to_lowercase(),
            zone,
            capacity_type,
        };
        let found = of_all
            .or_else(|| in_force(&of_size))
            .or_else(|| in_force(&of_family).filter(|mark| vcpu >= mark.from_vcpu));
        found.map(|mark| mark.reason.as_str())
    }

    /// Forgets what is no longer believed. Returns how often the answers changed so far.
    pub fn version(&mut self, now: Timestamp) -> u64 {
        let known = self.marks.len();
        self.marks.retain(|_, mark| mark.until > now);
        if self.marks.len() < known {
            self.version += 1;
        }
        self.version
    }
}

impl From<Vec<Record>> for Shortages {
    fn from(records: Vec<Record>) -> Self {
        Self {
            marks: records.into_iter().map(|it| (it.scope, it.mark)).collect(),
            version: 0,
        }
    }
}

impl From<Shortages> for Vec<Record> {
    fn from(known: Shortages) -> Self {
        known
            .marks
            .into_iter()
            .map(|(scope, mark)| Record { scope, mark })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn short(size: &str, vcpu: i64, zone: &str) -> Shortage {
        Shortage::Offering {
            size: size.to_owned(),
            family: "standardDSv5Family".to_owned(),
            vcpu,
            zone: zone.to_owned(),
            capacity_type: "spot".to_owned(),
            reason: "SKUNotAvailable".to_owned(),
            believed: Duration::from_hours(1),
        }
    }

    fn why<'a>(known: &'a Shortages, size: &str, vcpu: i64, zone: &str, kind: &str, second: i64) -> Option<&'a str> {
        known.why(size, "StandardDSv5Family", vcpu, zone, kind, at(second))
    }

    #[test]
    fn a_size_takes_its_larger_siblings_along_and_not_the_smaller_ones() {
        let mut known = Shortages::default();
        known.mark(&short("Standard_D8s_v5", 8, "eastus-1"), at(0));
        assert!(why(&known, "Standard_D8s_v5", 8, "eastus-1", "spot", 1).is_some());
        assert!(why(&known, "Standard_D16s_v5", 16, "eastus-1", "spot", 1).is_some());
        assert!(why(&known, "Standard_D4s_v5", 4, "eastus-1", "spot", 1).is_none());
        assert!(why(&known, "Standard_D8s_v5", 8, "eastus-2", "spot", 1).is_none());
        assert!(why(&known, "Standard_D8s_v5", 8, "eastus-1", "on-demand", 1).is_none());
    }

    #[test]
    fn a_family_is_out_from_the_smallest_size_seen_and_believed_from_the_last_look() {
        let mut known = Shortages::default();
        known.mark(&short("Standard_D4s_v5", 4, "eastus-1"), at(0));
        known.mark(&short("Standard_D32s_v5", 32, "eastus-1"), at(1800));
        assert!(why(&known, "Standard_D8s_v5", 8, "eastus-1", "spot", 5399).is_some());
        assert!(why(&known, "Standard_D8s_v5", 8, "eastus-1", "spot", 5400).is_none());
    }

    #[test]
    fn without_a_quota_of_spot_there_is_none_anywhere() {
        let mut known = Shortages::default();
        let shortage = Shortage::AllSpot {
            reason: "SubscriptionQuotaReached",
            believed: Duration::from_hours(1),
        };
        known.mark(&shortage, at(0));
        assert_eq!(
            why(&known, "any", 2, "any", "spot", 1),
            Some("SubscriptionQuotaReached")
        );
        assert_eq!(why(&known, "any", 2, "any", "on-demand", 1), None);
    }

    #[test]
    fn the_version_moves_with_what_is_new_and_what_is_forgotten() {
        let mut known = Shortages::default();
        known.mark(&short("Standard_D8s_v5", 8, "eastus-1"), at(0));
        let first = known.version(at(1));
        known.mark(&short("Standard_D8s_v5", 8, "eastus-1"), at(2));
        assert_eq!(known.version(at(3)), first, "nothing new");
        known.mark(&short("Standard_D4s_v5", 4, "eastus-1"), at(4));
        assert!(known.version(at(5)) > first, "the family is out from fewer cores on");
        let second = known.version(at(5));
        assert!(known.version(at(3605)) > second, "forgotten");
    }

    #[test]
    fn what_ran_out_is_known_after_a_restart() {
        let mut known = Shortages::default();
        known.mark(&short("Standard_D8s_v5", 8, "eastus-1"), at(0));
        let text = serde_json::to_string(&known).unwrap();
        let again: Shortages = serde_json::from_str(&text).unwrap();
        assert_eq!(
            why(&again, "Standard_D16s_v5", 16, "eastus-1", "spot", 3599),
            Some("SKUNotAvailable")
        );
    }
}
