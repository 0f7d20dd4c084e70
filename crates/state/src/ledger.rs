//! What NodePools have promised to claims that do not count yet, so that limits hold at every instant.
//!
//! A claim counts in its pool's usage once it was launched. Between the decision to create it and that moment it stands
//! here with the most it can turn out to be: reserve → create → settle. The state settles an entry itself when it sees
//! the claim launched, leaving or gone; only a create that failed needs a release. No entry goes away with time alone:
//! each has an age, and who finds it too old has to find out what became of its claim.

use std::collections::{BTreeMap, BTreeSet};

use api::labels::INSTANCE_TYPE;
use jiff::Timestamp;
use model::{
    object::{InstanceTypeName, NodeClaim, NodeClaimName, NodePoolName, ObjectKey},
    quantity::Quantity,
    resources::{ResourceList, ResourceName},
};

use crate::State;

/// What is promised to a claim.
#[derive(Debug, Clone, PartialEq)]
pub struct Reservation {
    /// By which pool.
    pub pool: NodePoolName,
    /// The most the claim can turn out to be.
    pub resources: ResourceList,
    /// Since when.
    pub since: Timestamp,
}

/// Why nothing was promised.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "NodePool \"{pool}\" cannot take another node: {} {resource} on top of {} would exceed its limit of {}; raise \
     spec.limits.{resource} or let nodes go",
    amounts.asked,
    amounts.used,
    amounts.limit
)]
pub struct LimitExceeded {
    /// The pool.
    pub pool: NodePoolName,
    /// Of what there would be too much.
    pub resource: ResourceName,
    /// How much of it.
    pub amounts: Box<Excess>,
}

/// How a limit would be exceeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excess {
    /// What the pool holds and has promised.
    pub used: Quantity,
    /// What was asked for.
    pub asked: Quantity,
    /// The most it may hold.
    pub limit: Quantity,
}

/// The open promises.
#[derive(Debug, Default)]
pub(crate) struct Ledger(BTreeMap<NodeClaimName, Reservation>);

impl Ledger {
    pub(crate) fn release(&mut self, claim: &NodeClaimName) -> Option<Reservation> {
        self.0.remove(claim)
    }

    fn of_pool(&self, pool: &NodePoolName) -> impl Iterator<Item = (&NodeClaimName, &Reservation)> {
        self.0.iter().filter(move |(_, reservation)| reservation.pool == *pool)
    }
}

impl State {
    /// Promises a claim that is about to be created the most it can turn out to be, unless that would exceed the limits of
    /// its pool. Asking again for the same claim replaces what it was promised.
    pub fn reserve(
        &mut self,
        pool: &NodePoolName,
        claim: &NodeClaimName,
        most: &ResourceList,
        limits: &ResourceList,
        now: Timestamp,
    ) -> Result<(), LimitExceeded> {
        let mut most = most.clone();
        most.set(ResourceName::Nodes, Quantity::from_units(1));
        if let Some(exceeded) = exceeded(pool, &self.committed_beside(pool, Some(claim)), &most, limits) {
            return Err(exceeded);
        }
        self.enter(pool, claim, most, now);
        Ok(())
    }

    /// Promises nodes to claims of a static pool that are about to be created, as far as its limit allows; returns to how
    /// many of them, from the first. Machines that are being deleted still count, as they do upstream for static pools.
    pub fn reserve_nodes(
        &mut self,
        pool: &NodePoolName,
        claims: &[NodeClaimName],
        limit: Option<i64>,
        now: Timestamp,
    ) -> usize {
        let room = limit.map_or(usize::MAX, |limit| {
            usize::try_from(limit)
                .unwrap_or(0)
                .saturating_sub(self.node_counts(pool).all())
        });
        let granted = room.min(claims.len());
        for claim in claims.iter().take(granted) {
            let node = ResourceList::from_iter([(ResourceName::Nodes, Quantity::from_units(1))]);
            self.enter(pool, claim, node, now);
        }
        granted
    }

    /// Takes a promise back: the claim will not be created, or is known not to exist.
    pub fn release(&mut self, claim: &NodeClaimName) -> Option<Reservation> {
        self.ledger.release(claim)
    }

    /// The open promises, by the name of the claim.
    pub fn reservations(&self) -> impl Iterator<Item = (&NodeClaimName, &Reservation)> {
        self.ledger.0.iter()
    }

    /// What a pool holds and has promised: its usage, its open reservations, and the most that claims can turn out to be
    /// which are not launched yet and for which nothing is reserved, as after a restart.
    pub fn committed(&self, pool: &NodePoolName) -> ResourceList {
        self.committed_beside(pool, None)
    }

    /// How many claims of a pool have a promise but have not been seen yet.
    pub(crate) fn unseen_reservations(&self, pool: &NodePoolName) -> usize {
        let is_unseen = |claim: &NodeClaimName| self.get::<NodeClaim>(&key(claim)).is_none();
        self.ledger.of_pool(pool).filter(|(claim, _)| is_unseen(claim)).count()
    }

    /// Closes the promise to a claim that now counts by itself, or never will.
    pub(crate) fn settle(&mut self, claim: &NodeClaim) {
        if claim.status.provider_id.is_some() || self.is_leaving(claim) {
            self.ledger.release(&claim.name());
        }
    }

    fn enter(&mut self, pool: &NodePoolName, claim: &NodeClaimName, resources: ResourceList, now: Timestamp) {
        let is_seen = self.get::<NodeClaim>(&key(claim)).cloned();
        let reservation = Reservation {
            pool: pool.clone(),
            resources,
            since: now,
        };
        self.ledger.0.insert(claim.clone(), reservation);
        if let Some(claim) = is_seen {
            self.settle(&claim);
        }
    }

    fn committed_beside(&self, pool: &NodePoolName, except: Option<&NodeClaimName>) -> ResourceList {
        let mut committed = self.usage(pool);
        let promised = self.ledger.of_pool(pool).filter(|(claim, _)| Some(*claim) != except);
        for (_, reservation) in promised {
            committed.add(&reservation.resources);
        }
        let claims = self.claims_of_pool(pool.as_str());
        for claim in claims.filter(|claim| claim.status.provider_id.is_none() && !self.is_leaving(claim)) {
            let name = claim.name();
            if !self.ledger.0.contains_key(&name) && Some(&name) != except {
                committed.add(&self.most(pool, claim));
            }
        }
        committed
    }

    fn is_leaving(&self, claim: &NodeClaim) -> bool {
        claim.metadata.is_deleting() || self.marks.is_to_be_deleted(&claim.metadata.name)
    }

    /// The most a claim can turn out to be: of each resource what the largest instance type has that it admits by name.
    fn most(&self, pool: &NodePoolName, claim: &NodeClaim) -> ResourceList {
        let mut most = claim.spec.resources.requests.clone();
        let admitted = admitted_types(claim);
        let types: Vec<_> = match &admitted {
            Some(names) => {
                let types = self.catalog().instance_types.iter();
                types.filter(|entry| names.contains(&entry.name)).collect()
            }
            None => self.catalog().of_pool(pool).collect(),
        };
        for entry in types {
            most.raise_to(&entry.capacity);
        }
        most.set(ResourceName::Nodes, Quantity::from_units(1));
        most
    }
}

/// The instance types a claim names; none when it names none, and so admits any.
fn admitted_types(claim: &NodeClaim) -> Option<BTreeSet<InstanceTypeName>> {
    let requirements = claim.spec.requirements.iter();
    let mut named =
        requirements.filter(|requirement| *requirement.key == *INSTANCE_TYPE && *requirement.operator == *"In");
    let names = named.next()?.values.iter();
    Some(names.map(|name| InstanceTypeName::from(name.clone())).collect())
}

/// The first limit that would be exceeded. A limit that already is exceeded lets nothing more in, whatever is asked for.
fn exceeded(
    pool: &NodePoolName,
    used: &ResourceList,
    asked: &ResourceList,
    limits: &ResourceList,
) -> Option<LimitExceeded> {
    limits.iter().find_map(|(resource, limit)| {
        let (used, asked) = (used.amount(resource.as_str()), asked.amount(resource.as_str()));
        (used + asked > limit).then(|| LimitExceeded {
            pool: pool.clone(),
            resource: resource.clone(),
            amounts: Box::new(Excess { used, asked, limit }),
        })
    })
}

fn key(claim: &NodeClaimName) -> ObjectKey {
    ObjectKey::cluster_scoped(claim.as_str())
}
