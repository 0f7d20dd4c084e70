//! Generated workloads as the plain problem of the cheaper passes, without the solver in between: enough for the mixed
//! and the diverse shapes, in which all labels that matter are known.

use std::{collections::BTreeMap, sync::Arc};

use model::bitset::BitSet;
use packing::cost::{Amounts, Class, Group, Offer, Pool, Problem, Reach, Spread, Zones};
use serde_json::Value;
use workloads::{
    Snapshot,
    catalogue::InstanceType,
    object::{ARCH, CAPACITY_TYPE, HOSTNAME, OS, Object, ZONE},
};

/// A machine for sale.
pub struct Machine {
    /// Its architecture.
    pub arch: String,
    /// Millicores, MiB and pods of the whole machine.
    pub capacity: [i64; 3],
    /// The same, less what the system keeps.
    pub allocatable: [i64; 3],
    /// Capacity type, zone and pico-dollars per hour.
    pub offers: Vec<(String, String, u64)>,
}

/// The linux machines of a generated catalogue.
pub fn machines(types: &[InstanceType]) -> Vec<Machine> {
    let linux = types.iter().filter(|it| values(it, OS).iter().any(|os| os == "linux"));
    linux.map(machine).collect()
}

fn machine(it: &InstanceType) -> Machine {
    let capacity = [1000 * it.cpu, it.memory_mi, it.pods].map(|amount| i64::try_from(amount).unwrap());
    let label = |offering: &workloads::catalogue::Offering, key: &str| {
        let found = offering.requirements.iter().find(|requirement| requirement["key"] == key).unwrap();
        found["values"][0].as_str().unwrap().to_string()
    };
    let offers = it.offerings.iter().map(|o| (label(o, CAPACITY_TYPE), label(o, ZONE), picos(&o.price)));
    Machine {
        arch: values(it, ARCH)[0].clone(),
        capacity,
        allocatable: [capacity[0] - 100, capacity[1] - 10, capacity[2]],
        offers: offers.collect(),
    }
}

fn values(it: &InstanceType, key: &str) -> Vec<String> {
    let requirement = it.requirements.iter().find(|requirement| requirement["key"] == key);
    let values = requirement.and_then(|requirement| requirement["values"].as_array());
    values.into_iter().flatten().map(|value| value.as_str().unwrap().to_string()).collect()
}

fn picos(dollars: &str) -> u64 {
    dollars.parse::<model::price::Price>().unwrap().picos()
}

/// The pending pods of a snapshot on some machines.
pub fn picture(snapshot: &Snapshot, machines: &[Machine]) -> Problem {
    let mut drawing = Drawing::default();
    drawing.sell(machines);
    let mut pods: BTreeMap<String, (Object, u32)> = BTreeMap::new();
    for pod in snapshot.of_kind("Pod") {
        let key = format!("{}{}", pod.get("metadata.labels"), pod.get("spec"));
        pods.entry(key).or_insert_with(|| (pod.clone(), 0)).1 += 1;
    }
    for (pod, count) in pods.into_values() {
        drawing.ask(&pod, count);
    }
    drawing.problem
}

#[derive(Default)]
struct Drawing {
    problem: Problem,
    /// Architecture and capacity type of each offer.
    sold_as: Vec<(String, String)>,
    reaches: BTreeMap<(Option<String>, Option<String>), usize>,
    spreads: BTreeMap<String, usize>,
    groups: BTreeMap<String, usize>,
    homes: BTreeMap<String, usize>,
}

impl Drawing {
    fn sell(&mut self, machines: &[Machine]) {
        self.problem.pools = vec![Pool::default()];
        let (mut zones, mut markets) = (BTreeMap::new(), BTreeMap::new());
        for (row, machine) in machines.iter().enumerate() {
            for (capacity_type, zone, price) in &machine.offers {
                let key = (machine.arch.clone(), capacity_type.clone(), zone.clone());
                let market = number(&mut markets, key);
                let zone = number(&mut zones, zone.clone());
                Arc::make_mut(&mut self.problem.offers).push(Offer {
                    row,
                    market,
                    pool: 0,
                    zone,
                    allocatable: amounts(machine.allocatable),
                    capacity: amounts(machine.capacity),
                    price: *price,
                    is_spot: capacity_type == "spot",
                });
                self.sold_as.push((machine.arch.clone(), capacity_type.clone()));
            }
        }
        self.problem.zones = zones.len();
    }

    fn ask(&mut self, pod: &Object, count: u32) {
        let mut class = Class { count, requests: requests(pod), reach: self.reach(pod), ..Class::default() };
        for constraint in list(pod.get("spec.topologySpreadConstraints")) {
            if selects_itself(pod, constraint) {
                let key = constraint["labelSelector"].to_string();
                if constraint["topologyKey"] == ZONE {
                    class.zones = Zones::Spread(self.spread(key));
                } else {
                    class.groups.push(self.group(format!("spread {key}")));
                }
            }
        }
        let required = "requiredDuringSchedulingIgnoredDuringExecution";
        for term in list(&pod.get("spec.affinity.podAntiAffinity")[required]) {
            assert_eq!(term["topologyKey"], HOSTNAME);
            class.groups.push(self.group(format!("apart {}", term["labelSelector"])));
        }
        for term in list(&pod.get("spec.affinity.podAffinity")[required]) {
            assert_eq!(term["topologyKey"], ZONE);
            class.zones = Zones::Together(number(&mut self.homes, term["labelSelector"].to_string()));
        }
        self.problem.classes.push(class);
    }

    fn reach(&mut self, pod: &Object) -> usize {
        let wanted = |key: &str| Some(pod.get("spec.nodeSelector")[key].as_str()?.to_string());
        let (arch, capacity_type) = (wanted(ARCH), wanted(CAPACITY_TYPE));
        let key = (arch.clone(), capacity_type.clone());
        let reach = number(&mut self.reaches, key);
        if reach == self.problem.reaches.len() {
            let open = |(_, sold): &(u32, &(String, String))| {
                arch.as_ref().is_none_or(|arch| *arch == sold.0)
                    && capacity_type.as_ref().is_none_or(|kind| *kind == sold.1)
            };
            let offers: BitSet = (0..).zip(&self.sold_as).filter(open).map(|(at, _)| at).collect();
            self.problem.reaches.push(Reach { offers, rooms: BitSet::default() });
        }
        reach
    }

    fn spread(&mut self, key: String) -> usize {
        let spread = number(&mut self.spreads, key);
        if spread == self.problem.spreads.len() {
            self.problem.spreads.push(Spread { max_skew: 1, placed: Vec::new() });
        }
        spread
    }

    fn group(&mut self, key: String) -> usize {
        let group = number(&mut self.groups, key);
        if group == self.problem.groups.len() {
            self.problem.groups.push(Group { max: 1 });
        }
        group
    }
}

fn number<K: Ord>(numbers: &mut BTreeMap<K, usize>, key: K) -> usize {
    let next = numbers.len();
    *numbers.entry(key).or_insert(next)
}

fn amounts([cpu, memory, pods]: [i64; 3]) -> Amounts {
    Amounts([cpu, memory, pods, 0, 0, 0])
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn selects_itself(pod: &Object, constraint: &Value) -> bool {
    let wanted = constraint["labelSelector"]["matchLabels"].as_object().unwrap();
    wanted.iter().all(|(key, value)| pod.get("metadata.labels")[key] == *value)
}

fn requests(pod: &Object) -> Amounts {
    let requests = &pod.get("spec.containers")[0]["resources"]["requests"];
    let quantity = |name: &str| requests[name].as_str().unwrap().parse::<model::quantity::Quantity>().unwrap().nanos();
    let amount = |name: &str, unit: i128| i64::try_from(quantity(name) / unit).unwrap();
    amounts([amount("cpu", 1_000_000), amount("memory", 1_000_000_000 << 20), 1])
}
