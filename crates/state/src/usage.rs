//! What each NodePool holds: the capacity of its machines that stay, kept as they change.

use std::collections::BTreeMap;

use model::{
    object::{NodePoolName, Text},
    resources::{ResourceList, ResourceName},
};

use crate::State;

/// What each pool holds. A pool without machines has no entry.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Usages(BTreeMap<Text, Usage>);

#[derive(Debug, Default, PartialEq)]
struct Usage {
    total: ResourceList,
    /// How many machines name each resource, so that it goes with the last of them.
    named: BTreeMap<ResourceName, usize>,
}

impl Usage {
    fn add(&mut self, capacity: &ResourceList) {
        self.total.add(capacity);
        for (name, _) in capacity.iter() {
            *self.named.entry(name.clone()).or_default() += 1;
        }
    }

    fn remove(&mut self, capacity: &ResourceList) {
        self.total.subtract_from(capacity);
        for (name, _) in capacity.iter() {
            let left = self.named.get(name).map_or(0, |count| count.saturating_sub(1));
            if left > 0 {
                self.named.insert(name.clone(), left);
            } else {
                self.named.remove(name);
                self.total.remove(name.as_str());
            }
        }
    }
}

impl Usages {
    /// Counts a machine as it is, no longer as it was.
    pub(crate) fn replace(
        &mut self,
        (old_pool, old): (Option<&Text>, &ResourceList),
        (new_pool, new): (Option<&Text>, &ResourceList),
    ) {
        if (old_pool, old) == (new_pool, new) {
            return;
        }
        if let Some(pool) = new_pool.filter(|_| !new.is_empty()) {
            self.0.entry(pool.clone()).or_default().add(new);
        }
        let Some(usage) = old_pool.and_then(|pool| self.0.get_mut(pool)) else {
            return;
        };
        usage.remove(old);
        if usage.total.is_empty() {
            self.0.retain(|_, usage| !usage.total.is_empty());
        }
    }
}

impl State {
    /// What a pool holds: the capacity of its machines that are not marked for deletion, and their number as `nodes`.
    /// Empty for a pool without any.
    pub fn usage(&self, pool: &NodePoolName) -> ResourceList {
        let usage = self.machines.usages.0.get(pool.as_str());
        usage.map(|usage| usage.total.clone()).unwrap_or_default()
    }
}
