//! Why did a node come, why does it stay or go, and what would removing it take?

use serde::Serialize;

use crate::{
    Dollars, Machine, Removal, Requests, State, View,
    fleet::NodeRow,
    hold::Holds,
    outlook::{Ahead, Move, Reach},
    removal::Removals,
    rule::{Class, Stay},
    why::passing::Passing,
};

/// Why a node is there.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NodeExplanation {
    /// The node.
    pub node: NodeRow,
    /// Whether it was launched for a NodePool.
    pub is_managed: bool,
    /// How it came.
    pub came: Came,
    /// What it waits for, if it is not up yet or on its way out.
    pub passing: Option<Passing>,
    /// The move that takes it away, if one is planned.
    pub goes: Option<Move>,
    /// Every rule that keeps it, in the order they are checked.
    pub stays: Vec<Stay>,
    /// What comes of removing it, whatever keeps it.
    pub if_removed: Option<Removal>,
    /// What lifting every rule that somebody made is worth a month, beside the moves that are made anyway; none when that
    /// saves nothing.
    pub lifting_usd_mo: Option<Dollars>,
    /// Its pods, the largest first.
    pub pods: Vec<PodRow>,
}

/// How a node came.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Came {
    /// What its claim asked for at least: millicores.
    pub asked_cpu_m: u64,
    /// MiB.
    pub asked_memory_mib: u64,
    /// How long each step took since the claim was made.
    pub steps: Vec<Step>,
}

/// A step of a node's life.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Which.
    pub name: String,
    /// So long after the claim was made.
    pub after_s: i64,
}

/// A pod of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PodRow {
    /// `namespace/name`.
    pub pod: String,
    /// What it asks for: millicores.
    pub cpu_m: u64,
    /// MiB.
    pub memory_mib: u64,
    /// Whether a DaemonSet or the node itself made it.
    pub is_daemon: bool,
}

impl NodeExplanation {
    /// Explains a machine of a view.
    pub fn of(view: &View<'_>, machine: &Machine<'_>, reach: Reach) -> Self {
        let name = [machine.node_name()];
        let removals = Removals::of(view);
        let mut simulator = removals.simulator();
        let if_removed = removals.without(&mut simulator, &name);
        let ahead = Ahead::of(view, reach);
        let takes_it = |step: &&Move| step.targets.iter().any(|target| target.node == *machine.name);
        let goes = ahead.moves.iter().find(takes_it).cloned();
        let is_kept = !matches!(machine.state, State::Launching | State::Leaving);
        let stays = if goes.is_some() || !machine.is_managed() || !is_kept {
            Vec::new()
        } else {
            Holds::of(view, &ahead.refusals).stays(machine)
        };
        let is_held = stays
            .iter()
            .any(|stay| matches!(stay.class, Class::Held | Class::Waits));
        let worth = is_held.then(|| ahead.worth(view, machine)).flatten();
        Self {
            node: NodeRow::of(view, machine),
            is_managed: machine.is_managed(),
            came: came(machine),
            passing: Passing::of(view, machine).filter(|_| machine.is_managed()),
            goes,
            if_removed: if_removed.filter(|_| machine.is_managed() && is_kept),
            lifting_usd_mo: worth.map(Dollars::monthly),
            stays,
            pods: pods(machine),
        }
    }
}

fn came(machine: &Machine<'_>) -> Came {
    let Some(claim) = machine.member.claim else {
        return Came::default();
    };
    let asked = crate::Amounts::of(&claim.spec.resources.requests);
    let made = claim.metadata.creation_timestamp;
    let mut steps: Vec<Step> = Vec::new();
    for name in ["Launched", "Registered", "Initialized"] {
        let condition = claim
            .condition(name)
            .filter(|condition| condition.status == model::object::ConditionStatus::True);
        let at = condition.and_then(|condition| condition.last_transition_time);
        if let (Some(made), Some(at)) = (made, at) {
            steps.push(Step {
                name: name.to_lowercase(),
                after_s: at.duration_since(made).as_secs().max(0),
            });
        }
    }
    Came {
        asked_cpu_m: asked.cpu_m,
        asked_memory_mib: asked.memory_mib(),
        steps,
    }
}

fn pods(machine: &Machine<'_>) -> Vec<PodRow> {
    let mut requests = Requests::default();
    let mut pods: Vec<PodRow> = machine
        .pods
        .iter()
        .map(|pod| {
            let asked = requests.of(pod);
            PodRow {
                pod: pod.metadata.key().to_string(),
                cpu_m: asked.cpu_m,
                memory_mib: asked.memory_mib(),
                is_daemon: pod.is_owned_by_daemon_set() || pod.is_owned_by_node(),
            }
        })
        .collect();
    pods.sort_by(|a, b| (b.cpu_m, b.memory_mib, &a.pod).cmp(&(a.cpu_m, a.memory_mib, &b.pod)));
    pods
}
