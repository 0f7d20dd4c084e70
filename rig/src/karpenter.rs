//! Where does upstream come from? The published module, copied to where it may be built, compiled once and kept.

use std::fs;
use std::path::{Path, PathBuf};

use crate::build::{KWOK, announced};
use crate::error::{Error, Result, io};
use crate::{cache, gomod};

/// Upstream's module.
pub const MODULE: &str = "sigs.k8s.io/karpenter";
/// The release whose behaviour is ours.
pub const VERSION: &str = "v1.15.0";
/// The module asks for this Go; it comes as a module too.
const GO_ENV: [(&str, &str); 2] = [("GOTOOLCHAIN", "go1.26.9"), ("CGO_ENABLED", "0")];

/// Where everything of this release is kept.
pub fn root() -> Result<PathBuf> {
    Ok(cache::root()?.join(format!("karpenter/{}", VERSION.trim_start_matches('v'))))
}

/// A writable copy of the module: its suites read files beside their source, and the module cache is read-only.
pub fn source() -> Result<PathBuf> {
    let source = root()?.join("source");
    let module = gomod::dir(MODULE, VERSION)?;
    cache::once(&source, |partial| copy(&module, partial))?;
    Ok(source)
}

/// Upstream's controller for kwok.
pub fn controller() -> Result<PathBuf> {
    compile(&["build"], "./kwok", "karpenter")
}

/// Compiles a package of the module under a name, once.
pub fn compile(verb: &[&str], package: &str, name: &str) -> Result<PathBuf> {
    let source = source()?;
    let dir = root()?.join(name);
    cache::once(&dir, |partial| {
        let target = partial.join(name).display().to_string();
        let args = verb.iter().copied().chain(["-o", &target, package]);
        announced(&format!("compiling upstream's {name}"), || {
            gomod::go(&source, args, &GO_ENV).map(drop)
        })
    })?;
    Ok(dir.join(name))
}

/// kwok's own stages, with those that upstream replaces: of the same name, as applying both in turn does on upstream's
/// clusters.
pub fn stages() -> Result<Vec<PathBuf>> {
    let kwok = gomod::dir("sigs.k8s.io/kwok", KWOK)?;
    let fast = [
        "node/fast/node-initialize",
        "pod/fast/pod-ready",
        "pod/fast/pod-complete",
    ];
    let mut stages: Vec<_> = fast
        .iter()
        .map(|name| kwok.join(format!("kustomize/stage/{name}.yaml")))
        .collect();
    let own = gomod::dir(MODULE, VERSION)?.join("hack/kwok/stages");
    let mut replaced: Vec<_> = fs::read_dir(&own)
        .map_err(io("read", &own))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<std::io::Result<_>>()
        .map_err(io("read", &own))?;
    replaced.sort();
    stages.append(&mut replaced);
    Ok(stages)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let failed = |action, path: &Path| {
        let path = path.to_path_buf();
        move |source| Error::Io { action, path, source }
    };
    for entry in fs::read_dir(from).map_err(failed("read", from))? {
        let entry = entry.map_err(failed("read", from))?;
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            fs::create_dir(&target).map_err(failed("create", &target))?;
            copy(&entry.path(), &target)?;
        } else {
            // The content alone: the files of the module cache are read-only.
            let content = fs::read(entry.path()).map_err(failed("read", &entry.path()))?;
            fs::write(&target, content).map_err(failed("write", &target))?;
        }
    }
    Ok(())
}
