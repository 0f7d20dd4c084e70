//! Which values does a JSON path of a printer column find?

use serde_json::Value;

/// A path: fields, indices, all items, or items that have a field of a value.
#[derive(Debug, PartialEq)]
pub(super) struct Path(Vec<Step>);

#[derive(Debug, PartialEq)]
enum Step {
    Field(String),
    Index(usize),
    All,
    Where(Vec<String>, String),
}

impl Path {
    pub(super) fn parse(text: &str) -> Self {
        let mut steps = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix('.') {
                let (field, left) = field(after);
                if !field.is_empty() {
                    steps.push(Step::Field(field));
                }
                rest = left;
            } else if let Some(after) = rest.strip_prefix('[') {
                let end = closing(after);
                steps.push(bracket(&after[..end]));
                rest = after.get(end + 1..).unwrap_or_default();
            } else {
                let (field, left) = field(rest);
                steps.push(Step::Field(field));
                rest = left;
            }
        }
        Self(steps)
    }

    pub(super) fn find<'a>(&self, object: &'a Value) -> Vec<&'a Value> {
        let mut found = vec![object];
        for step in &self.0 {
            found = found.into_iter().flat_map(|value| step.from(value)).collect();
        }
        found.retain(|value| !value.is_null());
        found
    }
}

impl Step {
    fn from<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        match self {
            Self::Field(name) => value.get(name).into_iter().collect(),
            Self::Index(index) => value.get(index).into_iter().collect(),
            Self::All => match value {
                Value::Array(items) => items.iter().collect(),
                Value::Object(fields) => fields.values().collect(),
                _ => Vec::new(),
            },
            Self::Where(path, wanted) => {
                let has = |item: &&Value| {
                    let found = path.iter().try_fold(*item, |value, step| value.get(step));
                    found
                        .is_some_and(|found| found.as_str().map_or_else(|| found.to_string(), str::to_owned) == *wanted)
                };
                value.as_array().into_iter().flatten().filter(has).collect()
            }
        }
    }
}

/// A field and what comes after it; a backslash makes the next letter part of the name.
fn field(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '.' | '[' => return (name, &text[at..]),
            '\\' => name.extend(letters.next().map(|(_, letter)| letter)),
            _ => name.push(letter),
        }
    }
    (name, "")
}

fn closing(text: &str) -> usize {
    let mut quote = None;
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (None, ']') => return at,
            (None, '"' | '\'') => quote = Some(letter),
            (Some(open), _) if open == letter => quote = None,
            _ => {}
        }
    }
    text.len()
}

fn bracket(inner: &str) -> Step {
    let plain = |text: &str| text.trim().trim_matches(['"', '\'']).to_owned();
    if inner == "*" {
        return Step::All;
    }
    if let Ok(index) = inner.parse() {
        return Step::Index(index);
    }
    let filter = inner.strip_prefix("?(").and_then(|rest| rest.strip_suffix(')'));
    match filter.and_then(|filter| filter.split_once("==")) {
        Some((path, value)) => {
            let path = path.trim().trim_start_matches('@').trim_start_matches('.');
            Step::Where(path.split('.').map(str::to_owned).collect(), plain(value))
        }
        None => Step::Field(plain(inner)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_of_printer_columns_find_what_they_name() {
        let object = json!({"metadata": {"labels": {"karpenter.sh/nodepool": "a"}}, "spec": {"list": [{"x": 1}, {"x": 2}]},
            "status": {"conditions": [{"type": "Drifted", "status": "False"}, {"type": "Ready", "status": "True"}]}});
        let cases = [
            (r#".status.conditions[?(@.type=="Ready")].status"#, vec![json!("True")]),
            (r".metadata.labels.karpenter\.sh/nodepool", vec![json!("a")]),
            (".metadata.labels['karpenter.sh/nodepool']", vec![json!("a")]),
            (".spec.list[*].x", vec![json!(1), json!(2)]),
            (".spec.list[1].x", vec![json!(2)]),
            (".spec.nothing.x", vec![]),
        ];
        for (path, expected) in cases {
            let found: Vec<Value> = Path::parse(path).find(&object).into_iter().cloned().collect();
            assert_eq!(found, expected, "{path}");
        }
    }
}
