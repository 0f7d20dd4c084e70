//! Everything about devices that does not change during a run.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use model::{
    object::{List, NodeName, Text},
    quantity::Quantity,
    snapshot::{CatalogType, DynamicResources, Snapshot},
    vocabulary::Vocabulary,
};

use crate::{
    allocated::Holdings,
    binding::Bindings,
    claim::Claims,
    device::{Counter, Devices, positions},
    id::{KindId, TypeId, number},
    ledger::Tally,
    pool::{Pools, node_owner},
    selector::{ExpressionNumber, Selectors},
};

/// Devices, pools, what types come with, and claims.
#[derive(Debug, Default)]
pub(crate) struct Inventory {
    pub(crate) devices: Devices,
    pub(crate) pools: Pools,
    pub(crate) bindings: Bindings,
    pub(crate) claims: Claims,
    /// What claims hold before any pod moves.
    pub(crate) holdings: Holdings,
    selectors: Selectors,
    kinds: Vec<Kind>,
    /// By place of the type in the catalogue.
    type_kinds: Vec<KindId>,
    type_ids: BTreeMap<Text, TypeId>,
}

/// What some instance types come with.
#[derive(Debug, Default)]
struct Kind {
    /// Places of the devices.
    devices: Vec<u32>,
    /// What the devices draw from.
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
        inventory.holdings = Holdings::new(snapshot, &mut inventory.devices);
        inventory.add_types(&snapshot.catalog().instance_types);
        inventory.selectors.seal(inventory.devices.profiles.len());
        inventory
    }

    fn add_types(&mut self, types: &[Arc<CatalogType>]) {
        let mut known = HashMap::from([((List::default(), List::default()), KindId::BARE)]);
        self.kinds.push(Kind::default());
        for (at, instance_type) in types.iter().enumerate() {
            let resources = &instance_type.dynamic_resources;
            let key = (
                resources.resource_slice_templates.clone(),
                resources.attribute_bindings.clone(),
            );
            let kind = *known.entry(key).or_insert_with(|| self.add_kind(resources));
            self.type_kinds.push(kind);
            self.type_ids.insert(instance_type.name.as_str().into(), TypeId::at(at));
        }
    }

    fn add_kind(&mut self, resources: &DynamicResources) -> KindId {
        let id = KindId(number(self.kinds.len()));
        let mut kind = Kind::default();
        for template in &resources.resource_slice_templates {
            let range = self.devices.add(template, true, None);
            kind.devices.extend(positions(&range));
            let pool = self.devices.pool(&template.driver, &template.pool.name);
            for (counter, amount) in self.devices.tally(pool, &template.shared_counters).iter() {
                kind.counters.set(*counter, amount);
            }
        }
        for binding in &resources.attribute_bindings {
            self.bindings.add(id, binding, &mut self.devices);
        }
        self.kinds.push(kind);
        id
    }

    pub(crate) fn type_id(&self, name: &str) -> Option<TypeId> {
        self.type_ids.get(name).copied()
    }

    pub(crate) fn kind(&self, instance_type: TypeId) -> KindId {
        let kind = instance_type.position().and_then(|at| self.type_kinds.get(at));
        kind.copied().unwrap_or(KindId::BARE)
    }

    /// Places of the devices to come.
    pub(crate) fn template_devices(&self, kind: KindId) -> &[u32] {
        self.kinds.get(kind.0 as usize).map_or(&[], |kind| &kind.devices)
    }

    /// What a counter of devices to come holds in total.
    pub(crate) fn template_counter(&self, kind: KindId, counter: Counter) -> Option<Quantity> {
        self.kinds.get(kind.0 as usize)?.counters.get(&counter)
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
