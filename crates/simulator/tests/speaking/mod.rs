//! Speaks to the server as a client does: requests out, codes and bodies in.
#![allow(clippy::unwrap_used, reason = "a fixture fails as its test does")]

use http::{Method, Request};
use http_body_util::BodyExt;
use jiff::Timestamp;
use kube_client::client::Body;
use serde_json::Value;
use simulator::ApiServer;
use tokio::time::Instant;

/// A server whose time begins with the year 2026 and goes on with tokio's.
pub(crate) fn server() -> ApiServer {
    let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let began = Instant::now();
    ApiServer::new(move || start + began.elapsed())
}

/// A client.
pub(crate) struct Speaker(kube_client::Client);

#[allow(dead_code, reason = "each test file speaks in its own way")]
impl Speaker {
    pub(crate) fn to(server: &ApiServer) -> Self {
        Self(server.client())
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        self.say(Method::GET, path, "application/json", &Value::Null)
            .await
            .unwrap()
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.say(Method::POST, path, "application/json", &body).await.unwrap()
    }

    pub(crate) async fn delete(&self, path: &str, options: Value) -> (u16, Value) {
        self.say(Method::DELETE, path, "application/json", &options)
            .await
            .unwrap()
    }

    pub(crate) async fn merge(&self, path: &str, patch: Value) -> (u16, Value) {
        self.try_merge(path, patch).await.unwrap()
    }

    pub(crate) async fn try_merge(&self, path: &str, patch: Value) -> kube_client::Result<(u16, Value)> {
        self.say(Method::PATCH, path, "application/merge-patch+json", &patch)
            .await
    }

    pub(crate) async fn say(
        &self,
        method: Method,
        path: &str,
        content: &str,
        body: &Value,
    ) -> kube_client::Result<(u16, Value)> {
        let bytes = if body.is_null() {
            Vec::new()
        } else {
            body.to_string().into_bytes()
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content);
        let response = self.0.send(request.body(Body::from(bytes)).unwrap()).await?;
        let (head, body) = response.into_parts();
        let bytes = body.collect().await?.to_bytes();
        Ok((head.status.as_u16(), serde_json::from_slice(&bytes).unwrap()))
    }

    /// Opens a watch.
    pub(crate) async fn watch(&self, path: &str) -> Watching {
        let request = Request::builder().uri(path).body(Body::empty()).unwrap();
        Watching {
            body: self.0.send(request).await.unwrap().into_body(),
            read: Vec::new(),
        }
    }
}

/// A watch.
pub(crate) struct Watching {
    body: Body,
    read: Vec<u8>,
}

#[allow(dead_code, reason = "not every test file watches")]
impl Watching {
    /// The next line; none when the watch has ended.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            let frame = self.body.frame().await?.unwrap();
            self.read.extend_from_slice(&frame.into_data().unwrap());
        }
    }

    /// The type and the name, or the version of a bookmark.
    pub(crate) async fn next_word(&mut self) -> Option<(String, String)> {
        let line = self.next().await?;
        let metadata = &line["object"]["metadata"];
        let name = metadata["name"].as_str().or(metadata["resourceVersion"].as_str());
        let name = name.or(line["object"]["message"].as_str()).unwrap_or_default();
        Some((line["type"].as_str().unwrap().to_owned(), name.to_owned()))
    }
}
