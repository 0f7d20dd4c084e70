//! `nodeclaim.reboot`: carries out reboots that repair has asked for, from the fence to the node's return.
//!
//! Where a reboot stands is written on the claim: its `Rebooting` condition, the boot it is to end, and `Initialized`. Only
//! how long the cloud has been asked is remembered here, and begins anew after a restart.

mod decide;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use api::{
    annotations::{NODECLAIM_TERMINATION_TIMESTAMP, REBOOT_PRE_BOOT_ID},
    condition::{
        ConditionSet,
        names::nodeclaim::{
            INITIALIZED, REASON_REBOOTING, REBOOT_FAILED, REBOOT_ISSUED, REBOOT_SUCCEEDED, REBOOTING, TYPES,
        },
    },
    labels, taints,
};
use async_trait::async_trait;
use cloud::CloudError;
use jiff::Timestamp;
use model::object::{Labels, Node, NodeClaim, NodeClaimName, ObjectKey, ResourceVersion, Taint};
use runtime::{Delete, Event, EventKind, Settings, queue::Backoff};
use state::{Change, State, Transition};

use self::decide::{Failure, POLL, Seen, Step};
use super::Evictions;
use crate::{Cluster, Controller, Next, Problem, conditions, patch::Lock};

/// Longer than a reboot may take, so that each of its events is said once.
const QUIET: Duration = Duration::from_mins(30);
/// More steps than a reboot has.
const STEPS: usize = 16;

/// The controller.
pub struct Reboot {
    evictions: Arc<Evictions>,
    /// Since when the cloud is asked.
    calling: Mutex<BTreeMap<NodeClaimName, Timestamp>>,
}

impl Reboot {
    /// Draining through this queue.
    pub fn new(evictions: Arc<Evictions>) -> Self {
        Self {
            evictions,
            calling: Mutex::default(),
        }
    }

    /// Takes a step. None when the next one can follow at once.
    async fn act(&self, cluster: &Cluster, seen: &Seen, step: Step) -> Result<Option<Next>, Problem> {
        let claim = &*seen.claim;
        match (step, seen.node.as_deref()) {
            (Step::Nothing, _) => {
                self.calling().remove(&claim.name());
                return Ok(Some(Next::Change));
            }
            (Step::Wait(wait), _) => return Ok(Some(Next::After(wait))),
            (Step::Drain(plan, wait), _) => {
                self.evictions.add(&plan.enqueue, plan.order, cluster.now());
                return Ok(Some(Next::After(wait)));
            }
            (Step::Observed, _) => {
                cluster.publish(observed(seen));
                return Ok(Some(Next::After(POLL)));
            }
            (Step::Call, _) => return self.call(cluster, seen).await,
            (Step::Issue, _) => issue(cluster, claim).await?,
            (Step::Succeed, _) => return self.succeed(cluster, seen).await,
            (Step::Fail(failure), _) => return self.fail(cluster, seen, failure).await,
            (Step::Remember, Some(node)) => remember(cluster, claim, node).await?,
            (Step::Fence, Some(node)) => write(cluster, node, fenced(node)).await?,
            (Step::Unlabel, Some(node)) => write(cluster, node, uninitialized(node)).await?,
            (Step::Unfence, Some(node)) => {
                write(cluster, node, unfenced(node)).await?;
                cluster.publish(observed(seen));
            }
            (Step::Remember | Step::Fence | Step::Unlabel | Step::Unfence, None) => {}
        }
        Ok(None)
    }

    async fn call(&self, cluster: &Cluster, seen: &Seen) -> Result<Option<Next>, Problem> {
        self.calling().entry(seen.claim.name()).or_insert(cluster.now());
        let failure = match cluster.cloud().reboot(&seen.claim, &seen.operation_id()).await {
            Ok(()) => {
                issue(cluster, &seen.claim).await?;
                return Ok(None);
            }
            Err(CloudError::RebootNotImplemented) => "reboot not implemented by the cloud provider".to_owned(),
            Err(error @ (CloudError::RebootFailed(_) | CloudError::NotFound(_))) => {
                format!("reboot rejected by the cloud provider: {error}")
            }
            Err(error) => return Err(error.into()),
        };
        self.fail(cluster, seen, Failure::provider(failure)).await
    }

    async fn succeed(&self, cluster: &Cluster, seen: &Seen) -> Result<Option<Next>, Problem> {
        let recovered = seen
            .issued_at()
            .map(|at| cluster.now().duration_since(at).as_secs_f64());
        let message = "node rebooted and rejoined the cluster";
        self.end(cluster, seen, REBOOT_SUCCEEDED, message).await?;
        count(cluster, seen, "succeeded");
        if let Some(seconds) = recovered {
            cluster
                .metrics()
                .nodes_reboot_recovery_duration_seconds
                .observe([], seconds);
        }
        Ok(Some(Next::Change))
    }

    /// A reboot that failed ends in another node, within the bound it was asked with; a senseless request ends in nothing.
    async fn fail(&self, cluster: &Cluster, seen: &Seen, failure: Failure) -> Result<Option<Next>, Problem> {
        if let Some(node) = &seen.node {
            write(cluster, node, unfenced(node)).await?;
        }
        if failure.result == Failure::INVALID_REQUEST {
            self.end(cluster, seen, REBOOT_FAILED, &failure.message).await?;
        } else {
            let claim = tighten(cluster, seen).await?;
            let options = Delete {
                resource_version: Some(version(&claim)),
                ..Delete::default()
            };
            cluster.delete::<NodeClaim>(&claim.metadata.key(), &options).await?;
            self.calling().remove(&claim.name());
            let name = &claim.metadata.name;
            tracing::info!("NodeClaim.name" = %name, result = failure.result, "reboot failed, replacing node");
        }
        cluster.publish(event(seen, EventKind::Warning, "RebootFailed", failure.message));
        count(cluster, seen, failure.result);
        Ok(Some(Next::Change))
    }

    /// Forgets what belongs to this reboot, and says on the claim how it ended. The lock keeps it from being counted twice.
    async fn end(&self, cluster: &Cluster, seen: &Seen, reason: &str, message: &str) -> Result<(), Problem> {
        let claim = &*seen.claim;
        self.calling().remove(&claim.name());
        let mut after = claim.clone();
        let kept = claim
            .metadata
            .annotations
            .iter()
            .filter(|(key, _)| **key != *REBOOT_PRE_BOOT_ID);
        after.metadata.annotations = Labels::from_pairs(kept.cloned().collect());
        let written = cluster.update(claim, &after, Lock::Version).await?;
        let claim = written.as_ref().unwrap_or(claim);
        let after = changed(claim, cluster.now(), |set| {
            set.set_false(REBOOTING, reason, message);
        });
        cluster.update_status(claim, &after, Lock::Version).await?;
        tracing::info!("NodeClaim.name" = %claim.metadata.name, reason, "reboot reached terminal outcome");
        Ok(())
    }

    fn calling(&self) -> MutexGuard<'_, BTreeMap<NodeClaimName, Timestamp>> {
        self.calling.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Controller for Reboot {
    type Key = NodeClaimName;

    fn name(&self) -> &'static str {
        "nodeclaim.reboot"
    }

    fn workers(&self, _: &Settings) -> usize {
        10
    }

    fn backoff(&self) -> Backoff {
        Backoff {
            least: Duration::from_millis(100),
            most: Duration::from_mins(1),
        }
    }

    /// A claim with a reboot, its node when it comes back, and pods that have left it.
    fn concerns(&self, change: &Change, state: &State) -> Vec<NodeClaimName> {
        let claims = match change {
            Change::NodeClaim(claim) => claim.latest().into_iter().collect(),
            Change::Node(node) if is_back(node) => node.latest().map(|node| claims_of(state, node)).unwrap_or_default(),
            Change::Pod(pod) if pod.is_gone() => {
                let name = pod.latest().and_then(|pod| pod.node_name.as_ref());
                let node = name.and_then(|name| state.get::<Node>(&ObjectKey::cluster_scoped(name.as_str())));
                node.map(|node| claims_of(state, node)).unwrap_or_default()
            }
            _ => Vec::new(),
        };
        let has_reboot = |claim: &&Arc<NodeClaim>| claim.condition(REBOOTING).is_some();
        claims
            .into_iter()
            .filter(has_reboot)
            .map(|claim| claim.name())
            .collect()
    }

    async fn reconcile(&self, cluster: &Cluster, name: &NodeClaimName) -> Result<Next, Problem> {
        for _ in 0..STEPS {
            let Some(seen) = cluster.look(|state| observe(state, name))? else {
                self.calling().remove(name);
                return Ok(Next::Change);
            };
            let since = self.calling().get(name).copied();
            let step = decide::step(&seen, since, cluster.now());
            match self.act(cluster, &seen, step).await {
                Ok(Some(next)) => return Ok(next),
                Ok(None) => {}
                Err(Problem::Api(error)) if error.is_conflict() || error.is_not_found() => return Ok(Next::Again),
                Err(problem) => return Err(problem),
            }
        }
        Ok(Next::Again)
    }
}

fn claims_of<'a>(state: &'a State, node: &Node) -> Vec<&'a Arc<NodeClaim>> {
    let id = node.spec.provider_id.as_ref();
    id.into_iter()
        .flat_map(|id| state.claims_of_provider_id(id.as_str()))
        .collect()
}

fn observe(state: &State, name: &NodeClaimName) -> Result<Option<Seen>, Problem> {
    let Some(claim) = state.get::<NodeClaim>(&ObjectKey::cluster_scoped(name.as_str())) else {
        return Ok(None);
    };
    let id = claim.status.provider_id.as_ref();
    let mut nodes = id.into_iter().flat_map(|id| state.nodes_of_provider_id(id.as_str()));
    let node = nodes.next().cloned();
    if nodes.next().is_some() {
        return Err(Problem::Other(format!(
            "NodeClaim {name} is to be rebooted, but several Nodes have its provider ID; delete those that are not its own"
        )));
    }
    let pods = node.iter().flat_map(|node| state.pods_on_node(&node.metadata.name));
    Ok(Some(Seen {
        claim: Arc::clone(claim),
        pods: pods.cloned().collect(),
        node,
    }))
}

/// Whether a node came, went, booted or changed its readiness.
fn is_back(node: &Transition<Node>) -> bool {
    let facts = |node: &Option<Arc<Node>>| {
        let node = node.as_ref()?;
        let ready = node.condition("Ready").map(|ready| ready.status);
        Some((node.status.node_info.boot_id.clone(), ready))
    };
    facts(&node.before) != facts(&node.after)
}

/// The cloud has taken the reboot on. The message, which says what is being mended, stays.
async fn issue(cluster: &Cluster, claim: &NodeClaim) -> Result<(), Problem> {
    let message = claim
        .condition(REBOOTING)
        .map(|reboot| reboot.message.clone())
        .unwrap_or_default();
    let after = changed(claim, cluster.now(), |set| {
        set.set_true_with_reason(REBOOTING, REBOOT_ISSUED, &message);
        set.set_unknown_with_reason(INITIALIZED, REASON_REBOOTING, "node is rebooting");
    });
    cluster.update_status(claim, &after, Lock::Version).await?;
    Ok(())
}

/// Writes down which boot is to end, before the cloud is asked.
async fn remember(cluster: &Cluster, claim: &NodeClaim, node: &Node) -> Result<(), Problem> {
    let mut after = claim.clone();
    let mut annotations = claim.metadata.annotations.to_vec();
    annotations.push((REBOOT_PRE_BOOT_ID.into(), node.status.node_info.boot_id.clone()));
    after.metadata.annotations = Labels::from_pairs(annotations);
    cluster.update(claim, &after, Lock::None).await?;
    Ok(())
}

/// A deadline for the end of the node, if the reboot had a bound. One that is there and not later is kept.
async fn tighten(cluster: &Cluster, seen: &Seen) -> Result<NodeClaim, Problem> {
    let claim = &*seen.claim;
    let Ok(Some(bound)) = seen.bound() else {
        return Ok(claim.clone());
    };
    let deadline = cluster.now().saturating_add(bound).unwrap_or(Timestamp::MAX);
    let known = claim.metadata.annotations.get(NODECLAIM_TERMINATION_TIMESTAMP);
    if known
        .and_then(|known| known.parse().ok())
        .is_some_and(|known: Timestamp| known <= deadline)
    {
        return Ok(claim.clone());
    }
    let mut after = claim.clone();
    let mut annotations = claim.metadata.annotations.to_vec();
    let text = deadline.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    annotations.push((NODECLAIM_TERMINATION_TIMESTAMP.into(), text.into()));
    after.metadata.annotations = Labels::from_pairs(annotations);
    let written = cluster.update(claim, &after, Lock::Version).await?;
    Ok(written.unwrap_or(after))
}

/// Taints are a list, so the write insists on the version that was read; upstream's does not.
async fn write(cluster: &Cluster, node: &Node, after: Node) -> Result<(), Problem> {
    cluster.update(node, &after, Lock::Version).await?;
    Ok(())
}

fn fenced(node: &Node) -> Node {
    let fence = Taint {
        key: taints::REBOOTING.into(),
        effect: "NoSchedule".into(),
        ..Taint::default()
    };
    let mut after = node.clone();
    after.spec.taints = node.spec.taints.iter().cloned().chain([fence]).collect();
    after
}

fn unfenced(node: &Node) -> Node {
    let mut after = node.clone();
    let others = node.spec.taints.iter().filter(|taint| !decide::is_fence(taint));
    after.spec.taints = others.cloned().collect();
    after
}

fn uninitialized(node: &Node) -> Node {
    let mut after = node.clone();
    let others = node
        .metadata
        .labels
        .iter()
        .filter(|(key, _)| **key != *labels::INITIALIZED);
    after.metadata.labels = Labels::from_pairs(others.cloned().collect());
    after
}

fn version(claim: &NodeClaim) -> String {
    match &claim.metadata.resource_version {
        ResourceVersion::Number(number) => number.to_string(),
        ResourceVersion::Opaque(text) => text.to_string(),
    }
}

fn changed(claim: &NodeClaim, now: Timestamp, change: impl FnOnce(&mut ConditionSet<'_>)) -> NodeClaim {
    let mut after = claim.clone();
    conditions::change(TYPES, &claim.metadata, &mut after.status.conditions, now, change);
    after
}

fn observed(seen: &Seen) -> Event {
    let message = "New boot observed (bootID changed); awaiting node readiness".to_owned();
    event(seen, EventKind::Normal, "RebootObserved", message)
}

/// Said once for each reboot.
fn event(seen: &Seen, kind: EventKind, reason: &str, message: String) -> Event {
    let episode = seen.requested_at().map(|at| at.to_string()).unwrap_or_default();
    Event::new(&*seen.claim, kind, reason, message)
        .deduped_by(vec![seen.claim.metadata.uid.to_string(), episode])
        .quiet_for(QUIET)
}

fn count(cluster: &Cluster, seen: &Seen, result: &str) {
    let requested = seen.requested_at().unwrap_or(cluster.now());
    let seconds = cluster.now().duration_since(requested).as_secs_f64();
    cluster.metrics().nodes_reboots_total.inc([result]);
    cluster
        .metrics()
        .nodes_reboot_duration_seconds
        .observe([result], seconds);
}
