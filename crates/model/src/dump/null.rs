//! What an explicit null says: nothing. The API server drops it before it looks at an object, so a field left empty in a
//! manifest or by a template is a field that is not there.

use serde_json::Value;

/// Drops every field that is null, at any depth. An entry of a list keeps its place.
pub fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}
