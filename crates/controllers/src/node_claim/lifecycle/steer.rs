//! What is done about the pods planned for a node before it opens: they are nominated, or bound by us.
//!
//! No node of a plan opens before the pods of all nodes that open with it were told: otherwise the first to open takes pods
//! that are meant for the others. All of this is best effort: a pod that cannot be told is left to kube-scheduler, and a
//! process that starts afresh knows of no pods and just opens the nodes.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use api::{annotations, condition::names::nodeclaim, taints};
use futures_util::{StreamExt, stream};
use jiff::Timestamp;
use model::object::{Node, NodeClaim, ObjectKey, Pod, Taint, Text, Uid, condition};
use runtime::{ApiError, Patch, settings::Steering};
use serde_json::json;
use state::{Change, State, Transition};

use super::{Lifecycle, Pass, Step, registration, step::Answer};
use crate::{
    Cluster, Problem,
    steering::{self, comes_last, has_joined, hint, pin},
};

/// How many pods are told at the same time.
const AT_ONCE: usize = 32;
/// How long whoever evicts pods from tainted nodes is given to notice that the taint which evicts is gone.
const SETTLING: Duration = Duration::from_secs(1);
/// The longest a node waits until the pods of the other nodes of its plan were told.
const PATIENCE: Duration = Duration::from_secs(3);

/// How far a node has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Its pods may be bound, and no others.
    Fenced(Timestamp),
    /// Its pods were told.
    Told(Timestamp),
}

/// By name of the claim, until that is gone: a node that has just opened must not look like one whose pods were not told.
#[derive(Debug, Default)]
pub(super) struct Stages {
    known: Mutex<BTreeMap<Text, (Uid, Stage)>>,
    /// We lack a right, and said so.
    is_forbidden: AtomicBool,
}

/// Whether the node may open.
#[derive(Debug)]
pub(super) enum Turn {
    /// This one, as it is now.
    Open(Arc<Node>),
    /// To be asked again by then at the latest.
    Wait(Duration),
    /// Somebody else changed the node.
    Again,
}

impl Stages {
    fn of(&self, claim: &NodeClaim) -> Option<Stage> {
        let known = self.lock();
        let (uid, stage) = known.get(&claim.metadata.name)?;
        (*uid == claim.metadata.uid).then_some(*stage)
    }

    fn set(&self, claim: &NodeClaim, stage: Stage) {
        let entry = (claim.metadata.uid.clone(), stage);
        self.lock().insert(claim.metadata.name.clone(), entry);
    }

    pub(super) fn forget(&self, name: &Text) {
        self.lock().remove(name);
    }

    /// Claims whose nodes open with this one and whose pods were not told yet.
    fn untold<'a>(&'a self, claim: &'a NodeClaim, state: &'a State) -> impl Iterator<Item = &'a Arc<NodeClaim>> {
        companions(claim, state).filter(move |other| !matches!(self.of(other), Some(Stage::Told(_))))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Text, (Uid, Stage)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Claims of the same plan whose nodes are there, closed, and to be opened no later than this one's.
fn companions<'a>(claim: &'a NodeClaim, state: &'a State) -> impl Iterator<Item = &'a Arc<NodeClaim>> {
    let plan = claim.metadata.annotations.get(annotations::PLAN);
    let others = plan.into_iter().flat_map(|plan| state.claims_of_plan(plan));
    others.filter(move |other| {
        let is_closed = !condition::holds(&other.status.conditions, nodeclaim::REGISTERED);
        other.metadata.name != claim.metadata.name
            && is_closed
            && !other.metadata.is_deleting()
            && (comes_last(claim) || !comes_last(other))
            && has_joined(other, state)
    })
}

/// The pods that are meant for a claim's node and have no place yet; with `hinted`, only those to be told.
fn planned(claim: &NodeClaim, state: &State, hinted: bool) -> Vec<Arc<Pod>> {
    let name = claim.name();
    let keys = state.pods_of_claim(&name).filter(|key| !hinted || state.is_hinted(key));
    let pods = keys.filter_map(|key| state.get::<Pod>(key));
    pods.filter(|pod| hint::is_waiting(pod)).cloned().collect()
}

/// Two taints: the one a node comes with evicts what we bind, so ours takes its place.
fn fenced(claim: &NodeClaim, node: &Node) -> Node {
    let mut after = registration::synced(claim, node);
    let kept = after.spec.taints.iter();
    let kept = kept.filter(|taint| !registration::is_unregistered(taint) && !pin::is_pinning(taint));
    let ours = Taint {
        key: taints::PINNING.into(),
        effect: "NoSchedule".into(),
        ..Taint::default()
    };
    after.spec.taints = kept.cloned().chain([ours]).collect();
    after
}

impl Lifecycle {
    /// Tells the pods of a node that may open now.
    pub(super) async fn steer(&self, cluster: &Cluster, pass: &Pass, node: Arc<Node>) -> Result<Turn, Problem> {
        let claim = &pass.draft;
        let steering = cluster.settings().steering;
        if steering < Steering::Nominate {
            return Ok(Turn::Open(node));
        }
        let mut bound = BTreeSet::new();
        match self.stages.of(claim) {
            Some(Stage::Told(since)) => return Ok(self.turn(cluster, claim, node, since, pass.now)),
            Some(Stage::Fenced(since)) => {
                let settled = since.saturating_add(SETTLING).unwrap_or(Timestamp::MAX);
                if pass.now < settled {
                    return Ok(Turn::Wait(until(settled, pass.now)));
                }
                bound = self.pin(cluster, claim, &node).await;
            }
            None if steering == Steering::Pin && self.is_worth_a_fence(cluster, claim) => {
                return self.fence(cluster, pass, node).await;
            }
            None => {}
        }
        self.nominate(cluster, claim, &node, &bound).await;
        self.stages.set(claim, Stage::Told(pass.now));
        Ok(self.turn(cluster, claim, node, pass.now, pass.now))
    }

    /// Whether everybody who opens with this node is ready to. The last one wakes the others.
    fn turn(&self, cluster: &Cluster, claim: &NodeClaim, node: Arc<Node>, since: Timestamp, now: Timestamp) -> Turn {
        let deadline = since.saturating_add(PATIENCE).unwrap_or(Timestamp::MAX);
        let is_alone = cluster.look(|state| self.stages.untold(claim, state).next().is_none());
        if !is_alone && now < deadline {
            return Turn::Wait(until(deadline, now));
        }
        if since == now {
            cluster.fold(|state| {
                let others: Vec<_> = companions(claim, state).map(woken).collect();
                others
            });
        }
        Turn::Open(node)
    }

    fn is_worth_a_fence(&self, cluster: &Cluster, claim: &NodeClaim) -> bool {
        let is_allowed = !self.stages.is_forbidden.load(Ordering::Relaxed);
        is_allowed && cluster.look(|state| !planned(claim, state, false).is_empty())
    }

    async fn fence(&self, cluster: &Cluster, pass: &Pass, node: Arc<Node>) -> Result<Turn, Problem> {
        let after = fenced(&pass.draft, &node);
        if matches!(
            Step::SyncNode(node, Box::new(after)).take(cluster).await?,
            Answer::Conflict
        ) {
            return Ok(Turn::Again);
        }
        self.stages.set(&pass.draft, Stage::Fenced(pass.now));
        Ok(Turn::Wait(SETTLING))
    }

    /// Binds the pods that nothing speaks against; returns those that are bound.
    async fn pin(&self, cluster: &Cluster, claim: &NodeClaim, node: &Node) -> BTreeSet<ObjectKey> {
        let planned = cluster.look(|state| planned(claim, state, false));
        let pods = pin::pinned(&cluster.snapshot(), node, &planned);
        let each = pods.into_iter().map(|pod| self.bind_one(cluster, pod, node));
        let bound: Vec<_> = stream::iter(each).buffer_unordered(AT_ONCE).collect().await;
        bound.into_iter().flatten().collect()
    }

    async fn bind_one(&self, cluster: &Cluster, pod: Arc<Pod>, node: &Node) -> Option<ObjectKey> {
        let key = pod.metadata.key();
        let result = cluster.api().bind(&key, pod.uid(), &node.metadata.name).await;
        self.count(cluster, "binding", &pod, &result);
        result.is_ok().then_some(key)
    }

    /// Nominates the pods that are to be told, but for those that are bound: of these the watch may not have told yet.
    async fn nominate(&self, cluster: &Cluster, claim: &NodeClaim, node: &Node, bound: &BTreeSet<ObjectKey>) {
        if self.stages.is_forbidden.load(Ordering::Relaxed) {
            return;
        }
        let mut pods = cluster.look(|state| planned(claim, state, true));
        pods.retain(|pod| !bound.contains(&pod.metadata.key()));
        let each = pods.into_iter().map(|pod| self.nominate_one(cluster, pod, node));
        stream::iter(each).buffer_unordered(AT_ONCE).collect::<()>().await;
    }

    async fn nominate_one(&self, cluster: &Cluster, pod: Arc<Pod>, node: &Node) {
        let metadata = json!({"uid": pod.uid().to_string()});
        let body = json!({"metadata": metadata, "status": {"nominatedNodeName": node.metadata.name}});
        let result = cluster
            .patch_status::<Pod>(&pod.metadata.key(), &Patch::Merge(body))
            .await;
        self.count(cluster, "nomination", &pod, &result);
    }

    /// Nothing that goes wrong here is worth more than a line: the pod is left to kube-scheduler.
    fn count<T>(&self, cluster: &Cluster, kind: &'static str, pod: &Pod, result: &Result<T, ApiError>) {
        let word = steering::word(result);
        cluster.metrics().steering_writes_total.inc([kind, word]);
        let Err(error) = result else { return };
        if error.is_forbidden() {
            if !self.stages.is_forbidden.swap(true, Ordering::Relaxed) {
                tracing::error!(error = %error, "not allowed to lead pods to their nodes, so kube-scheduler is left to itself; \
                    the role in deploy/rbac.yaml has the right, --steering=release does without it");
            }
        } else {
            let key: ObjectKey = pod.metadata.key();
            tracing::debug!(Pod = %key, error = %error, kind, "a pod is left to kube-scheduler");
        }
    }
}

fn woken(claim: &Arc<NodeClaim>) -> Change {
    let same = Some(Arc::clone(claim));
    Change::NodeClaim(Transition {
        before: same.clone(),
        after: same,
    })
}

fn until(then: Timestamp, now: Timestamp) -> Duration {
    then.duration_since(now).try_into().unwrap_or_default()
}
