//! Where is the source of a published Go module on this machine? Downloads it when it is not there yet.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use crate::error::{Error, Result, io};

#[derive(Deserialize)]
struct Downloaded {
    #[serde(rename = "Dir")]
    dir: PathBuf,
}

/// The folder of `module` at `version` in Go's module cache (read-only), for instance
/// `dir("sigs.k8s.io/karpenter", "v1.15.0")`.
pub fn dir(module: &str, version: &str) -> Result<PathBuf> {
    let empty = tempfile::tempdir().map_err(io("create a folder in", std::env::temp_dir()))?;
    let stdout = go(
        empty.path(),
        ["mod", "download", "-json", &format!("{module}@{version}")],
        &[],
    )?;
    let downloaded: Downloaded = serde_json::from_slice(&stdout).map_err(|reason| Error::Go {
        command: format!("mod download -json {module}@{version}"),
        dir: empty.path().to_path_buf(),
        stderr: reason.to_string(),
    })?;
    Ok(downloaded.dir)
}

/// Runs `go` in `dir` and returns what it printed.
///
/// The environment starts from the caller's, without the settings that would turn a build of a foreign module into
/// something else (a workspace file, vendoring), then `env` is laid over it.
pub fn go<S: AsRef<OsStr>>(dir: &Path, args: impl IntoIterator<Item = S>, env: &[(&str, &str)]) -> Result<Vec<u8>> {
    let mut command = command(dir, env);
    command.args(args);
    let words: Vec<_> = command
        .get_args()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let output = command.output().map_err(missing)?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let stderr = [output.stderr, output.stdout].concat();
    Err(Error::Go {
        command: words.join(" "),
        dir: dir.to_path_buf(),
        stderr: String::from_utf8_lossy(&stderr).trim().to_owned(),
    })
}

fn command(dir: &Path, env: &[(&str, &str)]) -> Command {
    let mut command = Command::new("go");
    command
        .current_dir(dir)
        .env("GOWORK", "off")
        .env_remove("GOOS")
        .env_remove("GOARCH");
    // Published modules may ask for a newer Go than the installed one; it comes as a module itself.
    command
        .env("GOTOOLCHAIN", "auto")
        .env("GOFLAGS", "-mod=mod -buildvcs=false")
        .envs(env.iter().copied());
    command
}

fn missing(source: std::io::Error) -> Error {
    match source.kind() {
        ErrorKind::NotFound => Error::GoMissing,
        _ => Error::Spawn {
            program: "go".to_owned(),
            source,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failing_go_command_is_reported_with_its_own_words() {
        let tmp = tempfile::tempdir().unwrap();
        let error = match go(tmp.path(), ["no-such-command"], &[]) {
            Err(Error::GoMissing) => return,
            other => other.unwrap_err(),
        };
        assert!(error.to_string().contains("unknown command"), "{error}");
    }
}
