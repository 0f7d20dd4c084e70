//! What needs a person? Everything that does not mend itself, the worst first, each with the question that explains it.

use std::collections::BTreeMap;

use model::{
    object::{ConditionStatus, ObjectKey, PodDisruptionBudget},
    pdb::{self, Blocking},
    words::counted,
};
use serde::Serialize;

use crate::{
    Dollars, State, View,
    fleet::{Pool, waited},
    launch::Pending,
    outlook::Outlook,
    view::Machine,
    why::passing::Passing,
};

/// Something that needs a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Alert {
    /// How bad it is.
    pub level: Level,
    /// For how long it has been so, where that is known.
    pub since_s: Option<i64>,
    /// In a sentence.
    pub text: String,
    /// The command that says more.
    pub ask: String,
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Something does not run.
    Stop,
    /// Something is about to be in the way, or costs money.
    Warn,
    /// Worth knowing.
    Info,
}

impl Level {
    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Warn => "warn",
            Self::Info => "info",
        }
    }
}

/// A machine that is not up after so long, and of which somebody says why, does not come up by itself.
const UP_WITHIN_S: i64 = 300;
/// What is still there after so long is held by something.
const GONE_WITHIN_S: i64 = 3600;

/// A limit is near from here on.
const NEAR_PERCENT: u64 = 90;

/// Everything that needs a person, the worst first.
pub fn alerts(view: &View<'_>, pools: &[Pool], pending: &[Pending], outlook: &Outlook) -> Vec<Alert> {
    let mut alerts: Vec<Alert> = blocked(view, pending);
    alerts.extend(pools.iter().flat_map(|pool| of_pool(view, pool)));
    alerts.extend(budgets(view));
    alerts.extend(held(outlook));
    alerts.extend(of_nodes(view));
    alerts.sort_by_key(|alert| alert.level);
    alerts
}

/// Pods that a rule keeps from getting a node.
fn blocked(view: &View<'_>, pending: &[Pending]) -> Vec<Alert> {
    let alert = |group: &Pending| {
        let first = group.pods.first().cloned().unwrap_or_default();
        let (namespace, name) = first.split_once('/').unwrap_or_default();
        let pod = view.snapshot.objects().pods.find(namespace, name);
        let stop = group.funnel.as_ref().and_then(|funnel| {
            let stop = funnel.stops_at()?;
            Some(format!("stops at {} in NodePool {}", stop.name, funnel.node_pool))
        });
        let who = match group.pods.len() {
            1 => first.clone(),
            count => format!("{} of {}", counted(count, "pod"), group.workload),
        };
        let waits = if group.pods.len() == 1 { "waits" } else { "wait" };
        Alert {
            level: Level::Stop,
            since_s: pod.and_then(|pod| waited(view, pod)),
            text: format!("{who} {waits}: {}", stop.unwrap_or_else(|| group.message.clone())),
            ask: format!("why pod {first}"),
        }
    };
    pending.iter().map(alert).collect()
}

fn of_pool(view: &View<'_>, pool: &Pool) -> Vec<Alert> {
    let mut alerts = Vec::new();
    let object = view.snapshot.objects().node_pools.find("", &pool.name);
    let ask = format!("why nodepool {}", pool.name);
    if !pool.ready {
        let ready = object.and_then(|object| object.status.conditions.iter().find(|it| *it.kind == *"Ready"));
        let since = ready.and_then(|ready| ready.last_transition_time);
        let why = ready.map(|ready| ready.message.to_string()).unwrap_or_default();
        let why = if why.is_empty() {
            String::new()
        } else {
            format!(": {why}")
        };
        alerts.push(Alert {
            level: Level::Stop,
            since_s: since.map(|since| view.seconds_since(since)),
            text: format!("NodePool {} is not ready and launches nothing{why}", pool.name),
            ask: ask.clone(),
        });
    }
    if let Some(limit) = pool.nearest_limit().filter(|limit| limit.percent >= NEAR_PERCENT) {
        let how = if limit.percent < 100 { "near" } else { "at" };
        let text = format!(
            "NodePool {} is {how} limits.{}: {} of {}",
            pool.name, limit.resource, limit.used, limit.limit
        );
        alerts.push(Alert {
            level: Level::Warn,
            since_s: None,
            text,
            ask,
        });
    }
    alerts
}

/// Disruption budgets that no number of healthy pods satisfies, and the nodes they keep.
fn budgets(view: &View<'_>) -> Vec<Alert> {
    let all = &view.snapshot.objects().pod_disruption_budgets;
    if all.is_empty() {
        return Vec::new();
    }
    let mut by_namespace: BTreeMap<&str, Vec<&PodDisruptionBudget>> = BTreeMap::new();
    for budget in all.iter() {
        by_namespace.entry(&budget.metadata.namespace).or_default().push(budget);
    }
    let mut nodes: BTreeMap<ObjectKey, (usize, String)> = BTreeMap::new();
    for machine in view.managed() {
        let mut here: Vec<ObjectKey> = Vec::new();
        for pod in &machine.pods {
            let budgets = by_namespace.get(&*pod.metadata.namespace).into_iter().flatten();
            here.extend(pdb::blocking(pod, budgets.copied(), Blocking::Always, view.now));
        }
        here.sort();
        here.dedup();
        for key in here {
            nodes.entry(key).or_insert_with(|| (0, machine.name.to_string())).0 += 1;
        }
    }
    let alert = |(budget, (count, node)): (ObjectKey, (usize, String))| Alert {
        level: Level::Warn,
        since_s: all
            .find(&budget.namespace, &budget.name)
            .and_then(|budget| budget.metadata.creation_timestamp)
            .map(|since| view.seconds_since(since)),
        text: format!(
            "PDB {budget} can never allow an eviction: it holds {}",
            counted(count, "node")
        ),
        ask: format!("why node {node}"),
    };
    nodes.into_iter().map(alert).collect()
}

/// What is held although it would save money.
fn held(outlook: &Outlook) -> Vec<Alert> {
    let worth = |kept: &&crate::outlook::Kept| kept.saving_usd_mo.is_some_and(|saving| saving > Dollars::ZERO);
    let alert = |kept: &crate::outlook::Kept| {
        let first = kept
            .targets
            .first()
            .map(|target| target.node.clone())
            .unwrap_or_default();
        let dollars = kept.saving_usd_mo.unwrap_or_default().size();
        let whole = (dollars.picos() + 500_000_000_000) / 1_000_000_000_000;
        Alert {
            level: Level::Warn,
            since_s: None,
            text: format!(
                "{} of {} {} held, worth ${whole}/mo: {}",
                counted(kept.targets.len(), "node"),
                kept.pool,
                if kept.targets.len() == 1 { "is" } else { "are" },
                kept.text
            ),
            ask: format!("why node {first}"),
        }
    };
    outlook.held.iter().filter(worth).map(alert).collect()
}

/// A machine that does not get on.
fn stuck(view: &View<'_>, machine: &Machine<'_>) -> Option<Alert> {
    match machine.state {
        State::Launching | State::Starting => coming(view, machine),
        State::Leaving => leaving(view, machine),
        State::Ready | State::Cordoned | State::NotReady => None,
    }
}

/// A machine that was told to go, and does not.
fn leaving(view: &View<'_>, machine: &Machine<'_>) -> Option<Alert> {
    let passing = Passing::of(view, machine)?;
    let since_s = passing.since_s.filter(|since| *since > GONE_WITHIN_S)?;
    let kind = if machine.member.node.is_some() {
        "node"
    } else {
        "nodeclaim"
    };
    Some(Alert {
        level: Level::Warn,
        since_s: Some(since_s),
        text: format!("{kind} {} does not get away: {}", machine.name, passing.text),
        ask: format!("why {kind} {}", machine.name),
    })
}

/// A machine that was asked for and does not come up.
fn coming(view: &View<'_>, machine: &Machine<'_>) -> Option<Alert> {
    let claim = &machine.member.claim?.metadata.name;
    let passing = Passing::of(view, machine).filter(|it| it.is_stuck)?;
    let since_s = passing.since_s.filter(|since| *since > UP_WITHIN_S)?;
    Some(Alert {
        level: Level::Stop,
        since_s: Some(since_s),
        text: format!("NodeClaim {claim} does not come up: {}", passing.text),
        ask: format!("why nodeclaim {claim}"),
    })
}

fn of_nodes(view: &View<'_>) -> Vec<Alert> {
    let mut alerts = Vec::new();
    for machine in view.managed().filter(|machine| machine.state == State::NotReady) {
        let ready = machine.member.node.and_then(|node| node.condition("Ready"));
        let since = ready
            .filter(|ready| ready.status != ConditionStatus::True)
            .and_then(|ready| ready.last_transition_time);
        alerts.push(Alert {
            level: Level::Stop,
            since_s: since.map(|since| view.seconds_since(since)),
            text: format!("node {} is not ready", machine.name),
            ask: format!("why node {}", machine.name),
        });
    }
    alerts.extend(view.managed().filter_map(|machine| stuck(view, machine)));
    // What is not launched yet has no type, and costs nothing.
    let typed = view.managed().filter(|machine| machine.instance_type.is_some());
    let unpriced = typed.filter(|machine| machine.price.is_none());
    let names: Vec<&str> = unpriced.map(|machine| &*machine.name).collect();
    if let Some(first) = names.first() {
        alerts.push(Alert {
            level: Level::Info,
            since_s: None,
            text: format!(
                "the price of {} is not in the catalogue: {} for nothing",
                counted(names.len(), "node"),
                if names.len() == 1 { "it counts" } else { "they count" }
            ),
            ask: format!("why node {first}"),
        });
    }
    alerts
}
