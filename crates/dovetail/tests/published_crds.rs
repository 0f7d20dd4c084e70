//! Compares the CRDs `dovetail crds` prints with those Karpenter publishes in its Go modules: the same tree, but for
//! descriptions, which are ours. Needs Go to find the modules; without it nothing is compared, which CI does not allow.
// Clippy sees tests only in test functions; here everything is one.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

const CORE: &str = "sigs.k8s.io/karpenter@v1.15.0";
const AWS: &str = "github.com/aws/karpenter-provider-aws@v1.14.1";

/// CRDs by name.
type Crds = BTreeMap<String, Value>;

#[test]
fn core_crds_equal_the_published_ones() {
    let Some(module) = module_directory(CORE) else { return };
    assert_eq!(
        differences("core", &[module.join("pkg/apis/crds")]),
        Vec::<String>::new()
    );
}

#[test]
fn kwok_crds_equal_the_published_ones() {
    let Some(module) = module_directory(CORE) else { return };
    let published = [module.join("kwok/charts/crds"), module.join("kwok/apis/crds")];
    assert_eq!(differences("kwok", &published), Vec::<String>::new());
}

#[test]
fn aws_crds_equal_the_published_ones_but_for_what_core_changed_since() {
    let Some(module) = module_directory(AWS) else { return };
    let disruption =
        "nodepools.karpenter.sh.spec.versions.0.schema.openAPIV3Schema.properties.spec.properties.disruption";
    let changed_in_core_1_15 = [
        format!("{disruption}.properties.budgets.items.properties.reasons.items.enum"),
        format!("{disruption}.properties.consolidateAfter.default"),
        format!("{disruption}.required"),
    ];
    assert_eq!(
        differences("aws", &[module.join("pkg/apis/crds")]),
        changed_in_core_1_15
    );
}

/// Where the Go module cache keeps a module, which is downloaded if need be.
#[allow(clippy::disallowed_methods)] // whether this is CI is known only from the environment
fn module_directory(module: &str) -> Option<PathBuf> {
    // The module may need a newer Go than the one installed, which then fetches it.
    let download = Command::new("go")
        .args(["mod", "download", "-json", module])
        .env("GOTOOLCHAIN", "auto")
        .output();
    let output = match download {
        Ok(output) => output,
        Err(error) => {
            assert!(
                std::env::var("CI").is_err(),
                "CI needs Go to compare with published CRDs: {error}"
            );
            eprintln!("NOT RUN: comparison with the CRDs of {module} needs Go ({error})");
            return None;
        }
    };
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let directory = answer["Dir"]
        .as_str()
        .unwrap_or_else(|| panic!("go mod download {module}: {answer}"));
    Some(PathBuf::from(directory))
}

/// Paths at which our CRDs and the published ones differ.
fn differences(only: &str, published: &[PathBuf]) -> Vec<String> {
    let mut found = vec![];
    let theirs: Crds = published.iter().flat_map(|directory| read(directory)).collect();
    compare(&tree(theirs), &tree(ours(only)), "", &mut found);
    found
}

fn ours(only: &str) -> Crds {
    let output = Command::new(env!("CARGO_BIN_EXE_dovetail"))
        .args(["crds", "--only", only])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let crds: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    crds.into_iter().map(named).collect()
}

fn read(directory: &Path) -> Crds {
    let entries = std::fs::read_dir(directory).unwrap();
    entries
        .map(|entry| {
            let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
            named(serde_saphyr::from_str(&text).unwrap())
        })
        .collect()
}

fn named(crd: Value) -> (String, Value) {
    (crd["metadata"]["name"].as_str().unwrap().to_owned(), crd)
}

fn tree(crds: Crds) -> Value {
    let mut crds: Value = crds.into_iter().collect();
    forget_texts(&mut crds, false);
    crds
}

/// Drops descriptions and the generator's annotation, and puts lists that mean sets in order.
fn forget_texts(value: &mut Value, is_properties: bool) {
    match value {
        Value::Object(fields) => {
            if !is_properties {
                fields.retain(|name, value| {
                    !(name == "description" && value.is_string() || name == "annotations" && holds_only_texts(value))
                });
            }
            for (name, value) in fields {
                let is_set = name == "enum" || name == "required";
                if let (true, Value::Array(items)) = (is_set && !is_properties, &mut *value) {
                    items.sort_by_key(ToString::to_string);
                }
                forget_texts(value, name == "properties" && !is_properties);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| forget_texts(item, false)),
        _ => {}
    }
}

fn holds_only_texts(value: &Value) -> bool {
    value
        .as_object()
        .is_some_and(|fields| fields.values().all(Value::is_string))
}

fn compare(theirs: &Value, ours: &Value, path: &str, found: &mut Vec<String>) {
    let place = |name: &str| {
        if path.is_empty() {
            name.to_owned()
        } else {
            format!("{path}.{name}")
        }
    };
    match (theirs, ours) {
        (Value::Object(theirs), Value::Object(ours)) => {
            let mut names: Vec<_> = theirs.keys().chain(ours.keys()).collect();
            names.sort();
            names.dedup();
            for name in names {
                match (theirs.get(name), ours.get(name)) {
                    (Some(theirs), Some(ours)) => compare(theirs, ours, &place(name), found),
                    _ => found.push(place(name)),
                }
            }
        }
        (Value::Array(theirs), Value::Array(ours)) if theirs.len() == ours.len() => {
            for (index, (theirs, ours)) in theirs.iter().zip(ours).enumerate() {
                compare(theirs, ours, &place(&index.to_string()), found);
            }
        }
        (theirs, ours) if theirs == ours => {}
        _ => found.push(path.to_owned()),
    }
}
