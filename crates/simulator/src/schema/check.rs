//! Does an object fit its schema? Types, limits, lists that are maps or sets, and rules; in the API server's words.
//!
//! An update is held only to what it changes: a value that was there before and still is, is not blamed.

use serde_json::{Value, json};

use super::{
    Form, Limit, List, Range, Schema,
    problem::{DUPLICATE, Problem, TOO_LONG, TOO_MANY, WRONG_TYPE},
    prune::join,
};

impl Schema {
    /// What is wrong with an object, which was another one before. If only its status is written, only that is held to
    /// types and limits, and told of by itself.
    /// Problems that are known already come first.
    pub(crate) fn check(
        &self,
        object: &Value,
        before: Option<&Value>,
        is_status: bool,
        known: Vec<Problem>,
    ) -> Vec<Problem> {
        let mut problems = Vec::new();
        if is_status {
            let before = before.and_then(|before| before.get("status"));
            if let (Some(schema), Some(status)) = (self.field("status"), object.get("status")) {
                schema.shape(status, before, "", &mut problems);
            }
            for problem in &mut problems {
                problem.field = match problem.field.as_str() {
                    "<nil>" => "status".to_owned(),
                    field => join("status", field),
                };
            }
        } else {
            self.shape(object, before, "", &mut problems);
        }
        problems.splice(0..0, known);
        let had_doubles = before.is_some_and(|before| {
            let mut problems = Vec::new();
            self.doubles(before, "", &mut problems);
            !problems.is_empty()
        });
        if !had_doubles {
            self.doubles(object, "", &mut problems);
        }
        if !self.has_rules {
            return problems;
        }
        if problems.iter().any(Problem::blocks_rules) {
            let why = "some validation rules were not checked because the object was invalid; correct the existing \
                       errors to complete validation";
            problems.push(Problem::invalid("<nil>", Value::Null, why));
        } else {
            self.obey(object, before, "", &mut problems);
        }
        problems
    }

    /// Why an object cannot be read as this type, if it cannot: only types count, not limits.
    pub(crate) fn misfit(&self, object: &Value) -> Option<String> {
        self.misfit_at(object, "")
    }

    /// The first place where a value is of another type than it should be, and what it should be.
    pub(crate) fn mistyped(&self, value: &Value, path: &str) -> Option<String> {
        if value.is_null() {
            return None;
        }
        let is_right = match self.form {
            // Whoever applies may say numbers as they like.
            Form::Integer | Form::Number => value.is_number(),
            Form::IntegerOrString => true,
            _ => self.admits(value),
        };
        if !is_right {
            let wanted = match self.form {
                Form::Integer | Form::Number => "numeric (int or float)",
                Form::Object => "map",
                Form::Array => "list",
                form => form.name(),
            };
            let found = match value {
                Value::String(_) => "string".to_owned(),
                other => format!("&value.valueUnstructured{{Value:{other}}}"),
            };
            return Some(format!("{path}: expected {wanted}, got {found}"));
        }
        match value {
            Value::Object(fields) => fields.iter().find_map(|(name, value)| {
                let schema = self.field(name)?;
                schema.mistyped(value, &format!("{path}.{name}"))
            }),
            Value::Array(items) => {
                let schema = self.items.as_deref()?;
                let mut all = items.iter().enumerate();
                all.find_map(|(at, item)| schema.mistyped(item, &format!("{path}[{at}]")))
            }
            _ => None,
        }
    }

    fn misfit_at(&self, value: &Value, path: &str) -> Option<String> {
        if value.is_null() {
            return None;
        }
        if !self.admits(value) {
            let found = match value {
                Value::Bool(_) => "bool",
                Value::Number(_) => "number",
                Value::String(_) => "string",
                Value::Array(_) => "array",
                _ => "object",
            };
            let wanted = match self.form {
                Form::Boolean => "bool",
                Form::Integer if self.format == "int64" => "int64",
                Form::Integer => "int32",
                Form::Array => "[]interface {}",
                Form::Object => "map[string]interface {}",
                form => form.name(),
            };
            return Some(format!(
                "json: cannot unmarshal {found} into Go struct field {path} of type {wanted}"
            ));
        }
        match value {
            Value::Object(fields) => fields.iter().find_map(|(name, value)| {
                let schema = self.field(name)?;
                schema.misfit_at(value, &join(path, name))
            }),
            Value::Array(items) => {
                let schema = self.items.as_deref()?;
                items.iter().find_map(|item| schema.misfit_at(item, path))
            }
            _ => None,
        }
    }

    /// Types and limits.
    fn shape(&self, value: &Value, before: Option<&Value>, path: &str, problems: &mut Vec<Problem>) {
        if before == Some(value) {
            return;
        }
        if value.is_null() {
            if self.form != Form::Any && !self.is_nullable {
                problems.push(self.wrong_type(path, value));
            }
            return;
        }
        if !self.admits(value) {
            problems.push(self.wrong_type(path, value));
        }
        self.combinations(value, path, problems);
        match value {
            Value::String(text) => self.text(text, path, problems),
            Value::Number(number) => self.number(number, path, problems),
            Value::Array(items) => self.array(items, before, path, problems),
            _ => {}
        }
        if !self.choices.is_empty() && !self.choices.contains(value) {
            let text = |choice: &Value| choice.as_str().map_or_else(|| choice.to_string(), str::to_owned);
            let choices: Vec<String> = self.choices.iter().map(text).collect();
            problems.push(Problem::unsupported(path, value.clone(), &choices));
        }
        if let Value::Object(fields) = value {
            self.object(fields, before, path, problems);
        }
    }

    fn admits(&self, value: &Value) -> bool {
        let is_whole = |value: &Value| {
            let whole = value.as_f64().is_some_and(|number| number.fract() == 0.0);
            value.is_i64() || value.is_u64() || whole
        };
        match self.form {
            Form::Any => true,
            Form::Object => value.is_object(),
            Form::Array => value.is_array(),
            Form::String => value.is_string(),
            Form::Integer => is_whole(value),
            Form::Number => value.is_number(),
            Form::Boolean => value.is_boolean(),
            Form::IntegerOrString => value.is_string() || is_whole(value),
        }
    }

    fn wrong_type(&self, path: &str, value: &Value) -> Problem {
        let (found, found_format) = match value {
            Value::Null => ("null", "null"),
            Value::Bool(_) => ("boolean", ""),
            Value::Number(number) if number.is_f64() => ("number", "float64"),
            Value::Number(_) => ("integer", "int64"),
            Value::String(_) => ("string", "string"),
            Value::Array(_) => ("array", "array"),
            Value::Object(_) => ("object", ""),
        };
        let by_format = !self.format.is_empty() && !matches!(value, Value::String(_) | Value::Array(_) | Value::Null);
        let (wanted, found) = if by_format {
            (self.format.as_str(), found_format)
        } else {
            (self.form.name(), found)
        };
        let detail = format!("{path} in body must be of type {wanted}: {found:?}");
        Problem::new(WRONG_TYPE, &named(path), Some(json!(found)), detail)
    }

    fn text(&self, text: &str, path: &str, problems: &mut Vec<Problem>) {
        let length = text.chars().count() as u64;
        let in_body = |what: String| format!("{path} in body {what}");
        if let Some(most) = self.length.most.filter(|most| length > *most) {
            let unit = if most == 1 { "byte" } else { "bytes" };
            let detail = format!("may not be more than {most} {unit}");
            problems.push(Problem::new(TOO_LONG, &named(path), None, detail));
            return;
        }
        if let Some(least) = self.length.least.filter(|least| length < *least) {
            let detail = in_body(format!("should be at least {least} chars long"));
            problems.push(Problem::invalid(&named(path), json!(text), detail));
            return;
        }
        if let Some((pattern, Some(regex))) = &self.pattern
            && !regex.is_match(text)
        {
            let detail = in_body(format!("should match '{pattern}'"));
            problems.push(Problem::invalid(&named(path), json!(text), detail));
        }
        if self.format == "date-time" && self.form == Form::String && text.parse::<jiff::Timestamp>().is_err() {
            let detail = in_body(format!("must be of type date-time: {text:?}"));
            problems.push(Problem::new(WRONG_TYPE, &named(path), Some(json!(text)), detail));
        }
    }

    fn number(&self, number: &serde_json::Number, path: &str, problems: &mut Vec<Problem>) {
        let Some(value) = number.as_f64() else { return };
        let mut blame = |what: String| {
            let detail = format!("{path} in body should be {what}");
            problems.push(Problem::invalid(&named(path), Value::Number(number.clone()), detail));
        };
        if let Some(factor) = self.multiple_of.filter(|factor| value % factor != 0.0) {
            blame(format!("a multiple of {factor}"));
        }
        if let Some(limit) = self.maximum.filter(|limit| limit.is_below(value)) {
            let word = if limit.is_exclusive { "" } else { " or equal to" };
            blame(format!("less than{word} {}", limit.value));
        }
        if let Some(limit) = self.minimum.filter(|limit| limit.is_above(value)) {
            let word = if limit.is_exclusive { "" } else { " or equal to" };
            blame(format!("greater than{word} {}", limit.value));
        }
        if self.form == Form::Integer {
            let fits = match (number.as_i64(), self.format.as_str()) {
                (Some(whole), "int32") => i32::try_from(whole).is_ok(),
                (Some(_), _) => true,
                (None, _) => value.fract() == 0.0 && self.format.is_empty(),
            };
            if !fits {
                let format = match self.format.as_str() {
                    "" => "(default format)".to_owned(),
                    format => format!("with format {format}"),
                };
                let detail = format!("Checked value must be of type integer {format} in {path}");
                problems.push(Problem::invalid("<nil>", json!(""), detail));
            }
        }
    }

    fn array(&self, items: &[Value], before: Option<&Value>, path: &str, problems: &mut Vec<Problem>) {
        if let Some(schema) = &self.items {
            for (index, item) in items.iter().enumerate() {
                let before = self.counterpart(item, before);
                schema.shape(item, before, &format!("{path}[{index}]"), problems);
            }
        }
        let count = items.len() as u64;
        if let Some(least) = self.items_count.least.filter(|least| count < *least) {
            let detail = format!("{path} in body should have at least {least} items");
            problems.push(Problem::invalid(&named(path), json!(count), detail));
        }
        too_many(self.items_count, count, path, problems);
        if self.has_unique_items && (1..items.len()).any(|at| items[..at].contains(&items[at])) {
            let detail = format!("{path} in body shouldn't contain duplicates");
            problems.push(Problem::invalid(&named(path), json!(""), detail));
        }
    }

    fn object(
        &self,
        fields: &serde_json::Map<String, Value>,
        before: Option<&Value>,
        path: &str,
        problems: &mut Vec<Problem>,
    ) {
        let count = fields.len() as u64;
        if let Some(least) = self.properties_count.least.filter(|least| count < *least) {
            let detail = format!("{path} in body should have at least {least} properties");
            problems.push(Problem::invalid(&named(path), json!(count), detail));
        }
        too_many(self.properties_count, count, path, problems);
        for (name, value) in fields {
            match self.field(name) {
                Some(schema) => {
                    let before = before.and_then(|before| before.get(name));
                    schema.shape(value, before, &join(path, name), problems);
                }
                None if self.forbids_additional => {
                    let detail = format!("{path}.{name} in body is a forbidden property");
                    problems.push(Problem::invalid(&named(path), json!(""), detail));
                }
                None => {}
            }
        }
        for name in self.required.iter().filter(|name| !fields.contains_key(*name)) {
            problems.push(Problem::required(&join(path, name), ""));
        }
    }

    fn combinations(&self, value: &Value, path: &str, problems: &mut Vec<Problem>) {
        let fits = |schema: &Schema| {
            let mut problems = Vec::new();
            schema.shape(value, None, path, &mut problems);
            problems.is_empty()
        };
        let mut blame = |what: &str| {
            let detail = format!("{path:?} must {what}");
            problems.push(Problem::invalid("<nil>", json!(""), detail));
        };
        let fails_all = !self.any_of.is_empty() && !self.any_of.iter().any(fits);
        if fails_all {
            blame("validate at least one schema (anyOf)");
        }
        let fitting = self.one_of.iter().filter(|schema| fits(schema)).count();
        if !self.one_of.is_empty() && fitting != 1 {
            let found = if fitting == 0 {
                "Found none valid".to_owned()
            } else {
                format!("Found {fitting} valid alternatives")
            };
            blame(&format!("validate one and only one schema (oneOf). {found}"));
        }
        if self.not.as_ref().is_some_and(|schema| fits(schema)) {
            blame("not validate the schema (not)");
        }
        for schema in self.all_of.iter().chain(self.any_of.first().filter(|_| fails_all)) {
            schema.shape(value, None, path, problems);
        }
    }

    /// Items of lists that are sets or maps are there once.
    fn doubles(&self, value: &Value, path: &str, problems: &mut Vec<Problem>) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    if let Some(schema) = self.field(name) {
                        schema.doubles(value, &join(path, name), problems);
                    }
                }
            }
            Value::Array(items) => {
                self.double_items(items, path, problems);
                if let Some(schema) = &self.items {
                    for (index, item) in items.iter().enumerate() {
                        schema.doubles(item, &format!("{path}[{index}]"), problems);
                    }
                }
            }
            _ => {}
        }
    }

    fn double_items(&self, items: &[Value], path: &str, problems: &mut Vec<Problem>) {
        let identities: Vec<Value> = match &self.list {
            List::Atomic => return,
            List::Set => items.to_vec(),
            List::Map(keys) => items.iter().map(|item| identity(item, keys)).collect(),
        };
        for (at, one) in identities.iter().enumerate() {
            // Told once, of the first that repeats.
            if identities[..at].iter().filter(|other| *other == one).count() == 1 {
                let field = format!("{path}[{at}]");
                problems.push(Problem::new(DUPLICATE, &field, Some(one.clone()), ""));
            }
        }
    }

    /// What an item of a list was before, where that can be told.
    fn counterpart<'a>(&self, item: &Value, before: Option<&'a Value>) -> Option<&'a Value> {
        let before = before?.as_array()?;
        match &self.list {
            List::Map(keys) => {
                let wanted = identity(item, keys);
                before.iter().find(|known| identity(known, keys) == wanted)
            }
            List::Set | List::Atomic => None,
        }
    }

    /// Rules here and below.
    fn obey(&self, value: &Value, before: Option<&Value>, path: &str, problems: &mut Vec<Problem>) {
        if !self.has_rules || value.is_null() {
            return;
        }
        let is_same = before == Some(value);
        for rule in &self.rules {
            if is_same && !rule.is_transition() {
                continue;
            }
            let shows_value = !matches!(self.form, Form::Object | Form::Array);
            let shown = shows_value.then(|| value.clone());
            problems.extend(rule.judge(value, before, path, shown, self.form.name()));
        }
        for schema in &self.all_of {
            schema.obey(value, before, path, problems);
        }
        match value {
            Value::Array(items) => {
                let Some(schema) = &self.items else { return };
                for (index, item) in items.iter().enumerate() {
                    // Items of lists that have one owner cannot be told apart: an unchanged list is not asked again.
                    let before = match self.list {
                        List::Atomic if is_same => Some(item),
                        _ => self.counterpart(item, before),
                    };
                    schema.obey(item, before, &format!("{path}[{index}]"), problems);
                }
            }
            Value::Object(fields) => {
                for (name, value) in fields {
                    if let Some(schema) = self.field(name) {
                        let before = before.and_then(|before| before.get(name));
                        let is_named = self.properties.contains_key(name);
                        let at = if is_named {
                            join(path, name)
                        } else {
                            format!("{path}[{name}]")
                        };
                        schema.obey(value, before, &at, problems);
                    }
                }
            }
            _ => {}
        }
    }
}

impl Limit {
    fn is_below(&self, value: f64) -> bool {
        value > self.value || (self.is_exclusive && value >= self.value)
    }

    fn is_above(&self, value: f64) -> bool {
        value < self.value || (self.is_exclusive && value <= self.value)
    }
}

fn too_many(range: Range, count: u64, path: &str, problems: &mut Vec<Problem>) {
    if let Some(most) = range.most.filter(|most| count > *most) {
        let unit = if most == 1 { "item" } else { "items" };
        let detail = format!("must have at most {most} {unit}");
        problems.push(Problem::new(TOO_MANY, &named(path), Some(json!(count)), detail));
    }
}

/// The fields that tell an item of a list from others. The protocol of a port is the one field among them that has a
/// default: without it a port that is applied would stand beside the same port as it is stored.
pub(crate) fn identity(item: &Value, keys: &[String]) -> Value {
    let field = |key: &String| {
        let said = item.get(key).cloned();
        let field = said.or_else(|| (key == "protocol").then(|| Value::from("TCP")));
        Some((key.clone(), field?))
    };
    Value::Object(keys.iter().filter_map(field).collect())
}

/// A path as a field of a problem.
fn named(path: &str) -> String {
    if path.is_empty() {
        "<nil>".to_owned()
    } else {
        path.to_owned()
    }
}
