//! Do the tests exist that `docs/conformance` names for upstream's specs, and do its headings count them right?

use std::{collections::BTreeSet, fs};

use anyhow::{Context, Result};

use crate::run;

/// The pages that name tests of ours.
const PAGES: [&str; 3] = ["aws", "aws-launch", "azure"];

/// What is wrong with the pages, given all source files.
pub(crate) fn check(sources: &[&str]) -> Result<Vec<String>> {
    let mut functions = BTreeSet::new();
    for file in sources {
        let text = fs::read_to_string(run::root().join(file)).with_context(|| format!("reading {file}"))?;
        functions.extend(text.split("fn ").skip(1).map(name_at_start));
    }
    let mut problems = Vec::new();
    for page in PAGES {
        let page = format!("docs/conformance/{page}.md");
        let text = fs::read_to_string(run::root().join(&page)).with_context(|| format!("reading {page}"))?;
        problems.extend(problems_of(&page, &text, &functions));
    }
    Ok(problems)
}

fn name_at_start(text: &str) -> String {
    text.chars().take_while(|it| is_of_name(*it)).collect()
}

fn is_of_name(letter: char) -> bool {
    letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_'
}

/// A heading with its counts, and what was counted below it.
struct Suite<'a> {
    line: usize,
    counts: &'a str,
    done: usize,
    all: usize,
}

impl Suite<'_> {
    fn problem(&self, page: &str) -> Option<String> {
        let counted = format!("{} of {}", self.done, self.all);
        let line = self.line;
        (self.counts != counted).then(|| {
            format!(
                "{page}:{line}: the heading says {}, the table has {counted}",
                self.counts
            )
        })
    }
}

fn problems_of(page: &str, text: &str, functions: &BTreeSet<String>) -> Vec<String> {
    let (mut problems, mut suites) = (Vec::new(), Vec::<Suite<'_>>::new());
    for (line, row) in text.lines().enumerate() {
        let line = line + 1;
        if let Some((_, counts)) = row.strip_prefix("## `").and_then(|it| it.rsplit_once("`: ")) {
            suites.push(Suite {
                line,
                counts,
                done: 0,
                all: 0,
            });
        }
        let (Some(ours), Some(suite)) = (cell(row), suites.last_mut()) else {
            continue;
        };
        suite.all += 1;
        if !ours.starts_with('`') {
            continue;
        }
        suite.done += 1;
        match test_named(ours) {
            None => problems.push(format!(
                "{page}:{line}: «{ours}» names no test: module, then the test's name"
            )),
            Some(name) if !functions.contains(name) => {
                problems.push(format!(
                    "{page}:{line}: there is no test {name}: name the one that took its place"
                ));
            }
            Some(_) => {}
        }
    }
    problems.extend(suites.iter().filter_map(|suite| suite.problem(page)));
    problems
}

/// The last cell of a table's row, unless it heads the table.
fn cell(row: &str) -> Option<&str> {
    let row = row.strip_prefix("| ")?.strip_suffix(" |")?;
    let (_, ours) = row.rsplit_once(" | ")?;
    (ours != "ours").then(|| ours.trim())
}

fn test_named(ours: &str) -> Option<&str> {
    let last = ours.split_whitespace().last()?;
    let is_name = last.contains('_') && last.chars().all(is_of_name);
    is_name.then_some(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(rows: &str) -> Vec<String> {
        let functions = BTreeSet::from(["a_pod_fits".to_owned()]);
        let text = format!("## `suite_test.go`: 1 of 2\n| upstream | ours |\n|---|---|\n{rows}");
        problems_of("p.md", &text, &functions)
    }

    #[test]
    fn every_test_that_the_pages_name_is_there() {
        let listed = run::capture(run::program("git").args(["ls-files", "*.rs"])).unwrap();
        let sources: Vec<&str> = listed.lines().filter(|file| run::root().join(file).is_file()).collect();
        assert_eq!(check(&sources).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn a_test_that_is_not_there_is_found() {
        assert_eq!(found("| a | `offers` a_pod_fits |\n| b | – |\n"), Vec::<String>::new());
        let problems = found("| a | `offers` a_pod_fitted |\n| b | – |\n");
        assert_eq!(
            problems,
            ["p.md:4: there is no test a_pod_fitted: name the one that took its place"]
        );
        let problems = found("| a | `offers` (elsewhere) |\n| b | – |\n");
        assert!(
            problems[0].starts_with("p.md:4: «`offers` (elsewhere)» names no test"),
            "{problems:?}"
        );
    }

    #[test]
    fn a_heading_that_counts_wrongly_is_found() {
        let problems = found("| a | `offers` a_pod_fits |\n");
        assert_eq!(problems, ["p.md:1: the heading says 1 of 2, the table has 1 of 1"]);
    }
}
