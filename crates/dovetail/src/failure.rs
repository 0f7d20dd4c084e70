//! Why a command has no answer, in three lines: what failed, why, and what to do next.

use std::fmt;

/// What failed, why, what next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) error: String,
    pub(crate) why: String,
    pub(crate) next: String,
}

impl Failure {
    pub(crate) fn new(error: impl Into<String>, why: impl Into<String>, next: impl Into<String>) -> Self {
        Self {
            error: error.into(),
            why: why.into(),
            next: next.into(),
        }
    }
}

impl std::error::Error for Failure {}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error   {}\nwhy     {}\nnext    {}", self.error, self.why, self.next)
    }
}

/// An error as a person reads it.
pub(crate) fn text(error: &anyhow::Error) -> String {
    match error.downcast_ref::<Failure>() {
        Some(failure) => failure.to_string(),
        None => format!("error   {error:#}"),
    }
}
