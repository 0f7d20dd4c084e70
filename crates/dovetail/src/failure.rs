//! Why a command has no answer, in three lines: what failed, why, and what to do next.

use std::{fmt, process::ExitCode};

/// What failed, why, what next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) error: String,
    pub(crate) why: String,
    pub(crate) next: String,
    /// How the process ends.
    pub(crate) code: Code,
}

/// How a process ends that has no answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Code {
    /// Something is wrong.
    #[default]
    Failed = 1,
    /// Something else was to be written on the command line.
    Usage = 2,
    /// The source cannot be reached, or may not be read.
    Unreachable = 4,
}

impl Failure {
    pub(crate) fn new(error: impl Into<String>, why: impl Into<String>, next: impl Into<String>) -> Self {
        Self {
            error: error.into(),
            why: why.into(),
            next: next.into(),
            code: Code::Failed,
        }
    }

    /// The command line asks for what cannot be.
    pub(crate) fn usage(error: impl Into<String>, why: impl Into<String>, next: impl Into<String>) -> Self {
        Self {
            code: Code::Usage,
            ..Self::new(error, why, next)
        }
    }

    /// The source cannot be reached, or may not be read.
    pub(crate) fn unreachable(error: impl Into<String>, why: impl Into<String>, next: impl Into<String>) -> Self {
        Self {
            code: Code::Unreachable,
            ..Self::new(error, why, next)
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

/// How the process ends for it.
pub(crate) fn exit_code(error: &anyhow::Error) -> ExitCode {
    let code = error.downcast_ref::<Failure>().map(|failure| failure.code);
    ExitCode::from(code.unwrap_or_default() as u8)
}
