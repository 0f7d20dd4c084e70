//! Which kinds are watched, and how they reach the state.
//!
//! A kind that no setting asks for is not watched: what is not read costs nothing. Nothing is decided before every
//! watched kind has been listed once, because half a cluster looks like an empty one.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use cloud::NodeClassKind;
use model::{
    object::{
        CSINode, CapacityBuffer, DaemonSet, Deployment, DeviceClass, Namespace, Node, NodeClaim, NodeClass,
        NodeClassReference, NodeOverlay, NodePool, ObjectKey, PersistentVolume, PersistentVolumeClaim, Pod,
        PodDisruptionBudget, PodTemplate, Read, ReplicaSet, ReplicationController, ResourceClaim,
        ResourceClaimTemplate, ResourceSlice, Service, StatefulSet, StorageClass, VolumeAttachment,
    },
    sharing::Sharing,
};
use runtime::{
    ApiError, Resource,
    standstill::inherited,
    watch::{Belief, Observed, Watched, follow},
};
use state::{Kind, State, Tracked};
use tokio::{sync::watch, task::JoinSet};

use crate::Cluster;

/// After so many objects a watch lets go of shared parts that nobody holds any more.
const RELEASE_EVERY: u32 = 20_000;

/// What has not been listed yet, and why.
pub type Waiting = BTreeMap<Kind, String>;

/// The running watches.
pub struct Watches {
    tasks: JoinSet<()>,
    waiting: watch::Receiver<Waiting>,
}

impl Watches {
    /// Starts to watch everything the settings ask for. To be called inside a runtime.
    pub fn start(cluster: &Arc<Cluster>) -> Self {
        let (tell, waiting) = watch::channel(Waiting::new());
        let mut starting = Starting {
            cluster: Arc::clone(cluster),
            tasks: JoinSet::new(),
            tell,
        };
        starting.everything();
        Self {
            tasks: starting.tasks,
            waiting,
        }
    }

    /// Returns once every kind has been listed. Says what it waits for every 30 seconds.
    pub async fn listed(&mut self) {
        let mut patience = tokio::time::interval(Duration::from_secs(30));
        patience.tick().await;
        while !self.waiting.borrow_and_update().is_empty() {
            tokio::select! {
                changed = self.waiting.changed() => if changed.is_err() { return },
                _ = patience.tick() => {
                    let waiting = format!("{:?}", *self.waiting.borrow());
                    tracing::error!(waiting, "waiting for the first list of every watched kind");
                }
            }
        }
    }

    /// What has not been listed yet, as it changes.
    pub fn waiting(&self) -> watch::Receiver<Waiting> {
        self.waiting.clone()
    }

    /// Ends when a watch ends, which none does.
    pub async fn ended(&mut self) {
        self.tasks.join_next().await;
    }
}

struct Starting {
    cluster: Arc<Cluster>,
    tasks: JoinSet<()>,
    tell: watch::Sender<Waiting>,
}

impl Starting {
    fn everything(&mut self) {
        self.always();
        let settings = self.cluster.settings().decisions.clone();
        if settings.feature_gates.node_overlay {
            self.one::<NodeOverlay>();
        }
        if settings.feature_gates.capacity_buffer {
            self.one::<CapacityBuffer>();
            self.one::<PodTemplate>();
            self.one::<Deployment>();
        }
        let reads_workloads = settings.feature_gates.capacity_buffer || !settings.default_constraints.is_empty();
        if reads_workloads || self.cluster.settings().looks_ahead() {
            self.one::<ReplicaSet>();
        }
        if reads_workloads {
            self.one::<StatefulSet>();
        }
        if !settings.default_constraints.is_empty() {
            self.one::<Service>();
            self.one::<ReplicationController>();
        }
        if !settings.ignore_dra_requests {
            self.one::<DeviceClass>();
            self.one::<ResourceSlice>();
            self.one::<ResourceClaim>();
            self.one::<ResourceClaimTemplate>();
        }
    }

    fn always(&mut self) {
        self.one::<NodePool>();
        self.one::<NodeClaim>();
        self.one::<Node>();
        self.one::<Pod>();
        self.one::<DaemonSet>();
        self.one::<PodDisruptionBudget>();
        self.one::<Namespace>();
        self.one::<PersistentVolumeClaim>();
        self.one::<PersistentVolume>();
        self.one::<StorageClass>();
        self.one::<CSINode>();
        self.one::<VolumeAttachment>();
        for kind in self.cluster.cloud().node_classes() {
            self.node_class(*kind);
        }
    }

    fn one<T: Tracked + Send + Sync>(&mut self) {
        let mut pool = Sharing::default();
        let mut read = 0;
        let watched = Watched {
            resource: Resource::of::<T>(),
            read: Box::new(move |json: &[u8]| {
                read += 1;
                if read % RELEASE_EVERY == 0 {
                    pool.release_unused();
                }
                T::from_json(json, &mut pool)
            }),
            key: |object: &T| object.metadata().key(),
        };
        let notes = self.notes(T::TRACKED, T::KIND);
        let cluster = Arc::clone(&self.cluster);
        self.tasks.spawn(inherited(async move {
            let api = cluster.api().clone();
            let see = |observed| {
                match observed {
                    Observed::Listing => cluster.note(|state| state.begin_list::<T>(cluster.now())),
                    Observed::Applied(object) => cluster.fold(|state| state.apply::<T>(object)),
                    Observed::Deleted(object) => cluster.fold(|state| state.delete::<T>(&object)),
                    Observed::Listed { named, version } => {
                        cluster.fold(|state| state.end_list::<T>(&named, &version));
                        notes.listed();
                        return belief::<T>(&cluster);
                    }
                    Observed::Failed(error) => notes.failed(&error),
                }
                Belief::Taken
            };
            follow(&api, watched, see).await;
        }));
    }

    fn node_class(&mut self, kind: NodeClassKind) {
        let NodeClassKind { group, version, kind } = kind;
        let api_version = format!("{group}/{version}");
        let watched = Watched {
            resource: Resource::new(&api_version, kind),
            read: Box::new(move |json: &[u8]| {
                let mut class = NodeClass::read(json)?;
                // Items of a list do not say what they are.
                (class.api_version, class.kind) = (api_version.as_str().into(), kind.into());
                Ok(class)
            }),
            key: |class: &NodeClass| class.metadata.key(),
        };
        let notes = self.notes(Kind::NodeClass, kind);
        let cluster = Arc::clone(&self.cluster);
        let reference = move |key: &ObjectKey| NodeClassReference {
            group: group.into(),
            kind: kind.into(),
            name: key.name.clone(),
        };
        self.tasks.spawn(inherited(async move {
            let api = cluster.api().clone();
            let see = |observed| {
                match observed {
                    Observed::Listing => {}
                    Observed::Applied(class) => cluster.fold(|state| state.apply_node_class(class)),
                    Observed::Deleted(class) => cluster.fold(|state| state.delete_node_class(&class.reference())),
                    Observed::Listed { named, .. } => {
                        let named = named.iter().map(reference).collect();
                        cluster.fold(|state| state.end_node_class_list(group, kind, &named));
                        notes.listed();
                    }
                    Observed::Failed(error) => notes.failed(&error),
                }
                Belief::Taken
            };
            follow(&api, watched, see).await;
        }));
    }

    /// Until it is listed, a kind is waited for.
    fn notes(&self, kind: Kind, name: &'static str) -> Notes {
        self.tell.send_modify(|waiting| {
            waiting.insert(kind, "not listed yet".to_owned());
        });
        Notes {
            kind,
            name,
            tell: self.tell.clone(),
        }
    }
}

/// What the state makes of the list it was just given.
fn belief<T: Tracked>(cluster: &Cluster) -> Belief {
    if !cluster.look(State::is_list_in_doubt::<T>) {
        return Belief::Taken;
    }
    tracing::error!(
        kind = T::KIND,
        "the API server listed what was before, as after a restore from a backup; it is asked once more and then believed"
    );
    Belief::Doubted
}

/// Who is told how a kind's watch fares.
struct Notes {
    kind: Kind,
    name: &'static str,
    tell: watch::Sender<Waiting>,
}

impl Notes {
    fn listed(&self) {
        self.tell
            .send_if_modified(|waiting| waiting.remove(&self.kind).is_some());
    }

    fn failed(&self, error: &ApiError) {
        tracing::error!(kind = self.name, error = %error, "watching");
        self.tell.send_if_modified(|waiting| {
            waiting
                .get_mut(&self.kind)
                .map(|reason| *reason = error.to_string())
                .is_some()
        });
    }
}
