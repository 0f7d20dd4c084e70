//! Do a claim's instance types offer as many different values as `minValues` asks for?

use std::collections::BTreeSet;

use model::{object::NodeSelectorRequirement, plan::PlannedClaim, requirement::Requirement, snapshot::MinValuesPolicy};

use super::{Rule, Verdict, claim::Context};

const INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";

/// What the claim asks for, and under the strict policy what its pool does, which nothing may lower.
pub(super) fn check(context: &Context<'_>, claim: &PlannedClaim, verdict: &mut Verdict) {
    for requirement in context.requirements.iter() {
        let key = context.supply.vocabulary.key_name(requirement.key());
        let found = distinct(context, claim, key, Some(requirement));
        report(context, key, requirement.min_values(), found, verdict);
    }
    if context.snapshot.settings().min_values_policy != MinValuesPolicy::Strict {
        return;
    }
    for written in &context.pool.spec.template.spec.requirements {
        let needed = needed(written);
        if needed.is_some() {
            let key = context.supply.vocabulary.key(&written.key);
            let requirement = key.and_then(|key| context.requirements.get(key));
            let found = distinct(context, claim, &written.key, requirement);
            report(context, &written.key, needed, found, verdict);
        }
    }
}

fn needed(written: &NodeSelectorRequirement) -> Option<u32> {
    written.min_values.and_then(|needed| u32::try_from(needed).ok())
}

/// How many different values the options have of a label, of those that the claim still admits.
fn distinct(context: &Context<'_>, claim: &PlannedClaim, key: &str, admits: Option<&Requirement>) -> usize {
    if key == INSTANCE_TYPE {
        return claim.options.len();
    }
    let vocabulary = &context.supply.vocabulary;
    let Some(id) = vocabulary.key(key) else { return 0 };
    let mut values = BTreeSet::new();
    let supply = &context.supply;
    for at in claim
        .options
        .iter()
        .filter_map(|name| supply.position(&claim.node_pool, name))
    {
        let kind = context.supply.types.get(at);
        let declared = kind.and_then(|kind| kind.shape.requirements.get(id));
        values.extend(declared.into_iter().flat_map(Requirement::values));
    }
    let counts = |value: &&model::vocabulary::ValueId| admits.is_none_or(|it| it.admits(**value, vocabulary));
    values.iter().filter(counts).count()
}

fn report(context: &Context<'_>, key: &str, needed: Option<u32>, found: usize, verdict: &mut Verdict) {
    let Some(needed) = needed.filter(|needed| (*needed as usize) > found) else {
        return;
    };
    let detail = format!("{found} values of {key}, {needed} are asked for");
    verdict.violate(Rule::MinValues, None, Some(&context.place), detail);
}
