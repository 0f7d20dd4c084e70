//! Which labels a NodePool may ask for and set: NP17 unknown-key, NP18 restricted-label.

use api::{
    labels::{LabelRules, domain},
    provider::Provider,
};

use super::REQUIREMENTS;
use crate::{
    finding::Found,
    nearest::nearest,
    world::{Pool, World, provider},
};

/// What users may write on objects of a pool's cloud.
fn rules(pool: &Pool) -> Option<LabelRules> {
    pool.source.map(|source| LabelRules::new(&[provider(source)]))
}

pub(crate) fn unknown_key(world: &World) -> Vec<Found> {
    let mut found = Vec::new();
    for pool in &world.pools {
        let Some(rules) = rules(pool) else { continue };
        let all = LabelRules::new(&Provider::ALL);
        let labels = &pool.pool.spec.template.metadata.labels;
        for (at, requirement) in pool.pool.spec.template.spec.requirements.iter().enumerate() {
            let key = rules.normalize(&requirement.key);
            let is_absent_on_purpose = matches!(&*requirement.operator, "DoesNotExist" | "NotIn");
            if rules.is_well_known(key) || labels.get(key).is_some() || is_absent_on_purpose {
                continue;
            }
            let meant = nearest(key, rules.well_known());
            let is_elsewhere = all.is_well_known(key);
            let is_reserved = all.is_restricted(key);
            let text = if is_elsewhere {
                format!("{key} is a label of another cloud: no node of this pool has it")
            } else if let Some(meant) = meant {
                format!("nobody sets {key}; {meant} may be meant")
            } else if is_reserved {
                format!("nobody sets {key}: {} is a domain of Karpenter's own", domain(key))
            } else {
                continue;
            };
            let mut one = Found::new(pool.document, format!("{REQUIREMENTS}[{at}].key"), text);
            if let Some(meant) = meant {
                one = one.fix(format!("key: {meant}")).replacing(&*requirement.key, meant);
            }
            found.push(one);
        }
    }
    found
}

pub(crate) fn restricted_label(world: &World) -> Vec<Found> {
    let mut found = Vec::new();
    for pool in &world.pools {
        let Some(rules) = rules(pool) else { continue };
        let template = &pool.pool.spec.template;
        for (key, _) in &*template.metadata.labels {
            if rules.is_restricted(key) || **key == *api::labels::NODEPOOL {
                let text =
                    format!("label {key} is in a domain the controller keeps for itself: the NodePool is rejected");
                let path = format!("spec.template.metadata.labels.{key}");
                found.push(Found::new(pool.document, path, text).fix("a label in a domain of your own"));
            }
        }
        let taints = [
            ("taints", &template.spec.taints),
            ("startupTaints", &template.spec.startup_taints),
        ];
        for (field, taints) in taints {
            for (at, taint) in taints.iter().enumerate() {
                let is_ours = domain(&taint.key) == api::karpenter::GROUP;
                if is_ours {
                    let text = format!("taint {} is in a domain the controller keeps for itself", taint.key);
                    let path = format!("spec.template.spec.{field}[{at}].key");
                    found.push(Found::new(pool.document, path, text).fix("a key in a domain of your own"));
                }
            }
        }
    }
    found
}
