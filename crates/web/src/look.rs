//! What can be said at once? The fleet, its nodes and pods, the pools, the decisions: everything that needs no plan.

use std::{collections::BTreeMap, sync::Arc};

use insight::{
    Dollars, Prices, View,
    fleet::{Fleet, Pods, Pool},
};
use jiff::Timestamp;
use ledger::{Action, Record};
use model::{object::NodePool, snapshot::Snapshot};
use serde::Serialize;

use crate::{Answers, Document, Seen, Title, tile::Tile, trend::Point};

/// What instance types cost, read again only when what it is read from has changed.
#[derive(Debug, Default)]
pub(crate) struct PriceBook {
    /// Kept, so that no other catalogue can come to lie where this one does.
    last: Option<(Snapshot, Arc<Prices>)>,
}

impl PriceBook {
    /// The prices of a snapshot.
    pub(crate) fn prices(&mut self, snapshot: &Snapshot) -> Arc<Prices> {
        if let Some((known, prices)) = &self.last
            && is_alike(known, snapshot)
        {
            return Arc::clone(prices);
        }
        let prices = Arc::new(Prices::of(snapshot));
        self.last = Some((snapshot.clone(), Arc::clone(&prices)));
        prices
    }
}

/// Whether the same is offered in both: one catalogue, and pools, classes and overlays of the same versions.
fn is_alike(one: &Snapshot, other: &Snapshot) -> bool {
    let (a, b) = (one.objects(), other.objects());
    std::ptr::eq(one.catalog(), other.catalog())
        && versions(a.node_pools.iter().map(|it| &it.metadata)) == versions(b.node_pools.iter().map(|it| &it.metadata))
        && versions(a.node_overlays.iter().map(|it| &it.metadata))
            == versions(b.node_overlays.iter().map(|it| &it.metadata))
}

fn versions<'a>(objects: impl Iterator<Item = &'a model::object::Metadata>) -> Vec<(String, String)> {
    objects
        .map(|metadata| (metadata.name.to_string(), format!("{:?}", metadata.resource_version)))
        .collect()
}

/// The fleet at a glance.
#[derive(Debug, Serialize)]
struct Now {
    at: Timestamp,
    /// What Kubernetes it is: the newest kubelet's version.
    kubernetes: String,
    fleet: Fleet,
    pods: Pods,
    spend_usd_h: Dollars,
    spend_usd_mo: Dollars,
    unpriced: usize,
}

/// A pool, with what people wrote of it.
#[derive(Debug, Serialize)]
struct PoolCard {
    #[serde(flatten)]
    pool: Pool,
    spend_usd_mo: Dollars,
    pods: usize,
    requirements: Vec<String>,
    taints: Vec<String>,
    class: String,
    expire_after: String,
    weight: Option<i32>,
    budgets: Vec<String>,
    zone: String,
}

/// A decision in a line.
#[derive(Debug, Serialize)]
struct DecisionRow {
    time: Timestamp,
    last_seen: Timestamp,
    count: u64,
    /// What came of it, in one word.
    word: &'static str,
    /// Its shape on the timeline.
    kind: &'static str,
    acted: bool,
    refused: bool,
    reason: String,
    pool: String,
    what: String,
    pods: usize,
    delta_usd_mo: Option<ledger::Usd>,
    forgone_usd_mo: Option<ledger::Usd>,
    /// The NodeClaims that come.
    claims: Vec<String>,
}

/// What can be said at once, and a point for the trend.
pub(crate) fn look(seen: &Seen, prices: &Prices, title: &Title, answers: &dyn Answers) -> (Document, Point) {
    let view = View::priced(&seen.snapshot, prices);
    let mut document = Document::default();
    document.put("title", "", title);
    if let Some(stage) = &seen.stage {
        document.put("stage", "", stage);
    }
    for section in ["nodes", "pools", "decisions", "workloads"] {
        document.open(section);
    }
    for machine in &view.machines {
        document.put("nodes", &machine.name, &Tile::of(machine, view.now));
    }
    let mut pools = BTreeMap::new();
    for object in seen.snapshot.objects().node_pools.iter() {
        let card = PoolCard::of(&view, object);
        pools.insert(card.pool.name.clone(), card.pool.spend_usd_h);
        document.put("pools", &card.pool.name.clone(), &card);
    }
    for record in &seen.decisions {
        document.put("decisions", &record.id.to_string(), &DecisionRow::of(record, answers));
    }
    for (name, replicas) in workloads(&seen.snapshot) {
        document.put("workloads", &name, &replicas);
    }
    let now = Now::of(&view);
    let point = Point {
        at: view.now,
        spend_usd_h: now.spend_usd_h,
        pools,
        nodes: now.fleet.nodes + now.fleet.launching,
        pending: now.pods.pending,
        bound_usd_h: None,
        baseline_usd_h: None,
    };
    document.put("now", "", &now);
    (document, point)
}

impl Now {
    fn of(view: &View<'_>) -> Self {
        let nodes = view.snapshot.objects().nodes.iter();
        let versions = nodes.map(|node| node.status.node_info.kubelet_version.to_string());
        let spend: Dollars = view.managed().map(insight::Machine::cost).sum();
        Self {
            at: view.now,
            kubernetes: versions.max().unwrap_or_default(),
            fleet: Fleet::of(view),
            pods: Pods::of(view),
            spend_usd_h: spend,
            spend_usd_mo: spend.monthly(),
            unpriced: view.managed().filter(|machine| machine.price.is_none()).count(),
        }
    }
}

impl PoolCard {
    fn of(view: &View<'_>, pool: &NodePool) -> Self {
        let spec = &pool.spec.template.spec;
        let seen = Pool::of(view, pool);
        let requirement = |it: &model::object::NodeSelectorRequirement| {
            let values: Vec<&str> = it.values.iter().map(|value| &**value).collect();
            let key = it.key.rsplit('/').next().unwrap_or_default();
            format!("{key} {} {}", it.operator, values.join(", "))
                .trim_end()
                .to_owned()
        };
        let budget = |it: &model::object::Budget| {
            let mut text = format!("nodes: {}", it.nodes);
            if let Some(reasons) = &it.reasons {
                let reasons: Vec<&str> = reasons.iter().map(|reason| &**reason).collect();
                text.push_str(&format!(" for {}", reasons.join(", ")));
            }
            if let (Some(schedule), Some(duration)) = (&it.schedule, &it.duration) {
                text.push_str(&format!(" at {schedule} for {}", brief(&duration.to_string())));
            }
            text
        };
        let taint = |it: &model::object::Taint| {
            let equals = if it.value.is_empty() { "" } else { "=" };
            format!("{}{equals}{}:{}", it.key, it.value, it.effect)
        };
        let of_pool = view
            .managed()
            .filter(|machine| machine.pool.as_ref() == Some(&pool.metadata.name));
        let zone = pool.metadata.annotations.get(disruption::BUDGET_TIME_ZONE);
        Self {
            pods: of_pool.map(|machine| machine.pods.len()).sum(),
            requirements: spec.requirements.iter().map(requirement).collect(),
            taints: spec.taints.iter().map(taint).collect(),
            class: spec
                .node_class_ref
                .as_ref()
                .map(|class| format!("{}/{}", class.kind, class.name))
                .unwrap_or_default(),
            expire_after: spec.expire_after.as_ref().map(ToString::to_string).unwrap_or_default(),
            weight: pool.spec.weight,
            budgets: pool.spec.disruption.budgets.iter().map(budget).collect(),
            zone: zone.map_or("UTC".to_owned(), ToString::to_string),
            spend_usd_mo: seen.spend_usd_h.monthly(),
            pool: seen,
        }
    }
}

/// A duration without the units of which it has none: `12h0m0s` is `12h`.
fn brief(duration: &str) -> &str {
    let duration = duration
        .strip_suffix("m0s")
        .map_or(duration, |_| &duration[..duration.len() - 2]);
    duration
        .strip_suffix("h0m")
        .map_or(duration, |_| &duration[..duration.len() - 2])
}

impl DecisionRow {
    fn of(record: &Record, answers: &dyn Answers) -> Self {
        let kind = match (record.action, record.phase) {
            (_, ledger::Phase::Aborted) => "abort",
            (Action::Launch, _) => "launch",
            (Action::Replace | Action::Reboot, _) => "replace",
            (Action::Delete, _) if record.reason == "Interrupted" => "interrupt",
            (Action::Delete, _) => "delete",
            (Action::Refuse | Action::Keep, _) => "refuse",
        };
        Self {
            time: record.time,
            last_seen: record.last_seen,
            count: record.count,
            word: record.word(),
            kind,
            acted: record.is_acted(),
            refused: record.is_refused(),
            reason: record.reason.clone(),
            pool: record.pool.clone(),
            what: answers.what(record),
            pods: record.pod_count,
            delta_usd_mo: record.money.map(|money| money.delta().monthly()),
            forgone_usd_mo: record.forgone_usd_h.map(ledger::Usd::monthly),
            claims: record.coming().map(|target| target.claim.clone()).collect(),
        }
    }
}

/// Workloads that could be scaled, as the what-if form names them, with the pods they have.
fn workloads(snapshot: &Snapshot) -> BTreeMap<String, usize> {
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for pod in snapshot.objects().pods.iter().filter(|pod| !pod.is_terminal()) {
        let made_by = insight::launch::workload(pod, snapshot);
        let parts: Vec<&str> = made_by.splitn(3, '/').collect();
        let [kind, namespace, name] = parts.as_slice() else {
            continue;
        };
        let kind = match *kind {
            "Deployment" => "deploy",
            "StatefulSet" => "sts",
            "ReplicaSet" => "rs",
            _ => continue,
        };
        *found.entry(format!("{namespace}/{kind}/{name}")).or_default() += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_written_without_units_of_which_it_has_none() {
        for (given, short) in [
            ("12h0m0s", "12h"),
            ("1h30m0s", "1h30m"),
            ("30s", "30s"),
            ("10m0s", "10m"),
            ("20m30s", "20m30s"),
        ] {
            assert_eq!(brief(given), short);
        }
    }
}
