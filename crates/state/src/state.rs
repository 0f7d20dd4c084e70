//! The fold itself: which kinds are tracked, and what is asked of them.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use model::{
    digest::{of_catalog, of_settings, of_version},
    object::{
        Node, NodeClaim, NodeClass, NodeClassReference, Object, ObjectKey, Pod, ResourceVersion, VolumeAttachment,
    },
    snapshot::{Catalog, Inputs, Objects, Settings, Snapshot, Title},
};

use crate::{
    Change, Store, Transition, freshness::order, ledger::Ledger, listing::Waits, machines::Machines, marks::Marks,
    pod_times::PodTimings,
};

/// Calls a macro with every tracked kind: the field it has in a snapshot, and its type.
macro_rules! tracked_kinds {
    ($macro:ident) => {
        $macro! {
            /// Who may be launched.
            node_pools: NodePool,
            /// What the user knows better than the catalogue.
            node_overlays: NodeOverlay,
            /// Who was launched.
            node_claims: NodeClaim,
            /// Who joined.
            nodes: Node,
            /// Demand and what already runs.
            pods: Pod,
            /// Overhead of every node.
            daemon_sets: DaemonSet,
            /// For buffers.
            deployments: Deployment,
            /// For default constraints and buffers.
            replica_sets: ReplicaSet,
            /// For default constraints and buffers.
            stateful_sets: StatefulSet,
            /// For default constraints.
            replication_controllers: ReplicationController,
            /// For default constraints.
            services: Service,
            /// For buffers.
            pod_templates: PodTemplate,
            /// Room kept free.
            capacity_buffers: CapacityBuffer,
            /// What blocks evictions.
            pod_disruption_budgets: PodDisruptionBudget,
            /// For affinity terms across namespaces.
            namespaces: Namespace,
            /// For overhead of templates.
            runtime_classes: RuntimeClass,
            /// Storage asked for.
            persistent_volume_claims: PersistentVolumeClaim,
            /// Storage there is.
            persistent_volumes: PersistentVolume,
            /// How storage is made.
            storage_classes: StorageClass,
            /// Volume limits of nodes.
            csi_nodes: CSINode,
            /// Volumes on their way.
            volume_attachments: VolumeAttachment,
            /// Kinds of devices.
            device_classes: DeviceClass,
            /// Devices there are.
            resource_slices: ResourceSlice,
            /// Devices asked for.
            resource_claims: ResourceClaim,
            /// What device claims are made from.
            resource_claim_templates: ResourceClaimTemplate,
        }
    };
}
pub(crate) use tracked_kinds;

/// A kind that the state tracks. What is done with its objects is compiled here, once, and not by everybody who asks.
pub trait Tracked: Object {
    /// Which kind it is.
    const TRACKED: Kind;

    /// Its objects.
    fn store(state: &State) -> &Store<Self>;

    /// The object of a key.
    fn find<'s>(state: &'s State, key: &ObjectKey) -> Option<&'s Arc<Self>>;

    /// Takes in a version of an object.
    fn take_in(state: &mut State, object: Self) -> Option<Change>;

    /// Takes an object out.
    fn take_out(state: &mut State, last: &Self) -> Option<Change>;

    /// Begins a list.
    fn begin_list(state: &mut State);

    /// Ends a list.
    fn end_list(state: &mut State, named: &BTreeSet<ObjectKey>, version: &ResourceVersion) -> Vec<Change>;
}

macro_rules! state {
    ($($(#[$doc:meta])* $field:ident: $kind:ident,)*) => {
        /// Names a tracked kind.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind {
            $($(#[$doc])* $kind,)*
            /// Node classes of the providers.
            NodeClass,
        }

        /// Everything known of the cluster.
        #[derive(Debug, Default)]
        pub struct State {
            $($field: Store<model::object::$kind>,)*
            node_classes: Arc<BTreeMap<NodeClassReference, Arc<NodeClass>>>,
            are_node_classes_listed: bool,
            settings: Arc<Settings>,
            catalog: Arc<Catalog>,
            /// The numbers of settings and catalogue, once somebody has asked.
            digests: Option<(u64, u64)>,
            pub(crate) waits: Waits,
            pub(crate) machines: Machines,
            pub(crate) ledger: Ledger,
            pub(crate) marks: Marks,
            pub(crate) pod_timings: PodTimings,
        }

        $(impl Tracked for model::object::$kind {
            const TRACKED: Kind = Kind::$kind;

            fn store(state: &State) -> &Store<Self> {
                &state.$field
            }

            fn find<'s>(state: &'s State, key: &ObjectKey) -> Option<&'s Arc<Self>> {
                state.$field.get(key)
            }

            fn take_in(state: &mut State, object: Self) -> Option<Change> {
                state.$field.apply(object).map(Change::$kind)
            }

            fn take_out(state: &mut State, last: &Self) -> Option<Change> {
                state.$field.delete(last).map(Change::$kind)
            }

            fn begin_list(state: &mut State) {
                state.$field.begin_list();
            }

            fn end_list(state: &mut State, named: &BTreeSet<ObjectKey>, version: &ResourceVersion) -> Vec<Change> {
                let transitions = state.$field.end_list(named, version);
                transitions.into_iter().map(Change::$kind).collect()
            }
        })*

        impl State {
            /// Everything a decision needs, as of `now`.
            pub fn snapshot(&mut self, now: Timestamp) -> Snapshot {
                let objects = Objects {
                    $($field: self.$field.table(),)*
                    node_classes: Arc::clone(&self.node_classes),
                };
                let title = Title { name: "live".to_owned(), taken_at: now, origin: "watch".to_owned() };
                Snapshot::sharing(title, Arc::clone(&self.settings), objects, Arc::clone(&self.catalog))
            }

            /// What a decision would be made on now, as numbers. Costs the same whatever the cluster's size.
            pub fn inputs(&mut self) -> Inputs {
                let (settings, catalog) = *self
                    .digests
                    .get_or_insert_with(|| (of_settings(&self.settings), of_catalog(&self.catalog)));
                let classes = self.node_classes.values().map(|class| of_version(&class.metadata));
                let classes = classes.fold(0, u64::wrapping_add);
                let versions = vec![
                    $((model::object::$kind::KIND, self.$field.versions()),)*
                    ("NodeClass", classes),
                ];
                Inputs::of(settings, catalog, versions)
            }

            /// Lets go of what is only kept for news that is late. To be called about once a minute: what is gone is
            /// remembered for one to two of these intervals.
            pub fn tidy(&mut self, now: Timestamp) {
                $(self.$field.tidy();)*
                self.marks.tidy(now);
            }

            /// How many objects that are gone are still remembered.
            pub fn tombstones(&self) -> usize {
                0 $(+ self.$field.tombstones())*
            }

            /// Whether a kind has been listed in full.
            pub fn is_listed(&self, kind: Kind) -> bool {
                match kind {
                    $(Kind::$kind => self.$field.is_listed(),)*
                    Kind::NodeClass => self.are_node_classes_listed,
                }
            }
        }
    };
}
tracked_kinds!(state);

impl State {
    /// An empty cluster, to be decided on under these options.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings: Arc::new(settings),
            ..Self::default()
        }
    }

    /// Takes in a version of an object, from a watch or from the answer to our own write.
    pub fn apply<T: Tracked>(&mut self, object: T) -> Option<Change> {
        let change = T::take_in(self, object)?;
        self.follow(&change);
        Some(change)
    }

    /// Takes an object out; `last` is its last version.
    pub fn delete<T: Tracked>(&mut self, last: &T) -> Option<Change> {
        let change = T::take_out(self, last)?;
        self.follow(&change);
        Some(change)
    }

    /// Ends a list taken at a version: objects that it did not name are gone.
    pub fn end_list<T: Tracked>(&mut self, named: &BTreeSet<ObjectKey>, version: &ResourceVersion) -> Vec<Change> {
        self.waits.end(T::TRACKED);
        let changes = T::end_list(self, named, version);
        for change in &changes {
            self.follow(change);
        }
        changes
    }

    /// Keeps what is derived from objects in step with them.
    fn follow(&mut self, change: &Change) {
        match change {
            Change::Pod(pod) => self.follow_pod(pod),
            Change::Node(node) => self.follow_node(node),
            Change::NodeClaim(claim) => self.follow_claim(claim),
            Change::NodePool(pool) => self.follow_pool(pool),
            _ => {}
        }
    }

    /// The objects of a kind.
    pub fn all<T: Tracked>(&self) -> &Store<T> {
        T::store(self)
    }

    /// The object of a key.
    pub fn get<T: Tracked>(&self, key: &ObjectKey) -> Option<&Arc<T>> {
        T::find(self, key)
    }

    /// What the cloud offers, from now on.
    pub fn set_catalog(&mut self, catalog: Catalog) {
        self.catalog = Arc::new(catalog);
        self.digests = None;
    }

    /// What the cloud offers, to hold on to.
    pub fn shared_catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.catalog)
    }

    /// What the cloud offers.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Claims with a provider ID.
    pub fn claims_of_provider_id(&self, id: &str) -> impl Iterator<Item = &Arc<NodeClaim>> {
        self.node_claims.group(NodeClaim::BY_PROVIDER_ID, id)
    }

    /// Nodes of a pool.
    pub fn nodes_of_pool(&self, pool: &str) -> impl Iterator<Item = &Arc<Node>> {
        self.nodes.group(Node::BY_POOL, pool)
    }

    /// Claims of a pool.
    pub fn claims_of_pool(&self, pool: &str) -> impl Iterator<Item = &Arc<NodeClaim>> {
        self.node_claims.group(NodeClaim::BY_POOL, pool)
    }

    /// Claims made in one plan.
    pub fn claims_of_plan(&self, plan: &str) -> impl Iterator<Item = &Arc<NodeClaim>> {
        self.node_claims.group(NodeClaim::BY_PLAN, plan)
    }

    /// Nodes with a provider ID.
    pub fn nodes_of_provider_id(&self, id: &str) -> impl Iterator<Item = &Arc<Node>> {
        self.nodes.group(Node::BY_PROVIDER_ID, id)
    }

    /// Pods bound to a node.
    pub fn pods_on_node(&self, node: &str) -> impl Iterator<Item = &Arc<Pod>> {
        self.pods.group(Pod::BY_NODE, node)
    }

    /// Volumes attached, or about to be, to a node.
    pub fn attachments_of_node(&self, node: &str) -> impl Iterator<Item = &Arc<VolumeAttachment>> {
        self.volume_attachments.group(VolumeAttachment::BY_NODE, node)
    }

    /// A node class.
    pub fn node_class(&self, reference: &NodeClassReference) -> Option<&Arc<NodeClass>> {
        self.node_classes.get(reference)
    }

    /// All node classes.
    pub fn node_classes(&self) -> impl Iterator<Item = &Arc<NodeClass>> {
        self.node_classes.values()
    }

    /// Takes in a version of a node class.
    pub fn apply_node_class(&mut self, class: NodeClass) -> Option<Change> {
        let reference = class.reference();
        let known = self.node_classes.get(&reference).map(|known| &known.metadata);
        let order = known.and_then(|known| order(&class.metadata.resource_version, &known.resource_version));
        if order.is_some_and(|order| order != Ordering::Greater) {
            return None;
        }
        let after = Arc::new(class);
        let before = Arc::make_mut(&mut self.node_classes).insert(reference, Arc::clone(&after));
        let after = Some(after);
        Some(Change::NodeClass(Transition { before, after }))
    }

    /// Takes a node class out.
    pub fn delete_node_class(&mut self, reference: &NodeClassReference) -> Option<Change> {
        let before = Arc::make_mut(&mut self.node_classes).remove(reference);
        let after = None;
        before.map(|before| {
            Change::NodeClass(Transition {
                before: Some(before),
                after,
            })
        })
    }

    /// Ends a list of node classes of a kind: those it did not name are gone.
    pub fn end_node_class_list(
        &mut self,
        group: &str,
        kind: &str,
        named: &BTreeSet<NodeClassReference>,
    ) -> Vec<Change> {
        self.are_node_classes_listed = true;
        self.waits.end(Kind::NodeClass);
        let gone: Vec<_> = self
            .node_classes
            .keys()
            .filter(|known| *known.group == *group && *known.kind == *kind && !named.contains(*known))
            .cloned()
            .collect();
        gone.iter()
            .filter_map(|reference| self.delete_node_class(reference))
            .collect()
    }
}
