//! Where do upstream's suites and its controller come from? The published module, compiled once and kept.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use rig::build::{KWOK, announced};
use rig::{cache, gomod};

use super::Suite;
use super::spec::{self, Spec};

pub(crate) const MODULE: &str = "sigs.k8s.io/karpenter";
/// The release whose behaviour is ours.
pub(crate) const VERSION: &str = "v1.15.0";
/// The module asks for this Go; it comes as a module too.
const GO_ENV: [(&str, &str); 2] = [("GOTOOLCHAIN", "go1.26.9"), ("CGO_ENABLED", "0")];

/// Upstream's source in a writable place, and what was compiled from it.
pub(crate) struct Upstream {
    root: PathBuf,
    stages: Vec<PathBuf>,
}

impl Upstream {
    /// Copies the module and compiles the suites; what is there already is not made again.
    pub(crate) fn prepare(suites: &[Suite]) -> Result<Self> {
        let root = cache::root()?.join(format!("karpenter/{}", VERSION.trim_start_matches('v')));
        let module = gomod::dir(MODULE, VERSION)?;
        // The suites read files beside their source, and the module cache is read-only.
        cache::once(&root.join("source"), |partial| copy(&module, partial))?;
        register_options(&root.join("source"))?;
        let upstream = Self {
            stages: stages(&module)?,
            root,
        };
        for suite in suites {
            upstream.compile(
                &["test", "-c"],
                &format!("./test/suites/{}", suite.name()),
                suite.name(),
            )?;
        }
        if suites.contains(&Suite::Dra) {
            upstream.dra_driver()?;
        }
        Ok(upstream)
    }

    /// Upstream's controller for kwok.
    pub(crate) fn controller(&self) -> Result<PathBuf> {
        self.compile(&["build"], "./kwok", "karpenter")
    }

    /// The stand-in for DRA drivers that the dra suite wants beside the controller.
    pub(crate) fn dra_driver(&self) -> Result<PathBuf> {
        self.compile(&["build"], "./dra-kwok-driver", "dra-kwok-driver")
    }

    /// The folders with the CRDs the suites expect.
    pub(crate) fn crds(&self, suite: Suite) -> Vec<PathBuf> {
        let mut folders = vec!["kwok/charts/crds", "kwok/apis/crds"];
        if suite == Suite::Dra {
            folders.push("dra-kwok-driver/pkg/apis/crds");
        }
        folders.into_iter().map(|folder| self.source().join(folder)).collect()
    }

    /// kwok's own stages, with those that upstream replaces.
    pub(crate) fn stages(&self) -> &[PathBuf] {
        &self.stages
    }

    /// The configuration upstream's cluster gives to kube-scheduler.
    pub(crate) fn scheduler_config(&self) -> Result<String> {
        let path = self
            .source()
            .join("test/suites/regression/testdata/kube-scheduler-config.yaml");
        fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
    }

    /// A suite's compiled test, in the folder it must run in.
    pub(crate) fn test(&self, suite: Suite) -> Command {
        let mut command = Command::new(self.root.join(suite.name()).join(suite.name()));
        command.current_dir(self.source().join("test/suites").join(suite.name()));
        command
    }

    /// The specs of `suites` whose text matches `focus`.
    pub(crate) fn specs(&self, suites: &[Suite], focus: Option<&str>) -> Result<Vec<Spec>> {
        let mut specs = Vec::new();
        for suite in suites {
            let list = self.root.join(format!("{}-{}.json", suite.name(), std::process::id()));
            let mut command = self.test(*suite);
            command
                .arg("--ginkgo.dry-run")
                .arg(format!("--ginkgo.json-report={}", list.display()));
            command.args(focus.map(|focus| format!("--ginkgo.focus={focus}")));
            let output = command.stdin(Stdio::null()).output().context("listing the specs")?;
            if !output.status.success() {
                bail!("listing the specs failed: {}", String::from_utf8_lossy(&output.stdout));
            }
            specs.extend(spec::selected(*suite, &list)?);
            fs::remove_file(&list)?;
        }
        Ok(specs)
    }

    /// The writable copy of the module.
    pub(crate) fn source(&self) -> PathBuf {
        self.root.join("source")
    }

    fn compile(&self, verb: &[&str], package: &str, name: &str) -> Result<PathBuf> {
        let dir = self.root.join(name);
        cache::once(&dir, |partial| {
            let target = partial.join(name).display().to_string();
            let args = verb.iter().copied().chain(["-o", &target, package]);
            announced(&format!("compiling upstream's {name}"), || {
                gomod::go(&self.source(), args, &GO_ENV).map(drop)
            })
        })?;
        Ok(dir.join(name))
    }
}

/// The released dra suite registers its kind without the options of its group's requests, so that its client refuses to
/// create one. This says what is missing, in the copy; the suite's specs stay as they are.
fn register_options(source: &Path) -> Result<()> {
    let path = source.join("dra-kwok-driver/pkg/apis/v1alpha1/register_options.go");
    fs::write(&path, include_str!("register_options.go.txt")).with_context(|| format!("writing {}", path.display()))
}

/// Upstream's stages take the place of kwok's of the same name, as applying both in turn does on upstream's clusters.
fn stages(module: &Path) -> Result<Vec<PathBuf>> {
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
    let own = module.join("hack/kwok/stages");
    let mut replaced: Vec<_> = fs::read_dir(&own)
        .with_context(|| format!("reading {}", own.display()))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<std::io::Result<_>>()?;
    replaced.sort();
    stages.append(&mut replaced);
    Ok(stages)
}

fn copy(from: &Path, to: &Path) -> rig::Result<()> {
    let failed = |action, path: &Path| {
        let path = path.to_path_buf();
        move |source| rig::Error::Io { action, path, source }
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
