//! What is packed? Pods that look alike to a node, whichever class they come from.

use std::collections::BTreeMap;

use super::{
    problem::{Amounts, Problem},
    zone::{Part, parts},
};

/// Pods a packing pass cannot tell apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item {
    /// How many.
    pub count: u32,
    /// What each asks for.
    pub requests: Amounts,
    /// Position in the list of [`Kind`]s: where they may go.
    pub kind: usize,
    /// Groups they count in.
    pub groups: Vec<usize>,
    /// Marks they carry.
    pub carries: u64,
    /// Marks they stay away from.
    pub repels: u64,
    /// Where they come from: class and how many, in the order they are given out.
    pub members: Vec<(usize, u32)>,
}

/// Which offers and rooms: a reach, or its part in one zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Kind {
    /// Position in [`Problem::reaches`].
    pub reach: usize,
    /// The zone, when it matters.
    pub zone: Option<usize>,
}

impl Kind {
    /// Whether an offer is one of them.
    pub(crate) fn has_offer(&self, problem: &Problem, offer: usize) -> bool {
        self.is_in(problem.offers[offer].zone) && problem.reaches[self.reach].offers.contains(position(offer))
    }

    /// Whether a room is one of them.
    pub(crate) fn has_room(&self, problem: &Problem, room: usize) -> bool {
        self.is_in(problem.rooms[room].zone) && problem.reaches[self.reach].rooms.contains(position(room))
    }

    fn is_in(&self, zone: usize) -> bool {
        self.zone.is_none_or(|mine| mine == zone)
    }
}

/// A position as bit sets count them.
pub(crate) fn position(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Look<'a> {
    requests: std::cmp::Reverse<Amounts>,
    kind: usize,
    groups: &'a [usize],
    carries: u64,
    repels: u64,
}

/// The pods of a problem as items, the largest requests first, and the kinds they are of.
pub(crate) fn items(problem: &Problem) -> (Vec<Item>, Vec<Kind>) {
    let parts = parts(problem);
    let kinds = kinds(problem, &parts);
    let mut merged: BTreeMap<Look, Vec<(usize, u32)>> = BTreeMap::new();
    for part in &parts {
        let class = &problem.classes[part.class];
        let kind = Kind {
            reach: class.reach,
            zone: part.zone,
        };
        let look = Look {
            requests: std::cmp::Reverse(class.requests),
            kind: kinds.binary_search(&kind).unwrap_or_default(),
            groups: &class.groups,
            carries: class.carries,
            repels: class.repels,
        };
        merged.entry(look).or_default().push((part.class, part.count));
    }
    let item = |(look, members): (Look, Vec<(usize, u32)>)| Item {
        count: members.iter().map(|(_, count)| count).sum(),
        requests: look.requests.0,
        kind: look.kind,
        groups: look.groups.to_vec(),
        carries: look.carries,
        repels: look.repels,
        members,
    };
    (merged.into_iter().map(item).collect(), kinds)
}

fn kinds(problem: &Problem, parts: &[Part]) -> Vec<Kind> {
    let of = |part: &Part| Kind {
        reach: problem.classes[part.class].reach,
        zone: part.zone,
    };
    let mut kinds: Vec<Kind> = parts.iter().map(of).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}
