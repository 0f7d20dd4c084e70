//! How does a list look to people? Rows and columns, as kubectl prints them.

mod columns;
mod path;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{Resource, kind::Facts};

pub(crate) use self::columns::age;
use self::{columns::Column, path::Path};

/// What a row holds of its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Include {
    Nothing,
    Metadata,
    Object,
}

/// The columns of a kind, and how each is filled.
pub(crate) struct Layout {
    api_version: String,
    kind: String,
    built_in: Vec<Column>,
    custom: Vec<(Value, Path)>,
}

impl Layout {
    pub(crate) fn of(resource: &Resource, version: &str, facts: &Facts) -> Self {
        let defined = facts
            .definition
            .as_ref()
            .and_then(|definition| definition.version(version));
        let custom: Option<Vec<(Value, Path)>> = defined.filter(|version| !version.columns.is_empty()).map(|version| {
            version
                .columns
                .iter()
                .map(|column| {
                    let path = Path::parse(column["jsonPath"].as_str().unwrap_or_default());
                    (column.clone(), path)
                })
                .collect()
        });
        let (built_in, custom) = match custom {
            Some(custom) => (vec![columns::NAME], custom),
            None => (columns::of(resource), Vec::new()),
        };
        let group = &resource.group;
        Self {
            api_version: if group.is_empty() {
                version.to_owned()
            } else {
                format!("{group}/{version}")
            },
            kind: facts.kind.clone(),
            built_in,
            custom,
        }
    }

    /// The table of some objects; without titles where its reader has seen them.
    pub(crate) fn table<'a>(
        &self,
        objects: impl Iterator<Item = &'a Value>,
        metadata: &Value,
        include: Include,
        has_titles: bool,
        now: Timestamp,
    ) -> Value {
        let rows: Vec<Value> = objects.map(|object| self.row(object, include, now)).collect();
        json!({
            "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
            "columnDefinitions": if has_titles { self.titles() } else { json!(null) },
            "rows": rows,
        })
    }

    fn titles(&self) -> Value {
        let built_in = self.built_in.iter().map(|column| {
            let format = if column.title == "Name" { "name" } else { "" };
            json!({"name": column.title, "type": column.form, "format": format, "description": "",
                "priority": i32::from(column.is_wide)})
        });
        let custom = self.custom.iter().map(|(column, _)| {
            let text = |field: &str| column[field].as_str().unwrap_or_default().to_owned();
            json!({"name": text("name"), "type": text("type"), "format": text("format"),
                "description": text("description"), "priority": column["priority"].as_i64().unwrap_or(0)})
        });
        Value::Array(built_in.chain(custom).collect())
    }

    fn row(&self, object: &Value, include: Include, now: Timestamp) -> Value {
        let built_in = self.built_in.iter().map(|column| (column.fill)(object, now));
        let custom = self
            .custom
            .iter()
            .map(|(column, path)| custom_cell(column, path, object, now));
        let cells: Vec<Value> = built_in.chain(custom).collect();
        match include {
            Include::Nothing => json!({"cells": cells}),
            Include::Metadata => json!({"cells": cells, "object": partial(object)}),
            Include::Object => json!({"cells": cells, "object": self.typed(object)}),
        }
    }

    /// Items of a list do not say what they are, rows of a table do.
    fn typed(&self, object: &Value) -> Value {
        let mut typed = object.clone();
        typed["apiVersion"] = json!(self.api_version);
        typed["kind"] = json!(self.kind);
        typed
    }
}

/// An object with nothing but its metadata.
pub(crate) fn partial(object: &Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]})
}

fn custom_cell(column: &Value, path: &Path, object: &Value, now: Timestamp) -> Value {
    let found = path.find(object);
    let Some(first) = found.first() else {
        return Value::Null;
    };
    match column["type"].as_str() {
        Some("date") => first.as_str().map_or(Value::Null, |text| json!(age(text, now))),
        Some("string") => {
            let text = |value: &&Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            json!(found.iter().map(text).collect::<Vec<_>>().join(","))
        }
        _ => (*first).clone(),
    }
}
