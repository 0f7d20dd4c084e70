//! Which devices to come will share the value of an attribute that nobody knows yet?
//!
//! Providers declare groups per instance type; groups that overlap are one.

use std::collections::{BTreeMap, BTreeSet};

use model::{object::Text, snapshot::AttributeBinding};

use crate::{
    device::{Devices, Identity},
    id::KindId,
};

/// The groups of every attribute of every instance type.
#[derive(Debug, Default)]
pub(crate) struct Bindings(BTreeMap<(KindId, Text), Vec<BTreeSet<Identity>>>);

impl Bindings {
    pub(crate) fn add(&mut self, kind: KindId, binding: &AttributeBinding, devices: &mut Devices) {
        if binding.devices.len() < 2 {
            return;
        }
        let mut group: BTreeSet<Identity> = binding.devices.iter().map(|id| devices.identity(id.clone())).collect();
        let groups = self.0.entry((kind, binding.attribute.clone())).or_default();
        let (overlapping, others) = std::mem::take(groups)
            .into_iter()
            .partition(|other: &BTreeSet<_>| !other.is_disjoint(&group));
        group.extend(Vec::from_iter(overlapping).into_iter().flatten());
        *groups = others;
        groups.push(group);
    }

    /// Whether the device takes part in any group of the attribute.
    pub(crate) fn has(&self, kind: KindId, attribute: &Text, device: Identity) -> bool {
        self.group(kind, attribute, device).is_some()
    }

    /// Whether both devices will have the same value. A device named twice and alone is not even bound to itself.
    pub(crate) fn binds(&self, kind: KindId, attribute: &Text, one: Identity, other: Identity) -> bool {
        let group = self.group(kind, attribute, one);
        group.is_some_and(|group| group.len() > 1 && group.contains(&other))
    }

    fn group(&self, kind: KindId, attribute: &Text, device: Identity) -> Option<&BTreeSet<Identity>> {
        let groups = self.0.get(&(kind, attribute.clone()))?;
        groups.iter().find(|group| group.contains(&device))
    }
}
