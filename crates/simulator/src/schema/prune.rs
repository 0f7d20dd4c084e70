//! Takes out what a schema does not know, and puts in what it says by default.

use serde_json::Value;

use super::Schema;

impl Schema {
    /// Takes out fields that are not known, and tells which.
    pub(crate) fn prune(&self, value: &mut Value) -> Vec<String> {
        let mut gone = Vec::new();
        self.prune_at(value, "", &mut gone);
        gone
    }

    fn prune_at(&self, value: &mut Value, path: &str, gone: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                if self.knows_nothing() {
                    return;
                }
                fields.retain(|name, value| {
                    let at = || join(path, name);
                    match self.field(name) {
                        Some(schema) => schema.prune_at(value, &at(), gone),
                        None if self.keeps_unknown => {}
                        None => {
                            gone.push(at());
                            return false;
                        }
                    }
                    true
                });
            }
            Value::Array(items) => {
                if let Some(schema) = &self.items {
                    for (index, item) in items.iter_mut().enumerate() {
                        schema.prune_at(item, &format!("{path}[{index}]"), gone);
                    }
                }
            }
            _ => {}
        }
    }

    /// Whether it says nothing of fields, so that none is unknown.
    fn knows_nothing(&self) -> bool {
        self.properties.is_empty() && self.additional.is_none() && (self.keeps_unknown || self.form == super::Form::Any)
    }

    /// Puts in what is not there.
    pub(crate) fn complete(&self, value: &mut Value) {
        if !self.has_defaults {
            return;
        }
        match value {
            Value::Object(fields) => {
                for (name, schema) in &self.properties {
                    let is_missing = |known: Option<&Value>| match known {
                        None => true,
                        Some(known) => known.is_null() && !schema.is_nullable,
                    };
                    if let Some(default) = &schema.default
                        && is_missing(fields.get(name))
                    {
                        fields.insert(name.clone(), default.clone());
                    }
                }
                for (name, value) in fields.iter_mut() {
                    if let Some(schema) = self.field(name) {
                        schema.complete(value);
                    }
                }
            }
            Value::Array(items) => {
                if let Some(schema) = &self.items {
                    for item in items {
                        schema.complete(item);
                    }
                }
            }
            _ => {}
        }
    }
}

pub(super) fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unknown_fields_go_and_defaults_come() {
        let schema = Schema::of_resource(&json!({"type": "object", "properties": {"spec": {"type": "object",
            "default": {}, "properties": {
                "mode": {"type": "string", "default": "slow"},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": {"type": "string"}}}},
                "list": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer", "default": 1}}}},
        }}}}));
        let mut object = json!({"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "x", "odd": 1}, "more": true,
            "spec": {"free": {"x": {"y": 1}}, "map": {"k": {"a": "1", "b": "2"}}, "list": [{}, {"m": 1, "n": 3}]}});
        assert_eq!(
            schema.prune(&mut object),
            ["metadata.odd", "more", "spec.list[1].m", "spec.map.k.b"]
        );
        schema.complete(&mut object);
        assert_eq!(
            object["spec"],
            json!({"mode": "slow", "free": {"x": {"y": 1}}, "map": {"k": {"a": "1"}}, "list": [{"n": 1}, {"n": 3}]})
        );
        let mut empty = json!({"metadata": {}});
        schema.complete(&mut empty);
        assert_eq!(empty["spec"], json!({"mode": "slow"}));
    }
}
