//! `cargo xtask specs`: which of our tests stands for which of upstream's specs?
//!
//! `docs/conformance/scheduling.json` and `disruption.json` say so, spec by spec, in the order of upstream's files. The
//! command compares them with the titles in the published module and writes the tables people read; a test keeps the named
//! tests and the tables from going stale without Go.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use rig::gomod;
use serde::Deserialize;

use crate::conformance::{MODULE, VERSION, workspace};

/// A part of upstream whose specs are held against our tests.
struct Part {
    /// What it is called, here and in the names of its files.
    name: &'static str,
    /// Where upstream keeps its suites.
    suites: &'static str,
    /// What is said of specs that are not ours.
    not_ours: &'static str,
    /// Why there are such.
    about_not_ours: &'static str,
    /// Folders of tests, and the word that stands for each in the table.
    folders: &'static [(&'static str, &'static str)],
}

const PARTS: [Part; 2] = [
    Part {
        name: "scheduling",
        suites: "pkg/controllers/provisioning",
        not_ours: "not the planner's",
        about_not_ours: "an issue that takes them is named",
        folders: &[
            ("crates/packing/tests/specs/", "packing "),
            ("crates/devices/tests/upstream/", "devices "),
        ],
    },
    Part {
        name: "disruption",
        suites: "pkg/controllers/disruption",
        not_ours: "not applicable",
        about_not_ours: "why is said",
        folders: &[
            ("crates/disruption/tests/decisions/", "decisions "),
            ("crates/disruption/src/", "disruption "),
            ("crates/controllers/tests/disruption/", "cluster "),
            ("crates/controllers/src/", "controllers "),
        ],
    },
];

impl Part {
    fn list(&self) -> String {
        format!("docs/conformance/{}.json", self.name)
    }

    fn table(&self) -> String {
        format!("docs/conformance/{}.md", self.name)
    }
}

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

/// Compares the titles with upstream's and writes the tables.
pub(crate) fn run() -> Result<()> {
    let module = gomod::dir(MODULE, VERSION)?;
    PARTS.iter().try_for_each(|part| check(part, &module))
}

fn check(part: &Part, module: &Path) -> Result<()> {
    let (specs, list) = (read(part)?, part.list());
    for file in files(&specs) {
        let path = module.join(part.suites).join(file);
        let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let ours: Vec<&str> = of_file(&specs, file).map(|spec| spec.title.as_str()).collect();
        ensure!(
            ours == titles(&text),
            "the titles of {file} in {list} are not those of {}",
            path.display()
        );
    }
    if let Some(missing) = missing_tests(&specs).first() {
        bail!("{list} names {missing}, which is no test; name one that is");
    }
    let table = part.table();
    fs::write(workspace().join(&table), render(part, &specs)).with_context(|| format!("writing {table}"))
}

fn read(part: &Part) -> Result<Vec<Spec>> {
    let list = part.list();
    let text = fs::read_to_string(workspace().join(&list)).with_context(|| format!("reading {list}"))?;
    serde_json::from_str(&text).with_context(|| format!("parsing {list}"))
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
    let lines: Vec<&str> = source.lines().map(str::trim_start).collect();
    lines.windows(2).any(|pair| {
        let is_test = pair[0].starts_with("#[test]") || pair[0].starts_with("#[tokio::test");
        let function = pair[1].trim_start_matches("async ").strip_prefix("fn ");
        is_test
            && function
                .and_then(|rest| rest.strip_prefix(name))
                .is_some_and(|rest| rest.starts_with('('))
    })
}

fn render(part: &Part, specs: &[Spec]) -> String {
    let count = |is: fn(&Fate) -> bool| specs.iter().filter(|spec| is(&spec.fate)).count();
    let tested = count(|fate| matches!(fate, Fate::Tests(_)));
    let not_ours = count(|fate| matches!(fate, Fate::NotOurs(_)));
    let open = count(|fate| matches!(fate, Fate::Open(_)));
    let words: Vec<String> = part
        .folders
        .iter()
        .map(|(folder, word)| format!("`{}` stands for `{}`", word.trim_end(), folder.trim_end_matches('/')))
        .collect();
    let (name, suites) = (part.name, part.suites);
    let mut text = format!(
        "# Upstream's {name} specs and our tests\n\n\
         All {} specs of Karpenter {VERSION} under `{suites}`, by file. {tested} have a test of ours, {not_ours} are {} \
         ({}), {open} are open.\n\
         Written by `cargo xtask specs` from `{name}.json`; {}.\n",
        specs.len(),
        part.not_ours,
        part.about_not_ours,
        words.join(", "),
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
                spec.fate.cell(part)
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

    fn cell(&self, part: &Part) -> String {
        match self {
            Self::Tests(tests) => tests
                .iter()
                .map(|test| short(part, test))
                .collect::<Vec<_>>()
                .join("<br>"),
            Self::NotOurs(why) => format!("{}: {why}", part.not_ours),
            Self::Open(why) => format!("open: {why}"),
        }
    }
}

/// `` `packing volumes::name` `` for a path and a name.
fn short(part: &Part, test: &str) -> String {
    let folders = part.folders.iter();
    let test = folders.fold(test.to_owned(), |test, (folder, word)| test.replace(folder, word));
    format!("`{}`", test.replace(".rs::", "::").replace('/', "::"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_test_the_tables_name_exists() {
        for part in &PARTS {
            assert_eq!(missing_tests(&read(part).unwrap()), Vec::<&str>::new());
        }
    }

    #[test]
    fn each_table_is_that_of_its_list_and_has_all_specs() {
        for (part, count) in PARTS.iter().zip([633, 442]) {
            let specs = read(part).unwrap();
            assert_eq!(specs.len(), count, "{}", part.name);
            let table = fs::read_to_string(workspace().join(part.table())).unwrap();
            assert!(table == render(part, &specs), "run `cargo xtask specs`");
        }
    }

    #[test]
    fn titles_are_the_first_arguments_of_specs_and_entries() {
        let source = "\tIt(\"should a\", func() {\n\t\tExpectIt(1)\n\tEntry(corev1.LabelHostname, corev1.LabelHostname),\n// It(\"b\")\n";
        assert_eq!(titles(source), ["should a", "corev1.LabelHostname"]);
    }
}
