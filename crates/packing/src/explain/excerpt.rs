//! Which part of a cluster decides about pods that wait? The first nodes with room for each of them, and what all the others
//! use of the limits. What is tried for a pod is tried on that excerpt, so it costs the same in a cluster of ten thousand nodes.
//!
//! Only for pods without rules about other pods: for those every pod counts, wherever it runs.

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, sync::Arc};

use api::{
    labels::{HOSTNAME, LabelRules},
    provider::Provider,
};
use model::{
    object::{Labels, Node, NodeClaim, NodePool, ObjectKey, Pod, Taint, Text},
    resources::ResourceList,
    snapshot::{Member, Snapshot, Table},
    taint::TolerationView,
};
use rustc_hash::FxHashMap;

use super::{PoolFunnel, constraint::Constraint};
use crate::{
    demand::Origin,
    problem::Problem,
    supply::{StateNode, members, newest_pods, requests_of},
};

/// What excerpts are made from.
#[derive(Debug)]
pub(super) struct Excerpt<'a> {
    /// In the order in which pods try them.
    rooms: Vec<Room<'a>>,
    /// One pod of each DaemonSet: what it asks for is taken from the newest that runs.
    daemons: Vec<Arc<Pod>>,
    waiting: Vec<Arc<Pod>>,
    /// No pod that waits has rules about other pods.
    are_plain: bool,
    /// Which labels stand for others.
    aliases: LabelRules,
}

/// A machine that stays.
#[derive(Debug)]
struct Room<'a> {
    node: Option<Arc<Node>>,
    claim: Option<Arc<NodeClaim>>,
    pods: Vec<Arc<Pod>>,
    pool: Option<Text>,
    capacity: ResourceList,
    /// None when nothing is known of it.
    state: Option<&'a StateNode>,
    avoided: Avoided,
}

/// Whom the pods on a machine keep away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Avoided {
    Nowhere,
    /// From this machine.
    Here,
    /// From other machines too: then it is never left out.
    Around,
}

/// What one pod that waits asks of a machine.
struct Wanted<'p> {
    pod: &'p Pod,
    requests: ResourceList,
    tolerations: Vec<TolerationView<'p>>,
}

/// Whether a machine takes a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    No,
    /// Unless it asks for more than was looked at.
    Maybe,
    Yes,
}

/// A small snapshot, and what was taken off the limits of its NodePools for the nodes that it leaves out.
#[derive(Debug)]
pub(super) struct Cut {
    pub(super) snapshot: Snapshot,
    off: BTreeMap<Text, ResourceList>,
}

impl<'a> Excerpt<'a> {
    /// Of the cluster of a run; none where every node may matter.
    pub(super) fn of(problem: &'a Problem) -> Option<Self> {
        let snapshot = &problem.snapshot;
        let is_moving = problem.pods.iter().any(|it| matches!(it.origin, Origin::Moving(_)));
        let is_whole = snapshot.settings().default_constraints.is_empty() && problem.devices.is_none();
        if is_moving || !is_whole {
            return None;
        }
        let waiting: Vec<_> = snapshot.provisionable_pods().cloned().collect();
        let has_buffers = snapshot.objects().capacity_buffers.iter().next().is_some();
        let mut daemons: Vec<_> = newest_pods(snapshot).into_values().cloned().collect();
        daemons.sort_by_key(|pod| pod.metadata.key());
        Some(Self {
            rooms: rooms(problem),
            daemons,
            are_plain: !has_buffers && waiting.iter().all(|pod| is_plain(pod)),
            waiting,
            aliases: LabelRules::new(&Provider::ALL),
        })
    }

    /// What decides about a pod that is alone.
    pub(super) fn alone(&self, snapshot: &Snapshot, pod: &Arc<Pod>) -> Option<Cut> {
        is_plain(pod).then(|| self.cut(snapshot, std::slice::from_ref(pod)))
    }

    /// What decides about a pod, perhaps changed, among all that wait.
    pub(super) fn among(&self, snapshot: &Snapshot, pod: &Arc<Pod>) -> Option<Cut> {
        if !self.are_plain || !is_plain(pod) {
            return None;
        }
        let key = pod.metadata.key();
        let others = self.waiting.iter().filter(|other| other.metadata.key() != key);
        let pods: Vec<_> = others.chain([pod]).cloned().collect();
        Some(self.cut(snapshot, &pods))
    }

    fn cut(&self, snapshot: &Snapshot, waiting: &[Arc<Pod>]) -> Cut {
        let is_kept = self.kept(waiting);
        let (mut kept, mut off): (Vec<&Room<'_>>, BTreeMap<Text, ResourceList>) = (Vec::new(), BTreeMap::new());
        for (room, is_kept) in self.rooms.iter().zip(is_kept) {
            if is_kept {
                kept.push(room);
            } else if let Some(pool) = &room.pool {
                off.entry(pool.clone()).or_default().add(&room.capacity);
            }
        }
        let pools = snapshot.objects().node_pools.iter();
        let pools: Vec<_> = pools.map(|pool| relieved(pool, off.get(&pool.metadata.name))).collect();
        let running: BTreeMap<_, _> = kept.iter().flat_map(|room| &room.pods).map(by_key).collect();
        let pods = self.daemons.iter().chain(waiting).map(by_key);
        let pods: BTreeMap<_, _> = running.into_iter().chain(pods).collect();
        let snapshot = snapshot.overlaid(|objects| {
            objects.nodes = Table::new(kept.iter().filter_map(|room| room.node.clone()).collect());
            objects.node_claims = Table::new(kept.iter().filter_map(|room| room.claim.clone()).collect());
            objects.pods = Table::new(pods.into_values().cloned().collect());
            objects.node_pools = Table::new(pools);
            objects.capacity_buffers = Table::default();
        });
        Cut { snapshot, off }
    }

    /// Which machines decide. A pod takes the first that has room; so many pods cannot fill more machines than they are,
    /// so of those that surely take it only as many count.
    fn kept(&self, waiting: &[Arc<Pod>]) -> Vec<bool> {
        let is_needed = |room: &Room<'_>| room.avoided == Avoided::Around;
        let mut kept: Vec<bool> = self.rooms.iter().map(is_needed).collect();
        for wanted in wanted(waiting) {
            let mut sure = 0;
            for (room, is_kept) in self.rooms.iter().zip(&mut kept) {
                let fit = self.fit(room, &wanted);
                *is_kept |= fit != Fit::No;
                sure += usize::from(fit == Fit::Yes);
                if sure == waiting.len() {
                    break;
                }
            }
        }
        kept
    }

    fn fit(&self, room: &Room<'_>, wanted: &Wanted<'_>) -> Fit {
        let Some(state) = room.state else {
            return Fit::Maybe;
        };
        if !wanted.has_room(&state.remaining) {
            return Fit::No;
        }
        let is_alone = room.avoided == Avoided::Nowhere && asks_for_room_only(wanted.pod);
        let others = if is_alone { Fit::Yes } else { Fit::Maybe };
        let labels = self.labelled(&state.labels, &wanted.pod.spec.node_selector);
        others.min(wanted.tolerates(&state.taints)).min(labels)
    }

    fn labelled(&self, labels: &Labels, selector: &Labels) -> Fit {
        let fit = |(key, value): &(Text, Text)| match labels.get(key) {
            Some(is) if is == value => Fit::Yes,
            Some(_) if !value.is_empty() => Fit::No,
            None if **key != *HOSTNAME && self.aliases.normalize(key) == &**key => Fit::No,
            _ => Fit::Maybe,
        };
        selector.iter().map(fit).min().unwrap_or(Fit::Yes)
    }
}

impl<'p> Wanted<'p> {
    fn of(pod: &'p Pod) -> Self {
        Self {
            pod,
            requests: requests_of(pod),
            tolerations: pod.spec.tolerations.iter().map(|it| it.view()).collect(),
        }
    }

    fn is_like(&self, other: &Self) -> bool {
        let (spec, others) = (&self.pod.spec, &other.pod.spec);
        self.requests == other.requests
            && spec.node_selector == others.node_selector
            && spec.tolerations == others.tolerations
            && asks_for_room_only(self.pod) == asks_for_room_only(other.pod)
    }

    fn has_room(&self, remaining: &ResourceList) -> bool {
        let mut requests = self.requests.iter();
        requests.all(|(name, amount)| amount.is_zero() || amount <= remaining.amount(name.as_str()))
    }

    /// A taint that is only a preference may be given way to.
    fn tolerates(&self, taints: &[Taint]) -> Fit {
        let fit = |taint: &Taint| match &*taint.effect {
            _ if taint.view().is_tolerated_by(&self.tolerations) => Fit::Yes,
            "PreferNoSchedule" => Fit::Maybe,
            _ => Fit::No,
        };
        taints.iter().map(fit).min().unwrap_or(Fit::Yes)
    }
}

impl Cut {
    /// Says limits and what is used of them as they are in the whole cluster.
    pub(super) fn told_whole(&self, mut funnels: Vec<PoolFunnel>) -> Vec<PoolFunnel> {
        for funnel in &mut funnels {
            let Some(off) = self.off.get(funnel.pool.as_str()) else {
                continue;
            };
            for stage in &mut funnel.stages {
                if let Constraint::Limit {
                    resource,
                    limit,
                    in_nodes,
                    used,
                } = &mut stage.constraint
                {
                    let off = off.amount(resource.as_str());
                    (*limit, *in_nodes, *used) = (*limit + off, *in_nodes + off, *used + off);
                }
            }
        }
        funnels
    }
}

fn by_key(pod: &Arc<Pod>) -> (ObjectKey, &Arc<Pod>) {
    (pod.metadata.key(), pod)
}

fn rooms(problem: &Problem) -> Vec<Room<'_>> {
    let snapshot = &problem.snapshot;
    let (avoided, places) = (avoided(problem), places(problem));
    let staying = members(snapshot).into_iter().filter(|member| !member.is_leaving());
    let room = |member: Member<'_>| {
        let name = member.name();
        let pods = member
            .node
            .map(|node| snapshot.pods_on_node(&node.name()).cloned().collect());
        let place = places.get(&*name).copied();
        let room = Room {
            node: member.node.cloned(),
            claim: member.claim.cloned(),
            pods: pods.unwrap_or_default(),
            pool: member.node_pool().cloned(),
            capacity: member.capacity(),
            state: place.and_then(|place| problem.nodes.get(place)),
            avoided: avoided.get(&name).copied().unwrap_or(Avoided::Nowhere),
        };
        (place, room)
    };
    let mut rooms: Vec<_> = staying.map(room).collect();
    rooms.sort_by_key(|(place, _)| *place);
    rooms.into_iter().map(|(_, room)| room).collect()
}

/// Where a machine stands in the order in which pods try them.
fn places(problem: &Problem) -> FxHashMap<&str, usize> {
    let names = problem.nodes.iter().map(|node| node.name.as_str());
    names.enumerate().map(|(place, name)| (name, place)).collect()
}

/// The machines on which pods run that keep others away.
fn avoided(problem: &Problem) -> BTreeMap<Text, Avoided> {
    let mut avoided = BTreeMap::new();
    for (pod, at) in &problem.bound.avoiders {
        let Some(node) = problem.bound.nodes.get(*at as usize) else {
            continue;
        };
        let reach = if keeps_beyond_its_node(pod) {
            Avoided::Around
        } else {
            Avoided::Here
        };
        let known = avoided.entry(node.metadata.name.clone()).or_insert(reach);
        *known = reach.max(*known);
    }
    avoided
}

/// The pool with limits less what nodes use that are left out.
fn relieved(pool: &Arc<NodePool>, off: Option<&ResourceList>) -> Arc<NodePool> {
    match off {
        Some(off) if !pool.spec.limits.is_empty() => {
            let mut pool = NodePool::clone(pool);
            pool.spec.limits = pool.spec.limits.subtract(off);
            Arc::new(pool)
        }
        _ => Arc::clone(pool),
    }
}

/// What pods ask for, each wish once.
fn wanted(pods: &[Arc<Pod>]) -> Vec<Wanted<'_>> {
    let mut wishes: Vec<Wanted<'_>> = Vec::new();
    for wanted in pods.iter().map(|pod| Wanted::of(pod)) {
        if !wishes.iter().any(|known| known.is_like(&wanted)) {
            wishes.push(wanted);
        }
    }
    wishes
}

/// Whether room, labels and taints are all that decides about the pod.
fn asks_for_room_only(pod: &Pod) -> bool {
    let spec = &pod.spec;
    spec.affinity.is_none() && spec.volumes.is_empty() && spec.host_ports().next().is_none()
}

/// Whether no rule of the pod is about other pods.
pub(super) fn is_plain(pod: &Pod) -> bool {
    let affinity = pod.spec.affinity.as_ref();
    let has_rules = affinity.is_some_and(|it| it.pod_affinity.is_some() || it.pod_anti_affinity.is_some());
    !has_rules && pod.spec.topology_spread_constraints.is_empty() && pod.spec.resource_claims.is_empty()
}

/// Whether a pod keeps others out of a zone, or anything else that is more than its node.
fn keeps_beyond_its_node(pod: &Pod) -> bool {
    let anti = pod.spec.affinity.as_ref().and_then(|it| it.pod_anti_affinity.as_ref());
    anti.is_some_and(|anti| anti.required.iter().any(|term| *term.topology_key != *HOSTNAME))
}
