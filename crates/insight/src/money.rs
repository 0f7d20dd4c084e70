//! What does it cost, what part of that is avoidable, and what was saved? Every figure from the catalogue's prices now.

mod baseline;
mod split;

use std::collections::BTreeMap;

use api::labels::{CAPACITY_TYPE_ON_DEMAND, CAPACITY_TYPE_RESERVED, CAPACITY_TYPE_SPOT};
use model::{
    object::{BriefCondition, ConditionStatus, NodeName, Pod, Text},
    snapshot::Snapshot,
};
use packing::{Floor, Options};
use serde::Serialize;
use std::sync::Arc;

pub use self::split::{By, Row, Rows};
use crate::{Dollars, Machine, Prices, View, outlook::Outlook};

/// What it costs.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Money {
    /// What machines of NodePools cost now.
    pub spend_usd_h: Dollars,
    /// The same for a month.
    pub spend_usd_mo: Dollars,
    /// What no valid fleet for the pods that run can cost less than.
    pub bound_usd_h: Dollars,
    /// The same for a month.
    pub bound_usd_mo: Dollars,
    /// Each pod on a node of its own, on demand.
    pub baseline_usd_h: Dollars,
    /// The same for a month.
    pub baseline_usd_mo: Dollars,
    /// What is allocatable and not asked for.
    pub idle_usd_mo: Dollars,
    /// What the baseline costs more, by what saves it.
    pub saved: Saved,
    /// What is spent above the bound, by why.
    pub above_bound: AboveBound,
    /// What somebody else's nodes cost; not in the spend.
    pub unmanaged_usd_mo: Dollars,
    /// Machines whose price nobody knows; they count for nothing.
    pub unpriced_nodes: usize,
}

/// What is saved against the baseline, a month.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Saved {
    /// By several pods on one node. What is left of the difference; less than nothing where nodes are nearly empty.
    pub packing_usd_mo: Dollars,
    /// By spot prices.
    pub spot_usd_mo: Dollars,
    /// By reservations.
    pub commitments_usd_mo: Dollars,
    /// All together.
    pub total_usd_mo: Dollars,
}

/// What is spent above the bound, a month.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct AboveBound {
    /// Goes by itself: moves that are about to be made, or wait for their time.
    pub planned_usd_mo: Dollars,
    /// A rule keeps a node.
    pub held_usd_mo: Dollars,
    /// On demand, for pods that may run on spot.
    pub drag_usd_mo: Dollars,
    /// Sizes come in steps, and bounds are not plans.
    pub rounding_usd_mo: Dollars,
    /// All together.
    pub total_usd_mo: Dollars,
}

impl AboveBound {
    /// Shares out what is above the bound; what nobody accounts for is rounding.
    fn shared(total: Dollars, planned: Dollars, held: Dollars, drag: Dollars) -> Self {
        let mut left = total.or_nothing();
        let mut take = |wanted: Dollars| {
            let taken = wanted.or_nothing().min(left);
            left = left - taken;
            taken
        };
        let (planned, held, drag) = (take(planned), take(held), take(drag));
        Self {
            planned_usd_mo: planned,
            held_usd_mo: held,
            drag_usd_mo: drag,
            rounding_usd_mo: left,
            total_usd_mo: total.or_nothing(),
        }
    }
}

/// What the pods of each pool cost at least.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bounds {
    /// All together.
    pub total: Dollars,
    /// By pool: in proportion to what its pods cost in a fleet planned anew.
    pub by_pool: BTreeMap<String, Dollars>,
}

impl Bounds {
    /// What no valid fleet for the pods that run on machines of NodePools can cost less than.
    pub fn of(view: &View<'_>) -> Self {
        let (emptied, pools) = emptied(view);
        if view.machines.len() > LARGE {
            return Self::quick(&emptied, &pools);
        }
        // Who plans learns what pods are worth, and so proves more than who only looks.
        let planned = packing::planned(&emptied, &Options::default());
        let total = Dollars::from(planned.report.lower_bound);
        let mut worth: BTreeMap<String, Dollars> = BTreeMap::new();
        for claim in &planned.plan.claims {
            let price = claim.cheapest.as_ref().map(|launch| Dollars::from(launch.price));
            let share = price.unwrap_or_default().part(1, claim.pods.len().max(1) as u64);
            for pod in &claim.pods {
                let key = (pod.metadata.namespace.clone(), pod.metadata.name.clone());
                if let Some(pool) = pools.get(&key) {
                    *worth.entry(pool.to_string()).or_default() += share;
                }
            }
        }
        let all: Dollars = worth.values().copied().sum();
        let part = |(pool, worth): (String, Dollars)| {
            let (worth, all) = (worth.size().picos(), all.size().picos());
            (pool, total.part(worth, all))
        };
        Self {
            total,
            by_pool: worth.into_iter().map(part).collect(),
        }
    }

    /// The same without a plan, for fleets so large that planning them anew would take longer than anybody waits.
    fn quick(emptied: &Snapshot, pools: &BTreeMap<(Text, Text), &Text>) -> Self {
        let Floor { total, parts } = packing::floor(emptied, &Options::default());
        let mut by_pool: BTreeMap<String, Dollars> = BTreeMap::new();
        for (pod, part) in parts {
            if let Some(pool) = pools.get(&(pod.namespace.clone(), pod.name.clone())) {
                *by_pool.entry(pool.to_string()).or_default() += part.into();
            }
        }
        Self {
            total: total.into(),
            by_pool,
        }
    }
}

/// Machines beyond which nothing is planned for the bound.
const LARGE: usize = 1000;

/// The cluster with no machine of any NodePool, in which all their pods wait; and the pool each pod ran in.
fn emptied<'a>(view: &View<'a>) -> (Snapshot, BTreeMap<(Text, Text), &'a Text>) {
    let mut pools = BTreeMap::new();
    let mut waiting = Vec::new();
    let mut dropped = Vec::new();
    let mut gone: Vec<NodeName> = Vec::new();
    for machine in view.managed() {
        gone.push(machine.node_name());
        for pod in &machine.pods {
            let Some(pool) = machine.member.node_pool().filter(|_| pod.is_reschedulable()) else {
                dropped.push(pod.metadata.key());
                continue;
            };
            pools.insert((pod.metadata.namespace.clone(), pod.metadata.name.clone()), pool);
            waiting.push(Arc::new(unbound(pod)));
        }
    }
    // Pods that wait already are not part of what is paid for now.
    dropped.extend(view.snapshot.provisionable_pods().map(|pod| pod.metadata.key()));
    let claims: Vec<_> = view
        .snapshot
        .objects()
        .node_claims
        .iter()
        .map(|claim| claim.metadata.key())
        .collect();
    let snapshot = view.snapshot.without_nodes(&gone).overlaid(|objects| {
        objects.pods = objects.pods.without(dropped).with(waiting);
        objects.node_claims = objects.node_claims.without(claims);
    });
    (snapshot, pools)
}

fn unbound(pod: &Pod) -> Pod {
    let mut pod = pod.clone();
    pod.node_name = None;
    pod.status.nominated_node_name = None;
    let waits = BriefCondition {
        kind: "PodScheduled".into(),
        status: ConditionStatus::False,
        reason: "Unschedulable".into(),
        last_transition_time: None,
    };
    pod.status.conditions = [waits].into_iter().collect();
    pod
}

/// Money by pool and in all, worked out once.
#[derive(Debug)]
pub struct Accounts {
    /// All together.
    pub money: Money,
    /// By pool.
    pub pools: BTreeMap<String, Money>,
}

impl Accounts {
    /// What it costs, beside its bounds, with what is planned and held taken from an outlook.
    pub fn of(view: &View<'_>, prices: &Prices, outlook: &Outlook, bounds: &Bounds) -> Self {
        let baselines = baseline::by_pool(view, prices);
        let mut pools: BTreeMap<String, Money> = BTreeMap::new();
        for pool in view.snapshot.objects().node_pools.iter() {
            pools.insert(pool.metadata.name.to_string(), Money::default());
        }
        let mut drags: BTreeMap<String, Dollars> = BTreeMap::new();
        for machine in view.managed() {
            let name = machine.pool.as_deref().unwrap_or_default().to_owned();
            *drags.entry(name.clone()).or_default() += drag(view, prices, machine);
            count(pools.entry(name).or_default(), machine);
        }
        let (planned, held) = (planned(outlook), held(outlook));
        for (name, money) in &mut pools {
            let of = |amounts: &BTreeMap<String, Dollars>| amounts.get(name).copied().unwrap_or_default();
            money.bound_usd_h = of(&bounds.by_pool);
            money.baseline_usd_h = of(&baselines);
            let above = (money.spend_usd_h - money.bound_usd_h).monthly();
            money.above_bound = AboveBound::shared(above, of(&planned), of(&held), of(&drags).monthly());
            finish(money);
        }
        let mut money = Money {
            bound_usd_h: bounds.total,
            ..Money::default()
        };
        for pool in pools.values() {
            money.spend_usd_h += pool.spend_usd_h;
            money.baseline_usd_h += pool.baseline_usd_h;
            money.idle_usd_mo += pool.idle_usd_mo;
            money.saved.spot_usd_mo += pool.saved.spot_usd_mo;
            money.saved.commitments_usd_mo += pool.saved.commitments_usd_mo;
            money.unpriced_nodes += pool.unpriced_nodes;
        }
        let sum = |of: fn(&AboveBound) -> Dollars| pools.values().map(|pool| of(&pool.above_bound)).sum();
        let above = (money.spend_usd_h - money.bound_usd_h).monthly();
        money.above_bound = AboveBound::shared(
            above,
            sum(|above| above.planned_usd_mo),
            sum(|above| above.held_usd_mo),
            sum(|above| above.drag_usd_mo),
        );
        let unmanaged = view.machines.iter().filter(|machine| !machine.is_managed());
        money.unmanaged_usd_mo = unmanaged.map(Machine::cost).sum::<Dollars>().monthly();
        finish(&mut money);
        Self { money, pools }
    }
}

/// Takes a machine into account.
fn count(money: &mut Money, machine: &Machine<'_>) {
    let Some(price) = machine.price else {
        money.unpriced_nodes += 1;
        return;
    };
    money.spend_usd_h += price.into();
    money.idle_usd_mo += split::idle(machine).monthly();
    let listed = machine.on_demand.map_or(Dollars::ZERO, Dollars::from);
    let less = (listed - Dollars::from(price)).or_nothing().monthly();
    match machine.capacity_type.as_deref() {
        Some(CAPACITY_TYPE_SPOT) => money.saved.spot_usd_mo += less,
        // On demand a machine costs less than it is listed for only where a commitment covers it.
        Some(CAPACITY_TYPE_RESERVED | CAPACITY_TYPE_ON_DEMAND) => money.saved.commitments_usd_mo += less,
        _ => {}
    }
}

/// What follows from the rest.
fn finish(money: &mut Money) {
    money.spend_usd_mo = money.spend_usd_h.monthly();
    money.bound_usd_mo = money.bound_usd_h.monthly();
    money.baseline_usd_mo = money.baseline_usd_h.monthly();
    let total = money.baseline_usd_mo - money.spend_usd_mo;
    let saved = &mut money.saved;
    saved.total_usd_mo = total;
    saved.packing_usd_mo = total - saved.spot_usd_mo - saved.commitments_usd_mo;
}

/// What moves save a month, by pool: those that are made, and those that wait for their time.
fn planned(outlook: &Outlook) -> BTreeMap<String, Dollars> {
    let mut planned: BTreeMap<String, Dollars> = BTreeMap::new();
    for step in &outlook.moves {
        let pool = step.pools.first().cloned().unwrap_or_default();
        *planned.entry(pool).or_default() += -step.delta_usd_mo;
    }
    for wait in &outlook.waits {
        *planned.entry(wait.pool.clone()).or_default() += wait.saving_usd_mo.unwrap_or_default();
    }
    planned
}

fn held(outlook: &Outlook) -> BTreeMap<String, Dollars> {
    let mut held: BTreeMap<String, Dollars> = BTreeMap::new();
    for kept in &outlook.held {
        *held.entry(kept.pool.clone()).or_default() += kept.saving_usd_mo.unwrap_or_default();
    }
    held
}

/// What a machine on demand costs more than it would as spot, where its pool allows spot and no pod on it asks for anything else.
fn drag(view: &View<'_>, prices: &Prices, machine: &Machine<'_>) -> Dollars {
    let is_on_demand = machine.capacity_type.as_deref() == Some(CAPACITY_TYPE_ON_DEMAND);
    if !is_on_demand || machine.movable().any(|pod| asks_for_capacity_type(pod)) {
        return Dollars::ZERO;
    }
    let (Some(pool), Some(name)) = (machine.pool.as_ref(), machine.instance_type.as_ref()) else {
        return Dollars::ZERO;
    };
    let pool_object = view.snapshot.objects().node_pools.find("", pool);
    if !pool_object.is_some_and(|pool| allows_spot(pool)) {
        return Dollars::ZERO;
    }
    let it = prices.instance_type(Some(pool), name);
    let spot = it.and_then(|it| prices.price(it, machine.zone.as_deref(), Some(CAPACITY_TYPE_SPOT)));
    spot.map_or(Dollars::ZERO, |spot| {
        (machine.cost() - Dollars::from(spot)).or_nothing()
    })
}

fn allows_spot(pool: &model::object::NodePool) -> bool {
    let asked = pool.spec.template.spec.requirements.iter();
    let mut asked = asked.filter(|requirement| *requirement.key == *api::labels::CAPACITY_TYPE);
    asked.all(|requirement| {
        let has = requirement.values.iter().any(|value| **value == *CAPACITY_TYPE_SPOT);
        match &*requirement.operator {
            "In" => has,
            "NotIn" => !has,
            _ => true,
        }
    })
}

fn asks_for_capacity_type(pod: &Pod) -> bool {
    let key = api::labels::CAPACITY_TYPE;
    let affinity = pod
        .spec
        .affinity
        .as_ref()
        .and_then(|affinity| affinity.node_affinity.as_ref());
    let required = affinity.and_then(|affinity| affinity.required.as_ref());
    let mut terms = required.into_iter().flat_map(|required| &required.node_selector_terms);
    let asks = terms.any(|term| term.match_expressions.iter().any(|wanted| *wanted.key == *key));
    asks || pod.spec.node_selector.get(key).is_some()
}
