//! What is a spec, and what did a run say about it? Reads ginkgo's JSON report.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::Suite;

/// One `It` or table entry of a suite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spec {
    /// Where it belongs.
    pub(crate) suite: Suite,
    /// The suite's own description, which ginkgo puts before the text when it looks for a match.
    pub(crate) description: String,
    /// The texts of its containers and its own, joined by spaces.
    pub(crate) text: String,
}

impl Spec {
    /// A regular expression that matches this spec and no other.
    pub(crate) fn focus(&self) -> String {
        let mut focus = String::from("^");
        for c in format!("{} {}", self.description, self.text).chars() {
            if r"\.+*?()|[]{}^$".contains(c) {
                focus.push('\\');
            }
            focus.push(c);
        }
        focus + "$"
    }
}

/// How a run of a spec ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    /// As demanded.
    Passed,
    /// Not so.
    Failed,
    /// The spec declined to run.
    Skipped,
}

/// A run of a spec.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Outcome {
    /// How it ended.
    pub(crate) verdict: Verdict,
    /// How long it took, clean-up included.
    pub(crate) seconds: f64,
    /// Why it failed or was skipped.
    pub(crate) reason: String,
    /// Whether this is the second try.
    pub(crate) repeated: bool,
}

impl Outcome {
    /// The spec could not even be run, for instance because no cluster came up: it will be tried again.
    pub(crate) fn impossible(error: &anyhow::Error) -> Self {
        Self {
            verdict: Verdict::Failed,
            seconds: 0.0,
            reason: format!("{error:#}"),
            repeated: false,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct SuiteReport {
    suite_description: String,
    #[serde(default)]
    spec_reports: Option<Vec<SpecReport>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct SpecReport {
    #[serde(default)]
    container_hierarchy_texts: Option<Vec<String>>,
    leaf_node_type: String,
    leaf_node_text: String,
    state: String,
    run_time: f64,
    #[serde(default)]
    failure: Option<Failure>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Failure {
    #[serde(default)]
    message: String,
}

impl SpecReport {
    fn text(&self) -> String {
        let mut texts = self.container_hierarchy_texts.clone().unwrap_or_default();
        texts.push(self.leaf_node_text.clone());
        texts.retain(|text| !text.is_empty());
        texts.join(" ")
    }

    fn outcome(&self) -> Outcome {
        let verdict = match self.state.as_str() {
            "passed" => Verdict::Passed,
            "skipped" | "pending" => Verdict::Skipped,
            _ => Verdict::Failed,
        };
        let reason = self
            .failure
            .as_ref()
            .map(|failure| failure.message.clone())
            .unwrap_or_default();
        Outcome {
            verdict,
            seconds: self.run_time / 1e9,
            reason,
            repeated: false,
        }
    }
}

/// The specs that a (dry) run selected, in the order of the suite.
pub(crate) fn selected(suite: Suite, report: &Path) -> Result<Vec<Spec>> {
    let suites = read(report)?;
    let mut specs = Vec::new();
    for SuiteReport {
        suite_description,
        spec_reports,
    } in suites
    {
        for spec in spec_reports.into_iter().flatten() {
            if spec.leaf_node_type == "It" && spec.state != "skipped" && spec.state != "pending" {
                specs.push(Spec {
                    suite,
                    description: suite_description.clone(),
                    text: spec.text(),
                });
            }
        }
    }
    Ok(specs)
}

/// What the report says about one spec; a failure of the suite's own set-up is a failure of the spec.
pub(crate) fn outcome(spec: &Spec, report: &Path) -> Result<Outcome> {
    let specs: Vec<_> = read(report)?
        .into_iter()
        .filter_map(|suite| suite.spec_reports)
        .flatten()
        .collect();
    let setup = specs
        .iter()
        .find(|node| node.leaf_node_type != "It" && node.outcome().verdict == Verdict::Failed);
    let found = specs
        .iter()
        .find(|node| node.leaf_node_type == "It" && node.text() == spec.text);
    setup
        .or(found)
        .map(SpecReport::outcome)
        .with_context(|| format!("{} says nothing about {:?}", report.display(), spec.text))
}

fn read(report: &Path) -> Result<Vec<SuiteReport>> {
    let text = fs::read_to_string(report).with_context(|| format!("reading {}", report.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is not a report of ginkgo", report.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(text: &str) -> Spec {
        Spec {
            suite: Suite::Regression,
            description: "Regression".to_owned(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn focus_matches_the_whole_text_literally() {
        let got = spec("Validation should allow ([*].example.com/x)").focus();
        assert_eq!(got, r"^Regression Validation should allow \(\[\*\]\.example\.com/x\)$");
    }

    fn report(states: &[(&str, &str, &str)]) -> tempfile::NamedTempFile {
        let specs: Vec<_> = states
            .iter()
            .map(|(kind, text, state)| {
                serde_json::json!({
                    "ContainerHierarchyTexts": ["A", ""], "LeafNodeType": kind, "LeafNodeText": text, "State": state,
                    "RunTime": 2_500_000_000u64, "Failure": {"Message": state},
                })
            })
            .collect();
        let file = tempfile::NamedTempFile::new().unwrap();
        let suites = serde_json::json!([{"SuiteDescription": "Regression", "SpecReports": specs}]);
        fs::write(file.path(), suites.to_string()).unwrap();
        file
    }

    #[test]
    fn verdict_is_the_state_of_the_spec_itself() {
        let cases = [
            ("passed", Verdict::Passed),
            ("failed", Verdict::Failed),
            ("skipped", Verdict::Skipped),
            ("pending", Verdict::Skipped),
            ("timedout", Verdict::Failed),
            ("panicked", Verdict::Failed),
            ("interrupted", Verdict::Failed),
        ];
        for (state, verdict) in cases {
            let file = report(&[("It", "other", "skipped"), ("It", "one", state)]);
            let want = Outcome {
                verdict,
                seconds: 2.5,
                reason: state.to_owned(),
                repeated: false,
            };
            assert_eq!(outcome(&spec("A one"), file.path()).unwrap(), want, "{state}");
        }
    }

    #[test]
    fn failed_set_up_of_the_suite_fails_the_spec() {
        let file = report(&[("BeforeSuite", "", "failed"), ("It", "one", "skipped")]);
        assert_eq!(outcome(&spec("A one"), file.path()).unwrap().verdict, Verdict::Failed);
    }

    #[test]
    fn dry_run_selects_what_it_did_not_skip() {
        let file = report(&[
            ("BeforeSuite", "", "passed"),
            ("It", "one", "passed"),
            ("It", "two", "skipped"),
        ]);
        assert_eq!(selected(Suite::Regression, file.path()).unwrap(), [spec("A one")]);
    }
}
