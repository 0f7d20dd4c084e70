//! What the API server says when it refuses: `Status` objects with its own words.

use serde_json::{Value, json};

use crate::{Resource, address::Key, schema::Problem};

/// A refusal.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// HTTP status.
    pub code: u16,
    /// In one word; empty where the API server gives none.
    pub reason: String,
    /// In a sentence.
    pub message: String,
    /// What it is about.
    pub details: Option<Value>,
}

impl Failure {
    fn about(resource: &Resource, key: &Key, code: u16, reason: &str, message: String) -> Self {
        let mut details = json!({"name": key.1, "kind": resource.plural});
        if !resource.group.is_empty() {
            details["group"] = json!(resource.group);
        }
        Self {
            code,
            reason: reason.to_owned(),
            message,
            details: Some(details),
        }
    }

    pub(crate) fn not_found(resource: &Resource, key: &Key) -> Self {
        let message = format!("{} \"{}\" not found", resource.qualified(), key.1);
        Self::about(resource, key, 404, "NotFound", message)
    }

    pub(crate) fn already_exists(resource: &Resource, key: &Key) -> Self {
        let message = format!("{} \"{}\" already exists", resource.qualified(), key.1);
        Self::about(resource, key, 409, "AlreadyExists", message)
    }

    pub(crate) fn conflict(resource: &Resource, key: &Key, why: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} \"{}\": {why}",
            resource.qualified(),
            key.1
        );
        Self::about(resource, key, 409, "Conflict", message)
    }

    pub(crate) fn modified(resource: &Resource, key: &Key) -> Self {
        Self::conflict(
            resource,
            key,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    /// An object that breaks a rule: `field` does, because of `why`, which is of the sort `cause`.
    pub(crate) fn invalid(group: &str, kind: &str, name: &str, [cause, field, why]: [&str; 3]) -> Self {
        let qualified = if group.is_empty() {
            kind.to_owned()
        } else {
            format!("{kind}.{group}")
        };
        let mut details = json!({"kind": kind, "causes": [{"reason": cause, "message": why, "field": field}]});
        if !name.is_empty() {
            details["name"] = json!(name);
        }
        if !group.is_empty() {
            details["group"] = json!(group);
        }
        Self {
            code: 422,
            reason: "Invalid".to_owned(),
            message: format!("{qualified} \"{name}\" is invalid: {field}: {why}"),
            details: Some(details),
        }
    }

    /// An object with these problems.
    pub(crate) fn refused(group: &str, kind: &str, name: &str, problems: &[Problem]) -> Self {
        let qualified = if group.is_empty() {
            kind.to_owned()
        } else {
            format!("{kind}.{group}")
        };
        let cause =
            |problem: &Problem| json!({"reason": problem.reason, "message": problem.body(), "field": problem.field});
        let causes: Vec<Value> = problems.iter().map(cause).collect();
        let mut told: Vec<String> = Vec::new();
        for problem in problems {
            let line = format!("{}: {}", problem.field, problem.body());
            if !told.contains(&line) {
                told.push(line);
            }
        }
        let why = match told.as_slice() {
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        let mut details = json!({"causes": causes});
        if !kind.is_empty() {
            details["kind"] = json!(kind);
        }
        if !name.is_empty() {
            details["name"] = json!(name);
        }
        if !group.is_empty() {
            details["group"] = json!(group);
        }
        Self {
            code: 422,
            reason: "Invalid".to_owned(),
            message: format!("{qualified} \"{name}\" is invalid: {why}"),
            details: Some(details),
        }
    }

    pub(crate) fn too_new(wanted: u64, current: u64) -> Self {
        Self {
            code: 504,
            reason: "Timeout".to_owned(),
            message: format!("Timeout: Too large resource version: {wanted}, current: {current}"),
            details: Some(json!({"retryAfterSeconds": 1, "causes": [{
                "reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]})),
        }
    }

    pub(crate) fn expired(message: String) -> Self {
        Self {
            code: 410,
            reason: "Expired".to_owned(),
            message,
            details: None,
        }
    }

    pub(crate) fn bad_request(message: &str) -> Self {
        Self {
            code: 400,
            reason: "BadRequest".to_owned(),
            message: message.to_owned(),
            details: None,
        }
    }

    pub(crate) fn page_not_found() -> Self {
        Self {
            code: 404,
            reason: "NotFound".to_owned(),
            message: "the server could not find the requested resource".to_owned(),
            details: Some(json!({})),
        }
    }

    pub(crate) fn method_not_allowed() -> Self {
        Self {
            code: 405,
            reason: "MethodNotAllowed".to_owned(),
            message: "the server does not allow this method on the requested resource".to_owned(),
            details: Some(json!({})),
        }
    }

    pub(crate) fn unsupported_patch(accepted: &str) -> Self {
        Self {
            code: 415,
            reason: "UnsupportedMediaType".to_owned(),
            message: format!(
                "the body of the request was in an unknown format - accepted media types include: {accepted}"
            ),
            details: None,
        }
    }

    pub(crate) fn forbidden(resource: &Resource, key: &Key, why: &str) -> Self {
        let message = format!("{} \"{}\" is forbidden: {why}", resource.qualified(), key.1);
        Self::about(resource, key, 403, "Forbidden", message)
    }

    /// What a fault says.
    pub(crate) fn injected(code: u16) -> Self {
        let (reason, message) = match code {
            403 => ("Forbidden", "forbidden: injected fault"),
            404 => ("NotFound", "the server could not find the requested resource"),
            409 => ("Conflict", "Operation cannot be fulfilled: injected fault"),
            410 => ("Expired", "The resourceVersion for the provided watch is too old."),
            429 => ("TooManyRequests", "too many requests: injected fault"),
            503 => (
                "ServiceUnavailable",
                "the server is currently unable to handle the request",
            ),
            504 => (
                "Timeout",
                "Timeout: request did not complete within the allotted timeout",
            ),
            _ => ("InternalError", "Internal error occurred: injected fault"),
        };
        let details = if code == 429 {
            json!({"retryAfterSeconds": 1})
        } else {
            json!({})
        };
        Self {
            code,
            reason: reason.to_owned(),
            message: message.to_owned(),
            details: Some(details),
        }
    }

    pub(crate) fn retry_after(&self) -> Option<u64> {
        self.details.as_ref()?.get("retryAfterSeconds")?.as_u64()
    }

    /// The `Status` object.
    pub fn status(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {},
            "status": "Failure", "message": self.message, "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = json!(self.reason);
        }
        if let Some(details) = &self.details {
            status["details"] = details.clone();
        }
        status
    }
}
