//! Why is a pod pending, or why does it sit where it does?

use std::{collections::BTreeMap, sync::Arc};

use model::{
    object::{ObjectKey, Pod},
    plan::Plan,
};
use packing::{
    Options,
    explain::{self, NodeReason, NodeVerdict},
};
use serde::Serialize;

use crate::{
    NewNode, View,
    fleet::{NodeRow, waited},
    funnel::Funnel,
    hold::Holds,
    launch::workload,
    rule::Stay,
};

/// Why a pod is where it is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PodExplanation {
    /// `namespace/name`.
    pub pod: String,
    /// What made it: `Deployment/shop/checkout`.
    pub workload: String,
    /// How it fares.
    pub state: PodState,
    /// For how long.
    pub since_s: Option<i64>,
    /// What it asks for.
    pub wants: BTreeMap<String, String>,
    /// Labels it asks of its node.
    pub selects: BTreeMap<String, String>,
    /// What speaks against the nodes there are.
    pub existing: Existing,
    /// How far it comes with the pool where it gets furthest, and what would help.
    pub funnel: Option<Funnel>,
    /// The condition that leaves nothing.
    pub stops_at: Option<String>,
    /// In upstream's words.
    pub message: String,
    /// It would have a place if no other pod wanted one.
    pub is_crowded_out: bool,
    /// The node that would be launched for it.
    pub launch: Option<NewNode>,
    /// The node it is on, or would go to.
    pub node: Option<NodeRow>,
    /// What keeps it from being moved.
    pub stays: Vec<Stay>,
}

/// How a pod fares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum PodState {
    /// It is on a node.
    Running,
    /// It has ended.
    Ended,
    /// It waits for a node, and no rule is in the way: one is launched for it.
    OnItsWay,
    /// It waits, and a node there is has room.
    FitsExisting,
    /// It waits, and something is in the way.
    Blocked,
    /// kube-scheduler has not looked at it, or it asked to wait.
    NotTried,
}

/// What speaks against the nodes there are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Existing {
    /// Nodes that were looked at.
    pub looked_at: usize,
    /// Reasons, the commonest first.
    pub reasons: Vec<ExistingReason>,
}

/// Nodes that one thing speaks against.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExistingReason {
    /// How many.
    pub nodes: usize,
    /// What.
    pub text: String,
}

impl PodExplanation {
    /// Explains a pod of a view.
    pub fn of(view: &View<'_>, pod: &Arc<Pod>, options: &Options) -> Self {
        let requests = pod.resources().requests();
        let wants = requests
            .iter()
            .map(|(name, amount)| (name.to_string(), amount.to_string()));
        let selects = pod.spec.node_selector.iter();
        let selects = selects.map(|(key, value)| (key.to_string(), value.to_string()));
        let bare = Self {
            pod: pod.metadata.key().to_string(),
            workload: workload(pod, view.snapshot),
            state: PodState::NotTried,
            since_s: waited(view, pod),
            wants: wants.collect(),
            selects: selects.collect(),
            existing: Existing::default(),
            funnel: None,
            stops_at: None,
            message: String::new(),
            is_crowded_out: false,
            launch: None,
            node: None,
            stays: Vec::new(),
        };
        if pod.is_terminal() {
            return Self {
                state: PodState::Ended,
                ..bare
            };
        }
        match &pod.node_name {
            Some(name) => running(view, pod, name.as_str(), bare),
            None if pod.is_provisionable() => waiting(view, pod, options, bare),
            None => bare,
        }
    }
}

fn running(view: &View<'_>, pod: &Arc<Pod>, node: &str, bare: PodExplanation) -> PodExplanation {
    let machine = view.machine(node);
    let since = pod.status.start_time.or(pod.metadata.creation_timestamp);
    let key = format!("pod {}", pod.metadata.key());
    let holds = Holds::of(view, &[]);
    let keeps = |stay: &Stay| stay.by == key || stay.text.contains(&*pod.metadata.key().to_string());
    PodExplanation {
        state: PodState::Running,
        since_s: since.map(|since| view.seconds_since(since)),
        node: machine.map(|machine| NodeRow::of(view, machine)),
        stays: machine
            .map(|machine| holds.stays(machine).into_iter().filter(keeps).collect())
            .unwrap_or_default(),
        ..bare
    }
}

fn waiting(view: &View<'_>, pod: &Arc<Pod>, options: &Options, bare: PodExplanation) -> PodExplanation {
    let key = pod.metadata.key();
    let plan = packing::plan(view.snapshot, options);
    if let Some(place) = place(view, &plan, &key) {
        return match place {
            Place::New(launch) => PodExplanation {
                state: PodState::OnItsWay,
                launch: Some(launch),
                ..bare
            },
            Place::Existing(node) => PodExplanation {
                state: PodState::FitsExisting,
                node,
                ..bare
            },
        };
    }
    let faithful = Options {
        packing: packing::Packing::Faithful,
        ..options.clone()
    };
    let explained = explain::explain(view.snapshot, &faithful, std::slice::from_ref(&key));
    let refused = plan.unplaced.iter().find(|unplaced| unplaced.pod.metadata.key() == key);
    let message = refused.map(|refused| refused.message.to_string()).unwrap_or_default();
    let Some(explanation) = explained.into_iter().next() else {
        return PodExplanation {
            state: PodState::Blocked,
            message,
            ..bare
        };
    };
    let funnel = Funnel::of(&explanation);
    PodExplanation {
        state: PodState::Blocked,
        stops_at: funnel.as_ref().and_then(Funnel::stops_at).map(|step| step.name.clone()),
        existing: existing(&explanation.existing),
        is_crowded_out: explanation.is_crowded_out,
        funnel,
        message,
        ..bare
    }
}

/// Where a plan puts a pod.
enum Place {
    New(NewNode),
    Existing(Option<NodeRow>),
}

fn place(view: &View<'_>, plan: &Plan, pod: &ObjectKey) -> Option<Place> {
    let has = |pods: &[Arc<Pod>]| pods.iter().any(|placed| placed.metadata.key() == *pod);
    if let Some(claim) = plan.claims.iter().find(|claim| has(&claim.pods)) {
        let launch = NewNode::of(claim.node_pool.as_str(), claim.cheapest.as_ref(), claim.pods.len());
        return Some(Place::New(launch));
    }
    let node = plan.existing.iter().find(|node| has(&node.pods))?;
    let machine = view.machine(node.name.as_str());
    Some(Place::Existing(machine.map(|machine| NodeRow::of(view, machine))))
}

fn existing(verdicts: &[NodeVerdict]) -> Existing {
    let reason = |verdict: &NodeVerdict| ExistingReason {
        nodes: verdict.nodes,
        text: match &verdict.reason {
            NodeReason::ConsolidateAfter => "may not be consolidated yet".to_owned(),
            NodeReason::Taint(taint) => format!("has taint {taint}"),
            NodeReason::VolumeLimit => "attaches too many volumes".to_owned(),
            NodeReason::HostPort => "has the port taken".to_owned(),
            NodeReason::Resource(name) => format!("has too little {name} free"),
            NodeReason::Label(label) => format!("differs in label {label}"),
            NodeReason::VolumeZone => "is not where its volumes are".to_owned(),
            NodeReason::Topology => "is ruled out by where other pods are".to_owned(),
        },
    };
    Existing {
        looked_at: verdicts.iter().map(|verdict| verdict.nodes).sum(),
        reasons: verdicts.iter().map(reason).collect(),
    }
}
