//! What speaks against the nodes there are, counted by reason.

use std::collections::BTreeMap;

use model::{
    object::{Taint, Toleration},
    taint::check_tolerated,
    volume::Volumes,
};

use crate::{
    intake::{PLAIN, PodEntry},
    run::Run,
    space::{StateId, Step},
};

/// Nodes that one thing speaks against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeVerdict {
    /// What.
    pub reason: NodeReason,
    /// How many nodes.
    pub nodes: usize,
}

/// What keeps a pod off a node: the first test it fails, in upstream's order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeReason {
    /// It may not be consolidated yet, and the pod comes from another node.
    ConsolidateAfter,
    /// A taint the pod does not tolerate.
    Taint(String),
    /// It attaches too many volumes.
    VolumeLimit,
    /// A port is taken.
    HostPort,
    /// It has too little room.
    Resource(String),
    /// It lacks a label or has another value of it.
    Label(String),
    /// The pod's volumes are elsewhere.
    VolumeZone,
    /// Other pods are, or are not, near it.
    Topology,
}

/// The reasons of all nodes, the commonest first.
pub(super) fn verdicts(run: &mut Run<'_>, pod: u32, step: usize) -> Vec<NodeVerdict> {
    let entry = run.problem.intake.pods[pod as usize];
    let hosts = run.nodes.states.len() + run.claims.len();
    let variant = &run.ladders.all[entry.combo as usize].variants[step];
    run.rules.evaluate(variant, &run.topology, hosts);
    let mut counts: BTreeMap<NodeReason, usize> = BTreeMap::new();
    for node in 0..run.problem.nodes.len() {
        *counts.entry(reason(run, entry, step, node)).or_default() += 1;
    }
    let mut verdicts: Vec<_> = counts
        .into_iter()
        .map(|(reason, nodes)| NodeVerdict { reason, nodes })
        .collect();
    verdicts.sort_by_key(|verdict| std::cmp::Reverse(verdict.nodes));
    verdicts
}

fn reason(run: &mut Run<'_>, entry: PodEntry, step: usize, node: usize) -> NodeReason {
    let state = &run.problem.nodes[node];
    if state.is_under_consolidate_after && !entry.is_homeless {
        return NodeReason::ConsolidateAfter;
    }
    if let Some(taint) = untolerated(run, entry, step, node) {
        return NodeReason::Taint(taint);
    }
    attached(run, entry, node)
        .or_else(|| lacking(run, entry, node))
        .or_else(|| label(run, entry, step, node))
        .or_else(|| volume_zone(run, entry, step, node))
        .unwrap_or(NodeReason::Topology)
}

fn untolerated(run: &Run<'_>, entry: PodEntry, step: usize, node: usize) -> Option<String> {
    let variant = &run.ladders.all[entry.combo as usize].variants[step];
    let tolerations: Vec<_> = variant.tolerations_list().iter().map(Toleration::view).collect();
    let taints = &run.problem.nodes[node].taints;
    let is_refused = |taint: &&Taint| check_tolerated([taint.view()], &tolerations).is_err();
    taints.iter().find(is_refused).map(super::labels::taint_text)
}

fn attached(run: &Run<'_>, entry: PodEntry, node: usize) -> Option<NodeReason> {
    if entry.extra == PLAIN || run.node_takes_extras(entry.extra, node) {
        return None;
    }
    let extra = &run.problem.intake.extras[entry.extra as usize];
    let none = Volumes::default();
    let volumes = extra.volumes.as_ref().and_then(|it| it.attachments.as_ref().ok());
    let is_full = run.problem.nodes[node].volumes.check(volumes.unwrap_or(&none)).is_err();
    Some(if is_full || extra.ports.is_empty() {
        NodeReason::VolumeLimit
    } else {
        NodeReason::HostPort
    })
}

fn lacking(run: &Run<'_>, entry: PodEntry, node: usize) -> Option<NodeReason> {
    let (problem, lanes) = (run.problem, run.problem.lanes.len());
    let room = &run.nodes.room[node * lanes..(node + 1) * lanes];
    let mut lanes = problem.shape(entry.shape).iter().zip(room).zip(problem.lanes.names());
    let lacking = lanes.find(|((asked, room), _)| asked > room);
    let overdrawn = || {
        let mut left = problem.nodes[node].remaining.iter();
        left.find(|(_, left)| left.is_negative()).map(|(name, _)| name)
    };
    let name = lacking.map(|(_, name)| name).or_else(overdrawn)?;
    Some(NodeReason::Resource(name.to_string()))
}

fn label(run: &Run<'_>, entry: PodEntry, step: usize, node: usize) -> Option<NodeReason> {
    let (problem, vocabulary) = (run.problem, &run.problem.vocabulary);
    let variant = &run.ladders.all[entry.combo as usize].variants[step];
    if let Some(wanted) = &variant.hostname
        && !wanted.has(&problem.nodes[node].hostname, vocabulary)
    {
        return Some(NodeReason::Label(api::labels::HOSTNAME.to_owned()));
    }
    let state = run.space.state(run.nodes.states[node]);
    let wanted = &run.space.sets[variant.set as usize];
    let refused = wanted.iter().find(|requirement| {
        let mut one = model::requirement::Requirements::default();
        one.replace((*requirement).clone());
        !state
            .requirements
            .is_compatible(&one, state.side.undefined(), vocabulary)
    });
    refused.map(|requirement| NodeReason::Label(vocabulary.key_name(requirement.key()).to_owned()))
}

fn volume_zone(run: &mut Run<'_>, entry: PodEntry, step: usize, node: usize) -> Option<NodeReason> {
    let alternatives = &run.problem.intake.extras.get(entry.extra as usize)?.alternatives;
    let set = run.ladders.all[entry.combo as usize].variants[step].set;
    let Step::To(base) = run.space.join(run.nodes.states[node], set) else {
        return None;
    };
    let is_there = |run: &Run<'_>, base: StateId| {
        let state = run.space.state(base);
        let mut sets = alternatives.iter();
        sets.any(|set| {
            state
                .requirements
                .is_compatible(set, state.side.undefined(), &run.problem.vocabulary)
        })
    };
    (!alternatives.is_empty() && !is_there(run, base)).then_some(NodeReason::VolumeZone)
}
