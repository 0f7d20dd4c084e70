//! How do verdicts become the tables under `docs/conformance`? Written anew after every spec, so that an interrupted run
//! leaves what it found.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::VERSION;
use super::spec::{Outcome, Spec, Verdict};
use super::{Suite, workspace};

/// Specs that we fail on purpose, and why.
const ON_PURPOSE: [(&str, &str); 1] = [(
    "DefaultTopologySpreadConstraints should pack pods the cluster's defaults don't apply to",
    "The spec counts nodes to see that nothing is spread, and wants one. Four pods of one core fit on one node of eight \
     vCPU or, 25 % cheaper, on one of four and one of two, which is what the plan takes. With `--packing faithful` the \
     spec passes.",
)];

/// A line of the JSON table.
#[derive(Serialize, Deserialize)]
struct Row {
    spec: String,
    verdict: Verdict,
    seconds: f64,
    /// The verdict is that of a second try.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    repeated: bool,
    /// Why it did not pass.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    reason: String,
}

impl From<Row> for Outcome {
    fn from(row: Row) -> Self {
        Self {
            verdict: row.verdict,
            seconds: row.seconds,
            reason: row.reason,
            repeated: row.repeated,
        }
    }
}

/// The verdicts so far.
pub(crate) struct Report {
    tables: PathBuf,
    name: &'static str,
    /// In the order of the suites.
    specs: Vec<Spec>,
    outcomes: BTreeMap<(Suite, String), Outcome>,
    expected: BTreeMap<(Suite, String), f64>,
    runs: usize,
}

impl Report {
    /// Tables in the folder `tables`, for the controller called `name`.
    pub(crate) fn new(tables: PathBuf, name: &'static str, specs: &[Spec]) -> Self {
        Self {
            tables,
            name,
            specs: specs.to_vec(),
            outcomes: BTreeMap::new(),
            expected: expected(specs),
            runs: 0,
        }
    }

    /// The same, beginning with what the tables say already.
    pub(crate) fn with_earlier_verdicts(mut self) -> Self {
        let mut suites: Vec<_> = self.specs.iter().map(|spec| spec.suite).collect();
        suites.dedup();
        for suite in suites {
            let table = self.tables.join(format!("{}-{}.json", suite.name(), self.name));
            let known = |row: &Row| {
                self.specs
                    .iter()
                    .any(|spec| spec.suite == suite && spec.text == row.spec)
            };
            let rows: Vec<_> = rows_of(&table).into_iter().filter(known).collect();
            let outcomes = rows.into_iter().map(|row| ((suite, row.spec.clone()), row.into()));
            self.outcomes.extend(outcomes);
        }
        self
    }

    /// How long the reference took, or a guess that puts the unknown in the middle.
    pub(crate) fn expected_seconds(&self, spec: &Spec) -> f64 {
        self.expected.get(&key(spec)).copied().unwrap_or(60.0)
    }

    /// Takes note of a run, says so, and writes the tables.
    pub(crate) fn record(&mut self, spec: &Spec, outcome: &Outcome) -> Result<()> {
        self.runs += usize::from(!outcome.repeated);
        let again = if outcome.repeated { " (again)" } else { "" };
        let (suite, text) = key(spec);
        let verdict = word(outcome.verdict);
        eprintln!(
            "[{}/{}] {verdict}{again} {:.0} s  {}: {text}",
            self.runs,
            self.specs.len(),
            outcome.seconds,
            suite.name()
        );
        self.outcomes.insert(key(spec), outcome.clone());
        self.write(suite)
    }

    /// One line for each suite.
    pub(crate) fn summary(&self) -> String {
        let mut suites: Vec<_> = self.specs.iter().map(|spec| spec.suite).collect();
        suites.dedup();
        let lines: Vec<_> = suites
            .into_iter()
            .map(|suite| format!("{}: {}", suite.name(), self.counts(suite)))
            .collect();
        lines.join("\n")
    }

    fn counts(&self, suite: Suite) -> String {
        let rows = self.rows(suite);
        let count = |verdict| rows.iter().filter(|row| row.verdict == verdict).count();
        let total = self.specs.iter().filter(|spec| spec.suite == suite).count();
        let seconds: f64 = rows.iter().map(|row| row.seconds).sum();
        let mut line = format!(
            "{} passed, {} failed, {} skipped of {total} specs, {seconds:.0} s one after the other",
            count(Verdict::Passed),
            count(Verdict::Failed),
            count(Verdict::Skipped)
        );
        let missing = total - rows.len();
        if missing > 0 {
            let _ = write!(line, "; **{missing} not run yet**");
        }
        line
    }

    fn rows(&self, suite: Suite) -> Vec<Row> {
        let specs = self.specs.iter().filter(|spec| spec.suite == suite);
        specs
            .filter_map(|spec| self.outcomes.get(&key(spec)).map(|outcome| row(spec, outcome)))
            .collect()
    }

    fn write(&self, suite: Suite) -> Result<()> {
        fs::create_dir_all(&self.tables)?;
        let table = self.tables.join(format!("{}-{}", suite.name(), self.name));
        let rows = self.rows(suite);
        replace(
            &table.with_extension("json"),
            &(serde_json::to_string_pretty(&rows)? + "\n"),
        )?;
        replace(&table.with_extension("md"), &self.markdown(suite, &rows))
    }

    fn markdown(&self, suite: Suite, rows: &[Row]) -> String {
        let whose = if self.name == "reference" {
            "upstream's own kwok controller"
        } else {
            "Dovetail"
        };
        let mut text = format!(
            "# Upstream's {} suite ({VERSION}) against {whose}\n\n{}.\n\n\
             Made by `cargo xtask conformance`; seconds depend on the machine and its load. \
             \"again\" marks specs that failed beside others and whose verdict is that of a second run, alone.\n\n\
             | spec | verdict | seconds |\n|---|---|---|\n",
            suite.name(),
            self.counts(suite)
        );
        for row in rows {
            let again = if row.repeated { ", again" } else { "" };
            let spec = row.spec.replace('|', "\\|");
            let _ = writeln!(text, "| {spec} | {}{again} | {:.0} |", word(row.verdict), row.seconds);
        }
        for row in rows.iter().filter(|row| row.verdict != Verdict::Passed) {
            let reason: Vec<_> = row
                .reason
                .lines()
                .map(|line| format!("    {}", line.trim_end()))
                .collect();
            let _ = write!(
                text,
                "\n**{}**: {}\n\n{}\n",
                row.spec,
                word(row.verdict),
                reason.join("\n")
            );
            if let Some((_, why)) = ON_PURPOSE
                .iter()
                .find(|(spec, _)| self.name == "dovetail" && *spec == row.spec)
            {
                let _ = writeln!(text, "\nOn purpose: {why}");
            }
        }
        text
    }
}

fn row(spec: &Spec, outcome: &Outcome) -> Row {
    let reason = if outcome.verdict == Verdict::Passed {
        String::new()
    } else {
        beginning(&outcome.reason)
    };
    let seconds = (outcome.seconds * 10.0).round() / 10.0;
    Row {
        spec: spec.text.clone(),
        verdict: outcome.verdict,
        seconds,
        repeated: outcome.repeated,
        reason,
    }
}

/// Failures may print whole objects; the rest is in the kept logs.
fn beginning(reason: &str) -> String {
    const LINES: usize = 8;
    let lines: Vec<_> = reason.lines().map(str::trim_end).collect();
    let more = if lines.len() > LINES { "\n..." } else { "" };
    lines[..lines.len().min(LINES)].join("\n") + more
}

fn key(spec: &Spec) -> (Suite, String) {
    (spec.suite, spec.text.clone())
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Passed => "passed",
        Verdict::Failed => "FAILED",
        Verdict::Skipped => "skipped",
    }
}

/// What the committed tables say about how long each spec takes. Without one the order does not matter much.
fn expected(specs: &[Spec]) -> BTreeMap<(Suite, String), f64> {
    let mut suites: Vec<_> = specs.iter().map(|spec| spec.suite).collect();
    suites.dedup();
    let mut expected = BTreeMap::new();
    for suite in suites {
        let path = workspace().join(format!("docs/conformance/{}-reference.json", suite.name()));
        expected.extend(rows_of(&path).into_iter().map(|row| ((suite, row.spec), row.seconds)));
    }
    expected
}

/// The rows of a table; none when there is none.
fn rows_of(table: &Path) -> Vec<Row> {
    let text = fs::read_to_string(table).ok();
    text.and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default()
}

/// A reader never sees half a table.
fn replace(path: &Path, content: &str) -> Result<()> {
    let fresh = path.with_extension("fresh");
    fs::write(&fresh, content).with_context(|| format!("writing {}", fresh.display()))?;
    fs::rename(&fresh, path).with_context(|| format!("writing {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(text: &str) -> Spec {
        Spec {
            suite: Suite::Dra,
            description: "DRA".to_owned(),
            text: text.to_owned(),
        }
    }

    fn outcome(verdict: Verdict, repeated: bool) -> Outcome {
        Outcome {
            verdict,
            seconds: 1.26,
            reason: "why".to_owned(),
            repeated,
        }
    }

    #[test]
    fn table_says_why_a_spec_fails_on_purpose() {
        let dir = tempfile::tempdir().unwrap();
        let (known, why) = ON_PURPOSE[0];
        for (name, is_told) in [("dovetail", true), ("reference", false)] {
            let mut report = Report::new(dir.path().to_path_buf(), name, &[spec(known)]);
            report.record(&spec(known), &outcome(Verdict::Failed, false)).unwrap();
            let table = fs::read_to_string(dir.path().join(format!("dra-{name}.md"))).unwrap();
            assert_eq!(table.contains(&format!("\nOn purpose: {why}\n")), is_told, "{name}");
        }
    }

    #[test]
    fn tables_hold_the_last_verdict_of_each_spec_and_say_what_is_missing() {
        let dir = tempfile::tempdir().unwrap();
        let specs = ["a|b", "c", "d"].map(spec);
        let mut report = Report::new(dir.path().to_path_buf(), "reference", &specs);
        report.record(&specs[1], &outcome(Verdict::Skipped, false)).unwrap();
        report.record(&specs[0], &outcome(Verdict::Failed, false)).unwrap();
        report.record(&specs[0], &outcome(Verdict::Passed, true)).unwrap();

        let json = fs::read_to_string(dir.path().join("dra-reference.json")).unwrap();
        let rows: serde_json::Value = serde_json::from_str(&json).unwrap();
        let want = serde_json::json!([
            {"spec": "a|b", "verdict": "passed", "seconds": 1.3, "repeated": true},
            {"spec": "c", "verdict": "skipped", "seconds": 1.3, "reason": "why"},
        ]);
        assert_eq!(rows, want);

        let table = fs::read_to_string(dir.path().join("dra-reference.md")).unwrap();
        let counts = "1 passed, 0 failed, 1 skipped of 3 specs, 3 s one after the other; **1 not run yet**.";
        let mut later = Report::new(dir.path().to_path_buf(), "reference", &specs).with_earlier_verdicts();
        later.record(&specs[2], &outcome(Verdict::Passed, false)).unwrap();
        assert_eq!(
            later.summary(),
            "dra: 2 passed, 0 failed, 1 skipped of 3 specs, 4 s one after the other"
        );
        for line in [
            counts,
            r"| a\|b | passed, again | 1 |",
            "| c | skipped | 1 |",
            "    why",
        ] {
            assert!(table.lines().any(|got| got == line), "{line:?} is not in\n{table}");
        }
    }
}
