//! A cluster as it changes: the kinds a node view needs are watched and folded into snapshots, so that the API server is not
//! asked for everything again and again.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::Method;
use model::{
    object::{
        CSINode, DaemonSet, Namespace, Node, NodeClaim, NodeOverlay, NodePool, PersistentVolume, PersistentVolumeClaim,
        Pod, PodDisruptionBudget, ReplicaSet, StorageClass, VolumeAttachment,
    },
    sharing::Sharing,
    snapshot::{Objects, Snapshot, Title},
};
use runtime::{
    Api, Resource,
    api::{Options, Whereabouts, connect_to},
    watch::{Belief, Observed, Watched, follow as watch},
};
use state::{Kind, State, Tracked};
use tokio::{task::JoinSet, time::Instant};
use tui::Event;

use super::reader::Publisher;
use crate::live::USER_AGENT;

/// How often the server is asked whether it is there.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// Of its time this thread makes pictures for one part in so many.
const REST: u32 = 19;

/// What the watches know.
#[derive(Default)]
struct Seen {
    state: Mutex<State>,
    is_changed: AtomicBool,
    /// Kinds that were not listed yet.
    unlisted: AtomicUsize,
}

/// Follows a cluster for a while, from a snapshot that was just read. Returns early when the server cannot be reached.
pub(super) async fn follow(
    place: &Whereabouts,
    first: &Snapshot,
    interval: Duration,
    span: Duration,
    publisher: &mut Publisher,
) -> anyhow::Result<()> {
    let (api, _) = connect_to(place, Options::new(USER_AGENT)).await?;
    let seen: Arc<Seen> = Arc::default();
    let mut tasks = JoinSet::new();
    everything(&mut tasks, &api, &seen);
    let end = Instant::now() + span;
    let mut asked = Instant::now();
    let mut pause = interval;
    while Instant::now() < end {
        tokio::time::sleep(pause).await;
        pause = interval;
        if asked.elapsed() >= HEARTBEAT {
            api.call(Method::GET, "/version", None, "application/json").await?;
            asked = Instant::now();
        }
        let is_whole = seen.unlisted.load(Ordering::Acquire) == 0;
        let is_new = is_whole && seen.is_changed.swap(false, Ordering::AcqRel);
        let is_heard = if is_new {
            let began = Instant::now();
            let now = api.server_time().unwrap_or_else(super::place::now);
            let is_heard = publisher.publish(snapshot(first, &seen, now));
            // A large cluster that never rests must not keep a processor busy.
            pause = interval.max(began.elapsed() * REST);
            is_heard
        } else {
            publisher.say(Event::Alive)
        };
        if !is_heard {
            return Ok(());
        }
    }
    Ok(())
}

fn everything(tasks: &mut JoinSet<()>, api: &Api, seen: &Arc<Seen>) {
    one::<NodePool>(tasks, api, seen);
    one::<NodeClaim>(tasks, api, seen);
    one::<Node>(tasks, api, seen);
    one::<Pod>(tasks, api, seen);
    one::<NodeOverlay>(tasks, api, seen);
    one::<DaemonSet>(tasks, api, seen);
    one::<ReplicaSet>(tasks, api, seen);
    one::<PodDisruptionBudget>(tasks, api, seen);
    one::<Namespace>(tasks, api, seen);
    one::<PersistentVolumeClaim>(tasks, api, seen);
    one::<PersistentVolume>(tasks, api, seen);
    one::<StorageClass>(tasks, api, seen);
    one::<CSINode>(tasks, api, seen);
    one::<VolumeAttachment>(tasks, api, seen);
}

fn one<T: Tracked + Send + Sync>(tasks: &mut JoinSet<()>, api: &Api, seen: &Arc<Seen>) {
    let mut pool = Sharing::default();
    let watched = Watched {
        resource: Resource::of::<T>(),
        read: Box::new(move |json: &[u8]| T::from_json(json, &mut pool)),
        key: |object: &T| object.metadata().key(),
    };
    seen.unlisted.fetch_add(1, Ordering::AcqRel);
    let (api, seen) = (api.clone(), Arc::clone(seen));
    tasks.spawn(async move {
        let mut is_settled = false;
        let mut settle = || {
            if !std::mem::replace(&mut is_settled, true) {
                seen.unlisted.fetch_sub(1, Ordering::AcqRel);
            }
        };
        let see = |observed: Observed<T>| {
            let mut state = seen.state.lock().unwrap_or_else(PoisonError::into_inner);
            match observed {
                Observed::Listing => {
                    state.begin_list::<T>(super::place::now());
                    return Belief::Taken;
                }
                Observed::Applied(object) => {
                    state.apply::<T>(object);
                }
                Observed::Deleted(object) => {
                    state.delete::<T>(&object);
                }
                Observed::Listed { named, version } => {
                    state.end_list::<T>(&named, &version);
                    settle();
                    if state.is_list_in_doubt::<T>() {
                        return Belief::Doubted;
                    }
                }
                // What is not installed or may not be listed stays as it was first read.
                Observed::Failed(error) => {
                    if error.is_missing_kind() || error.is_forbidden() {
                        settle();
                    }
                    return Belief::Taken;
                }
            }
            seen.is_changed.store(true, Ordering::Release);
            Belief::Taken
        };
        watch(&api, watched, see).await;
    });
}

/// The cluster now: what is watched as it is seen, the rest as it was first read.
fn snapshot(first: &Snapshot, seen: &Seen, now: jiff::Timestamp) -> Snapshot {
    let mut state = seen.state.lock().unwrap_or_else(PoisonError::into_inner);
    let latest = state.snapshot(now);
    let latest = latest.objects();
    let mut objects: Objects = first.objects().clone();
    macro_rules! take {
        ($($kind:ident: $field:ident,)*) => {
            $(if state.is_listed(Kind::$kind) {
                objects.$field = latest.$field.clone();
            })*
        };
    }
    take! {
        NodePool: node_pools,
        NodeClaim: node_claims,
        Node: nodes,
        Pod: pods,
        NodeOverlay: node_overlays,
        DaemonSet: daemon_sets,
        ReplicaSet: replica_sets,
        PodDisruptionBudget: pod_disruption_budgets,
        Namespace: namespaces,
        PersistentVolumeClaim: persistent_volume_claims,
        PersistentVolume: persistent_volumes,
        StorageClass: storage_classes,
        CSINode: csi_nodes,
        VolumeAttachment: volume_attachments,
    }
    let title = Title {
        taken_at: now,
        ..first.title().clone()
    };
    let catalog = Arc::clone(first.shared_catalog());
    Snapshot::sharing(title, first.settings().clone().into(), objects, catalog)
}
