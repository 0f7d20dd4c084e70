//! Which specs of upstream's does every run of the tests take along?
//!
//! Those that ask for much and wait for little: none holds still for minutes to see that nothing happens, and none has a
//! deadline that a busy machine misses.

use std::path::Path;

use anyhow::{Context, Result};

use super::report::Report;
use super::spec::Spec;
use super::upstream::Upstream;
use super::{Run, Suite, workspace};

/// Clusters side by side.
const CLUSTERS: usize = 2;

const SUITES: [Suite; 2] = [Suite::Regression, Suite::Disruption];

const REGRESSION: [&str; 12] = [
    "CapacityBuffer Anti-Affinity should respect pod anti-affinity between virtual buffer pods",
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

const DISRUPTION: [&str; 3] = [
    "Drift Budgets should respect budgets for empty drift",
    "Drift NodePool Drift Taints",
    "Termination Emptiness should terminate an empty node",
];

/// How many specs of the shard ended how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Count {
    /// As demanded, at the first or the second try.
    pub(crate) passed: usize,
    /// Not so.
    pub(crate) failed: usize,
}

/// Runs the shard against a binary. What fails is repeated alone, as in every run of the suites.
pub(crate) fn shard(program: &Path) -> Result<Count> {
    let upstream = Upstream::prepare(&SUITES)?;
    let specs = chosen(&upstream.specs(&SUITES, None, None)?)?;
    let out = workspace().join("target/conformance/shard");
    std::fs::create_dir_all(&out)?;
    let count = specs.len();
    let mut report = Report::new(out.clone(), "dovetail", &specs);
    let run = Run {
        upstream: &upstream,
        program,
        out: &out,
    };
    let failed = run.all(specs, CLUSTERS, &mut report)?;
    let failed = run.again(failed, &mut report)?;
    Ok(Count {
        passed: count - failed,
        failed,
    })
}

/// The specs of the shard, as the suites have them.
fn chosen(all: &[Spec]) -> Result<Vec<Spec>> {
    let of = |suite: Suite| move |text| (suite, text);
    let regression = REGRESSION.into_iter().map(of(Suite::Regression));
    let disruption = DISRUPTION.into_iter().map(of(Suite::Disruption));
    regression
        .chain(disruption)
        .map(|(suite, text)| {
            let found = all.iter().find(|spec| spec.suite == suite && spec.text == text);
            found
                .cloned()
                .with_context(|| format!("the {} suite has no spec {text:?}", suite.name()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(suite: Suite, text: &str) -> Spec {
        Spec {
            suite,
            description: "Regression".to_owned(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn shard_is_made_of_specs_that_the_suites_have() {
        let mut all: Vec<_> = REGRESSION.map(|text| spec(Suite::Regression, text)).into();
        let error = chosen(&all).unwrap_err();
        assert!(
            error.to_string().contains("the disruption suite has no spec"),
            "{error}"
        );
        all.extend(DISRUPTION.map(|text| spec(Suite::Disruption, text)));
        let shard = all.clone();
        all.push(spec(Suite::Disruption, REGRESSION[0]));
        assert_eq!(chosen(&all).unwrap(), shard);
    }
}
