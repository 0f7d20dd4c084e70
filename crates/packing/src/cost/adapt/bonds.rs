//! What ties pods to each other, as far as the picture can show it.
//!
//! - on a host, evenness and distance among the same pods become a group of at most so many per node;
//! - distance between different pods becomes marks that some carry and others repel;
//! - evenness over zones becomes a spread, nearness in a zone becomes being together;
//! - everything else cannot be shown.

use std::collections::{BTreeMap, BTreeSet};

use model::vocabulary::{KeyId, ValueId};

use super::ClassKey;
use crate::{
    cost::{Group, Problem, Spread, Zones},
    run::Run,
    topology::{
        GroupId,
        group::{self, Counts},
        identity::Kind,
    },
};

/// Marks are bits of a word.
const MARKS: usize = 64;

/// Which classes each group of the solver binds, and which it counts.
#[derive(Debug, Default)]
pub(super) struct Bonds {
    bound: BTreeMap<GroupId, BTreeSet<usize>>,
    counted: BTreeMap<GroupId, BTreeSet<usize>>,
    /// Classes that ask for a host by name.
    named: Vec<usize>,
}

impl Bonds {
    /// What binds pods that give nothing up.
    pub(super) fn of_first_steps(run: &Run<'_>, keys: &[ClassKey]) -> Self {
        Self::new(run, keys, |_| 0)
    }

    /// What binds pods that give up all they can.
    pub(super) fn of_last_steps(run: &Run<'_>, keys: &[ClassKey]) -> Self {
        Self::new(run, keys, |steps| steps - 1)
    }

    fn new(run: &Run<'_>, keys: &[ClassKey], step: impl Fn(usize) -> usize) -> Self {
        let mut bonds = Self::default();
        for (class, (combo, _)) in keys.iter().enumerate() {
            let ladder = &run.ladders.all[*combo as usize];
            let step = step(ladder.variants.len().max(1));
            let Some(variant) = ladder.variants.get(step) else {
                continue;
            };
            if variant.hostname.is_some() {
                bonds.named.push(class);
            }
            for bond in &variant.bonds {
                bonds.bound.entry(bond.group).or_default().insert(class);
            }
            for group in ladder.counted.iter().chain(&ladder.inverse) {
                bonds.counted.entry(*group).or_default().insert(class);
            }
        }
        bonds
    }

    /// Draws what can be drawn, and marks the classes of which something cannot.
    pub(super) fn draw(&self, run: &Run<'_>, zones: &[Option<ValueId>], problem: &mut Problem) {
        for &class in &self.named {
            problem.classes[class].is_unsupported = true;
        }
        let mut marks = 0;
        for (&group, bound) in &self.bound {
            let it = &run.topology.groups[group as usize];
            match &it.counts {
                Counts::Hosts(_) => self.draw_hosts(group, it, &mut marks, problem),
                Counts::Labels(labels) if run.space.keys[labels.key].key == KeyId::ZONE => {
                    self.draw_zones(run, group, zones, problem);
                }
                Counts::Labels(_) => leave_out(problem, bound),
            }
        }
    }

    /// Draws only how many pods share a node: less would be wrong for no plan.
    pub(super) fn draw_per_node(&self, run: &Run<'_>, problem: &mut Problem) {
        for &group in self.bound.keys() {
            let it = &run.topology.groups[group as usize];
            let is_avoidance = it.kind != Kind::Affinity;
            if matches!(it.counts, Counts::Hosts(_)) && is_avoidance {
                add_group(problem, self.both(group), most(it));
            }
        }
    }

    fn draw_hosts(&self, group: GroupId, it: &group::Group, marks: &mut usize, problem: &mut Problem) {
        let (bound, counted) = (of(&self.bound, group), of(&self.counted, group));
        match it.kind {
            Kind::Affinity => leave_out(problem, &bound),
            Kind::Spread => add_group(problem, self.both(group), most(it)),
            Kind::AntiAffinity | Kind::Inverse if bound == counted => add_group(problem, bound, 1),
            Kind::AntiAffinity | Kind::Inverse if counted.is_empty() => {}
            Kind::AntiAffinity | Kind::Inverse if *marks == MARKS => leave_out(problem, &bound),
            Kind::AntiAffinity | Kind::Inverse => {
                let mark = 1 << *marks;
                *marks += 1;
                for class in bound {
                    problem.classes[class].repels |= mark;
                }
                for class in counted {
                    problem.classes[class].carries |= mark;
                }
            }
        }
    }

    fn draw_zones(&self, run: &Run<'_>, group: GroupId, zones: &[Option<ValueId>], problem: &mut Problem) {
        let it = &run.topology.groups[group as usize];
        let Counts::Labels(labels) = &it.counts else { return };
        let bound = of(&self.bound, group);
        let counted = of(&self.counted, group);
        let key = &run.space.keys[labels.key];
        let ordinals = zones.iter().map(|zone| zone.and_then(|zone| key.ordinal(zone)));
        let placed: Vec<u32> = ordinals
            .map(|ordinal| ordinal.map_or(0, |ordinal| u32::try_from(labels.counts[ordinal]).unwrap_or(0)))
            .collect();
        let is_occupied = placed.iter().any(|count| *count > 0);
        let zones = match it.kind {
            Kind::Spread if it.min_domains.is_none() => Zones::Spread(problem.spreads.len()),
            Kind::Affinity if !is_occupied => Zones::Together(group as usize),
            _ => return leave_out(problem, &bound),
        };
        if it.kind == Kind::Spread {
            let max_skew = u32::try_from(it.max_skew).unwrap_or(0);
            problem.spreads.push(Spread { max_skew, placed });
        }
        for class in bound {
            let place = &mut problem.classes[class];
            // Bound but not counted: where others are decides, and that is not known yet.
            if counted.contains(&class) && place.zones == Zones::Any {
                place.zones = zones;
            } else {
                place.is_unsupported = true;
            }
        }
    }

    /// The classes that a group both binds and counts.
    fn both(&self, group: GroupId) -> BTreeSet<usize> {
        let counted = of(&self.counted, group);
        of(&self.bound, group).intersection(&counted).copied().collect()
    }
}

fn of(table: &BTreeMap<GroupId, BTreeSet<usize>>, group: GroupId) -> BTreeSet<usize> {
    table.get(&group).cloned().unwrap_or_default()
}

/// How many pods of a group a node to be launched takes.
fn most(group: &group::Group) -> u32 {
    match group.kind {
        Kind::Spread => u32::try_from(group.max_skew).unwrap_or(0),
        _ => 1,
    }
}

fn add_group(problem: &mut Problem, classes: BTreeSet<usize>, max: u32) {
    let group = problem.groups.len();
    problem.groups.push(Group { max });
    for class in classes {
        problem.classes[class].groups.push(group);
    }
}

fn leave_out(problem: &mut Problem, classes: &BTreeSet<usize>) {
    for &class in classes {
        problem.classes[class].is_unsupported = true;
    }
}
