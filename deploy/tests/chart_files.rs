//! The charts as files: copies that are fresh, versions that agree, values that are described, checked and tried. What
//! Helm and an API server make of them is asked in `e2e/tests/chart_install.rs`.
// Clippy sees tests only in test functions; here everything is one.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use deploy::{read, root};
use serde_json::Value;

const CHART: &str = "charts/dovetail";

fn yaml(path: &str) -> Value {
    serde_saphyr::from_str(&read(path).unwrap()).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn folder(path: &str) -> BTreeMap<String, String> {
    let entries = fs::read_dir(root().join(path))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    entries
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, fs::read_to_string(&path).unwrap())
        })
        .collect()
}

/// Puts fresh copies in place where that is asked for, and names those that were not fresh.
fn stale(target: &str, want: &BTreeMap<String, String>) -> Vec<String> {
    let is_asked = std::env::var("DOVETAIL_WRITE_PAGES").is_ok();
    let have = folder(target);
    let names: BTreeSet<&String> = have.keys().chain(want.keys()).collect();
    let differs = names.into_iter().filter(|name| have.get(*name) != want.get(*name));
    let differs: Vec<String> = differs.map(|name| format!("{target}/{name}")).collect();
    if is_asked {
        for path in &differs {
            let name = path.rsplit('/').next().unwrap();
            match want.get(name) {
                Some(text) => fs::write(root().join(path), text).unwrap(),
                None => fs::remove_file(root().join(path)).unwrap(),
            }
        }
        return Vec::new();
    }
    differs
}

const REFRESH: &str = "to refresh: DOVETAIL_WRITE_PAGES=1 cargo test --workspace --test chart_files";

#[test]
fn the_charts_have_the_crds_that_are_made_from_the_types() {
    let all = folder("crates/api/crds");
    assert!(all.len() >= 7);
    let mut of_aws = all.clone();
    of_aws.retain(|name, _| !name.contains("azure") && !name.contains("kwok"));
    let mut differs = stale("charts/dovetail-crd/files", &all);
    differs.extend(stale("charts/dovetail/crds", &of_aws));
    assert!(differs.is_empty(), "{differs:?} differ from crates/api/crds; {REFRESH}");
}

#[test]
fn the_chart_grants_what_the_controller_was_proved_to_need() {
    let mut want = folder("charts/dovetail/files");
    for name in ["page.yaml", "rbac.yaml", "rbac-aws.yaml", "rbac-azure.yaml"] {
        want.insert(name.to_owned(), read(&format!("deploy/{name}")).unwrap());
    }
    let differs = stale("charts/dovetail/files", &want);
    assert!(differs.is_empty(), "{differs:?} differ from those of deploy; {REFRESH}");
}

#[test]
fn charts_and_program_have_one_version() {
    for chart in ["charts/dovetail", "charts/dovetail-crd"] {
        let chart = yaml(&format!("{chart}/Chart.yaml"));
        assert_eq!(chart["version"], env!("CARGO_PKG_VERSION"));
        assert_eq!(chart["appVersion"], env!("CARGO_PKG_VERSION"));
    }
}

/// Sections whose keys are the chart's own, and not those of a Kubernetes object.
const SECTIONS: &[&str] = &[
    "",
    "controller",
    "controller.image",
    "controller.securityContext",
    "dovetail",
    "dovetail.flightRecorder",
    "dovetail.notify",
    "dovetail.page",
    "flowSchema",
    "podDisruptionBudget",
    "service",
    "serviceAccount",
    "serviceMonitor",
    "settings",
    "settings.awsFeatureGates",
    "settings.featureGates",
];

fn section<'a>(values: &'a Value, path: &str) -> &'a Value {
    path.split('.')
        .filter(|part| !part.is_empty())
        .fold(values, |values, part| &values[part])
}

fn keys(value: &Value) -> BTreeSet<String> {
    value
        .as_object()
        .map(|fields| fields.keys().cloned().collect())
        .unwrap_or_default()
}

#[test]
fn the_chart_knows_its_own_values() {
    let known = yaml(&format!("{CHART}/files/known-values.yaml"));
    let values = yaml(&format!("{CHART}/values.yaml"));
    assert_eq!(keys(&known), SECTIONS.iter().map(|one| (*one).to_owned()).collect());
    for path in SECTIONS {
        let listed: BTreeSet<String> = known[*path]
            .as_array()
            .unwrap()
            .iter()
            .map(|key| key.as_str().unwrap().to_owned())
            .collect();
        let mut own = keys(section(&values, path));
        if path.is_empty() {
            // Helm's own.
            own.insert("global".to_owned());
        }
        assert_eq!(listed, own, "files/known-values.yaml, section {path:?}");
    }
}

#[test]
fn every_value_is_described_checked_and_tried() {
    let text = read(&format!("{CHART}/values.yaml")).unwrap();
    let values = yaml(&format!("{CHART}/values.yaml"));
    let tried = yaml(&format!("{CHART}/ci/every-option-values.yaml"));
    let schema: Value = serde_json::from_str(&read(&format!("{CHART}/values.schema.json")).unwrap()).unwrap();
    let mut problems = Vec::new();
    for path in SECTIONS {
        let mut of_schema = &schema;
        for part in path.split('.').filter(|part| !part.is_empty()) {
            of_schema = &of_schema["properties"][part];
        }
        for key in keys(section(&values, path)) {
            let full = if path.is_empty() {
                key.clone()
            } else {
                format!("{path}.{key}")
            };
            if of_schema["properties"][&key].is_null() {
                problems.push(format!("{full} is not in values.schema.json"));
            }
            if SECTIONS.contains(&full.as_str()) || full == "controller.metrics" || full == "controller.healthProbe" {
                continue;
            }
            let (default, other) = (&section(&values, path)[&key], &section(&tried, path)[&key]);
            // One cloud is built today; an account that is not made here is tried by a test of its own.
            let has_no_other = full == "dovetail.cloud" || full == "serviceAccount.create";
            if other.is_null() || (default == other && !has_no_other) {
                problems.push(format!("{full} is not tried by ci/every-option-values.yaml"));
            }
            let depth = path.split('.').filter(|part| !part.is_empty()).count();
            let line = format!("\n{}{key}:", "  ".repeat(depth));
            let is_described = text.match_indices(&line).any(|(at, _)| {
                let before = text[..at]
                    .lines()
                    .rev()
                    .take_while(|line| line.trim_start().starts_with('#'));
                before.into_iter().any(|line| line.trim_start().starts_with("# -- "))
            });
            if !is_described {
                problems.push(format!("{full} is not described in values.yaml"));
            }
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
}

#[test]
fn the_image_is_built_with_the_compiler_of_the_workspace_and_runs_as_nobody() {
    let recipe = read("deploy/Containerfile").unwrap();
    let toolchain = read("rust-toolchain.toml").unwrap();
    let channel = toolchain
        .lines()
        .find_map(|line| line.strip_prefix("channel = "))
        .unwrap()
        .trim_matches('"');
    assert!(
        recipe.contains(&format!("ARG RUST={channel}")),
        "rust-toolchain.toml says {channel}"
    );
    assert!(recipe.contains("USER 65532:65532"), "the chart runs it as 65532");
    assert!(
        recipe.contains("ENTRYPOINT [\"/dovetail\"]"),
        "the chart gives it the argument run"
    );
}
