//! Every rule finds what its bad manifest shows and nothing in its good one, and its page says so.
#![allow(clippy::unwrap_used, clippy::panic, reason = "the whole target is a test")]

use std::{path::PathBuf, sync::OnceLock};

use lint::{Finding, Needs, RULES, Rejection, Rule, Scope, World, document, findings, page};

/// A Monday afternoon.
const NOW: &str = "2026-11-16T15:42:00Z";

fn admission() -> simulator::Admission {
    let definitions = api::crds::installation(&api::provider::Provider::ALL);
    let definitions = definitions
        .iter()
        .map(|definition| serde_json::to_value(definition).unwrap());
    simulator::Admission::new(definitions)
}

fn look(admission: &simulator::Admission, scope: Scope, name: &str, text: &str) -> Vec<Finding> {
    let (documents, unreadable) = document::read(name, text);
    assert!(unreadable.is_empty(), "{name}: {unreadable:?}");
    let rejections = documents.iter().enumerate().flat_map(|(document, one)| {
        let objections = admission.objections(&one.value).into_iter();
        objections.map(move |objection| Rejection {
            document,
            path: objection.field,
            text: objection.text,
        })
    });
    let rejections = rejections.collect();
    findings(&World::new(documents, scope, NOW.parse().unwrap(), rejections))
}

fn scope(rule: &Rule) -> Scope {
    match rule.needs {
        Needs::Manifests | Needs::NotYet => Scope::Some,
        Needs::Cluster | Needs::Status => Scope::Whole,
    }
}

/// What all rules find in the manifests of one.
struct Looked {
    rule: &'static Rule,
    bad: Vec<Finding>,
    good: Vec<Finding>,
}

/// Looked at once, because catalogues take their time.
fn looked() -> &'static [Looked] {
    static LOOKED: OnceLock<Vec<Looked>> = OnceLock::new();
    LOOKED.get_or_init(|| {
        let admission = admission();
        let look = |rule: &'static Rule| Looked {
            rule,
            bad: look(&admission, scope(rule), "bad.yaml", rule.bad()),
            good: look(&admission, scope(rule), "good.yaml", rule.good()),
        };
        decided().map(look).collect()
    })
}

fn decided() -> impl Iterator<Item = &'static Rule> {
    RULES.iter().filter(|rule| rule.needs != Needs::NotYet)
}

#[test]
fn every_rule_finds_its_bad_manifest_and_passes_its_good_one() {
    let mut wrong = Vec::new();
    for Looked { rule, bad, good } in looked() {
        let is_its = |finding: &&Finding| finding.code == rule.code;
        if !bad.iter().any(|finding| is_its(&finding)) {
            wrong.push(format!(
                "{} finds nothing in its bad manifest; found {bad:#?}",
                rule.code
            ));
        }
        if let Some(found) = good.iter().find(is_its) {
            wrong.push(format!(
                "{} finds something in its good manifest: {found:#?}",
                rule.code
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_good_manifest_has_no_error_of_any_rule() {
    let mut wrong = Vec::new();
    for Looked { rule, good, .. } in looked() {
        let grave = good.iter().filter(|finding| finding.severity == lint::Severity::Error);
        wrong.extend(grave.map(|finding| format!("good manifest of {}: {} {}", rule.code, finding.code, finding.text)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_finding_names_a_line_of_its_manifest() {
    for Looked { rule, bad, .. } in looked() {
        for finding in bad {
            let lines = u32::try_from(rule.bad().lines().count()).unwrap();
            assert!(
                finding.line.is_some_and(|line| (1..=lines).contains(&line)),
                "{finding:?}"
            );
            assert!(
                !finding.text.is_empty() && !finding.why.is_empty() && !finding.fix.is_empty(),
                "{finding:?}"
            );
        }
    }
}

/// What a one-line fix makes of a manifest has one finding less of its rule.
#[test]
fn a_fix_of_one_line_takes_the_finding_away() {
    let admission = admission();
    let mut wrong = Vec::new();
    for Looked { rule, bad, .. } in looked() {
        let of_rule = |text: &str| {
            let all = look(&admission, scope(rule), "bad.yaml", text);
            all.into_iter()
                .filter(|finding| finding.code == rule.code)
                .collect::<Vec<_>>()
        };
        let before: Vec<_> = bad.iter().filter(|finding| finding.code == rule.code).collect();
        for edit in before.iter().filter_map(|finding| finding.edit.as_ref()) {
            let lines = rule.bad().lines().enumerate();
            let mended = lines.map(|(at, line)| {
                if at + 1 == edit.line as usize {
                    edit.after.as_str()
                } else {
                    line
                }
            });
            let mended = mended.collect::<Vec<_>>().join("\n");
            let after = of_rule(&mended);
            if after.len() >= before.len() {
                wrong.push(format!("{}: {edit:?} leaves {after:#?}", rule.code));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn an_annotation_with_a_reason_silences_a_rule_and_one_without_does_not() {
    let admission = admission();
    let pool = |ignore: &str| {
        let rule = lint::rule("NP04").unwrap();
        let annotated = format!("  name: general\n  annotations:\n    dovetail.dev/lint-ignore: \"{ignore}\"\n");
        let text = rule.bad().replacen("  name: general\n", &annotated, 1);
        let all = look(&admission, Scope::Some, "bad.yaml", &text);
        all.into_iter()
            .find(|finding| finding.code == "NP04")
            .map(|finding| finding.text)
    };
    assert_eq!(pool("NP04 interruptible by design"), None);
    assert!(pool("NP05 interruptible by design").is_some());
    assert!(pool("NP04").unwrap().ends_with("without a reason, which it needs)"));
}

fn pages() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/lint")
}

/// `DOVETAIL_WRITE_PAGES=1` writes them.
#[test]
#[allow(clippy::disallowed_methods, reason = "how the pages are asked for")]
fn the_pages_say_what_the_rules_do() {
    let is_asked = std::env::var("DOVETAIL_WRITE_PAGES").is_ok();
    let of_rule = |rule: &'static Rule| {
        let found = looked()
            .iter()
            .filter(|looked| looked.rule.code == rule.code)
            .flat_map(|looked| looked.bad.clone());
        let found: Vec<_> = found.filter(|finding| finding.code == rule.code).collect();
        (format!("{}.md", rule.code), page::page(rule, &found))
    };
    let mut stale = Vec::new();
    for (name, text) in RULES
        .iter()
        .map(of_rule)
        .chain([("README.md".to_owned(), page::index())])
    {
        let path = pages().join(&name);
        if is_asked {
            std::fs::create_dir_all(pages()).unwrap();
            std::fs::write(&path, &text).unwrap();
        }
        if std::fs::read_to_string(&path).unwrap_or_default() != text {
            stale.push(name);
        }
    }
    assert!(stale.is_empty(), "stale: {stale:?}; DOVETAIL_WRITE_PAGES=1 writes them");
}
