//! Which changes could help with a condition? A fixed list per kind of condition; whether one does help, a run decides.
//!
//! The smallest comes first: the one that changes least of what somebody meant. Weights say so, in this order:
//! - below 5, a slip is mended: a value that no node has becomes the one that was meant;
//! - 5 to 9, an amount or a switch that guards everybody gives way: a limit is raised, nobody is placed otherwise than meant;
//! - 10 to 19, the pod asks for a little else: a toleration, less of a resource, a wider skew;
//! - 20 to 29, the pod gives up a wish of its own;
//! - from 30 on, a NodePool or a setting becomes another one for everybody.

mod pods;
mod pools;

use model::{
    object::{NodePool, Pod},
    snapshot::{MinValuesPolicy, Settings},
};
use serde_json::json;

use self::pods::Pods;
pub(super) use self::pools::Pools;
use super::{
    PoolFunnel,
    change::{Candidate, Change, Edited, Target, yaml},
    constraint::{Constraint, LabelField, MinValues, TopologyKind},
};

/// What could open the stage that blocks a NodePool.
pub(super) fn candidates(pod: &Pod, pool: &NodePool, settings: &Settings, funnel: &PoolFunnel) -> Vec<Candidate> {
    let Some(stage) = funnel.blocking_stage() else {
        return Vec::new();
    };
    let (pods, pools) = (Pods(pod), Pools(pool));
    let found: Vec<Option<Candidate>> = match &stage.constraint {
        Constraint::Taints { untolerated } => vec![pods.tolerating(untolerated), pools.without_taints(untolerated)],
        Constraint::NodeLabel {
            key,
            field,
            wanted,
            offered,
            is_known,
        } => {
            let meant: &[String] = if *is_known { &[] } else { offered };
            let mut found = labels(&pods, &pools, key, *field, wanted, meant);
            found.extend(widened(&pools, funnel).into_iter().filter(|_| *is_known));
            found
        }
        Constraint::VolumeZone { labels } => {
            let added = labels.iter().map(|(key, values)| pools.with_values(key, values));
            let dropped = labels.iter().flat_map(|(key, _)| pods.without_label(key));
            dropped.map(Some).chain(added).collect()
        }
        Constraint::Topology {
            kind,
            key,
            at,
            needed_skew,
            open,
        } => {
            let mut found = at.map_or_else(Vec::new, |at| topology(&pods, *kind, at, *needed_skew));
            found.extend(pods.without_label(key).into_iter().map(Some));
            found.push(pools.with_values(key, open));
            found.push(pools.without_requirement(key));
            found
        }
        Constraint::HostPorts => vec![pods.without_host_ports()],
        Constraint::Resource { resource, asked, most } => {
            let lowered = pods.lowered(resource, *asked, *most);
            std::iter::once(lowered).chain(widened(&pools, funnel)).collect()
        }
        Constraint::Offering | Constraint::PoolOffering => offerings(&pods, &pools),
        Constraint::Reserved => {
            let mut found = offerings(&pods, &pools);
            found.push(pools.without_reserved());
            found
        }
        Constraint::VolumeLimit => std::iter::once(pods.without_volume())
            .chain(widened(&pools, funnel))
            .collect(),
        Constraint::Devices => std::iter::once(pods.without_devices())
            .chain(widened(&pools, funnel))
            .collect(),
        Constraint::PoolLabels => pools.with_one_label_less(),
        Constraint::TopologyTogether => pods.with_one_rule_less(),
        Constraint::MinValues(unmet) | Constraint::PoolMinValues(unmet) => min_values(&pools, unmet, settings),
        Constraint::PoolRequirement { key } => vec![pools.without_requirement(key)],
        // A pool that takes no part does so for reasons no field of it can change; limits need a run to be measured.
        Constraint::Offered | Constraint::TakesNoPart | Constraint::Limit { .. } => Vec::new(),
    };
    found.into_iter().flatten().collect()
}

fn labels(
    pods: &Pods<'_>,
    pools: &Pools<'_>,
    key: &str,
    field: LabelField,
    wanted: &[String],
    meant: &[String],
) -> Vec<Option<Candidate>> {
    let corrected = match field {
        LabelField::Selector => pods.corrected_selector(key, meant),
        LabelField::Affinity { term } => pods.corrected_term(term, key, meant),
    };
    let mut found = vec![corrected];
    found.extend(pods.without_label(key).into_iter().map(Some));
    found.push(pools.with_values(key, wanted));
    found.push(wanted.first().and_then(|value| pools.with_label(key, value)));
    found.push(pools.without_requirement(key));
    found
}

fn topology(pods: &Pods<'_>, kind: TopologyKind, at: usize, needed_skew: Option<i32>) -> Vec<Option<Candidate>> {
    match kind {
        TopologyKind::Spread => vec![pods.with_skew(at, needed_skew), pods.spread_softly(at)],
        TopologyKind::Affinity | TopologyKind::AntiAffinity => vec![pods.without_term(kind, at)],
        TopologyKind::Avoided => Vec::new(),
    }
}

/// What helps a pod whose devices nobody looks at.
pub(super) fn with_devices(pod: &Pod, settings: &Settings) -> Vec<Candidate> {
    let looked_at = Candidate {
        weight: 5,
        change: Change {
            target: Target::Settings,
            path: "settings.ignoreDRARequests".to_owned(),
            old: Some("true".to_owned()),
            new: Some("false".to_owned()),
            text: "settings: set ignoreDRARequests to false".to_owned(),
            patch: yaml(&json!({ "settings": { "ignoreDRARequests": false } })),
        },
        edited: Edited::Settings(Box::new(Settings {
            ignore_dra_requests: false,
            ..settings.clone()
        })),
    };
    std::iter::once(looked_at).chain(Pods(pod).without_devices()).collect()
}

/// The NodePool without one of the requirements that ruled types out.
fn widened(pools: &Pools<'_>, funnel: &PoolFunnel) -> Vec<Option<Candidate>> {
    let stages = funnel.stages.windows(2).filter_map(|pair| match &pair[1].constraint {
        Constraint::PoolRequirement { key } if pair[1].remaining < pair[0].remaining => Some(key),
        _ => None,
    });
    stages.map(|key| pools.without_requirement(key)).collect()
}

fn offerings(pods: &Pods<'_>, pools: &Pools<'_>) -> Vec<Option<Candidate>> {
    let keys = [api::labels::CAPACITY_TYPE, api::labels::ZONE];
    let mut found: Vec<_> = keys.iter().flat_map(|key| pods.without_label(key)).map(Some).collect();
    let capacity_types = ["on-demand", "spot"].map(str::to_owned);
    for capacity_type in capacity_types {
        found.push(pools.with_values(api::labels::CAPACITY_TYPE, &[capacity_type]));
    }
    found.extend(keys.iter().map(|key| pools.without_requirement(key)));
    found
}

fn min_values(pools: &Pools<'_>, unmet: &MinValues, settings: &Settings) -> Vec<Option<Candidate>> {
    let lowered = pools.with_min_values(unmet);
    let best_effort = Candidate {
        weight: 40,
        change: Change {
            target: Target::Settings,
            path: "settings.minValuesPolicy".to_owned(),
            old: Some("Strict".to_owned()),
            new: Some("BestEffort".to_owned()),
            text: "settings: set minValuesPolicy to BestEffort".to_owned(),
            patch: yaml(&json!({ "settings": { "minValuesPolicy": "BestEffort" } })),
        },
        edited: Edited::Settings(Box::new(Settings {
            min_values_policy: MinValuesPolicy::BestEffort,
            ..settings.clone()
        })),
    };
    vec![lowered, Some(best_effort)]
}
