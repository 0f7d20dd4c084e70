//! Which published devices can a host use? Slices by pool, newest generation only, narrowed to what reaches the host.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    sync::Arc,
};

use model::{
    object::{CounterSet, NodeName, ResourceSlice, ResourceSliceSpec, Text},
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
    slices: Vec<Arc<Slice>>,
    /// What the counters of the pool hold in total.
    counters: Tally<Counter>,
    /// Slices are missing.
    pub(crate) is_incomplete: bool,
    /// A set of counters is there twice, or a device draws from a counter that is not.
    has_bad_counters: bool,
}

/// A slice, read once.
#[derive(Debug)]
struct Slice {
    published: Arc<ResourceSlice>,
    pool: PoolNumber,
    /// The node it goes away with.
    owner: Option<NodeName>,
    devices: Range<usize>,
    reach: Reach,
    draws_from_counters: bool,
    /// What its counters hold; it has either counters or devices.
    counters: Tally<Counter>,
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

/// The published pools of a run, in the order of driver and name. Upstream has them in random order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pools {
    all: Arc<AllPools>,
    /// Pools that lost slices, as they are now; none when nothing is left of one.
    reduced: BTreeMap<usize, Option<Arc<PublishedPool>>>,
}

/// All published pools before any node goes.
#[derive(Debug, Default)]
struct AllPools {
    pools: Vec<PublishedPool>,
    /// Every slice of each pool, whichever its generation: when the newest go, older ones count again.
    slices: Vec<Vec<Arc<Slice>>>,
    /// Pools that have slices of a node.
    owned: BTreeMap<NodeName, Vec<usize>>,
    /// Those that may concern any host.
    general: Vec<usize>,
    /// Those that concern one node only.
    local: BTreeMap<Text, Vec<usize>>,
}

impl AllPools {
    /// Files a pool under the nodes it concerns: looking at every pool for every node would be quadratic.
    fn push(&mut self, slices: Vec<Arc<Slice>>) {
        let Some(pool) = PublishedPool::new(&slices) else {
            return;
        };
        let at = self.pools.len();
        if pool.concerns_all() {
            self.general.push(at);
        } else {
            let nodes: BTreeSet<Text> = pool.slices.iter().filter_map(|slice| slice.node()).collect();
            for node in nodes {
                self.local.entry(node).or_default().push(at);
            }
        }
        let owners: BTreeSet<&NodeName> = slices.iter().filter_map(|slice| slice.owner.as_ref()).collect();
        for owner in owners {
            self.owned.entry(owner.clone()).or_default().push(at);
        }
        self.pools.push(pool);
        self.slices.push(slices);
    }
}

impl Pools {
    pub(crate) fn new<'a>(
        slices: impl IntoIterator<Item = &'a Arc<ResourceSlice>>,
        devices: &mut Devices,
        vocabulary: &mut Vocabulary,
    ) -> Self {
        let mut by_pool: BTreeMap<(&Text, &Text), Vec<&Arc<ResourceSlice>>> = BTreeMap::new();
        for slice in slices {
            let key = (&slice.spec.driver, &slice.spec.pool.name);
            by_pool.entry(key).or_default().push(slice);
        }
        let mut all = AllPools::default();
        for slices in by_pool.into_values() {
            let read = slices
                .into_iter()
                .map(|slice| Arc::new(Slice::new(slice, devices, vocabulary)));
            all.push(read.collect());
        }
        Self {
            all: Arc::new(all),
            reduced: BTreeMap::new(),
        }
    }

    /// The pools once these nodes are gone, and the slices they own with them; none if they own none.
    pub(crate) fn without(&self, gone: &BTreeSet<&NodeName>) -> Option<Self> {
        let owned = gone.iter().filter_map(|node| self.all.owned.get(*node));
        let places: BTreeSet<usize> = owned.flatten().copied().collect();
        let is_gone = |slice: &Slice| slice.owner.as_ref().is_some_and(|owner| gone.contains(owner));
        let reduced = places.into_iter().filter_map(|at| {
            let slices = self.all.slices.get(at)?.iter();
            let left: Vec<Arc<Slice>> = slices.filter(|slice| !is_gone(slice)).cloned().collect();
            Some((at, PublishedPool::new(&left).map(Arc::new)))
        });
        let reduced: BTreeMap<_, _> = reduced.collect();
        (!reduced.is_empty()).then(|| Self {
            all: Arc::clone(&self.all),
            reduced,
        })
    }

    pub(crate) fn get(&self, at: usize) -> Option<&PublishedPool> {
        match self.reduced.get(&at) {
            Some(reduced) => reduced.as_deref(),
            None => self.all.pools.get(at),
        }
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
            .and_then(|node| self.all.local.get(node))
            .map_or(&[][..], Vec::as_slice);
        // What is left of a pool may concern others than the whole did.
        let reduced = self.reduced.keys();
        let mut places: Vec<usize> = self.all.general.iter().chain(local).chain(reduced).copied().collect();
        places.sort_unstable();
        places.dedup();
        let published = places.into_iter().filter_map(|at| Some((at, self.get(at)?)));
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
        let narrowed = |pool: &Pool| self.get(pool.at)?.narrowed(pool, requirements, node, vocabulary);
        pools.iter().filter_map(narrowed).collect()
    }

    /// Places of the devices of a pool that reach the host.
    pub(crate) fn devices<'a>(&'a self, pool: &'a Pool) -> impl Iterator<Item = u32> + 'a {
        let published = self.get(pool.at);
        let slices = pool.slices.iter().filter_map(move |at| published?.slices.get(*at));
        slices.flat_map(|slice| positions(&slice.devices))
    }

    /// What all pools' counters hold beyond what allocated devices draw.
    pub(crate) fn budget(&self, devices: &Devices, allocated: &Usage) -> Tally<Counter> {
        let mut budget = Tally::default();
        let shared: BTreeSet<_> = allocated.capacity.iter().map(|((identity, _), _)| *identity).collect();
        let pools = (0..self.all.pools.len()).filter_map(|at| self.get(at));
        for pool in pools.filter(|pool| !pool.counters.is_empty()) {
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
    /// What slices of one pool come to, none when there are none.
    fn new(slices: &[Arc<Slice>]) -> Option<Self> {
        let slices = newest(slices);
        let first = slices.first()?;
        let spec = first.spec();
        // A slice has either counters or devices.
        let (counting, offering): (Vec<&Arc<Slice>>, Vec<_>) = slices.iter().partition(|slice| slice.is_counting());
        let sets: Vec<&CounterSet> = counting
            .iter()
            .flat_map(|slice| slice.spec().shared_counters.iter())
            .collect();
        let mut counters = Tally::default();
        for (counter, amount) in counting.iter().flat_map(|slice| slice.counters.iter()) {
            counters.set(*counter, amount);
        }
        Some(Self {
            driver: spec.driver.clone(),
            name: spec.pool.name.clone(),
            number: first.pool,
            counters,
            is_incomplete: i64::try_from(slices.len()) != Ok(spec.pool.resource_slice_count),
            has_bad_counters: has_duplicates(&sets)
                || !offering.iter().all(|slice| draws_are_known(slice.spec(), &sets)),
            slices: offering.into_iter().cloned().collect(),
        })
    }

    /// A pool of which nothing reaches the host only matters when it spoils requests for all devices: when it has bad
    /// counters, or is incomplete while its devices draw from counters.
    fn concerns_all(&self) -> bool {
        let is_local = |slice: &Arc<Slice>| matches!(slice.reach, Reach::Node(_) | Reach::Nowhere);
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
    fn new(published: &Arc<ResourceSlice>, devices: &mut Devices, vocabulary: &mut Vocabulary) -> Self {
        let slice = &published.spec;
        let topology = reach::topology(slice, vocabulary);
        let pool = devices.pool(&slice.driver, &slice.pool.name);
        let is_counting = !slice.shared_counters.is_empty();
        Self {
            published: Arc::clone(published),
            pool,
            owner: node_owner(published),
            devices: if is_counting {
                0..0
            } else {
                devices.add(slice, false, topology.as_ref())
            },
            reach: Reach::of(slice, vocabulary),
            draws_from_counters: slice.devices.iter().any(|device| !device.consumes_counters.is_empty()),
            counters: devices.tally(pool, &slice.shared_counters),
        }
    }

    fn spec(&self) -> &ResourceSliceSpec {
        &self.published.spec
    }

    fn is_counting(&self) -> bool {
        !self.spec().shared_counters.is_empty()
    }

    fn node(&self) -> Option<Text> {
        match &self.reach {
            Reach::Node(name) => Some(name.as_str().into()),
            _ => None,
        }
    }
}

/// The slices of the newest generation.
fn newest(slices: &[Arc<Slice>]) -> Vec<&Arc<Slice>> {
    let generation = |slice: &Arc<Slice>| slice.spec().pool.generation;
    let newest = slices.iter().map(generation).max();
    let is_newest = |slice: &&Arc<Slice>| Some(generation(slice)) == newest;
    slices.iter().filter(is_newest).collect()
}

/// The node that owns a slice. Where the devices can be used does not say who publishes them.
pub(crate) fn node_owner(slice: &ResourceSlice) -> Option<NodeName> {
    let mut owners = slice.metadata.owner_references.iter();
    let owner = owners.find(|owner| owner.kind.as_ref() == "Node")?;
    Some(NodeName::from(owner.name.clone()))
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
