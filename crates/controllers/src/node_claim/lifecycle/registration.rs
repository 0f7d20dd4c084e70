//! Registering: the claim's node has come, gets what the claim wants, and is opened to pods.

use std::{sync::Arc, time::Duration};

use api::{condition::names::nodeclaim, finalizers, labels, taints};
use cloud::{HookResult, RegistrationHook};
use model::object::{ConditionStatus, List, Node, NodeClaim, Object, OwnerReference, Taint};
use runtime::{Event, EventKind};
use tokio::task::JoinSet;

use super::{Lifecycle, Pass, Step, initialization, pass, release, steer::Turn, step::Answer};
use crate::{
    Cluster, Next, Problem,
    node_claim::{ending::label, overlaid, ownership::Joined, with_pair},
    steering::{Release, pin::is_pinning},
};

/// A node that comes last waits for pods, of whose binding its claim does not hear: it looks again.
const ASK_AGAIN: Duration = Duration::from_millis(500);

/// Annotations of ours, which are about the claim and nothing of a node's.
const OUR_ANNOTATIONS: &str = "dovetail.dev/";

/// What is to be done about a registration.
#[derive(Debug, PartialEq)]
enum Decision {
    /// It is over.
    Settled,
    /// No node has come.
    NotFound,
    /// Two nodes say that they are the claim's machine.
    Several,
    /// This one has come.
    Register(Arc<Node>),
}

fn decide(claim: &NodeClaim, joined: Joined) -> Decision {
    let registered = claim.condition(nodeclaim::REGISTERED);
    if registered.is_some_and(|condition| condition.status != ConditionStatus::Unknown) {
        return Decision::Settled;
    }
    match joined {
        Joined::None => Decision::NotFound,
        Joined::Several => Decision::Several,
        Joined::One(node) => Decision::Register(node),
    }
}

pub(super) fn is_unregistered(taint: &Taint) -> bool {
    *taint.key == *taints::UNREGISTERED && *taint.effect == *"NoExecute"
}

/// Whether a taint of ours keeps pods off a node until it is released.
fn holds(taint: &Taint) -> bool {
    is_unregistered(taint) || is_pinning(taint)
}

/// Whether a node came without the taint that should keep pods off until it is registered.
fn lacks_taint(node: &Node) -> bool {
    node.metadata.labels.get(labels::REGISTERED).is_none() && !node.spec.taints.iter().any(holds)
}

/// The node with what the claim wants: finalizer, owner, taints, annotations and labels.
pub(super) fn synced(claim: &NodeClaim, node: &Node) -> Node {
    let mut after = node.clone();
    let metadata = &mut after.metadata;
    if !metadata
        .finalizers
        .iter()
        .any(|finalizer| **finalizer == *finalizers::TERMINATION)
    {
        metadata.finalizers = with(&metadata.finalizers, [finalizers::TERMINATION.into()]);
    }
    if !metadata.owner_references.iter().any(|owner| is_owner(owner, claim)) {
        metadata.owner_references = with(&metadata.owner_references, [owner(claim)]);
    }
    if metadata
        .labels
        .get(labels::DO_NOT_SYNC_TAINTS)
        .is_none_or(|value| **value != *"true")
    {
        after.spec.taints = with_taints(&after.spec.taints, &claim.spec.taints);
        after.spec.taints = with_taints(&after.spec.taints, &claim.spec.startup_taints);
    }
    let handed_on = claim
        .metadata
        .annotations
        .iter()
        .filter(|(key, _)| !key.starts_with(OUR_ANNOTATIONS));
    metadata.annotations = overlaid(&metadata.annotations, &handed_on.cloned().collect());
    metadata.labels = overlaid(&metadata.labels, &claim.metadata.labels);
    after
}

/// The node as pods may use it.
fn released(mut node: Node) -> Node {
    if node.spec.taints.iter().any(holds) {
        let kept = node.spec.taints.iter().filter(|taint| !holds(taint));
        node.spec.taints = kept.cloned().collect();
    }
    labelled(node, labels::REGISTERED)
}

/// The node with a label set to `true`.
pub(super) fn labelled(mut node: Node, key: &str) -> Node {
    node.metadata.labels = with_pair(&node.metadata.labels, key, "true");
    node
}

fn with<T: Clone>(list: &List<T>, more: impl IntoIterator<Item = T>) -> List<T> {
    list.iter().cloned().chain(more).collect()
}

/// Adds the taints that the node has not got by key and effect.
fn with_taints(have: &List<Taint>, want: &List<Taint>) -> List<Taint> {
    let missing = want
        .iter()
        .filter(|taint| !have.iter().any(|other| other.view().matches(taint.view())));
    let missing: Vec<Taint> = missing.cloned().collect();
    if missing.is_empty() {
        have.clone()
    } else {
        with(have, missing)
    }
}

fn is_owner(owner: &OwnerReference, claim: &NodeClaim) -> bool {
    *owner.api_version == *NodeClaim::API_VERSION && *owner.kind == *NodeClaim::KIND && owner.uid == claim.metadata.uid
}

fn owner(claim: &NodeClaim) -> OwnerReference {
    OwnerReference {
        api_version: NodeClaim::API_VERSION.into(),
        kind: NodeClaim::KIND.into(),
        name: claim.metadata.name.clone(),
        uid: claim.metadata.uid.clone(),
        controller: None,
        block_owner_deletion: Some(true),
    }
}

impl Lifecycle {
    pub(super) async fn register(&self, cluster: &Cluster, pass: &mut Pass) {
        if pass.is_over() {
            return;
        }
        let joined = cluster.look(|state| Joined::of(&pass.draft, state));
        match decide(&pass.draft, joined) {
            Decision::Settled => pass::restamp(&mut pass.draft, nodeclaim::REGISTERED, pass.now),
            Decision::NotFound => pass.set(|set| {
                let message = "Node not registered with cluster";
                set.set_unknown_with_reason(nodeclaim::REGISTERED, nodeclaim::NODE_NOT_FOUND, message);
            }),
            Decision::Several => pass.set(|set| {
                let message = "Invariant violated, matched multiple nodes";
                set.set_false(nodeclaim::REGISTERED, nodeclaim::MULTIPLE_NODES_FOUND, message);
            }),
            Decision::Register(node) => self.register_node(cluster, pass, node).await,
        }
    }

    async fn register_node(&self, cluster: &Cluster, pass: &mut Pass, node: Arc<Node>) {
        if lacks_taint(&node) {
            warn_of_missing_taint(cluster, &pass.draft);
        }
        let hooks = Hooks::ask(cluster, &pass.draft).await;
        if !hooks.pending.is_empty() {
            let after = synced(&pass.draft, &node);
            return hooks.hold(cluster, pass, node, after).await;
        }
        match cluster.look(|state| release::may_release(&pass.draft, &node, state, pass.now)) {
            Release::Now => self.open(cluster, pass, node).await,
            Release::Held { reason, until } => {
                tracing::debug!("NodeClaim.name" = %pass.draft.metadata.name, reason, %until, "awaiting release");
                let left: Duration = until.duration_since(pass.now).try_into().unwrap_or_default();
                pass.after(left.min(ASK_AGAIN));
            }
        }
    }

    /// Tells the pods that are meant for the node, and releases it.
    async fn open(&self, cluster: &Cluster, pass: &mut Pass, node: Arc<Node>) {
        match self.steer(cluster, pass, node).await {
            Ok(Turn::Open(node)) => self.release(cluster, pass, node).await,
            Ok(Turn::Wait(time)) => pass.after(time),
            Ok(Turn::Again) => pass.again(),
            Err(problem) => pass.fail(Problem::Other(format!("patching node, {problem}"))),
        }
    }

    /// One patch makes the node registered, and initialised too if nothing else is missing.
    async fn release(&self, cluster: &Cluster, pass: &mut Pass, node: Arc<Node>) {
        let mut after = released(synced(&pass.draft, &node));
        if initialization::blocked(cluster, &pass.draft, &after).is_none() {
            after = labelled(after, labels::INITIALIZED);
        }
        let name = after.name();
        match Step::SyncNode(node, Box::new(after)).take(cluster).await {
            Ok(Answer::Done) => {}
            Ok(Answer::Conflict) => return pass.again(),
            Ok(_) => return pass.fail(Problem::Other(format!("patching node, node {name} is gone"))),
            Err(problem) => return pass.fail(Problem::Other(format!("patching node, {problem}"))),
        }
        let claim = &mut pass.draft;
        tracing::info!("NodeClaim.name" = %claim.metadata.name, "Node.name" = %name, "registered nodeclaim");
        claim.status.node_name = Some(name);
        let labels = [label(claim, labels::NODEPOOL), label(claim, labels::ZONE)];
        cluster.metrics().nodes_created_total.inc(labels);
        pass.set(|set| {
            set.set_true(nodeclaim::REGISTERED);
        });
        match self.record_health(cluster, &pass.draft, true).await {
            Ok(next) => pass.next(next),
            Err(problem) => pass.fail(problem),
        }
    }
}

fn warn_of_missing_taint(cluster: &Cluster, claim: &NodeClaim) {
    tracing::error!(
        "NodeClaim.name" = %claim.metadata.name,
        taint = taints::UNREGISTERED,
        error = "missing taint prevents registration-related race conditions on Karpenter-managed nodes",
        "node claim registration error"
    );
    let message = format!(
        "Missing {} taint which prevents registration related race conditions on Karpenter-managed nodes",
        taints::UNREGISTERED
    );
    cluster.publish(Event::new(
        claim,
        EventKind::Warning,
        "UnregisteredTaintMissing",
        message,
    ));
}

/// What the cloud's hooks say, in the order of the hooks.
struct Hooks {
    pending: Vec<String>,
    next: Next,
    problems: Vec<Problem>,
}

impl Hooks {
    async fn ask(cluster: &Cluster, claim: &NodeClaim) -> Self {
        let mut running = JoinSet::new();
        for (at, hook) in cluster.cloud().registration_hooks().iter().enumerate() {
            let (hook, claim): (Arc<dyn RegistrationHook>, _) = (Arc::clone(hook), claim.clone());
            running.spawn(async move { (at, hook.name().to_owned(), hook.registered(&claim).await) });
        }
        let mut answers = running.join_all().await;
        answers.sort_by_key(|(at, ..)| *at);
        let mut hooks = Self {
            pending: Vec::new(),
            next: Next::Change,
            problems: Vec::new(),
        };
        for (_, name, answer) in answers {
            match answer {
                Ok(HookResult::Done) => continue,
                Ok(HookResult::Pending(delay)) => {
                    hooks.next = delay.map_or(hooks.next, |delay| hooks.next.or_sooner(Next::After(delay)));
                }
                Err(error) => {
                    let problem = format!("registration hook \"{name}\" failed, {error}");
                    hooks.problems.push(Problem::Other(problem));
                }
            }
            hooks.pending.push(name);
        }
        hooks
    }

    /// The node gets what the claim wants, and stays closed.
    async fn hold(self, cluster: &Cluster, pass: &mut Pass, node: Arc<Node>, after: Node) {
        tracing::debug!("NodeClaim.name" = %pass.draft.metadata.name, hooks = ?self.pending, "awaiting registration hooks");
        let names = self.pending.join(", ");
        pass.set(|set| {
            set.set_unknown_with_reason(nodeclaim::REGISTERED, nodeclaim::REGISTRATION_HOOK_PENDING, &names);
        });
        match Step::SyncNode(node, Box::new(after)).take(cluster).await {
            Ok(Answer::Conflict) => return pass.again(),
            Ok(_) => {}
            Err(problem) => return pass.fail(Problem::Other(format!("patching node, {problem}"))),
        }
        pass.next(self.next);
        for problem in self.problems {
            pass.fail(problem);
        }
    }
}

#[cfg(test)]
mod tests;
