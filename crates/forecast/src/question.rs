//! Before and after a change: nodes, money, pods that move and pods without a place.
//!
//! Both sides are the cluster once the pods that wait have the nodes they get, so that what a change costs is not mixed
//! with what would happen anyway; and both are told a second time after every move that saves money.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use api::labels::{CAPACITY_TYPE, CAPACITY_TYPE_SPOT};
use disruption::Consolidation;
use model::{
    object::{NodeName, NodePoolName, ObjectKey, Pod},
    plan::Unplaced,
    price::Price,
    quantity::Quantity,
    snapshot::Snapshot,
};
use packing::Options;

use crate::{
    Fleet, NewNode, Settled,
    change::{Change, Misfit, changed},
    settle,
};

/// More rounds than a fleet usually needs; one that is not at rest by then is told so.
const MOST_ROUNDS: usize = 25;

/// What a change comes to.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The changes, in words.
    pub said: Vec<String>,
    /// What had to be taken for granted.
    pub assumed: Vec<String>,
    /// Without the changes.
    pub before: Side,
    /// With them.
    pub after: Side,
    /// Nodes that go because of them.
    pub removed: Vec<NodeName>,
    /// Nodes that come because of them: those of `after` that `before` does not have.
    pub new_nodes: Vec<NewNode>,
    /// Pods that run elsewhere.
    pub moved: Vec<Move>,
    /// Pods without a place that have one now.
    pub stuck: Vec<Stuck>,
    /// Pods that nobody makes again.
    pub lost: Vec<ObjectKey>,
}

/// A cluster in figures.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Side {
    /// Nodes of NodePools.
    pub nodes: usize,
    /// Nodes of somebody else's.
    pub unmanaged: usize,
    /// Of these on spot.
    pub spot: usize,
    /// What the nodes of NodePools cost an hour.
    pub price: Price,
    /// The same, by pool.
    pub pools: BTreeMap<NodePoolName, Price>,
    /// What pods ask for of processors, and what there is, in milli-cores.
    pub cpu: (i64, i64),
    /// What pods ask for of memory, and what there is, in MiB.
    pub memory: (i64, i64),
    /// Pods that run.
    pub running: usize,
    /// Pods without a place.
    pub unplaced: usize,
    /// Where it comes to rest once every move that saves money is made; none when that was not asked.
    pub settled: Option<Settled>,
}

/// A pod that runs elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Move {
    /// The pod.
    pub pod: ObjectKey,
    /// Where it was.
    pub from: NodeName,
    /// Where it would be; none when it finds no place.
    pub to: Option<NodeName>,
}

/// A pod without a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stuck {
    /// The pod.
    pub pod: ObjectKey,
    /// Why, in upstream's words.
    pub why: String,
}

/// What these changes come to; with `rests`, also where both clusters come to rest.
pub fn ask(snapshot: &Snapshot, changes: &[Change], options: &Options, rests: bool) -> Result<Answer, Misfit> {
    let consolidation = match options.packing {
        packing::Packing::Cheapest => Consolidation::Cheapest,
        packing::Packing::Faithful => Consolidation::Faithful,
    };
    let changed = changed(snapshot, changes)?;
    let mut before = Fleet::new(snapshot.clone(), options.clone());
    let waited = before.provision();
    let mut after = Fleet::new(changed.snapshot, options.clone());
    let removed: Vec<NodeName> = changed.removed.into_iter().collect();
    let left = after.remove(&removed);
    let unplaced = after.provision();
    let answer = Answer {
        said: changed.said,
        assumed: changed.assumed,
        new_nodes: new_nodes(&before, &after),
        moved: moves(&left.moving, &after),
        stuck: stuck(&waited, &unplaced),
        lost: left.lost,
        removed,
        before: side(&before, waited.len()),
        after: side(&after, unplaced.len()),
    };
    Ok(if rests {
        answer.rested(&mut before, &mut after, consolidation)
    } else {
        answer
    })
}

impl Answer {
    fn rested(mut self, before: &mut Fleet, after: &mut Fleet, consolidation: Consolidation) -> Self {
        self.before.settled = Some(settle(before, consolidation, MOST_ROUNDS));
        self.after.settled = Some(settle(after, consolidation, MOST_ROUNDS));
        self
    }
}

/// What nodes of one side the other does not have, each kind as often as it is missing.
fn new_nodes(before: &Fleet, after: &Fleet) -> Vec<NewNode> {
    type Kind = (NodePoolName, String, String, String);
    let kind = |node: &NewNode| -> Kind {
        let (pool, kind) = (node.node_pool.clone(), node.instance_type.clone());
        (pool, kind, node.zone.clone(), node.capacity_type.clone())
    };
    let mut had: BTreeMap<Kind, usize> = BTreeMap::new();
    for node in before.present() {
        *had.entry(kind(node)).or_default() += 1;
    }
    let mut new: Vec<NewNode> = Vec::new();
    for node in after.present() {
        match had.get_mut(&kind(node)) {
            Some(left) if *left > 0 => *left -= 1,
            _ => new.push(node.clone()),
        }
    }
    new
}

fn moves(moving: &[(ObjectKey, NodeName)], after: &Fleet) -> Vec<Move> {
    let places = after.places();
    let one = |(pod, from): &(ObjectKey, NodeName)| Move {
        pod: pod.clone(),
        from: from.clone(),
        to: places.get(pod).cloned(),
    };
    moving.iter().map(one).collect()
}

/// Pods without a place that would have one, or would not be there, without the change.
fn stuck(before: &[Unplaced], after: &[Unplaced]) -> Vec<Stuck> {
    let had: BTreeSet<ObjectKey> = before.iter().map(|it| it.pod.metadata.key()).collect();
    let new = after.iter().filter(|it| !had.contains(&it.pod.metadata.key()));
    new.map(|it| Stuck {
        pod: it.pod.metadata.key(),
        why: it.message.to_string(),
    })
    .collect()
}

fn side(fleet: &Fleet, unplaced: usize) -> Side {
    let snapshot = fleet.snapshot();
    let pools = disruption::tracked_costs(snapshot);
    let nodes = fleet.managed();
    let is_spot = |kind: &model::object::Text| **kind == *CAPACITY_TYPE_SPOT;
    let spot = nodes
        .iter()
        .filter(|node| node.metadata.labels.get(CAPACITY_TYPE).is_some_and(is_spot));
    let running: Vec<&Arc<Pod>> = snapshot
        .objects()
        .pods
        .iter()
        .filter(|pod| pod.node_name.is_some() && pod.is_active())
        .collect();
    let ours: BTreeSet<&str> = nodes.iter().map(|node| &*node.metadata.name).collect();
    let asked = |name: &str| -> Quantity {
        let on_ours = |pod: &&&Arc<Pod>| pod.node_name.as_ref().is_some_and(|node| ours.contains(node.as_str()));
        let requests = running.iter().filter(on_ours).map(|pod| pod.resources().requests());
        requests.fold(Quantity::ZERO, |sum, requests| sum + requests.amount(name))
    };
    let offered = |name: &str| -> Quantity {
        let nodes = nodes.iter().map(|node| node.status.allocatable.amount(name));
        nodes.fold(Quantity::ZERO, |sum, amount| sum + amount)
    };
    let mebi = |amount: Quantity| amount.value() >> 20;
    Side {
        nodes: nodes.len(),
        unmanaged: snapshot.objects().nodes.len() - nodes.len(),
        spot: spot.count(),
        price: pools.values().copied().sum(),
        pools,
        cpu: (asked("cpu").milli_value(), offered("cpu").milli_value()),
        memory: (mebi(asked("memory")), mebi(offered("memory"))),
        running: running.len(),
        unplaced,
        settled: None,
    }
}
