//! The API server, asked with our own patience: every call has a deadline, and only what may be repeated is.

mod error;
mod resource;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::BodyExt;
use kube::client::Body;
use model::object::{Object, ObjectKey, Uid};
use serde_json::{Value, json};

pub use error::ApiError;
pub use resource::Resource;

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

/// The API server.
#[derive(Clone)]
pub struct Api {
    client: kube::Client,
    user_agent: Arc<str>,
}

/// How long an answer may take.
const DEADLINE: Duration = Duration::from_secs(30);

impl Api {
    /// Through a client, which must not retry by itself.
    pub fn new(client: kube::Client, user_agent: &str) -> Self {
        Self {
            client,
            user_agent: user_agent.into(),
        }
    }

    /// An object.
    pub async fn get<T: Object>(&self, key: &ObjectKey) -> Result<T, ApiError> {
        let path = Resource::of::<T>().item(key);
        self.typed(Method::GET, &path, None, "application/json").await
    }

    /// Creates an object. Its name makes the call safe to repeat, so there must be one.
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

    /// Asks for the eviction of one incarnation of a pod.
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

    /// Any call, answered whole.
    pub async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        content_type: &str,
    ) -> Result<Bytes, ApiError> {
        let fault = |message: String| ApiError::transport(&method, path, message);
        let bytes = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let request = Request::builder()
            .method(method.clone())
            .uri(path)
            .header("content-type", content_type)
            .header("accept", "application/json")
            .header("user-agent", &*self.user_agent)
            .body(Body::from(bytes))
            .map_err(|error| fault(error.to_string()))?;
        let answer = async {
            let response = self.client.send(request).await.map_err(|e| fault(e.to_string()))?;
            let (head, body) = response.into_parts();
            let bytes = body.collect().await.map_err(|e| fault(e.to_string()))?.to_bytes();
            if head.status.is_success() {
                return Ok(bytes);
            }
            Err(ApiError::status(&method, path, head.status.as_u16(), &bytes))
        };
        let timed = tokio::time::timeout(DEADLINE, answer).await;
        timed.unwrap_or_else(|_| Err(fault(format!("no answer within {} s", DEADLINE.as_secs()))))
    }

    /// Opens a stream of answers; the caller reads and bounds it.
    pub(crate) async fn stream(&self, path: &str) -> Result<Body, ApiError> {
        let fault = |message: String| ApiError::transport(&Method::GET, path, message);
        let request = Request::builder()
            .uri(path)
            .header("accept", "application/json")
            .header("user-agent", &*self.user_agent)
            .body(Body::empty())
            .map_err(|error| fault(error.to_string()))?;
        let opened = tokio::time::timeout(DEADLINE, self.client.send(request)).await;
        let response = opened
            .map_err(|_| fault("no answer".to_owned()))?
            .map_err(|error| fault(error.to_string()))?;
        let (head, body) = response.into_parts();
        if head.status.is_success() {
            return Ok(body);
        }
        let bytes = body.collect().await.map_err(|e| fault(e.to_string()))?.to_bytes();
        Err(ApiError::status(&Method::GET, path, head.status.as_u16(), &bytes))
    }

    async fn typed<T: Object>(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        content_type: &str,
    ) -> Result<T, ApiError> {
        let bytes = self.call(method.clone(), path, body, content_type).await?;
        serde_json::from_slice(&bytes)
            .map_err(|error| ApiError::transport(&method, path, format!("unreadable answer: {error}")))
    }
}
