//! Everything a decision needs, at one moment, immutable.
//!
//! Cloning a snapshot is one reference count. An overlay ("without these nodes", "with this NodePool") is a new snapshot
//! that shares all tables with the old one but for the rows it changes. Iteration is always in the order of keys, so equal
//! snapshots lead to equal plans.

mod catalog;
mod inputs;
mod member;
mod objects;
mod settings;
mod table;

use std::sync::Arc;

use jiff::Timestamp;

pub use catalog::{
    AttributeBinding, Catalog, CatalogOffering, CatalogOverhead, CatalogType, DeviceId, DynamicResources, TypeReader,
};
pub use inputs::Inputs;
pub use member::{Member, machine_of_claim, machine_of_node};
pub use objects::Objects;
pub(crate) use objects::{Draft, TypeMeta, Visit};
pub use settings::{FeatureGates, MinValuesPolicy, PreferencePolicy, Settings};
pub use table::Table;

use crate::{
    digest,
    object::{Node, NodeClaim, NodeName, NodePool, NodePoolName, ObjectKey, Pod},
};

/// Everything a decision needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    inner: Arc<Inner>,
}

#[derive(Debug, Clone, PartialEq)]
struct Inner {
    title: Title,
    settings: Arc<Settings>,
    objects: Objects,
    catalog: Arc<Catalog>,
}

/// What a snapshot is of.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Title {
    /// A name for people.
    #[serde(default)]
    pub name: String,
    /// The decision's time; nothing in the engine reads a clock.
    pub taken_at: Timestamp,
    /// Where it comes from, for people.
    #[serde(default)]
    pub origin: String,
}

impl Snapshot {
    /// A snapshot of these parts.
    pub fn new(title: Title, settings: Settings, objects: Objects, catalog: Catalog) -> Self {
        Self::sharing(title, Arc::new(settings), objects, Arc::new(catalog))
    }

    /// A snapshot of these parts, which others hold as well: it costs the tables' reference counts.
    pub fn sharing(title: Title, settings: Arc<Settings>, objects: Objects, catalog: Arc<Catalog>) -> Self {
        Self {
            inner: Arc::new(Inner {
                title,
                settings,
                objects,
                catalog,
            }),
        }
    }

    /// What it is of.
    pub fn title(&self) -> &Title {
        &self.inner.title
    }

    /// The decision's time.
    pub fn taken_at(&self) -> Timestamp {
        self.inner.title.taken_at
    }

    /// The options that change a decision.
    pub fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    /// All objects.
    pub fn objects(&self) -> &Objects {
        &self.inner.objects
    }

    /// What a decision on it is made on, as numbers. Reads every object's version; the state knows them without that.
    pub fn inputs(&self) -> Inputs {
        let objects = self.objects();
        Inputs::of(
            digest::of_settings(self.settings()),
            digest::of_catalog(self.catalog()),
            objects.versions(),
        )
    }

    /// What the cloud offers.
    pub fn catalog(&self) -> &Catalog {
        &self.inner.catalog
    }

    /// What the cloud offers, to hold on to: snapshots of one catalogue share it.
    pub fn shared_catalog(&self) -> &Arc<Catalog> {
        &self.inner.catalog
    }

    /// A node by name.
    pub fn node(&self, name: &NodeName) -> Option<&Arc<Node>> {
        self.objects().nodes.find("", name.as_str())
    }

    /// A pool by name.
    pub fn node_pool(&self, name: &NodePoolName) -> Option<&Arc<NodePool>> {
        self.objects().node_pools.find("", name.as_str())
    }

    /// The pods bound to a node.
    pub fn pods_on_node<'a>(&'a self, name: &NodeName) -> impl Iterator<Item = &'a Arc<Pod>> {
        self.objects().pods.group(Pod::BY_NODE, name.as_str())
    }

    /// The nodes of a pool.
    pub fn nodes_of_pool<'a>(&'a self, pool: &NodePoolName) -> impl Iterator<Item = &'a Arc<Node>> {
        self.objects().nodes.group(Node::BY_POOL, pool.as_str())
    }

    /// The claims of a pool.
    pub fn claims_of_pool<'a>(&'a self, pool: &NodePoolName) -> impl Iterator<Item = &'a Arc<NodeClaim>> {
        self.objects().node_claims.group(NodeClaim::BY_POOL, pool.as_str())
    }

    /// The claim a node was launched for: the one with its provider ID.
    pub fn claim_of_node(&self, node: &Node) -> Option<&Arc<NodeClaim>> {
        let id = node.spec.provider_id.as_ref()?;
        self.inner
            .objects
            .node_claims
            .group(NodeClaim::BY_PROVIDER_ID, id.as_str())
            .next()
    }

    /// The node that registered for a claim: the one with its provider ID.
    pub fn node_of_claim(&self, claim: &NodeClaim) -> Option<&Arc<Node>> {
        let id = claim.status.provider_id.as_ref()?;
        self.inner.objects.nodes.group(Node::BY_PROVIDER_ID, id.as_str()).next()
    }

    /// The pods that ask for new capacity.
    pub fn provisionable_pods(&self) -> impl Iterator<Item = &Arc<Pod>> {
        self.objects().pods.iter().filter(|pod| pod.is_provisionable())
    }

    /// This snapshot without these nodes and their claims. Pods bound to them stay, still naming their node: which of
    /// them move is the decision's business.
    #[must_use]
    pub fn without_nodes(&self, names: &[NodeName]) -> Self {
        let nodes = names.iter().filter_map(|name| self.node(name));
        let claims = nodes
            .filter_map(|node| self.claim_of_node(node))
            .map(|claim| claim.metadata.key());
        let node_claims = self.objects().node_claims.without(claims);
        let keys = names.iter().map(|name| ObjectKey {
            namespace: "".into(),
            name: name.0.clone(),
        });
        let nodes = self.objects().nodes.without(keys);
        self.overlaid(|objects| {
            objects.nodes = nodes;
            objects.node_claims = node_claims;
        })
    }

    /// This snapshot with this pool, new or instead of the one of its name.
    #[must_use]
    pub fn with_node_pool(&self, pool: NodePool) -> Self {
        self.overlaid(|objects| objects.node_pools = objects.node_pools.with([Arc::new(pool)]))
    }

    /// This snapshot with these pods, new or instead of those with their keys.
    #[must_use]
    pub fn with_pods(&self, pods: impl IntoIterator<Item = Arc<Pod>>) -> Self {
        self.overlaid(|objects| objects.pods = objects.pods.with(pods))
    }

    /// This snapshot without these pods.
    #[must_use]
    pub fn without_pods(&self, keys: impl IntoIterator<Item = ObjectKey>) -> Self {
        self.overlaid(|objects| objects.pods = objects.pods.without(keys))
    }

    /// This snapshot under other options.
    #[must_use]
    pub fn with_settings(&self, settings: Settings) -> Self {
        let mut inner = Inner::clone(&self.inner);
        inner.settings = Arc::new(settings);
        Self { inner: Arc::new(inner) }
    }

    /// This snapshot with other tables; a table that is left alone is shared.
    #[must_use]
    pub fn overlaid(&self, change: impl FnOnce(&mut Objects)) -> Self {
        let mut inner = Inner::clone(&self.inner);
        change(&mut inner.objects);
        Self { inner: Arc::new(inner) }
    }
}
