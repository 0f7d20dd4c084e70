//! What the counts of the moment leave to a pod: which domains, which hosts.

use model::requirement::{Requirement, Requirements};

use crate::{
    bitmap::{bits, intersects, is_empty, positions},
    space::{Space, StateId, Step},
    topology::{
        GroupId, Topology,
        group::{Counts, Group, HostCounts, LabelCounts},
        identity::Kind,
    },
    variant::{Bond, Variant},
};

/// What the counts of the moment leave to a pod.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    domains: Vec<DomainRule>,
    words: Vec<u64>,
    pub(crate) hosts: Vec<HostRule>,
    /// A host without pods is acceptable.
    pub(crate) is_fresh_host_fine: bool,
    /// Some host with pods may be acceptable.
    pub(crate) is_used_host_fine: bool,
    /// The combined choice per key while a state is narrowed.
    chosen: Vec<u64>,
}

/// The domains of a label that one group leaves.
#[derive(Debug)]
struct DomainRule {
    key: usize,
    group: GroupId,
    choice: Choice,
    /// Where its domains are in [`Rules::words`].
    start: usize,
    len: usize,
}

/// How many of the domains left are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    /// All of them.
    All,
    /// The one with the fewest pods.
    Emptiest,
    /// Any one, the first by name: somebody has to begin.
    First,
}

/// A set of hosts that is open or closed to the pod.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HostRule {
    pub(crate) group: GroupId,
    /// Which of the group's two thresholds.
    pub(crate) threshold: usize,
    /// The hosts above the threshold are the only open ones; else they are the closed ones.
    pub(crate) is_open: bool,
}

impl Rules {
    /// Works out what is left; false when no host, used or fresh, can satisfy the pod now.
    pub(crate) fn evaluate(&mut self, variant: &Variant, topology: &Topology, hosts: usize) -> bool {
        self.domains.clear();
        self.words.clear();
        self.hosts.clear();
        self.is_fresh_host_fine = true;
        self.is_used_host_fine = true;
        for bond in &variant.bonds {
            let group = &topology.groups[bond.group as usize];
            match &group.counts {
                Counts::Hosts(counts) => self.host_rule(bond, group, counts, variant, hosts),
                Counts::Labels(counts) => {
                    if !self.domain_rule(bond, group, counts) {
                        return false;
                    }
                }
            }
        }
        self.is_fresh_host_fine || self.is_used_host_fine
    }

    fn host_rule(&mut self, bond: &Bond, group: &Group, counts: &HostCounts, variant: &Variant, hosts: usize) {
        let rule = match group.kind {
            Kind::Spread => {
                self.is_fresh_host_fine &= i32::from(bond.is_self) <= group.max_skew;
                HostRule {
                    group: bond.group,
                    threshold: usize::from(!bond.is_self),
                    is_open: false,
                }
            }
            Kind::AntiAffinity | Kind::Inverse => HostRule {
                group: bond.group,
                threshold: 0,
                is_open: false,
            },
            // Nobody is there yet: the pod may be the first, anywhere.
            Kind::Affinity if bond.is_self && is_first_host(counts, variant) => return,
            Kind::Affinity => {
                self.is_fresh_host_fine = false;
                HostRule {
                    group: bond.group,
                    threshold: 0,
                    is_open: true,
                }
            }
        };
        let above = counts.len[rule.threshold];
        self.is_used_host_fine &= if rule.is_open { above > 0 } else { above < hosts };
        self.hosts.push(rule);
    }

    fn domain_rule(&mut self, bond: &Bond, group: &Group, counts: &LabelCounts) -> bool {
        let start = self.words.len();
        let choice = match group.kind {
            Kind::Spread => {
                self.within_skew(bond, group, counts);
                Choice::Emptiest
            }
            Kind::AntiAffinity | Kind::Inverse => {
                let empty = counts.known.iter().zip(&counts.occupied).zip(&bond.domains);
                self.words
                    .extend(empty.map(|((known, occupied), pod)| known & !occupied & pod));
                Choice::All
            }
            Kind::Affinity if bond.is_self && Group::is_first(counts, &bond.domains) => {
                let known = counts.known.iter().zip(&bond.domains);
                self.words.extend(known.map(|(known, pod)| known & pod));
                Choice::First
            }
            Kind::Affinity => {
                let occupied = counts.occupied.iter().zip(&bond.domains);
                self.words.extend(occupied.map(|(occupied, pod)| occupied & pod));
                Choice::All
            }
        };
        self.domains.push(DomainRule {
            key: counts.key,
            group: bond.group,
            choice,
            start,
            len: self.words.len() - start,
        });
        !is_empty(&self.words[start..])
    }

    /// The domains in which one more pod keeps the difference to the least within bounds.
    fn within_skew(&mut self, bond: &Bond, group: &Group, counts: &LabelCounts) {
        let (least, own) = (group.least(counts, &bond.domains), i32::from(bond.is_self));
        for (at, known) in counts.known.iter().enumerate() {
            let mut valid = 0;
            for bit in bits(*known) {
                let count = counts.counts[at * 64 + bit];
                if (count + own).wrapping_sub(least) <= group.max_skew {
                    valid |= 1 << bit;
                }
            }
            self.words.push(valid);
        }
    }

    /// The state once the rules picked their domains; none when they cannot, as things are.
    pub(crate) fn narrow(&mut self, state: StateId, topology: &Topology, space: &mut Space<'_>) -> Option<StateId> {
        let mut narrowed = state;
        for at in 0..self.domains.len() {
            let key = self.domains[at].key;
            // All rules see the state as it came; those on one key are combined.
            if self.domains[..at].iter().any(|rule| rule.key == key) {
                continue;
            }
            self.chosen.clear();
            self.chosen.resize(space.keys[key].words, u64::MAX);
            for rule in self.domains[at..].iter().filter(|rule| rule.key == key) {
                let left = &self.words[rule.start..rule.start + rule.len];
                if !rule.choose(left, space.admitted(state, key), topology, &mut self.chosen) {
                    return None;
                }
            }
            match space.narrow(narrowed, key, &self.chosen) {
                Step::To(to) => narrowed = to,
                Step::Conflict | Step::Undefined => return None,
            }
        }
        Some(narrowed)
    }

    /// What the rules picked for a state, key by key, for messages.
    pub(crate) fn picked(&mut self, state: StateId, topology: &Topology, space: &Space<'_>) -> Requirements {
        let mut picked = Requirements::default();
        for at in 0..self.domains.len() {
            let key = self.domains[at].key;
            self.chosen.clear();
            self.chosen.resize(space.keys[key].words, u64::MAX);
            let rule = &self.domains[at];
            let left = &self.words[rule.start..rule.start + rule.len];
            rule.choose(left, space.admitted(state, key), topology, &mut self.chosen);
            let entry = &space.keys[key];
            let values = positions(&self.chosen).filter_map(|ordinal| entry.values.get(ordinal).copied());
            picked.add(Requirement::one_of(entry.key, values), space.vocabulary);
        }
        for requirement in space.state(state).requirements.iter() {
            if picked.defines(requirement.key()) {
                picked.add(requirement.clone(), space.vocabulary);
            }
        }
        picked
    }

    /// Whether a group of hosts leaves no new host.
    pub(crate) fn closes_new_hosts(&self, group: GroupId) -> bool {
        self.hosts.iter().any(|rule| rule.group == group && rule.is_open) || !self.is_fresh_host_fine
    }

    /// The domains a group leaves; none for hosts, and for groups after one that left nothing at all.
    pub(crate) fn left(&self, group: GroupId) -> Option<&[u64]> {
        let rule = self.domains.iter().find(|rule| rule.group == group)?;
        Some(&self.words[rule.start..rule.start + rule.len])
    }

    /// The first group that leaves a state nothing, for messages.
    pub(crate) fn blocking(&self, state: StateId, space: &Space<'_>) -> Option<GroupId> {
        let blocks = |rule: &&DomainRule| {
            let left = &self.words[rule.start..rule.start + rule.len];
            rule.choice != Choice::First && !intersects(left, space.admitted(state, rule.key))
        };
        self.domains.iter().find(blocks).map(|rule| rule.group)
    }
}

impl DomainRule {
    /// Keeps in `chosen` what this rule takes of the domains left on a node; false when nothing is left.
    fn choose(&self, left: &[u64], node: &[u64], topology: &Topology, chosen: &mut [u64]) -> bool {
        let on_node = || left.iter().zip(node).map(|(left, node)| left & node);
        let only = match self.choice {
            Choice::All => {
                let mut any = 0;
                for (chosen, word) in chosen.iter_mut().zip(on_node()) {
                    any |= word;
                    *chosen &= word;
                }
                return any != 0;
            }
            Choice::Emptiest => match &topology.groups[self.group as usize].counts {
                Counts::Labels(counts) => Group::lowest(counts, on_node()),
                Counts::Hosts(_) => None,
            },
            // Where the node admits none, upstream still proposes a domain, which then conflicts with the node.
            Choice::First => first(on_node()).or_else(|| first(left.iter().copied())),
        };
        let Some(only) = only else { return false };
        for (at, chosen) in chosen.iter_mut().enumerate() {
            *chosen &= if at == only / 64 { 1 << (only % 64) } else { 0 };
        }
        true
    }
}

fn first(words: impl Iterator<Item = u64>) -> Option<usize> {
    words
        .enumerate()
        .find(|(_, word)| *word != 0)
        .map(|(at, word)| at * 64 + word.trailing_zeros() as usize)
}

/// Whether no pod of the group is on a host the pod could be on.
fn is_first_host(counts: &HostCounts, variant: &Variant) -> bool {
    // A pod bound to hosts by name can always be first elsewhere; upstream refuses such pods unless they are moving.
    variant.hostname.is_some() || counts.len[0] == 0 && counts.elsewhere.iter().all(|(_, count)| *count == 0)
}
