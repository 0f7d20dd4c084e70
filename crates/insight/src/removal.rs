//! What if these nodes were gone? Where their pods would go, what would have to be launched, and what that saves.

use std::collections::BTreeMap;

use model::{
    object::{NodeName, ObjectKey},
    plan::{Launch, Plan},
    snapshot::Snapshot,
};
use packing::{Options, Prepared, Simulator};
use serde::{Deserialize, Serialize};

use crate::{Dollars, View};

/// What comes of removing nodes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Removal {
    /// What an hour costs more then; less than nothing when it saves.
    pub delta_usd_h: Dollars,
    /// The same for a month.
    pub delta_usd_mo: Dollars,
    /// Pods, and the node each goes to.
    pub moves: Vec<PodMove>,
    /// Nodes that have to come.
    pub new_nodes: Vec<NewNode>,
    /// Pods that would have no place.
    pub pending: Vec<PodRefusal>,
}

/// A pod that goes elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodMove {
    /// `namespace/name`.
    pub pod: String,
    /// A node's name, or `new 1`.
    pub to: String,
}

/// A pod that would have no place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodRefusal {
    /// `namespace/name`.
    pub pod: String,
    /// In upstream's words.
    pub why: String,
}

/// A node that would have to come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewNode {
    /// Whose template it is made from.
    pub pool: String,
    /// Its type.
    pub instance_type: String,
    /// Its zone.
    pub zone: String,
    /// Its kind of capacity.
    pub capacity_type: String,
    /// What it costs.
    pub usd_h: Dollars,
    /// How many pods are for it.
    pub pods: usize,
}

impl NewNode {
    /// A planned launch.
    pub(crate) fn of(pool: &str, launch: Option<&Launch>, pods: usize) -> Self {
        let text = |value: Option<&model::object::Text>| value.map(ToString::to_string).unwrap_or_default();
        Self {
            pool: pool.to_owned(),
            instance_type: launch
                .map(|launch| launch.instance_type.to_string())
                .unwrap_or_default(),
            zone: text(launch.and_then(|launch| launch.zone.as_ref())),
            capacity_type: text(launch.and_then(|launch| launch.capacity_type.as_ref())),
            usd_h: launch.map(|launch| launch.price.into()).unwrap_or_default(),
            pods,
        }
    }
}

/// The nodes of a plan that have to come.
pub(crate) fn new_nodes(plan: &Plan) -> Vec<NewNode> {
    let claims = plan.claims.iter();
    claims
        .map(|claim| NewNode::of(claim.node_pool.as_str(), claim.cheapest.as_ref(), claim.pods.len()))
        .collect()
}

/// Pods of a plan that are meant, with where they go; nodes to be launched are counted from 1.
pub(crate) fn moves(plan: &Plan, is_meant: impl Fn(&ObjectKey) -> bool) -> Vec<PodMove> {
    let mut moves = BTreeMap::new();
    for node in &plan.existing {
        for pod in &node.pods {
            moves.insert(pod.metadata.key(), node.name.to_string());
        }
    }
    for (number, claim) in (1..).zip(&plan.claims) {
        for pod in &claim.pods {
            moves.insert(pod.metadata.key(), format!("new {number}"));
        }
    }
    let moves = moves.into_iter().filter(|(pod, _)| is_meant(pod));
    moves
        .map(|(pod, to)| PodMove {
            pod: pod.to_string(),
            to,
        })
        .collect()
}

/// Answers about one cluster, prepared once. Pods that wait are left out: they are somebody else's question.
#[derive(Debug)]
pub(crate) struct Removals {
    prepared: Prepared,
    prices: BTreeMap<NodeName, Dollars>,
    spot: BTreeMap<NodeName, bool>,
    may_replace_spot: bool,
}

impl Removals {
    /// Prepares questions about the cluster as it is.
    pub(crate) fn of(view: &View<'_>) -> Self {
        Self::on(view, view.snapshot)
    }

    /// Prepares questions about what becomes of the cluster of a view.
    pub(crate) fn on(view: &View<'_>, snapshot: &Snapshot) -> Self {
        let options = Options {
            is_consolidation: true,
            ..Options::default()
        };
        let snapshot = without_waiting(snapshot);
        let priced = view.machines.iter();
        Self {
            prepared: Prepared::new(&snapshot, &options),
            prices: priced
                .clone()
                .map(|machine| {
                    let marginal = machine.marginal.map(Dollars::from).unwrap_or_default();
                    (machine.node_name(), marginal)
                })
                .collect(),
            spot: priced.map(|machine| (machine.node_name(), machine.is_spot())).collect(),
            may_replace_spot: view.snapshot.settings().feature_gates.spot_to_spot_consolidation,
        }
    }

    /// Somebody to ask.
    pub(crate) fn simulator(&self) -> Simulator<'_> {
        self.prepared.simulator()
    }

    /// What comes of removing nodes; none when one of them cannot be asked about.
    pub(crate) fn without(&self, simulator: &mut Simulator<'_>, nodes: &[NodeName]) -> Option<Removal> {
        let plan = simulator.without(nodes).ok()?.plan;
        let before: Dollars = nodes.iter().filter_map(|node| self.prices.get(node)).copied().sum();
        let delta = Dollars::from(plan.price()) - before;
        let refused = plan.unplaced.iter().map(|unplaced| PodRefusal {
            pod: unplaced.pod.metadata.key().to_string(),
            why: unplaced.message.to_string(),
        });
        Some(Removal {
            delta_usd_h: delta,
            delta_usd_mo: delta.monthly(),
            moves: moves(&plan, |_| true),
            new_nodes: new_nodes(&plan),
            pending: refused.collect(),
        })
    }

    /// What an hour would cost less without these nodes, by a move that consolidation makes at all: every pod has a place,
    /// at most one node comes, and a spot node is not replaced by another where that is switched off.
    pub(crate) fn saving(&self, simulator: &mut Simulator<'_>, nodes: &[NodeName]) -> Option<Dollars> {
        if nodes.is_empty() {
            return None;
        }
        let asked = simulator.ask(
            nodes,
            |_| true,
            |aftermath| {
                let is_placed = aftermath.left().next().is_none();
                let claims = aftermath.claims();
                (is_placed && claims <= nodes.len().max(1)).then(|| (claims, aftermath.price()))
            },
        );
        let (claims, price) = asked.ok()??;
        let is_spot = nodes
            .iter()
            .all(|node| self.spot.get(node).copied().unwrap_or_default());
        if claims > 0 && is_spot && !self.may_replace_spot {
            return None;
        }
        let before: Dollars = nodes.iter().filter_map(|node| self.prices.get(node)).copied().sum();
        let saving = before - Dollars::from(price);
        (saving > Dollars::ZERO).then_some(saving)
    }
}

/// The snapshot without the pods that wait for a node.
fn without_waiting(snapshot: &Snapshot) -> Snapshot {
    let waiting: Vec<ObjectKey> = snapshot.provisionable_pods().map(|pod| pod.metadata.key()).collect();
    if waiting.is_empty() {
        return snapshot.clone();
    }
    snapshot.without_pods(waiting)
}
