//! What is taken already: by claims of the cluster, and by this run so far.
//!
//! A NodeClaim of the run is many instance types at once and will become one of them. Each kind of types has taken its
//! own devices; towards other hosts all of them count, and of shared amounts the most any one kind has taken. When the
//! last type of a kind is dropped, so is what the kind had taken.

use std::collections::{BTreeMap, BTreeSet};

use model::{bitset::BitSet, quantity::Quantity};

use crate::{
    device::{Counter, Dimension, Identity, Offer},
    id::{HostId, KindId},
};

/// Amounts by what they are of.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tally<K>(BTreeMap<K, Quantity>);

impl<K> Default for Tally<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord + Clone> Tally<K> {
    /// The amount, nothing when it was never mentioned.
    pub(crate) fn amount(&self, key: &K) -> Quantity {
        self.0.get(key).copied().unwrap_or_default()
    }

    pub(crate) fn get(&self, key: &K) -> Option<Quantity> {
        self.0.get(key).copied()
    }

    pub(crate) fn set(&mut self, key: K, amount: Quantity) {
        self.0.insert(key, amount);
    }

    pub(crate) fn add(&mut self, key: K, amount: Quantity) {
        *self.0.entry(key).or_default() += amount;
    }

    pub(crate) fn subtract(&mut self, key: &K, amount: Quantity) {
        if let Some(held) = self.0.get_mut(key) {
            *held -= amount;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, Quantity)> {
        self.0.iter().map(|(key, amount)| (key, *amount))
    }

    /// Drops what came down to nothing.
    pub(crate) fn prune(&mut self) {
        self.0.retain(|_, amount| *amount > Quantity::ZERO);
    }

    fn add_all(&mut self, others: &Self) {
        for (key, amount) in others.iter() {
            self.add(key.clone(), amount);
        }
    }

    fn subtract_all(&mut self, others: &Self) {
        for (key, amount) in others.iter() {
            self.subtract(key, amount);
        }
    }

    fn raise_to(&mut self, others: &Self) {
        for (key, amount) in others.iter() {
            let held = self.0.entry(key.clone()).or_default();
            *held = amount.max(*held);
        }
    }
}

/// Devices and amounts in use.
#[derive(Debug, Clone, Default)]
pub(crate) struct Usage {
    /// Devices of one holder; shared ones are only in `capacity`.
    pub(crate) devices: BTreeSet<Identity>,
    pub(crate) counters: Tally<Counter>,
    pub(crate) capacity: Tally<Dimension>,
}

impl Usage {
    fn add_all(&mut self, others: &Self) {
        self.devices.extend(&others.devices);
        self.counters.add_all(&others.counters);
        self.capacity.add_all(&others.capacity);
    }
}

/// What one kind of types of one host has taken.
#[derive(Debug, Clone, Default)]
pub(crate) struct KindUsage {
    /// Of published devices.
    pub(crate) cluster: Usage,
    /// Of devices that come with the types.
    pub(crate) template: Usage,
}

/// What one kind of types of one host holds, and for which types.
#[derive(Debug, Clone, Default)]
struct Holding {
    types: BitSet,
    usage: KindUsage,
}

/// What is taken already.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ledger {
    /// By claims of the cluster; counters are already deducted from `budget`.
    allocated: Usage,
    /// What the pools' counters hold beyond the cluster's claims.
    budget: Tally<Counter>,
    hosts: BTreeMap<HostId, BTreeMap<KindId, Holding>>,
    /// Who holds a published device that has one holder.
    holders: BTreeMap<Identity, BTreeSet<(HostId, KindId)>>,
    /// Over all hosts, of each what its hungriest kind has taken.
    counters: Tally<Counter>,
    capacity: Tally<Dimension>,
}

impl Ledger {
    pub(crate) fn new(allocated: Usage, budget: Tally<Counter>) -> Self {
        Self {
            allocated,
            budget,
            ..Self::default()
        }
    }

    /// Whether a device of one holder cannot be had by this kind of this host. Another kind of the same host does not
    /// stand in the way: only one of them will be launched.
    pub(crate) fn is_taken(&self, offer: &Offer, host: HostId, kind: KindId) -> bool {
        if offer.is_template {
            return self
                .usage(host, kind)
                .is_some_and(|usage| usage.template.devices.contains(&offer.identity));
        }
        let stands_in_the_way = |holder: &(HostId, KindId)| holder.0 != host || holder.1 == kind;
        self.allocated.devices.contains(&offer.identity)
            || self
                .holders
                .get(&offer.identity)
                .is_some_and(|holders| holders.iter().any(stands_in_the_way))
    }

    /// How much of a dimension of a shared device is in use.
    pub(crate) fn consumed(&self, dimension: &Dimension, offer: &Offer, host: HostId, kind: KindId) -> Quantity {
        if offer.is_template {
            let usage = self.usage(host, kind);
            return usage.map_or(Quantity::ZERO, |usage| usage.template.capacity.amount(dimension));
        }
        self.allocated.capacity.amount(dimension) + self.capacity.amount(dimension)
    }

    /// What a published pool's counter still holds; none when the pool has no such counter.
    pub(crate) fn remaining(&self, counter: Counter) -> Option<Quantity> {
        self.budget
            .get(&counter)
            .map(|budget| budget - self.counters.amount(&counter))
    }

    /// What this kind of this host has drawn from a counter of its devices to come.
    pub(crate) fn drawn(&self, counter: Counter, host: HostId, kind: KindId) -> Quantity {
        let usage = self.usage(host, kind);
        usage.map_or(Quantity::ZERO, |usage| usage.template.counters.amount(&counter))
    }

    /// Adds what the types of each kind have taken.
    pub(crate) fn commit(&mut self, host: HostId, taken: &[(KindId, BitSet, KindUsage)]) {
        self.change(host, |kinds| {
            for (kind, types, usage) in taken {
                let held = kinds.entry(*kind).or_default();
                held.types = held.types.union(types);
                held.usage.cluster.add_all(&usage.cluster);
                held.usage.template.add_all(&usage.template);
            }
        });
        for (kind, _, usage) in taken {
            for device in &usage.cluster.devices {
                self.holders.entry(*device).or_default().insert((host, *kind));
            }
        }
    }

    /// Drops types, and with the last type of a kind all that the kind had taken.
    pub(crate) fn release(&mut self, host: HostId, dropped: &BitSet) {
        let mut gone = Vec::new();
        self.change(host, |kinds| {
            for holding in kinds.values_mut() {
                holding.types = holding.types.difference(dropped);
            }
            gone.extend(kinds.extract_if(.., |_, holding| holding.types.is_empty()));
        });
        for (kind, holding) in gone {
            for device in holding.usage.cluster.devices {
                if let Some(holders) = self.holders.get_mut(&device) {
                    holders.remove(&(host, kind));
                }
            }
        }
    }

    /// Changes what a host's types have taken, and what that means to other hosts.
    fn change(&mut self, host: HostId, change: impl FnOnce(&mut BTreeMap<KindId, Holding>)) {
        let kinds = self.hosts.entry(host).or_default();
        let (counters, capacity) = most(kinds);
        change(kinds);
        let (new_counters, new_capacity) = most(kinds);
        self.counters.subtract_all(&counters);
        self.counters.add_all(&new_counters);
        self.capacity.subtract_all(&capacity);
        self.capacity.add_all(&new_capacity);
    }

    fn usage(&self, host: HostId, kind: KindId) -> Option<&KindUsage> {
        let holding = self.hosts.get(&host)?.get(&kind)?;
        Some(&holding.usage)
    }
}

/// Of each counter and dimension the most that any of the kinds has taken.
fn most(kinds: &BTreeMap<KindId, Holding>) -> (Tally<Counter>, Tally<Dimension>) {
    let mut most = (Tally::default(), Tally::default());
    for holding in kinds.values() {
        most.0.raise_to(&holding.usage.cluster.counters);
        most.1.raise_to(&holding.usage.cluster.capacity);
    }
    most
}
