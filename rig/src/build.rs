//! Where are the control plane's binaries? Built from published Go modules on first use, kept by version.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use crate::deadline::Deadline;
use crate::error::{Error, Result, io};
use crate::{cache, gomod};

/// The release of kwok whose stages and behaviour the rig counts on.
pub const KWOK: &str = "v0.8.0";

/// A release of Kubernetes, as `1.36.3`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KubernetesVersion {
    minor: u32,
    patch: u32,
}

impl Default for KubernetesVersion {
    fn default() -> Self {
        Self { minor: 36, patch: 3 }
    }
}

impl fmt::Display for KubernetesVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1.{}.{}", self.minor, self.patch)
    }
}

impl FromStr for KubernetesVersion {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = || Error::KubernetesVersion(text.to_owned());
        let parts: Vec<&str> = text.trim_start_matches('v').split('.').collect();
        let ["1", minor, patch] = parts[..] else {
            return Err(wrong());
        };
        Ok(Self {
            minor: minor.parse().map_err(|_| wrong())?,
            patch: patch.parse().map_err(|_| wrong())?,
        })
    }
}

/// The folder with `etcd`, `kube-apiserver`, `kube-scheduler`, `kube-controller-manager` and `kwok`; builds them when they
/// are not there, which takes minutes and says so on standard error.
pub fn control_plane(kubernetes: &KubernetesVersion) -> Result<PathBuf> {
    let dir = cache::root()?.join(format!("controlplane/{kubernetes}-{}", KWOK.trim_start_matches('v')));
    cache::once(&dir, |partial| {
        let work = tempfile::tempdir().map_err(io("create a folder in", std::env::temp_dir()))?;
        kubernetes_binaries(kubernetes, &subfolder(work.path(), "kubernetes")?, partial)?;
        kwok_binary(&subfolder(work.path(), "kwok")?, partial)
    })?;
    Ok(dir)
}

fn kubernetes_binaries(version: &KubernetesVersion, work: &Path, out: &Path) -> Result<()> {
    const ETCD: &str = "go.etcd.io/etcd/server/v3";
    let commands = ["kube-apiserver", "kube-scheduler", "kube-controller-manager"];
    let packages = commands.map(|name| format!("k8s.io/kubernetes/cmd/{name}"));
    let source = gomod::dir("k8s.io/kubernetes", &format!("v{version}"))?;
    let own = fs::read_to_string(source.join("go.mod")).map_err(io("read", source.join("go.mod")))?;
    module(
        work,
        &kubernetes_go_mod(version, &own),
        packages.iter().map(String::as_str).chain([ETCD]),
    )?;
    // Without these the server calls itself v0.0.0, and clients refuse or misbehave.
    let at = "k8s.io/component-base/version";
    let minor = version.minor;
    let flags = format!("-s -w -X {at}.gitVersion=v{version} -X {at}.gitMajor=1 -X {at}.gitMinor={minor}");
    go_build(work, out, "etcd", ETCD, &flags)?;
    for (name, package) in commands.iter().zip(&packages) {
        go_build(work, out, name, package, &flags)?;
    }
    Ok(())
}

fn kwok_binary(work: &Path, out: &Path) -> Result<()> {
    const PACKAGE: &str = "sigs.k8s.io/kwok/cmd/kwok";
    let go_mod = format!("module rig\n\ngo 1.26.0\n\nrequire sigs.k8s.io/kwok {KWOK}\n");
    module(work, &go_mod, [PACKAGE].into_iter())?;
    go_build(work, out, "kwok", PACKAGE, "-s -w")
}

/// Kubernetes points its staging modules at folders of its own tree, which a consumer does not inherit: each is pinned to
/// the release of the same number instead.
fn kubernetes_go_mod(version: &KubernetesVersion, own: &str) -> String {
    let KubernetesVersion { minor, patch } = version;
    let mut staged: Vec<_> = own
        .lines()
        .filter_map(|line| line.trim().split_once(" => ./staging/"))
        .map(|(module, _)| module.trim_start_matches("replace ").trim())
        .collect();
    staged.sort_unstable();
    staged.dedup();
    let pins: Vec<_> = staged
        .iter()
        .map(|name| format!("\t{name} => {name} v0.{minor}.{patch}"))
        .collect();
    let pins = pins.join("\n");
    format!("module rig\n\ngo 1.26.0\n\nrequire k8s.io/kubernetes v{version}\n\nreplace (\n{pins}\n)\n")
}

/// A module that needs `packages`, with all their requirements resolved.
fn module<'a>(dir: &Path, go_mod: &str, packages: impl Iterator<Item = &'a str>) -> Result<()> {
    let imports: Vec<_> = packages.map(|package| format!("\t_ {package:?}")).collect();
    let tools = format!(
        "//go:build tools\n\npackage tools\n\nimport (\n{}\n)\n",
        imports.join("\n")
    );
    for (name, content) in [("go.mod", go_mod), ("tools.go", &tools)] {
        fs::write(dir.join(name), content).map_err(io("write", dir.join(name)))?;
    }
    announced("resolving the modules of the control plane", || {
        gomod::go(dir, ["mod", "tidy"], &[]).map(drop)
    })
}

fn go_build(dir: &Path, out: &Path, name: &str, package: &str, flags: &str) -> Result<()> {
    let target = out.join(name).display().to_string();
    announced(&format!("building {name}"), || {
        gomod::go(
            dir,
            ["build", "-trimpath", "-ldflags", flags, "-o", &target, package],
            &[],
        )
        .map(drop)
    })
}

fn subfolder(dir: &Path, name: &str) -> Result<PathBuf> {
    let path = dir.join(name);
    fs::create_dir(&path).map_err(io("create", &path))?;
    Ok(path)
}

/// Runs a long step, saying on standard error that it goes on and for how long.
pub fn announced<T>(what: &str, step: impl FnOnce() -> Result<T>) -> Result<T> {
    let clock = Deadline::within(Duration::MAX);
    let (done, ended) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            eprintln!("rig: {what} ...");
            while ended.recv_timeout(Duration::from_secs(15)) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                eprintln!("rig: {what} ... {} s", clock.elapsed().as_secs());
            }
            eprintln!("rig: {what}: {:.1} s", clock.elapsed().as_secs_f64());
        });
        let result = step();
        drop(done);
        result
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubernetes_versions_are_read_as_people_write_them() {
        let cases = [
            ("1.36.3", Some("1.36.3")),
            ("v1.34.4", Some("1.34.4")),
            ("1.36", None),
            ("2.0.0", None),
            ("1.36.x", None),
            ("", None),
        ];
        for (text, want) in cases {
            let got = text
                .parse::<KubernetesVersion>()
                .ok()
                .map(|version| version.to_string());
            assert_eq!(got.as_deref(), want, "{text:?}");
        }
    }

    #[test]
    fn staging_modules_are_pinned_to_the_release() {
        let own = "replace (\n\tk8s.io/api => ./staging/src/k8s.io/api\n\tk8s.io/x => ../x\n)\n";
        let version = "1.36.3".parse().unwrap();
        let want = "module rig\n\ngo 1.26.0\n\nrequire k8s.io/kubernetes v1.36.3\n\nreplace (\n\tk8s.io/api => k8s.io/api v0.36.3\n)\n";
        assert_eq!(kubernetes_go_mod(&version, own), want);
    }
}
