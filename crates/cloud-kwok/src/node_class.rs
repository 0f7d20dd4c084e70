//! The node class of a claim, read anew for every launch that begins after the last read did.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use crate::provider::failed;
use api::{
    condition::{Condition, ConditionStatus, names::READY},
    kwok::KWOKNodeClass,
};
use cloud::CloudError;
use http::Method;
use model::object::{NodeClaim, ObjectKey};
use runtime::{Api, ApiError, Resource};
use tokio::sync::Mutex;

type Answer = Result<KWOKNodeClass, CloudError>;

/// Reads node classes. Launches that ask while one is being read wait for it and share the next: a burst of a hundred
/// launches costs two reads.
pub(crate) struct NodeClasses {
    api: Api,
    /// How many reads have begun.
    begun: AtomicU64,
    /// The last read of each class, and its number.
    read: Mutex<BTreeMap<String, (u64, Answer)>>,
}

impl NodeClasses {
    pub(crate) fn new(api: Api) -> Self {
        Self {
            api,
            begun: AtomicU64::new(0),
            read: Mutex::default(),
        }
    }

    /// The class a claim is to be launched from: there, and not known to be unready. Returns how long its nodes take to
    /// join.
    pub(crate) async fn registration_delay(&self, claim: &NodeClaim) -> Result<Duration, CloudError> {
        let reference = claim.spec.node_class_ref.as_ref().ok_or_else(|| {
            CloudError::Other(format!(
                "resolving node class from nodeclaim, NodeClaim {} has no spec.nodeClassRef",
                claim.metadata.name
            ))
        })?;
        let class = self.get(&reference.name).await?;
        let conditions = class.status.iter().flat_map(|status| &status.conditions);
        let ready = conditions.into_iter().find(|condition| condition.type_ == READY);
        if let Some(Condition { message, .. }) = ready.filter(|ready| ready.status == ConditionStatus::False) {
            return Err(CloudError::NodeClassNotReady(message.clone()));
        }
        let delay = class
            .spec
            .node_registration_delay
            .map_or(0, api::duration::Duration::as_nanos);
        Ok(Duration::from_nanos(u64::try_from(delay).unwrap_or(0)))
    }

    async fn get(&self, name: &str) -> Answer {
        let asked = self.begun.load(Ordering::SeqCst);
        let mut read = self.read.lock().await;
        if let Some((number, class)) = read.get(name)
            && *number > asked
        {
            return class.clone();
        }
        let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        let class = self.fetch(name).await;
        read.insert(name.to_owned(), (number, class.clone()));
        class
    }

    async fn fetch(&self, name: &str) -> Answer {
        let path = Resource::new("karpenter.kwok.sh/v1alpha1", "KWOKNodeClass").item(&ObjectKey::cluster_scoped(name));
        let answer = self.api.call(Method::GET, &path, None, "application/json").await;
        let bytes = answer.map_err(|error| missing(&error))?;
        serde_json::from_slice(&bytes)
            .map_err(|error| CloudError::Other(format!("reading KWOKNodeClass {name}, unreadable answer: {error}")))
    }
}

/// A class that is not there will not come back for this claim: it is given up, as if there were no capacity.
fn missing(error: &ApiError) -> CloudError {
    let message = format!("resolving node class from nodeclaim, {}", error.message);
    if error.is_not_found() {
        return CloudError::InsufficientCapacity {
            message,
            offerings: Vec::new(),
        };
    }
    failed("resolving node class from nodeclaim", error)
}
