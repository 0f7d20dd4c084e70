//! How do two CustomResourceDefinitions of one name differ, field by field, and which of them accepts more?
//!
//! Texts for people are no difference: descriptions, and what a generator or the API server writes beside the schema.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;

/// A difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Change {
    /// The version it is in; empty for the definition as a whole.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) version: String,
    /// The field of objects, such as `spec.disruption.budgets[].nodes`; or of the definition.
    pub(super) path: String,
    pub(super) effect: Effect,
    /// From what is there to what this program has.
    pub(super) text: String,
}

/// What a difference means for objects that are written after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Effect {
    /// Something is refused that was accepted.
    Stricter,
    /// Something is accepted that was refused.
    Looser,
    /// Neither.
    Other,
}

/// Keys of a schema whose greater value refuses more, and those whose lesser one does.
const LEAST: [&str; 4] = ["minimum", "minLength", "minItems", "minProperties"];
const MOST: [&str; 4] = ["maximum", "maxLength", "maxItems", "maxProperties"];
/// What is compared in a way of its own, or not at all.
const APART: [&str; 9] = [
    "description",
    "title",
    "example",
    "properties",
    "items",
    "additionalProperties",
    "required",
    "enum",
    "x-kubernetes-validations",
];
/// Longer texts are cut: a rule is known by its beginning.
const LONGEST: usize = 100;

/// From the definition that is there to ours.
pub(super) fn changes(theirs: &Value, ours: &Value) -> Vec<Change> {
    let mut found = Found::default();
    for path in ["group", "scope"] {
        found.value(
            &format!("spec.{path}"),
            &theirs["spec"][path],
            &ours["spec"][path],
            Effect::Other,
        );
    }
    for path in ["kind", "plural", "shortNames", "categories"] {
        let (was, is) = (&theirs["spec"]["names"][path], &ours["spec"]["names"][path]);
        found.value(&format!("spec.names.{path}"), was, is, Effect::Other);
    }
    found.versions(theirs, ours);
    found.changes
}

#[derive(Default)]
struct Found {
    version: String,
    changes: Vec<Change>,
}

fn versions(definition: &Value) -> impl Iterator<Item = &Value> {
    definition["spec"]["versions"].as_array().into_iter().flatten()
}

impl Found {
    fn add(&mut self, path: &str, effect: Effect, text: impl Into<String>) {
        self.changes.push(Change {
            version: self.version.clone(),
            path: path.to_owned(),
            effect,
            text: text.into(),
        });
    }

    /// A value that is one thing or another.
    fn value(&mut self, path: &str, theirs: &Value, ours: &Value, effect: Effect) {
        if in_order(theirs) != in_order(ours) {
            self.add(path, effect, format!("{} becomes {}", shown(theirs), shown(ours)));
        }
    }

    fn versions(&mut self, theirs: &Value, ours: &Value) {
        let named =
            |definition: &'_ Value, name: &Value| versions(definition).find(|one| one["name"] == *name).cloned();
        for version in versions(theirs).filter(|one| one["served"] == true) {
            let name = version["name"].as_str().unwrap_or_default();
            if named(ours, &version["name"]).is_none() {
                self.add("spec.versions", Effect::Stricter, format!("{name} is no longer served"));
            }
        }
        for version in versions(ours) {
            let name = version["name"].as_str().unwrap_or_default();
            let Some(known) = named(theirs, &version["name"]) else {
                self.add("spec.versions", Effect::Looser, format!("{name} is new"));
                continue;
            };
            name.clone_into(&mut self.version);
            for flag in ["served", "storage"] {
                self.value(flag, &known[flag], &version[flag], Effect::Other);
            }
            self.columns(&known, version);
            for part in ["subresources", "selectableFields"] {
                self.value(part, &known[part], &version[part], Effect::Other);
            }
            let schema = |version: &Value| version["schema"]["openAPIV3Schema"].clone();
            self.schema("", &schema(&known), &schema(version));
            self.version.clear();
        }
    }

    /// Columns of `kubectl get`, by what they show.
    fn columns(&mut self, theirs: &Value, ours: &Value) {
        let columns = |version: &Value| -> BTreeSet<String> {
            let all = version["additionalPrinterColumns"].as_array().into_iter().flatten();
            all.map(|one| {
                format!(
                    "{} {}",
                    one["name"].as_str().unwrap_or_default(),
                    one["jsonPath"].as_str().unwrap_or_default()
                )
            })
            .collect()
        };
        let (was, is) = (columns(theirs), columns(ours));
        for column in was.difference(&is) {
            self.add("columns of kubectl get", Effect::Other, format!("without {column}"));
        }
        for column in is.difference(&was) {
            self.add("columns of kubectl get", Effect::Other, format!("with {column}"));
        }
    }

    fn schema(&mut self, path: &str, theirs: &Value, ours: &Value) {
        let place = if path.is_empty() { "the object" } else { path };
        self.bounds(place, theirs, ours);
        self.sets(place, theirs, ours);
        self.rules(place, theirs, ours);
        self.rest(place, theirs, ours);
        self.fields(path, theirs, ours);
        for (part, sign) in [("items", "[]"), ("additionalProperties", ".*")] {
            match (theirs[part].is_object(), ours[part].is_object()) {
                (true, true) => self.schema(&format!("{path}{sign}"), &theirs[part], &ours[part]),
                (false, false) => self.value(&format!("{place}, {part}"), &theirs[part], &ours[part], Effect::Other),
                _ => self.add(place, Effect::Other, format!("{part} is described in one of them only")),
            }
        }
    }

    fn fields(&mut self, path: &str, theirs: &Value, ours: &Value) {
        let names = |schema: &Value| -> BTreeSet<String> {
            let fields = schema["properties"].as_object().into_iter().flatten();
            fields.map(|(name, _)| name.clone()).collect()
        };
        let (was, is) = (names(theirs), names(ours));
        for name in was.union(&is) {
            let place = if path.is_empty() {
                name.clone()
            } else {
                format!("{path}.{name}")
            };
            match (was.contains(name), is.contains(name)) {
                (true, false) => self.add(
                    &place,
                    Effect::Stricter,
                    "the field goes: what objects have in it is dropped",
                ),
                (false, true) => self.add(&place, Effect::Looser, "the field is new"),
                _ => {
                    let (theirs, ours) = (&theirs["properties"][name], &ours["properties"][name]);
                    self.schema(&place, theirs, ours);
                }
            }
        }
    }

    fn bounds(&mut self, path: &str, theirs: &Value, ours: &Value) {
        for (names, is_least) in [(LEAST, true), (MOST, false)] {
            for name in names {
                let (was, is) = (theirs[name].as_f64(), ours[name].as_f64());
                if was == is {
                    continue;
                }
                let is_stricter = match (was, is) {
                    (None, Some(_)) => true,
                    (Some(was), Some(is)) => (is > was) == is_least,
                    _ => false,
                };
                let effect = if is_stricter { Effect::Stricter } else { Effect::Looser };
                let text = format!("{name} {} becomes {}", shown(&theirs[name]), shown(&ours[name]));
                self.add(path, effect, text);
            }
        }
    }

    /// Words that must be there, and words that may.
    fn sets(&mut self, path: &str, theirs: &Value, ours: &Value) {
        let words = |schema: &Value, name: &str| -> BTreeSet<String> {
            let all = schema[name].as_array().into_iter().flatten();
            all.map(shown).collect()
        };
        let (was, is) = (words(theirs, "required"), words(ours, "required"));
        for name in is.difference(&was) {
            self.add(path, Effect::Stricter, format!("{name} is required"));
        }
        for name in was.difference(&is) {
            self.add(path, Effect::Looser, format!("{name} is no longer required"));
        }
        let (was, is) = (words(theirs, "enum"), words(ours, "enum"));
        match (was.is_empty(), is.is_empty()) {
            (true, true) => {}
            (true, false) => {
                let all: Vec<String> = is.into_iter().collect();
                self.add(
                    path,
                    Effect::Stricter,
                    format!("only {} may be written", all.join(", ")),
                );
            }
            (false, true) => self.add(path, Effect::Looser, "anything may be written"),
            (false, false) => {
                for value in is.difference(&was) {
                    self.add(path, Effect::Looser, format!("{value} may be written"));
                }
                for value in was.difference(&is) {
                    self.add(path, Effect::Stricter, format!("{value} may no longer be written"));
                }
            }
        }
    }

    /// Rules of CEL, by their text; what they say when they refuse is for people.
    fn rules(&mut self, path: &str, theirs: &Value, ours: &Value) {
        let rules = |schema: &Value| -> BTreeSet<String> {
            let all = schema["x-kubernetes-validations"].as_array().into_iter().flatten();
            all.filter_map(|one| one["rule"].as_str().map(str::to_owned)).collect()
        };
        let (was, is) = (rules(theirs), rules(ours));
        for rule in is.difference(&was) {
            self.add(path, Effect::Stricter, format!("rule is new: {}", brief(rule)));
        }
        for rule in was.difference(&is) {
            self.add(path, Effect::Looser, format!("rule goes: {}", brief(rule)));
        }
    }

    /// Everything else that a schema says: types, patterns, formats, defaults, how lists are merged.
    fn rest(&mut self, path: &str, theirs: &Value, ours: &Value) {
        let keys = |schema: &Value| -> Vec<String> {
            let fields = schema.as_object().into_iter().flatten();
            fields.map(|(name, _)| name.clone()).collect()
        };
        let all: BTreeSet<String> = keys(theirs).into_iter().chain(keys(ours)).collect();
        let is_plain = |name: &&String| {
            ![&APART[..], &LEAST, &MOST]
                .iter()
                .any(|names| names.contains(&name.as_str()))
        };
        for name in all.iter().filter(is_plain) {
            let (was, is) = (&theirs[name.as_str()], &ours[name.as_str()]);
            let effect = match (name.as_str(), was.is_null(), is.is_null()) {
                ("pattern" | "format", true, false) => Effect::Stricter,
                ("pattern" | "format", false, true) => Effect::Looser,
                _ => Effect::Other,
            };
            if in_order(was) != in_order(is) {
                self.add(path, effect, format!("{name} {} becomes {}", shown(was), shown(is)));
            }
        }
    }
}

/// Lists of names, however they are written; a whole number and the same with a fraction are one.
fn in_order(value: &Value) -> Value {
    match value {
        Value::Array(items) if items.iter().all(Value::is_string) => {
            let mut items = items.clone();
            items.sort_by_key(ToString::to_string);
            Value::Array(items)
        }
        // What is left out is empty.
        Value::Object(fields) if fields.is_empty() => Value::Null,
        Value::Number(number) => number.as_f64().map_or_else(|| value.clone(), Value::from),
        other => other.clone(),
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::String(text) => brief(text),
        other => brief(&other.to_string()),
    }
}

fn brief(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.len() <= LONGEST {
        return text;
    }
    let end = text.floor_char_boundary(LONGEST);
    format!("{}…", text.get(..end).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn definition(schema: &Value) -> Value {
        json!({"spec": {"group": "karpenter.sh", "scope": "Cluster", "names": {"kind": "NodePool"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}})
    }

    /// Effects and texts, with their paths.
    fn told(theirs: &Value, ours: &Value) -> Vec<(Effect, String)> {
        let all = changes(&definition(theirs), &definition(ours));
        all.into_iter()
            .map(|change| (change.effect, format!("{}: {}", change.path, change.text)))
            .collect()
    }

    fn of(field: &Value) -> Value {
        json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"weight": field}}}})
    }

    #[test]
    fn descriptions_and_the_order_of_names_are_no_difference() {
        let theirs = of(&json!({"type": "integer", "description": "theirs", "enum": ["a", "b"], "maximum": 100}));
        let ours = of(&json!({"type": "integer", "description": "ours", "enum": ["b", "a"], "maximum": 100.0}));
        assert_eq!(told(&theirs, &ours), []);
    }

    #[test]
    fn a_field_called_description_is_a_field() {
        let with = json!({"type": "object", "properties": {"description": {"type": "string"}}});
        let told = told(&json!({"type": "object"}), &with);
        assert_eq!(told, [(Effect::Looser, "description: the field is new".to_owned())]);
    }

    #[test]
    fn each_difference_says_whether_more_or_less_is_accepted() {
        let cases = [
            (json!({"maximum": 100}), json!({"maximum": 10}), Effect::Stricter),
            (json!({"minimum": 1}), json!({"minimum": 0}), Effect::Looser),
            (json!({}), json!({"maxItems": 5}), Effect::Stricter),
            (json!({"enum": ["a"]}), json!({"enum": ["a", "b"]}), Effect::Looser),
            (json!({}), json!({"pattern": "^x$"}), Effect::Stricter),
            (
                json!({}),
                json!({"x-kubernetes-validations": [{"rule": "self > 1", "message": "m"}]}),
                Effect::Stricter,
            ),
            (json!({"required": ["a"]}), json!({}), Effect::Looser),
            (json!({"default": 1}), json!({"default": 2}), Effect::Other),
            (
                json!({"items": {"enum": ["a"]}}),
                json!({"items": {"enum": ["b", "a"]}}),
                Effect::Looser,
            ),
        ];
        for (theirs, ours, effect) in cases {
            let told = told(&of(&theirs), &of(&ours));
            let [(found, text)] = told.as_slice() else {
                panic!("{theirs} {ours}: {told:?}")
            };
            assert_eq!(*found, effect, "{text}");
            assert!(text.starts_with("spec.weight"), "{text}");
        }
    }

    #[test]
    fn versions_that_come_and_go_are_told() {
        let mut theirs = definition(&json!({}));
        theirs["spec"]["versions"][0]["name"] = json!("v1beta1");
        let all = changes(&theirs, &definition(&json!({})));
        let texts: Vec<_> = all.iter().map(|change| change.text.as_str()).collect();
        assert_eq!(texts, ["v1beta1 is no longer served", "v1 is new"]);
    }
}
