//! What a pod asks for at each step of its ladder, compiled.

use model::{
    object::Toleration,
    requirement::{Requirement, Requirements},
    vocabulary::{KeyId, Vocabulary},
};

use crate::{
    ladder::Wishes,
    problem::Problem,
    space::{SetId, Space},
    tolerance::{Tolerance, TolerationsId},
    topology::{GroupId, Owner, Scene, Topology, group::Counts, identity::Kind, label_index::LabelIndex},
};

/// A pod's demands at one step of its ladder.
#[derive(Debug)]
pub(crate) struct Variant {
    /// Requirements on the node, preferences among them.
    pub(crate) set: SetId,
    /// The requirement on the hostname, which states leave out.
    pub(crate) hostname: Option<Requirement>,
    pub(crate) tolerations: TolerationsId,
    /// The groups that bind the pod.
    pub(crate) bonds: Vec<Bond>,
    wishes: Wishes,
}

impl Variant {
    /// The pod's tolerations at this step.
    pub(crate) fn tolerations_list(&self) -> &[Toleration] {
        &self.wishes.tolerations
    }

    /// The pod's conditions on nodes, preferences left out.
    pub(crate) fn strict(&self, vocabulary: &Vocabulary) -> Requirements {
        self.wishes.requirements(false, vocabulary)
    }
}

/// A group that binds a pod.
#[derive(Debug)]
pub(crate) struct Bond {
    pub(crate) group: GroupId,
    /// The pod is itself one of those counted.
    pub(crate) is_self: bool,
    /// The domains the pod could be in, going by conditions and not by preferences; empty for hosts.
    pub(crate) domains: Box<[u64]>,
}

/// The ladder of one combo, as far as it was climbed, and the groups its pods count for.
#[derive(Debug, Default)]
pub(crate) struct Ladder {
    pub(crate) variants: Vec<Variant>,
    is_exhausted: bool,
    /// Groups whose counts a placed pod raises, if its node takes part.
    pub(crate) counted: Vec<GroupId>,
    /// Groups of avoiders that a placed pod belongs to.
    pub(crate) inverse: Vec<GroupId>,
    /// Groups of avoiders whose selector picks the pod.
    avoided: Vec<GroupId>,
}

/// How many groups to match pay for looking combos up by label.
const WORTH_AN_INDEX: usize = 32;

/// The ladders of all combos.
#[derive(Debug)]
pub(crate) struct Ladders {
    pub(crate) all: Vec<Ladder>,
    /// Groups already matched against all combos.
    matched: usize,
    /// The combos by label, once there are many groups to match.
    index: Option<LabelIndex>,
}

/// What compiling needs.
pub(crate) struct Workshop<'a, 'p> {
    pub(crate) problem: &'p Problem,
    pub(crate) scene: &'a Scene<'p>,
    pub(crate) space: &'a mut Space<'p>,
    pub(crate) topology: &'a mut Topology,
    pub(crate) tolerance: &'a mut Tolerance,
}

impl Ladders {
    /// The first step of every combo, in the order pods were met: who comes first names the domains of a group.
    pub(crate) fn new(shop: &mut Workshop<'_, '_>) -> Self {
        let problem = shop.problem;
        let avoiders: Vec<_> = problem
            .bound
            .avoiders
            .iter()
            .zip(&problem.avoider_wishes)
            .map(|((pod, node), wishes)| {
                let owner = Owner {
                    namespace: &pod.metadata.namespace,
                    labels: &pod.metadata.labels,
                };
                (owner, &problem.intake.wishes[*wishes as usize], *node)
            })
            .collect();
        shop.topology.count_avoiders(&avoiders, shop.scene, shop.space);
        let combos = &problem.intake.combos;
        let mut ladders = Self {
            all: combos.iter().map(|_| Ladder::default()).collect(),
            matched: 0,
            index: None,
        };
        let mut owned = Vec::with_capacity(combos.len());
        for (at, combo) in combos.iter().enumerate() {
            let wishes = &problem.intake.wishes[combo.wishes as usize];
            if combo.is_unresolved {
                owned.push(Vec::new());
                continue;
            }
            let owner = Owner {
                namespace: &combo.namespace,
                labels: &combo.labels,
            };
            ladders.all[at].inverse = shop.topology.inverse(owner, wishes, shop.scene, shop.space);
            owned.push(shop.topology.owned(owner, wishes, shop.scene, shop.space));
        }
        ladders.match_new_groups(shop);
        for (at, (combo, owned)) in combos.iter().zip(owned).enumerate() {
            let wishes = problem.intake.wishes[combo.wishes as usize].clone();
            let variant = ladders.compile(at, wishes, owned, shop);
            ladders.all[at].variants.push(variant);
        }
        ladders
    }

    /// Whether a combo has a step, climbing the ladder up to it if need be.
    pub(crate) fn climb(&mut self, combo: usize, step: usize, shop: &mut Workshop<'_, '_>) -> bool {
        let ladder = &mut self.all[combo];
        if step < ladder.variants.len() {
            return true;
        }
        let Some(last) = ladder.variants.last().filter(|_| !ladder.is_exhausted) else {
            return false;
        };
        let mut wishes = last.wishes.clone();
        if !wishes.relax(shop.problem.has_preferred_taints) {
            ladder.is_exhausted = true;
            return false;
        }
        let entry = &shop.problem.intake.combos[combo];
        let owner = Owner {
            namespace: &entry.namespace,
            labels: &entry.labels,
        };
        let owned = shop.topology.owned(owner, &wishes, shop.scene, shop.space);
        self.match_new_groups(shop);
        let variant = self.compile(combo, wishes, owned, shop);
        self.all[combo].variants.push(variant);
        true
    }

    /// Forgets the groups from a position on, and the steps of ladders that know them.
    pub(crate) fn truncate(&mut self, groups: usize) {
        let is_known = |group: &GroupId| (*group as usize) < groups;
        for ladder in &mut self.all {
            ladder.counted.retain(is_known);
            ladder.avoided.retain(is_known);
            let has_new = |variant: &Variant| variant.bonds.iter().any(|bond| !is_known(&bond.group));
            if let Some(step) = ladder.variants.iter().position(has_new) {
                ladder.variants.truncate(step);
                ladder.is_exhausted = false;
            }
        }
        self.matched = groups;
    }

    /// Tells every combo which of the new groups it counts for.
    fn match_new_groups(&mut self, shop: &Workshop<'_, '_>) {
        let combos = &shop.problem.intake.combos;
        let new = self.matched..shop.topology.groups.len();
        if new.len() > WORTH_AN_INDEX && self.index.is_none() {
            self.index = Some(LabelIndex::new(combos.iter().map(|combo| &combo.labels)));
        }
        for id in new {
            let group = &shop.topology.groups[id];
            let asked = self
                .index
                .as_ref()
                .map(|index| index.candidates(group.selector.as_ref()));
            let all = asked.is_none().then_some(0..combos.len());
            let asked = asked.into_iter().flatten().map(|at| at as usize);
            for at in asked.chain(all.into_iter().flatten()) {
                let (combo, ladder) = (&combos[at], &mut self.all[at]);
                if !group.selects(&combo.namespace, &combo.labels) {
                    continue;
                }
                match group.kind {
                    Kind::Inverse => ladder.avoided.push(id as GroupId),
                    _ => ladder.counted.push(id as GroupId),
                }
            }
        }
        self.matched = shop.topology.groups.len();
    }

    fn compile(&self, combo: usize, wishes: Wishes, owned: Vec<GroupId>, shop: &mut Workshop<'_, '_>) -> Variant {
        let vocabulary = shop.space.vocabulary;
        let (requirements, hostname) = split_hostname(wishes.requirements(true, vocabulary));
        let strict = wishes.requirements(false, vocabulary);
        let ladder = &self.all[combo];
        let bonds = owned
            .into_iter()
            .chain(ladder.avoided.iter().copied())
            .map(|group| Bond {
                group,
                is_self: ladder.counted.contains(&group),
                domains: match &shop.topology.groups[group as usize].counts {
                    Counts::Hosts(_) => Box::default(),
                    Counts::Labels(labels) => {
                        let key = shop.space.keys[labels.key].key;
                        shop.space.admitted_by(strict.get(key), labels.key)
                    }
                },
            });
        let bonds = bonds.collect();
        Variant {
            set: shop.space.set(requirements),
            hostname,
            tolerations: shop.tolerance.tolerations(&wishes.tolerations),
            bonds,
            wishes,
        }
    }
}

fn split_hostname(mut requirements: Requirements) -> (Requirements, Option<Requirement>) {
    let hostname = requirements.remove(KeyId::HOSTNAME);
    (requirements, hostname)
}
