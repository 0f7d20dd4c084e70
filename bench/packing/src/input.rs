//! Which inputs are compared? A generated workload as a file for upstream and as a snapshot for us.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use model::dump::{self, Mode, Source};
use model::snapshot::Snapshot;
use serde_json::json;
use workloads::object::{node_pool, pod, requirement, unschedulable};

/// One workload, for both.
pub struct Input {
    /// The workload's name.
    pub name: String,
    /// What upstream reads.
    pub file: PathBuf,
    /// What we plan for.
    pub snapshot: Snapshot,
}

impl Input {
    /// Writes a generated workload into a directory and reads it back.
    pub fn generate(workload: &workloads::Snapshot, dir: &Path) -> Result<Self> {
        let file = dir.join(format!("{}.json", workload.name()));
        fs::write(&file, serde_json::to_vec(workload)?).with_context(|| format!("cannot write {}", file.display()))?;
        Self::read(&file)
    }

    /// Replicas of one Deployment, over what EC2 sells of current c, m and r machines in three zones.
    pub fn deployment_on_aws(replicas: u64, dir: &Path) -> Result<Self> {
        let workload = Self::generate(&deployment(replicas), dir)?;
        let loaded = catalogue::load(catalogue::Source::Aws, None, &[])?;
        let snapshot = Snapshot::new(
            workload.snapshot.title().clone(),
            workload.snapshot.settings().clone(),
            workload.snapshot.objects().clone(),
            loaded.catalog,
        );
        let mut out = BufWriter::new(File::create(&workload.file)?);
        dump::write(&snapshot, &mut out)?;
        out.flush()?;
        Ok(Self { snapshot, ..workload })
    }

    /// Reads a snapshot file.
    pub fn read(file: &Path) -> Result<Self> {
        let options = dump::Options {
            mode: Mode::Strict,
            taken_at: jiff::Timestamp::UNIX_EPOCH,
        };
        let (snapshot, _) = dump::read([Source::Path(file.to_owned())], options)
            .with_context(|| format!("cannot read {}", file.display()))?;
        Ok(Self {
            name: snapshot.title().name.clone(),
            file: file.to_owned(),
            snapshot,
        })
    }
}

/// One-core pods without constraints, and a pool of about nine hundred machine types.
fn deployment(replicas: u64) -> workloads::Snapshot {
    let name = format!("deployment-{replicas}-aws");
    let mut workload = workloads::Snapshot::new(&name, "one Deployment on EC2", Vec::new(), &[]);
    let class = json!({ "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" });
    let machines = json!([
        requirement("karpenter.k8s.aws/instance-category", "In", &["c", "m", "r"]),
        requirement("karpenter.k8s.aws/instance-generation", "Gt", &["3"]),
        requirement("karpenter.sh/capacity-type", "In", &["spot", "on-demand"]),
    ]);
    workload
        .objects
        .push(node_pool("default", &class).with("spec.template.spec.requirements", machines));
    let pods = (0..replicas).map(|index| unschedulable(pod("default", &format!("web-{index:05}"), 1000, 2048)));
    workload.objects.extend(pods);
    workload
}
