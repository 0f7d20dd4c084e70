//! Is a process of the cluster still running, what did it say, and how does it end?

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use crate::deadline::Deadline;
use crate::error::{Error, Result};
use crate::guard::Guard;

const TAIL_LINES: usize = 20;

/// A running process with its log; dropping it kills it, its children too.
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
    guard: Guard,
    ended: Option<ExitStatus>,
}

impl Process {
    pub(crate) fn new(name: &str, child: Child, log: PathBuf, guard: Guard) -> Self {
        Self {
            name: name.to_owned(),
            child,
            log,
            guard,
            ended: None,
        }
    }

    /// Its process id, which is also the id of its process group.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Where both of its outputs go.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// How it ended, if it did.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().ok().flatten();
            if self.ended.is_some() {
                self.guard.forget(self.child.id());
            }
        }
        self.ended
    }

    /// An error with the end of its log, when it is no longer running.
    pub fn check(&mut self) -> Result<()> {
        let Some(status) = self.ended() else { return Ok(()) };
        Err(Error::Died {
            process: self.name.clone(),
            status: status.to_string(),
            log: self.log.clone(),
            tail: tail(&self.log),
        })
    }

    /// Asks it to end, and kills it after `grace`. Returns when it is gone.
    pub fn stop(&mut self, grace: Duration) {
        self.signal(Signal::TERM);
        let deadline = Deadline::within(grace);
        while self.ended().is_none()
            && deadline
                .pause("its end", String::new(), Duration::from_millis(20))
                .is_ok()
        {}
        self.kill();
    }

    /// Ends it at once, without a chance to clean up. Returns when it is gone.
    pub fn kill(&mut self) {
        if self.ended().is_some() {
            return;
        }
        self.signal(Signal::KILL);
        self.ended = self.child.wait().ok();
        self.guard.forget(self.child.id());
    }

    /// Stops it where it is, until [`Process::thaw`].
    pub fn freeze(&mut self) {
        self.signal(Signal::STOP);
    }

    /// Lets a frozen process go on.
    pub fn thaw(&mut self) {
        self.signal(Signal::CONT);
    }

    /// A process that was waited for is never signalled: its number may be somebody else's by now.
    fn signal(&mut self, signal: Signal) {
        if self.ended().is_some() {
            return;
        }
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The last lines of a log, for an error message.
pub(crate) fn tail(log: &Path) -> String {
    let bytes = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}
