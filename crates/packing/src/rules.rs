//! What the counts of the moment leave to a pod: which domains, which hosts.

use model::requirement::{Requirement, Requirements};

use crate::{
    bitmap::{bits, has, intersects, is_empty, positions, put},
    space::{Space, State, StateId, Step},
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
    /// One domain of them.
    only: Vec<u64>,
    /// Domains to prefer among equals, by key; only a replay has any.
    pub(crate) hints: Vec<(usize, usize)>,
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
    /// Any one: somebody has to begin.
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
    ///
    /// Of domains that are equally good upstream takes any, and another the next time; here the first is taken that all
    /// rules on the key agree on and that leaves something to launch.
    pub(crate) fn narrow(
        &mut self,
        state: StateId,
        topology: &Topology,
        space: &mut Space<'_>,
        is_usable: impl Fn(&State) -> bool,
    ) -> Option<StateId> {
        let mut narrowed = state;
        for at in 0..self.domains.len() {
            let key = self.domains[at].key;
            // All rules see the state as it came; those on one key are combined.
            if self.domains[..at].iter().any(|rule| rule.key == key) {
                continue;
            }
            let is_one = self.combine(at, state, topology, space)?;
            narrowed = if is_one && !is_empty(&self.chosen) {
                self.pick(narrowed, key, space, &is_usable)?
            } else {
                match space.narrow(narrowed, key, &self.chosen) {
                    Step::To(to) => to,
                    Step::Conflict | Step::Undefined => return None,
                }
            };
        }
        Some(narrowed)
    }

    /// Leaves in `chosen` what all rules on a key allow a node, ties included, and says whether one is to be picked.
    fn combine(&mut self, first: usize, state: StateId, topology: &Topology, space: &Space<'_>) -> Option<bool> {
        let key = self.domains[first].key;
        self.chosen.clear();
        self.chosen.resize(space.keys[key].words, u64::MAX);
        let mut is_one = false;
        for rule in self.domains[first..].iter().filter(|rule| rule.key == key) {
            let left = &self.words[rule.start..rule.start + rule.len];
            if !rule.keep(left, space.admitted(state, key), topology, &mut self.chosen) {
                return None;
            }
            is_one |= rule.choice != Choice::All;
        }
        Some(is_one)
    }

    fn pick(
        &mut self,
        state: StateId,
        key: usize,
        space: &mut Space<'_>,
        is_usable: &impl Fn(&State) -> bool,
    ) -> Option<StateId> {
        if let Some(hinted) = self.pick_hinted(state, key, space) {
            return Some(hinted);
        }
        let mut first = None;
        let mut only = std::mem::take(&mut self.only);
        only.clear();
        only.resize(self.chosen.len(), 0);
        for domain in positions(&self.chosen) {
            only[domain / 64] = 1 << (domain % 64);
            let step = space.narrow(state, key, &only);
            only[domain / 64] = 0;
            if let Step::To(to) = step {
                if is_usable(space.state(to)) {
                    first = Some(to);
                    break;
                }
                first = first.or(Some(to));
            }
        }
        self.only = only;
        first
    }

    /// The state with what a replay says upstream picked; a first pod may open two domains at once there.
    fn pick_hinted(&self, state: StateId, key: usize, space: &mut Space<'_>) -> Option<StateId> {
        if self.hints.is_empty() {
            return None;
        }
        let mut hinted = vec![0; self.chosen.len()];
        let hints = self.hints.iter().filter(|(hinted, _)| *hinted == key);
        hints
            .filter(|(_, domain)| has(&self.chosen, *domain))
            .for_each(|(_, domain)| put(&mut hinted, *domain));
        match space.narrow(state, key, &hinted) {
            Step::To(to) if !is_empty(&hinted) => Some(to),
            _ => None,
        }
    }

    /// Whether a domain is chosen among several, which upstream does anew each time.
    pub(crate) fn has_choice(&self) -> bool {
        self.domains.iter().any(|rule| rule.choice != Choice::All)
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
            rule.keep(left, space.admitted(state, key), topology, &mut self.chosen);
            if rule.choice != Choice::All {
                let only = first(self.chosen.iter().copied());
                self.chosen.fill(0);
                if let Some(only) = only {
                    put(&mut self.chosen, only);
                }
            }
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
            !intersects(left, space.admitted(state, rule.key)) && !rule.begins_elsewhere(left)
        };
        self.domains.iter().find(blocks).map(|rule| rule.group)
    }
}

impl DomainRule {
    /// A first pod begins in a domain that the node cannot have, and of the two nothing is left. That passes where the
    /// node is without the label, too.
    fn begins_elsewhere(&self, left: &[u64]) -> bool {
        self.choice == Choice::First && !is_empty(left)
    }

    /// Keeps in `chosen` what this rule may take of the domains left on a node; false when nothing is left.
    fn keep(&self, left: &[u64], node: &[u64], topology: &Topology, chosen: &mut [u64]) -> bool {
        let on_node = || left.iter().zip(node).map(|(left, node)| left & node);
        if on_node().all(|word| word == 0) {
            chosen.fill(0);
            return self.begins_elsewhere(left);
        }
        match (self.choice, &topology.groups[self.group as usize].counts) {
            (Choice::Emptiest, Counts::Labels(counts)) => Group::keep_emptiest(counts, on_node, chosen),
            _ => chosen
                .iter_mut()
                .zip(on_node())
                .for_each(|(chosen, word)| *chosen &= word),
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
