//! Binding the pods of a plan one by one.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use model::{
    object::{Labels, ObjectKey, Pod, Text},
    plan::Plan,
    snapshot::Snapshot,
};

use super::{Stuck, excuse::excuse, keys_of};
use crate::{
    ClassId, Cluster, NodeId, SchedNode, Spreading,
    judge::{
        Place, Rule,
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
        replay.add_claims(claims, kind);
        for planned in &plan.existing {
            match nodes.get(planned.name.as_str()) {
                Some(node) => {
                    let place = Place::Node(planned.name.as_str().into());
                    for pod in &planned.pods {
                        replay.add_binding(current(snapshot, pod), *node, place.clone(), BTreeSet::new());
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

    fn add_claims(&mut self, claims: &[ClaimView], kind: WorldKind) {
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
                self.add_binding(Arc::clone(pod), node, claim.place.clone(), late.clone());
            }
        }
    }

    fn add_binding(&mut self, pod: Arc<Pod>, node: NodeId, place: Place, late: BTreeSet<Text>) {
        let class = self.cluster.class_of(&pod);
        self.bindings.push(Binding {
            pod,
            class,
            node,
            place,
            late,
        });
    }

    /// The domain of a binding's node.
    pub(in crate::judge) fn domain_of(&self, binding: &Binding, key: &Text) -> BTreeSet<Option<Text>> {
        BTreeSet::from([self.cluster.label(binding.node, key).cloned()])
    }

    /// The pods that neither order binds; those of the order that binds more.
    pub(in crate::judge) fn stuck(&self, counting: Counting) -> BTreeSet<Stuck> {
        let in_laps = self.in_laps(counting);
        if in_laps.is_empty() {
            return in_laps;
        }
        let evenly = self.evenly(counting);
        if evenly.len() < in_laps.len() { evenly } else { in_laps }
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

    /// Always the pod that skews least; those alike, of one class for one node, stand for each other.
    fn evenly(&self, counting: Counting) -> BTreeSet<Stuck> {
        let mut cluster = self.cluster.clone();
        let mut groups: BTreeMap<(ClassId, NodeId), Vec<&Binding>> = BTreeMap::new();
        for binding in self.bindings.iter().rev() {
            groups.entry((binding.class, binding.node)).or_default().push(binding);
        }
        loop {
            let admitted = groups
                .keys()
                .filter(|(class, node)| cluster.refused_by_neighbours(*class, node.index()).is_none());
            let least = admitted.min_by_key(|(class, node)| cluster.tendency(*class, *node));
            let Some((class, node)) = least.copied() else {
                let waiting: Vec<&Binding> = groups.into_values().flatten().collect();
                return stuck(&self.snapshot, &cluster, &waiting);
            };
            if let Some(group) = groups.get_mut(&(class, node)) {
                if let Some(binding) = group.pop() {
                    binding.bind(&mut cluster, counting);
                }
                if group.is_empty() {
                    groups.remove(&(class, node));
                }
            }
        }
    }
}

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
