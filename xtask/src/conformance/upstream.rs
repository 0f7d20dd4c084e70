//! Where do upstream's suites and its controller come from? The published module, compiled once and kept.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use rig::karpenter;

use super::Suite;
use super::spec::{self, Spec};

pub(crate) use rig::karpenter::{MODULE, VERSION};

/// Upstream's source in a writable place, and what was compiled from it.
pub(crate) struct Upstream {
    root: PathBuf,
    stages: Vec<PathBuf>,
}

impl Upstream {
    /// Copies the module and compiles the suites; what is there already is not made again.
    pub(crate) fn prepare(suites: &[Suite]) -> Result<Self> {
        register_options(&karpenter::source()?)?;
        let upstream = Self {
            root: karpenter::root()?,
            stages: karpenter::stages()?,
        };
        for suite in suites {
            karpenter::compile(
                &["test", "-c"],
                &format!("./test/suites/{}", suite.name()),
                suite.name(),
            )?;
        }
        if suites.contains(&Suite::Dra) {
            Self::dra_driver()?;
        }
        Ok(upstream)
    }

    /// Upstream's controller for kwok.
    pub(crate) fn controller() -> Result<PathBuf> {
        Ok(karpenter::controller()?)
    }

    /// The stand-in for DRA drivers that the dra suite wants beside the controller.
    pub(crate) fn dra_driver() -> Result<PathBuf> {
        Ok(karpenter::compile(&["build"], "./dra-kwok-driver", "dra-kwok-driver")?)
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

    /// The specs of `suites` whose text matches `focus` and not `skip`.
    pub(crate) fn specs(&self, suites: &[Suite], focus: Option<&str>, skip: Option<&str>) -> Result<Vec<Spec>> {
        let mut specs = Vec::new();
        for suite in suites {
            let list = self.root.join(format!("{}-{}.json", suite.name(), std::process::id()));
            let mut command = self.test(*suite);
            command
                .arg("--ginkgo.dry-run")
                .arg(format!("--ginkgo.json-report={}", list.display()));
            command.args(focus.map(|focus| format!("--ginkgo.focus={focus}")));
            command.args(skip.map(|skip| format!("--ginkgo.skip={skip}")));
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
}

/// The released dra suite registers its kind without the options of its group's requests, so that its client refuses to
/// create one. This says what is missing, in the copy; the suite's specs stay as they are.
fn register_options(source: &Path) -> Result<()> {
    let path = source.join("dra-kwok-driver/pkg/apis/v1alpha1/register_options.go");
    fs::write(&path, include_str!("register_options.go.txt")).with_context(|| format!("writing {}", path.display()))
}
