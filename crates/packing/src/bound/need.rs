//! Which pods does the bound count? All of them, in as few kinds as the proof can tell apart.

use std::collections::BTreeMap;

use crate::cost::{Amounts, Class, Problem};

/// Pods the bound cannot tell apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Need {
    /// What each asks for.
    pub requests: Amounts,
    /// Position in the problem's reaches.
    pub reach: usize,
    /// At most so many per node, whatever fits.
    pub per_node: u32,
    /// The group whose limit they share with others.
    pub group: Option<usize>,
    /// Classes and how many pods of each.
    pub classes: Vec<(usize, u32)>,
}

impl Need {
    /// How many pods.
    pub(super) fn count(&self) -> u64 {
        self.classes.iter().map(|(_, count)| u64::from(*count)).sum()
    }
}

/// Reach, requests, most per node, group.
type Look = (usize, Amounts, u32, Option<usize>);

/// The pods of a problem.
pub(super) fn needs(problem: &Problem) -> Vec<Need> {
    let mut merged: BTreeMap<Look, Vec<(usize, u32)>> = BTreeMap::new();
    for (at, class) in problem.classes.iter().enumerate().filter(|(_, class)| class.count > 0) {
        let key = (
            class.reach,
            class.requests,
            per_node(problem, class),
            class.groups.first().copied(),
        );
        merged.entry(key).or_default().push((at, class.count));
    }
    let need = |((reach, requests, per_node, group), classes)| Need {
        requests,
        reach,
        per_node,
        group,
        classes,
    };
    merged.into_iter().map(need).collect()
}

fn per_node(problem: &Problem, class: &Class) -> u32 {
    let alone = if class.carries & class.repels == 0 { u32::MAX } else { 1 };
    class
        .groups
        .iter()
        .map(|&group| problem.groups[group].max)
        .fold(alone, u32::min)
}
