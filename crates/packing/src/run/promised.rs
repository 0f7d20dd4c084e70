//! Pods that an earlier plan has a place for: they stay with it, as far as they still fit there.
//!
//! A tight plan is seldom found a second time. Pods that wait for their nodes to open are planned for again whenever other
//! pods come; on the nodes that are on their way they would then be packed otherwise than these were bought for, and what
//! finds no room that way would get machines of its own.

use std::collections::HashMap;

use api::labels::ZONE;
use model::{
    object::{NodeClaimName, NodeName, Pod, Text},
    plan::Plan,
};
use rustc_hash::{FxHashMap, FxHashSet};

use super::Run;
use crate::problem::Problem;

/// How often pods are tried again that others had to come before: a spread takes them in turns only.
const LAPS: usize = 4;

/// A pod and the node it was promised.
struct Promise {
    /// How many pods alike have the same zone before it. Pods come in turns, so that a spread over zones stays even.
    turn: u32,
    pod: u32,
    node: usize,
}

/// Where each claim's node is among the nodes that take pods; empty when nothing was promised.
fn nodes_of_claims(problem: &Problem) -> HashMap<NodeClaimName, usize> {
    if problem.options.promised.is_empty() {
        return HashMap::new();
    }
    let nodes = problem.nodes.iter().enumerate();
    nodes
        .filter_map(|(at, node)| Some((node.claim.as_ref()?.name(), at)))
        .collect()
}

/// How many pods a plan has elsewhere than they were promised, though that node is there.
pub(crate) fn broken(problem: &Problem, plan: &Plan) -> usize {
    let promised = &problem.options.promised;
    let nodes = nodes_of_claims(problem);
    let node_of = |pod: &Pod| {
        let at = nodes.get(promised.get(&pod.metadata.key())?)?;
        problem.nodes.get(*at).map(|node| &node.name)
    };
    let is_broken = |pod: &Pod, place: Option<&NodeName>| node_of(pod).is_some_and(|node| place != Some(node));
    let elsewhere = plan.claims.iter().flat_map(|claim| &claim.pods).map(|pod| (pod, None));
    let unplaced = plan.unplaced.iter().map(|left| (&left.pod, None));
    let on_nodes = plan.existing.iter();
    let on_nodes = on_nodes.flat_map(|node| node.pods.iter().map(|pod| (pod, Some(&node.name))));
    let places = elsewhere.chain(unplaced).chain(on_nodes);
    places.filter(|(pod, place)| is_broken(pod, *place)).count()
}

impl Run<'_> {
    /// Places pods where they were promised room; returns those that have no promise or no longer fit, in their order.
    pub(crate) fn place_as_promised(&mut self, queue: impl IntoIterator<Item = u32>) -> Vec<u32> {
        let queue: Vec<u32> = queue.into_iter().collect();
        let mut waiting = self.promises(&queue);
        let mut kept: FxHashSet<u32> = FxHashSet::default();
        for _ in 0..LAPS {
            let before = waiting.len();
            waiting.retain(|promise| {
                let is_kept = self.place_on_that_node(promise.pod, promise.node);
                if is_kept {
                    kept.insert(promise.pod);
                }
                !is_kept
            });
            if waiting.is_empty() || waiting.len() == before {
                break;
            }
        }
        queue.into_iter().filter(|pod| !kept.contains(pod)).collect()
    }

    /// What was promised to these pods, in the order it is to be kept.
    fn promises(&self, queue: &[u32]) -> Vec<Promise> {
        let problem = self.problem;
        let promised = &problem.options.promised;
        let nodes = nodes_of_claims(problem);
        let mut turns: FxHashMap<(u32, Option<&Text>), u32> = FxHashMap::default();
        let promise = |&pod: &u32| {
            let claim = promised.get(&problem.pods[pod as usize].pod.metadata.key())?;
            let node = *nodes.get(claim)?;
            let combo = problem.intake.pods[pod as usize].combo;
            let before = turns.entry((combo, problem.nodes[node].labels.get(ZONE))).or_default();
            let turn = *before;
            *before += 1;
            Some(Promise { turn, pod, node })
        };
        let mut promises: Vec<Promise> = queue.iter().filter_map(promise).collect();
        promises.sort_by_key(|promise| promise.turn);
        promises
    }
}
