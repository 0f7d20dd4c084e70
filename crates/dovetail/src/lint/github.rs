//! Findings as annotations of GitHub Actions: a workflow command each, which GitHub shows beside the line.

use ::lint::{Finding, Severity};

pub(super) fn annotations(findings: &[Finding]) -> String {
    findings.iter().map(annotation).collect()
}

fn annotation(finding: &Finding) -> String {
    let level = match finding.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "notice",
    };
    let line = finding.line.map_or(String::new(), |line| format!(",line={line}"));
    let title = property(&format!("{} {}", finding.code, finding.rule));
    let told = message(&format!("{}: {}\nfix: {}", finding.title, finding.text, finding.fix));
    format!(
        "::{level} file={}{line},title={title}::{told}\n",
        property(&finding.source)
    )
}

/// What would end a message.
fn message(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// What would end a property, too.
fn property(text: &str) -> String {
    message(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_that_end_a_property_or_a_message_are_escaped() {
        assert_eq!(property("a:b,c%\n"), "a%3Ab%2Cc%25%0A");
        assert_eq!(message("90% used: yes\nno"), "90%25 used: yes%0Ano");
    }
}
