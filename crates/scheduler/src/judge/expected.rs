//! The node a claim is expected to become, and the nodes that stay.

use std::{collections::BTreeSet, sync::Arc};

use model::{
    object::{Labels, ObjectKey, Pod, Text},
    plan::{Plan, PlannedClaim},
    requirement::Requirements,
    snapshot::Snapshot,
};

use super::{
    Place, Verdict,
    claim::{Context, launches},
    daemon::{Daemon, daemons},
    labels::{ClaimLabels, Launched},
    supply::Supply,
    world::World,
};
use crate::{SchedNode, plugin::node_affinity::NodeLabels};

/// A node to be, and the daemons that will run on it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Expected {
    pub(crate) sched_node: SchedNode,
    pub(crate) daemons: Vec<Arc<Pod>>,
}

/// A node that stays, with the pods that stay on it.
#[derive(Debug)]
pub(crate) struct Staying {
    pub(crate) sched_node: SchedNode,
    pub(crate) pods: Vec<Arc<Pod>>,
}

/// What a claim's node is called until it has a name.
pub(super) fn node_name(claim: usize) -> Text {
    format!("claim-{claim:05}").into()
}

/// The nodes the claims of a plan are expected to become, in the plan's order. A claim that cannot be launched becomes a
/// node without room.
pub(crate) fn expected_nodes(snapshot: &Snapshot, plan: &Plan) -> Vec<Expected> {
    let mut supply = Supply::new(snapshot);
    let daemons = daemons(snapshot, &mut supply.dictionary);
    let claims = plan.claims.iter().enumerate();
    let nodes = claims.map(|(at, claim)| expected_node(snapshot, &mut supply, &daemons, at, claim).unwrap_or_default());
    nodes.collect()
}

fn expected_node(
    snapshot: &Snapshot,
    supply: &mut Supply,
    daemons: &[Daemon],
    at: usize,
    claim: &PlannedClaim,
) -> Option<Expected> {
    let pool = snapshot.node_pool(&claim.node_pool)?;
    let requirements = Requirements::from_specs(claim.constraints.iter(), &mut supply.vocabulary);
    let name = node_name(at);
    let labels = ClaimLabels::new(claim, pool, &name, requirements.clone(), &supply.vocabulary);
    let mut context = Context {
        snapshot,
        supply,
        daemons,
        pool,
        place: Place::Claim(at),
        labels,
        requirements: &requirements,
        launches: Vec::new(),
    };
    context.launches = launches(&context, claim, &mut Verdict::default());
    let launched = launch(&context, claim)?;
    let taints = &pool.spec.template.spec.taints;
    let running = daemons
        .iter()
        .filter(|it| it.tolerates(taints) && it.matches(&name, &launched));
    let kind = &launched.kind.shape;
    Some(Expected {
        daemons: running.map(Daemon::pod).collect(),
        sched_node: SchedNode {
            labels: Labels::from_pairs(launched.all().into_iter().collect()),
            taints: (**taints).clone(),
            allocatable: launched.offering.resources.clone(),
            volume_limits: kind.volume_limits.clone(),
            name,
            ..SchedNode::default()
        },
    })
}

/// The launch the plan reckons with, or the first one possible.
pub(super) fn launch<'a>(context: &'a Context<'a>, claim: &PlannedClaim) -> Option<Launched<'a>> {
    let is_cheapest = |launched: &Launched<'_>| {
        claim.cheapest.as_ref().is_some_and(|cheapest| {
            let has = |key: &str, value: &Option<Text>| value.as_deref() == launched.label(key);
            launched.kind.name == cheapest.instance_type
                && has("topology.kubernetes.io/zone", &cheapest.zone)
                && has("karpenter.sh/capacity-type", &cheapest.capacity_type)
        })
    };
    let cheapest = context.all_launched().find(is_cheapest);
    cheapest.or_else(|| context.all_launched().next())
}

impl World {
    /// The nodes there are, with their pods but for those that move. A node that goes away is gone once nothing holds it.
    pub(crate) fn staying(&self, snapshot: &Snapshot, moving: &BTreeSet<ObjectKey>) -> Vec<Staying> {
        let mut staying = Vec::new();
        for state in self.nodes.values() {
            let stays = |pod: &&Arc<Pod>| !moving.contains(&pod.metadata.key());
            let pods: Vec<_> = state.pods(snapshot).filter(stays).cloned().collect();
            let is_held = pods
                .iter()
                .any(|pod| !pod.is_owned_by_daemon_set() && !pod.is_owned_by_node());
            if !state.is_leaving || is_held {
                staying.push(Staying {
                    sched_node: state.sched_node(snapshot),
                    pods,
                });
            }
        }
        staying
    }
}
