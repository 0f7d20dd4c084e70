//! How an amount of a resource is written in our objects: the user's text, kept as it was.
//!
//! Arithmetic on amounts belongs to the domain model; here an amount is only carried and given a schema.

use std::{borrow::Cow, collections::BTreeMap, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de};

/// Amounts by resource name, such as `cpu: 500m`.
pub type ResourceList = BTreeMap<String, Quantity>;

/// A Kubernetes quantity as text. An integer in the document is read as its decimal text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Quantity(pub String);

impl From<&str> for Quantity {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl de::Visitor<'_> for Text {
            type Value = Quantity;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a quantity such as 2, \"500m\" or \"4Gi\"")
            }

            fn visit_str<E>(self, text: &str) -> Result<Quantity, E> {
                Ok(Quantity(text.to_owned()))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Quantity, E> {
                Ok(Quantity(number.to_string()))
            }

            fn visit_u64<E>(self, number: u64) -> Result<Quantity, E> {
                Ok(Quantity(number.to_string()))
            }
        }
        deserializer.deserialize_any(Text)
    }
}

impl JsonSchema for Quantity {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Quantity".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [{ "type": "integer" }, { "type": "string" }],
            "pattern": PATTERN,
            "x-kubernetes-int-or-string": true,
        })
    }
}

const PATTERN: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_and_integers_are_read_and_text_is_written() {
        let read: ResourceList = serde_json::from_value(json!({ "cpu": "1.50", "nodes": 3 })).unwrap();
        assert_eq!(
            serde_json::to_value(read).unwrap(),
            json!({ "cpu": "1.50", "nodes": "3" })
        );
    }

    #[test]
    fn a_fractional_number_is_refused_as_the_api_server_does() {
        assert!(serde_json::from_value::<Quantity>(json!(1.5)).is_err());
    }
}
