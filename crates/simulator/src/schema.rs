//! What shape must an object have? A structural schema, read once from a definition or from the types of Kubernetes.

mod check;
mod problem;
mod prune;
mod rule;

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::Value;

use self::rule::Rule;
pub(crate) use self::{check::identity, problem::Problem};

/// A schema.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "a schema says yes and no")]
pub(crate) struct Schema {
    pub(crate) form: Form,
    format: String,
    is_nullable: bool,
    choices: Vec<Value>,
    pattern: Option<(String, Option<Regex>)>,
    minimum: Option<Limit>,
    maximum: Option<Limit>,
    multiple_of: Option<f64>,
    length: Range,
    items_count: Range,
    properties_count: Range,
    has_unique_items: bool,
    required: Vec<String>,
    pub(crate) properties: BTreeMap<String, Schema>,
    pub(crate) additional: Option<Box<Schema>>,
    forbids_additional: bool,
    pub(crate) items: Option<Box<Schema>>,
    pub(crate) keeps_unknown: bool,
    pub(crate) list: List,
    /// Whether the object has one owner, whole.
    pub(crate) is_atomic: bool,
    default: Option<Value>,
    rules: Vec<Rule>,
    all_of: Vec<Schema>,
    any_of: Vec<Schema>,
    one_of: Vec<Schema>,
    not: Option<Box<Schema>>,
    /// Whether there are rules here or below.
    has_rules: bool,
    /// Whether there are defaults below.
    has_defaults: bool,
}

/// Which values fit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Form {
    #[default]
    Any,
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
    IntegerOrString,
}

impl Form {
    fn name(self) -> &'static str {
        match self {
            Self::Any => "",
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::IntegerOrString => "integer,string",
        }
    }
}

/// How the items of a list are told apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum List {
    /// They are not: the list has one owner, whole.
    #[default]
    Atomic,
    /// By themselves.
    Set,
    /// By these fields.
    Map(Vec<String>),
}

#[derive(Debug, Clone, Copy)]
struct Limit {
    value: f64,
    is_exclusive: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Range {
    least: Option<u64>,
    most: Option<u64>,
}

impl Range {
    fn read(schema: &Value, what: &str) -> Self {
        Self {
            least: schema[format!("min{what}")].as_u64(),
            most: schema[format!("max{what}")].as_u64(),
        }
    }
}

/// Where the types are that a schema refers to by name, and how their lists are merged.
pub(crate) trait Types {
    /// The type of a name.
    fn named(&self, name: &str) -> Option<&Value>;
    /// What is said of a field of a type beside its schema.
    fn list(&self, name: &str, field: &str) -> List;
    /// Whether a type, or a field of it, has one owner, whole.
    fn is_atomic(&self, name: &str, field: &str) -> bool;
}

/// There are none: definitions say everything in place.
struct NoTypes;

impl Types for NoTypes {
    fn named(&self, _: &str) -> Option<&Value> {
        None
    }
    fn list(&self, _: &str, _: &str) -> List {
        List::Atomic
    }
    fn is_atomic(&self, _: &str, _: &str) -> bool {
        false
    }
}

impl Schema {
    /// The schema of a definition. What every object has, it need not say.
    pub(crate) fn of_resource(schema: &Value) -> Self {
        let mut read = Reader {
            types: &NoTypes,
            inside: Vec::new(),
        }
        .read(schema);
        for field in ["apiVersion", "kind"] {
            read.properties.insert(
                field.to_owned(),
                Self {
                    form: Form::String,
                    ..Self::default()
                },
            );
        }
        let rules = read
            .properties
            .remove("metadata")
            .and_then(|mut metadata| metadata.properties.remove("name"));
        let mut metadata = crate::builtin::metadata();
        if let Some(name) = rules {
            metadata.properties.insert("name".to_owned(), name);
        }
        read.properties.insert("metadata".to_owned(), metadata);
        read.settle();
        read
    }

    /// The schema of a type among others.
    pub(crate) fn of_type(name: &str, types: &dyn Types) -> Self {
        let mut reader = Reader {
            types,
            inside: Vec::new(),
        };
        reader.named(name)
    }

    /// Finds out what is below.
    fn settle(&mut self) {
        let mut has_rules = !self.rules.is_empty();
        let mut has_defaults = false;
        let below = self
            .properties
            .values_mut()
            .chain(self.additional.as_deref_mut())
            .chain(self.items.as_deref_mut())
            .chain(self.all_of.iter_mut());
        for schema in below {
            schema.settle();
            has_rules |= schema.has_rules;
            has_defaults |= schema.has_defaults || schema.default.is_some();
        }
        self.has_rules = has_rules;
        self.has_defaults = has_defaults;
    }

    /// The schema of a field.
    pub(crate) fn field(&self, name: &str) -> Option<&Self> {
        self.properties.get(name).or(self.additional.as_deref())
    }
}

struct Reader<'a> {
    types: &'a dyn Types,
    /// The named types that are being read: a type that contains itself is read once.
    inside: Vec<String>,
}

impl Reader<'_> {
    fn named(&mut self, name: &str) -> Schema {
        let found = self
            .types
            .named(name)
            .filter(|_| !self.inside.iter().any(|one| one == name));
        let Some(found) = found.cloned() else {
            return Schema {
                keeps_unknown: true,
                ..Schema::default()
            };
        };
        self.inside.push(name.to_owned());
        let mut schema = self.read(&found);
        self.inside.pop();
        // A type that says nothing of its fields, such as raw JSON, takes all.
        schema.keeps_unknown |= schema.properties.is_empty() && schema.additional.is_none();
        schema.is_atomic |= self.types.is_atomic(name, "");
        for (field, property) in &mut schema.properties {
            if property.items.is_some() {
                property.list = self.types.list(name, field);
            }
            property.is_atomic |= self.types.is_atomic(name, field);
        }
        schema
    }

    fn read(&mut self, schema: &Value) -> Schema {
        if let Some(reference) = schema["$ref"].as_str() {
            let name = reference.rsplit('/').next().unwrap_or_default().to_owned();
            return self.named(&name);
        }
        let flag = |name: &str| schema[name].as_bool().unwrap_or(false);
        let several = |name: &str| schema[name].as_array().cloned().unwrap_or_default();
        let additional = &schema["additionalProperties"];
        let pattern = schema["pattern"].as_str();
        Schema {
            form: form(schema),
            format: schema["format"].as_str().unwrap_or_default().to_owned(),
            is_nullable: flag("nullable"),
            choices: several("enum"),
            pattern: pattern.map(|pattern| (pattern.to_owned(), Regex::new(pattern).ok())),
            minimum: limit(schema, "minimum", "exclusiveMinimum"),
            maximum: limit(schema, "maximum", "exclusiveMaximum"),
            multiple_of: schema["multipleOf"].as_f64(),
            length: Range::read(schema, "Length"),
            items_count: Range::read(schema, "Items"),
            properties_count: Range::read(schema, "Properties"),
            has_unique_items: flag("uniqueItems"),
            required: several("required")
                .iter()
                .filter_map(|name| name.as_str().map(str::to_owned))
                .collect(),
            properties: schema["properties"]
                .as_object()
                .into_iter()
                .flatten()
                .map(|(name, property)| (name.clone(), self.read(property)))
                .collect(),
            additional: additional.is_object().then(|| Box::new(self.read(additional))),
            forbids_additional: *additional == Value::Bool(false),
            items: schema.get("items").map(|items| Box::new(self.read(items))),
            keeps_unknown: flag("x-kubernetes-preserve-unknown-fields") || *additional == Value::Bool(true),
            list: list(schema),
            is_atomic: schema["x-kubernetes-map-type"] == "atomic",
            default: schema.get("default").filter(|default| !default.is_null()).cloned(),
            rules: several("x-kubernetes-validations").iter().map(Rule::read).collect(),
            all_of: several("allOf").iter().map(|one| self.read(one)).collect(),
            any_of: several("anyOf").iter().map(|one| self.read(one)).collect(),
            one_of: several("oneOf").iter().map(|one| self.read(one)).collect(),
            not: schema.get("not").map(|not| Box::new(self.read(not))),
            has_rules: false,
            has_defaults: false,
        }
    }
}

fn form(schema: &Value) -> Form {
    if schema["x-kubernetes-int-or-string"] == true {
        return Form::IntegerOrString;
    }
    match schema["type"].as_str() {
        Some("object") => Form::Object,
        Some("array") => Form::Array,
        Some("string") => Form::String,
        Some("integer") => Form::Integer,
        Some("number") => Form::Number,
        Some("boolean") => Form::Boolean,
        _ => Form::Any,
    }
}

fn limit(schema: &Value, name: &str, exclusive: &str) -> Option<Limit> {
    Some(Limit {
        value: schema[name].as_f64()?,
        is_exclusive: schema[exclusive].as_bool().unwrap_or(false),
    })
}

fn list(schema: &Value) -> List {
    match schema["x-kubernetes-list-type"].as_str() {
        Some("set") => List::Set,
        Some("map") => {
            let keys = schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten();
            List::Map(keys.filter_map(|key| key.as_str().map(str::to_owned)).collect())
        }
        _ => List::Atomic,
    }
}
