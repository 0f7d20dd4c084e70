//! Which subnet of a zone does a machine go into? The one with most free addresses, those reckoned with that machines
//! under way will take.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use api::labels::CAPACITY_TYPE;
use jiff::Timestamp;
use model::{instance_type::InstanceType, vocabulary::KeyId, vocabulary::Vocabulary};

use crate::border::SubnetFacts;

/// How long a subnet that ran out comes last, whatever reads say meanwhile.
const EXHAUSTED: Duration = Duration::from_mins(3);

/// Addresses that launches under way will take.
#[derive(Debug, Default)]
pub(super) struct Addresses {
    subnets: Mutex<BTreeMap<String, Known>>,
    launches: AtomicU64,
}

/// What is known of a subnet.
#[derive(Debug, Default)]
struct Known {
    /// Its free addresses when it was last read.
    free: i64,
    read_at: Timestamp,
    /// What launches since then take.
    taken: Vec<Taken>,
    exhausted_until: Option<Timestamp>,
}

#[derive(Debug)]
struct Taken {
    launch: u64,
    at: Timestamp,
    addresses: i64,
}

impl Known {
    /// A newer read shows what was launched before it.
    fn read(&mut self, facts: &SubnetFacts) {
        if facts.read_at >= self.read_at {
            (self.free, self.read_at) = (i64::from(facts.free_addresses), facts.read_at);
            self.taken.retain(|taken| taken.at > facts.read_at);
        }
    }

    fn left(&self, now: Timestamp) -> i64 {
        if self.exhausted_until.is_some_and(|until| until > now) {
            return i64::MIN;
        }
        let taken: i64 = self.taken.iter().map(|it| it.addresses).sum();
        self.free - taken
    }
}

/// The subnets of a launch, one for each zone.
#[derive(Debug)]
pub(super) struct Chosen {
    launch: u64,
    /// By zone.
    pub(super) subnets: BTreeMap<String, String>,
}

impl Addresses {
    /// A subnet for each zone. Addresses are taken from each of them until it is known which one was used.
    pub(super) fn choose(&self, subnets: &[SubnetFacts], needed: impl Fn(&str) -> i64, now: Timestamp) -> Chosen {
        let mut known = self.lock();
        let mut best: BTreeMap<&str, (i64, &str)> = BTreeMap::new();
        for subnet in subnets {
            let here = known.entry(subnet.id.clone()).or_default();
            here.read(subnet);
            let left = here.left(now);
            let kept = best.entry(&subnet.zone).or_insert((left, &subnet.id));
            if left > kept.0 {
                *kept = (left, &subnet.id);
            }
        }
        let launch = self.launches.fetch_add(1, Ordering::Relaxed);
        for (zone, (_, id)) in &best {
            let taken = Taken {
                launch,
                at: now,
                addresses: needed(zone),
            };
            known.entry((*id).to_owned()).or_default().taken.push(taken);
        }
        let subnets = best.into_iter().map(|(zone, (_, id))| (zone.to_owned(), id.to_owned()));
        Chosen {
            launch,
            subnets: subnets.collect(),
        }
    }

    /// The launch is over: the addresses of the subnets that were not used are free again.
    pub(super) fn settle(&self, chosen: &Chosen, used: Option<&str>) {
        let mut known = self.lock();
        for id in chosen.subnets.values().filter(|id| Some(id.as_str()) != used) {
            if let Some(here) = known.get_mut(id) {
                here.taken.retain(|taken| taken.launch != chosen.launch);
            }
        }
    }

    /// A subnet has no addresses left, whatever the last read said.
    pub(super) fn exhausted(&self, subnet: &str, now: Timestamp) {
        let until = now.saturating_add(EXHAUSTED).unwrap_or(Timestamp::MAX);
        self.lock().entry(subnet.to_owned()).or_default().exhausted_until = Some(until);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Known>> {
        self.subnets.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
            read_at: at(0),
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
            chosen.subnets,
            [("a", "s-2"), ("b", "s-4")]
                .map(|(zone, id)| (zone.to_owned(), id.to_owned()))
                .into()
        );
    }

    #[test]
    fn launches_under_way_are_reckoned_with_until_the_subnet_is_read_again_however_long_that_takes() {
        let addresses = Addresses::default();
        let read = |second| {
            [("s-1", 100), ("s-2", 80)].map(|(id, free)| SubnetFacts {
                read_at: at(second),
                ..subnet(id, "a", free)
            })
        };
        let choose = |read_at, second| addresses.choose(&read(read_at), |_| 29, at(second)).subnets["a"].clone();
        assert_eq!([choose(0, 1), choose(0, 2), choose(0, 3)], ["s-1", "s-2", "s-1"]);
        assert_eq!(choose(0, 600), "s-2", "the subnets are read every ten minutes here");
        assert_eq!(
            choose(601, 602),
            "s-1",
            "all but what was launched since then is in the numbers"
        );
    }

    #[test]
    fn an_older_read_of_another_class_does_not_bring_addresses_back() {
        let addresses = Addresses::default();
        let of = |id: &str, free, second| SubnetFacts {
            read_at: at(second),
            ..subnet(id, "a", free)
        };
        addresses.choose(&[of("s-1", 10, 60)], |_| 0, at(60));
        let other = [of("s-1", 100, 30), of("s-2", 50, 30)];
        assert_eq!(addresses.choose(&other, |_| 0, at(61)).subnets["a"], "s-2");
    }

    #[test]
    fn addresses_of_subnets_that_were_not_used_are_given_back_and_those_of_other_launches_are_not() {
        let (addresses, subnets) = (
            Addresses::default(),
            [subnet("s-1", "a", 100), subnet("s-2", "b", 100), subnet("s-3", "b", 60)],
        );
        let first = addresses.choose(&subnets, |_| 29, at(1));
        let second = addresses.choose(&subnets, |_| 29, at(2));
        assert_eq!([&first.subnets["b"], &second.subnets["b"]], ["s-2", "s-2"]);
        addresses.settle(&first, Some("s-1"));
        assert_eq!(addresses.choose(&subnets, |_| 0, at(3)).subnets["b"], "s-2");
        addresses.settle(&second, Some("s-2"));
        let third = addresses.choose(&subnets, |_| 29, at(4));
        assert_eq!(third.subnets["b"], "s-2", "71 are left there");
        assert_eq!(addresses.choose(&subnets, |_| 29, at(5)).subnets["b"], "s-3");
    }

    #[test]
    fn a_subnet_that_ran_out_comes_last_for_three_minutes() {
        let (addresses, subnets) = (Addresses::default(), [subnet("s-1", "a", 100), subnet("s-2", "a", 5)]);
        addresses.exhausted("s-1", at(0));
        assert_eq!(addresses.choose(&subnets, |_| 0, at(10)).subnets["a"], "s-2");
        assert_eq!(addresses.choose(&subnets, |_| 0, at(181)).subnets["a"], "s-1");
    }
}
