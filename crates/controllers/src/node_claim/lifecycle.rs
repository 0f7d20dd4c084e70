//! A claim from its creation to its end: launched, registered, initialised, given up when it takes too long, finalised.
//!
//! All four phases run in every pass, in this order, on a draft of the claim; what they changed is written at the end.
//! What a crash may leave half done is in [`Step`].

mod initialization;
mod launch;
mod liveness;
mod memory;
mod pass;
mod pool_health;
mod registration;
mod release;
mod steer;
mod step;
mod termination;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use model::object::{NodeClaim, NodeName, ObjectKey, ResourceSlice, Text};
use runtime::{Settings, queue::Backoff, rate::Rate};
use state::{Change, State, Transition};

pub use step::Step;

use self::{memory::Memory, pass::Pass, steer::Stages, step::Answer};
use super::{Managed, ownership};
use crate::{Cluster, Controller, Next, Problem, node_pool::RegistrationHealth};

/// `nodeclaim.lifecycle`
pub struct Lifecycle {
    managed: Managed,
    health: Arc<RegistrationHealth>,
    memory: Memory,
    stages: Stages,
    /// Held by the claim that writes its pool's health.
    judging: tokio::sync::Mutex<()>,
}

impl Lifecycle {
    /// For the claims that are ours. The health of pools is shared with `nodepool.registrationhealth`.
    pub fn new(managed: Managed, health: Arc<RegistrationHealth>) -> Self {
        Self {
            managed,
            health,
            memory: Memory::default(),
            stages: Stages::default(),
            judging: tokio::sync::Mutex::default(),
        }
    }

    /// Nothing is launched without our finalizer, nor before the attempt is on record: both outlive a crash.
    async fn prepare(&self, cluster: &Cluster, claim: Arc<NodeClaim>) -> Result<Answer, Problem> {
        match launch::prepared(&claim) {
            None => Ok(Answer::Claim(claim)),
            Some(after) => Step::AddFinalizer(claim, Box::new(after)).take(cluster).await,
        }
    }

    async fn advance(&self, cluster: &Cluster, claim: Arc<NodeClaim>) -> Result<Next, Problem> {
        let mut pass = Pass::new(claim, cluster.now());
        self.launch(cluster, &mut pass).await;
        self.register(cluster, &mut pass).await;
        self.initialize(cluster, &mut pass).await;
        self.check_liveness(cluster, &mut pass).await;
        pass.finish(cluster).await
    }
}

#[async_trait]
impl Controller for Lifecycle {
    type Key = Text;

    fn name(&self) -> &'static str {
        "nodeclaim.lifecycle"
    }

    fn workers(&self, settings: &Settings) -> usize {
        settings.workers(1000, 5000)
    }

    fn retries(&self, settings: &Settings) -> Option<Rate> {
        Some(settings.retries(10, (1000, 5000)))
    }

    fn backoff(&self) -> Backoff {
        Backoff {
            least: Duration::from_secs(1),
            most: Duration::from_mins(1),
        }
    }

    fn concerns(&self, change: &Change, state: &State) -> Vec<Text> {
        let own: Vec<Arc<NodeClaim>> = match change {
            Change::NodeClaim(claim) => claim.latest().cloned().into_iter().collect(),
            Change::Node(node) => ownership::claims_of_node(node, state),
            Change::ResourceSlice(slice) => claims_of_slice(slice, state),
            _ => return Vec::new(),
        };
        let mut names: Vec<Text> = own.iter().map(|claim| claim.metadata.name.clone()).collect();
        names.extend(release::woken(change, state));
        names
    }

    async fn reconcile(&self, cluster: &Cluster, name: &Text) -> Result<Next, Problem> {
        let Some(claim) = cluster.get::<NodeClaim>(&ObjectKey::cluster_scoped(name)) else {
            self.memory.forget(name);
            self.stages.forget(name);
            return Ok(Next::Change);
        };
        if !self.managed.claim(&claim) || self.memory.awaits_deletion(&claim) {
            return Ok(Next::Change);
        }
        if claim.metadata.is_deleting() {
            return self.finalize(cluster, claim).await;
        }
        match self.prepare(cluster, claim).await? {
            Answer::Claim(claim) => self.advance(cluster, claim).await,
            Answer::Conflict => Ok(Next::Again),
            _ => Ok(Next::Change),
        }
    }
}

/// A slice that is local to a node may be what the node's claim waits for.
fn claims_of_slice(slice: &Transition<ResourceSlice>, state: &State) -> Vec<Arc<NodeClaim>> {
    let Some(slice) = slice.latest() else { return Vec::new() };
    let owner = || {
        slice
            .metadata
            .owner_references
            .iter()
            .find(|owner| *owner.kind == *"Node")
    };
    let name = slice.spec.node_name.as_ref().map(NodeName::as_str);
    let Some(name) = name.or_else(|| owner().map(|owner| &*owner.name)) else {
        return Vec::new();
    };
    let node = state
        .get::<model::object::Node>(&ObjectKey::cluster_scoped(name))
        .cloned();
    let joined = Transition {
        before: None,
        after: node,
    };
    ownership::claims_of_node(&joined, state)
}
