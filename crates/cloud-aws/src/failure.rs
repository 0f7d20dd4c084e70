//! What an AWS call that failed says: its code, its words, and whose fault it was.

use std::fmt;

use aws_smithy_runtime_api::client::{orchestrator::HttpResponse, result::SdkError};
use aws_smithy_types::error::{display::DisplayErrorContext, metadata::ProvideErrorMetadata};

/// Codes that say that there is no such thing.
const NOT_FOUND: &[&str] = &[
    "InvalidCapacityReservationId.NotFound",
    "InvalidInstanceID.NotFound",
    "InvalidLaunchTemplateName.NotFoundException",
    "InvalidLaunchTemplateId.NotFound",
    "QueueDoesNotExist",
    "AWS.SimpleQueueService.NonExistentQueue",
    "NoSuchEntity",
    "ParameterNotFound",
];

/// Codes that say that we may not.
const UNAUTHORIZED: &[&str] = &["UnauthorizedOperation", "AccessDenied", "AccessDeniedException"];

/// Codes that ask for patience.
const THROTTLED: &[&str] = &[
    "RequestLimitExceeded",
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
    "RequestThrottled",
];

/// A failed call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The service's code; empty where it did not answer.
    pub code: String,
    /// The service's words, or what kept us from hearing them.
    pub message: String,
    /// The status of the answer; none where there was none.
    pub status: Option<u16>,
}

impl Failure {
    /// What a call of the SDK failed with.
    pub fn of<E>(error: &SdkError<E, HttpResponse>) -> Self
    where
        E: ProvideErrorMetadata + std::error::Error + 'static,
    {
        let status = error.raw_response().map(|response| response.status().as_u16());
        match error.as_service_error() {
            Some(service) => Self {
                code: service.code().unwrap_or_default().to_owned(),
                message: service.message().unwrap_or_default().to_owned(),
                status,
            },
            None => Self {
                code: String::new(),
                message: DisplayErrorContext(error).to_string(),
                status,
            },
        }
    }

    /// There is no such thing.
    pub fn is_not_found(&self) -> bool {
        NOT_FOUND.contains(&self.code.as_str())
    }

    /// There is one already.
    pub fn is_already_exists(&self) -> bool {
        self.code == "EntityAlreadyExists" || self.code == "InvalidLaunchTemplateName.AlreadyExistsException"
    }

    /// We may not.
    pub fn is_unauthorized(&self) -> bool {
        UNAUTHORIZED.contains(&self.code.as_str())
    }

    /// We ask too often.
    pub fn is_throttled(&self) -> bool {
        THROTTLED.contains(&self.code.as_str())
    }

    /// The dry run would have worked.
    pub fn is_dry_run_success(&self) -> bool {
        self.code == "DryRunOperation"
    }

    /// A reason and a sentence for people, as upstream words them: the first that fits.
    pub fn reason(&self) -> (&'static str, &'static str) {
        crate::launch::refusal::reason_message(&self.to_string())
    }

    /// It is not our request that was at fault: the service failed, or there was no answer.
    pub fn is_server_fault(&self) -> bool {
        self.status.is_none_or(|status| status >= 500)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code.as_str(), self.message.as_str()) {
            ("", message) => f.write_str(message),
            (code, message) => write!(f, "api error {code}: {message}"),
        }
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_answer_is_the_servers_fault_and_a_refusal_is_not() {
        let failure = |status| Failure {
            code: String::new(),
            message: String::new(),
            status,
        };
        assert!(failure(None).is_server_fault());
        assert!(failure(Some(503)).is_server_fault());
        assert!(!failure(Some(403)).is_server_fault());
    }
}
