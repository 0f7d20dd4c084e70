//! Everything about devices that does not change during a run.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    object::{NodeName, ResourceSlice, Text},
    quantity::Quantity,
    snapshot::{CatalogType, Snapshot},
    vocabulary::Vocabulary,
};

use crate::{
    binding::Bindings,
    claim::Claims,
    device::{Counter, Devices, positions},
    id::{TypeId, number},
    ledger::Tally,
    pool::Pools,
    selector::{ExpressionNumber, Selectors},
};

/// Devices, pools, what types come with, and claims.
#[derive(Debug, Default)]
pub(crate) struct Inventory {
    pub(crate) devices: Devices,
    pub(crate) pools: Pools,
    pub(crate) bindings: Bindings,
    pub(crate) claims: Claims,
    selectors: Selectors,
    types: Vec<TypeDevices>,
    type_ids: BTreeMap<Text, TypeId>,
}

/// What an instance type comes with.
#[derive(Debug, Default)]
struct TypeDevices {
    /// Places of its devices.
    devices: Vec<u32>,
    /// What its devices draw from.
    counters: Tally<Counter>,
}

impl Inventory {
    /// `nodes` are those whose published slices count: initialised, and not about to go.
    pub(crate) fn new(snapshot: &Snapshot, nodes: &BTreeSet<NodeName>, vocabulary: &mut Vocabulary) -> Self {
        let mut inventory = Self::default();
        inventory.claims = Claims::new(snapshot, &mut inventory.selectors, vocabulary);
        let slices = snapshot.objects().resource_slices.iter();
        let counted = slices.filter(|slice| node_owner(slice).is_none_or(|owner| nodes.contains(&owner)));
        inventory.pools = Pools::new(counted, &mut inventory.devices, vocabulary);
        for instance_type in &snapshot.catalog().instance_types {
            inventory.add_type(instance_type);
        }
        inventory.selectors.seal(inventory.devices.profiles.len());
        inventory
    }

    fn add_type(&mut self, instance_type: &CatalogType) {
        let id = TypeId(number(self.types.len()));
        let resources = &instance_type.dynamic_resources;
        let mut held = TypeDevices::default();
        for template in &resources.resource_slice_templates {
            let range = self.devices.add(template, true, None);
            held.devices.extend(positions(&range));
            let pool = self.devices.pool(&template.driver, &template.pool.name);
            for (counter, amount) in self.devices.tally(pool, &template.shared_counters).iter() {
                held.counters.set(*counter, amount);
            }
        }
        for binding in &resources.attribute_bindings {
            self.bindings.add(id, binding, &mut self.devices);
        }
        self.types.push(held);
        self.type_ids.insert(instance_type.name.as_str().into(), id);
    }

    pub(crate) fn type_id(&self, name: &str) -> Option<TypeId> {
        self.type_ids.get(name).copied()
    }

    /// Places of the devices a type comes with.
    pub(crate) fn template_devices(&self, instance_type: TypeId) -> &[u32] {
        let held = self.types.get(instance_type.position());
        held.map_or(&[], |held| &held.devices)
    }

    /// What a counter of a type's devices to come holds in total.
    pub(crate) fn template_counter(&self, instance_type: TypeId, counter: Counter) -> Option<Quantity> {
        self.types.get(instance_type.position())?.counters.get(&counter)
    }

    /// Whether the device at a place matches all the expressions.
    pub(crate) fn matches(&self, selectors: &[ExpressionNumber], at: u32) -> Result<bool, String> {
        let place = self.devices.offers.get(at as usize).map(|offer| offer.profile);
        let found = place.and_then(|place| Some((place, self.devices.profiles.get(place)?)));
        let Some((place, profile)) = found else {
            return Ok(false);
        };
        let answer = self.selectors.matches(selectors, place, profile);
        answer.map_err(|reason| reason.to_string())
    }
}

/// The node that owns a slice. Where the devices can be used does not say who publishes them.
fn node_owner(slice: &ResourceSlice) -> Option<NodeName> {
    let mut owners = slice.metadata.owner_references.iter();
    let owner = owners.find(|owner| owner.kind.as_ref() == "Node")?;
    Some(NodeName::from(owner.name.clone()))
}
