//! The fields of a line: names and values in the order they were given, nested at dots when written.

use std::fmt;

use serde_json::{Map, Value};
use tracing::{
    Event,
    field::{Field, Visit},
    span::{Attributes, Record},
};

const MESSAGE: &str = "message";

/// Names and values.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Fields(Vec<(&'static str, Value)>);

impl Fields {
    pub(super) fn of_event(event: &Event<'_>) -> Self {
        let mut fields = Self::default();
        event.record(&mut fields);
        fields
    }

    pub(super) fn of_span(span: &Attributes<'_>) -> Self {
        let mut fields = Self::default();
        span.record(&mut fields);
        fields
    }

    pub(super) fn record(&mut self, values: &Record<'_>) {
        values.record(self);
    }

    /// What the line says in words.
    pub(super) fn message(&self) -> &str {
        let message = self.0.iter().find(|(name, _)| *name == MESSAGE);
        message.and_then(|(_, value)| value.as_str()).unwrap_or_default()
    }

    /// All but the message.
    pub(super) fn named(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        let named = self.0.iter().filter(|(name, _)| *name != MESSAGE);
        named.map(|(name, value)| (*name, value))
    }

    /// Adds inner fields, which hide outer ones of their names.
    pub(super) fn extend(&mut self, inner: Self) {
        for (name, value) in inner.0 {
            self.put(name, value);
        }
    }

    /// As JSON objects are: `a.b` and `a.c` lie in one object `a`, where the first of them stands.
    pub(super) fn nested(&self) -> Vec<(&'static str, Value)> {
        let mut nested: Vec<(&'static str, Value)> = Vec::new();
        for (name, value) in self.named() {
            let (outer, inner) = name
                .split_once('.')
                .map_or((name, None), |(outer, inner)| (outer, Some(inner)));
            let Some(inner) = inner.filter(|inner| !inner.is_empty() && !outer.is_empty()) else {
                nested.push((name, value.clone()));
                continue;
            };
            match nested
                .iter_mut()
                .find(|(known, value)| *known == outer && value.is_object())
            {
                Some((_, Value::Object(object))) => {
                    object.insert(inner.to_owned(), value.clone());
                }
                _ => nested.push((
                    outer,
                    Value::Object(Map::from_iter([(inner.to_owned(), value.clone())])),
                )),
            }
        }
        nested
    }

    fn put(&mut self, name: &'static str, value: Value) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = value,
            None => self.0.push((name, value)),
        }
    }
}

impl Visit for Fields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field.name(), value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field.name(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field.name(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field.name(), value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field.name(), value.into());
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.put(field.name(), value.to_string().into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field.name(), format!("{value:?}").into());
    }
}
