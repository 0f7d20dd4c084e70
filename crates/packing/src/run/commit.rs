//! What changes once a pod has a place.

use super::{
    Run,
    attempt::Candidate,
    probe::{Opening, attachments},
};
use crate::{intake::PLAIN, space::StateId};

impl Run<'_> {
    pub(super) fn add_to_node(&mut self, candidate: Candidate, node: usize, target: StateId) {
        let problem = self.problem;
        let lanes = problem.lanes.len();
        let room = &mut self.nodes.room[node * lanes..(node + 1) * lanes];
        let shape = problem.shape(candidate.entry.shape);
        room.iter_mut().zip(shape).for_each(|(room, asked)| *room -= asked);
        self.journal.placed(node, self.nodes.states[node], candidate.pod);
        self.nodes.states[node] = target;
        self.nodes.pods[node].push(candidate.pod);
        self.order.push(node as u32);
        self.record(candidate, node, target, problem.node_taints[node]);
        self.take_devices(None, Some(node));
        if candidate.entry.extra != PLAIN {
            let extra = &problem.intake.extras[candidate.entry.extra as usize];
            if !extra.ports.is_empty() {
                let ports = self.extras.node_ports.entry(node).or_default();
                ports.push((extra.key.clone(), extra.ports.clone()));
            }
            if let Some(volumes) = attachments(extra).filter(|volumes| !volumes.is_empty()) {
                let usage = self.extras.node_volumes.entry(node);
                let usage = usage.or_insert_with(|| problem.nodes[node].volumes.clone());
                usage.add(extra.key.clone(), volumes.clone());
            }
        }
    }

    pub(super) fn add_to_claim(&mut self, candidate: Candidate, claim: usize, target: StateId) {
        let problem = self.problem;
        let state = self.space.state(target);
        let id = Self::claim_id(claim);
        let chosen = self.reserved.choose(id, state, &self.survivors, &problem.index);
        self.reserved.hold(id, chosen.unwrap_or_default());
        let shape = problem.shape(candidate.entry.shape);
        self.claims.add(claim, candidate.pod, shape, target, &self.survivors);
        self.order.push(self.claim_host(claim) as u32);
        let taints = problem.templates[self.claims.templates[claim] as usize].taints;
        self.record(candidate, self.claim_host(claim), target, taints);
        if candidate.entry.extra != PLAIN {
            let rows = self.claims.mask(claim);
            self.take_devices(Some(&rows), None);
        }
        if candidate.entry.extra != PLAIN {
            let extra = &problem.intake.extras[candidate.entry.extra as usize];
            if !extra.ports.is_empty() {
                let ports = self.extras.claim_ports.entry(claim).or_default();
                ports.push((extra.key.clone(), extra.ports.clone()));
            }
            if let Some(volumes) = attachments(extra) {
                self.extras.claim_volumes.entry(claim).or_default().extend(volumes);
            }
        }
    }

    pub(super) fn open_claim(&mut self, candidate: Candidate, template: usize, opening: Opening) {
        self.work.opened += 1;
        let claim = self.claims.open(template as u32, opening.target);
        self.claims.is_relaxed[claim] = opening.is_relaxed;
        self.reserved.hold(Self::claim_id(claim), opening.reservations);
        let entry = &self.problem.templates[template];
        self.limits[template].take(&self.survivors, entry, &self.problem.index);
        self.add_to_claim(candidate, claim, opening.target);
    }

    /// Counts the pod in every group that selects it and whose nodes include this one.
    fn record(&mut self, candidate: Candidate, host: usize, state: StateId, taints: u32) {
        let ladder = &self.ladders.all[candidate.entry.combo as usize];
        let taints = (taints, &self.tolerance.taints[taints as usize][..]);
        for group in &ladder.counted {
            if self.topology.counts_on(*group, state, taints, &self.space) {
                self.topology.record(*group, host, state, 1, &self.space);
                self.journal.counted(*group, host, state);
            }
        }
        for group in &ladder.inverse {
            self.topology.record(*group, host, state, 1, &self.space);
            self.journal.counted(*group, host, state);
        }
    }
}
