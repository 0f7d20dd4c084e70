//! The provider itself: what it does when it is asked.

use std::{sync::Arc, time::Duration};

use api::{condition::names::nodeclaim, labels::HOSTNAME};
use async_trait::async_trait;
use cloud::{CloudError, CloudProvider, Instance, LaunchToken, Launched, NodeClassKind, RepairAction, RepairPolicy};
use http::Method;
use jiff::Timestamp;
use model::{
    object::{ConditionStatus, Node, NodeClaim, NodePool, ObjectKey, ProviderId},
    snapshot::CatalogType,
};
use runtime::{Api, ApiError, Clock, Delete, Patch, Resource};
use serde::Deserialize;
use serde_json::json;

use crate::{
    Offers,
    choice::choose,
    machine::{Machine, PROVIDER_PREFIX, instance_of_node, node_name},
    node_class::NodeClasses,
    registration::{Recalled, Registrations},
};

const NODE_CLASSES: &[NodeClassKind] = &[NodeClassKind {
    group: "karpenter.kwok.sh",
    version: "v1alpha1",
    kind: "KWOKNodeClass",
}];

/// A condition that tests put on a node to have it replaced.
const UNHEALTHY: &str = "KWOKUnhealthy";
/// A condition that tests put on a node to have it rebooted.
const REBOOT_REQUIRED: &str = "KWOKRebootRequired";

/// What the API server answers to a Node that a policy or its own rules refuse.
const REFUSED: u16 = 422;

/// The simulated cloud.
pub struct Kwok {
    api: Api,
    clock: Clock,
    offers: Offers,
    classes: NodeClasses,
    registrations: Registrations,
}

impl Kwok {
    /// A cloud that offers these types and makes its machines through this API server.
    pub fn new(api: Api, clock: Clock, offers: Offers) -> Self {
        Self {
            classes: NodeClasses::new(api.clone()),
            registrations: Registrations::new(api.clone(), clock.clone()),
            api,
            clock,
            offers,
        }
    }

    fn machine(&self, claim: &NodeClaim, node_name: &str) -> Result<Machine, CloudError> {
        let choice = choose(claim, &self.offers).map_err(|none| {
            let message = format!("translating nodeclaim to node, {none}");
            match none {
                crate::choice::NoChoice::NothingFits(_) => CloudError::InsufficientCapacity {
                    message,
                    offerings: Vec::new(),
                },
                _ => CloudError::Other(message),
            }
        })?;
        Ok(Machine::of_claim(claim, node_name, &choice))
    }

    async fn node(&self, name: &str) -> Result<Option<Node>, ApiError> {
        match self.api.get::<Node>(&ObjectKey::cluster_scoped(name)).await {
            Ok(node) => Ok(Some(node)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The names of the nodes that a claim has, be it recorded on the claim or not.
    async fn node_names(&self, claim: &NodeClaim) -> Result<Vec<String>, CloudError> {
        let recorded = claim.status.provider_id.as_ref();
        if let Some(name) = recorded.and_then(|id| id.as_str().strip_prefix(PROVIDER_PREFIX)) {
            return Ok(vec![name.to_owned()]);
        }
        let mut names = self.registrations.of_claim(&claim.metadata.uid);
        let selector = format!("{HOSTNAME}%3D{}", claim.metadata.name);
        let nodes = self.nodes(&selector).await?;
        let of_claim = nodes.iter().filter(|node| is_machine_of(node, claim));
        names.extend(of_claim.map(|node| node.metadata.name.to_string()));
        Ok(names)
    }

    /// Deletes a machine; true once it is gone.
    ///
    /// Upstream's provider deletes the NodeClaim *object* and says that the instance is gone, whatever the Node does. Here
    /// the Node object is the machine: the first call deletes it, and it counts as gone as soon as its deletion has begun,
    /// because the Node waits for our own termination finalizer, which waits for this answer.
    async fn remove(&self, node_name: &str, claim: &NodeClaim) -> Result<bool, CloudError> {
        match self.registrations.recall(node_name) {
            Recalled::Gone => return Ok(true),
            Recalled::Leaving => return Ok(false),
            Recalled::Unknown => {}
        }
        let failed = |error: ApiError| failed("deleting node", &error);
        let Some(node) = self.node(node_name).await.map_err(failed)? else {
            return Ok(true);
        };
        if node.metadata.is_deleting() || !is_machine_of(&node, claim) {
            return Ok(true);
        }
        let only_this = Delete {
            uid: Some(node.metadata.uid.clone()),
            ..Delete::default()
        };
        match self.api.delete::<Node>(&node.metadata.key(), &only_this).await {
            Err(error) if !error.is_not_found() => Err(failed(error)),
            _ => Ok(false),
        }
    }

    /// All nodes that a label selector, already encoded for a URL, selects. An answer that cannot be read is a failure: it
    /// must not pass for a cloud without machines.
    async fn nodes(&self, selector: &str) -> Result<Vec<Node>, CloudError> {
        let path = Resource::of::<Node>().collection("");
        let (mut nodes, mut from) = (Vec::new(), String::new());
        loop {
            let query = format!("{path}?limit={PAGE}&labelSelector={selector}&continue={from}");
            let answer = self.api.call(Method::GET, &query, None, "application/json").await;
            let bytes = answer.map_err(|error| failed("listing nodes", &error))?;
            let page: Page = serde_json::from_slice(&bytes)
                .map_err(|error| CloudError::Other(format!("listing nodes, unreadable answer: {error}")))?;
            nodes.extend(page.items);
            from = page.metadata.r#continue;
            if from.is_empty() {
                return Ok(nodes);
            }
        }
    }

    /// When a machine that was launched now, or for a claim that an earlier process worked on, is due to join. The
    /// creation of a claim is known to the second only.
    fn due(&self, claim: &NodeClaim, delay: Duration) -> Timestamp {
        let after = |start: Timestamp| start.saturating_add(delay).unwrap_or(Timestamp::MAX);
        let from_now = after(self.clock.now());
        let launched = claim
            .condition(nodeclaim::LAUNCHED)
            .and_then(|it| it.last_transition_time);
        let begun = launched.or(claim.metadata.creation_timestamp);
        let next_second = begun.and_then(|begun| begun.checked_add(Duration::from_secs(1)).ok());
        next_second.map_or(from_now, |begun| after(begun).min(from_now))
    }
}

impl Drop for Kwok {
    fn drop(&mut self) {
        self.registrations.stop();
    }
}

/// Nodes to a page.
const PAGE: usize = 500;

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    metadata: PageMetadata,
    items: Vec<Node>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct PageMetadata {
    r#continue: String,
}

/// What an error of the API server means to whoever asked the cloud.
pub(crate) fn failed(doing: &str, error: &ApiError) -> CloudError {
    let message = format!("{doing}, {error}");
    if error.is_not_found() {
        CloudError::NotFound(message)
    } else if error.is_too_many_requests() {
        let retry_after = error.retry_after_seconds.map(Duration::from_secs);
        CloudError::Throttled { message, retry_after }
    } else {
        CloudError::Other(message)
    }
}

#[async_trait]
impl CloudProvider for Kwok {
    fn name(&self) -> &'static str {
        "kwok"
    }

    fn node_classes(&self) -> &'static [NodeClassKind] {
        NODE_CLASSES
    }

    async fn create(&self, claim: &NodeClaim, token: &LaunchToken) -> Result<Launched, CloudError> {
        let machine = self.machine(claim, &node_name(claim, token))?;
        let delay = self.classes.registration_delay(claim).await?;
        let launched = machine.launched.clone();
        let due = self.due(claim, delay);
        if due > self.clock.now() {
            self.registrations.join_at(machine, due);
            return Ok(launched);
        }
        match self.registrations.join(&machine).await {
            // The machine runs, but the cluster does not let it in: that is for the time limit of registration to end.
            Err(error) if error.code == Some(REFUSED) => self.registrations.join_at(machine, due),
            joined => joined.map_err(|error| failed("creating node from nodeclaim", &error))?,
        }
        Ok(launched)
    }

    /// Machines that were launched and had not joined when the earlier process ended: they were only known to it.
    async fn resume(&self, claims: &[Arc<NodeClaim>]) -> Result<(), CloudError> {
        for claim in claims.iter().filter(|claim| is_joining(claim)) {
            let id = claim.status.provider_id.as_ref();
            let Some(name) = id.and_then(|id| id.as_str().strip_prefix(PROVIDER_PREFIX)) else {
                continue;
            };
            let delay = self.classes.registration_delay(claim).await.unwrap_or_default();
            match self.machine(claim, name) {
                Ok(machine) => self.registrations.join_at(machine, self.due(claim, delay)),
                Err(error) => {
                    tracing::error!("NodeClaim.name" = %claim.metadata.name, error = %error, "failed resuming nodeclaim");
                }
            }
        }
        Ok(())
    }

    async fn delete(&self, claim: &NodeClaim) -> Result<(), CloudError> {
        let mut is_gone = true;
        for name in self.node_names(claim).await? {
            is_gone &= self.remove(&name, claim).await?;
        }
        if is_gone {
            return Err(CloudError::NotFound("instance terminated".to_owned()));
        }
        Ok(())
    }

    async fn get(&self, id: &ProviderId) -> Result<Instance, CloudError> {
        let waiting = self.registrations.all();
        if let Some((machine, at)) = waiting.iter().find(|(it, _)| *it.launched.provider_id == *id.as_str()) {
            return Ok(machine.instance(Some(*at)));
        }
        let name = id.as_str().strip_prefix(PROVIDER_PREFIX).unwrap_or(id.as_str());
        let node = self.node(name).await.map_err(|error| failed("finding node", &error))?;
        let instance = node.as_ref().and_then(instance_of_node);
        instance
            .filter(|instance| !instance.is_terminating)
            .ok_or_else(|| CloudError::NotFound(format!("finding node, no node {name} is there and staying")))
    }

    async fn list(&self) -> Result<Vec<Instance>, CloudError> {
        let waiting = self.registrations.all();
        let nodes = self.nodes("").await?;
        let mut instances: Vec<Instance> = nodes.iter().filter_map(instance_of_node).collect();
        for (machine, at) in waiting {
            if !instances
                .iter()
                .any(|known| *known.provider_id.as_str() == *machine.launched.provider_id)
            {
                instances.push(machine.instance(Some(at)));
            }
        }
        instances.sort_by(|one, other| one.provider_id.cmp(&other.provider_id));
        Ok(instances)
    }

    async fn instance_types(&self, _: &NodePool) -> Result<Vec<Arc<CatalogType>>, CloudError> {
        Ok(self.offers.types().to_vec())
    }

    async fn is_drifted(&self, _: &NodeClaim) -> Result<Option<String>, CloudError> {
        Ok(None)
    }

    /// There is nothing to restart: the node gets a new boot ID, which is what a reboot shows. It derives from the
    /// operation, so asking again changes nothing.
    async fn reboot(&self, claim: &NodeClaim, operation_id: &str) -> Result<(), CloudError> {
        let name = claim.status.node_name.as_ref().ok_or_else(|| {
            CloudError::Other(format!(
                "rebooting nodeclaim, node is not registered (NodeClaim={})",
                claim.metadata.name
            ))
        })?;
        let patch = Patch::Merge(json!({"status": {"nodeInfo": {"bootID": format!("kwok-{operation_id}")}}}));
        let key = ObjectKey::cluster_scoped(name.as_str());
        let patched = self.api.patch::<Node>(&key, Some("status"), &patch).await;
        patched.map(drop).map_err(|error| failed("rebooting node", &error))
    }

    fn repair_policies(&self) -> Vec<RepairPolicy> {
        let (any, minute) = (".*", Duration::from_mins(1));
        let policy = |condition_type, condition_status, reason_regex, toleration, bound, action| RepairPolicy {
            condition_type,
            condition_status,
            reason_regex,
            toleration,
            termination_grace_period: Some(bound),
            priority: 0,
            action,
        };
        let (yes, half, replace) = (ConditionStatus::True, minute / 2, RepairAction::ReplaceNode);
        let at_once = Duration::ZERO;
        vec![
            policy("Ready", ConditionStatus::False, "", 10 * minute, at_once, replace),
            policy("Ready", ConditionStatus::Unknown, any, 10 * minute, at_once, replace),
            policy(UNHEALTHY, yes, any, half, Duration::from_secs(45), replace),
            policy(REBOOT_REQUIRED, yes, any, half, minute, RepairAction::RebootNode),
        ]
    }

    fn well_known_labels(&self) -> Vec<String> {
        self.offers.well_known_labels()
    }
}

/// Whether a node is a machine of this cloud that was launched for the claim. A name may have been used before by another
/// claim; nodes that upstream's provider made and that never registered say no more than the name.
fn is_machine_of(node: &Node, claim: &NodeClaim) -> bool {
    let is_own = |instance: Instance| match (&instance.claim_uid, &instance.claim) {
        (Some(uid), _) => *uid == claim.metadata.uid,
        (None, Some(name)) => *name == claim.name(),
        (None, None) => false,
    };
    instance_of_node(node).is_some_and(is_own)
}

/// Launched, not registered, and wanted.
fn is_joining(claim: &NodeClaim) -> bool {
    let holds = |kind| {
        let condition = claim.condition(kind);
        condition.is_some_and(|condition| condition.status == ConditionStatus::True)
    };
    holds(nodeclaim::LAUNCHED) && !holds(nodeclaim::REGISTERED) && !claim.metadata.is_deleting()
}
