//! What can go wrong with a control plane on this machine, said so that the reader can mend it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A failure of the rig: building, starting, or talking to a cluster.
#[derive(thiserror::Error)]
pub enum Error {
    /// There is no Go toolchain, and nothing built earlier to fall back on.
    #[error(
        "Go is not installed (`go` was not found on PATH), and the rig builds its control plane with it: install Go 1.26 or newer"
    )]
    GoMissing,
    /// A Go command ended badly.
    #[error("`go {command}` in {dir} failed:\n{stderr}")]
    Go {
        /// Its arguments.
        command: String,
        /// Where it ran.
        dir: PathBuf,
        /// What it had to say.
        stderr: String,
    },
    /// A Python command ended badly.
    #[error("`python {command}` failed:\n{stderr}")]
    Python {
        /// Its arguments.
        command: String,
        /// What it had to say.
        stderr: String,
    },
    /// The file system refused.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// The verb.
        action: &'static str,
        /// The object.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A process could not be started.
    #[error("cannot start {program}: {source}")]
    Spawn {
        /// Which one.
        program: String,
        /// The reason.
        source: io::Error,
    },
    /// A process of the control plane ended on its own.
    #[error("{process} ended early ({status}); the end of {log}:\n{tail}")]
    Died {
        /// Which one.
        process: String,
        /// Its exit status.
        status: String,
        /// Its whole log.
        log: PathBuf,
        /// The last lines of it.
        tail: String,
    },
    /// Something did not happen in time.
    #[error("{what} did not happen within {limit:?}: {last}")]
    Deadline {
        /// What was awaited.
        what: String,
        /// For how long.
        limit: Duration,
        /// What was seen instead, the last time it was looked at.
        last: String,
    },
    /// The API server could not be reached.
    #[error("{method} {url}: {source}")]
    Http {
        /// The verb.
        method: String,
        /// The address.
        url: String,
        /// The reason.
        source: Box<ureq::Error>,
    },
    /// The API server answered with something else than success.
    #[error("{method} {path} answered {status}: {message}")]
    Api {
        /// The verb.
        method: String,
        /// The path.
        path: String,
        /// The HTTP status.
        status: u16,
        /// The `message` of the returned `Status`.
        message: String,
    },
    /// A manifest cannot be read.
    #[error("{origin} is not a manifest: {reason}")]
    Manifest {
        /// The file, or what stands for it.
        origin: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Keys or certificates could not be made.
    #[error("cannot make the cluster's certificates: {0}")]
    Certificates(String),
    /// There is no folder for the cache.
    #[error("no cache folder: set HOME, XDG_CACHE_HOME or DOVETAIL_CACHE")]
    NoCache,
    /// A version that is not one.
    #[error("{0:?} is not a Kubernetes version: write it like 1.36.3")]
    KubernetesVersion(String),
}

impl Error {
    /// Whether the same request may succeed a moment later: nobody answered, or the server is busy with itself.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Http { .. } => true,
            Self::Api { status, .. } => *status == 429 || *status >= 500,
            _ => false,
        }
    }
}

/// The same words: a test that unwraps shows them to its reader.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Shorthand for the results of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Gives an I/O error its verb and its object.
pub(crate) fn io(action: &'static str, path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Error {
    let path = path.as_ref().to_path_buf();
    move |source| Error::Io { action, path, source }
}
