//! One rule in full: what it is about, or each thing it found with why it hurts and what mends it.

use std::fmt::Write;

use ::lint::{Finding, Needs, rule as named};

use super::{
    Report, page_of,
    table::{place, role},
};
use crate::terminal::{Screen, hanging};

/// What a rule is about.
pub(super) fn rule(code: &str, screen: &Screen) -> String {
    let Some(rule) = named(code) else {
        return String::new();
    };
    let severity = screen.paint(role(rule.severity), rule.severity.as_str());
    let decided = match rule.needs {
        Needs::Manifests => "manifests, a dump or a cluster",
        Needs::Cluster => "a dump or a cluster only",
        Needs::Status => "the status of objects in a dump or a cluster: the cloud itself is not asked",
        Needs::NotYet => "nothing yet: the code is reserved",
    };
    let mut text = format!("{} {severity}  {}\n", rule.code, rule.name);
    for (start, said) in [
        ("  finds  ", rule.finds),
        ("  why    ", rule.why),
        ("  fix    ", rule.fix),
        ("  from   ", decided),
        ("  see    ", &page_of(rule.code)),
    ] {
        text.push_str(&hanging(start, &said.replace('`', ""), screen.text_width()));
    }
    text
}

/// What a rule found, each in full.
pub(super) fn findings(code: &str, report: &Report, screen: &Screen) -> String {
    if report.findings.is_empty() {
        return format!("{code} finds nothing in {}.\n", report.subject());
    }
    report
        .findings
        .iter()
        .map(|finding| full(finding, screen))
        .collect::<Vec<_>>()
        .join("\n")
}

fn full(finding: &Finding, screen: &Screen) -> String {
    let fix = finding.fix.replace('`', "");
    let severity = screen.paint(role(finding.severity), finding.severity.as_str());
    let mut text = format!(
        "{} {severity}  {}  {}  {}\n",
        finding.code,
        place(finding),
        finding.title,
        finding.text
    );
    let width = screen.text_width();
    text.push_str(&hanging("  why   ", &finding.why, width));
    match &finding.edit {
        Some(edit) => {
            let _ = writeln!(text, "  fix   -{}", edit.before);
            for line in edit.after.lines().filter(|line| *line != edit.before) {
                let _ = writeln!(text, "        +{line}");
            }
            text.push_str(&hanging("        ", &fix, width));
        }
        None if fix.contains('\n') => {
            text.push_str("  fix\n");
            for line in fix.lines() {
                let _ = writeln!(text, "        {line}");
            }
        }
        None => text.push_str(&hanging("  fix   ", &fix, width)),
    }
    let _ = writeln!(text, "  see   {}", page_of(finding.code));
    text
}
