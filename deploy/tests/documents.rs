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
