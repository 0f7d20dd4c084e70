//! Why a call to the API server failed, by what the caller does about it.

use std::error::Error;

use http::{HeaderMap, Method, header::RETRY_AFTER};
use serde::Deserialize;

use super::target::Target;

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
    details: Option<Details>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Details {
    retry_after_seconds: Option<u64>,
}

/// What we say in the server's place about an object that is not what it should be.
const UNREADABLE: &str = "Unreadable";
/// What we say in the server's place about a write that we kept to ourselves.
const NOT_LEADING: &str = "NotLeading";

/// The server's words for a version that it has not come to.
const TOO_LARGE: &str = "Too large resource version";

/// What we say in the server's place about versions that went backwards.
const SET_BACK: &str = "SetBack";

/// An answer that is not a Status, say from a proxy, is quoted up to here.
const QUOTED: usize = 300;

impl ApiError {
    pub(crate) fn transport(method: &Method, path: &str, message: String) -> Self {
        Self {
            method: method.to_string(),
            path: without_query(path),
            code: None,
            reason: String::new(),
            message,
            retry_after_seconds: None,
        }
    }

    pub(crate) fn unreadable(method: &Method, path: &str, what: &str, error: &serde_json::Error) -> Self {
        Self {
            reason: UNREADABLE.to_owned(),
            ..Self::transport(method, path, format!("{what} cannot be read: {error}"))
        }
    }

    pub(crate) fn set_back(method: &Method, path: &str, reached: &str, seen: &str) -> Self {
        let message = format!(
            "the API server is at version {reached}, and {seen} has been seen: its store was set back, as after a restore \
             from a backup; everything is listed again"
        );
        Self {
            reason: SET_BACK.to_owned(),
            ..Self::transport(method, path, message)
        }
    }

    pub(crate) fn not_leading(method: &Method, path: &str) -> Self {
        Self {
            reason: NOT_LEADING.to_owned(),
            ..Self::transport(
                method,
                path,
                "not sent: another replica may be the leader by now".to_owned(),
            )
        }
    }

    pub(crate) fn status(method: &Method, path: &str, code: u16, headers: &HeaderMap, body: &[u8]) -> Self {
        let status: Status = serde_json::from_slice(body).unwrap_or_default();
        let said = if status.message.is_empty() {
            format!("{code}: {}", quoted(body))
        } else {
            status.message
        };
        let asked = headers
            .get(RETRY_AFTER)
            .and_then(|value| value.to_str().ok()?.parse().ok());
        let details = status.details.unwrap_or_default();
        Self {
            method: method.to_string(),
            path: without_query(path),
            code: Some(code),
            reason: status.reason,
            message: with_advice(said, code, method, path),
            retry_after_seconds: details.retry_after_seconds.or(asked),
        }
    }

    /// There is no such object.
    pub fn is_not_found(&self) -> bool {
        self.code == Some(404)
    }

    /// The API server does not know the kind that was to be listed or watched: its CRD is not installed.
    pub fn is_missing_kind(&self) -> bool {
        self.is_not_found() && self.method == "GET" && Target::of(&self.path).name.is_empty()
    }

    /// An answer, or one object of it, is not what its kind should be.
    pub fn is_unreadable(&self) -> bool {
        self.code.is_none() && self.reason == UNREADABLE
    }

    /// The server knows less than it did: its store was set back.
    pub fn is_set_back(&self) -> bool {
        self.code.is_none() && self.reason == SET_BACK
    }

    /// It was not sent, because we no longer lead.
    pub fn is_not_leading(&self) -> bool {
        self.code.is_none() && self.reason == NOT_LEADING
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

    /// The server does not know who we are.
    pub fn is_unauthorized(&self) -> bool {
        self.code == Some(401)
    }

    /// The version a watch or a page asked for is gone, or has not come yet: the server's store was set back.
    pub fn is_expired(&self) -> bool {
        self.code == Some(410) || (self.code == Some(504) && self.message.contains(TOO_LARGE))
    }

    /// The same call may well succeed later: nobody answered, or the server was not able to.
    pub fn is_passing(&self) -> bool {
        match self.code {
            None => self.reason.is_empty(),
            Some(code) => matches!(code, 429 | 500 | 502 | 503 | 504),
        }
    }
}

/// An error and what caused it, which the errors of HTTP clients keep to themselves.
pub(crate) fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let said = next.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        cause = next.source();
    }
    text
}

fn with_advice(said: String, code: u16, method: &Method, path: &str) -> String {
    let target = Target::of(path);
    match code {
        401 => format!(
            "{said} (the API server does not accept our credentials: check the service account's token, or the user in \
             the kubeconfig)"
        ),
        403 if !target.resource.is_empty() => format!(
            "{said} (the ClusterRole must allow verb \"{}\" on resource \"{}\" in API group \"{}\")",
            target.verb(method),
            target.resource_in_role(),
            target.group
        ),
        404 if *method == Method::GET && target.name.is_empty() && !target.group.is_empty() => format!(
            "{said} (the kind is not installed: `dovetail crds | kubectl apply --server-side -f -` installs what this \
             version reads)"
        ),
        _ => said,
    }
}

/// Page tokens and versions are noise to a reader.
fn without_query(path: &str) -> String {
    path.split('?').next().unwrap_or_default().to_owned()
}

fn quoted(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    text.trim().chars().take(QUOTED).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(method: &Method, path: &str, code: u16, body: &str) -> ApiError {
        ApiError::status(method, path, code, &HeaderMap::new(), body.as_bytes())
    }

    #[test]
    fn a_refusal_names_what_the_role_lacks() {
        let body = r#"{"kind":"Status","message":"pods \"a\" is forbidden: no","reason":"Forbidden","code":403}"#;
        let error = failed(&Method::POST, "/api/v1/namespaces/n/pods/a/eviction", 403, body);
        assert!(error.is_forbidden());
        assert_eq!(
            error.to_string(),
            "POST /api/v1/namespaces/n/pods/a/eviction: pods \"a\" is forbidden: no (the ClusterRole must allow verb \
             \"create\" on resource \"pods/eviction\" in API group \"\")"
        );
    }

    #[test]
    fn a_list_of_a_kind_that_does_not_exist_is_told_from_an_object_that_does_not() {
        let list = "/apis/karpenter.sh/v1/nodepools?limit=500&continue=";
        let missing = failed(&Method::GET, list, 404, "404 page not found\n");
        assert!(missing.is_missing_kind());
        assert_eq!(
            missing.to_string(),
            "GET /apis/karpenter.sh/v1/nodepools: 404: 404 page not found (the kind is not installed: `dovetail crds | \
             kubectl apply --server-side -f -` installs what this version reads)"
        );
        assert!(!failed(&Method::GET, "/apis/karpenter.sh/v1/nodepools/a", 404, "{}").is_missing_kind());
    }

    #[test]
    fn the_server_says_when_to_come_back_in_a_header_or_in_words() {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, "7".parse().unwrap());
        let body = br#"{"message":"slow down","details":{"retryAfterSeconds":3}}"#;
        let path = "/api/v1/nodes";
        let told = |headers: &HeaderMap, body: &[u8]| {
            ApiError::status(&Method::GET, path, 429, headers, body).retry_after_seconds
        };
        assert_eq!(told(&headers, b""), Some(7));
        assert_eq!(told(&HeaderMap::new(), body), Some(3));
        assert_eq!(told(&HeaderMap::new(), b"null"), None);
    }
}
