//! Which objects does a selector choose? Label selectors as query strings and as objects, and field selectors.

use serde_json::Value;

/// What a list or a watch chooses by.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selector {
    labels: Vec<Rule>,
    fields: Vec<Rule>,
}

#[derive(Debug, Clone, PartialEq)]
struct Rule {
    key: String,
    test: Test,
}

#[derive(Debug, Clone, PartialEq)]
enum Test {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    DoesNotExist,
}

impl Test {
    fn admits(&self, value: Option<&str>) -> bool {
        let is_in = |values: &[String]| value.is_some_and(|value| values.iter().any(|one| one == value));
        match self {
            Self::In(values) => is_in(values),
            Self::NotIn(values) => !is_in(values),
            Self::Exists => value.is_some(),
            Self::DoesNotExist => value.is_none(),
        }
    }
}

impl Selector {
    /// From the query parameters of a request.
    pub(crate) fn parse(labels: Option<&str>, fields: Option<&str>) -> Self {
        let rules = |text: Option<&str>| terms(text.unwrap_or_default()).iter().map(|term| rule(term)).collect();
        Self {
            labels: rules(labels),
            fields: rules(fields),
        }
    }

    /// What the API server says of a label selector that it cannot read.
    pub(crate) fn flaw(labels: &str) -> Option<String> {
        terms(labels).iter().find_map(|term| term_flaw(term.trim()))
    }

    /// From a `LabelSelector` object; one that is not there chooses nothing, as in policy/v1.
    pub(crate) fn of_object(selector: Option<&Value>) -> Option<Self> {
        let selector = selector?;
        let mut labels = Vec::new();
        for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
            labels.push(Rule {
                key: key.clone(),
                test: Test::In(vec![text(value)]),
            });
        }
        for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
            let values = expression["values"]
                .as_array()
                .into_iter()
                .flatten()
                .map(text)
                .collect();
            let test = match expression["operator"].as_str() {
                Some("In") => Test::In(values),
                Some("NotIn") => Test::NotIn(values),
                Some("Exists") => Test::Exists,
                _ => Test::DoesNotExist,
            };
            labels.push(Rule {
                key: text(&expression["key"]),
                test,
            });
        }
        Some(Self {
            labels,
            fields: Vec::new(),
        })
    }

    pub(crate) fn chooses(&self, object: &Value) -> bool {
        let labels = &object["metadata"]["labels"];
        let label = |key: &str| labels.get(key).and_then(Value::as_str).map(str::to_owned);
        let by_label = |rule: &Rule| rule.test.admits(label(&rule.key).as_deref());
        let by_field = |rule: &Rule| rule.test.admits(Some(&field(object, &rule.key)));
        self.labels.iter().all(by_label) && self.fields.iter().all(by_field)
    }

    /// The fields it chooses by.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|rule| rule.key.as_str())
    }

    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// A field that is not there reads as empty, as the API server has it.
fn field(object: &Value, path: &str) -> String {
    let found = path.split('.').try_fold(object, |value, step| value.get(step));
    match found {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None if matches!(path, "spec.unschedulable" | "spec.hostNetwork") => "false".to_owned(),
        Some(Value::Null) | None if path == "status.replicas" => "0".to_owned(),
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    }
}

/// The comma-separated terms, commas in parentheses aside.
fn terms(selector: &str) -> Vec<String> {
    let mut terms = Vec::new();
    let mut depth = 0_u32;
    let mut term = String::new();
    for letter in selector.chars() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                terms.push(std::mem::take(&mut term));
                continue;
            }
            _ => {}
        }
        term.push(letter);
    }
    terms.push(term);
    terms.retain(|term| !term.trim().is_empty());
    terms
}

fn rule(term: &str) -> Rule {
    let term = term.trim();
    let rule = |key: &str, test| Rule {
        key: key.trim().to_owned(),
        test,
    };
    let list = |text: &str| {
        let inner = text.trim().trim_start_matches('(').trim_end_matches(')');
        inner.split(',').map(|value| value.trim().to_owned()).collect()
    };
    let one = |value: &str| vec![value.trim().to_owned()];
    if let Some((key, values)) = term.split_once(" notin ") {
        return rule(key, Test::NotIn(list(values)));
    }
    if let Some((key, values)) = term.split_once(" in ") {
        return rule(key, Test::In(list(values)));
    }
    if let Some((key, value)) = term.split_once("!=") {
        return rule(key, Test::NotIn(one(value)));
    }
    if let Some((key, value)) = term.split_once("==").or_else(|| term.split_once('=')) {
        return rule(key, Test::In(one(value)));
    }
    match term.strip_prefix('!') {
        Some(key) => rule(key, Test::DoesNotExist),
        None => rule(term, Test::Exists),
    }
}

fn term_flaw(term: &str) -> Option<String> {
    let unread = |why: String| Some(format!("unable to parse requirement: {why}"));
    let is_list = term.contains('(');
    if is_list && !term.ends_with(')') {
        return unread("found '', expected: ',' or ')'".to_owned());
    }
    let rule = rule(term);
    if let Some((_, odd)) = rule.key.split_once(char::is_whitespace) {
        let odd = odd.trim();
        return unread(format!("found '{odd}', expected: in, notin, =, ==, !=, gt, lt"));
    }
    let (Test::In(values) | Test::NotIn(values)) = &rule.test else {
        return None;
    };
    let mut odd = values
        .iter()
        .filter_map(|value| value.find(['=', ' ', '!']).map(|at| &value[at..]));
    let odd = odd.next()?.trim();
    if is_list {
        return unread(format!("found '{odd}', expected: ',' or ')'"));
    }
    Some(format!("found '{odd}', expected: ',' or 'end of string'"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selectors_choose_by_labels_and_fields() {
        let object = json!({"metadata": {"name": "x", "labels": {"a": "1", "b": "2"}}, "spec": {"nodeName": "n"}});
        let cases = [
            ("a=1", "", true),
            ("a==1,b!=3", "", true),
            ("a=2", "", false),
            ("a in (1, 2),!c", "", true),
            ("a notin (1,2)", "", false),
            ("c notin (1)", "", true),
            ("a,c", "", false),
            ("", "metadata.name=x", true),
            ("", "spec.nodeName=n,metadata.name!=y", true),
            ("", "spec.nodeName=", false),
            ("", "status.phase=", true),
        ];
        for (labels, fields, chosen) in cases {
            let selector = Selector::parse(Some(labels), Some(fields));
            assert_eq!(selector.chooses(&object), chosen, "{labels} {fields}");
        }
    }

    #[test]
    fn a_label_selector_that_cannot_be_read_is_told_from_one_that_chooses_nothing() {
        for selector in ["", "a", "!a", "a=1,b!=2", "a in (1, 2),c notin (3)", "a=", "a in (1)"] {
            assert_eq!(Selector::flaw(selector), None, "{selector}");
        }
        let cases = [
            (
                "app in (web",
                "unable to parse requirement: found '', expected: ',' or ')'",
            ),
            (
                "app web",
                "unable to parse requirement: found 'web', expected: in, notin, =, ==, !=, gt, lt",
            ),
            ("a=1=2", "found '=2', expected: ',' or 'end of string'"),
        ];
        for (selector, flaw) in cases {
            assert_eq!(Selector::flaw(selector).as_deref(), Some(flaw), "{selector}");
        }
    }

    #[test]
    fn an_empty_label_selector_chooses_everything_and_none_nothing() {
        let object = json!({"metadata": {"labels": {"a": "1"}}});
        assert!(Selector::of_object(Some(&json!({}))).unwrap().chooses(&object));
        assert!(Selector::of_object(None).is_none());
        let expression = json!({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]});
        assert!(!Selector::of_object(Some(&expression)).unwrap().chooses(&object));
    }
}
