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
    Machine, NewNode, View,
    fleet::{NodeRow, waited},
    funnel::{Funnel, Way},
    hold::Holds,
    launch::workload,
    rule::{Class, Stay},
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
    /// How far it comes with each pool.
    pub ways: Vec<Way>,
    /// The condition that leaves nothing.
    pub stops_at: Option<String>,
    /// What is in the way in upstream's words, or what a pod waits for that nobody has tried to place.
    pub message: String,
    /// It would have a place if no other pod wanted one.
    pub is_crowded_out: bool,
    /// The node that would be launched for it.
    pub launch: Option<NewNode>,
    /// The node it is on, or would go to.
    pub node: Option<NodeRow>,
    /// The name of the node it is bound to, whether that is known or not.
    pub bound_to: Option<String>,
    /// Whether its node was launched for a NodePool.
    pub is_managed: bool,
    /// What keeps it from being moved.
    pub stays: Vec<Stay>,
    /// What keeps its node, beside that.
    pub node_stays: Vec<Stay>,
    /// Who places it.
    pub scheduler: String,
}

/// How a pod fares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum PodState {
    /// It is on a node.
    Running,
    /// It is being deleted, and still on its node.
    Leaving,
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
            ways: Vec::new(),
            stops_at: None,
            message: String::new(),
            is_crowded_out: false,
            launch: None,
            node: None,
            bound_to: pod.node_name.as_ref().map(ToString::to_string),
            is_managed: false,
            stays: Vec::new(),
            node_stays: Vec::new(),
            scheduler: scheduler(pod),
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
            None => PodExplanation {
                message: not_tried(pod),
                ..bare
            },
        }
    }
}

/// Who places a pod: kube-scheduler, unless it names another.
fn scheduler(pod: &Pod) -> String {
    match &*pod.spec.scheduler_name {
        "" | "default-scheduler" => "kube-scheduler".to_owned(),
        other => other.to_owned(),
    }
}

/// What a pod waits for that no scheduler has called unschedulable.
fn not_tried(pod: &Pod) -> String {
    let gates: Vec<&str> = pod.spec.scheduling_gates.iter().map(|gate| &*gate.name).collect();
    if !gates.is_empty() {
        return format!("its scheduling gate {} is not lifted", gates.join(", "));
    }
    if let Some(node) = &pod.status.nominated_node_name {
        return format!("it waits for pods of lower priority to leave {node}");
    }
    if pod.is_owned_by_daemon_set() {
        return "no node is launched for a pod of a DaemonSet: it waits for room on its own".to_owned();
    }
    format!("{} has not said that it finds none", scheduler(pod))
}

fn running(view: &View<'_>, pod: &Arc<Pod>, node: &str, bare: PodExplanation) -> PodExplanation {
    let machine = view.machine(node);
    let since = pod.status.start_time.or(pod.metadata.creation_timestamp);
    let key = format!("pod {}", pod.metadata.key());
    let holds = Holds::of(view, &[]);
    let keeps = |stay: &Stay| stay.by == key || stay.text.contains(&*pod.metadata.key().to_string());
    let of_machine = machine.map(|machine| holds.stays(machine)).unwrap_or_default();
    let (stays, others): (Vec<Stay>, Vec<Stay>) = of_machine.into_iter().partition(keeps);
    let leaving = pod.metadata.deletion_timestamp;
    PodExplanation {
        state: if leaving.is_some() {
            PodState::Leaving
        } else {
            PodState::Running
        },
        since_s: leaving.or(since).map(|since| view.seconds_since(since)),
        node: machine.map(|machine| NodeRow::of(view, machine)),
        is_managed: machine.is_some_and(Machine::is_managed),
        stays,
        node_stays: others
            .into_iter()
            .filter(|stay| matches!(stay.class, Class::Held | Class::Waits))
            .collect(),
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
        ways: Way::all(&explanation),
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
    let reason = |verdict: &NodeVerdict| {
        let is_one = verdict.nodes == 1;
        let has = if is_one { "has" } else { "have" };
        let is = if is_one { "is" } else { "are" };
        ExistingReason {
            nodes: verdict.nodes,
            text: match &verdict.reason {
                NodeReason::ConsolidateAfter => "may not be consolidated yet".to_owned(),
                NodeReason::Taint(taint) => format!("{has} taint {taint}"),
                NodeReason::VolumeLimit => format!("{} too many volumes", if is_one { "attaches" } else { "attach" }),
                NodeReason::HostPort => format!("{has} the port taken"),
                NodeReason::Resource(name) => format!("{has} too little {name} free"),
                NodeReason::Label(label) => format!("{} in label {label}", if is_one { "differs" } else { "differ" }),
                NodeReason::VolumeZone => format!("{is} not where its volumes are"),
                NodeReason::Topology => format!("{is} ruled out by where other pods are"),
            },
        }
    };
    Existing {
        looked_at: verdicts.iter().map(|verdict| verdict.nodes).sum(),
        reasons: verdicts.iter().map(reason).collect(),
    }
}
