//! From a finished run to a plan: what is written on each claim, and in what order its types are preferred.

use std::{collections::BTreeMap, sync::Arc};

use model::{
    bitset::BitSet,
    instance_type::needed_for_min_values,
    object::{Map, Pod, Text},
    plan::{Launch, Plan, PlannedClaim, PlannedNode, RefusalKind, Slot, TypeOptions, Unplaced},
    quantity::{Format, Quantity},
    requirement::{Requirement, RequirementSpec, Requirements},
    resources::{ResourceList, ResourceName},
    snapshot::MinValuesPolicy,
    vocabulary::{KeyId, ValueId},
};
use rustc_hash::FxHashMap;

use crate::{
    bitmap::{has, intersects, positions},
    index::{PriceOrder, reservation_key},
    refusal,
    run::Run,
    space::{Side, StateId},
};

/// How many instance types a claim names at most.
pub(crate) const MOST_TYPES: usize = 600;

/// The plan a run amounts to, with reasons for the pods left over.
pub(crate) fn plan(run: &mut Run<'_>, left: &[u32]) -> Plan {
    let used = (0..run.nodes.pods.len()).filter(|node| !run.nodes.pods[*node].is_empty());
    let used: Vec<usize> = used.collect();
    plan_beside(run, left, &used)
}

/// The same when it is known already which existing nodes got pods; they are ascending.
pub(crate) fn plan_beside(run: &mut Run<'_>, left: &[u32], used: &[usize]) -> Plan {
    let mut unplaced = Vec::new();
    if !left.is_empty() {
        unplaced = refusal::refusals(run, left);
    }
    let (mut claims, mut kept) = (Vec::new(), Vec::new());
    if run.claims.len() > 0 {
        (claims, kept) = Finisher::new(run).claims(&mut unplaced);
    }
    Plan {
        claims,
        existing: existing(run, used),
        unplaced,
        order: order(run, used, &kept),
    }
}

/// The order in which pods were placed. `used` are the nodes that got some, `kept` the claims that were not given up.
fn order(run: &Run<'_>, used: &[usize], kept: &[usize]) -> Vec<Slot> {
    let existing = (0..).zip(used).map(|(at, node)| (*node, Slot::Existing(at)));
    let claims = (0..)
        .zip(kept)
        .map(|(at, claim)| (run.claim_host(*claim), Slot::Claim(at)));
    let slots: FxHashMap<usize, Slot> = existing.chain(claims).collect();
    let hosts = run.order.iter().map(|host| *host as usize);
    hosts.filter_map(|host| slots.get(&host).copied()).collect()
}

/// A claim with some of its types only, in a state that may be narrower than its own.
pub(crate) fn narrowed(run: &mut Run<'_>, claim: usize, state: StateId, options: Arc<[u32]>) -> PlannedClaim {
    let (index, classes) = (&run.problem.index, &run.space.state(state).classes);
    let cheapest = options.first().and_then(|entry| index.cheapest(*entry, classes));
    let rows = index.rows_of(options.iter().copied());
    let options = TypeOptions::listed(index.names(), options);
    let mut finisher = Finisher::new(run);
    let chosen = finisher.of_options(state, options, &rows, cheapest);
    finisher.write(claim, state, chosen)
}

/// A claim's state, tied to the reservations it holds.
pub(crate) fn final_state(run: &mut Run<'_>, claim: usize) -> StateId {
    let state = run.claims.states[claim];
    let held = run.reserved.held(claim as u32);
    if held.is_empty() {
        return state;
    }
    let mut classes = run.problem.index.classes.iter();
    let key = classes.find_map(|class| reservation_key(&class.requirements, &run.problem.vocabulary));
    let mut requirements = run.space.state(state).requirements.clone();
    requirements.replace(Requirement::one_of(KeyId::CAPACITY_TYPE, [ValueId::RESERVED]));
    if let Some(key) = key {
        requirements.add(Requirement::one_of(key, held.iter().copied()), &run.problem.vocabulary);
    }
    let side = Side::Claim(run.claims.templates[claim]);
    run.space.intern(requirements, side)
}

fn existing(run: &Run<'_>, used: &[usize]) -> Vec<PlannedNode> {
    let planned = |node: &usize| PlannedNode {
        name: run.problem.node_name(*node).clone(),
        pods: pods_of(run, &run.nodes.pods[*node]),
    };
    used.iter().map(planned).collect()
}

fn pods_of(run: &Run<'_>, pods: &[u32]) -> Vec<Arc<Pod>> {
    pods.iter()
        .map(|pod| Arc::clone(&run.problem.pods[*pod as usize].pod))
        .collect()
}

/// Writes claims; what several claims have in common is written once.
struct Finisher<'r, 'p> {
    run: &'r mut Run<'p>,
    orders: FxHashMap<Box<[u64]>, Arc<PriceOrder>>,
    /// The same, by state.
    orders_by_state: FxHashMap<StateId, Arc<PriceOrder>>,
    constraints: FxHashMap<(StateId, BitSet), Arc<[RequirementSpec]>>,
    labels: FxHashMap<StateId, Map<Text>>,
    annotations: FxHashMap<(bool, Overlaid), Map<Text>>,
    /// Names of zones and capacity types.
    texts: FxHashMap<(KeyId, ValueId), Text>,
    /// Which lanes a shape names, as bits.
    named: Vec<u64>,
}

/// What follows from a claim's state and rows.
struct Chosen {
    options: TypeOptions,
    cheapest: Option<u32>,
    capacity_types: BitSet,
    overlaid: Overlaid,
    meets_min_values: Result<(), String>,
}

/// What of the options comes from overlays.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
struct Overlaid {
    is_price: bool,
    is_capacity: bool,
}

impl<'r, 'p> Finisher<'r, 'p> {
    fn new(run: &'r mut Run<'p>) -> Self {
        let problem = run.problem;
        let named = |shape: &ResourceList| {
            let lanes = problem.lanes.names().iter().enumerate();
            lanes.fold(0, |bits, (lane, name)| {
                bits | u64::from(shape.get(name.as_str()).is_some()) << lane.min(63)
            })
        };
        Self {
            orders: FxHashMap::default(),
            orders_by_state: FxHashMap::default(),
            constraints: FxHashMap::default(),
            labels: FxHashMap::default(),
            annotations: FxHashMap::default(),
            texts: FxHashMap::default(),
            named: problem.intake.shapes.iter().map(named).collect(),
            run,
        }
    }

    /// All claims but those that lose their `minValues` when only the cheapest types are kept, and which were kept.
    fn claims(mut self, unplaced: &mut Vec<Unplaced>) -> (Vec<PlannedClaim>, Vec<usize>) {
        let (mut claims, mut kept) = (Vec::with_capacity(self.run.claims.len()), Vec::new());
        for claim in 0..self.run.claims.len() {
            match self.claim(claim) {
                Ok(written) => {
                    claims.push(written);
                    kept.push(claim);
                }
                Err(message) => unplaced.extend(self.dropped(claim, &message)),
            }
        }
        (claims, kept)
    }

    fn dropped(&self, claim: usize, message: &str) -> Vec<Unplaced> {
        let message: Arc<str> = message.into();
        let pods = pods_of(self.run, &self.run.claims.pods[claim]);
        let unplaced = |pod| Unplaced {
            pod,
            kind: RefusalKind::Unschedulable,
            message: Arc::clone(&message),
        };
        pods.into_iter().map(unplaced).collect()
    }

    fn claim(&mut self, claim: usize) -> Result<PlannedClaim, String> {
        let state = final_state(self.run, claim);
        let order = self.order(state);
        let mut chosen = self.chosen(&order, state, claim);
        std::mem::replace(&mut chosen.meets_min_values, Ok(()))?;
        Ok(self.write(claim, state, chosen))
    }

    fn write(&mut self, claim: usize, state: StateId, chosen: Chosen) -> PlannedClaim {
        let template = &self.run.problem.templates[self.run.claims.templates[claim] as usize].template;
        let instance_types = self.run.space.state(state).requirements.get(KeyId::INSTANCE_TYPE);
        let min_types = instance_types.and_then(Requirement::min_values);
        PlannedClaim {
            node_pool: template.pool.name(),
            pods: pods_of(self.run, &self.run.claims.pods[claim]),
            constraints: self.constraints(state, &chosen.capacity_types),
            min_types,
            options: chosen.options,
            cheapest: chosen.cheapest.map(|offer| self.launch(offer)),
            requests: self.requests(claim),
            labels: self.labels(state, claim),
            annotations: self.annotations(claim, chosen.overlaid),
            wave: 0,
            nominated: Vec::new(),
        }
    }

    /// The types in the order a claim of this state prefers them.
    fn order(&mut self, state: StateId) -> Arc<PriceOrder> {
        if let Some(order) = self.orders_by_state.get(&state) {
            return Arc::clone(order);
        }
        let (index, classes) = (&self.run.problem.index, &self.run.space.state(state).classes);
        let known = self.orders.get(classes).map(Arc::clone);
        let order = known.unwrap_or_else(|| Arc::new(index.by_price(classes)));
        self.orders.insert(classes.clone(), Arc::clone(&order));
        self.orders_by_state.insert(state, Arc::clone(&order));
        order
    }

    fn chosen(&self, order: &PriceOrder, state: StateId, claim: usize) -> Chosen {
        let index = &self.run.problem.index;
        let rows = self.run.claims.rows(claim);
        let types = if index.has_one_row_each() {
            rows.into()
        } else {
            index.type_mask(rows)
        };
        let cheapest = order.entries.iter().position(|entry| has(&types, *entry as usize));
        let cheapest = cheapest.and_then(|at| order.offers[at]);
        let options = TypeOptions::chosen(index.names(), Arc::clone(&order.entries), types, MOST_TYPES);
        self.of_options(state, options, rows, cheapest)
    }

    /// What follows from these types, which have these rows.
    fn of_options(&self, state: StateId, options: TypeOptions, rows: &[u64], cheapest: Option<u32>) -> Chosen {
        Chosen {
            cheapest,
            capacity_types: self.capacity_types(&options, state, rows),
            overlaid: self.overlaid(&options),
            meets_min_values: self.check_min_values(state, &options),
            options,
        }
    }

    fn launch(&mut self, offer: u32) -> Launch {
        let (problem, offer) = (self.run.problem, &self.run.problem.index.offers[offer as usize]);
        let mut name = |key: KeyId, value: Option<ValueId>| {
            let value = value?;
            let text = self.texts.entry((key, value));
            let text = text.or_insert_with(|| problem.vocabulary.value_name(key, value).into());
            Some(Arc::clone(text))
        };
        Launch {
            instance_type: problem.index.names()[offer.entry as usize].clone(),
            zone: name(KeyId::ZONE, offer.zone),
            capacity_type: name(KeyId::CAPACITY_TYPE, offer.capacity_type),
            price: offer.price,
        }
    }

    /// The kinds of capacity that the options can be launched as.
    fn capacity_types(&self, options: &TypeOptions, state: StateId, rows: &[u64]) -> BitSet {
        let (index, classes) = (&self.run.problem.index, &self.run.space.state(state).classes);
        if index.has_one_row_each() && options.len() < MOST_TYPES {
            let passing = positions(classes).map(|class| &index.classes[class]);
            let launchable = passing.filter(|class| intersects(&class.launchable, rows));
            return launchable
                .filter_map(|class| class.capacity_type)
                .map(ValueId::bit)
                .collect();
        }
        let mut is_option = vec![false; index.types.len()];
        for entry in options.positions() {
            is_option[entry as usize] = true;
        }
        let launchable = index.offers.iter().filter(|offer| {
            offer.is_launchable && is_option[offer.entry as usize] && has(classes, offer.class as usize)
        });
        launchable
            .filter_map(|offer| offer.capacity_type)
            .map(ValueId::bit)
            .collect()
    }

    fn overlaid(&self, options: &TypeOptions) -> Overlaid {
        let index = &self.run.problem.index;
        if !index.has_overlaid {
            return Overlaid::default();
        }
        let types = || options.positions().map(|entry| &index.types[entry as usize]);
        Overlaid {
            is_price: types().any(|entry| entry.is_price_overlaid()),
            is_capacity: types().any(|entry| entry.is_capacity_overlaid),
        }
    }

    fn check_min_values(&self, state: StateId, options: &TypeOptions) -> Result<(), String> {
        let (problem, state) = (self.run.problem, self.run.space.state(state));
        let is_strict = problem.snapshot.settings().min_values_policy == MinValuesPolicy::Strict;
        if !state.has_min_values || !is_strict {
            return Ok(());
        }
        let types = options.positions().map(|entry| &*problem.index.types[entry as usize]);
        match needed_for_min_values(types, &state.requirements, &problem.vocabulary) {
            Ok(_) => Ok(()),
            Err(unmet) => {
                let Side::Claim(template) = state.side else {
                    return Ok(());
                };
                let pool = problem.templates[template as usize].template.pool.name();
                Err(format!(
                    "pod didn’t schedule because NodePool couldn’t meet minValues requirements, validating minValues, {unmet} (NodePool={pool})"
                ))
            }
        }
    }

    /// The requirements of the NodeClaim but for instance types; those that only served the simulation are left out.
    fn constraints(&mut self, state: StateId, capacity_types: &BitSet) -> Arc<[RequirementSpec]> {
        let key = (state, capacity_types.clone());
        if let Some(known) = self.constraints.get(&key) {
            return Arc::clone(known);
        }
        let vocabulary = &self.run.problem.vocabulary;
        let mut requirements = self.run.space.state(state).requirements.clone();
        if !capacity_types.is_empty() {
            let of = [ValueId::ON_DEMAND, ValueId::SPOT, ValueId::RESERVED];
            let of = of.into_iter().filter(|value| capacity_types.contains(value.bit()));
            requirements.add(Requirement::one_of(KeyId::CAPACITY_TYPE, of), vocabulary);
        }
        requirements.remove(KeyId::INSTANCE_TYPE);
        for name in SIMULATED {
            vocabulary.key(name).map(|key| requirements.remove(key));
        }
        let specs: Arc<[RequirementSpec]> = requirements.to_specs(vocabulary).into();
        self.constraints.insert(key, Arc::clone(&specs));
        specs
    }

    /// Template labels, pool, node class, and a value for each custom key.
    fn labels(&mut self, state: StateId, claim: usize) -> Map<Text> {
        if let Some(labels) = self.labels.get(&state) {
            return labels.clone();
        }
        let problem = self.run.problem;
        let pool = &problem.templates[self.run.claims.templates[claim] as usize]
            .template
            .pool;
        let template = &pool.spec.template;
        let mut labels: BTreeMap<Text, Text> = template.metadata.labels.iter().cloned().collect();
        labels.insert(api::labels::NODEPOOL.into(), pool.metadata.name.clone());
        if let Some(class) = &template.spec.node_class_ref {
            let key = format!("{}/{}", class.group, class.kind.to_lowercase());
            labels.insert(key.into(), class.name.clone());
        }
        let requirements = &self.run.space.state(state).requirements;
        for (key, value) in requirements.labels(&not_labels(requirements, self.run), &problem.vocabulary, 0) {
            if !value.is_empty() {
                labels.insert(key.into(), value.into());
            }
        }
        let labels = Map::from_pairs(labels.into_iter().collect());
        self.labels.insert(state, labels.clone());
        labels
    }

    fn annotations(&mut self, claim: usize, overlaid: Overlaid) -> Map<Text> {
        let is_relaxed = self.run.claims.is_relaxed[claim];
        let drivers = self.run.device_drivers(claim).join(",");
        if !drivers.is_empty() {
            return annotations(is_relaxed, overlaid, &drivers);
        }
        let known = self.annotations.entry((is_relaxed, overlaid));
        known.or_insert_with(|| annotations(is_relaxed, overlaid, "")).clone()
    }

    /// What the pods ask for, and the daemons that will run whatever is launched.
    fn requests(&self, claim: usize) -> ResourceList {
        let (problem, claims) = (self.run.problem, &self.run.claims);
        let pods = claims.pods[claim]
            .iter()
            .map(|pod| problem.intake.pods[*pod as usize].shape);
        let named = pods.fold(0, |bits, shape| bits | self.named[shape as usize]);
        let mut requests = ResourceList::default();
        for (lane, (name, amount)) in problem.lanes.names().iter().zip(claims.requests(claim)).enumerate() {
            if named >> lane.min(63) & 1 == 1 {
                requests.set(name.clone(), quantity(name, *amount));
            }
        }
        let template = &problem.templates[claims.templates[claim] as usize];
        let mut daemons = ResourceList::default();
        for group in template
            .daemons
            .iter()
            .filter(|group| intersects(&group.rows, claims.rows(claim)))
        {
            daemons = if daemons.is_empty() {
                group.asked.clone()
            } else {
                daemons.min(&group.asked)
            };
        }
        requests.add(&daemons);
        requests
    }
}

fn annotations(is_relaxed: bool, overlaid: Overlaid, drivers: &str) -> Map<Text> {
    let relaxed = if is_relaxed { "true" } else { "false" };
    let mut pairs = vec![(api::annotations::NODECLAIM_MIN_VALUES_RELAXED, relaxed)];
    if overlaid.is_price {
        pairs.push((api::annotations::PRICE_OVERLAY_APPLIED, "true"));
    }
    if overlaid.is_capacity {
        pairs.push((api::annotations::CAPACITY_OVERLAY_APPLIED, "true"));
    }
    if !drivers.is_empty() {
        pairs.push((api::annotations::REQUESTED_DRA_DRIVERS, drivers));
    }
    let pairs = pairs.into_iter().map(|(key, value)| (key.into(), value.into()));
    Map::from_pairs(pairs.collect())
}

/// Keys that a template carries only so that daemons selecting on them are counted.
const SIMULATED: [&str; 2] = [api::labels::REGISTERED, api::labels::INITIALIZED];

fn not_labels(requirements: &Requirements, run: &Run<'_>) -> BitSet {
    let vocabulary = &run.problem.vocabulary;
    let simulated = SIMULATED.iter().filter_map(|name| vocabulary.key(name)).map(KeyId::bit);
    let known = requirements
        .iter()
        .map(Requirement::key)
        .filter(|key| vocabulary.is_well_known(*key));
    simulated
        .chain([KeyId::HOSTNAME.bit()])
        .chain(known.map(KeyId::bit))
        .collect()
}

/// An amount of a lane as people write it.
pub(crate) fn quantity(name: &ResourceName, amount: i64) -> Quantity {
    let format = match name {
        ResourceName::Memory | ResourceName::EphemeralStorage => Format::BinarySi,
        _ if name.is_huge_pages() => Format::BinarySi,
        _ => Format::DecimalSi,
    };
    Quantity::from_nanos(crate::lanes::nanos(name, amount), format)
}
