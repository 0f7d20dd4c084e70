//! What pools hold, may hold and cost; and how large and how fresh the state is.

use std::collections::{BTreeMap, BTreeSet};

use api::labels::{CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, ZONE};
use cloud::NodeClassKind;
use model::{
    object::{InstanceTypeName, NodeClaim, NodePool},
    price::Price,
    requirement::RequirementSpec,
    resources::ResourceList,
    snapshot::{CatalogOffering, Snapshot},
};
use runtime::{Metrics, metrics::Sheet};
use state::{Kind, State};

use super::nodes::{amount, snake};

/// Limits, usage and cost of the pools whose node class is the provider's.
pub(super) fn sheets(metrics: &Metrics, snapshot: &Snapshot, classes: &[NodeClassKind]) -> Vec<Sheet> {
    let pools = || {
        snapshot
            .objects()
            .node_pools
            .iter()
            .filter(|pool| is_managed(pool, classes))
    };
    let resources = |of: fn(&NodePool) -> &ResourceList| {
        pools().flat_map(move |pool| {
            let entries = of(pool).iter();
            entries.map(|(name, quantity)| {
                let labels = [snake(name.as_str()), pool.metadata.name.to_string()];
                (labels, amount(name, quantity))
            })
        })
    };
    let costs = costs(snapshot);
    let cost = |pool: &NodePool| costs.get(&*pool.metadata.name).copied().unwrap_or_default();
    vec![
        metrics.nodepools_limit.sheet_of(resources(|pool| &pool.spec.limits)),
        metrics
            .nodepools_usage
            .sheet_of(resources(|pool| &pool.status.resources)),
        metrics
            .nodepools_cost_total
            .sheet_of(pools().map(|pool| ([pool.metadata.name.clone()], dollars(cost(pool))))),
    ]
}

fn is_managed(pool: &NodePool, classes: &[NodeClassKind]) -> bool {
    let class = pool.spec.template.spec.node_class_ref.as_ref();
    class.is_some_and(|class| {
        let is_it = |known: &NodeClassKind| (known.group, known.kind) == (&*class.group, &*class.kind);
        classes.iter().any(is_it)
    })
}

#[expect(clippy::cast_precision_loss, reason = "a gauge for people")]
fn dollars(price: Price) -> f64 {
    price.picos() as f64 / 1e12
}

/// What each pool's claims cost an hour: those that say what they are, at the catalogue's price.
fn costs(snapshot: &Snapshot) -> BTreeMap<String, Price> {
    let mut prices: BTreeMap<[&str; 3], Price> = BTreeMap::new();
    let mut costs: BTreeMap<String, Price> = BTreeMap::new();
    for claim in snapshot.objects().node_claims.iter() {
        let label = |key| claim.metadata.labels.get(key).map(AsRef::as_ref);
        let place = (label(INSTANCE_TYPE), label(ZONE), label(CAPACITY_TYPE), label(NODEPOOL));
        let (Some(kind), Some(zone), Some(capacity), Some(pool)) = place else {
            continue;
        };
        let price = *prices
            .entry([kind, zone, capacity])
            .or_insert_with(|| price(snapshot, kind, zone, capacity).unwrap_or_default());
        let cost = costs.entry(pool.to_owned()).or_default();
        *cost = *cost + price;
    }
    costs
}

fn price(snapshot: &Snapshot, kind: &str, zone: &str, capacity: &str) -> Option<Price> {
    let offered = snapshot.catalog().get(&InstanceTypeName::from(kind))?;
    let is_it = |offering: &&CatalogOffering| says(offering, ZONE, zone) && says(offering, CAPACITY_TYPE, capacity);
    offered.offerings.iter().find(is_it).map(|offering| offering.price)
}

fn says(offering: &CatalogOffering, key: &str, value: &str) -> bool {
    let is_it =
        |requirement: &RequirementSpec| requirement.key == key && requirement.values.iter().any(|own| own == value);
    offering.requirements.iter().any(is_it)
}

/// How many machines are known, and whether the kinds that tell have been listed.
pub(super) fn cluster_sheets(metrics: &Metrics, snapshot: &Snapshot, state: &State) -> Vec<Sheet> {
    let needed = [Kind::NodePool, Kind::NodeClaim, Kind::Node];
    let is_synced = state.missing(&needed).is_empty();
    let waits = state.waits();
    let since = waits
        .iter()
        .filter(|wait| needed.contains(&wait.kind) && !wait.is_again)
        .map(|wait| wait.since)
        .min();
    let unsynced = since.map_or(0.0, |since| snapshot.taken_at().duration_since(since).as_secs_f64());
    let one = |value: f64| [([""; 0], value)];
    vec![
        metrics.cluster_state_node_count.sheet_of(one(machines(snapshot))),
        metrics
            .cluster_state_synced
            .sheet_of(one(f64::from(u8::from(is_synced)))),
        metrics.cluster_state_unsynced_time_seconds.sheet_of(one(unsynced)),
    ]
}

/// Machines: nodes and launched claims, those that belong together once.
fn machines(snapshot: &Snapshot) -> f64 {
    let objects = snapshot.objects();
    let claimed = |claim: &NodeClaim| claim.status.provider_id.as_ref().map(ToString::to_string);
    let claims = objects.node_claims.iter().filter_map(|claim| claimed(claim));
    let nodes = objects.nodes.iter().map(|node| {
        let id = node.spec.provider_id.as_ref();
        id.map_or_else(|| node.metadata.name.to_string(), ToString::to_string)
    });
    let machines: BTreeSet<String> = claims.chain(nodes).collect();
    f64::from(u32::try_from(machines.len()).unwrap_or(u32::MAX))
}
