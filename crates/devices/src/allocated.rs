//! Which published devices do the cluster's claims hold, and how much of shared ones?
//!
//! A device held by moving pods alone is free: their claims are allocated anew. Of a shared device the shares of
//! claims held by moving pods alone are free. Upstream also frees devices of which every claim is releasable and no pod
//! holds one, but a claim is releasable only when pods hold it.

use std::collections::{BTreeMap, HashSet};

use model::{
    object::{ResourceClaim, Text, Uid},
    quantity::Quantity,
    snapshot::{DeviceId, Snapshot},
};

use crate::{
    claim::is_pod,
    device::{Devices, Dimension, Identity},
    ledger::{Tally, Usage},
};

/// What claims hold, by device.
#[derive(Debug, Default)]
pub(crate) struct Holdings {
    devices: BTreeMap<Identity, Holding>,
    /// Every pod that a claim is reserved for.
    holders: HashSet<Uid>,
}

/// What claims say about one device.
#[derive(Debug, Default)]
struct Holding {
    pods: Vec<Uid>,
    /// Consumption by claim; a device with any is shared.
    shares: Vec<Share>,
}

#[derive(Debug)]
struct Share {
    pods: Vec<Uid>,
    consumed: Vec<(Text, Quantity)>,
}

impl Holdings {
    pub(crate) fn new(snapshot: &Snapshot, devices: &mut Devices) -> Self {
        let mut holdings = Self::default();
        for claim in snapshot.objects().resource_claims.iter() {
            holdings.add(claim, devices);
        }
        holdings
    }

    /// Whether a pod has any say in what is held.
    pub(crate) fn has_holder(&self, pod: &Uid) -> bool {
        self.holders.contains(pod)
    }

    /// What is held, pods on the move not counted.
    pub(crate) fn usage(&self, is_moving: impl Fn(&Uid) -> bool) -> Usage {
        let all_move = |pods: &[Uid]| !pods.is_empty() && pods.iter().all(&is_moving);
        let mut usage = Usage::default();
        for (identity, holding) in &self.devices {
            if all_move(&holding.pods) {
                continue;
            }
            if holding.shares.is_empty() {
                usage.devices.insert(*identity);
                continue;
            }
            for (dimension, amount) in live(*identity, holding, all_move).iter() {
                usage.capacity.set(dimension.clone(), amount);
            }
        }
        usage
    }

    /// Of several results of one claim for the same device only the last counts, as upstream has it.
    fn add(&mut self, claim: &ResourceClaim, devices: &mut Devices) {
        let consumers = claim.status.reserved_for.iter().filter(|consumer| is_pod(consumer));
        let pods: Vec<Uid> = consumers.map(|consumer| consumer.uid.clone()).collect();
        self.holders.extend(pods.iter().cloned());
        let Some(allocation) = &claim.status.allocation else {
            return;
        };
        let mut results = BTreeMap::new();
        for result in &allocation.devices.results {
            let identity = devices.identity(DeviceId {
                driver: result.driver.clone(),
                pool: result.pool.clone(),
                device: result.device.clone(),
            });
            results.insert(identity, &result.consumed_capacity[..]);
        }
        for (identity, consumed) in results {
            let holding = self.devices.entry(identity).or_default();
            holding.pods.extend(pods.iter().cloned());
            if !consumed.is_empty() {
                holding.shares.push(Share {
                    pods: pods.clone(),
                    consumed: consumed.to_vec(),
                });
            }
        }
    }
}

/// What stays in use of a shared device: all shares, less those of pods on the move; what comes down to nothing is free.
fn live(identity: Identity, holding: &Holding, all_move: impl Fn(&[Uid]) -> bool) -> Tally<Dimension> {
    let mut live = Tally::default();
    for share in &holding.shares {
        for (name, amount) in &share.consumed {
            live.add((identity, name.clone()), *amount);
        }
    }
    for share in holding.shares.iter().filter(|share| all_move(&share.pods)) {
        for (name, amount) in &share.consumed {
            live.subtract(&(identity, name.clone()), *amount);
        }
        live.prune();
    }
    live
}
