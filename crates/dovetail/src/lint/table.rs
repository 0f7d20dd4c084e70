//! Findings for people: a line that counts them, then a row each.

use ::lint::{Finding, Severity};

use super::{Report, rules};
use crate::terminal::{Align, Cell, Role, Screen, Table};

pub(super) fn render(report: &Report, is_wide: bool, screen: &Screen) -> String {
    if report.findings.is_empty() {
        return format!("No findings in {}; {} rules looked at.\n", report.subject(), rules());
    }
    let first = if report.is_whole {
        format!("{}: {}.\n", report.name, report.counts())
    } else {
        format!("{}: {}; {}.\n", report.name, report.subject(), report.counts())
    };
    let mut table = Table::default();
    for title in ["CODE", "SEVERITY", "OBJECT", "WHAT"] {
        table.column(title, Align::Left);
    }
    if is_wide {
        table.column("WHERE", Align::Left);
    } else {
        table.wrap_last();
    }
    for finding in &report.findings {
        let mut cells = vec![
            finding.code.into(),
            Cell::new(role(finding.severity), finding.severity.as_str()),
            finding.object.clone().into(),
            finding.text.clone().into(),
        ];
        if is_wide {
            cells.push(Cell::new(Role::Secondary, place(finding)));
        }
        table.row(cells);
    }
    first + &table.render(screen)
}

pub(super) fn role(severity: Severity) -> Role {
    match severity {
        Severity::Error => Role::Stop,
        Severity::Warning => Role::OnDemand,
        Severity::Note => Role::Secondary,
    }
}

/// `general.yaml:12`
pub(super) fn place(finding: &Finding) -> String {
    match finding.line {
        Some(line) => format!("{}:{line}", finding.source),
        None => finding.source.clone(),
    }
}
