//! The API server, asked with our own patience: every call has a deadline, and only what may be repeated is.

mod connect;
mod error;
mod observe;
mod pages;
mod resource;
mod server_time;
mod target;
mod transport;

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use http::Method;
use jiff::Timestamp;
use kube_client::client::Body;
use model::object::{Object, ObjectKey, Uid};
use serde_json::{Value, json};

use crate::{random::Random, rate::Rate};

pub use connect::{ConnectError, Whereabouts, certificate_authority, connect, connect_to};
pub use error::ApiError;
pub(crate) use error::with_causes;
pub(crate) use observe::Counter;
pub use observe::{Counts, Observation, Observer};
pub use resource::Resource;
use transport::{Call, Repeat, Transport};

/// A change of an object.
#[derive(Debug, Clone, PartialEq)]
pub enum Patch {
    /// JSON merge patch: lists are replaced whole, so name the resourceVersion beside them.
    Merge(Value),
    /// Strategic merge patch, for built-in kinds.
    StrategicMerge(Value),
}

/// What a deletion insists on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Delete {
    /// Only this incarnation.
    pub uid: Option<Uid>,
    /// Only this version.
    pub resource_version: Option<String>,
    /// Instead of the object's own.
    pub grace_period_seconds: Option<i64>,
}

/// How the API server is asked.
pub struct Options {
    /// Who asks: `karpenter/<version>`. The server names our writes after the part before the slash.
    pub user_agent: String,
    /// How often at most; none: as often as we like.
    pub rate: Option<Rate>,
    /// How long any call may take, instead of 10 s for a question and 30 s for a change.
    pub deadline: Option<Duration>,
    /// For the length of pauses.
    pub random: Random,
    /// Who hears of every request.
    pub observer: Option<Arc<dyn Observer>>,
    /// Asked right before every write, and none is sent where it says no: whether we still lead.
    pub may_write: Option<MayWrite>,
}

/// Whether we may write at this moment.
pub type MayWrite = Arc<dyn Fn() -> bool + Send + Sync>;

impl Options {
    /// As often as we like, unobserved.
    pub fn new(user_agent: &str) -> Self {
        Self {
            user_agent: user_agent.to_owned(),
            rate: None,
            deadline: None,
            random: Random::seeded(0),
            observer: None,
            may_write: None,
        }
    }
}

/// The API server.
#[derive(Clone)]
pub struct Api {
    transport: Arc<Transport>,
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api").field("counts", &self.counts()).finish()
    }
}

impl Api {
    /// Through a client, which must not retry by itself.
    pub fn new(client: kube_client::Client, user_agent: &str) -> Self {
        Self::with(client, Options::new(user_agent))
    }

    /// Through a client, which must not retry by itself, and with options.
    pub fn with(client: kube_client::Client, options: Options) -> Self {
        Self {
            transport: Arc::new(Transport::new(client, options)),
        }
    }

    /// What was done so far.
    pub fn counts(&self) -> Counts {
        self.transport.counts()
    }

    /// The API server's time, up to a second late; none before it has answered anything.
    pub fn server_time(&self) -> Option<Timestamp> {
        self.transport.server_time()
    }

    /// An object.
    pub async fn get<T: Object>(&self, key: &ObjectKey) -> Result<T, ApiError> {
        let path = Resource::of::<T>().item(key);
        self.typed(Method::GET, &path, None, "application/json").await
    }

    /// Creates an object. Its name makes the call safe to repeat, so there must be one. When an answer is lost and the
    /// name is then found taken, the object is taken for ours if it holds all that was sent.
    pub async fn create<T: Object>(&self, namespace: &str, object: &Value) -> Result<T, ApiError> {
        let path = Resource::of::<T>().collection(namespace);
        self.typed(Method::POST, &path, Some(object), "application/json").await
    }

    /// Changes an object, or its status.
    pub async fn patch<T: Object>(
        &self,
        key: &ObjectKey,
        subresource: Option<&str>,
        patch: &Patch,
    ) -> Result<T, ApiError> {
        let mut path = Resource::of::<T>().item(key);
        if let Some(subresource) = subresource {
            path = format!("{path}/{subresource}");
        }
        let (body, content_type) = match patch {
            Patch::Merge(body) => (body, "application/merge-patch+json"),
            Patch::StrategicMerge(body) => (body, "application/strategic-merge-patch+json"),
        };
        self.typed(Method::PATCH, &path, Some(body), content_type).await
    }

    /// Deletes an object.
    pub async fn delete<T: Object>(&self, key: &ObjectKey, options: &Delete) -> Result<(), ApiError> {
        let path = Resource::of::<T>().item(key);
        let mut preconditions = serde_json::Map::new();
        if let Some(uid) = &options.uid {
            preconditions.insert("uid".to_owned(), json!(uid.to_string()));
        }
        if let Some(version) = &options.resource_version {
            preconditions.insert("resourceVersion".to_owned(), json!(version));
        }
        let mut body = json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions});
        if let Some(seconds) = options.grace_period_seconds {
            body["gracePeriodSeconds"] = json!(seconds);
        }
        self.call(Method::DELETE, &path, Some(&body), "application/json")
            .await
            .map(drop)
    }

    /// Asks for the eviction of one incarnation of a pod, once: "too many requests" is the answer of a budget.
    pub async fn evict(&self, pod: &ObjectKey, uid: &Uid) -> Result<(), ApiError> {
        let path = format!("/api/v1/namespaces/{}/pods/{}/eviction", pod.namespace, pod.name);
        let body = json!({
            "apiVersion": "policy/v1", "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
            "deleteOptions": {"preconditions": {"uid": uid.to_string()}},
        });
        self.call(Method::POST, &path, Some(&body), "application/json")
            .await
            .map(drop)
    }

    /// Binds one incarnation of a pod to a node, once: a conflict says that somebody was faster.
    pub async fn bind(&self, pod: &ObjectKey, uid: &Uid, node: &str) -> Result<(), ApiError> {
        let path = format!("/api/v1/namespaces/{}/pods/{}/binding", pod.namespace, pod.name);
        let body = json!({
            "apiVersion": "v1", "kind": "Binding",
            "metadata": {"name": pod.name, "namespace": pod.namespace, "uid": uid.to_string()},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        });
        self.call_once(Method::POST, &path, Some(&body), "application/json")
            .await
            .map(drop)
    }

    /// Any call, answered whole. Questions, patches, deletions and creations under a fixed name are repeated when the
    /// server did not answer or was not able to; nothing else is.
    pub async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        content_type: &str,
    ) -> Result<Bytes, ApiError> {
        let call = Call::new(method, path, body, content_type);
        self.transport.answer(&call).await
    }

    /// Any call, made once: whoever asks has a rhythm of their own.
    pub(crate) async fn call_once(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        content_type: &str,
    ) -> Result<Bytes, ApiError> {
        let mut call = Call::new(method, path, body, content_type);
        call.repeat = Repeat::Never;
        self.transport.answer(&call).await
    }

    /// Opens a stream of answers; the caller reads and bounds it.
    pub(crate) async fn stream(&self, path: &str) -> Result<Body, ApiError> {
        self.transport.open(path).await
    }

    /// For the length of pauses.
    pub(crate) fn random(&self) -> &Random {
        self.transport.random()
    }

    async fn typed<T: Object>(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        content_type: &str,
    ) -> Result<T, ApiError> {
        let bytes = self.call(method.clone(), path, body, content_type).await?;
        T::read(&bytes).map_err(|error| ApiError::unreadable(&method, path, "the answer", &error))
    }
}

#[cfg(test)]
mod tests;
