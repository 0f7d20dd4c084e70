//! How does kwok play kubelets? The stages for the rig's own tests, and the flags upstream's suites run it with.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Result, io};

/// kwok minds the nodes of one partition and renews their leases; everything else comes from the stages.
pub(crate) const FLAGS: [&str; 4] = [
    "--manage-all-nodes=false",
    "--manage-nodes-with-label-selector=kwok-partition=a",
    "--node-lease-duration-seconds=40",
    "--cidr=10.0.0.1/16",
];

const STAGES: [(&str, &str); 3] = [
    ("node-ready.yaml", include_str!("../stages/node-ready.yaml")),
    ("pod-running.yaml", include_str!("../stages/pod-running.yaml")),
    ("pod-gone.yaml", include_str!("../stages/pod-gone.yaml")),
];

/// Writes the rig's own stages into `dir` and returns their paths.
pub(crate) fn write_stages(dir: &Path) -> Result<Vec<PathBuf>> {
    fs::create_dir_all(dir).map_err(io("create", dir))?;
    let write = |(name, text): &(&str, &str)| {
        let path = dir.join(name);
        fs::write(&path, text).map_err(io("write", &path)).map(|()| path)
    };
    STAGES.iter().map(write).collect()
}
