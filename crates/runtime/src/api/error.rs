//! Why a call to the API server failed, by what the caller does about it.

use http::Method;
use serde::Deserialize;

/// A call that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{method} {path}: {message}")]
pub struct ApiError {
    method: String,
    path: String,
    /// HTTP status; none when there was no answer.
    pub code: Option<u16>,
    /// The server's word for it, such as `NotFound` or `AlreadyExists`.
    pub reason: String,
    /// The server's sentence.
    pub message: String,
    /// How long the server asks to wait.
    pub retry_after_seconds: Option<u64>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Status {
    message: String,
    reason: String,
    details: Details,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Details {
    retry_after_seconds: Option<u64>,
}

impl ApiError {
    pub(crate) fn transport(method: &Method, path: &str, message: String) -> Self {
        Self {
            method: method.to_string(),
            path: path.to_owned(),
            code: None,
            reason: String::new(),
            message,
            retry_after_seconds: None,
        }
    }

    pub(crate) fn status(method: &Method, path: &str, code: u16, body: &[u8]) -> Self {
        let status: Status = serde_json::from_slice(body).unwrap_or_default();
        let message = if status.message.is_empty() {
            format!("{code}: {}", String::from_utf8_lossy(body))
        } else {
            status.message
        };
        Self {
            method: method.to_string(),
            path: path.to_owned(),
            code: Some(code),
            reason: status.reason,
            message,
            retry_after_seconds: status.details.retry_after_seconds,
        }
    }

    /// There is no such object.
    pub fn is_not_found(&self) -> bool {
        self.code == Some(404)
    }

    /// The object changed since it was read, or a precondition failed.
    pub fn is_conflict(&self) -> bool {
        self.code == Some(409) && self.reason != "AlreadyExists"
    }

    /// There is one of that name.
    pub fn is_already_exists(&self) -> bool {
        self.code == Some(409) && self.reason == "AlreadyExists"
    }

    /// The server asks to come back later; for an eviction: a budget forbids it.
    pub fn is_too_many_requests(&self) -> bool {
        self.code == Some(429)
    }

    /// We may not do this.
    pub fn is_forbidden(&self) -> bool {
        self.code == Some(403)
    }

    /// The version a watch or a page asked for is gone.
    pub fn is_expired(&self) -> bool {
        self.code == Some(410)
    }
}
