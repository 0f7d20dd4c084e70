//! The smallest change that lifts a rule.

use api::annotations::{DO_NOT_DISRUPT, DO_NOT_REPAIR};
use model::object::{NodePoolName, ObjectKey};

use crate::{
    expected::EXPECTED_PODS_GUARD,
    guard::{LOOP_GUARD, MINIMUM_SAVING_MONTHLY, MINIMUM_SAVING_PERCENT},
    refusal::{Fix, Rule},
    trial::SPOT_FLEXIBILITY,
    world::Machine,
};

/// What to change so that the rule no longer holds; none when waiting is all that helps, or nothing does.
pub(crate) fn of(machine: &Machine<'_>, pool: Option<&NodePoolName>, rule: &Rule) -> Option<Fix> {
    let node = |change: String| Some(fix("Node", ObjectKey::cluster_scoped(machine.name.as_str()), change));
    let pool = |change: String| {
        let name = pool.map_or("", |pool| pool.as_str());
        Some(fix("NodePool", ObjectKey::cluster_scoped(name), change))
    };
    match rule {
        Rule::DoNotDisrupt => node(format!("remove annotation {DO_NOT_DISRUPT}")),
        Rule::DoNotRepair => node(format!("remove annotation {DO_NOT_REPAIR}")),
        Rule::NoNodePoolLabel => node(format!("add label {}", api::labels::NODEPOOL)),
        Rule::MissingLabel(label) => node(format!("add label {label}")),
        Rule::ProtectedPod { pod, .. } => Some(fix("Pod", pod.clone(), format!("remove annotation {DO_NOT_DISRUPT}"))),
        Rule::PodBudgets { budgets, .. } => match budgets.as_slice() {
            [only] => {
                let change = "allow one more disruption: raise maxUnavailable, lower minAvailable, or add a replica";
                Some(fix("PodDisruptionBudget", only.clone(), change.to_owned()))
            }
            [_, second, ..] => {
                let change = "narrow its selector: a pod with two budgets is never evicted";
                Some(fix("PodDisruptionBudget", second.clone(), change.to_owned()))
            }
            [] => None,
        },
        Rule::ConsolidationDisabled => pool("set spec.disruption.consolidateAfter to a duration".to_owned()),
        Rule::OnlyWhenEmpty | Rule::Balanced(_) => {
            pool("set spec.disruption.consolidationPolicy to WhenEmptyOrUnderutilized".to_owned())
        }
        Rule::Budget { reason, disrupting, .. } => pool(format!(
            "allow {} nodes at a time for reason {reason} in spec.disruption.budgets",
            disrupting + 1
        )),
        Rule::SpotToSpotDisabled => Some(fix(
            "setting",
            ObjectKey::cluster_scoped("FEATURE_GATES"),
            "SpotToSpotConsolidation=true".to_owned(),
        )),
        Rule::SpotFlexibility(got) => {
            let more = SPOT_FLEXIBILITY.saturating_sub(*got);
            pool(format!(
                "admit {more} more instance types that are cheaper than this one"
            ))
        }
        Rule::MinValues(_) => pool("lower minValues".to_owned()),
        Rule::UnboundedDrain => pool("set spec.template.spec.terminationGracePeriod".to_owned()),
        Rule::StaticAtLimit => pool("raise spec.limits.nodes by one".to_owned()),
        Rule::MinimumSaving { .. } => pool(format!(
            "lower annotation {MINIMUM_SAVING_PERCENT} or {MINIMUM_SAVING_MONTHLY}"
        )),
        Rule::NeededSoon(_) => pool(format!("set annotation {EXPECTED_PODS_GUARD} to \"off\"")),
        Rule::LoopGuard => pool(format!("set annotation {LOOP_GUARD} to \"off\"")),
        _ => None,
    }
}

fn fix(kind: &'static str, object: ObjectKey, change: String) -> Fix {
    Fix { kind, object, change }
}
