//! What is wrong with a field, in the API server's words.

use serde_json::Value;

/// Something wrong with a field.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Problem {
    pub(crate) reason: &'static str,
    pub(crate) field: String,
    /// None where the value is not shown.
    pub(crate) value: Option<Value>,
    pub(crate) detail: String,
}

pub(crate) const INVALID: &str = "FieldValueInvalid";
pub(crate) const WRONG_TYPE: &str = "FieldValueTypeInvalid";
pub(crate) const REQUIRED: &str = "FieldValueRequired";
pub(crate) const DUPLICATE: &str = "FieldValueDuplicate";
pub(crate) const UNSUPPORTED: &str = "FieldValueNotSupported";
pub(crate) const FORBIDDEN: &str = "FieldValueForbidden";
pub(crate) const TOO_LONG: &str = "FieldValueTooLong";
pub(crate) const TOO_MANY: &str = "FieldValueTooMany";

impl Problem {
    pub(crate) fn new(reason: &'static str, field: &str, value: Option<Value>, detail: impl Into<String>) -> Self {
        Self {
            reason,
            field: field.to_owned(),
            value,
            detail: detail.into(),
        }
    }

    pub(crate) fn invalid(field: &str, value: Value, detail: impl Into<String>) -> Self {
        Self::new(INVALID, field, Some(value), detail)
    }

    pub(crate) fn required(field: &str, detail: &str) -> Self {
        Self::new(REQUIRED, field, None, detail)
    }

    pub(crate) fn unsupported(field: &str, value: Value, choices: &[String]) -> Self {
        let quoted: Vec<String> = choices.iter().map(|choice| format!("{choice:?}")).collect();
        let detail = format!("supported values: {}", quoted.join(", "));
        Self::new(UNSUPPORTED, field, Some(value), detail)
    }

    /// Whether rules are not asked because of it: they rely on what it breaks.
    pub(crate) fn blocks_rules(&self) -> bool {
        [UNSUPPORTED, REQUIRED, TOO_LONG, TOO_MANY, WRONG_TYPE].contains(&self.reason)
    }

    /// Everything but the field.
    pub(crate) fn body(&self) -> String {
        let title = match self.reason {
            REQUIRED => "Required value",
            DUPLICATE => "Duplicate value",
            UNSUPPORTED => "Unsupported value",
            FORBIDDEN => "Forbidden",
            TOO_LONG => "Too long",
            TOO_MANY => "Too many",
            _ => "Invalid value",
        };
        let mut body = title.to_owned();
        if let Some(value) = &self.value {
            body.push_str(": ");
            body.push_str(&value.to_string());
        }
        if !self.detail.is_empty() {
            body.push_str(": ");
            body.push_str(&self.detail);
        }
        body
    }
}
