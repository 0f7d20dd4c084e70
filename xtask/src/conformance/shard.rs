//! Which specs of upstream's does every run of the tests take along?
//!
//! Those that ask for much and wait for little: none holds still for minutes to see that nothing happens, and none has a
//! deadline that a busy machine misses.

use anyhow::{Context, Result};

use super::report::Report;
use super::spec::Spec;
use super::upstream::Upstream;
use super::{Run, Suite, workspace};
use crate::run;

/// Clusters side by side.
const CLUSTERS: usize = 2;

const SPECS: [&str; 13] = [
    "CapacityBuffer Anti-Affinity should respect pod anti-affinity between virtual buffer pods",
    "CapacityBuffer NodePool Limits should not provision buffer capacity beyond NodePool CPU limit",
    "CapacityBuffer PodTemplateRef Provisioning should provision capacity when a buffer with podTemplateRef is applied",
    "CapacityBuffer ScalableRef Provisioning should recover when scalable ref is created after buffer",
    "DefaultTopologySpreadConstraints should provision a node per pod for a workload its owner is the selector for",
    "Integration CRD Hash should have NodePool hash",
    "Integration DaemonSet should correctly account for host ports of uncached daemonset pods targeting different instance types",
    "NodeClaim StandaloneNodeClaim should create a NodeClaim propagating all the NodeClaim spec details",
    "NodeClaim StandaloneNodeClaim should delete a NodeClaim from the node termination finalizer",
    "NodeClaim StandaloneNodeClaim should delete a NodeClaim if it references a NodeClass that isn't Ready",
    "NodeClaim StandaloneNodeClaim should remove the cloudProvider NodeClaim when the cluster NodeClaim is deleted",
    "StaticCapacity Deprovisioning should scale down to zero",
    "StaticCapacity Provisioning should create static NodeClaim propagating all the NodePool spec details",
];

/// How many specs of the shard ended how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Count {
    /// As demanded, at the first or the second try.
    pub(crate) passed: usize,
    /// Not so.
    pub(crate) failed: usize,
}

/// Runs the shard against the binary of this source. What fails is repeated alone, as in every run of the suites.
pub(crate) fn shard() -> Result<Count> {
    run::run(run::cargo().args(["build", "--quiet", "--locked", "--package", "dovetail"]))?;
    let program = std::env::current_exe()?.with_file_name("dovetail");
    let upstream = Upstream::prepare(&[Suite::Regression])?;
    let specs = chosen(&upstream.specs(&[Suite::Regression], None, None)?)?;
    let out = workspace().join("target/conformance/shard");
    std::fs::create_dir_all(&out)?;
    let count = specs.len();
    let mut report = Report::new(out.clone(), "dovetail", &specs);
    let run = Run {
        upstream: &upstream,
        program: &program,
        out: &out,
    };
    let failed = run.all(specs, CLUSTERS, &mut report)?;
    let failed = run.again(failed, &mut report)?;
    Ok(Count {
        passed: count - failed,
        failed,
    })
}

/// The specs of the shard, as the suite has them.
fn chosen(all: &[Spec]) -> Result<Vec<Spec>> {
    SPECS
        .iter()
        .map(|text| {
            let found = all.iter().find(|spec| spec.text == *text);
            found
                .cloned()
                .with_context(|| format!("the regression suite has no spec {text:?}"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(text: &str) -> Spec {
        Spec {
            suite: Suite::Regression,
            description: "Regression".to_owned(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn shard_is_made_of_specs_that_the_suite_has() {
        let mut all: Vec<_> = SPECS.map(spec).into();
        all.push(spec("another"));
        assert_eq!(chosen(&all).unwrap(), SPECS.map(spec));
        let error = chosen(&[spec("another")]).unwrap_err();
        assert!(error.to_string().contains("has no spec"), "{error}");
    }
}
