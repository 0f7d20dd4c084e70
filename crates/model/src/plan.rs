//! What a planner answers: which nodes to launch, which pods go where, and which stay pending and why.
//!
//! A plan holds its pods, so it can be read, judged, rehearsed and printed without asking its maker.

use std::sync::Arc;

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
        let kept = vec![u64::MAX; names.len().div_ceil(64)].into();
        Self {
            len: names.len(),
            names,
            order,
            kept,
        }
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

    /// How many pods have a place.
    pub fn placed(&self) -> usize {
        let claimed: usize = self.claims.iter().map(|claim| claim.pods.len()).sum();
        let existing: usize = self.existing.iter().map(|node| node.pods.len()).sum();
        claimed + existing
    }
}
