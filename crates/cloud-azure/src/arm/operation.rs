//! A long-running operation: where to ask how far it is, and when it is over.

use std::time::Duration;

use http::Method;
use jiff::Timestamp;
use serde_json::Value;
use tokio::time::Instant;

use super::{
    Arm, Failure,
    client::{Answer, retry_after},
    failure::code_and_message,
};

/// The pause between two questions, unless the answer says otherwise.
const PAUSE: Duration = Duration::from_secs(3);
/// No pause is shorter, whatever the answer says.
const SHORTEST: Duration = Duration::from_millis(100);

/// An operation that Azure has taken on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    action: &'static str,
    style: Style,
    pause: Duration,
}

/// The three ways in which services of Azure tell of their operations.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Style {
    /// It is over.
    Done,
    /// `Azure-AsyncOperation`: a status of its own.
    Status(String),
    /// `Location`: 202 until it is over.
    Location(String),
    /// The resource says how far it is.
    Resource(String),
}

impl Operation {
    /// The operation that an answer speaks of; an error where it has failed already.
    pub(super) fn begun(
        action: &'static str,
        method: &Method,
        resource: &str,
        answer: &Answer,
        now: Timestamp,
    ) -> Result<Self, Failure> {
        let pause = retry_after(&answer.headers, now).unwrap_or(PAUSE).max(SHORTEST);
        let style = if let Some(url) = answer.header("azure-asyncoperation") {
            Style::Status(url.to_owned())
        } else if let Some(url) = answer.header("location").filter(|_| answer.status != 200) {
            Style::Location(url.to_owned())
        } else if *method == Method::DELETE {
            Style::Done
        } else {
            match state(&answer.json()) {
                State::Succeeded => Style::Done,
                State::Failed(failure) => return Err(failure),
                State::Running => Style::Resource(resource.to_owned()),
            }
        };
        Ok(Self { action, style, pause })
    }
}

enum State {
    Succeeded,
    Running,
    Failed(Failure),
}

/// What `properties.provisioningState` says. A resource without one has no life of its own: it is there.
fn state(body: &Value) -> State {
    match body.pointer("/properties/provisioningState").and_then(Value::as_str) {
        None => State::Succeeded,
        Some(word) => word_state(word, body),
    }
}

fn word_state(word: &str, body: &Value) -> State {
    match word.to_ascii_lowercase().as_str() {
        "succeeded" => State::Succeeded,
        "failed" | "canceled" | "cancelled" => {
            let (code, message) = code_and_message(body);
            let message = message.unwrap_or_else(|| format!("the operation ended as {word}"));
            State::Failed(Failure::with_code(code.as_deref().unwrap_or(word), message))
        }
        _ => State::Running,
    }
}

impl Arm {
    /// Waits for an operation to be over, but no longer than the limit.
    pub async fn finish(&self, operation: Operation, limit: Duration) -> Result<(), Failure> {
        let began = Instant::now();
        let Operation {
            action,
            style,
            mut pause,
        } = operation;
        let url = match &style {
            Style::Done => return Ok(()),
            Style::Status(url) | Style::Location(url) | Style::Resource(url) => url.clone(),
        };
        if !self.environment().trusts(&url) {
            return Err(Failure::unanswered(format!(
                "{action}: the operation is to be followed at {url}, which is not Resource Manager's"
            )));
        }
        loop {
            if began.elapsed() + pause > limit {
                let message = format!("{action}: not over after {} s", limit.as_secs());
                return Err(Failure::with_code("OperationTimedOut", message));
            }
            tokio::time::sleep(pause).await;
            let answer = self.ask(action, Method::GET, url.clone(), None::<&()>).await?;
            pause = retry_after(&answer.headers, self.now()).unwrap_or(PAUSE).max(SHORTEST);
            let body = answer.json();
            let now = match &style {
                Style::Status(_) => {
                    let word = body.get("status").and_then(Value::as_str).unwrap_or_default();
                    word_state(word, &body)
                }
                Style::Location(_) if answer.status == 202 => State::Running,
                _ => state(&body),
            };
            match now {
                State::Succeeded => return Ok(()),
                State::Failed(failure) => return Err(failure),
                State::Running => {}
            }
        }
    }
}
