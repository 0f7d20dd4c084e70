//! The pages about installation: nothing of the document the project began with is forgotten, and no link leads nowhere.
// Clippy sees tests only in test functions; here everything is one.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::{fs, path::Path};

use deploy::{read, root};
use regex::Regex;

/// What the document lists under Features, Troubleshooting and Best Practices, by a word of each that the page uses.
const LISTED: &[&str] = &[
    "| fast provisioning |",
    "| dynamic instance selection |",
    "| consolidation |",
    "| spot, with its interruptions |",
    "| Pod Identity |",
    "| Terraform |",
    "| several NodePools |",
    "| scale to zero |",
    "### NodePool not ready",
    "### Nodes not provisioning",
    "### Spot interruptions not handled",
    "### Consolidation too aggressive",
    "**NodePool design.**",
    "**Instance type selection.**",
    "**Spot usage.**",
    "**Resource requests.**",
    "**Node disruption.**",
    "**Consolidation tuning.**",
];

#[test]
fn everything_the_document_lists_has_its_place_and_a_command() {
    let page = read("docs/install/aws.md").unwrap();
    for listed in LISTED {
        let at = page
            .find(listed)
            .unwrap_or_else(|| panic!("docs/install/aws.md lacks {listed:?}"));
        let rest = &page[at..];
        let part = if listed.starts_with('#') {
            rest[3..].split("\n##").next().unwrap()
        } else {
            rest.lines().next().unwrap()
        };
        let shows = ["`dovetail ", "`kubectl ", "`aws ", "`terraform ", "\naws "];
        assert!(
            shows.iter().any(|command| part.contains(command)),
            "no command under {listed:?}: {part}"
        );
    }
}

/// The anchors a page can be linked at.
fn anchors(page: &str) -> Vec<String> {
    let headings = page.lines().filter(|line| line.starts_with('#'));
    let slug = |line: &str| {
        let text = line.trim_start_matches('#').trim().to_lowercase();
        let kept = text
            .chars()
            .filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
        kept.collect::<String>().replace(' ', "-")
    };
    headings.map(slug).collect()
}

#[test]
fn every_link_of_the_pages_about_installation_leads_somewhere() {
    let pages = [
        "docs/install/aws.md",
        "docs/install/image.md",
        "docs/migrate/from-karpenter.md",
        "docs/migrate/from-cluster-autoscaler.md",
        "docs/migrate/from-cluster-autoscaler-on-vmss.md",
        "docs/migrate/from-nap.md",
        "docs/guide/azure.md",
        "charts/dovetail/README.md",
        "charts/dovetail-crd/README.md",
        "terraform/aws/README.md",
        "terraform/azure/README.md",
        "examples/aws/README.md",
        "examples/azure/README.md",
    ];
    let link = Regex::new(r"\]\(([^)\s]+)\)").unwrap();
    let mut broken = Vec::new();
    let mut count = 0;
    for page in pages {
        let text = read(page).unwrap();
        let folder = root().join(Path::new(page).parent().unwrap());
        for found in link.captures_iter(&text) {
            let (path, anchor) = found[1].split_once('#').unwrap_or((&found[1], ""));
            let target = if path.is_empty() {
                root().join(page)
            } else {
                folder.join(path)
            };
            count += 1;
            if !target.exists() {
                broken.push(format!("{page}: {}", &found[1]));
            } else if !anchor.is_empty()
                && !anchors(&fs::read_to_string(&target).unwrap())
                    .iter()
                    .any(|one| one == anchor)
            {
                broken.push(format!("{page}: {} has no such heading", &found[1]));
            }
        }
    }
    assert!(count >= 60, "{count} links");
    assert!(broken.is_empty(), "{broken:#?}");
}

/// The text of all sources of the workspace.
fn sources(folder: &Path, text: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, text);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            text.push_str(&fs::read_to_string(&path).unwrap());
        }
    }
}

/// What stands for a spec in the last cell of a row: a test, by its name after its module; none: nothing yet.
fn stand_in(row: &str) -> Option<&str> {
    let cells = row.strip_suffix(" |").unwrap_or_else(|| panic!("not a row: {row}"));
    let (_, ours) = cells.rsplit_once(" | ").unwrap_or_else(|| panic!("not a row: {row}"));
    let name = ours.starts_with('`').then(|| ours.rsplit(' ').next().unwrap());
    assert!(name.is_none_or(|name| name.contains('_')), "names no test: {row}");
    name
}

/// How many specs of a page have a test, which must be there, and how many there are. Headings must count them right.
fn counted(page: &str, sources: &str) -> (usize, usize) {
    let heading = Regex::new(r"^## `.*`: (\d+ of \d+)$").unwrap();
    let (mut told, mut done, mut rows, mut sum) = (String::new(), 0, 0, (0, 0));
    for line in page.lines().chain(["## `the end`: 0 of 0"]) {
        if let Some(found) = heading.captures(line) {
            assert!(
                told.is_empty() || told == format!("{done} of {rows}"),
                "before {line}: {done} of {rows}"
            );
            found[1].clone_into(&mut told);
            sum = (sum.0 + done, sum.1 + rows);
            (done, rows) = (0, 0);
        } else if line.starts_with("| ") && !line.starts_with("| upstream") {
            rows += 1;
            if let Some(name) = stand_in(line) {
                done += 1;
                assert!(sources.contains(&format!("fn {name}(")), "no such test: {line}");
            }
        }
    }
    sum
}

#[test]
fn every_test_that_stands_for_a_spec_of_upstreams_providers_is_there_and_counted() {
    let mut all = String::new();
    for folder in ["crates", "e2e"] {
        sources(&root().join(folder), &mut all);
    }
    for (name, least) in [("azure", 300), ("aws", 200), ("aws-launch", 200)] {
        let page = read(&format!("docs/conformance/{name}.md")).unwrap();
        let (done, rows) = counted(&page, &all);
        let told = format!("{done} of the {rows} titles below have one");
        assert!(page.contains(&told), "{name}: {told}");
        assert!(done >= least, "{name}: {told}");
    }
}
