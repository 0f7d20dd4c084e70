//! What a command answers: text for standard output, notes about how it was got, and how the process ends.

use std::{io::Write, process::ExitCode};

use crate::terminal::aside;

/// An answer.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    /// For standard output.
    pub(crate) text: String,
    /// For standard error, after the text: where the answer comes from and what was assumed.
    pub(crate) notes: String,
    /// Whether a finding was asked to be an exit code of its own, and there is one.
    pub(crate) is_finding: bool,
    /// Whether what was asked about failed.
    pub(crate) is_failure: bool,
    /// A number of the versions of all objects the answer is made from, where it is watched.
    pub(crate) inputs: Option<u64>,
}

/// How a process ends that was asked to tell findings from none, and has one.
const FINDING: u8 = 3;

impl From<String> for Answer {
    fn from(text: String) -> Self {
        Self {
            text,
            ..Self::default()
        }
    }
}

impl Answer {
    /// Prints it. A reader that closes the pipe early, such as `head`, has what it wanted.
    pub(crate) fn print(&self) -> anyhow::Result<ExitCode> {
        match std::io::stdout().write_all(self.text.as_bytes()) {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {}
            other => other?,
        }
        aside(&self.notes);
        Ok(if self.is_failure {
            ExitCode::FAILURE
        } else if self.is_finding {
            FINDING.into()
        } else {
            ExitCode::SUCCESS
        })
    }
}
