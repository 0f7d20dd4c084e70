//! What goes on nodes there are already? They are paid for, so they are filled first, the smallest room before others.

use std::collections::BTreeMap;

use model::bitset::BitSet;

use super::{
    budget::Budget,
    item::position,
    knapsack::{Filling, Knapsack, Lane, Start},
    market::signature,
    problem::CPU,
    ratio_greedy::Left,
    space::Space,
};

/// Fills free room with the most valuable pods; tells what goes where.
pub(crate) fn use_rooms(space: &Space, values: &[f64], left: &mut Left, budget: &mut Budget) -> Vec<(usize, Filling)> {
    let rooms = &space.problem.rooms;
    let mut order: Vec<usize> = (0..rooms.len()).collect();
    order.sort_by_key(|&room| (rooms[room].free.0[CPU], room));
    let mut lanes: BTreeMap<BitSet, Lane> = BTreeMap::new();
    let mut knapsack = Knapsack::new(space);
    let mut filled = Vec::new();
    for room in order {
        if budget.is_used_up() {
            break;
        }
        let kinds = signature(&space.kinds, |kind| kind.has_room(space.problem, room));
        let lane = lanes
            .entry(kinds)
            .or_insert_with_key(|kinds| Lane::new(space, values, &left.pods, |kind| kinds.contains(position(kind))));
        let it = &rooms[room];
        let start = Start {
            free: it.free,
            groups: &it.groups,
            carries: it.carries,
            repels: it.repels,
        };
        let best = knapsack.fill(lane, &start, values, &left.pods);
        budget.spend(1 + knapsack.steps());
        let Some((_, filling)) = best else { continue };
        take(space, values, &filling, left, &mut lanes);
        filled.push((room, filling));
    }
    filled
}

fn take(space: &Space, values: &[f64], filling: &Filling, left: &mut Left, lanes: &mut BTreeMap<BitSet, Lane>) {
    for (item, count) in filling {
        left.pods[*item] -= count;
    }
    if filling.iter().any(|(item, _)| left.pods[*item] == 0) {
        for lane in lanes.values_mut() {
            lane.drop_exhausted(space, values, &left.pods);
        }
    }
}
