//! What the schema cannot say about NodePools and NodeOverlays: checked at run time and reported as a condition.
//!
//! All faults are collected, in upstream's words and order. Where upstream ranges over a Go map, and so has no order,
//! ours is sorted.

mod violation;

use std::collections::BTreeSet;

pub use self::violation::{RequirementFault, Violation, Violations};
use super::{
    NodeOverlay, NodePool, NodeSelectorRequirement, NodeSelectorRequirementWithMinValues, Operator, Taint, TaintEffect,
};
use crate::labels::{self, LabelRules, syntax};

impl NodePool {
    /// Checks what the schema cannot.
    ///
    /// - labels: key not the pool's own, key and value well-formed, key not reserved
    /// - taints and startup taints: key, value and effect well-formed, no pair of key and effect twice
    /// - requirements: see [`requirement_faults`], and key not the pool's own
    pub fn runtime_validate(&self, rules: &LabelRules) -> Result<(), Violations> {
        let template = &self.spec.template;
        let mut violations = vec![];
        for (key, value) in template.metadata.labels.iter().flatten() {
            violations.extend(label_violations(key, value, rules));
        }
        let mut seen = BTreeSet::new();
        violations.extend(taint_violations(template.spec.taints.as_deref(), "taints", &mut seen));
        violations.extend(taint_violations(
            template.spec.startup_taints.as_deref(),
            "startupTaints",
            &mut seen,
        ));
        violations.extend(
            template
                .spec
                .requirements
                .iter()
                .filter_map(|it| requirement_violation(it, rules)),
        );
        let own_key = template
            .spec
            .requirements
            .iter()
            .filter(|it| it.key == labels::NODEPOOL);
        violations.extend(own_key.map(|it| Violation::NodePoolRequirement(it.key.clone())));
        Violations::check(violations)
    }
}

impl NodeOverlay {
    /// Checks what the schema cannot.
    ///
    /// - requirements: see [`requirement_faults`], and NotIn needs a value
    /// - capacity: no resource the provider states itself
    pub fn runtime_validate(&self, rules: &LabelRules) -> Result<(), Violations> {
        let mut violations = vec![];
        for requirement in &self.spec.requirements {
            violations.extend(requirement_violation(&requirement.clone().into(), rules));
            if requirement.operator == Operator::NotIn && requirement.values.is_empty() {
                violations.push(Violation::NotInWithoutValues(requirement.key.clone()));
            }
        }
        let resources = self.spec.capacity.iter().flatten().map(|(resource, _)| resource);
        violations.extend(
            resources
                .filter(|it| rules.is_well_known_resource(it))
                .map(|it| Violation::Capacity(it.clone())),
        );
        Violations::check(violations)
    }
}

fn label_violations(key: &str, value: &str, rules: &LabelRules) -> Vec<Violation> {
    let mut violations = vec![];
    if key == labels::NODEPOOL {
        violations.push(Violation::NodePoolLabel(key.to_owned()));
    }
    violations.extend(syntax::key_faults(key).into_iter().map(|fault| Violation::LabelKey {
        key: key.to_owned(),
        fault,
    }));
    violations.extend(
        syntax::value_faults(value)
            .into_iter()
            .map(|fault| Violation::LabelValue {
                key: key.to_owned(),
                value: value.to_owned(),
                fault,
            }),
    );
    if let Err(restriction) = rules.check(key) {
        violations.push(Violation::RestrictedLabel {
            key: key.to_owned(),
            restriction,
        });
    }
    violations
}

fn taint_violations<'a>(
    taints: Option<&'a [Taint]>,
    field: &'static str,
    seen: &mut BTreeSet<(&'a str, &'a TaintEffect)>,
) -> Vec<Violation> {
    let mut violations = vec![];
    for taint in taints.unwrap_or_default() {
        let mut faults = syntax::key_faults(&taint.key);
        if !taint.value.is_empty() {
            faults.extend(syntax::key_faults(&taint.value));
        }
        violations.extend(faults.into_iter().map(|fault| Violation::Taint { fault, field }));
        match &taint.effect {
            // Upstream lets an empty effect pass.
            TaintEffect::Other(effect) if !effect.is_empty() => {
                violations.push(Violation::TaintEffect {
                    effect: effect.clone(),
                    field,
                });
            }
            _ => {}
        }
        if !seen.insert((&taint.key, &taint.effect)) {
            violations.push(Violation::DuplicateTaint {
                key: taint.key.clone(),
                effect: taint.effect.clone(),
            });
        }
    }
    violations
}

fn requirement_violation(requirement: &NodeSelectorRequirementWithMinValues, rules: &LabelRules) -> Option<Violation> {
    let faults = requirement_faults(requirement, rules);
    (!faults.is_empty()).then_some(Violation::Requirement(faults))
}

/// What is wrong with a requirement, judged by the key its alias stands for.
///
/// - the operator exists
/// - the key is not reserved
/// - an In on a key with known values lists at least one of them, and at least minValues of them
/// - the key and the values are well-formed
/// - an In has a value, and at least minValues of them
/// - a comparison has exactly one value, an integer not below 0
pub fn requirement_faults(
    requirement: &NodeSelectorRequirementWithMinValues,
    rules: &LabelRules,
) -> Vec<RequirementFault> {
    let key = rules.normalize(&requirement.key).to_owned();
    let operator = &requirement.operator;
    let mut faults = vec![];
    if let Operator::Other(operator) = operator {
        faults.push(RequirementFault::Operator {
            key: key.clone(),
            operator: operator.clone(),
        });
    }
    faults.extend(rules.check(&key).err().map(RequirementFault::from));
    faults.extend(known_value_fault(&key, requirement, rules));
    faults.extend(syntax::key_faults(&key).into_iter().map(|fault| RequirementFault::Key {
        key: key.clone(),
        fault,
    }));
    for value in &requirement.values {
        faults.extend(
            syntax::value_faults(value)
                .into_iter()
                .map(|fault| RequirementFault::Value {
                    key: key.clone(),
                    value: value.clone(),
                    fault,
                }),
        );
    }
    faults.extend(value_count_faults(&key, requirement));
    faults
}

fn known_value_fault(
    key: &str,
    requirement: &NodeSelectorRequirementWithMinValues,
    rules: &LabelRules,
) -> Option<RequirementFault> {
    if requirement.operator != Operator::In || !rules.is_well_known(key) {
        return None;
    }
    let known = rules.known_values(key)?;
    let valid = requirement
        .values
        .iter()
        .filter(|value| known.contains(value.as_str()))
        .count();
    let (key, values) = (key.to_owned(), requirement.values.clone());
    let known = known.iter().copied().collect();
    match requirement.min_values {
        _ if valid == 0 => Some(RequirementFault::NoKnownValue { key, values, known }),
        Some(min_values) if fewer(valid, min_values) => Some(RequirementFault::TooFewKnownValues {
            key,
            values,
            min_values,
            known,
            valid,
        }),
        _ => None,
    }
}

fn value_count_faults(key: &str, requirement: &NodeSelectorRequirementWithMinValues) -> Vec<RequirementFault> {
    let mut faults = vec![];
    match requirement.operator {
        Operator::In => {
            if requirement.values.is_empty() {
                faults.push(RequirementFault::InWithoutValues(key.to_owned()));
            }
            if requirement
                .min_values
                .is_some_and(|min_values| fewer(requirement.values.len(), min_values))
            {
                faults.push(RequirementFault::FewerThanMinValues(key.to_owned()));
            }
        }
        Operator::Gt | Operator::Lt | Operator::Gte | Operator::Lte => {
            let number = match &requirement.values[..] {
                [value] => value.parse::<i64>().ok(),
                _ => None,
            };
            if number.is_none_or(|number| number < 0) {
                let operator = requirement.operator.clone();
                faults.push(RequirementFault::NotOneInteger {
                    key: key.to_owned(),
                    operator,
                });
            }
        }
        _ => {}
    }
    faults
}

fn fewer(count: usize, min_values: i64) -> bool {
    i64::try_from(count).is_ok_and(|count| count < min_values)
}

impl From<NodeSelectorRequirement> for NodeSelectorRequirementWithMinValues {
    fn from(plain: NodeSelectorRequirement) -> Self {
        Self {
            key: plain.key,
            operator: plain.operator,
            values: plain.values,
            min_values: None,
        }
    }
}

#[cfg(test)]
mod tests;
