//! What a reviewer should not have to say: names, first lines, left-overs, and documents that forgot a crate.

use std::{fs, path::Path};

use anyhow::{Context, Result, bail};

use crate::run;

/// Names that say nothing about what is inside.
const BANNED_NAMES: &[&str] = &["util", "utils", "common", "helper", "helpers", "manager", "misc"];

/// Left-overs; split here so that this file does not find itself.
const LEFTOVERS: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("X", "XX:")];

/// Checks every tracked file and returns a line about what was read.
pub(crate) fn check() -> Result<String> {
    let listed = run::capture(run::program("git").args(["ls-files", "--cached", "--others", "--exclude-standard"]))?;
    let files: Vec<&str> = listed.lines().filter(|file| run::root().join(file).is_file()).collect();
    let mut problems = Vec::new();
    for file in &files {
        problems.extend(name_problem(file));
        if Path::new(file).extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(run::root().join(file)).with_context(|| format!("reading {file}"))?;
            problems.extend(source_problems(file, &text));
        }
    }
    problems.extend(unmapped_crates(&files)?);
    if problems.is_empty() {
        return Ok(format!("{} files are tidy", files.len()));
    }
    bail!("{} tidiness problem(s):\n  {}", problems.len(), problems.join("\n  "))
}

fn name_problem(file: &str) -> Option<String> {
    let bad = Path::new(file)
        .iter()
        .filter_map(|part| Path::new(part).file_stem()?.to_str());
    let bad = bad.into_iter().find(|stem| BANNED_NAMES.contains(stem))?;
    Some(format!(
        "{file}: `{bad}` does not say what is inside: name it after its job"
    ))
}

fn source_problems(file: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    if !text.starts_with("//!") && !text.starts_with("#!") {
        found.push(format!(
            "{file}:1: the first line is `//!` and says which question this file answers"
        ));
    }
    for (index, line) in text.lines().enumerate() {
        if let Some(leftover) = LEFTOVERS.iter().find(|leftover| line.contains(**leftover)) {
            found.push(format!(
                "{file}:{}: `{leftover}` left in code: do it, or open an issue",
                index + 1
            ));
        }
    }
    found
}

/// Crates that ARCHITECTURE.md does not name.
fn unmapped_crates(files: &[&str]) -> Result<Vec<String>> {
    let map = fs::read_to_string(run::root().join("ARCHITECTURE.md")).context("reading ARCHITECTURE.md")?;
    let manifests = files.iter().filter_map(|file| file.strip_suffix("/Cargo.toml"));
    let missing = manifests.filter(|folder| !map.contains(&format!("`{folder}`")));
    Ok(missing
        .map(|folder| format!("ARCHITECTURE.md does not name `{folder}`"))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_says_nothing_is_found() {
        let problem = name_problem("crates/model/src/utils/node.rs");
        assert_eq!(
            problem.as_deref(),
            Some("crates/model/src/utils/node.rs: `utils` does not say what is inside: name it after its job")
        );
        assert_eq!(name_problem("crates/model/src/node.rs"), None);
    }

    #[test]
    fn a_source_file_says_first_what_it_answers() {
        assert_eq!(source_problems("a.rs", "//! Which pods fit.\n"), Vec::<String>::new());
        assert_eq!(
            source_problems("a.rs", "use std::fs;\n"),
            ["a.rs:1: the first line is `//!` and says which question this file answers"]
        );
    }
}
