//! What did upstream's performance suite measure, of the reference and of us? Its reports, side by side.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::VERSION;

/// The suite writes one file of this name for each of its phases.
const SUFFIX: &str = "_performance_report.json";

/// What the suite says about a phase; it says more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Phase {
    test_name: String,
    /// In nanoseconds.
    total_time: u64,
    total_pods: u64,
    total_nodes: u64,
    pods_disrupted: i64,
    total_reserved_cpu_utilization: f64,
    total_reserved_memory_utilization: f64,
    karpenter_p95_memory_mb: f64,
    karpenter_avg_cpu_cores: f64,
}

type Phases = BTreeMap<String, Phase>;

/// Takes the reports of a run of the controller called `name` into the tables.
pub(crate) fn gather(reports: &Path, tables: &Path, name: &str) -> Result<()> {
    let path = kept(tables, name);
    let mut phases = read(&path);
    phases.extend(found(reports)?);
    if phases.is_empty() {
        return Ok(());
    }
    write(&path, &(serde_json::to_string_pretty(&phases)? + "\n"))?;
    let (reference, ours) = (read(&kept(tables, "reference")), read(&kept(tables, "dovetail")));
    write(&tables.join("performance.md"), &markdown(&reference, &ours))
}

fn kept(tables: &Path, name: &str) -> std::path::PathBuf {
    tables.join(format!("performance-{name}-reports.json"))
}

fn read(path: &Path) -> Phases {
    let text = fs::read_to_string(path).ok();
    text.and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default()
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("writing {}", path.display()))
}

fn found(reports: &Path) -> Result<Phases> {
    let mut phases = Phases::new();
    for entry in fs::read_dir(reports).with_context(|| format!("reading {}", reports.display()))? {
        let path = entry?.path();
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        let Some(phase) = name.strip_suffix(SUFFIX) else {
            continue;
        };
        let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let report =
            serde_json::from_str(&text).with_context(|| format!("{} is not a report of the suite", path.display()))?;
        phases.insert(phase.to_owned(), report);
    }
    Ok(phases)
}

fn markdown(reference: &Phases, ours: &Phases) -> String {
    let mut text = format!(
        "# What upstream's performance suite ({VERSION}) measured\n\n\
         Each phase with upstream's own kwok controller and with Dovetail, on the same machine, one after the other; seconds depend on the machine \
         and its load. The time of a consolidation ends with three quiet minutes that the suite waits for, that of a drift with two. \
         \"p95 MB\" is resident memory, \"cores\" the average use of the controller's process. \
         Made by `cargo xtask conformance --suite performance`.\n\n\
         | phase | controller | seconds | pods | nodes | pods moved | CPU reserved | memory reserved | p95 MB | cores |\n\
         |---|---|---|---|---|---|---|---|---|---|\n"
    );
    let names: std::collections::BTreeSet<_> = reference.keys().chain(ours.keys()).collect();
    for name in names {
        for (who, phases) in [("reference", reference), ("dovetail", ours)] {
            if let Some(phase) = phases.get(name) {
                let _ = writeln!(text, "| {name} | {who} | {} |", cells(phase));
            }
        }
    }
    text
}

fn cells(phase: &Phase) -> String {
    [
        format!("{}", phase.total_time / 1_000_000_000),
        phase.total_pods.to_string(),
        phase.total_nodes.to_string(),
        phase.pods_disrupted.to_string(),
        format!("{:.0} %", phase.total_reserved_cpu_utilization * 100.0),
        format!("{:.0} %", phase.total_reserved_memory_utilization * 100.0),
        format!("{:.0}", phase.karpenter_p95_memory_mb),
        format!("{:.3}", phase.karpenter_avg_cpu_cores),
    ]
    .join(" | ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(nodes: u64) -> String {
        serde_json::json!({
            "test_name": "Scale Out Test", "test_type": "scale-out", "total_time": 12_300_000_000_u64, "total_pods": 1000,
            "total_nodes": nodes, "pods_disrupted": 0, "total_reserved_cpu_utilization": 0.625,
            "total_reserved_memory_utilization": 0.5, "karpenter_p95_memory_mb": 40.2, "karpenter_avg_cpu_cores": 0.125,
        })
        .to_string()
    }

    #[test]
    fn reports_of_both_controllers_stand_side_by_side_and_stay_until_measured_anew() {
        let (reports, tables) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = reports.path().join("scale_out_performance_report.json");
        for (name, nodes) in [("reference", 30), ("dovetail", 21), ("dovetail", 20)] {
            fs::write(&path, report(nodes)).unwrap();
            gather(reports.path(), tables.path(), name).unwrap();
        }
        let table = fs::read_to_string(tables.path().join("performance.md")).unwrap();
        let rows: Vec<_> = table.lines().filter(|line| line.starts_with("| scale_out")).collect();
        assert_eq!(
            rows,
            [
                "| scale_out | reference | 12 | 1000 | 30 | 0 | 62 % | 50 % | 40 | 0.125 |",
                "| scale_out | dovetail | 12 | 1000 | 20 | 0 | 62 % | 50 % | 40 | 0.125 |",
            ]
        );
    }
}
