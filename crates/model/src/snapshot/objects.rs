//! Which kinds a snapshot holds: the one list from which tables, reading and writing follow.

use std::{collections::BTreeMap, sync::Arc};

use serde::{
    Deserialize,
    de::{IgnoredAny, MapAccess, value::MapAccessDeserializer},
};
use serde_json::Value;

use super::Table;
use crate::{
    digest::of_version,
    object::{
        CSINode, CapacityBuffer, DaemonSet, Deployment, DeviceClass, Job, Metadata, Namespace, Node, NodeClaim,
        NodeClass, NodeClassReference, NodeOverlay, NodePool, Object, PersistentVolume, PersistentVolumeClaim, Pod,
        PodDisruptionBudget, PodTemplate, Read, ReplicaSet, ReplicationController, ResourceClaim,
        ResourceClaimTemplate, ResourceSlice, RuntimeClass, Service, StatefulSet, StorageClass, VolumeAttachment,
    },
    sharing::Sharing,
};

/// Node classes with every field they have: what a provider makes of them is nothing the core decides by.
pub(crate) type WrittenClasses = BTreeMap<NodeClassReference, Value>;

/// Reads one object's JSON into the draft.
pub(crate) type ReadInto = fn(&mut Draft, &TypeMeta<'_>, &str, &mut Sharing) -> serde_json::Result<()>;

/// What an object is, as it or its list says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TypeMeta<'a> {
    pub(crate) api_version: &'a str,
    pub(crate) kind: &'a str,
}

/// Takes each object of a snapshot in the file's order.
pub(crate) trait Visit {
    type Error;
    fn object<T: Object>(&mut self, object: &T) -> Result<(), Self::Error>;
    fn node_class(&mut self, class: &NodeClass) -> Result<(), Self::Error>;
}

macro_rules! readable {
    ($kind:ident) => {
        impl Read for $kind {
            fn read(json: &[u8]) -> serde_json::Result<Self> {
                serde_json::from_slice(json)
            }
        }
    };
}
readable!(NodeClass);
readable!(Job);

macro_rules! kinds {
    ($($(#[$doc:meta])* $field:ident: $kind:ident,)*) => {
        /// The tables of a snapshot, one per kind.
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct Objects {
            $($(#[$doc])* pub $field: Table<$kind>,)*
            /// Node classes of every provider; few, so an overlay copies the map.
            pub node_classes: Arc<BTreeMap<NodeClassReference, Arc<NodeClass>>>,
        }

        $(readable!($kind);)*

        /// Objects on their way into tables, in the order they were read.
        #[derive(Debug, Default)]
        pub(crate) struct Draft {
            $($field: Vec<Arc<$kind>>,)*
            node_classes: BTreeMap<NodeClassReference, Arc<NodeClass>>,
            /// The same as they are written.
            written_classes: WrittenClasses,
            /// What nobody has made the pods of.
            jobs: Vec<Job>,
        }

        impl Draft {
            /// How to read objects of a kind; none for kinds no decision reads.
            pub(crate) fn reader(what: TypeMeta<'_>) -> Option<ReadInto> {
                let TypeMeta { api_version, kind } = what;
                $(if (api_version, kind) == ($kind::API_VERSION, $kind::KIND) {
                    return Some(|draft, _, json, pool| {
                        draft.$field.push(Arc::new($kind::from_json(json.as_bytes(), pool)?));
                        Ok(())
                    });
                })*
                if is_job(what) {
                    return Some(Self::read_job);
                }
                kind.ends_with("NodeClass").then_some(Self::read_node_class as ReadInto)
            }

            /// Reads an object of which the fields that say what it is are read already; false for kinds no decision reads.
            pub(crate) fn take<'de, A: MapAccess<'de>>(
                &mut self,
                what: TypeMeta<'_>,
                mut fields: A,
                pool: &mut Sharing,
            ) -> Result<bool, A::Error> {
                let TypeMeta { api_version, kind } = what;
                $(if (api_version, kind) == ($kind::API_VERSION, $kind::KIND) {
                    let mut object = $kind::deserialize(MapAccessDeserializer::new(fields))?;
                    named(object.metadata())?;
                    object.share(pool);
                    pool.release_when_grown();
                    self.$field.push(Arc::new(object));
                    return Ok(true);
                })*
                if is_job(what) {
                    let job = Job::deserialize(MapAccessDeserializer::new(fields))?;
                    named(&job.metadata)?;
                    self.jobs.push(job);
                    return Ok(true);
                }
                if !kind.ends_with("NodeClass") {
                    while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                    return Ok(false);
                }
                let written = Value::deserialize(MapAccessDeserializer::new(fields))?;
                let class = NodeClass::deserialize(&written).map_err(serde::de::Error::custom)?;
                named(&class.metadata)?;
                self.add_class(class, written, what, pool);
                Ok(true)
            }

            /// Takes what was read after it.
            pub(crate) fn append(&mut self, mut later: Self) {
                $(self.$field.append(&mut later.$field);)*
                self.node_classes.append(&mut later.node_classes);
                self.written_classes.append(&mut later.written_classes);
                self.jobs.append(&mut later.jobs);
            }

            /// The tables, and what beside them is as it is written; of two objects with the same key the later one stays.
            pub(crate) fn finish(self) -> (Objects, WrittenClasses, Vec<Job>) {
                let objects = Objects {
                    $($field: Table::new(self.$field),)*
                    node_classes: Arc::new(self.node_classes),
                };
                (objects, self.written_classes, self.jobs)
            }
        }

        impl Objects {
            /// The kinds of all tables by apiVersion and kind. Node classes are of kinds that NodePools name.
            pub const KINDS: &'static [(&'static str, &'static str)] = &[$(($kind::API_VERSION, $kind::KIND),)*];

            /// Shows every object in the file's order: kind by kind, sorted by key.
            pub(crate) fn visit<V: Visit>(&self, visitor: &mut V) -> Result<(), V::Error> {
                $(for object in self.$field.iter() {
                    visitor.object(object.as_ref())?;
                })*
                for class in self.node_classes.values() {
                    visitor.node_class(class)?;
                }
                Ok(())
            }

            /// A number for the versions of each kind's objects, whatever their order.
            pub fn versions(&self) -> Vec<(&'static str, u64)> {
                let classes = self.node_classes.values().map(|class| of_version(&class.metadata));
                vec![
                    $(($kind::KIND, sum(self.$field.iter().map(|object| of_version(object.metadata())))),)*
                    ("NodeClass", sum(classes)),
                ]
            }

            /// How many objects there are of all kinds.
            pub fn len(&self) -> usize {
                0 $(+ self.$field.len())* + self.node_classes.len()
            }

            /// True when there is nothing.
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }
        }
    };
}

kinds! {
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

fn is_job(what: TypeMeta<'_>) -> bool {
    (what.api_version, what.kind) == (Job::API_VERSION, Job::KIND)
}

/// What has no name is nobody.
fn named<E: serde::de::Error>(metadata: &Metadata) -> Result<(), E> {
    if metadata.name.is_empty() {
        return Err(E::missing_field("metadata.name"));
    }
    Ok(())
}

fn sum(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::wrapping_add)
}

impl Draft {
    /// Items of a list need not say what they are, but a node class must remember it.
    fn read_node_class(&mut self, what: &TypeMeta<'_>, json: &str, pool: &mut Sharing) -> serde_json::Result<()> {
        let class = NodeClass::read(json.as_bytes())?;
        self.add_class(class, serde_json::from_str(json)?, *what, pool);
        Ok(())
    }

    fn read_job(&mut self, _: &TypeMeta<'_>, json: &str, _: &mut Sharing) -> serde_json::Result<()> {
        self.jobs.push(Job::read(json.as_bytes())?);
        Ok(())
    }

    fn add_class(&mut self, mut class: NodeClass, written: Value, what: TypeMeta<'_>, pool: &mut Sharing) {
        (class.api_version, class.kind) = (what.api_version.into(), what.kind.into());
        class.share(pool);
        self.written_classes.insert(class.reference(), written);
        self.node_classes.insert(class.reference(), Arc::new(class));
    }
}
