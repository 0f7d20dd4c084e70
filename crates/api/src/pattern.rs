//! Text forms the schemas of several kinds share.

use schemars::Schema;
use serde_json::json;

/// A qualified name: an optional DNS prefix and `/`, then a name.
pub(crate) const QUALIFIED_NAME: &str =
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(\/))?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$";
/// A label value, which may be empty.
pub(crate) const LABEL_VALUE: &str = "^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$";
/// A duration in hours, minutes and seconds.
pub(crate) const DURATION: &str = "^([0-9]+(s|m|h))+$";
/// A duration, or `Never`.
pub(crate) const DURATION_OR_NEVER: &str = "^(([0-9]+(s|m|h))+|Never)$";

/// For a map of labels: every value must be a label value.
pub(crate) fn label_values(schema: &mut Schema) {
    if let Some(value) = schema
        .get_mut("additionalProperties")
        .and_then(|value| value.as_object_mut())
    {
        value.insert("maxLength".to_owned(), json!(63));
        value.insert("pattern".to_owned(), json!(LABEL_VALUE));
    }
}

/// For a Go `int`, whose width is not part of the contract.
pub(crate) fn without_width(schema: &mut Schema) {
    schema.remove("format");
}
