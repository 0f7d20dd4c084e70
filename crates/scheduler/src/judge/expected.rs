//! The node a claim is expected to become, and the nodes that stay.

use std::{collections::BTreeSet, sync::Arc};

use model::{
    object::{InstanceTypeName, Labels, Map, NodePoolName, ObjectKey, Pod, Text},
    plan::{Plan, PlannedClaim},
    requirement::{RequirementSpec, Requirements},
    snapshot::Snapshot,
};
use rustc_hash::FxHashMap;

use super::{
    Place, Verdict,
    claim::{Context, launches, launches_of},
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
    let cheapest = plan.claims.iter().filter_map(|claim| claim.cheapest.as_ref());
    let wanted: BTreeSet<_> = cheapest.map(|launch| &launch.instance_type).collect();
    let mut few = Supply::of(snapshot, |name| wanted.contains(name));
    let mut all: Option<Supply> = None;
    let daemons = daemons(snapshot, &mut few.dictionary);
    let mut known: FxHashMap<Alike<'_>, Option<Expected>> = FxHashMap::default();
    let claims = plan.claims.iter().enumerate();
    let nodes = claims.map(|(at, claim)| {
        let name = node_name(at);
        let alike = known.entry(Alike::of(claim)).or_insert_with(|| {
            let as_planned = (launches_as_planned as Possible, cheapest_launch as Choice);
            let as_planned = expected_node(snapshot, &mut few, &daemons, &name, claim, as_planned);
            as_planned.or_else(|| {
                let all = all.get_or_insert_with(|| Supply::new(snapshot));
                expected_node(snapshot, all, &daemons, &name, claim, (all_launches, launch))
            })
        });
        alike.as_ref().map(|node| node.named(name)).unwrap_or_default()
    });
    nodes.collect()
}

/// What tells the nodes of claims apart, but for their names.
#[derive(PartialEq, Eq, Hash)]
struct Alike<'a> {
    node_pool: &'a NodePoolName,
    constraints: *const RequirementSpec,
    labels: &'a Map<Text>,
    launch: Option<[Option<&'a str>; 3]>,
    /// Where the launch says nothing, the types decide.
    options: Option<Vec<&'a str>>,
}

impl<'a> Alike<'a> {
    fn of(claim: &'a PlannedClaim) -> Self {
        let launch = claim.cheapest.as_ref();
        let launch = launch.map(|it| {
            [
                Some(it.instance_type.as_str()),
                it.zone.as_deref(),
                it.capacity_type.as_deref(),
            ]
        });
        Self {
            node_pool: &claim.node_pool,
            constraints: claim.constraints.as_ptr(),
            labels: &claim.labels,
            options: launch
                .is_none()
                .then(|| claim.options.iter().map(InstanceTypeName::as_str).collect()),
            launch,
        }
    }
}

impl Expected {
    /// The same node under another name.
    fn named(&self, name: Text) -> Self {
        let hostname = "kubernetes.io/hostname";
        let labels = self.sched_node.labels.iter().map(|(key, value)| {
            let value = if **key == *hostname { &name } else { value };
            (key.clone(), value.clone())
        });
        Self {
            sched_node: SchedNode {
                labels: Labels::from_pairs(labels.collect()),
                name,
                ..self.sched_node.clone()
            },
            daemons: self.daemons.clone(),
        }
    }
}

/// Type and offering of what a claim may be launched as.
type Possible = fn(&Context<'_>, &PlannedClaim) -> Vec<(usize, usize)>;
/// Which of these it is.
type Choice = for<'a> fn(&'a Context<'a>, &PlannedClaim) -> Option<Launched<'a>>;

fn all_launches(context: &Context<'_>, claim: &PlannedClaim) -> Vec<(usize, usize)> {
    launches(context, claim, &mut Verdict::default())
}

/// Only the type that the plan reckons with.
fn launches_as_planned(context: &Context<'_>, claim: &PlannedClaim) -> Vec<(usize, usize)> {
    let planned = claim.cheapest.as_ref().map(|launch| &launch.instance_type);
    let mut names = claim.options.iter();
    let name = names.find(|name| Some(*name) == planned);
    let launches = name.and_then(|name| launches_of(context, claim, name, &mut Verdict::default()));
    launches.unwrap_or_default()
}

fn expected_node(
    snapshot: &Snapshot,
    supply: &mut Supply,
    daemons: &[Daemon],
    name: &Text,
    claim: &PlannedClaim,
    (possible, launch): (Possible, Choice),
) -> Option<Expected> {
    let pool = snapshot.node_pool(&claim.node_pool)?;
    let requirements = Requirements::from_specs(claim.constraints.iter(), &mut supply.vocabulary);
    let labels = ClaimLabels::new(claim, pool, name, requirements.clone(), &supply.vocabulary);
    let mut context = Context {
        snapshot,
        supply,
        daemons,
        pool,
        place: Place::Claim(0),
        labels,
        requirements: &requirements,
        launches: Vec::new(),
    };
    context.launches = possible(&context, claim);
    let launched = launch(&context, claim)?;
    let taints = &pool.spec.template.spec.taints;
    let running = daemons
        .iter()
        .filter(|it| it.tolerates(taints) && it.matches(name, &launched));
    let kind = &launched.kind.shape;
    Some(Expected {
        daemons: running.map(Daemon::pod).collect(),
        sched_node: SchedNode {
            labels: Labels::from_pairs(launched.all().into_iter().collect()),
            taints: (**taints).clone(),
            allocatable: launched.offering.resources.clone(),
            volume_limits: kind.volume_limits.clone(),
            name: name.clone(),
            ..SchedNode::default()
        },
    })
}

/// The launch the plan reckons with, or the first one possible.
pub(super) fn launch<'a>(context: &'a Context<'a>, claim: &PlannedClaim) -> Option<Launched<'a>> {
    cheapest_launch(context, claim).or_else(|| context.all_launched().next())
}

fn cheapest_launch<'a>(context: &'a Context<'a>, claim: &PlannedClaim) -> Option<Launched<'a>> {
    let is_cheapest = |launched: &Launched<'_>| {
        claim.cheapest.as_ref().is_some_and(|cheapest| {
            let has = |key: &str, value: &Option<Text>| value.as_deref() == launched.label(key);
            launched.kind.name == cheapest.instance_type
                && has("topology.kubernetes.io/zone", &cheapest.zone)
                && has("karpenter.sh/capacity-type", &cheapest.capacity_type)
        })
    };
    context.all_launched().find(is_cheapest)
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
