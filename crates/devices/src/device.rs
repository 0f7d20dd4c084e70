//! The devices of a run: those drivers have published, and those instance types come with.

use std::{collections::HashMap, sync::Arc};

use model::{
    object::{CounterSet, Device, DeviceAttribute, DeviceCapacity, Map, ResourceSliceSpec, Text},
    quantity::Quantity,
    requirement::Requirements,
    snapshot::DeviceId,
};

use crate::{
    id::{Numbers, number},
    ledger::Tally,
    selector::Profile,
};

/// A device's name; the published device and the one to come of the same name share it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Identity(u32);

/// A pool's name: driver and pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PoolNumber(u32);

/// A counter of one pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Counter {
    pub(crate) pool: PoolNumber,
    /// Set and counter.
    name: u32,
}

/// A dimension of a shared device's capacity.
pub(crate) type Dimension = (Identity, Text);

/// A device that may be allocated.
#[derive(Debug, Clone)]
pub(crate) struct Offer {
    pub(crate) identity: Identity,
    /// It comes with an instance type and is not published yet: local to its node.
    pub(crate) is_template: bool,
    pub(crate) driver: Text,
    /// Place of its profile among all.
    pub(crate) profile: usize,
    pub(crate) attributes: Map<DeviceAttribute>,
    pub(crate) capacity: Map<DeviceCapacity>,
    /// Several claims may have a share.
    pub(crate) is_shared: bool,
    /// What allocating it draws from its pool's counters.
    pub(crate) draws: Vec<(Counter, Quantity)>,
    /// What it asks of the host.
    pub(crate) topology: Option<Arc<Requirements>>,
}

impl Offer {
    /// The attribute of a qualified name; the driver's own may be published without their domain.
    pub(crate) fn attribute(&self, name: &str) -> Option<&DeviceAttribute> {
        let unqualified = || match name.split_once('/') {
            Some((domain, id)) if domain == self.driver.as_ref() => self.attributes.get(id),
            _ => None,
        };
        self.attributes.get(name).or_else(unqualified)
    }
}

/// All devices of a run, by their place, and the numbers of what they name.
#[derive(Debug, Default)]
pub(crate) struct Devices {
    pub(crate) offers: Vec<Offer>,
    pub(crate) profiles: Vec<Profile>,
    profile_places: HashMap<Profile, usize>,
    identities: Numbers<DeviceId>,
    names: Vec<DeviceId>,
    pools: Numbers<(Text, Text)>,
    counters: Numbers<(Text, Text)>,
}

impl Devices {
    /// Adds the devices of a slice and says where they are.
    pub(crate) fn add(
        &mut self,
        slice: &ResourceSliceSpec,
        is_template: bool,
        topology: Option<&Arc<Requirements>>,
    ) -> std::ops::Range<usize> {
        let start = self.offers.len();
        for device in &slice.devices {
            let offer = self.offer(slice, device, is_template, topology);
            self.offers.push(offer);
        }
        start..self.offers.len()
    }

    pub(crate) fn pool(&mut self, driver: &Text, pool: &Text) -> PoolNumber {
        PoolNumber(self.pools.of((driver.clone(), pool.clone())))
    }

    pub(crate) fn identity(&mut self, id: DeviceId) -> Identity {
        let identity = self.identities.of(id.clone());
        if self.names.len() < self.identities.len() {
            self.names.push(id);
        }
        Identity(identity)
    }

    pub(crate) fn name(&self, identity: Identity) -> Option<&DeviceId> {
        self.names.get(identity.0 as usize)
    }

    /// What the counters of the sets hold; a later set of the same name overrides the counters it shares.
    pub(crate) fn tally<'a>(
        &mut self,
        pool: PoolNumber,
        sets: impl IntoIterator<Item = &'a CounterSet>,
    ) -> Tally<Counter> {
        let mut tally = Tally::default();
        for set in sets {
            for (name, counter) in &set.counters {
                let key = self.counter(pool, &set.name, name);
                tally.set(key, counter.value);
            }
        }
        tally
    }

    fn counter(&mut self, pool: PoolNumber, set: &Text, name: &Text) -> Counter {
        let name = self.counters.of((set.clone(), name.clone()));
        Counter { pool, name }
    }

    fn offer(
        &mut self,
        slice: &ResourceSliceSpec,
        device: &Device,
        is_template: bool,
        topology: Option<&Arc<Requirements>>,
    ) -> Offer {
        let pool = self.pool(&slice.driver, &slice.pool.name);
        let identity = self.identity(DeviceId {
            driver: slice.driver.clone(),
            pool: slice.pool.name.clone(),
            device: device.name.clone(),
        });
        Offer {
            identity,
            is_template,
            driver: slice.driver.clone(),
            profile: self.profile(Profile::new(&slice.driver, device)),
            attributes: device.attributes.clone(),
            capacity: device.capacity.clone(),
            is_shared: device.allow_multiple_allocations.unwrap_or_default(),
            draws: self.draws(pool, device),
            topology: topology.cloned(),
        }
    }

    fn profile(&mut self, profile: Profile) -> usize {
        let next = self.profiles.len();
        let place = *self.profile_places.entry(profile.clone()).or_insert(next);
        if place == next {
            self.profiles.push(profile);
        }
        place
    }

    fn draws(&mut self, pool: PoolNumber, device: &Device) -> Vec<(Counter, Quantity)> {
        let mut draws = Vec::new();
        for consumption in &device.consumes_counters {
            for (name, counter) in &consumption.counters {
                let key = self.counter(pool, &consumption.counter_set, name);
                draws.push((key, counter.value));
            }
        }
        draws
    }
}

/// Positions of offers.
pub(crate) fn positions(range: &std::ops::Range<usize>) -> impl Iterator<Item = u32> {
    range.clone().map(number)
}
