//! Do the nodes that are there take the pods the plan gives them?

use std::collections::BTreeMap;

use model::{object::Text, snapshot::Snapshot};

use super::{
    Place, Reason, Rule, Verdict, claim::key_of, daemon::daemons, placement::contradicts, topology::Replay,
    world::World,
};
use crate::{NodeId, Plugin, amounts::Dictionary};

/// Room, taints, labels, ports and volumes, pod by pod; each sees those before it.
pub(super) fn check(snapshot: &Snapshot, world: &World, replay: &Replay, verdict: &mut Verdict) {
    for name in &replay.unknown {
        let place = Place::Node(name.clone());
        verdict.violate(
            Rule::Place,
            None,
            Some(&place),
            "there is no such node, or it goes away",
        );
    }
    let mut cluster = replay.cluster.clone();
    let mut used: BTreeMap<Text, NodeId> = BTreeMap::new();
    for binding in &replay.bindings {
        let Place::Node(name) = &binding.place else { continue };
        if let Err(refusal) = cluster.filter_without_neighbours(binding.class, binding.node) {
            let reason = match refusal.plugin {
                Plugin::NodeUnschedulable => Some(Reason::Cordoned),
                Plugin::NodeAffinity if contradicts(&binding.pod.spec) => Some(Reason::Contradiction),
                _ => None,
            };
            let rule = Rule::Filter(refusal.plugin);
            verdict.find(
                reason,
                rule,
                Some(&key_of(&binding.pod)),
                Some(&binding.place),
                refusal.detail,
            );
        }
        cluster.bind(binding.class, binding.node);
        used.insert(name.clone(), binding.node);
    }
    let daemons = daemons(snapshot, &mut Dictionary::default());
    for (name, node) in used {
        let Some(state) = world.nodes.get(&name) else { continue };
        let sched_node = state.sched_node(snapshot);
        let missing = daemons.iter().filter(|daemon| {
            daemon.tolerates(&sched_node.taints)
                && daemon.matches(&name, &sched_node.labels)
                && !daemon.is_among(state.pods(snapshot))
        });
        for daemon in missing {
            let class = cluster.class_of(&daemon.pod());
            let place = Place::Node(name.clone());
            if let Err(refusal) = cluster.filter_without_neighbours(class, node)
                && refusal.plugin == Plugin::NodeResourcesFit
            {
                let detail = format!("DaemonSet {}: {}", daemon.set.metadata.name, refusal.detail);
                let rule = Rule::Filter(refusal.plugin);
                verdict.doubt(Reason::DaemonRoom, rule, None, Some(&place), detail);
            }
            cluster.bind(class, node);
        }
    }
}
