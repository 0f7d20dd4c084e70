//! Taking back what a simulation did, in proportion to what it did.

use super::{Extras, Run, device::Devices};
use crate::{claims::Claims, limits::Limits, reserved::Reserved, space::StateId, topology::GroupId};

/// What a simulation changed and has to put back.
#[derive(Debug, Default)]
pub(super) struct Journal {
    is_open: bool,
    entries: Vec<Entry>,
    /// Pods that left their node, with the node.
    moved: Vec<(u32, u32)>,
    /// Groups there were before the simulation.
    groups: usize,
}

#[derive(Debug)]
enum Entry {
    /// A node got a pod; it was in this state before.
    Placed { node: usize, state: StateId, pod: u32 },
    /// A group counted a pod placed in this simulation.
    Counted {
        group: GroupId,
        host: usize,
        state: StateId,
    },
    /// A group no longer counts a pod that left its node.
    Uncounted { group: GroupId, node: u32 },
    /// A node was found too full for a fit after pods of this simulation joined it.
    Rejected { fit: usize, node: usize },
}

impl Journal {
    pub(super) fn placed(&mut self, node: usize, state: StateId, pod: u32) {
        self.add(Entry::Placed { node, state, pod });
    }

    pub(super) fn counted(&mut self, group: GroupId, host: usize, state: StateId) {
        self.add(Entry::Counted { group, host, state });
    }

    fn add(&mut self, entry: Entry) {
        if self.is_open {
            self.entries.push(entry);
        }
    }
}

impl Run<'_> {
    /// A node will never take a fit; in a simulation, only for as long as the pods it brought stay.
    pub(super) fn reject_node(&mut self, fit: usize, node: usize) {
        self.memo.nodes[fit].insert(node);
        if !self.nodes.pods[node].is_empty() {
            self.journal.add(Entry::Rejected { fit, node });
        }
    }

    /// Begins a simulation: everything from here on can be taken back.
    pub(crate) fn begin(&mut self) {
        self.journal.is_open = true;
        self.journal.groups = self.topology.groups.len();
    }

    /// Groups that a ladder brought into being count the cluster as it was: takes the pods that moved out of them.
    pub(super) fn uncount_moved(&mut self, first: usize) {
        for id in first..self.topology.groups.len() {
            for (pod, node) in &self.journal.moved {
                let combo = self.problem.intake.pods[*pod as usize].combo;
                let is_counted = !self.problem.pods[*pod as usize].pod.metadata.is_deleting();
                if is_counted && self.ladders.all[combo as usize].counted.contains(&(id as GroupId)) {
                    self.topology
                        .count_on_node(id as GroupId, *node, -1, &self.scene, &self.space);
                }
            }
        }
    }

    /// A pod leaves its node, so nobody counts it there any more. `node` is its position in the scene.
    pub(crate) fn uncount(&mut self, pod: u32, node: u32) {
        self.journal.moved.push((pod, node));
        let entry = self.problem.intake.pods[pod as usize];
        let is_counted = !self.problem.pods[pod as usize].pod.metadata.is_deleting();
        let ladder = &self.ladders.all[entry.combo as usize];
        for group in ladder.counted.iter().filter(|_| is_counted) {
            self.topology.count_on_node(*group, node, -1, &self.scene, &self.space);
            self.journal.add(Entry::Uncounted { group: *group, node });
        }
        for group in &ladder.inverse {
            self.topology.count_on_node(*group, node, -1, &self.scene, &self.space);
            self.journal.add(Entry::Uncounted { group: *group, node });
        }
    }

    /// The existing nodes that got pods in this simulation, once for each pod.
    pub(crate) fn used_nodes(&self) -> impl Iterator<Item = usize> + '_ {
        self.journal.entries.iter().filter_map(|entry| match entry {
            Entry::Placed { node, .. } => Some(*node),
            _ => None,
        })
    }

    /// Takes the simulation back.
    pub(crate) fn roll_back(&mut self, limits: &[Limits]) {
        let problem = self.problem;
        let lanes = problem.lanes.len();
        while let Some(entry) = self.journal.entries.pop() {
            match entry {
                Entry::Placed { node, state, pod } => {
                    let room = &mut self.nodes.room[node * lanes..(node + 1) * lanes];
                    let shape = problem.shape(problem.intake.pods[pod as usize].shape);
                    room.iter_mut().zip(shape).for_each(|(room, asked)| *room += asked);
                    self.nodes.states[node] = state;
                    self.nodes.pods[node].pop();
                }
                Entry::Counted { group, host, state } => self.topology.record(group, host, state, -1, &self.space),
                Entry::Uncounted { group, node } => {
                    self.topology.count_on_node(group, node, 1, &self.scene, &self.space);
                }
                Entry::Rejected { fit, node } => self.memo.nodes[fit].remove(node),
            }
        }
        self.journal.moved.clear();
        self.order.clear();
        if self.topology.groups.len() > self.journal.groups {
            self.topology.truncate(self.journal.groups);
            self.ladders.truncate(self.journal.groups);
        }
        if self.claims.len() > 0 {
            self.claims = Claims::new(problem.index.words, lanes);
            self.memo.forget_claims();
            self.reserved = Reserved::new(problem);
        }
        for (mine, before) in self.limits.iter_mut().zip(limits) {
            mine.restore(before);
        }
        if let Some(devices) = &problem.devices {
            self.devices = Some(Devices::new(devices.allocator.clone()));
        }
        let alternatives = std::mem::take(&mut self.extras.alternatives);
        self.extras = Extras {
            alternatives,
            ..Extras::default()
        };
        self.gone.clear();
        // What failed in this simulation may do in the next.
        self.memo.placed += 1;
    }
}
