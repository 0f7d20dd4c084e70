//! Which subnet of a zone does a machine go into? The one with most free addresses, those reckoned with that machines
//! under way will take.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use api::labels::CAPACITY_TYPE;
use jiff::Timestamp;
use model::{instance_type::InstanceType, vocabulary::KeyId, vocabulary::Vocabulary};

use crate::border::SubnetFacts;

/// How long a launch is reckoned with: until the next read of the subnet shows it.
const RECKONED: Duration = Duration::from_mins(2);
/// How long a subnet that ran out comes last.
const EXHAUSTED: Duration = Duration::from_mins(3);

/// Addresses that launches under way will take.
#[derive(Debug, Default)]
pub(super) struct Addresses {
    /// By subnet: until when, how many.
    taken: Mutex<BTreeMap<String, Vec<(Timestamp, i64)>>>,
}

impl Addresses {
    /// A subnet for each zone. Addresses are taken from each of them until it is known which one was used.
    pub(super) fn choose(
        &self,
        subnets: &[SubnetFacts],
        needed: impl Fn(&str) -> i64,
        now: Timestamp,
    ) -> BTreeMap<String, String> {
        let mut taken = self.lock();
        for entries in taken.values_mut() {
            entries.retain(|(until, _)| *until > now);
        }
        taken.retain(|_, entries| !entries.is_empty());
        let mut best: BTreeMap<&str, (i64, &str)> = BTreeMap::new();
        for subnet in subnets {
            let under_way: i64 = taken.get(&subnet.id).into_iter().flatten().map(|(_, many)| many).sum();
            let free = i64::from(subnet.free_addresses) - under_way;
            let kept = best.entry(&subnet.zone).or_insert((free, &subnet.id));
            if free > kept.0 {
                *kept = (free, &subnet.id);
            }
        }
        for (zone, (_, id)) in &best {
            taken
                .entry((*id).to_owned())
                .or_default()
                .push((after(now, RECKONED), needed(zone)));
        }
        best.into_iter()
            .map(|(zone, (_, id))| (zone.to_owned(), id.to_owned()))
            .collect()
    }

    /// The launch is over: the addresses of the subnets that were not used are free again.
    pub(super) fn settle(&self, chosen: &BTreeMap<String, String>, used: Option<&str>) {
        let mut taken = self.lock();
        for id in chosen.values().filter(|id| Some(id.as_str()) != used) {
            // The latest entry is as good as the very one of this launch.
            if let Some(entries) = taken.get_mut(id) {
                entries.pop();
            }
        }
    }

    /// A subnet has no addresses left, whatever the last read said.
    pub(super) fn exhausted(&self, subnet: &str, now: Timestamp) {
        let entry = (after(now, EXHAUSTED), i64::from(i32::MAX));
        self.lock().entry(subnet.to_owned()).or_default().insert(0, entry);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Vec<(Timestamp, i64)>>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn after(now: Timestamp, span: Duration) -> Timestamp {
    now.saturating_add(span).unwrap_or(Timestamp::MAX)
}

/// How many addresses a machine in a zone takes at least: its pods', of the smallest type that could be launched there.
pub(super) fn least_pods(types: &[InstanceType], zone: &str, capacity_type: &str, vocabulary: &Vocabulary) -> i64 {
    let is = |key: KeyId, wanted: &str, offering: &model::instance_type::Offering| {
        offering
            .value(key)
            .is_some_and(|value| vocabulary.value_name(key, value) == wanted)
    };
    debug_assert_eq!(vocabulary.key_name(KeyId::CAPACITY_TYPE), CAPACITY_TYPE);
    let offers_here = |entry: &&InstanceType| {
        let mut offerings = entry.offerings.iter().filter(|it| it.is_available);
        offerings.any(|it| is(KeyId::ZONE, zone, it) && is(KeyId::CAPACITY_TYPE, capacity_type, it))
    };
    let pods = types
        .iter()
        .filter(offers_here)
        .map(|entry| entry.capacity.amount("pods").value());
    pods.min().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subnet(id: &str, zone: &str, free: i32) -> SubnetFacts {
        SubnetFacts {
            id: id.to_owned(),
            zone: zone.to_owned(),
            zone_id: String::new(),
            free_addresses: free,
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn the_roomiest_subnet_of_each_zone_is_chosen_the_first_of_equals() {
        let subnets = [
            subnet("s-1", "a", 10),
            subnet("s-2", "a", 90),
            subnet("s-3", "a", 90),
            subnet("s-4", "b", 1),
        ];
        let chosen = Addresses::default().choose(&subnets, |_| 0, at(0));
        assert_eq!(
            chosen,
            [("a", "s-2"), ("b", "s-4")]
                .map(|(zone, id)| (zone.to_owned(), id.to_owned()))
                .into()
        );
    }

    #[test]
    fn launches_under_way_are_reckoned_with_until_the_subnet_is_read_again() {
        let (addresses, subnets) = (Addresses::default(), [subnet("s-1", "a", 100), subnet("s-2", "a", 80)]);
        let choose = |second| addresses.choose(&subnets, |_| 29, at(second))["a"].clone();
        assert_eq!([choose(0), choose(1), choose(2)], ["s-1", "s-2", "s-1"]);
        assert_eq!(choose(500), "s-1");
    }

    #[test]
    fn addresses_of_subnets_that_were_not_used_are_given_back() {
        let (addresses, subnets) = (
            Addresses::default(),
            [subnet("s-1", "a", 100), subnet("s-2", "b", 100), subnet("s-3", "b", 99)],
        );
        let chosen = addresses.choose(&subnets, |_| 29, at(0));
        addresses.settle(&chosen, Some("s-1"));
        assert_eq!(addresses.choose(&subnets, |_| 29, at(1))["b"], "s-2");
    }

    #[test]
    fn a_subnet_that_ran_out_comes_last_for_three_minutes() {
        let (addresses, subnets) = (Addresses::default(), [subnet("s-1", "a", 100), subnet("s-2", "a", 5)]);
        addresses.exhausted("s-1", at(0));
        assert_eq!(addresses.choose(&subnets, |_| 0, at(10))["a"], "s-2");
        assert_eq!(addresses.choose(&subnets, |_| 0, at(181))["a"], "s-1");
    }
}
