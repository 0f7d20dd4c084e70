//! A requirement as the API writes it, and the way in and out of the algebra.

use std::num::IntErrorKind;

use serde::{Deserialize, Serialize};

use super::{Operator, Requirement};
use crate::vocabulary::{KeyId, Vocabulary};

/// `NodeSelectorRequirementWithMinValues`: a key, an operator and its operands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequirementSpec {
    /// The label.
    pub key: String,
    /// How the values are meant.
    pub operator: Operator,
    /// The operands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
    /// How many different values the instance types chosen must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_values: Option<u32>,
}

/// A requirement that means something else than its author thought.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("requirement on \"{key}\": {operator} needs exactly one integer, not {values:?}; write values: [\"4\"]")]
pub struct SpecError {
    key: String,
    operator: Operator,
    values: Vec<String>,
}

impl RequirementSpec {
    /// A requirement without `minValues`.
    pub fn new(key: &str, operator: Operator, values: &[&str]) -> Self {
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        Self {
            key: key.to_owned(),
            operator,
            values,
            min_values: None,
        }
    }

    /// Refuses what the API server refuses and the algebra would silently read as zero.
    pub fn validate(&self) -> Result<(), SpecError> {
        let is_integer = matches!(&self.values[..], [value] if value.parse::<i64>().is_ok());
        if is_integer || !self.operator.is_bound() {
            return Ok(());
        }
        Err(SpecError {
            key: self.key.clone(),
            operator: self.operator,
            values: self.values.clone(),
        })
    }
}

impl Requirement {
    /// The requirement a text means, its key and values normalised and entered in the vocabulary.
    pub fn from_spec(spec: &RequirementSpec, vocabulary: &mut Vocabulary) -> Self {
        let key = vocabulary.intern_normalized(&spec.key);
        Self::on(key, spec, vocabulary)
    }

    /// The same when the number of its key is known.
    pub(super) fn on(key: KeyId, spec: &RequirementSpec, vocabulary: &mut Vocabulary) -> Self {
        let values = spec.values.iter().map(String::as_str);
        Self::parse_on(key, spec.operator, values, vocabulary).with_min_values_of(spec)
    }

    /// The requirement that key, operator and operands mean. Operands that no operator of this kind takes are ignored,
    /// and a bound that is no integer counts as zero, as upstream has it for what validation should have refused.
    pub fn parse<'a>(
        key: &str,
        operator: Operator,
        values: impl IntoIterator<Item = &'a str>,
        vocabulary: &mut Vocabulary,
    ) -> Self {
        let key = vocabulary.intern_normalized(key);
        Self::parse_on(key, operator, values, vocabulary)
    }

    fn parse_on<'a>(
        key: KeyId,
        operator: Operator,
        values: impl IntoIterator<Item = &'a str>,
        vocabulary: &mut Vocabulary,
    ) -> Self {
        let mut values = values.into_iter();
        let bound = |value: Option<&str>| value.map_or(0, integer);
        match operator {
            Operator::In => Self::one_of(key, values.map(|value| vocabulary.intern_normalized_value(key, value))),
            Operator::NotIn => Self::none_of(key, values.map(|value| vocabulary.intern_normalized_value(key, value))),
            Operator::Exists => Self::exists(key),
            Operator::DoesNotExist => Self::does_not_exist(key),
            Operator::Gte => Self::within(key, Some(bound(values.next())), None),
            Operator::Lte => Self::within(key, None, Some(bound(values.next()))),
            Operator::Gt => match bound(values.next()).checked_add(1) {
                Some(least) => Self::within(key, Some(least), None),
                None => Self::does_not_exist(key),
            },
            // Upstream's subtraction wraps: below the smallest integer admits every integer.
            Operator::Lt => Self::within(key, None, Some(bound(values.next()).wrapping_sub(1))),
        }
    }

    /// As the API writes it: a bound hides excluded values, and two bounds take two entries.
    pub fn to_specs(&self, vocabulary: &Vocabulary) -> Vec<RequirementSpec> {
        let spec = |operator, values| RequirementSpec {
            key: vocabulary.key_name(self.key).to_owned(),
            operator,
            values,
            min_values: self.min_values,
        };
        let (least, most) = self.bounds();
        if least.is_none() && most.is_none() {
            return vec![spec(
                self.operator(),
                self.sorted_values(vocabulary).map(str::to_owned).collect(),
            )];
        }
        let bound = |operator, bound: Option<i64>| bound.map(|bound| spec(operator, vec![bound.to_string()]));
        [bound(Operator::Gte, least), bound(Operator::Lte, most)]
            .into_iter()
            .flatten()
            .collect()
    }

    /// Nothing is above the largest integer; upstream drops `minValues` along with that impossible bound.
    fn with_min_values_of(self, spec: &RequirementSpec) -> Self {
        let is_impossible = spec.operator == Operator::Gt && self.is_empty();
        if is_impossible {
            self
        } else {
            self.with_min_values(spec.min_values)
        }
    }
}

/// Go's `Atoi` with its error ignored: the nearest end of the range, or zero for what is no number.
fn integer(text: &str) -> i64 {
    text.parse()
        .unwrap_or_else(|error: std::num::ParseIntError| match error.kind() {
            IntErrorKind::PosOverflow => i64::MAX,
            IntErrorKind::NegOverflow => i64::MIN,
            _ => 0,
        })
}
