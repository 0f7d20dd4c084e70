//! Is a body what the published schema says? Finds everything that is wrong with it, each with its place.
//!
//! The schemas use a small part of the language, and two things that general validators do not know: a property that only
//! the service may set (`readOnly`), and objects that are closed although `allOf` composes them.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use regex::Regex;
use serde_json::Value;

/// Who wrote a body.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// A client: it may not set what is read-only, and must choose from the known values.
    Request,
    /// This double.
    Response,
}

/// The named schemas of one set.
pub(crate) struct Definitions(BTreeMap<String, Value>);

impl Definitions {
    pub(crate) fn parse(text: &str) -> serde_json::Result<Self> {
        serde_json::from_str(text).map(Self)
    }

    /// What is wrong with a body of a schema; `excused` are the places at and below which read-only properties may be sent.
    pub(crate) fn problems(&self, schema: &str, body: &Value, side: Side, excused: &[&str]) -> Vec<String> {
        let mut check = Check {
            definitions: self,
            side,
            excused,
            problems: Vec::new(),
        };
        match self.0.get(schema) {
            Some(schema) => check.value(schema, body, ""),
            None => check.problems.push(format!("no schema is called `{schema}`")),
        }
        check.problems
    }

    /// A schema with all it is composed of, references resolved.
    fn layers<'a>(&'a self, schema: &'a Value) -> Vec<&'a Value> {
        let mut layers = vec![schema];
        if let Some(target) = schema["$ref"].as_str().and_then(|name| self.0.get(name)) {
            layers.extend(self.layers(target));
        }
        for part in schema["allOf"].as_array().into_iter().flatten() {
            layers.extend(self.layers(part));
        }
        layers
    }
}

struct Check<'a> {
    definitions: &'a Definitions,
    side: Side,
    excused: &'a [&'a str],
    problems: Vec<String>,
}

impl Check<'_> {
    fn report(&mut self, place: &str, what: &str) {
        let place = if place.is_empty() { "/" } else { place };
        self.problems.push(format!("{place}: {what}"));
    }

    fn value(&mut self, schema: &Value, value: &Value, place: &str) {
        let definitions = self.definitions;
        let layers = definitions.layers(schema);
        for layer in &layers {
            if !fits_type(&layer["type"], value) {
                let expected = layer["type"].to_string().replace('"', "");
                self.report(place, &format!("is {}, expected {expected}", kind(value)));
                return;
            }
            self.choices(layer, value, place);
            self.limits(layer, value, place);
        }
        match value {
            Value::Object(fields) => self.object(&layers, fields, place),
            Value::Array(items) => {
                let of = layers.iter().find_map(|layer| layer.get("items"));
                for (index, item) in items.iter().enumerate() {
                    if let Some(of) = of {
                        self.value(of, item, &format!("{place}/{index}"));
                    }
                }
            }
            _ => {}
        }
    }

    fn object(&mut self, layers: &[&Value], fields: &serde_json::Map<String, Value>, place: &str) {
        let properties: BTreeMap<&String, &Value> = layers
            .iter()
            .filter_map(|layer| layer["properties"].as_object())
            .flatten()
            .collect();
        let required: BTreeSet<&str> = layers
            .iter()
            .filter_map(|layer| layer["required"].as_array())
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        for name in required.iter().filter(|name| !fields.contains_key(**name)) {
            self.report(place, &format!("`{name}` is missing"));
        }
        let rest = layers.iter().find_map(|layer| layer.get("additionalProperties"));
        let is_open = rest.map_or(properties.is_empty(), |rest| rest != &Value::Bool(false))
            || layers.iter().any(|layer| layer.get("discriminator").is_some());
        for (name, value) in fields {
            let inner = format!("{place}/{name}");
            match properties.get(name) {
                Some(schema) => self.property(schema, value, &inner),
                None if !is_open => self.report(&inner, &unknown(name, &properties)),
                None => {
                    if let Some(rest) = rest.filter(|rest| rest.is_object()) {
                        self.value(rest, value, &inner);
                    }
                }
            }
        }
    }

    fn property(&mut self, schema: &Value, value: &Value, place: &str) {
        let is_excused = self.excused.iter().any(|excused| {
            let rest = place.strip_prefix(excused);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
        if self.side == Side::Request && schema["readOnly"] == Value::Bool(true) && !is_excused {
            self.report(place, "is read-only and may not be sent");
            return;
        }
        if self.side == Side::Response && schema["x-ms-secret"] == Value::Bool(true) {
            self.report(place, "is a secret and may not be answered");
        }
        self.value(schema, value, place);
    }

    fn choices(&mut self, schema: &Value, value: &Value, place: &str) {
        if let Some(only) = schema.get("const").filter(|only| *only != value) {
            self.report(place, &format!("is {value}, expected {only}"));
        }
        let known = match self.side {
            // What is not in the list of an open enumeration is a typing error of ours far more often than news.
            Side::Request => schema.get("enum").or_else(|| schema.get("x-known-values")),
            Side::Response => schema.get("enum"),
        };
        if let Some(known) = known.and_then(Value::as_array).filter(|known| !known.contains(value)) {
            self.report(
                place,
                &format!("is {value}, expected one of {}", Value::from(known.clone())),
            );
        }
    }

    fn limits(&mut self, schema: &Value, value: &Value, place: &str) {
        if let Some(number) = value.as_f64() {
            let range = if schema["format"] == "int32" {
                (f64::from(i32::MIN), f64::from(i32::MAX))
            } else {
                (f64::MIN, f64::MAX)
            };
            let least = schema["minimum"].as_f64().unwrap_or(range.0);
            let most = schema["maximum"].as_f64().unwrap_or(range.1);
            if number < least || number > most {
                self.report(place, &format!("is {value}, outside {least} to {most}"));
            }
        }
        let (length, names) = match value {
            Value::String(text) => (text.chars().count(), ("minLength", "maxLength")),
            Value::Array(items) => (items.len(), ("minItems", "maxItems")),
            _ => return,
        };
        let length = u64::try_from(length).unwrap_or(u64::MAX);
        let least = schema[names.0].as_u64().unwrap_or(0);
        let most = schema[names.1].as_u64().unwrap_or(u64::MAX);
        if length < least || length > most {
            self.report(place, &format!("has length {length}, outside {least} to {most}"));
        }
        if let Some(text) = value.as_str() {
            self.form(schema, text, place);
        }
    }

    fn form(&mut self, schema: &Value, text: &str, place: &str) {
        let pattern = schema["pattern"].as_str().and_then(|pattern| Regex::new(pattern).ok());
        if pattern.is_some_and(|pattern| !pattern.is_match(text)) {
            self.report(place, &format!("is `{text}`, expected to match {}", schema["pattern"]));
        }
        if schema["format"] == "date-time" && text.parse::<Timestamp>().is_err() {
            self.report(place, &format!("is `{text}`, which is no time"));
        }
    }
}

fn unknown(name: &str, properties: &BTreeMap<&String, &Value>) -> String {
    match properties.keys().find(|known| known.eq_ignore_ascii_case(name)) {
        Some(known) => format!("is not known; it is written `{known}`"),
        None => "is not known".to_owned(),
    }
}

fn fits_type(expected: &Value, value: &Value) -> bool {
    match expected {
        Value::String(name) => is_a(name, value),
        Value::Array(names) => names.iter().filter_map(Value::as_str).any(|name| is_a(name, value)),
        _ => true,
    }
}

fn is_a(name: &str, value: &Value) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        _ => false,
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problems(side: Side, body: &Value) -> Vec<String> {
        let schemas = r#"{
            "Base": {"properties": {"id": {"type": "string", "readOnly": true}}},
            "Thing": {"allOf": [{"$ref": "Base"}], "required": ["name"], "properties": {
                "name": {"type": "string", "maxLength": 4, "pattern": "^[a-z]+$"},
                "mode": {"type": "string", "x-known-values": ["On", "Off"]},
                "count": {"type": "integer", "minimum": 1, "format": "int32"},
                "tags": {"type": "object", "additionalProperties": {"type": "string"}},
                "next": {"$ref": "Thing"}
            }}
        }"#;
        Definitions::parse(schemas).unwrap().problems("Thing", body, side, &[])
    }

    #[test]
    fn a_body_that_keeps_the_rules_has_no_problems() {
        let body =
            json!({"name": "a", "mode": "On", "count": 2, "tags": {"any": "thing"}, "next": {"name": "b", "tags": {}}});
        assert_eq!(problems(Side::Request, &body), Vec::<String>::new());
    }

    #[test]
    fn every_broken_rule_is_told_with_its_place() {
        let body =
            json!({"id": "x", "Name": "a", "mode": "on", "count": 0, "tags": {"k": 1}, "next": {"name": "ABCDE"}});
        assert_eq!(
            problems(Side::Request, &body),
            [
                "/: `name` is missing",
                "/Name: is not known; it is written `name`",
                "/count: is 0, outside 1 to 2147483647",
                "/id: is read-only and may not be sent",
                r#"/mode: is "on", expected one of ["On","Off"]"#,
                "/next/name: has length 5, outside 0 to 4",
                r#"/next/name: is `ABCDE`, expected to match "^[a-z]+$""#,
                "/tags/k: is a number, expected string",
            ]
        );
    }

    #[test]
    fn what_is_read_only_or_new_may_be_answered() {
        let body = json!({"id": "x", "name": "a", "mode": "Later"});
        assert_eq!(problems(Side::Response, &body), Vec::<String>::new());
    }
}
