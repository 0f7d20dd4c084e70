//! How much of our quotas of virtual CPUs is left? Asked before a launch, so that a full quota is no failed launch.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;

use crate::arm::wire::Usage;

/// What is older is not believed: nothing is refused for it.
const BELIEVED: Duration = Duration::from_mins(15);

/// Used and granted virtual CPUs by family.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Quotas {
    by_family: BTreeMap<String, (i64, i64)>,
    read_at: Option<Timestamp>,
    version: u64,
}

impl Quotas {
    /// Takes what Azure says.
    pub(crate) fn read(&mut self, usages: &[Usage], now: Timestamp) {
        let entry = |usage: &Usage| (usage.name.value.to_lowercase(), (usage.current_value, usage.limit));
        let by_family: BTreeMap<_, _> = usages.iter().map(entry).collect();
        self.read_at = Some(now);
        if self.by_family != by_family {
            self.by_family = by_family;
            self.version += 1;
        }
    }

    /// Forgets what is too old. Returns how often the answers changed so far.
    pub(crate) fn version(&mut self, now: Timestamp) -> u64 {
        let is_old = self
            .read_at
            .is_some_and(|at| now.duration_since(at).unsigned_abs() > BELIEVED);
        if is_old {
            self.by_family.clear();
            self.read_at = None;
            self.version += 1;
        }
        self.version
    }

    /// Why a machine of a family cannot be had on demand; none when it can, or nobody knows.
    pub(crate) fn is_full(&self, family: &str, vcpu: i64) -> Option<String> {
        let (used, limit) = self.by_family.get(&family.to_lowercase())?;
        (vcpu > limit - used).then(|| {
            format!(
                "quota {family}: {used} of {limit} vCPUs are used, and {vcpu} more are needed; ask Azure for more quota"
            )
        })
    }

    /// How much of each quota is used, as a part of one.
    #[expect(clippy::cast_precision_loss, reason = "a gauge")]
    pub(crate) fn ratios(&self) -> Vec<(&str, f64)> {
        let granted = self.by_family.iter().filter(|(_, (_, limit))| *limit > 0);
        granted
            .map(|(family, (used, limit))| (family.as_str(), *used as f64 / *limit as f64))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arm::wire::UsageName;

    fn usage(name: &str, current_value: i64, limit: i64) -> Usage {
        Usage {
            name: UsageName { value: name.to_owned() },
            current_value,
            limit,
        }
    }

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_second(minute * 60).unwrap()
    }

    #[test]
    fn a_full_quota_is_told_in_words_and_an_unknown_one_is_not_full() {
        let mut quotas = Quotas::default();
        quotas.read(&[usage("standardDSv5Family", 6, 10)], at(0));
        assert_eq!(quotas.is_full("StandardDSv5Family", 4), None);
        let full = quotas.is_full("standardDSv5Family", 8).unwrap();
        assert!(full.contains("6 of 10 vCPUs are used, and 8 more are needed"), "{full}");
        assert_eq!(quotas.is_full("standardESv5Family", 1000), None);
    }

    #[test]
    fn what_is_older_than_a_quarter_of_an_hour_refuses_nothing() {
        let mut quotas = Quotas::default();
        quotas.read(&[usage("f", 10, 10)], at(0));
        assert_eq!(quotas.version(at(15)), 1);
        assert!(quotas.is_full("f", 2).is_some());
        assert_eq!(quotas.version(at(16)), 2);
        assert_eq!(quotas.is_full("f", 2), None);
    }
}
