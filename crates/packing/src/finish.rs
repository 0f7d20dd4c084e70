//! From a finished run to a plan: what is written on each claim, and in what order its types are preferred.

use std::{collections::BTreeMap, sync::Arc};

use model::{
    bitset::BitSet,
    instance_type::needed_for_min_values,
    object::{InstanceTypeName, Map, Pod, Text},
    plan::{Launch, Plan, PlannedClaim, PlannedNode, RefusalKind, TypeOptions, Unplaced},
    price::Price,
    quantity::{Format, Quantity},
    requirement::{Requirement, RequirementSpec, Requirements},
    resources::{ResourceList, ResourceName},
    snapshot::MinValuesPolicy,
    vocabulary::{KeyId, ValueId},
};
use rustc_hash::FxHashMap;

use crate::{
    bitmap::{has, intersects},
    index::{PricedType, reservation_key},
    refusal,
    run::Run,
    space::{Side, StateId},
};

/// How many instance types a claim names at most.
pub(crate) const MOST_TYPES: usize = 600;

/// The plan a run amounts to, with reasons for the pods left over.
pub(crate) fn plan(run: &mut Run<'_>, left: &[u32]) -> Plan {
    let mut unplaced = refusal::refusals(run, left);
    let claims = Finisher::new(run).claims(&mut unplaced);
    let existing = existing(run);
    Plan {
        claims,
        existing,
        unplaced,
    }
}

/// What a claim comes to, before it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClaimSummary {
    /// Its cheapest launch.
    pub(crate) price: Price,
    /// How many types it may become.
    pub(crate) options: usize,
    /// The cheapest launch is spot capacity.
    pub(crate) is_spot: bool,
    /// It still meets its `minValues` once only the cheapest types are kept.
    pub(crate) is_kept: bool,
}

/// What the claims of a run come to.
pub(crate) fn summaries(run: &mut Run<'_>) -> Vec<ClaimSummary> {
    let claims = run.claims.len();
    let mut finisher = Finisher::new(run);
    let summary = |claim| {
        let state = final_state(finisher.run, claim);
        let chosen = finisher.chosen(state, claim);
        let capacity_type = chosen
            .cheapest
            .as_ref()
            .and_then(|launch| launch.capacity_type.as_deref());
        ClaimSummary {
            price: chosen.cheapest.as_ref().map_or(Price::ZERO, |launch| launch.price),
            options: chosen.options.len(),
            is_spot: capacity_type == Some(api::labels::CAPACITY_TYPE_SPOT),
            is_kept: chosen.meets_min_values.is_ok(),
        }
    };
    (0..claims).map(summary).collect()
}

/// A claim with some of its types only, in a state that may be narrower than its own.
pub(crate) fn narrowed(run: &mut Run<'_>, claim: usize, state: StateId, options: &[u32]) -> PlannedClaim {
    let mut finisher = Finisher::new(run);
    let chosen = finisher.of_options(state, options);
    finisher.write(claim, state, &chosen)
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

fn existing(run: &Run<'_>) -> Vec<PlannedNode> {
    let used = run.nodes.pods.iter().enumerate().filter(|(_, pods)| !pods.is_empty());
    used.map(|(node, pods)| PlannedNode {
        name: run.problem.node_name(node).clone(),
        pods: pods_of(run, pods),
    })
    .collect()
}

fn pods_of(run: &Run<'_>, pods: &[u32]) -> Vec<Arc<Pod>> {
    pods.iter()
        .map(|pod| Arc::clone(&run.problem.pods[*pod as usize].pod))
        .collect()
}

/// Writes claims; what several claims have in common is written once.
struct Finisher<'r, 'p> {
    run: &'r mut Run<'p>,
    names: Arc<[InstanceTypeName]>,
    orders: FxHashMap<Box<[u64]>, Arc<[PricedType]>>,
    options: FxHashMap<(StateId, Box<[u64]>), Arc<Chosen>>,
    constraints: FxHashMap<(StateId, BitSet), Arc<[RequirementSpec]>>,
    labels: FxHashMap<StateId, Map<Text>>,
    /// Which lanes a shape names, as bits.
    named: Vec<u64>,
}

/// What follows from a claim's state and rows.
struct Chosen {
    options: Arc<[u32]>,
    cheapest: Option<Launch>,
    capacity_types: BitSet,
    annotations: Vec<&'static str>,
    meets_min_values: Result<(), String>,
}

impl<'r, 'p> Finisher<'r, 'p> {
    fn new(run: &'r mut Run<'p>) -> Self {
        let problem = run.problem;
        let names = problem
            .index
            .types
            .iter()
            .map(|entry| InstanceTypeName::from(&*entry.name));
        let named = |shape: &ResourceList| {
            let lanes = problem.lanes.names().iter().enumerate();
            lanes.fold(0, |bits, (lane, name)| {
                bits | u64::from(shape.get(name.as_str()).is_some()) << lane.min(63)
            })
        };
        Self {
            names: names.collect(),
            orders: FxHashMap::default(),
            options: FxHashMap::default(),
            constraints: FxHashMap::default(),
            labels: FxHashMap::default(),
            named: problem.intake.shapes.iter().map(named).collect(),
            run,
        }
    }

    /// All claims but those that lose their `minValues` when only the cheapest types are kept.
    fn claims(mut self, unplaced: &mut Vec<Unplaced>) -> Vec<PlannedClaim> {
        let mut claims = Vec::with_capacity(self.run.claims.len());
        for claim in 0..self.run.claims.len() {
            match self.claim(claim) {
                Ok(claim) => claims.push(claim),
                Err(message) => unplaced.extend(self.dropped(claim, &message)),
            }
        }
        claims
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
        let chosen = self.chosen(state, claim);
        chosen.meets_min_values.clone()?;
        Ok(self.write(claim, state, &chosen))
    }

    fn write(&mut self, claim: usize, state: StateId, chosen: &Chosen) -> PlannedClaim {
        let template = &self.run.problem.templates[self.run.claims.templates[claim] as usize].template;
        let instance_types = self.run.space.state(state).requirements.get(KeyId::INSTANCE_TYPE);
        let min_types = instance_types.and_then(Requirement::min_values);
        PlannedClaim {
            node_pool: template.pool.name(),
            pods: pods_of(self.run, &self.run.claims.pods[claim]),
            constraints: self.constraints(state, &chosen.capacity_types),
            min_types,
            options: TypeOptions {
                names: Arc::clone(&self.names),
                chosen: Arc::clone(&chosen.options),
            },
            cheapest: chosen.cheapest.clone(),
            requests: self.requests(claim),
            labels: self.labels(state, claim),
            annotations: self.annotations(claim, chosen),
        }
    }

    fn chosen(&mut self, state: StateId, claim: usize) -> Arc<Chosen> {
        let rows = self.run.claims.rows(claim);
        let key = (state, Box::from(rows));
        if let Some(chosen) = self.options.get(&key) {
            return Arc::clone(chosen);
        }
        let chosen = Arc::new(self.choose(state, &key.1));
        self.options.insert(key, Arc::clone(&chosen));
        chosen
    }

    fn choose(&mut self, state: StateId, rows: &[u64]) -> Chosen {
        let index = &self.run.problem.index;
        let entry = self.run.space.state(state);
        let order = self
            .orders
            .entry(entry.classes.clone())
            .or_insert_with(|| index.by_price(&entry.classes).into());
        let fitting = order.iter().filter(|priced| index.has_type(rows, priced.entry));
        let options: Vec<u32> = fitting.map(|priced| priced.entry).take(MOST_TYPES).collect();
        self.of_options(state, &options)
    }

    /// What follows from these types; the first decides what the claim costs.
    fn of_options(&self, state: StateId, options: &[u32]) -> Chosen {
        let (index, classes) = (&self.run.problem.index, &self.run.space.state(state).classes);
        let first = options.first();
        let cheapest = first.and_then(|entry| index.cheapest(*entry, classes));
        Chosen {
            cheapest: cheapest.map(|offer| self.launch(offer)),
            capacity_types: self.capacity_types(options, classes),
            annotations: self.overlays(options),
            meets_min_values: self.check_min_values(state, options),
            options: options.into(),
        }
    }

    fn launch(&self, offer: u32) -> Launch {
        let (problem, offer) = (self.run.problem, &self.run.problem.index.offers[offer as usize]);
        let name = |key: KeyId, value: Option<ValueId>| {
            value.map(|value| Text::from(problem.vocabulary.value_name(key, value)))
        };
        Launch {
            instance_type: self.names[offer.entry as usize].clone(),
            zone: name(KeyId::ZONE, offer.zone),
            capacity_type: name(KeyId::CAPACITY_TYPE, offer.capacity_type),
            price: offer.price,
        }
    }

    fn capacity_types(&self, options: &[u32], classes: &[u64]) -> BitSet {
        let index = &self.run.problem.index;
        let mut is_option = vec![false; index.types.len()];
        for entry in options {
            is_option[*entry as usize] = true;
        }
        let launchable = index.offers.iter().filter(|offer| {
            offer.is_launchable && is_option[offer.entry as usize] && has(classes, offer.class as usize)
        });
        launchable
            .filter_map(|offer| offer.capacity_type)
            .map(ValueId::bit)
            .collect()
    }

    fn overlays(&self, options: &[u32]) -> Vec<&'static str> {
        let types = &self.run.problem.index.types;
        let any = |is_overlaid: fn(&model::instance_type::InstanceType) -> bool| {
            options.iter().any(|entry| is_overlaid(&types[*entry as usize]))
        };
        let mut annotations = Vec::new();
        if any(model::instance_type::InstanceType::is_price_overlaid) {
            annotations.push(api::annotations::PRICE_OVERLAY_APPLIED);
        }
        if any(|entry| entry.is_capacity_overlaid) {
            annotations.push(api::annotations::CAPACITY_OVERLAY_APPLIED);
        }
        annotations
    }

    fn check_min_values(&self, state: StateId, options: &[u32]) -> Result<(), String> {
        let (problem, state) = (self.run.problem, self.run.space.state(state));
        let is_strict = problem.snapshot.settings().min_values_policy == MinValuesPolicy::Strict;
        if !state.has_min_values || !is_strict {
            return Ok(());
        }
        let types = options.iter().map(|entry| &*problem.index.types[*entry as usize]);
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

    fn annotations(&self, claim: usize, chosen: &Chosen) -> Map<Text> {
        let relaxed = if self.run.claims.is_relaxed[claim] {
            "true"
        } else {
            "false"
        };
        let mut pairs = vec![(api::annotations::NODECLAIM_MIN_VALUES_RELAXED, relaxed)];
        pairs.extend(chosen.annotations.iter().map(|name| (*name, "true")));
        let drivers = self.run.device_drivers(claim).join(",");
        if !drivers.is_empty() {
            pairs.push((api::annotations::REQUESTED_DRA_DRIVERS, &drivers));
        }
        Map::from_pairs(
            pairs
                .into_iter()
                .map(|(key, value)| (key.into(), value.into()))
                .collect(),
        )
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
