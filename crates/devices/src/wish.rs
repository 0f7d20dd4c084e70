//! What does a claim come down to on a given host? Requests for all devices are resolved to the devices there are.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    claim::{Amount, Claim, Query},
    constraint::MatchAttribute,
    id::{ClaimId, KindId},
    inventory::Inventory,
    pool::{Pool, Pools},
};

/// How many devices a claim may have: `AllocationResultsMaxSize` of the API.
pub(crate) const MOST_DEVICES: usize = 32;

/// A claim to be allocated on a host.
#[derive(Debug)]
pub(crate) struct Wish<'a> {
    pub(crate) id: ClaimId,
    pub(crate) constraints: &'a [MatchAttribute],
    /// Alternatives by request.
    pub(crate) requests: Vec<Vec<Choice<'a>>>,
}

/// One alternative of a request.
#[derive(Debug)]
pub(crate) struct Choice<'a> {
    pub(crate) query: &'a Query,
    /// For all devices: the published ones, by place.
    published: Vec<u32>,
    /// For all devices: those to come with each kind of types, by place.
    templates: BTreeMap<KindId, Vec<u32>>,
}

/// What a host offers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Offered<'a> {
    pub(crate) inventory: &'a Inventory,
    pub(crate) published: &'a Pools,
    pub(crate) pools: &'a [Pool],
    /// The kinds whose devices to come count; none for a node that has published its own.
    pub(crate) kinds: &'a [KindId],
}

impl Choice<'_> {
    /// How many devices a type of the kind must provide.
    pub(crate) fn slots(&self, kind: KindId) -> usize {
        match self.query.amount {
            Amount::Exactly(count) => count,
            Amount::All => self.published.len() + self.template_count(kind),
        }
    }

    /// All the devices a request for all devices must get, published ones first.
    pub(crate) fn all(&self, kind: KindId) -> impl Iterator<Item = u32> {
        let templates = self.templates.get(&kind).into_iter().flatten();
        self.published.iter().chain(templates).copied()
    }

    /// How many devices it takes whatever the type.
    fn base(&self) -> usize {
        match self.query.amount {
            Amount::Exactly(count) => count,
            Amount::All => self.published.len(),
        }
    }

    fn template_count(&self, kind: KindId) -> usize {
        self.templates.get(&kind).map_or(0, Vec::len)
    }
}

impl<'a> Wish<'a> {
    pub(crate) fn new(id: ClaimId, claim: &'a Claim, offered: Offered<'_>) -> Result<Self, String> {
        let constraints = claim.constraints.as_ref().map_err(Clone::clone)?;
        let mut requests = Vec::new();
        for request in &claim.requests {
            let choices = request.alternatives.iter().map(|query| {
                let query = query.as_ref().map_err(Clone::clone)?;
                Choice::new(query, offered).map_err(|fault| format!("{}: {fault}", query.prefix))
            });
            requests.push(choices.collect::<Result<Vec<_>, String>>()?);
        }
        let mut wish = Self {
            id,
            constraints,
            requests,
        };
        wish.limit(&claim.name)?;
        Ok(wish)
    }

    /// Refuses a claim that takes too many devices in any case, and lets no type add its own that would make it so.
    fn limit(&mut self, claim: &str) -> Result<(), String> {
        let base = self.least(Choice::base);
        if base > MOST_DEVICES {
            return Err(format!(
                "claim {claim:?} requests {base} total devices, exceeding maximum of {MOST_DEVICES}"
            ));
        }
        let choices = self.requests.iter().flatten();
        let kinds: BTreeSet<KindId> = choices.flat_map(|choice| choice.templates.keys().copied()).collect();
        let too_many = |it: &KindId| base + self.least(|choice| choice.template_count(*it)) > MOST_DEVICES;
        let pruned: BTreeSet<KindId> = kinds.iter().copied().filter(too_many).collect();
        for choice in self.requests.iter_mut().flatten() {
            choice.templates.retain(|kind, _| !pruned.contains(kind));
        }
        if !kinds.is_empty() && pruned == kinds {
            return Err(format!(
                "claim {claim:?}: all instance types pruned, no instance type can satisfy this claim without \
                 exceeding the maximum of {MOST_DEVICES} devices"
            ));
        }
        Ok(())
    }

    /// The least of something that any choice of alternatives adds up to.
    fn least(&self, of: impl Fn(&Choice<'a>) -> usize) -> usize {
        let least = |choices: &Vec<Choice<'a>>| choices.iter().map(&of).min().unwrap_or_default();
        self.requests.iter().map(least).sum()
    }
}

impl<'a> Choice<'a> {
    fn new(query: &'a Query, offered: Offered<'_>) -> Result<Self, String> {
        let mut choice = Self {
            query,
            published: Vec::new(),
            templates: BTreeMap::new(),
        };
        if query.amount == Amount::All {
            choice.published = published(query, offered)?;
            for kind in offered.kinds {
                choice.add_kind(*kind, offered)?;
            }
        }
        Ok(choice)
    }

    /// A type without devices of its own is not kept in mind; one whose devices do not match only if published ones do.
    fn add_kind(&mut self, kind: KindId, offered: Offered<'_>) -> Result<(), String> {
        let devices = offered.inventory.template_devices(kind);
        if devices.is_empty() {
            return Ok(());
        }
        let matching = matching(self.query, devices.iter().copied(), offered.inventory)?;
        if !matching.is_empty() || !self.published.is_empty() {
            self.templates.insert(kind, matching);
        }
        Ok(())
    }
}

/// The published devices that match; all devices of a pool can only be had when all are known.
fn published(query: &Query, offered: Offered<'_>) -> Result<Vec<u32>, String> {
    let pools = offered.published;
    let mut devices = Vec::new();
    for pool in offered.pools {
        let Some(published) = pools.get(pool.at) else { continue };
        let (driver, name) = (&published.driver, &published.name);
        if pool.is_invalid {
            return Err(format!("pool {driver}/{name} is invalid (duplicate device names)"));
        }
        if published.is_incomplete {
            return Err(format!("pool {driver}/{name} is incomplete (missing slices)"));
        }
        devices.extend(matching(query, pools.devices(pool), offered.inventory)?);
    }
    Ok(devices)
}

/// An expression that cannot be evaluated spoils the whole claim.
fn matching(query: &Query, devices: impl Iterator<Item = u32>, inventory: &Inventory) -> Result<Vec<u32>, String> {
    let mut matching = Vec::new();
    for at in devices {
        if inventory.matches(&query.selectors, at)? {
            matching.push(at);
        }
    }
    Ok(matching)
}
