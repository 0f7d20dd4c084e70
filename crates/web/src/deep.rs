//! What takes a plan to say? What is next, what it costs at least, which pods wait for what, what needs a person.

use std::collections::{BTreeMap, BTreeSet};

use insight::{
    Dollars, Prices, View,
    alert::alerts,
    fleet::{Pool, waited},
    funnel::Funnel,
    launch::{Pending, Planned, Report, Upstream, workload},
    money::{Accounts, Bounds, Money},
    outlook::{Kept, Move, Outlook, Reach},
};
use jiff::{SignedDuration, Timestamp};
use model::{object::ObjectKey, price::Price, snapshot::Snapshot};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{Answers, Document, Seen};

/// Of long lists so many are shown; the rest is counted.
const MOST_LISTED: usize = 12;
/// Kinds of waiting pods whose way is followed; each costs about as much as a plan for one pod.
const MOST_FUNNELS: usize = 24;
/// One thread: the page takes what nobody else wants.
const THREADS: usize = 1;

/// What takes a plan to say.
#[derive(Debug)]
pub(crate) struct Deep {
    pub(crate) document: Document,
    pub(crate) bound_usd_h: Dollars,
    pub(crate) baseline_usd_h: Dollars,
}

/// Money, with what it was worked out from.
#[derive(Debug, Serialize)]
struct Accounted {
    at: Timestamp,
    #[serde(flatten)]
    money: Money,
    pools: BTreeMap<String, Money>,
    outlook: insight::outlook::Total,
    paused: Vec<insight::outlook::PausedPool>,
    /// Pods that wait and get a node, new or not.
    on_their_way: usize,
    /// Those that get none.
    blocked: usize,
}

/// What is said of a node on the map.
#[derive(Debug, Default, Serialize)]
struct Mark {
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    held: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    waits: Option<Value>,
}

/// Works it all out.
pub(crate) fn deep(seen: &Seen, prices: &Prices, answers: &dyn Answers) -> Deep {
    let view = View::priced(&seen.snapshot, prices);
    let outlook = Outlook::of(&view, Reach::for_machines(view.machines.len(), THREADS));
    let accounts = Accounts::of(&view, prices, &outlook, &Bounds::of(&view));
    let report = Report::of(&seen.snapshot, &planned(&seen.snapshot));
    let pools = Pool::all(&view);
    let mut document = Document::default();
    for section in ["marks", "moves", "kept", "pending", "coming", "alerts", "budgets"] {
        document.open(section);
    }
    for (node, mark) in marks(&outlook) {
        document.put("marks", &node, &mark);
    }
    for (at, step) in outlook.moves.iter().enumerate() {
        document.put("moves", &order(at), &next(step));
    }
    let kept = outlook.waits.iter().map(|kept| ("waits", kept));
    let kept = kept.chain(outlook.held.iter().map(|kept| ("held", kept)));
    for (at, (class, kept)) in kept.enumerate() {
        document.put("kept", &order(at), &stays(class, kept));
    }
    for group in &report.pending {
        document.put("pending", &key_of(group), &waits(&view, group));
    }
    for node in &report.new_nodes {
        let mut tree = serde_json::to_value(node).unwrap_or_default();
        tree["pod_count"] = json!(node.pods.len());
        cut(&mut tree, "pods");
        document.put("coming", &format!("new {}", order(node.number)), &tree);
    }
    for node in &report.existing_nodes {
        let mut tree = serde_json::to_value(node).unwrap_or_default();
        tree["pod_count"] = json!(node.pods.len());
        cut(&mut tree, "pods");
        document.put("coming", &format!("node {}", node.name), &tree);
    }
    for (at, alert) in alerts(&view, &pools, &report.pending, &outlook).iter().enumerate() {
        let mut tree = serde_json::to_value(alert).unwrap_or_default();
        // A point in time, so that waiting changes nothing.
        tree["since"] = json!(since(view.now, alert.since_s));
        if let Value::Object(fields) = &mut tree {
            fields.remove("since_s");
        }
        document.put("alerts", &order(at), &tree);
    }
    for (pool, budgets) in answers.budgets(&seen.snapshot) {
        document.put("budgets", &pool, &budgets);
    }
    let (bound, baseline) = (accounts.money.bound_usd_h, accounts.money.baseline_usd_h);
    let accounted = Accounted {
        at: view.now,
        on_their_way: report.pods.on_new_nodes + report.pods.on_existing_nodes,
        blocked: report.pods.pending,
        money: accounts.money,
        pools: accounts.pools,
        outlook: outlook.total,
        paused: outlook.paused,
    };
    document.put("money", "", &accounted);
    Deep {
        document,
        bound_usd_h: bound,
        baseline_usd_h: baseline,
    }
}

/// Keys that sort as numbers do.
fn order(at: usize) -> String {
    format!("{at:04}")
}

fn since(now: Timestamp, seconds: Option<i64>) -> Option<Timestamp> {
    now.checked_sub(SignedDuration::from_secs(seconds?)).ok()
}

/// Cuts a list to what is shown.
fn cut(tree: &mut Value, field: &str) {
    if let Some(Value::Array(items)) = tree.get_mut(field) {
        items.truncate(MOST_LISTED);
    }
}

/// A plan for the pods that wait, with the way of one pod of each kind of those that get no node.
fn planned(snapshot: &Snapshot) -> Planned {
    let options = packing::Options {
        threads: THREADS,
        ..packing::Options::default()
    };
    let packing::Planned { plan, report, .. } = packing::planned(snapshot, &options);
    let mut kinds: BTreeSet<(String, &str)> = BTreeSet::new();
    let mut asked: Vec<ObjectKey> = Vec::new();
    for unplaced in &plan.unplaced {
        let kind = (workload(&unplaced.pod, snapshot), &*unplaced.message);
        if asked.len() < MOST_FUNNELS && kinds.insert(kind) {
            asked.push(unplaced.pod.metadata.key());
        }
    }
    let explanations = if asked.is_empty() {
        Vec::new()
    } else {
        packing::explain::explain(snapshot, &packing::Options::default(), &asked)
    };
    let funnels = explanations
        .iter()
        .filter_map(|it| Some((it.pod.clone(), Funnel::of(it)?)));
    Planned {
        funnels: funnels.collect(),
        lower_bound: Some(report.lower_bound).filter(|bound| *bound > Price::ZERO),
        upstream: Upstream::of(&report, &plan),
        plan,
    }
}

/// A move without where each pod goes: that is asked for node by node.
fn next(step: &Move) -> Value {
    let mut tree = serde_json::to_value(step).unwrap_or_default();
    tree["nodes"] = json!(step.targets.len());
    cut(&mut tree, "targets");
    if let Value::Object(fields) = &mut tree {
        fields.remove("moves");
    }
    tree
}

fn stays(class: &str, kept: &Kept) -> Value {
    let mut tree = serde_json::to_value(kept).unwrap_or_default();
    tree["class"] = json!(class);
    tree["nodes"] = json!(kept.targets.len());
    cut(&mut tree, "targets");
    tree
}

/// The name of a group: its first pod, which is in no other.
fn key_of(group: &Pending) -> String {
    group.pods.first().cloned().unwrap_or_else(|| group.workload.clone())
}

fn waits(view: &View<'_>, group: &Pending) -> Value {
    let first = group.pods.first().map(String::as_str).unwrap_or_default();
    let (namespace, name) = first.split_once('/').unwrap_or_default();
    let pod = view.snapshot.objects().pods.find(namespace, name);
    let seconds = pod.and_then(|pod| waited(view, pod));
    let stop = group.funnel.as_ref().and_then(Funnel::stops_at);
    let mut tree = serde_json::to_value(group).unwrap_or_default();
    tree["since"] = json!(since(view.now, seconds));
    tree["stops_at"] = json!(stop.map(|step| &step.name));
    tree["pod_count"] = json!(group.pods.len());
    cut(&mut tree, "pods");
    tree
}

fn marks(outlook: &Outlook) -> BTreeMap<String, Mark> {
    let mut marks: BTreeMap<String, Mark> = BTreeMap::new();
    for step in &outlook.moves {
        for target in &step.targets {
            let mark = marks.entry(target.node.clone()).or_default();
            if mark.next.is_none() {
                mark.next = Some(json!({"id": step.id, "action": step.action, "round": step.round}));
            }
        }
    }
    let said = |kept: &Kept| json!({"rule": kept.rule, "word": kept.word, "text": kept.text, "by": kept.by});
    for kept in &outlook.held {
        for target in &kept.targets {
            marks.entry(target.node.clone()).or_default().held = Some(said(kept));
        }
    }
    for kept in &outlook.waits {
        for target in &kept.targets {
            marks.entry(target.node.clone()).or_default().waits = Some(said(kept));
        }
    }
    marks
}
