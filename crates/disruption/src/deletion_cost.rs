//! Which pods should their ReplicaSets give up first? Those on nodes that go, then those on nodes that had better go.
//!
//! The answer is `controller.kubernetes.io/pod-deletion-cost` on pods, where a ReplicaSet that scales in looks for it.

use std::collections::BTreeMap;

use api::{
    annotations::POD_DELETION_COST, condition::names::nodeclaim::DRIFTED, labels::INSTANCE_TYPE, taints::DISRUPTED,
};
use jiff::Timestamp;
use model::{
    object::{NodePoolName, ObjectKey, Pod, Taint, Uid},
    snapshot::Snapshot,
};

use crate::{
    budget::{Budgets, Purse},
    candidate::node_rule,
    cost::compare_savings,
    eligible::is_consolidation_disabled,
    facts::Facts,
    method::Reason,
    options::Options,
    warm::Warm,
    world::{Machine, World, with_marks},
};

/// So many nodes have their pods written at a time; those that go do not count.
const MOST_NODES: usize = 50;
/// What pods of a node that goes cost.
const LEAST: i32 = i32::MIN;
/// Controllers that make a pod anew elsewhere, so that it does not pin its node.
const REMAKERS: [(&str, &str); 3] = [("apps/v1", "ReplicaSet"), ("batch/v1", "Job"), ("apps/v1", "DaemonSet")];

/// What is to be written on pods.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeletionCosts {
    /// The pods of a ReplicaSet's on nodes of which any has another cost, with the cost they should have.
    pub pods: Vec<PodCost>,
    /// How many nodes these are on, by pool.
    pub nodes: BTreeMap<NodePoolName, u32>,
}

/// What a pod's deletion should cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodCost {
    /// The pod.
    pub pod: ObjectKey,
    /// No other of its name.
    pub uid: Uid,
    /// The cost; none when nothing should be said.
    pub cost: Option<i32>,
}

impl PodCost {
    /// Whether a pod says so already.
    pub fn is_said_by(&self, pod: &Pod) -> bool {
        says(pod, self.cost)
    }
}

fn says(pod: &Pod, cost: Option<i32>) -> bool {
    let said = pod.metadata.annotations.get(POD_DELETION_COST);
    match cost {
        Some(cost) => said.is_some_and(|said| **said == *cost.to_string()),
        None => said.is_none(),
    }
}

/// What is to be written now.
pub fn deletion_costs(snapshot: &Snapshot, facts: &Facts, now: Timestamp) -> DeletionCosts {
    Warm::default().deletion_costs(snapshot, facts, now)
}

impl Warm {
    /// What is to be written on pods now.
    pub fn deletion_costs(&self, snapshot: &Snapshot, facts: &Facts, now: Timestamp) -> DeletionCosts {
        let marked = with_marks(snapshot, facts, now);
        let options = Options::default();
        costs(&World::new(&marked, facts, &options, self, now))
    }
}

fn costs(world: &World<'_>) -> DeletionCosts {
    let Ranking { going, ranked, rest } = Ranking::of(world);
    let mut costs = DeletionCosts::default();
    for machine in going {
        costs.write(machine, Some(LEAST));
    }
    let (count, mut written) = (ranked.len(), 0);
    let rank = |at: usize| i32::try_from(count - at).map_or(LEAST, |rank| -rank);
    let ranked = ranked
        .into_iter()
        .enumerate()
        .map(|(at, machine)| (machine, Some(rank(at))));
    for (machine, cost) in ranked.chain(rest.into_iter().map(|machine| (machine, None))) {
        if written == MOST_NODES {
            break;
        }
        written += usize::from(costs.write(machine, cost));
    }
    costs
}

impl DeletionCosts {
    /// Has a machine's pods written if any of them says something else.
    fn write(&mut self, machine: &Machine<'_>, cost: Option<i32>) -> bool {
        // Nobody else reads it.
        let is_read = |pod: &&&std::sync::Arc<Pod>| is_controlled_by(pod, &REMAKERS[..1]);
        let pods: Vec<_> = machine.pods.iter().filter(is_read).collect();
        if pods.iter().all(|pod| says(pod, cost)) {
            return false;
        }
        self.pods.extend(pods.into_iter().map(|pod| PodCost {
            pod: pod.metadata.key(),
            uid: pod.metadata.uid.clone(),
            cost,
        }));
        *self.nodes.entry(pool_of(machine)).or_default() += 1;
        true
    }
}

/// Machines, those first whose pods should go first.
struct Ranking<'w, 'a> {
    going: Vec<&'w Machine<'a>>,
    ranked: Vec<&'w Machine<'a>>,
    rest: Vec<&'w Machine<'a>>,
}

enum Group {
    Going,
    Drifted,
    Ordinary,
    Rest,
}

impl<'w, 'a> Ranking<'w, 'a> {
    fn of(world: &'w World<'a>) -> Self {
        let ours = world.machines.iter().filter(|machine| machine.member.is_managed());
        let mut machines: Vec<&Machine<'_>> = ours.collect();
        let key = |machine: &Machine<'_>| (machine.price, machine.reschedule_cost);
        machines.sort_by(|a, b| compare_savings(key(b), key(a)).then_with(|| a.name.cmp(&b.name)));
        let (mut going, mut drifted, mut ordinary, mut rest) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for machine in machines {
            match group(world, machine) {
                Group::Going => going.push(machine),
                Group::Drifted => drifted.push(machine),
                Group::Ordinary => ordinary.push(machine),
                Group::Rest => rest.push(machine),
            }
        }
        let purse = |reason| Budgets::of(world, reason).purse();
        let (mut ranked, late) = within(drifted, purse(Reason::Drifted));
        rest.extend(late);
        let (cheap, late) = within(ordinary, purse(Reason::Underutilized));
        ranked.extend(cheap);
        rest.extend(late);
        Self { going, ranked, rest }
    }
}

/// Those the budgets would let go, and the others.
fn within<'w, 'a>(machines: Vec<&'w Machine<'a>>, mut purse: Purse) -> (Vec<&'w Machine<'a>>, Vec<&'w Machine<'a>>) {
    machines.into_iter().partition(|machine| purse.take(&pool_of(machine)))
}

/// Its pool; nameless where upstream's label is.
fn pool_of(machine: &Machine<'_>) -> NodePoolName {
    machine.node_pool().unwrap_or_else(|| NodePoolName::from(""))
}

fn group(world: &World<'_>, machine: &Machine<'_>) -> Group {
    if machine.member.is_leaving() || is_tainted(machine) {
        return Group::Going;
    }
    let is_kept = node_rule(world, machine).is_some() || machine.pod_blocker.is_some();
    if is_kept || has_pinning_pods(machine) || is_unpriceable(world, machine) {
        return Group::Rest;
    }
    let pool = machine.node_pool().and_then(|pool| world.pool(&pool));
    if machine.claim_says(DRIFTED) && !pool.is_some_and(|pool| pool.is_static()) {
        return Group::Drifted;
    }
    // A pool nobody knows disables nothing, but has no budget either.
    if pool.is_some_and(|pool| is_consolidation_disabled(pool)) {
        return Group::Rest;
    }
    Group::Ordinary
}

fn is_tainted(machine: &Machine<'_>) -> bool {
    let is_mark = |taint: &Taint| *taint.key == *DISRUPTED && *taint.effect == *"NoSchedule";
    machine
        .member
        .node
        .is_some_and(|node| node.spec.taints.iter().any(is_mark))
}

/// Whether nothing would bring some pod back elsewhere.
fn has_pinning_pods(machine: &Machine<'_>) -> bool {
    let mut others = machine
        .pods
        .iter()
        .filter(|pod| *pod.metadata.namespace != *"kube-system");
    others.any(|pod| !is_controlled_by(pod, &REMAKERS))
}

fn is_controlled_by(pod: &Pod, kinds: &[(&str, &str)]) -> bool {
    let controller = pod.metadata.controller();
    controller.is_some_and(|owner| kinds.contains(&(&*owner.api_version, &*owner.kind)))
}

/// Whether the type it says it is of is not offered: its place among the others would mean nothing.
fn is_unpriceable(world: &World<'_>, machine: &Machine<'_>) -> bool {
    let pool = machine.node_pool().filter(|pool| !pool.as_str().is_empty());
    let name = machine.labels.get(INSTANCE_TYPE).filter(|name| !name.is_empty());
    pool.zip(name)
        .is_some_and(|(pool, name)| world.instance_type(&pool, name).is_none())
}
