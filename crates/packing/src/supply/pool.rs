//! Which NodePools take part, in which order, with which instance types, and what their limits leave.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

use model::{
    instance_type::InstanceType,
    object::{NodePool, NodePoolName, Text},
    resources::{ResourceList, ResourceName},
    snapshot::{Member, Snapshot},
    vocabulary::Vocabulary,
};

use super::{
    overlay::Overlays,
    stock::{Stock, Ware},
};

/// The NodePools of a run, heaviest first.
#[derive(Debug, Default)]
pub(super) struct Pools {
    offers: Vec<PoolOffer>,
}

/// A NodePool with the instance types its node class offers.
#[derive(Debug)]
pub(super) struct PoolOffer {
    pub(super) pool: Arc<NodePool>,
    /// In catalogue order.
    pub(super) types: Vec<Ware>,
}

impl Pools {
    /// The pools that take part: dynamic, ready, and not being deleted. Heavier ones come first; of two equally heavy ones
    /// the one later in the alphabet.
    pub(super) fn of(snapshot: &Snapshot, stock: &Stock, vocabulary: &mut Vocabulary) -> Self {
        let pools = snapshot.objects().node_pools.iter();
        let mut pools: Vec<_> = pools.filter(|pool| takes_part(pool)).cloned().collect();
        pools.sort_by_key(|pool| Reverse((pool.spec.weight.unwrap_or(0), pool.metadata.name.clone())));
        let overlays = Overlays::of(snapshot, stock, vocabulary);
        let offer = |pool: Arc<NodePool>| PoolOffer {
            types: overlays.applied(&pool, stock.offered(&pool)),
            pool,
        };
        Self {
            offers: pools.into_iter().map(offer).collect(),
        }
    }

    /// The pools of a snapshot, and the numbers of their labels.
    #[cfg(test)]
    pub(super) fn read(snapshot: &Snapshot) -> (Self, Vocabulary) {
        let stock = Stock::of(snapshot);
        let mut vocabulary = stock.vocabulary();
        (Self::of(snapshot, &stock, &mut vocabulary), vocabulary)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.offers.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &PoolOffer> {
        self.offers.iter()
    }

    pub(super) fn get(&self, name: &str) -> Option<&PoolOffer> {
        self.iter().find(|offer| *offer.pool.metadata.name == *name)
    }

    /// Whether some pool puts a taint on its nodes that only asks to stay away.
    pub(super) fn have_preferred_taints(&self) -> bool {
        let mut taints = self.iter().flat_map(|offer| &offer.pool.spec.template.spec.taints);
        taints.any(|taint| *taint.effect == *"PreferNoSchedule")
    }
}

/// What the node classes offer, overlays applied.
#[derive(Debug)]
pub struct Offered {
    /// The numbers of all keys and values below.
    pub vocabulary: Vocabulary,
    /// By NodePool, whether or not it can launch anything now, and by name; pools that offer nothing are missing.
    pub types: BTreeMap<NodePoolName, BTreeMap<Text, Arc<InstanceType>>>,
    /// The pools it was asked for; none when overlays took part, which look at more than names.
    pools: Option<Vec<NodePoolName>>,
}

impl Offered {
    /// What the node class of every NodePool offers.
    pub fn of(snapshot: &Snapshot) -> Self {
        Self::from_stock(snapshot, &Stock::of(snapshot))
    }

    /// The same from what the snapshot's catalogue comes to.
    pub(crate) fn from_stock(snapshot: &Snapshot, stock: &Stock) -> Self {
        let mut vocabulary = stock.vocabulary();
        let overlays = Overlays::of(snapshot, stock, &mut vocabulary);
        let of_pool = |pool: &Arc<NodePool>| {
            let wares = overlays.applied(pool, stock.offered(pool));
            let types: BTreeMap<_, _> = wares
                .into_iter()
                .map(|ware| (Arc::clone(&ware.entry.name), ware.entry))
                .collect();
            (!types.is_empty()).then(|| (pool.name(), types))
        };
        let pools = || snapshot.objects().node_pools.iter();
        Self {
            types: pools().filter_map(of_pool).collect(),
            pools: (!Overlays::take_part(snapshot)).then(|| pools().map(|pool| pool.name()).collect()),
            vocabulary,
        }
    }

    /// Whether it is what a snapshot of the same catalogue would come to, too.
    pub(crate) fn is_of(&self, snapshot: &Snapshot) -> bool {
        let pools = snapshot.objects().node_pools.iter().map(|pool| pool.name());
        let is_same = |known: &Vec<NodePoolName>| pools.eq(known.iter().cloned());
        !Overlays::take_part(snapshot) && self.pools.as_ref().is_some_and(is_same)
    }
}

fn takes_part(pool: &NodePool) -> bool {
    !pool.is_static() && pool.is_ready() && !pool.metadata.is_deleting()
}

/// What a pool's limits leave beside the machines it has; none without limits.
pub(super) fn remaining(pool: &NodePool, staying: &[Member<'_>]) -> Option<ResourceList> {
    let limits = &pool.spec.limits;
    if limits.is_empty() {
        return None;
    }
    let is_of_pool = |member: &&Member<'_>| member.node_pool() == Some(&pool.metadata.name);
    let of_pool = staying.iter().filter(is_of_pool);
    let capacities: Vec<ResourceList> = of_pool.map(|member| member.capacity()).collect();
    let left = |name: &ResourceName, limit| {
        let taken = capacities.iter().map(|capacity| capacity.amount(name.as_str()));
        taken.fold(limit, |left, taken| left - taken)
    };
    Some(limits.map(left))
}

#[cfg(test)]
mod tests {
    use api::labels::NODEPOOL;
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        demand::fixture::{instance_type, node_pool, object, snapshot, snapshot_with},
        supply::members,
    };

    fn names(objects: Vec<Value>) -> Vec<String> {
        let pools = Pools::read(&snapshot(objects)).0;
        pools.iter().map(|offer| offer.pool.metadata.name.to_string()).collect()
    }

    #[test]
    fn heavier_pools_come_first_then_those_later_in_the_alphabet() {
        let weighing = |name: &str, weight: i32| node_pool(name, json!({ "spec": { "weight": weight } }));
        let pools = vec![
            node_pool("a", json!({})),
            weighing("b", 10),
            weighing("c", 10),
            weighing("d", 0),
        ];
        assert_eq!(names(pools), ["c", "b", "d", "a"]);
    }

    #[test]
    fn static_unready_and_deleted_pools_take_no_part() {
        let unready = json!({ "status": { "conditions": [{ "type": "Ready", "status": "False" }] } });
        let pools = vec![
            node_pool("static", json!({ "spec": { "replicas": 1 } })),
            node_pool("unready", unready),
            node_pool(
                "deleted",
                json!({ "metadata": { "deletionTimestamp": "2026-11-15T12:00:00Z" } }),
            ),
            node_pool("good", json!({})),
        ];
        assert_eq!(names(pools), ["good"]);
    }

    #[test]
    fn pool_has_its_own_variant_of_a_type_that_its_class_describes_otherwise() {
        let types = ["b", "a"].map(|name| instance_type(name, "1", &["z"]));
        let mut variant = instance_type("a", "1", &["z"]);
        variant["capacity"]["cpu"] = json!("77");
        let file = json!({ "instanceTypes": types, "nodePoolVariants": { "own": [variant] } });
        let pools = ["own", "plain"].map(|name| node_pool(name, json!({})));
        let pools = Pools::read(&snapshot_with(file, pools.to_vec())).0;
        let is_variant = |pool| -> Vec<_> {
            let types = pools.get(pool).unwrap().types.iter();
            types
                .map(|it| (&*it.entry.name, it.entry.capacity.amount("cpu").to_string() == "77"))
                .collect()
        };
        assert_eq!(is_variant("own"), [("b", false), ("a", true)]);
        assert_eq!(is_variant("plain"), [("b", false), ("a", false)]);
    }

    #[test]
    fn pool_offers_the_types_of_its_class_in_catalogue_order() {
        let types = ["c", "a", "b"].map(|name| instance_type(name, "1", &["z"]));
        let file = json!({ "instanceTypes": types, "nodePoolInstanceTypes": { "some": ["b", "c"], "none": [] } });
        let pools = ["all", "none", "some"].map(|name| node_pool(name, json!({})));
        let pools = Pools::read(&snapshot_with(file, pools.to_vec())).0;
        let offered = |name| {
            pools
                .get(name)
                .unwrap()
                .types
                .iter()
                .map(|it| it.entry.name.to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(offered("all"), ["c", "a", "b"]);
        assert_eq!(offered("some"), ["c", "b"]);
        assert_eq!(offered("none"), [""; 0]);
    }

    #[test]
    fn limits_leave_what_the_machines_of_the_pool_do_not_have() {
        let node = |name: &str, pool: &str| {
            let labels = json!({ NODEPOOL: pool, "karpenter.sh/initialized": "true" });
            let parts = json!({ "metadata": { "labels": labels }, "spec": { "providerID": name },
                "status": { "capacity": { "cpu": "4", "memory": "8Gi" } } });
            object("v1", "Node", "", name, parts)
        };
        let limited = node_pool(
            "p",
            json!({ "spec": { "limits": { "cpu": "6", "gpu": "2", "nodes": "3" } } }),
        );
        let objects = vec![
            limited,
            node_pool("q", json!({})),
            node("a", "p"),
            node("b", "p"),
            node("c", "q"),
        ];
        let snapshot = snapshot(objects);
        let pools = Pools::read(&snapshot).0;
        let left = |name| remaining(&pools.get(name).unwrap().pool, &members(&snapshot));
        assert_eq!(left("p").unwrap().to_string(), r#"{"cpu":"-2","gpu":"2","nodes":"1"}"#);
        assert_eq!(left("q"), None);
    }
}
