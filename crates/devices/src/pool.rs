//! Which published devices can a host use? Slices by pool, newest generation only, narrowed to what reaches the host.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    sync::Arc,
};

use model::{
    object::{CounterSet, ResourceSlice, ResourceSliceSpec, Text},
    quantity::Quantity,
    requirement::Requirements,
    vocabulary::Vocabulary,
};

use crate::{
    device::{Counter, Devices, PoolNumber, positions},
    ledger::{Tally, Usage},
    reach::{self, Reach},
};

/// A pool as its driver published it.
#[derive(Debug)]
pub(crate) struct PublishedPool {
    pub(crate) driver: Text,
    pub(crate) name: Text,
    pub(crate) number: PoolNumber,
    /// Slices of the newest generation that offer devices, in the order of their names.
    slices: Vec<Slice>,
    /// What the counters of the pool hold in total.
    counters: Tally<Counter>,
    /// Slices are missing.
    pub(crate) is_incomplete: bool,
    /// A set of counters is there twice, or a device draws from a counter that is not.
    has_bad_counters: bool,
}

#[derive(Debug)]
struct Slice {
    devices: Range<usize>,
    reach: Reach,
    draws_from_counters: bool,
}

/// A pool as one host sees it.
#[derive(Debug, Clone)]
pub(crate) struct Pool {
    /// Its place among the published pools.
    pub(crate) at: usize,
    /// Places of the slices that reach the host.
    slices: Vec<usize>,
    /// Nothing of it can be allocated.
    pub(crate) is_invalid: bool,
}

/// All published pools, in the order of driver and name. Upstream has them in random order.
#[derive(Debug, Default)]
pub(crate) struct Pools {
    all: Vec<PublishedPool>,
    /// Those that may concern any host.
    general: Vec<usize>,
    /// Those that concern one node only.
    local: BTreeMap<Text, Vec<usize>>,
}

impl Pools {
    pub(crate) fn new<'a>(
        slices: impl IntoIterator<Item = &'a Arc<ResourceSlice>>,
        devices: &mut Devices,
        vocabulary: &mut Vocabulary,
    ) -> Self {
        let mut newest: BTreeMap<(&Text, &Text), Vec<&ResourceSliceSpec>> = BTreeMap::new();
        for slice in slices {
            let spec = &slice.spec;
            let held = newest.entry((&spec.driver, &spec.pool.name)).or_default();
            let generation = held.first().map_or(i64::MIN, |first| first.pool.generation);
            if spec.pool.generation > generation {
                held.clear();
            }
            if spec.pool.generation >= generation {
                held.push(spec);
            }
        }
        let mut pools = Self::default();
        for slices in newest.values() {
            if let Some(first) = slices.first() {
                pools.push(PublishedPool::new(first, slices, devices, vocabulary));
            }
        }
        pools
    }

    /// Files a pool under the nodes it concerns: looking at every pool for every node would be quadratic.
    fn push(&mut self, pool: PublishedPool) {
        let at = self.all.len();
        if pool.concerns_all() {
            self.general.push(at);
        } else {
            let nodes: BTreeSet<Text> = pool.slices.iter().filter_map(Slice::node).collect();
            for node in nodes {
                self.local.entry(node).or_default().push(at);
            }
        }
        self.all.push(pool);
    }

    pub(crate) fn get(&self, at: usize) -> Option<&PublishedPool> {
        self.all.get(at)
    }

    /// The pools as a host sees them that had no devices allocated yet.
    pub(crate) fn seen_by(
        &self,
        requirements: &Requirements,
        node: Option<&str>,
        devices: &Devices,
        vocabulary: &Vocabulary,
    ) -> Vec<Pool> {
        let local = node
            .and_then(|node| self.local.get(node))
            .map_or(&[][..], Vec::as_slice);
        let mut places: Vec<usize> = self.general.iter().chain(local).copied().collect();
        places.sort_unstable();
        let published = places.into_iter().filter_map(|at| Some((at, self.all.get(at)?)));
        published
            .filter_map(|(at, pool)| pool.seen_by(at, requirements, node, devices, vocabulary))
            .collect()
    }

    /// The pools that are left of these when the host's requirements have become narrower.
    pub(crate) fn narrowed(
        &self,
        pools: &[Pool],
        requirements: &Requirements,
        node: Option<&str>,
        vocabulary: &Vocabulary,
    ) -> Vec<Pool> {
        let narrowed = |pool: &Pool| self.all.get(pool.at)?.narrowed(pool, requirements, node, vocabulary);
        pools.iter().filter_map(narrowed).collect()
    }

    /// Places of the devices of a pool that reach the host.
    pub(crate) fn devices<'a>(&'a self, pool: &'a Pool) -> impl Iterator<Item = u32> + 'a {
        let published = self.all.get(pool.at);
        let slices = pool.slices.iter().filter_map(move |at| published?.slices.get(*at));
        slices.flat_map(|slice| positions(&slice.devices))
    }

    /// What all pools' counters hold beyond what allocated devices draw.
    pub(crate) fn budget(&self, devices: &Devices, allocated: &Usage) -> Tally<Counter> {
        let mut budget = Tally::default();
        let shared: BTreeSet<_> = allocated.capacity.iter().map(|((identity, _), _)| *identity).collect();
        for pool in &self.all {
            for (counter, amount) in pool.counters.iter() {
                budget.set(*counter, amount);
            }
            let offers = pool
                .slices
                .iter()
                .filter_map(|slice| devices.offers.get(slice.devices.clone()));
            let taken = offers
                .flatten()
                .filter(|offer| allocated.devices.contains(&offer.identity) || shared.contains(&offer.identity));
            for (counter, amount) in taken.flat_map(|offer| &offer.draws) {
                budget.subtract(counter, *amount);
            }
        }
        budget
    }
}

impl PublishedPool {
    fn new(
        first: &ResourceSliceSpec,
        slices: &[&ResourceSliceSpec],
        devices: &mut Devices,
        vocabulary: &mut Vocabulary,
    ) -> Self {
        let number = devices.pool(&first.driver, &first.pool.name);
        // A slice has either counters or devices.
        let (counting, offering): (Vec<&ResourceSliceSpec>, Vec<_>) =
            slices.iter().partition(|slice| !slice.shared_counters.is_empty());
        let sets: Vec<&CounterSet> = counting.iter().flat_map(|slice| slice.shared_counters.iter()).collect();
        Self {
            driver: first.driver.clone(),
            name: first.pool.name.clone(),
            number,
            counters: devices.tally(number, sets.iter().copied()),
            is_incomplete: i64::try_from(slices.len()) != Ok(first.pool.resource_slice_count),
            has_bad_counters: has_duplicates(&sets) || !offering.iter().all(|slice| draws_are_known(slice, &sets)),
            slices: offering
                .into_iter()
                .map(|slice| Slice::new(slice, devices, vocabulary))
                .collect(),
        }
    }

    /// A pool of which nothing reaches the host only matters when it spoils requests for all devices: when it has bad
    /// counters, or is incomplete while its devices draw from counters.
    fn concerns_all(&self) -> bool {
        let is_local = |slice: &Slice| matches!(slice.reach, Reach::Node(_) | Reach::Nowhere);
        self.has_bad_counters || self.is_spoilt_if_hidden() || !self.slices.iter().all(is_local)
    }

    fn is_spoilt_if_hidden(&self) -> bool {
        self.is_incomplete && self.slices.iter().any(|slice| slice.draws_from_counters)
    }

    fn seen_by(
        &self,
        at: usize,
        requirements: &Requirements,
        node: Option<&str>,
        devices: &Devices,
        vocabulary: &Vocabulary,
    ) -> Option<Pool> {
        let slices = self.reaching(0..self.slices.len(), requirements, node, vocabulary);
        let is_invalid = self.has_bad_counters || self.has_duplicate_names(&slices, devices);
        self.visible(at, slices, is_invalid)
    }

    /// Narrowing never makes an invalid pool valid, even if of two equal names one is gone.
    fn narrowed(
        &self,
        pool: &Pool,
        requirements: &Requirements,
        node: Option<&str>,
        vocabulary: &Vocabulary,
    ) -> Option<Pool> {
        let slices = self.reaching(pool.slices.iter().copied(), requirements, node, vocabulary);
        self.visible(pool.at, slices, pool.is_invalid)
    }

    fn visible(&self, at: usize, slices: Vec<usize>, is_invalid: bool) -> Option<Pool> {
        let is_visible = is_invalid || !slices.is_empty() || self.is_spoilt_if_hidden();
        let slices = if is_invalid { Vec::new() } else { slices };
        is_visible.then_some(Pool { at, slices, is_invalid })
    }

    fn reaching(
        &self,
        places: impl Iterator<Item = usize>,
        requirements: &Requirements,
        node: Option<&str>,
        vocabulary: &Vocabulary,
    ) -> Vec<usize> {
        let reaches = |at: &usize| {
            let slice = self.slices.get(*at);
            slice.is_some_and(|slice| slice.reach.includes(requirements, node, vocabulary))
        };
        places.filter(reaches).collect()
    }

    /// Only slices that reach the host are compared.
    fn has_duplicate_names(&self, slices: &[usize], devices: &Devices) -> bool {
        let mut seen = BTreeSet::new();
        let slices = slices.iter().filter_map(|at| self.slices.get(*at));
        let mut offers = slices
            .filter_map(|slice| devices.offers.get(slice.devices.clone()))
            .flatten();
        offers.any(|offer| !seen.insert(offer.identity))
    }
}

impl Slice {
    fn new(slice: &ResourceSliceSpec, devices: &mut Devices, vocabulary: &mut Vocabulary) -> Self {
        let topology = reach::topology(slice, vocabulary);
        Self {
            devices: devices.add(slice, false, topology.as_ref()),
            reach: Reach::of(slice, vocabulary),
            draws_from_counters: slice.devices.iter().any(|device| !device.consumes_counters.is_empty()),
        }
    }

    fn node(&self) -> Option<Text> {
        match &self.reach {
            Reach::Node(name) => Some(name.as_str().into()),
            _ => None,
        }
    }
}

fn has_duplicates(sets: &[&CounterSet]) -> bool {
    let mut seen = BTreeSet::new();
    sets.iter().any(|set| !seen.insert(&set.name))
}

/// Whether every counter that a device of the slice draws from exists.
fn draws_are_known(slice: &ResourceSliceSpec, sets: &[&CounterSet]) -> bool {
    let consumptions = slice.devices.iter().flat_map(|device| device.consumes_counters.iter());
    let mut known = consumptions.map(|consumption| {
        // Of two sets of one name the later counts.
        let set = sets.iter().rfind(|set| set.name == consumption.counter_set);
        set.is_some_and(|set| {
            let mut names = consumption.counters.iter().map(|(name, _)| name);
            names.all(|name| set.counters.get(name).is_some())
        })
    });
    known.all(|is_known| is_known)
}

/// What is left of a counter when it is looked at as a whole number, as upstream does.
pub(crate) fn whole(left: Quantity, drawn: Quantity) -> i64 {
    left.value().saturating_sub(drawn.value())
}
