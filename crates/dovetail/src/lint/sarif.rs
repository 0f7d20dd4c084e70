//! Findings as SARIF 2.1.0, which code hosts and editors read: the rules, the results with their lines, and fixes as
//! replacements of lines.

use std::fmt::Write;

use ::lint::{Edit, Finding, RULES, Severity};
use serde_json::{Value, json};

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

pub(super) fn log(findings: &[Finding]) -> Value {
    let rules: Vec<Value> = RULES.iter().map(rule).collect();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "dovetail",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "columnKind": "unicodeCodePoints",
            "results": findings.iter().map(result).collect::<Vec<_>>(),
        }],
    })
}

fn level(severity: Severity) -> &'static str {
    severity.as_str()
}

fn rule(rule: &::lint::Rule) -> Value {
    let help = format!(
        "{}.\n\nWhat mends it: {}. See {}.",
        rule.why,
        rule.fix,
        super::page_of(rule.code)
    );
    json!({
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": rule.finds},
        "fullDescription": {"text": format!("Finds {}: {}.", rule.finds, rule.why)},
        "help": {"text": help},
        "defaultConfiguration": {"level": level(rule.severity)},
    })
}

fn result(finding: &Finding) -> Value {
    let index = RULES.iter().position(|rule| rule.code == finding.code);
    let mut location = json!({"artifactLocation": {"uri": uri(&finding.source)}});
    if let Some(line) = finding.line {
        location["region"] = json!({"startLine": line});
    }
    let mut result = json!({
        "ruleId": finding.code,
        "ruleIndex": index,
        "level": level(finding.severity),
        "message": {"text": format!("{}: {}. Fix: {}", finding.title, finding.text, finding.fix)},
        "locations": [{
            "physicalLocation": location,
            "logicalLocations": [{"fullyQualifiedName": format!("{} {}", finding.object, finding.path)}],
        }],
    });
    if let Some(edit) = &finding.edit {
        result["fixes"] = json!([fix(finding, edit)]);
    }
    result
}

fn fix(finding: &Finding, edit: &Edit) -> Value {
    let end = edit.before.chars().count() + 1;
    json!({
        "description": {"text": finding.fix},
        "artifactChanges": [{
            "artifactLocation": {"uri": uri(&finding.source)},
            "replacements": [{
                "deletedRegion": {"startLine": edit.line, "startColumn": 1, "endLine": edit.line, "endColumn": end},
                "insertedContent": {"text": edit.after},
            }],
        }],
    })
}

/// A path as a relative reference: only what would change its meaning is escaped.
fn uri(path: &str) -> String {
    let plain = path.strip_prefix("./").unwrap_or(path);
    let mut uri = String::new();
    for byte in plain.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => uri.push(char::from(byte)),
            other => {
                let _ = write!(uri, "%{other:02X}");
            }
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_a_reference_whatever_signs_it_has() {
        assert_eq!(uri("./a b/c#1.yaml"), "a%20b/c%231.yaml");
        assert_eq!(uri("dir/pool.yaml"), "dir/pool.yaml");
    }
}
