//! How an instant is written in our objects: RFC 3339 in UTC with whole seconds, like `metav1.Time`.
//!
//! In memory the fraction is kept, because upstream orders conditions that change within one second by it.

use std::borrow::Cow;

use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An instant that loses its fraction of a second on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub Timestamp);

impl From<Timestamp> for Time {
    fn from(instant: Timestamp) -> Self {
        Self(instant)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0.strftime("%Y-%m-%dT%H:%M:%SZ"))
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Timestamp::deserialize(deserializer).map(Self)
    }
}

impl JsonSchema for Time {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Time".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date-time" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_written_in_utc_without_its_fraction() {
        let cases = [
            ("2024-01-01T01:01:01Z", "2024-01-01T01:01:01Z"),
            ("2024-01-01T01:01:01.999999999Z", "2024-01-01T01:01:01Z"),
            ("2024-01-01T01:01:01+02:00", "2023-12-31T23:01:01Z"),
        ];
        for (read, written) in cases {
            let time: Time = serde_json::from_value(read.into()).unwrap();
            assert_eq!(serde_json::to_value(time).unwrap(), written, "{read}");
        }
    }
}
