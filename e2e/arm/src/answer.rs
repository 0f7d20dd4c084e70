//! What is said back: an answer, or a refusal in the words of Azure.

use serde_json::{Value, json};

/// A response before it is put on the wire.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Option<Value>,
}

impl Answer {
    pub(crate) fn new(status: u16, body: Value) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: Some(body),
        }
    }

    pub(crate) fn ok(body: Value) -> Self {
        Self::new(200, body)
    }

    pub(crate) fn empty(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: None,
        }
    }

    pub(crate) fn with(mut self, header: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((header, value.into()));
        self
    }
}

/// A request that is not done, or an operation that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) target: Option<String>,
    pub(crate) details: Vec<Refusal>,
    pub(crate) retry_after: Option<u64>,
}

impl Refusal {
    pub(crate) fn new(status: u16, code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            status,
            code: code.into(),
            message: message.into(),
            target: None,
            details: Vec::new(),
            retry_after: None,
        }
    }

    pub(crate) fn bad(code: &str, message: impl Into<String>) -> Self {
        Self::new(400, code, message)
    }

    pub(crate) fn not_found(kind: &str, name: &str, group: &str) -> Self {
        let message = format!(
            "The Resource '{kind}/{name}' under resource group '{group}' was not found. For more details please go to \
             https://aka.ms/ARMResourceNotFoundFix"
        );
        Self::new(404, "ResourceNotFound", message)
    }

    pub(crate) fn at(mut self, target: impl Into<String>) -> Self {
        self.target = Some(target.into());
        self
    }

    /// The error itself, as it stands in a body or in the status of an operation.
    pub(crate) fn error(&self) -> Value {
        let mut error = json!({"code": self.code, "message": self.message});
        if let Some(target) = &self.target {
            error["target"] = json!(target);
        }
        if !self.details.is_empty() {
            error["details"] = self.details.iter().map(Self::error).collect();
        }
        error
    }

    /// The answer; the shape depends on whose error it is.
    pub(crate) fn answer(&self, shape: &str) -> Answer {
        let body = match shape {
            "FlatError" | "BootstrappingError" => self.error(),
            "PriceError" => json!({"Error": {"Code": self.code, "Message": self.message}}),
            _ => json!({"error": self.error()}),
        };
        let answer = Answer::new(self.status, body);
        match self.retry_after {
            Some(seconds) => answer.with("retry-after", seconds.to_string()),
            None => answer,
        }
    }
}
