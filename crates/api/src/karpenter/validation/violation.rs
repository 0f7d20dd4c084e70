//! What can be wrong with a NodePool or NodeOverlay, in upstream's words.

use std::fmt;

use crate::{
    karpenter::{Operator, TaintEffect},
    labels::rules::RestrictedLabel,
};

/// Everything wrong with one object. Its text is the message of the condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violations(Vec<Violation>);

/// One thing wrong with a NodePool or NodeOverlay.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// The NodePool's own label cannot be set.
    #[error("invalid key name {0:?} in labels, restricted")]
    NodePoolLabel(String),
    /// A label key is malformed.
    #[error("invalid key name {key:?} in labels, {fault:?}")]
    LabelKey {
        /// The key.
        key: String,
        /// What is wrong with it.
        fault: String,
    },
    /// A label value is malformed.
    #[error("invalid value: {value} for label[{key}], {fault}")]
    LabelValue {
        /// The key.
        key: String,
        /// The value.
        value: String,
        /// What is wrong with it.
        fault: String,
    },
    /// A label key is reserved.
    #[error("invalid key name {key:?} in labels, {restriction}")]
    RestrictedLabel {
        /// The key.
        key: String,
        /// Why it is reserved.
        restriction: RestrictedLabel,
    },
    /// A taint's key or value is malformed.
    #[error("invalid value: {fault} in {field}")]
    Taint {
        /// What is wrong.
        fault: String,
        /// `taints` or `startupTaints`.
        field: &'static str,
    },
    /// A taint's effect does not exist.
    #[error("invalid value: {effect:?} in {field}")]
    TaintEffect {
        /// The effect.
        effect: String,
        /// `taints` or `startupTaints`.
        field: &'static str,
    },
    /// Two taints have the same key and effect.
    #[error("duplicate taint Key/Effect pair {key}={effect}")]
    DuplicateTaint {
        /// The key.
        key: String,
        /// The effect.
        effect: TaintEffect,
    },
    /// A requirement is unusable.
    #[error("invalid value: {} in requirements, restricted", join(.0))]
    Requirement(Vec<RequirementFault>),
    /// The NodePool's own label cannot be required.
    #[error("invalid key: {0:?} in requirements, restricted")]
    NodePoolRequirement(String),
    /// An overlay's NotIn excludes nothing.
    #[error("key {0} with operator NotIn must have a value defined")]
    NotInWithoutValues(String),
    /// An overlay cannot change this resource.
    #[error("invalid capacity: {0} in resource, restricted")]
    Capacity(String),
}

/// One thing wrong with a requirement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequirementFault {
    /// The operator does not exist.
    #[error("key {key} has an unsupported operator {operator} not in [{}]", Operator::WORDS.join(" "))]
    Operator {
        /// The key.
        key: String,
        /// The operator.
        operator: String,
    },
    /// The key is reserved.
    #[error(transparent)]
    Restricted(#[from] RestrictedLabel),
    /// None of the values can occur.
    #[error("no valid values found in [{}] for {key}, expected one of: map[{}], got: [{}]", .values.join(" "), go_set(.known), .values.join(" "))]
    NoKnownValue {
        /// The key.
        key: String,
        /// The values.
        values: Vec<String>,
        /// The values that can occur.
        known: Vec<&'static str>,
    },
    /// Fewer values can occur than the requirement asks for.
    #[error("not enough valid values found in [{}] for {key}, expected at least {min_values} valid values from: [{}], got: {valid}", .values.join(" "), .known.join(" "))]
    TooFewKnownValues {
        /// The key.
        key: String,
        /// The values.
        values: Vec<String>,
        /// How many are asked for.
        min_values: i64,
        /// The values that can occur.
        known: Vec<&'static str>,
        /// How many of the values can occur.
        valid: usize,
    },
    /// The key is malformed.
    #[error("key {key} is not a qualified name, {fault}")]
    Key {
        /// The key.
        key: String,
        /// What is wrong with it.
        fault: String,
    },
    /// A value is malformed.
    #[error("invalid value {value} for key {key}, {fault}")]
    Value {
        /// The key.
        key: String,
        /// The value.
        value: String,
        /// What is wrong with it.
        fault: String,
    },
    /// An In admits nothing.
    #[error("key {0} with operator In must have a value defined")]
    InWithoutValues(String),
    /// An In lists fewer values than it asks for.
    #[error("key {0} with operator In must have at least minimum number of values defined in 'values' field")]
    FewerThanMinValues(String),
    /// A comparison does not compare with one number.
    #[error("key {key} with operator {operator} must have a single positive integer value")]
    NotOneInteger {
        /// The key.
        key: String,
        /// The operator.
        operator: Operator,
    },
}

impl Violations {
    pub(super) fn check(violations: Vec<Violation>) -> Result<(), Self> {
        if violations.is_empty() {
            Ok(())
        } else {
            Err(Self(violations))
        }
    }

    /// One by one.
    pub fn iter(&self) -> impl Iterator<Item = &Violation> {
        self.0.iter()
    }
}

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&join(&self.0))
    }
}

impl std::error::Error for Violations {}

fn join<T: fmt::Display>(faults: &[T]) -> String {
    faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// A Go set as `%v` prints it inside `map[…]`.
fn go_set(values: &[&str]) -> String {
    values
        .iter()
        .map(|value| format!("{value}:{{}}"))
        .collect::<Vec<_>>()
        .join(" ")
}
