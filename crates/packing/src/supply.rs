//! What there is to place pods on: NodePools with their instance types, and nodes with their room.

mod daemon;
mod domain;
mod labels;
mod member;
mod node;
mod overlay;
mod pool;
mod requests;
mod stock;
mod template;
mod usage;

use std::sync::Arc;

use model::{
    host_port::{HostPort, HostPortUsage},
    instance_type::InstanceType,
    object::{Labels, Node, NodeClaim, NodeName, NodePool, ObjectKey, Taint, Text},
    requirement::Requirements,
    resources::ResourceList,
    snapshot::Snapshot,
    vocabulary::{KeyId, ValueId, Vocabulary},
    volume::VolumeUsage,
};

use self::{daemon::Daemons, node::NodeFactory, pool::Pools, template::TemplateFactory};
pub(crate) use self::{
    daemon::newest_pods,
    member::Register,
    requests::requests_of,
    stock::{Shape, Stock},
    template::{is_launchable, specs as requirement_specs},
};
pub use self::{
    labels::label_rules,
    member::members,
    overlay::{OverlayVerdict, overlay_verdicts},
    pool::Offered,
    template::requirements as template_requirements,
};
use crate::Options;

/// Everything pods may be placed on.
#[derive(Debug, Clone)]
pub struct Supply {
    /// The numbers of all keys and values below; demand adds its own.
    pub vocabulary: Vocabulary,
    /// True when there is no dynamic NodePool to launch from at all.
    pub has_no_pools: bool,
    /// What can be launched, heaviest NodePool first.
    pub templates: Vec<Template>,
    /// NodePools of which no instance type is left.
    pub dropped: Vec<DroppedPool>,
    /// Some NodePool has a `PreferNoSchedule` taint, so pods may end up tolerating such taints.
    pub has_preferred_taints: bool,
    /// Nodes that stay, initialised ones first, then by name.
    pub nodes: Vec<StateNode>,
    /// The values each label may take on nodes that could be launched.
    pub universe: Vec<Domain>,
}

/// A NodePool that can launch nodes.
#[derive(Debug, Clone)]
pub struct Template {
    /// The pool.
    pub pool: Arc<NodePool>,
    /// What its nodes fulfil: spec requirements, template labels, pool, node class, and that the node registers and initialises.
    pub requirements: Requirements,
    /// Its instance types that can be launched at all, overlays applied, in catalogue order.
    pub types: Vec<Arc<InstanceType>>,
    /// What pods may use of each type.
    pub(crate) shapes: Vec<Arc<[Shape]>>,
    /// Which daemons run on which of them; every type is in exactly one group.
    pub daemons: Vec<DaemonGroup>,
    /// What the pool's limits leave, over the limited resources; none without limits.
    pub remaining: Option<ResourceList>,
}

/// Instance types that run the same daemons.
#[derive(Debug, Clone, Default)]
pub struct DaemonGroup {
    /// Positions in [`Template::types`].
    pub types: Vec<usize>,
    /// What the daemons ask for together, their count as `pods`; empty when there are none.
    pub overhead: ResourceList,
    /// The ports they take.
    pub ports: Vec<(ObjectKey, Vec<HostPort>)>,
    /// Who they are.
    pub daemons: Vec<ObjectKey>,
}

/// A NodePool of which no instance type is left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DroppedPool {
    /// The pool.
    pub pool: Text,
    /// True when `minValues` is the reason.
    pub is_min_values: bool,
}

/// A node, or a claim whose node has not registered.
#[derive(Debug, Clone)]
pub struct StateNode {
    /// The node's name, or the claim's.
    pub name: NodeName,
    /// The node, once there is one.
    pub node: Option<Arc<Node>>,
    /// The claim, when a NodePool manages the node.
    pub claim: Option<Arc<NodeClaim>>,
    /// The labels pods see.
    pub labels: Labels,
    /// The value of the hostname label, or the name.
    pub hostname: Text,
    /// The taints pods must tolerate.
    pub taints: Vec<Taint>,
    /// Room for pods: allocatable less bound pods less daemons still to come, over allocatable's resources.
    pub remaining: ResourceList,
    /// Ports taken.
    pub ports: HostPortUsage<ObjectKey>,
    /// Volumes attached, with their limits.
    pub volumes: VolumeUsage<ObjectKey>,
    /// Its instance type, if its NodePool takes part and offers it.
    pub offered: Option<Arc<InstanceType>>,
    /// All parts of the node are up.
    pub is_initialized: bool,
    /// It may not be consolidated yet; in a consolidation run it takes only pods that have no place.
    pub is_under_consolidate_after: bool,
}

/// A value that nodes to be launched can have for a label.
#[derive(Debug, Clone)]
pub struct Domain {
    /// The label.
    pub key: KeyId,
    /// The value.
    pub value: ValueId,
    /// The taints under which it can be had, one set per way; one empty set when any way is without taints.
    pub taints: Vec<Vec<Taint>>,
}

impl Supply {
    /// What pods of a snapshot may be placed on.
    ///
    /// The order of the steps is upstream's, and it shows: a daemon's terms are used up by templates before existing nodes
    /// look at them.
    pub fn of(snapshot: &Snapshot, options: &Options) -> Self {
        Self::from_stock(snapshot, options, &Stock::of(snapshot))
    }

    /// The same from what the snapshot's catalogue comes to.
    pub(crate) fn from_stock(snapshot: &Snapshot, options: &Options, stock: &Stock) -> Self {
        let mut vocabulary = stock.vocabulary();
        let pools = Pools::of(snapshot, stock, &mut vocabulary);
        let mut daemons = Daemons::of(snapshot, &mut vocabulary);
        let mut factory = TemplateFactory::new(snapshot, &mut vocabulary, &mut daemons);
        let (mut templates, dropped) = factory.templates(&pools);
        let staying: Vec<_> = members(snapshot)
            .into_iter()
            .filter(|member| !member.is_leaving())
            .collect();
        for template in &mut templates {
            template.remaining = pool::remaining(&template.pool, &staying);
        }
        let universe = domain::universe(&pools, &mut vocabulary);
        let nodes = NodeFactory::new(snapshot, options, &pools, &mut daemons, &mut vocabulary).nodes(&staying);
        Self {
            has_no_pools: pools.is_empty(),
            has_preferred_taints: pools.have_preferred_taints(),
            vocabulary,
            templates,
            dropped,
            nodes,
            universe,
        }
    }
}
