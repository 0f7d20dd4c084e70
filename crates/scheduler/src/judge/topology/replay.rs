//! Binding the pods of a plan one by one.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use model::{
    object::{Labels, ObjectKey, Pod, Text},
    plan::{Plan, Slot},
    snapshot::Snapshot,
};

use super::{Stuck, excuse::excuse, keys_of};
use crate::{
    ClassId, Cluster, NodeId, SchedNode, Spreading,
    judge::{
        Place, Reason, Rule,
        claim::{ClaimView, current},
        placement::asked_keys,
        world::World,
    },
};

/// Where claims are whose domain is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::judge) enum WorldKind {
    /// Nowhere.
    Settled,
    /// Where the plan expects them.
    Expected,
}

/// A pod and the place the plan has for it.
#[derive(Debug, Clone)]
pub(in crate::judge) struct Binding {
    pub(in crate::judge) pod: Arc<Pod>,
    pub(in crate::judge) class: ClassId,
    pub(in crate::judge) node: NodeId,
    pub(in crate::judge) place: Place,
    /// Topologies in which the node's domain was open when the pod was placed.
    late: BTreeSet<Text>,
    /// When the plan's witness binds it; none when it does not speak of it.
    turn: Option<usize>,
}

/// Which pods count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::judge) enum Counting {
    /// All, as for the scheduler.
    All,
    /// Those whose domain was settled when they were placed, as for upstream.
    Settled,
}

/// The cluster before the plan, with the plan's nodes, and the pods to bind.
#[derive(Debug)]
pub(in crate::judge) struct Replay {
    snapshot: Snapshot,
    pub(in crate::judge) cluster: Cluster,
    pub(in crate::judge) bindings: Vec<Binding>,
    /// Nodes of the cluster that a plan speaks of and that do not exist.
    pub(in crate::judge) unknown: Vec<Text>,
}

impl Binding {
    fn bind(&self, cluster: &mut Cluster, counting: Counting) {
        match counting {
            Counting::All => cluster.bind(self.class, self.node),
            Counting::Settled => cluster.bind_unseen(self.class, self.node, &self.late),
        }
    }
}

/// Whether placing the pod settles the claim's domain: it asks for labels of this key, or has a constraint, a term or a
/// volume that may.
fn speaks_of(pod: &Pod, key: &Text) -> bool {
    !pod.spec.volumes.is_empty() || keys_of(pod).any(|it| it == *key) || asked_keys(&pod.spec).any(|it| *it == **key)
}

impl Replay {
    pub(in crate::judge) fn new(
        snapshot: &Snapshot,
        world: &World,
        claims: &[ClaimView],
        plan: &Plan,
        kind: WorldKind,
    ) -> Self {
        let mut replay = Self {
            snapshot: snapshot.clone(),
            cluster: Cluster::new(snapshot, Spreading::Configured),
            bindings: Vec::new(),
            unknown: Vec::new(),
        };
        let nodes = replay.add_world(snapshot, world, plan);
        let mut turns = Turns::of(plan);
        replay.add_claims(claims, kind, &mut turns);
        for (at, planned) in (0..).zip(&plan.existing) {
            match nodes.get(planned.name.as_str()) {
                Some(node) => {
                    let place = Place::Node(planned.name.as_str().into());
                    for pod in &planned.pods {
                        let turn = turns.next(Slot::Existing(at));
                        replay.add_binding(current(snapshot, pod), *node, place.clone(), BTreeSet::new(), turn);
                    }
                }
                None => replay.unknown.push(planned.name.as_str().into()),
            }
        }
        replay.bindings.sort_by_cached_key(|binding| queue_key(&binding.pod));
        replay
    }

    fn add_world(&mut self, snapshot: &Snapshot, world: &World, plan: &Plan) -> BTreeMap<Text, NodeId> {
        let moving: BTreeSet<ObjectKey> = plan_pods(plan).map(|pod| pod.metadata.key()).collect();
        let mut nodes = BTreeMap::new();
        for staying in world.staying(snapshot, &moving) {
            let name = staying.sched_node.name.clone();
            let node = self.cluster.add_node(staying.sched_node);
            for pod in &staying.pods {
                let class = self.cluster.class_of(pod);
                self.cluster.bind(class, node);
            }
            nodes.insert(name, node);
        }
        nodes
    }

    fn add_claims(&mut self, claims: &[ClaimView], kind: WorldKind, turns: &mut Turns) {
        for claim in claims {
            let open: BTreeSet<Text> = match kind {
                WorldKind::Settled => claim.open_keys().cloned().collect(),
                WorldKind::Expected => BTreeSet::new(),
            };
            let labels = claim.labels.iter().filter(|(key, _)| !open.contains(*key));
            let labels = labels.map(|(key, value)| (key.clone(), value.clone())).collect();
            let node = self.cluster.add_node(SchedNode {
                name: claim.hostname.clone(),
                labels: Labels::from_pairs(labels),
                taints: claim.taints.clone().into(),
                ..SchedNode::default()
            });
            let mut late: BTreeSet<Text> = claim.unpinned.clone();
            for pod in &claim.pods {
                late.retain(|key| !speaks_of(pod, key));
                let turn = turns.next(claim.slot);
                self.add_binding(Arc::clone(pod), node, claim.place.clone(), late.clone(), turn);
            }
        }
    }

    fn add_binding(&mut self, pod: Arc<Pod>, node: NodeId, place: Place, late: BTreeSet<Text>, turn: Option<usize>) {
        let class = self.cluster.class_of(&pod);
        self.bindings.push(Binding {
            pod,
            class,
            node,
            place,
            late,
            turn,
        });
    }

    /// The domain of a binding's node.
    pub(in crate::judge) fn domain_of(&self, binding: &Binding, key: &Text) -> BTreeSet<Option<Text>> {
        BTreeSet::from([self.cluster.label(binding.node, key).cloned()])
    }

    /// The pods that no order binds; those of the order that binds most.
    pub(in crate::judge) fn stuck(&self, counting: Counting) -> BTreeSet<Stuck> {
        if self.is_witnessed(counting) {
            return BTreeSet::new();
        }
        let in_laps = self.in_laps(counting);
        if in_laps.is_empty() {
            return in_laps;
        }
        let evenly = self.evenly(counting);
        let (fewer, more) = if evenly.len() < in_laps.len() {
            (evenly, in_laps)
        } else {
            (in_laps, evenly)
        };
        // What one of the orders binds can be bound; only that no order was found for all at once remains.
        let is_bound = |pod: &ObjectKey| !more.iter().any(|it| it.pod == *pod);
        let excused = fewer.into_iter().map(|it| Stuck {
            excuse: it.excuse.or(is_bound(&it.pod).then_some(Reason::NoCommonOrder)),
            ..it
        });
        excused.collect()
    }

    /// Whether every pod is admitted in the order the plan tells.
    fn is_witnessed(&self, counting: Counting) -> bool {
        let mut witnessed: Vec<&Binding> = self.bindings.iter().collect();
        witnessed.sort_by_key(|binding| binding.turn);
        let mut cluster = self.cluster.clone();
        witnessed.into_iter().all(|binding| {
            let refused = cluster.refused_by_neighbours(binding.class, binding.node.index());
            binding.bind(&mut cluster, counting);
            binding.turn.is_some() && refused.is_none()
        })
    }

    /// The planner's order: each lap binds what it can and leaves the rest for the next.
    fn in_laps(&self, counting: Counting) -> BTreeSet<Stuck> {
        let mut cluster = self.cluster.clone();
        let mut waiting: Vec<&Binding> = self.bindings.iter().collect();
        loop {
            let before = waiting.len();
            waiting.retain(|binding| {
                let is_admitted = cluster
                    .refused_by_neighbours(binding.class, binding.node.index())
                    .is_none();
                if is_admitted {
                    binding.bind(&mut cluster, counting);
                }
                !is_admitted
            });
            if waiting.len() == before {
                return stuck(&self.snapshot, &cluster, &waiting);
            }
        }
    }

    /// The pods that skew least first, in sweeps: while some pod can join a domain that has the least, no other is bound.
    fn evenly(&self, counting: Counting) -> BTreeSet<Stuck> {
        let mut cluster = self.cluster.clone();
        let mut waiting = self.interleaved();
        let mut patience = 0;
        while let Some(step) = STEPS.get(patience) {
            let before = waiting.len();
            let mut left = step.at_once;
            waiting.retain(|binding| {
                let tendency = cluster.tendency(binding.class, binding.node);
                let is_due = left > 0 && tendency <= step.up_to;
                let is_bound = is_due
                    && cluster
                        .refused_by_neighbours(binding.class, binding.node.index())
                        .is_none();
                if is_bound {
                    binding.bind(&mut cluster, counting);
                    left -= 1;
                }
                !is_bound
            });
            patience = if waiting.len() < before { 0 } else { patience + 1 };
        }
        stuck(&self.snapshot, &cluster, &waiting)
    }

    /// One pod of each class and node, then a second one of each, and so on: what is alike must not come in a row.
    fn interleaved(&self) -> Vec<&Binding> {
        let mut seen: BTreeMap<(ClassId, NodeId), usize> = BTreeMap::new();
        let numbered = self.bindings.iter().map(|binding| {
            let count = seen.entry((binding.class, binding.node)).or_default();
            *count += 1;
            (*count, binding)
        });
        let mut numbered: Vec<_> = numbered.collect();
        numbered.sort_by_key(|(count, _)| *count);
        numbered.into_iter().map(|(_, binding)| binding).collect()
    }
}

/// When the plan's witness binds the pods of each place.
struct Turns(BTreeMap<Slot, VecDeque<usize>>);

impl Turns {
    fn of(plan: &Plan) -> Self {
        let mut turns: BTreeMap<Slot, VecDeque<usize>> = BTreeMap::new();
        for (turn, slot) in plan.order.iter().enumerate() {
            turns.entry(*slot).or_default().push_back(turn);
        }
        Self(turns)
    }

    /// The turn of the next pod of a place.
    fn next(&mut self, slot: Slot) -> Option<usize> {
        self.0.get_mut(&slot)?.pop_front()
    }
}

/// Which pods a sweep binds: those whose tendency is at most this, and how many before the first step is tried again.
struct Step {
    up_to: (u8, i64),
    at_once: usize,
}

/// From no harm at all to the last resort.
const STEPS: [Step; 5] = [
    Step {
        up_to: (0, i64::MAX),
        at_once: usize::MAX,
    },
    Step {
        up_to: (1, 0),
        at_once: usize::MAX,
    },
    Step {
        up_to: (1, i64::MAX),
        at_once: 1,
    },
    Step {
        up_to: (2, i64::MAX),
        at_once: usize::MAX,
    },
    Step {
        up_to: (3, i64::MAX),
        at_once: usize::MAX,
    },
];

fn stuck(snapshot: &Snapshot, cluster: &Cluster, waiting: &[&Binding]) -> BTreeSet<Stuck> {
    let refused = waiting.iter().filter_map(|binding| {
        let plugin = cluster.refused_by_neighbours(binding.class, binding.node.index())?;
        Some(Stuck {
            pod: binding.pod.metadata.key(),
            place: binding.place.clone(),
            rule: Rule::Filter(plugin),
            excuse: excuse(snapshot, &binding.pod, plugin),
        })
    });
    refused.collect()
}

fn plan_pods(plan: &Plan) -> impl Iterator<Item = &Arc<Pod>> {
    let claimed = plan.claims.iter().flat_map(|claim| &claim.pods);
    let unplaced = plan.unplaced.iter().map(|unplaced| &unplaced.pod);
    claimed
        .chain(plan.existing.iter().flat_map(|node| &node.pods))
        .chain(unplaced)
}

/// Upstream's queue: most processors first, then most memory, then age, then identity.
fn queue_key(pod: &Pod) -> impl Ord + use<> {
    let requests = pod.resources().requests();
    let most = |name: &str| std::cmp::Reverse(requests.amount(name));
    let metadata = &pod.metadata;
    (
        most("cpu"),
        most("memory"),
        metadata.creation_timestamp,
        metadata.uid.clone(),
    )
}
