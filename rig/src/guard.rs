//! Who kills the children when this process dies without a chance to do it itself (Ctrl-C, SIGKILL, abort)?
//!
//! A shell that holds the reading end of a pipe: the kernel closes our end however we end, the shell notices and kills
//! every process group it was told about. A child runs nothing of its own before the guard knows it, so there is no
//! moment in which it could be orphaned.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{Error, Result};
use crate::process::Process;

/// Signals reach the terminal's foreground group; the guard ignores them and answers only to its pipe.
const WATCH: &str = r#"
trap '' INT TERM HUP
pids=
while read -r verb pid; do
  case $verb in
    watch) pids="$pids $pid" ;;
    forget) kept=; for p in $pids; do [ "$p" = "$pid" ] || kept="$kept $p"; done; pids=$kept ;;
    dismissed) exit 0 ;;
  esac
done
for p in $pids; do kill -s KILL -- "-$p" 2>/dev/null; done
for try in 1 2 3 4 5; do rm -rf -- "$1" 2>/dev/null && break; sleep 1; done
"#;

/// Waits for the word, then becomes the program, keeping its process id.
const GATE: &str = r#"read -r word && [ "$word" = go ] && exec "$@" </dev/null"#;

/// The watchdog over the processes of one cluster.
#[derive(Clone)]
pub(crate) struct Guard {
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    shell: Child,
    pipe: Option<ChildStdin>,
}

impl Guard {
    /// A guard that, should this process die, also removes `state`.
    pub(crate) fn over(state: &Path) -> Result<Self> {
        let mut shell = Command::new("sh")
            .args(["-c", WATCH, "rig-guard"])
            .arg(state)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(|source| Error::Spawn {
                program: "the guard (sh)".to_owned(),
                source,
            })?;
        let pipe = shell.stdin.take();
        Ok(Self {
            inner: Arc::new(Mutex::new(Inner { shell, pipe })),
        })
    }

    /// Starts `command` in a process group of its own, with both outputs going to `log`.
    pub(crate) fn spawn(&self, name: &str, command: &Command, log: PathBuf) -> Result<Process> {
        let failed = |source| Error::Spawn {
            program: name.to_owned(),
            source,
        };
        let file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&log)
            .map_err(failed)?;
        let mut gate = gated(command);
        gate.stdin(Stdio::piped())
            .stdout(file.try_clone().map_err(failed)?)
            .stderr(file)
            .process_group(0);
        let mut child = gate.spawn().map_err(failed)?;
        self.tell("watch", child.id());
        if let Some(mut word) = child.stdin.take() {
            word.write_all(b"go\n").map_err(failed)?;
        }
        Ok(Process::new(name, child, log, self.clone()))
    }

    /// `pid` was waited for: its number may soon belong to somebody else.
    pub(crate) fn forget(&self, pid: u32) {
        self.tell("forget", pid);
    }

    /// A guard that cannot be told anything has ended, and then there is nothing left to guard.
    fn tell(&self, verb: &str, pid: u32) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pipe) = &mut inner.pipe {
            let _ = writeln!(pipe, "{verb} {pid}");
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(mut pipe) = self.pipe.take() {
            let _ = writeln!(pipe, "dismissed 0");
        }
        let _ = self.shell.wait();
    }
}

/// The same command behind the gate.
fn gated(command: &Command) -> Command {
    let mut gate = Command::new("sh");
    gate.args(["-c", GATE, "rig-gate"])
        .arg(command.get_program())
        .args(command.get_args());
    for (key, value) in command.get_envs() {
        match value {
            Some(value) => gate.env(key, value),
            None => gate.env_remove(key),
        };
    }
    if let Some(dir) = command.get_current_dir() {
        gate.current_dir(dir);
    }
    gate
}
