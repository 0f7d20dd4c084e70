//! What comes next, what it is worth and who waits: the answers that take the engine a while, made once for each snapshot
//! and away from the screen.

use std::collections::BTreeMap;

use insight::{
    Dollars, View,
    alert::{Alert, alerts},
    fleet::{Pool, waited},
    funnel::Funnel,
    launch::{self, Report},
    money::{Accounts, Bounds},
    outlook::{Kept, Move, Outlook, Reach},
};
use jiff::Timestamp;

use crate::picture::Picture;

/// What comes next.
#[derive(Debug)]
pub struct Ahead {
    /// Of which snapshot.
    pub serial: u64,
    /// Moves, what waits and what is held.
    pub outlook: Outlook,
    /// What it costs, in all and by pool.
    pub accounts: Accounts,
    /// Pods that wait, those that something is in the way of first.
    pub waiting: Vec<Waiting>,
    /// What needs a person.
    pub alerts: Vec<Alert>,
    /// What comes next for a node, by its name.
    next: BTreeMap<String, Next>,
}

/// A pod that waits for a node.
#[derive(Debug, Clone, PartialEq)]
pub struct Waiting {
    /// `namespace/name`.
    pub pod: String,
    /// What made it.
    pub workload: String,
    /// What is in the way, or where it goes.
    pub stops_at: String,
    /// Whether something is in the way.
    pub is_blocked: bool,
    /// For how long it has waited.
    pub since_s: Option<i64>,
    /// What it asks for.
    pub wants: String,
    /// How far it came, where something is in the way.
    pub funnel: Option<Funnel>,
    /// In upstream's words, or what is launched for it.
    pub message: String,
}

/// What comes next for a node, or why it stays.
#[derive(Debug, Clone, PartialEq)]
pub struct Next {
    /// What kind of thing it is.
    pub kind: NextKind,
    /// What happens, in a word or two: `replace now`, `held by pod`.
    pub text: String,
    /// The id of a move.
    pub id: String,
    /// What that changes a month; for what is held, what is forgone.
    pub usd_mo: Option<Dollars>,
    /// How many nodes share that amount.
    pub nodes: usize,
    /// When it ends by itself.
    pub lifts_at: Option<Timestamp>,
}

/// What kind of thing comes next; in the order in which people want to see them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NextKind {
    /// It goes.
    Goes,
    /// A rule keeps it.
    Held,
    /// It waits for its time.
    Waits,
}

impl Ahead {
    /// Looks ahead from a picture, on so many threads.
    pub fn of(picture: &Picture, threads: usize) -> Self {
        let view = View::priced(&picture.snapshot, &picture.prices);
        let outlook = Outlook::of(&view, Reach::for_machines(view.machines.len(), threads));
        let accounts = Accounts::of(&view, &picture.prices, &outlook, &Bounds::of(&view));
        let options = packing::Options {
            threads,
            ..packing::Options::default()
        };
        let report = Report::of(&picture.snapshot, &launch::plan(&picture.snapshot, &options));
        let pools = Pool::all(&view);
        Self {
            serial: picture.serial,
            alerts: alerts(&view, &pools, &report.pending, &outlook),
            waiting: waiting(&view, &report),
            next: next(&outlook),
            accounts,
            outlook,
        }
    }

    /// What comes next for a node.
    pub fn next(&self, node: &str) -> Option<&Next> {
        self.next.get(node)
    }

    pub(crate) fn blocked(&self) -> usize {
        self.waiting.iter().filter(|pod| pod.is_blocked).count()
    }
}

fn waiting(view: &View<'_>, report: &Report) -> Vec<Waiting> {
    let find = |pod: &str| {
        let (namespace, name) = pod.split_once('/').unwrap_or_default();
        view.snapshot.objects().pods.find(namespace, name)
    };
    let one = |pod: &String, stops_at: String, funnel: Option<&Funnel>, message: String| {
        let object = find(pod);
        Waiting {
            pod: pod.clone(),
            workload: object
                .map(|pod| launch::workload(pod, view.snapshot))
                .unwrap_or_default(),
            stops_at,
            is_blocked: false,
            since_s: object.and_then(|pod| waited(view, pod)),
            wants: object.map(|pod| wants(pod)).unwrap_or_default(),
            funnel: funnel.cloned(),
            message,
        }
    };
    let mut all = Vec::new();
    for group in &report.pending {
        let stop = group.funnel.as_ref().and_then(Funnel::stops_at);
        let stop = stop.map_or_else(|| format!("{:?}", group.reason), |step| step.name.clone());
        for pod in &group.pods {
            let waits = one(pod, stop.clone(), group.funnel.as_ref(), group.message.clone());
            all.push(Waiting {
                is_blocked: true,
                ..waits
            });
        }
    }
    for node in &report.new_nodes {
        let part = |value: &Option<String>| value.clone().unwrap_or_default();
        let text = format!(
            "nothing is in its way: a {} {} in {} is launched for it by NodePool {}",
            part(&node.instance_type),
            part(&node.capacity_type),
            part(&node.zone),
            node.node_pool
        );
        let news = node.pods.iter();
        all.extend(news.map(|pod| one(pod, "on its way".to_owned(), None, text.clone())));
    }
    for node in &report.existing_nodes {
        let text = format!("{} has room for it: kube-scheduler places it there", node.name);
        let placed = node.pods.iter();
        all.extend(placed.map(|pod| one(pod, "fits a node".to_owned(), None, text.clone())));
    }
    all.sort_by(|a, b| {
        let order = b.is_blocked.cmp(&a.is_blocked);
        order.then((b.since_s, &a.pod).cmp(&(a.since_s, &b.pod)))
    });
    all
}

/// `40 cpu, 48Gi memory`.
fn wants(pod: &model::object::Pod) -> String {
    let requests = pod.resources().requests();
    let shown: Vec<String> = requests
        .iter()
        .filter(|(name, _)| name.as_str() != "pods")
        .map(|(name, amount)| format!("{amount} {name}"))
        .collect();
    if shown.is_empty() {
        return "nothing".to_owned();
    }
    shown.join(", ")
}

fn next(outlook: &Outlook) -> BTreeMap<String, Next> {
    let mut all = BTreeMap::new();
    for kept in &outlook.waits {
        keep(&mut all, kept, NextKind::Waits);
    }
    for kept in &outlook.held {
        keep(&mut all, kept, NextKind::Held);
    }
    for step in &outlook.moves {
        for (at, target) in step.targets.iter().enumerate() {
            all.insert(target.node.clone(), goes(step, at == 0));
        }
    }
    all
}

fn goes(step: &Move, is_first: bool) -> Next {
    let when = if step.round == 1 { "now" } else { "next" };
    Next {
        kind: NextKind::Goes,
        text: format!("{} {when}", step.action),
        id: step.id.get(..4).unwrap_or(&step.id).to_owned(),
        usd_mo: is_first.then_some(step.delta_usd_mo),
        nodes: step.targets.len(),
        lifts_at: None,
    }
}

fn keep(all: &mut BTreeMap<String, Next>, kept: &Kept, kind: NextKind) {
    let by = match kept.word {
        "pdb" => "PDB",
        word => word,
    };
    let is_drift = kept.reason == "Drifted";
    let text = match kind {
        NextKind::Waits if is_drift => "drifted".to_owned(),
        NextKind::Waits => by.to_owned(),
        _ if is_drift => format!("drifted, held by {by}"),
        _ => format!("held by {by}"),
    };
    for (at, target) in kept.targets.iter().enumerate() {
        let next = Next {
            kind,
            text: text.clone(),
            id: String::new(),
            usd_mo: kept.saving_usd_mo.filter(|_| at == 0),
            nodes: kept.targets.len(),
            lifts_at: kept.lifts_at,
        };
        all.insert(target.node.clone(), next);
    }
}
