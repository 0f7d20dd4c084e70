//! Money in documents: a number of dollars, with the unit in the key.

use model::price::Price;
use serde::{Deserialize, Deserializer, Serializer, de::Error};

/// The decimal nearest to the price that a number of a document can hold.
fn number(price: Price) -> f64 {
    price.to_decimal().parse().unwrap_or_default()
}

fn price<E: Error>(dollars: f64) -> Result<Price, E> {
    Price::from_f64(dollars).ok_or_else(|| E::custom(format_args!("{dollars} is not an amount of dollars")))
}

/// Writes a number of dollars.
pub fn serialize<S: Serializer>(price: &Price, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(number(*price))
}

/// Reads a number of dollars.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Price, D::Error> {
    price(f64::deserialize(deserializer)?)
}

/// The same for what may be unknown.
pub mod maybe {
    use super::{Deserialize, Deserializer, Price, Serializer, number, price};

    /// Writes a number of dollars, if there is one.
    pub fn serialize<S: Serializer>(price: &Option<Price>, serializer: S) -> Result<S::Ok, S::Error> {
        match price {
            Some(price) => serializer.serialize_some(&number(*price)),
            None => serializer.serialize_none(),
        }
    }

    /// Reads a number of dollars, if there is one.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Price>, D::Error> {
        Option::<f64>::deserialize(deserializer)?.map(price).transpose()
    }
}
