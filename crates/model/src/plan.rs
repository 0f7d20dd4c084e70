//! What a planner answers: which nodes to launch, which pods go where, and which stay pending and why.
//!
//! A plan holds its pods, so it can be read, judged, rehearsed and printed without asking its maker. It also says how it
//! is to be carried out, for kube-scheduler spends it: in which order the pods can be bound, which nodes are released
//! when, and which pods are told where to go.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    object::{InstanceTypeName, Map, NodeName, NodePoolName, Pod, Text},
    price::Price,
    requirement::RequirementSpec,
    resources::ResourceList,
};

/// Nodes to launch, pods placed, pods left over.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    /// Nodes to launch, in the order they were opened.
    pub claims: Vec<PlannedClaim>,
    /// Existing and in-flight nodes that get pods, in the order they were tried.
    pub existing: Vec<PlannedNode>,
    /// Pods without a place, in the order of namespace and name.
    pub unplaced: Vec<Unplaced>,
    /// The places in the order in which they were given pods: the n-th mention of a place stands for its n-th pod. A
    /// witness: bound one after the other in this order, every pod is admitted. Empty when the maker does not tell.
    pub order: Vec<Slot>,
}

/// A place of a plan, by position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Slot {
    /// In [`Plan::claims`].
    Claim(u32),
    /// In [`Plan::existing`].
    Existing(u32),
}

/// A node to launch.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedClaim {
    /// Whose template it is made from.
    pub node_pool: NodePoolName,
    /// The pods it is for, in the order they were placed.
    pub pods: Vec<Arc<Pod>>,
    /// `spec.requirements` of the NodeClaim but for the instance types, which `options` name; sorted by key.
    pub constraints: Arc<[RequirementSpec]>,
    /// `minValues` of the requirement on instance types.
    pub min_types: Option<u32>,
    /// The instance types that may be launched, cheapest first, at most 600.
    pub options: TypeOptions,
    /// The cheapest launch; none when nothing can be launched at once.
    pub cheapest: Option<Launch>,
    /// What its pods ask for, with the daemons that every option will run.
    pub requests: ResourceList,
    /// Labels of the NodeClaim: the template's, and one for each custom key of the requirements.
    pub labels: Map<Text>,
    /// Annotations of the NodeClaim that this plan decides, such as whether `minValues` was relaxed.
    pub annotations: Map<Text>,
    /// When its node may take pods: all nodes of a wave are released together, once the pods planned onto the waves
    /// before have had their chance there. The first wave is 0.
    pub wave: u32,
    /// Positions in `pods` of those to be nominated (`status.nominatedNodeName`) for its node before it is released,
    /// ascending.
    pub nominated: Vec<u32>,
}

fn position(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

impl PlannedClaim {
    /// The pods to be nominated for its node.
    pub fn nominated_pods(&self) -> impl Iterator<Item = &Arc<Pod>> {
        self.nominated.iter().filter_map(|at| self.pods.get(*at as usize))
    }

    fn for_pods(&self, is_kept: impl Fn(&Pod) -> bool) -> Self {
        let mut kept = self.clone();
        kept.pods.clear();
        kept.nominated.clear();
        for (at, pod) in (0..).zip(&self.pods).filter(|(_, pod)| is_kept(pod)) {
            if self.nominated.contains(&at) {
                kept.nominated.push(position(kept.pods.len()));
            }
            kept.pods.push(Arc::clone(pod));
        }
        kept
    }
}

/// Instance types in order of preference. Thousands of claims keep hundreds each, and of few lists anybody reads more than
/// the head: so claims share the names and their order, and each has a bit per name.
#[derive(Debug, Clone, Default)]
pub struct TypeOptions {
    names: Arc<[InstanceTypeName]>,
    /// Positions in `names`, in order of preference.
    order: Arc<[u32]>,
    /// A bit per position in `names`.
    kept: Arc<[u64]>,
    len: usize,
}

impl TypeOptions {
    /// All names, the preferred ones first.
    pub fn all(names: impl IntoIterator<Item = InstanceTypeName>) -> Self {
        let names: Arc<[InstanceTypeName]> = names.into_iter().collect();
        let order: Arc<[u32]> = (0..).zip(names.iter()).map(|(at, _)| at).collect();
        Self::listed(names, order)
    }

    /// The first `most` of the names whose bit is set, in an order of preference that names every position once.
    pub fn chosen(names: Arc<[InstanceTypeName]>, order: Arc<[u32]>, kept: Arc<[u64]>, most: usize) -> Self {
        let count: u32 = kept.iter().map(|word| word.count_ones()).sum();
        Self {
            len: usize::try_from(count).unwrap_or(usize::MAX).min(most),
            names,
            order,
            kept,
        }
    }

    /// These names, in this order.
    pub fn listed(names: Arc<[InstanceTypeName]>, order: Arc<[u32]>) -> Self {
        Self {
            len: order.len(),
            kept: vec![u64::MAX; names.len().div_ceil(64)].into(),
            names,
            order,
        }
    }

    /// Those of them that `is_kept` names, in the same order.
    #[must_use]
    pub fn filtered(&self, is_kept: impl Fn(&InstanceTypeName) -> bool) -> Self {
        let named = |at: &u32| self.names.get(*at as usize).is_some_and(&is_kept);
        Self::listed(Arc::clone(&self.names), self.positions().filter(named).collect())
    }

    /// How many options there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True when nothing is left to launch.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The names, in order of preference.
    pub fn iter(&self) -> impl Iterator<Item = &InstanceTypeName> {
        self.positions().filter_map(|at| self.names.get(at as usize))
    }

    /// Their positions among all names, in order of preference.
    pub fn positions(&self) -> impl Iterator<Item = u32> {
        let is_kept = |at: &u32| {
            let word = self.kept.get(*at as usize / 64);
            word.is_some_and(|word| word >> (at % 64) & 1 == 1)
        };
        self.order.iter().copied().filter(is_kept).take(self.len)
    }
}

/// Equal when they name the same types in the same order.
impl PartialEq for TypeOptions {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

/// One offering of one type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// The type.
    pub instance_type: InstanceTypeName,
    /// The zone, where the offering names one.
    pub zone: Option<Text>,
    /// `spot`, `on-demand` or `reserved`.
    pub capacity_type: Option<Text>,
    /// What it costs.
    pub price: Price,
}

/// A node that exists, or is on its way, and gets pods.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedNode {
    /// Its name, or its claim's name while it has not registered.
    pub name: NodeName,
    /// The pods it gets, in the order they were placed.
    pub pods: Vec<Arc<Pod>>,
}

/// A pod without a place.
#[derive(Debug, Clone, PartialEq)]
pub struct Unplaced {
    /// The pod.
    pub pod: Arc<Pod>,
    /// What kind of refusal it is.
    pub kind: RefusalKind,
    /// Upstream's words for it.
    pub message: Arc<str>,
}

/// What follows from a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RefusalKind {
    /// The pod opted out of node autoscaling; nobody is told.
    OptedOut,
    /// The pod is invalid and was never tried.
    Invalid,
    /// Nothing fits.
    Unschedulable,
    /// It waits for reserved capacity that another claim of this plan may still release; nobody is told.
    Deferred,
    /// It asks for devices while device requests are ignored.
    DeviceRequestsIgnored,
}

impl Plan {
    /// What the new nodes cost an hour at the cheapest launch of each.
    pub fn price(&self) -> Price {
        self.claims
            .iter()
            .filter_map(|claim| claim.cheapest.as_ref())
            .map(|launch| launch.price)
            .sum()
    }

    /// How many waves its claims are released in.
    pub fn waves(&self) -> u32 {
        self.claims.iter().map(|claim| claim.wave + 1).max().unwrap_or(0)
    }

    /// Pods to be nominated, each with the position of its claim.
    pub fn nominations(&self) -> impl Iterator<Item = (usize, &Arc<Pod>)> {
        let claims = self.claims.iter().enumerate();
        claims.flat_map(|(at, claim)| claim.nominated_pods().map(move |pod| (at, pod)))
    }

    /// The pods with their places in the order they can be bound: the witness, and what it leaves out as it is listed.
    pub fn placements(&self) -> Vec<(Slot, &Arc<Pod>)> {
        let mut claims: Vec<_> = self.claims.iter().map(|claim| claim.pods.iter()).collect();
        let mut existing: Vec<_> = self.existing.iter().map(|node| node.pods.iter()).collect();
        let mut placements = Vec::with_capacity(self.placed());
        for slot in &self.order {
            let pods = match slot {
                Slot::Claim(at) => claims.get_mut(*at as usize),
                Slot::Existing(at) => existing.get_mut(*at as usize),
            };
            placements.extend(pods.and_then(Iterator::next).map(|pod| (*slot, pod)));
        }
        for (at, pods) in (0..).zip(existing) {
            placements.extend(pods.map(|pod| (Slot::Existing(at), pod)));
        }
        for (at, pods) in (0..).zip(claims) {
            placements.extend(pods.map(|pod| (Slot::Claim(at), pod)));
        }
        placements
    }

    /// The plan as far as it concerns some of its pods: machines for none of them are left out, the others stay as large
    /// as they are.
    #[must_use]
    pub fn for_pods(&self, is_kept: impl Fn(&Pod) -> bool) -> Self {
        let mut kept = Self::default();
        let mut slots = BTreeMap::new();
        for (at, node) in (0..).zip(&self.existing) {
            let pods: Vec<_> = node.pods.iter().filter(|pod| is_kept(pod)).cloned().collect();
            if !pods.is_empty() {
                slots.insert(Slot::Existing(at), Slot::Existing(position(kept.existing.len())));
                kept.existing.push(PlannedNode {
                    name: node.name.clone(),
                    pods,
                });
            }
        }
        for (at, claim) in (0..).zip(&self.claims) {
            if claim.pods.iter().any(|pod| is_kept(pod)) {
                slots.insert(Slot::Claim(at), Slot::Claim(position(kept.claims.len())));
                kept.claims.push(claim.for_pods(&is_kept));
            }
        }
        if !self.order.is_empty() {
            let placements = self.placements().into_iter().filter(|(_, pod)| is_kept(pod));
            kept.order = placements.filter_map(|(slot, _)| slots.get(&slot).copied()).collect();
        }
        let unplaced = self.unplaced.iter().filter(|refusal| is_kept(&refusal.pod));
        kept.unplaced = unplaced.cloned().collect();
        kept
    }

    /// How many pods have a place.
    pub fn placed(&self) -> usize {
        let claimed: usize = self.claims.iter().map(|claim| claim.pods.len()).sum();
        let existing: usize = self.existing.iter().map(|node| node.pods.len()).sum();
        claimed + existing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Metadata;

    fn pods(names: &[&str]) -> Vec<Arc<Pod>> {
        let pod = |name: &&str| Pod {
            metadata: Metadata {
                name: (*name).into(),
                ..Metadata::default()
            },
            ..Pod::default()
        };
        names.iter().map(pod).map(Arc::new).collect()
    }

    fn claim(names: &[&str], nominated: &[u32]) -> PlannedClaim {
        PlannedClaim {
            node_pool: "p".into(),
            pods: pods(names),
            constraints: Arc::default(),
            min_types: None,
            options: TypeOptions::default(),
            cheapest: None,
            requests: ResourceList::default(),
            labels: Map::default(),
            annotations: Map::default(),
            wave: 0,
            nominated: nominated.to_vec(),
        }
    }

    #[test]
    fn plan_for_some_of_its_pods_keeps_their_machines_their_order_and_their_nominations() {
        let (first, second) = (Slot::Claim(1), Slot::Claim(2));
        let plan = Plan {
            claims: vec![claim(&["x1"], &[]), claim(&["x2", "a"], &[0, 1]), claim(&["b"], &[])],
            existing: vec![PlannedNode {
                name: "n".into(),
                pods: pods(&["x3", "c"]),
            }],
            unplaced: Vec::new(),
            order: vec![
                second,
                Slot::Existing(0),
                first,
                Slot::Claim(0),
                Slot::Existing(0),
                first,
            ],
        };
        let kept = plan.for_pods(|pod| !pod.metadata.name.starts_with('x'));
        let order: Vec<_> = kept
            .placements()
            .into_iter()
            .map(|(slot, pod)| (slot, pod.metadata.name.to_string()))
            .collect();
        let expected = [(Slot::Claim(1), "b"), (Slot::Existing(0), "c"), (Slot::Claim(0), "a")];
        assert_eq!(order, expected.map(|(slot, name)| (slot, name.to_owned())));
        assert_eq!((kept.claims.len(), kept.existing.len(), kept.order.len()), (2, 1, 3));
        assert_eq!(kept.claims[0].nominated, [0]);
    }
}
