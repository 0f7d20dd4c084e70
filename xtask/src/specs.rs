//! `cargo xtask specs`: which of our tests stands for which of upstream's scheduling specs?
//!
//! `docs/conformance/scheduling.json` says so, spec by spec, in the order of upstream's files. The command compares it
//! with the titles in the published module and writes the table people read; a test keeps the named tests and the
//! table from going stale without Go.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use rig::gomod;
use serde::Deserialize;

use crate::conformance::{MODULE, VERSION, workspace};

const SPECS: &str = "docs/conformance/scheduling.json";
const TABLE: &str = "docs/conformance/scheduling.md";
/// Where upstream keeps the suites the table is about.
const SUITES: &str = "pkg/controllers/provisioning";

/// One of upstream's specs, and what became of it.
#[derive(Deserialize)]
struct Spec {
    file: String,
    context: String,
    title: String,
    #[serde(flatten)]
    fate: Fate,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum Fate {
    /// Tests of ours, as `path::name`.
    Tests(Vec<String>),
    /// Not the planner's, and why.
    NotOurs(String),
    /// Not done yet, and why.
    Open(String),
}

/// Compares the titles with upstream's and writes the table.
pub(crate) fn run() -> Result<()> {
    let specs = read()?;
    let module = gomod::dir(MODULE, VERSION)?;
    for file in files(&specs) {
        let path = module.join(SUITES).join(file);
        let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let ours: Vec<&str> = of_file(&specs, file).map(|spec| spec.title.as_str()).collect();
        ensure!(
            ours == titles(&text),
            "the titles of {file} in {SPECS} are not those of {}",
            path.display()
        );
    }
    if let Some(missing) = missing_tests(&specs).first() {
        bail!("{SPECS} names {missing}, which is no test; name one that is");
    }
    fs::write(workspace().join(TABLE), render(&specs)).with_context(|| format!("writing {TABLE}"))
}

fn read() -> Result<Vec<Spec>> {
    let text = fs::read_to_string(workspace().join(SPECS)).with_context(|| format!("reading {SPECS}"))?;
    serde_json::from_str(&text).with_context(|| format!("parsing {SPECS}"))
}

/// Upstream's files in the order of the table.
fn files(specs: &[Spec]) -> Vec<&str> {
    let mut files: Vec<&str> = specs.iter().map(|spec| spec.file.as_str()).collect();
    files.dedup();
    files
}

fn of_file<'a>(specs: &'a [Spec], file: &'a str) -> impl Iterator<Item = &'a Spec> {
    specs.iter().filter(move |spec| spec.file == file)
}

/// The titles of specs in a Go file: the first argument of every `It` and `Entry` that begins a line.
fn titles(source: &str) -> Vec<&str> {
    source.lines().filter_map(title).collect()
}

fn title(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let argument = line.strip_prefix("It(").or_else(|| line.strip_prefix("Entry("))?;
    match argument.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next(),
        None => argument.split(',').next(),
    }
}

/// The tests that the table names and the tree does not have.
fn missing_tests(specs: &[Spec]) -> Vec<&str> {
    let named: BTreeSet<&str> = specs
        .iter()
        .flat_map(|spec| spec.fate.tests())
        .map(String::as_str)
        .collect();
    let root = workspace();
    named.into_iter().filter(|test| !exists(&root, test)).collect()
}

fn exists(root: &Path, test: &str) -> bool {
    let Some((path, name)) = test.split_once("::") else {
        return false;
    };
    let source = fs::read_to_string(root.join(path)).unwrap_or_default();
    source.contains(&format!("#[test]\nfn {name}("))
}

fn render(specs: &[Spec]) -> String {
    let count = |is: fn(&Fate) -> bool| specs.iter().filter(|spec| is(&spec.fate)).count();
    let tested = count(|fate| matches!(fate, Fate::Tests(_)));
    let not_ours = count(|fate| matches!(fate, Fate::NotOurs(_)));
    let open = count(|fate| matches!(fate, Fate::Open(_)));
    let mut text = format!(
        "# Upstream's scheduling specs and our tests\n\n\
         All {} specs of Karpenter {VERSION} under `{SUITES}`, by file. {tested} have a test of ours, {not_ours} are not the planner's \
         (an issue that takes them is named), {open} are open.\n\
         Written by `cargo xtask specs` from `scheduling.json`; `packing` stands for `crates/packing/tests/specs`, `devices` for \
         `crates/devices/tests/upstream`.\n",
        specs.len(),
    );
    for file in files(specs) {
        let _ = writeln!(
            text,
            "\n## {file} ({})\n\n| spec | ours |\n|---|---|",
            of_file(specs, file).count()
        );
        for spec in of_file(specs, file) {
            let _ = writeln!(
                text,
                "| {} / **{}** | {} |",
                escape(&spec.context),
                escape(&spec.title),
                spec.fate.cell()
            );
        }
    }
    text
}

fn escape(text: &str) -> String {
    text.replace('|', "\\|")
}

impl Fate {
    fn tests(&self) -> &[String] {
        match self {
            Self::Tests(tests) => tests,
            Self::NotOurs(_) | Self::Open(_) => &[],
        }
    }

    fn cell(&self) -> String {
        match self {
            Self::Tests(tests) => tests.iter().map(|test| short(test)).collect::<Vec<_>>().join("<br>"),
            Self::NotOurs(why) => format!("not the planner's: {why}"),
            Self::Open(why) => format!("open: {why}"),
        }
    }
}

/// `` `packing volumes::name` `` for a path and a name.
fn short(test: &str) -> String {
    let test = test
        .replace("crates/packing/tests/specs/", "packing ")
        .replace("crates/devices/tests/upstream/", "devices ");
    format!("`{}`", test.replace(".rs::", "::"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_test_the_table_names_exists() {
        assert_eq!(missing_tests(&read().unwrap()), Vec::<&str>::new());
    }

    #[test]
    fn the_table_is_that_of_the_list_and_has_all_specs() {
        let specs = read().unwrap();
        assert_eq!(specs.len(), 633);
        let table = fs::read_to_string(workspace().join(TABLE)).unwrap();
        assert!(table == render(&specs), "run `cargo xtask specs`");
    }

    #[test]
    fn titles_are_the_first_arguments_of_specs_and_entries() {
        let source = "\tIt(\"should a\", func() {\n\t\tExpectIt(1)\n\tEntry(corev1.LabelHostname, corev1.LabelHostname),\n// It(\"b\")\n";
        assert_eq!(titles(source), ["should a", "corev1.LabelHostname"]);
    }
}
