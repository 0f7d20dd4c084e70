//! What rules about other pods leave of a NodePool's instance types.

use model::{object::Pod, requirement::Requirements};

use super::{
    constraint::{Constraint, TopologyKind},
    funnel::{Funnels, Walk},
};
use crate::{
    bitmap::{intersects, positions},
    refusal::counts,
    space::{Side, StateId, Step},
    topology::{
        GroupId,
        group::{Counts, Group},
        identity::Kind,
    },
};

impl Funnels<'_, '_> {
    /// One stage per rule about other pods; returns what the claim is once domains are picked.
    pub(super) fn topology_stages(&mut self, claim: Requirements, template: usize, walk: &mut Walk) -> Requirements {
        let groups: Vec<(GroupId, bool)> = self
            .variant()
            .bonds
            .iter()
            .map(|bond| (bond.group, bond.is_self))
            .collect();
        if groups.is_empty() {
            return claim;
        }
        let vocabulary = &self.run.problem.vocabulary;
        let state = self.run.space.intern(claim.clone(), Side::Claim(template as u32));
        let entry = self.run.problem.intake.pods[self.pod as usize];
        let hosts = self.run.nodes.states.len() + self.run.claims.len();
        let variant = &self.run.ladders.all[entry.combo as usize].variants[self.refused.step];
        let is_open = self.run.rules.evaluate(variant, &self.run.topology, hosts);
        for (group, is_self) in groups {
            self.topology_stage(group, is_self, state, walk);
        }
        let run = &mut *self.run;
        let target = run.narrow(state).filter(|_| is_open);
        let Some(target) = target else {
            if !walk.types.is_empty() {
                let text = "Pod spec.topologySpreadConstraints and spec.affinity: no domain suits all".to_owned();
                walk.gate(Constraint::TopologyTogether, text, false);
            }
            return claim;
        };
        let picked = run.space.state(target).requirements.clone();
        walk.keep_on(|entry| entry.requirements.intersects(&picked, vocabulary));
        picked
    }

    fn topology_stage(&mut self, id: GroupId, is_self: bool, state: StateId, walk: &mut Walk) {
        let run = &mut *self.run;
        let vocabulary = &run.problem.vocabulary;
        let narrowed = match &run.topology.groups[id as usize].counts {
            Counts::Hosts(_) => {
                let is_closed = !run.rules.is_fresh_host_fine && run.rules.closes_new_hosts(id);
                (!is_closed).then_some(state)
            }
            Counts::Labels(labels) => {
                let key = labels.key;
                let left = run.rules.left(id).map(<[u64]>::to_vec);
                let left = left.filter(|left| intersects(left, run.space.admitted(state, key)));
                left.and_then(|left| match run.space.narrow(state, key, &left) {
                    Step::To(narrowed) => Some(narrowed),
                    Step::Conflict | Step::Undefined => None,
                })
            }
        };
        let (constraint, text) = self.topology_text(id, is_self, state);
        let space = &self.run.space;
        let claim = narrowed.map(|state| &space.state(state).requirements);
        walk.keep(constraint, text, |entry| {
            claim.is_some_and(|claim| entry.requirements.intersects(claim, vocabulary))
        });
    }

    fn topology_text(&self, id: GroupId, is_self: bool, state: StateId) -> (Constraint, String) {
        let group = &self.run.topology.groups[id as usize];
        let key = self
            .run
            .problem
            .vocabulary
            .key_name(self.run.topology.keys[id as usize]);
        let at = position(self.pod_object(), group, key);
        let (kind, field) = match group.kind {
            Kind::Spread => (TopologyKind::Spread, "Pod spec.topologySpreadConstraints"),
            Kind::Affinity => (TopologyKind::Affinity, "Pod spec.affinity.podAffinity"),
            Kind::AntiAffinity => (TopologyKind::AntiAffinity, "Pod spec.affinity.podAntiAffinity"),
            Kind::Inverse => (TopologyKind::Avoided, "podAntiAffinity of other pods"),
        };
        let place = at.map_or_else(String::new, |at| format!("[{at}]"));
        let skew = match kind {
            TopologyKind::Spread => format!(" maxSkew {}", group.max_skew),
            _ => String::new(),
        };
        let text = format!("{field}{place} {key}{skew}: pods are {{{}}}", counts(self.run, id));
        let needed_skew = (kind == TopologyKind::Spread)
            .then(|| self.needed_skew(id, is_self, state))
            .flatten();
        let constraint = Constraint::Topology {
            kind,
            key: key.to_owned(),
            at,
            needed_skew,
            open: self.open_domains(id),
        };
        (constraint, text)
    }

    fn open_domains(&self, id: GroupId) -> Vec<String> {
        let Counts::Labels(labels) = &self.run.topology.groups[id as usize].counts else {
            return Vec::new();
        };
        let entry = &self.run.space.keys[labels.key];
        let left = self.run.rules.left(id).unwrap_or_default();
        let values = positions(left).filter_map(|ordinal| entry.values.get(ordinal));
        let name = |value| self.run.problem.vocabulary.value_name(entry.key, value).to_owned();
        values.map(|value| name(*value)).collect()
    }

    /// The `maxSkew` that opens the emptiest domain the claim admits.
    fn needed_skew(&self, id: GroupId, is_self: bool, state: StateId) -> Option<i32> {
        let group = &self.run.topology.groups[id as usize];
        let Counts::Labels(labels) = &group.counts else {
            return None;
        };
        let bond = self.variant().bonds.iter().find(|bond| bond.group == id)?;
        let admitted = self.run.space.admitted(state, labels.key);
        let open: Vec<u64> = admitted.iter().zip(&labels.known).map(|(a, b)| a & b).collect();
        let emptiest = positions(&open).map(|domain| labels.counts[domain]).min()?;
        Some(emptiest + i32::from(is_self) - group.least(labels, &bond.domains))
    }
}

/// Which of the pod's constraints a group counts for.
fn position(pod: &Pod, group: &Group, key: &str) -> Option<usize> {
    let affinity = pod.spec.affinity.as_ref();
    let terms = match group.kind {
        Kind::Spread => {
            let spreads = &pod.spec.topology_spread_constraints;
            return spreads
                .iter()
                .position(|it| *it.topology_key == *key && it.max_skew == group.max_skew);
        }
        Kind::Affinity => affinity.and_then(|it| it.pod_affinity.as_ref()),
        Kind::AntiAffinity => affinity.and_then(|it| it.pod_anti_affinity.as_ref()),
        Kind::Inverse => None,
    };
    let terms = &terms?.required;
    let exact = terms
        .iter()
        .position(|it| *it.topology_key == *key && it.label_selector == group.selector);
    exact.or_else(|| terms.iter().position(|it| *it.topology_key == *key))
}
