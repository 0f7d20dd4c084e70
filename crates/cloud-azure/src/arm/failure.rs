//! What a call of Azure that failed says: its code, its words, and whose fault it was.

use std::{fmt, time::Duration};

use cloud::CloudError;
use serde::Deserialize;
use serde_json::Value;

use super::wire::or_default;

/// A failed call or operation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Failure {
    /// Azure's code; empty where it gave none.
    pub code: String,
    /// Azure's words, or what kept us from hearing them.
    pub message: String,
    /// The status of the answer; none where there was none.
    pub status: Option<u16>,
    /// How long to wait before asking again, if it said so.
    pub retry_after: Option<Duration>,
    /// What it says of each of several things.
    pub details: Vec<Detail>,
}

/// A part of a failure.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Detail {
    /// Azure's code.
    #[serde(deserialize_with = "or_default")]
    pub code: String,
    /// Azure's words.
    #[serde(deserialize_with = "or_default")]
    pub message: String,
    /// What it is about.
    #[serde(deserialize_with = "or_default")]
    pub target: String,
}

impl Failure {
    /// An answer that says no. Errors of Resource Manager lie in `error`; those of AKS do not.
    pub fn of_answer(status: u16, body: &[u8], retry_after: Option<Duration>) -> Self {
        let value: Value = serde_json::from_slice(body).unwrap_or_default();
        let (code, message) = code_and_message(&value);
        let message = match message {
            Some(message) => message,
            None => String::from_utf8_lossy(body).chars().take(1200).collect(),
        };
        Self {
            code: code.unwrap_or_default(),
            message,
            status: Some(status),
            retry_after,
            details: details(&value),
        }
    }

    /// There was no answer.
    pub fn unanswered(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            ..Self::default()
        }
    }

    /// An answer that cannot be read, or an operation that ended without success.
    pub fn with_code(code: &str, message: impl Into<String>) -> Self {
        Self {
            code: code.to_owned(),
            message: message.into(),
            status: Some(200),
            ..Self::default()
        }
    }

    /// There is no such thing. That its group or its subscription is not there says that we look in the wrong place, and
    /// nothing about the thing: machines must not count as gone because of a misspelt setting.
    pub fn is_not_found(&self) -> bool {
        self.status == Some(404) && !matches!(self.code.as_str(), "ResourceGroupNotFound" | "SubscriptionNotFound")
    }

    /// We may not.
    pub fn is_unauthorized(&self) -> bool {
        matches!(self.status, Some(401 | 403))
    }

    /// We ask too often.
    pub fn is_throttled(&self) -> bool {
        self.status == Some(429)
    }

    /// Code and words together: what errors are told apart by.
    pub fn text(&self) -> String {
        format!("{} {}", self.code, self.message)
    }

    /// The code for a metric.
    pub fn label(&self) -> &str {
        if self.code.is_empty() {
            "UnknownError"
        } else {
            &self.code
        }
    }

    /// As the caller of the provider hears of it, unless it is told apart further.
    pub fn into_cloud(self, doing: &str) -> CloudError {
        if self.is_throttled() {
            return CloudError::Throttled {
                retry_after: Some(self.retry_after.unwrap_or(Duration::from_secs(10))),
                message: format!("{doing}, {self}"),
            };
        }
        CloudError::Other(format!("{doing}, {self}"))
    }
}

/// The parts of an error body; none where they cannot be read.
pub(super) fn details(value: &Value) -> Vec<Detail> {
    let error = value.get("error").filter(|it| it.is_object()).unwrap_or(value);
    let details = error.get("details").cloned().unwrap_or_default();
    serde_json::from_value(details).unwrap_or_default()
}

/// The code and message of an error body, wherever it keeps them.
pub(super) fn code_and_message(value: &Value) -> (Option<String>, Option<String>) {
    let error = value.get("error").filter(|it| it.is_object()).unwrap_or(value);
    let text = |key: &str| error.get(key).and_then(Value::as_str).map(str::to_owned);
    // What truly went wrong often hides in the first detail; without it the outer words say little.
    let details = error
        .pointer("/details/0/message")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let message = text("message").map(|message| match details {
        "" => message,
        details if message.contains(details) => message,
        details => format!("{message} ({details})"),
    });
    (text("code"), message)
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.status, self.code.as_str()) {
            (Some(status), "") => write!(f, "HTTP {status}: {}", self.message),
            (_, "") => f.write_str(&self.message),
            (_, code) => write!(f, "{code}: {}", self.message),
        }
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_found_in_both_shapes_of_error() {
        let arm = Failure::of_answer(409, br#"{"error":{"code":"SkuNotAvailable","message":"no"}}"#, None);
        let aks = Failure::of_answer(400, br#"{"code":"InvalidParameter","message":"no"}"#, None);
        let other = Failure::of_answer(502, b"<html>bad gateway</html>", None);
        assert_eq!(
            [arm.label(), aks.label(), other.label()],
            ["SkuNotAvailable", "InvalidParameter", "UnknownError"]
        );
        assert_eq!(other.to_string(), "HTTP 502: <html>bad gateway</html>");
    }

    #[test]
    fn a_group_that_is_not_there_does_not_make_its_machines_gone() {
        let gone = |code: &str| {
            let body = format!(r#"{{"error":{{"code":"{code}","message":"no"}}}}"#);
            Failure::of_answer(404, body.as_bytes(), None).is_not_found()
        };
        assert!(gone("ResourceNotFound") && gone("NotFound"));
        assert!(!gone("ResourceGroupNotFound") && !gone("SubscriptionNotFound"));
    }

    #[test]
    fn throttling_says_when_to_come_back() {
        let failure = Failure {
            status: Some(429),
            retry_after: Some(Duration::from_secs(7)),
            ..Failure::default()
        };
        let CloudError::Throttled { retry_after, .. } = failure.into_cloud("creating") else {
            panic!("not throttled");
        };
        assert_eq!(retry_after, Some(Duration::from_secs(7)));
    }
}
