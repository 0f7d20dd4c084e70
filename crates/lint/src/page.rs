//! The page of a rule: what its table row says, its two manifests, and what it says to the bad one.

use std::fmt::Write;

use crate::{Finding, Needs, RULES, Rule};

/// The page `docs/lint/CODE.md`, with what the rule finds in its bad manifest.
pub fn page(rule: &Rule, found: &[Finding]) -> String {
    let mut page = format!(
        "# {} {}\n\n<!-- Made from crates/lint: `DOVETAIL_WRITE_PAGES=1 cargo test --workspace --test rules`. -->\n\n",
        rule.code, rule.name
    );
    let _ = write!(page, "**{}**. Finds {}.\n\n", rule.severity.as_str(), rule.finds);
    let _ = write!(
        page,
        "**Why it hurts.** {}.\n\n**What mends it.** {}.\n\n",
        capital(rule.why),
        capital(rule.fix)
    );
    let _ = write!(page, "{}\n\n", decided(rule.needs));
    if rule.needs == Needs::NotYet {
        return page;
    }
    let _ = write!(page, "## Bad\n\n```yaml\n{}```\n\n", rule.bad());
    page.push_str("```text\n");
    for finding in found {
        let line = finding.line.map_or(String::new(), |line| format!(":{line}"));
        let _ = writeln!(
            page,
            "{} {}  bad.yaml{line}  {}  {}",
            finding.code,
            finding.severity.as_str(),
            finding.title,
            finding.text
        );
    }
    let _ = write!(page, "```\n\n## Good\n\n```yaml\n{}```\n\n", rule.good());
    let _ = writeln!(
        page,
        "Silence it on one object, with the reason: `dovetail.dev/lint-ignore: \"{} because …\"`.",
        rule.code
    );
    page
}

fn decided(needs: Needs) -> &'static str {
    match needs {
        Needs::Manifests => "Decided from manifests, a dump or a cluster.",
        Needs::Cluster => "Decided from a dump or a cluster only (`--from`): manifests cannot show it.",
        Needs::Status => {
            "Decided only where an object has its status, as in a dump or a cluster (`--from`): a controller asked the cloud and wrote it there. The cloud itself is not asked."
        }
        Needs::NotYet => {
            "**Not decided yet**: it takes placing all pods twice, once without the preference. The code is reserved."
        }
    }
}

fn capital(text: &str) -> String {
    let mut signs = text.chars();
    match signs.next() {
        Some(first) => first.to_uppercase().chain(signs).collect(),
        None => String::new(),
    }
}

/// The list of all rules, `docs/lint/README.md`.
pub fn index() -> String {
    let mut page = "# Rules of `dovetail lint`\n\n<!-- Made from crates/lint: `DOVETAIL_WRITE_PAGES=1 cargo test --workspace --test rules`. -->\n\n\
        | code | rule | severity | finds | why it hurts | decided from |\n|---|---|---|---|---|---|\n"
        .to_owned();
    for rule in RULES {
        let from = match rule.needs {
            Needs::Manifests => "manifests",
            Needs::Cluster => "a dump or a cluster",
            Needs::Status => "status in a dump or a cluster",
            Needs::NotYet => "not yet",
        };
        let _ = writeln!(
            page,
            "| [{code}]({code}.md) | {} | {} | {} | {} | {from} |",
            rule.name,
            rule.severity.as_str(),
            rule.finds,
            rule.why,
            code = rule.code
        );
    }
    page
}
