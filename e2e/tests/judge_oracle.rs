//! Does the judge accept what upstream plans? Upstream's plans are right until shown otherwise, so an alarm is either a
//! fault of the judge or something that cannot bind, which `docs/upstream.md` then names.
//!
//! Needs Go: the reference is built from upstream's module on first use.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

use std::process::Command;

use e2e::oracle_plan;
use model::dump;
use scheduler::Verdict;
use workloads::{
    Shape, Snapshot,
    diverse::{Types, diverse, preferences},
    random,
};

/// Upstream's plan for a snapshot, judged.
fn judged(snapshot: &Snapshot) -> Verdict {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("snapshot.json");
    std::fs::write(&file, serde_json::to_vec(snapshot).unwrap()).unwrap();
    let program = rig::reference::program().unwrap();
    let output = Command::new(program).arg("solve").arg(&file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let options = dump::Options {
        mode: dump::Mode::Strict,
        taken_at: jiff::Timestamp::UNIX_EPOCH,
    };
    let (read, _) = dump::read([dump::Source::Path(file)], options).unwrap();
    let plan = oracle_plan::plan(&read, serde_json::from_slice(&output.stdout).unwrap()).unwrap();
    scheduler::examine(&read, &plan)
}

fn alarms(name: &str, verdict: &Verdict) -> Vec<String> {
    let violations = verdict.violations.iter().filter(|violation| violation.is_proven());
    violations.map(|violation| format!("{name}: {violation}")).collect()
}

#[test]
fn upstreams_benchmark_shapes_pass_but_for_named_doubts() {
    let shapes = [
        diverse(300, Types::Fake400),
        diverse(300, Types::Assorted),
        preferences(200, Types::Fake400, true),
        preferences(200, Types::Fake400, false),
        Shape::FleetMixed { pods: 100, seed: 1 }.generate(),
    ];
    for shape in shapes {
        assert_eq!(alarms(shape.name(), &judged(&shape)), Vec::<String>::new());
    }
}

#[test]
fn random_clusters_pass_but_for_named_doubts() {
    let found: Vec<String> = (0..60)
        .map(random::random)
        .filter(random::is_seen_alike)
        .flat_map(|snapshot| alarms(snapshot.name(), &judged(&snapshot)))
        .collect();
    assert_eq!(found, Vec::<String>::new());
}
