//! Are the names and labels of an object such that the API server takes them?

use std::sync::OnceLock;

use regex::Regex;
use serde_json::{Value, json};

use crate::{Resource, kind::Facts, schema::Problem};

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const NAME: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const VALUE: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";

struct Patterns {
    label: Option<Regex>,
    subdomain: Option<Regex>,
    name: Option<Regex>,
    value: Option<Regex>,
}

fn patterns() -> &'static Patterns {
    static PATTERNS: OnceLock<Patterns> = OnceLock::new();
    PATTERNS.get_or_init(|| {
        let whole = |pattern: &str| Regex::new(&format!("^(?:{pattern})$")).ok();
        Patterns {
            label: whole(LABEL),
            subdomain: whole(SUBDOMAIN),
            name: whole(NAME),
            value: whole(VALUE),
        }
    })
}

fn fits(pattern: Option<&Regex>, text: &str) -> bool {
    pattern.is_some_and(|pattern| pattern.is_match(text))
}

/// What is wrong with the metadata of an object.
pub(crate) fn check(resource: &Resource, facts: &Facts, object: &Value, before: Option<&Value>) -> Vec<Problem> {
    let metadata = &object["metadata"];
    let mut problems = Vec::new();
    if before.is_none() {
        if let Some(name) = metadata["name"].as_str().filter(|name| !name.is_empty()) {
            problems.extend(name_problem(resource, facts, name));
        } else {
            let why = "name or generateName is required";
            problems.push(Problem::required("metadata.name", why));
        }
    }
    if before.map(|before| &before["metadata"]["labels"]) != Some(&metadata["labels"]) {
        labels(&metadata["labels"], "metadata.labels", &mut problems);
    }
    for (key, _) in metadata["annotations"].as_object().into_iter().flatten() {
        if let Some(detail) = key_problem(&key.to_lowercase()) {
            problems.push(Problem::invalid("metadata.annotations", json!(key), detail));
        }
    }
    for finalizer in metadata["finalizers"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
    {
        if let Some(detail) = key_problem(finalizer) {
            problems.push(Problem::invalid("metadata.finalizers", json!(finalizer), detail));
        }
    }
    problems
}

fn name_problem(resource: &Resource, facts: &Facts, name: &str) -> Option<Problem> {
    // Nobody checks the names of some kinds.
    let free = ["rbac.authorization.k8s.io", "policy"].contains(&resource.group.as_str());
    let is_label = matches!(
        (resource.group.as_str(), resource.plural.as_str()),
        ("", "namespaces" | "services")
    );
    if free || !(facts.is_built_in || facts.definition.is_some()) {
        return None;
    }
    let detail = if is_label {
        if name.len() > 63 {
            return Some(Problem::invalid(
                "metadata.name",
                json!(name),
                "must be no more than 63 bytes",
            ));
        }
        (!fits(patterns().label.as_ref(), name)).then(label_words)
    } else {
        if name.len() > 253 {
            return Some(Problem::invalid(
                "metadata.name",
                json!(name),
                "must be no more than 253 bytes",
            ));
        }
        (!fits(patterns().subdomain.as_ref(), name)).then(subdomain_words)
    };
    detail.map(|detail| Problem::invalid("metadata.name", json!(name), detail))
}

fn label_words() -> String {
    format!(
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end \
         with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{LABEL}')"
    )
}

fn subdomain_words() -> String {
    format!(
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start \
         and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{SUBDOMAIN}')"
    )
}

/// What is wrong with labels.
pub(crate) fn labels(labels: &Value, field: &str, problems: &mut Vec<Problem>) {
    for (key, value) in labels.as_object().into_iter().flatten() {
        if let Some(detail) = key_problem(key) {
            problems.push(Problem::invalid(field, json!(key), detail));
        }
        let value = value.as_str().unwrap_or_default();
        if value.len() > 63 {
            problems.push(Problem::invalid(field, json!(value), "must be no more than 63 bytes"));
        }
        if !fits(patterns().value.as_ref(), value) {
            let detail = format!(
                "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and \
                 must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex \
                 used for validation is '{VALUE}')"
            );
            problems.push(Problem::invalid(field, json!(value), detail));
        }
    }
}

/// What is wrong with the key of a label.
fn key_problem(key: &str) -> Option<String> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    if let Some(prefix) = prefix {
        if prefix.is_empty() {
            return Some("prefix part must be non-empty".to_owned());
        }
        if !fits(patterns().subdomain.as_ref(), prefix) {
            return Some(format!("prefix part {}", subdomain_words()));
        }
    }
    if name.is_empty() {
        return Some("name part must be non-empty".to_owned());
    }
    if name.len() > 63 {
        return Some("name part must be no more than 63 bytes".to_owned());
    }
    (!fits(patterns().name.as_ref(), name)).then(|| {
        format!(
            "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
             alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{NAME}')"
        )
    })
}
