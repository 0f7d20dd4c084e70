//! What goes on one node? A greedy filling in three orders, of which the most valuable is kept.
//!
//! Pods of one shape differ only in worth, so each shape is looked at through its most valuable pods that are left.
//! A third of the copies that would fit is taken at a time, so that the mix follows what is still free.

use super::{
    board::{Board, Head, USUAL},
    problem::{Amounts, WIDTH},
    space::{Space, bond},
};

/// The items that may use a node, by shape, the most valuable first; made per market and kept up as items run out.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lane {
    shapes: Vec<LaneShape>,
    /// The shapes as a node finds them.
    heads: Board,
    /// No item asks for less of a resource.
    least: Amounts,
    /// All items with their shapes, the most valuable first.
    by_value: Vec<(u32, u32)>,
}

#[derive(Debug, Clone)]
struct LaneShape {
    shape: usize,
    items: Vec<usize>,
}

impl Lane {
    /// Items with a value, some pods left and a kind that is open.
    pub(crate) fn new(space: &Space, values: &[f64], left: &[u32], is_open: impl Fn(usize) -> bool) -> Self {
        let mut lane = Self::default();
        let items = (0..space.items.len()).filter(|&item| left[item] > 0 && values[item] > 0.0);
        for item in items.filter(|&item| is_open(space.items[item].kind)) {
            let shape = space.shape_of[item];
            match lane.shapes.last_mut().filter(|last| last.shape == shape) {
                Some(last) => last.items.push(item),
                None => lane.shapes.push(LaneShape {
                    shape,
                    items: vec![item],
                }),
            }
            lane.by_value.push((shape as u32, item as u32));
        }
        for shape in &mut lane.shapes {
            shape.items.sort_by(|a, b| values[*b].total_cmp(&values[*a]));
        }
        lane.by_value
            .sort_by(|(_, a), (_, b)| values[*b as usize].total_cmp(&values[*a as usize]));
        lane.find_heads(space, values);
        lane
    }

    /// Drops items of which no pod is left.
    pub(crate) fn drop_exhausted(&mut self, space: &Space, values: &[f64], left: &[u32]) {
        for shape in &mut self.shapes {
            shape.items.retain(|&item| left[item] > 0);
        }
        self.shapes.retain(|shape| !shape.items.is_empty());
        self.by_value.retain(|(_, item)| left[*item as usize] > 0);
        self.find_heads(space, values);
    }

    fn find_heads(&mut self, space: &Space, values: &[f64]) {
        self.heads.clear();
        let mut least: Option<Amounts> = None;
        for (at, shape) in self.shapes.iter().enumerate() {
            let Some(&item) = shape.items.first() else { continue };
            let it = &space.shapes[shape.shape];
            let head = Head {
                item: item as u32,
                at: at as u32,
                cursor: 0,
            };
            self.heads.push(&it.weights, values[item], head, space.bonds[item]);
            least = Some(least.map_or(it.requests, |least| least.common(&it.requests)));
        }
        self.heads.seal::<WIDTH>();
        self.least = least.unwrap_or_default();
    }

    /// What all pods that could share a node of any size are worth.
    pub(crate) fn worth(&self, space: &Space, values: &[f64], left: &[u32]) -> f64 {
        let mut groups = vec![0; space.problem.groups.len()];
        let mut worth = 0.0;
        for &(_, item) in &self.by_value {
            let item = item as usize;
            let it = &space.items[item];
            let room = |&group: &usize| space.problem.groups[group].max - groups[group];
            let count = it.groups.iter().map(room).fold(left[item], u32::min);
            worth += values[item] * f64::from(count);
            for &group in &it.groups {
                groups[group] += count;
            }
        }
        worth
    }

    /// Each shape with its most valuable item.
    pub(crate) fn heads(&self) -> impl Iterator<Item = (usize, usize)> {
        let heads = self.heads.heads.iter();
        heads.map(|head| (self.shapes[head.at as usize].shape, head.item as usize))
    }
}

/// A node before it is filled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Start<'a> {
    /// Room for pods.
    pub free: Amounts,
    /// Pods there that count in groups.
    pub groups: &'a [(usize, u32)],
    /// Marks carried there.
    pub carries: u64,
    /// Marks kept away.
    pub repels: u64,
}

impl Start<'_> {
    /// An empty node.
    pub(crate) fn empty(free: Amounts) -> Self {
        Self {
            free,
            groups: &[],
            carries: 0,
            repels: 0,
        }
    }
}

/// What an item scores by when a node is filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// Value per share of what is free: pairs pods that are heavy in different resources.
    Share,
    /// The same, large values first.
    LargeShare,
}

impl Order {
    fn gain(self, value: f64) -> f64 {
        match self {
            Self::Share => value,
            Self::LargeShare => value * value,
        }
    }
}

/// Pods on a node: item, how many.
pub(crate) type Filling = Vec<(usize, u32)>;

/// Fills nodes, and keeps the memory that takes.
#[derive(Debug)]
pub(crate) struct Knapsack<'a> {
    space: &'a Space<'a>,
    used: Vec<u32>,
    taken: Vec<usize>,
    in_group: Vec<u32>,
    /// Groups the node had pods of before it was filled.
    started: Vec<usize>,
    free: Amounts,
    carries: u64,
    repels: u64,
    board: Board,
    /// Shapes that do not fit any more.
    is_closed: Vec<bool>,
    best: Filling,
    steps: usize,
}

impl<'a> Knapsack<'a> {
    /// For the items of a space.
    pub(crate) fn new(space: &'a Space<'a>) -> Self {
        Self {
            space,
            used: vec![0; space.items.len()],
            taken: Vec::new(),
            in_group: vec![0; space.problem.groups.len()],
            started: Vec::new(),
            free: Amounts::default(),
            carries: 0,
            repels: 0,
            board: Board::default(),
            is_closed: Vec::new(),
            best: Filling::new(),
            steps: 0,
        }
    }

    /// Shapes looked at since the last call.
    pub(crate) fn steps(&mut self) -> usize {
        std::mem::take(&mut self.steps)
    }

    /// The most valuable of three fillings, none when nothing fits.
    pub(crate) fn fill(&mut self, lane: &Lane, start: &Start, values: &[f64], left: &[u32]) -> Option<(f64, Filling)> {
        match self.space.lanes {
            ..=USUAL => self.fill_lanes::<USUAL>(lane, start, values, left),
            _ => self.fill_lanes::<WIDTH>(lane, start, values, left),
        }
    }

    fn fill_lanes<const LANES: usize>(
        &mut self,
        lane: &Lane,
        start: &Start,
        values: &[f64],
        left: &[u32],
    ) -> Option<(f64, Filling)> {
        // Of what nobody asks for there may be less than nothing, and then nothing fits.
        if start.free.0[self.space.lanes..].iter().any(|amount| *amount < 0) {
            self.steps += lane.heads.len() * 2 + lane.by_value.len();
            return None;
        }
        let groups = start.groups.iter().map(|(group, _)| bond(*group));
        let blocked = groups.fold(self.space.closed | start.carries | start.repels, |all, group| {
            all | group
        });
        let mut most = 0.0;
        for order in [Some(Order::Share), Some(Order::LargeShare), None] {
            self.reset(start);
            match order {
                Some(order) => self.fill_by_score::<LANES>(order, lane, blocked, values, left),
                None => self.fill_by_value::<LANES>(lane, left),
            }
            let worth = |item: &usize| values[*item] * f64::from(self.used[*item]);
            let value = self.taken.iter().map(worth).sum();
            if value > most {
                most = value;
                self.best.clear();
                self.best.extend(self.taken.iter().map(|&item| (item, self.used[item])));
            }
        }
        (most > 0.0).then(|| (most, self.best.clone()))
    }

    fn reset(&mut self, start: &Start) {
        for &item in &self.taken {
            self.used[item] = 0;
            if self.space.bonds[item] == 0 {
                continue;
            }
            for &group in &self.space.items[item].groups {
                self.in_group[group] = 0;
            }
        }
        self.taken.clear();
        for group in self.started.drain(..) {
            self.in_group[group] = 0;
        }
        for &(group, count) in start.groups {
            self.in_group[group] = count;
            self.started.push(group);
        }
        (self.free, self.carries, self.repels) = (start.free, start.carries, start.repels);
    }

    fn fill_by_value<const LANES: usize>(&mut self, lane: &Lane, left: &[u32]) {
        self.steps += lane.by_value.len();
        self.is_closed.clear();
        self.is_closed.resize(self.space.shapes.len(), false);
        let mut open = lane.shapes.len();
        for &(shape, item) in &lane.by_value {
            if self.is_closed[shape as usize] {
                continue;
            }
            let requests = &self.space.shapes[shape as usize].requests;
            if !fits::<LANES>(requests, &self.free) {
                // Nor will it later on: room only shrinks.
                self.is_closed[shape as usize] = true;
                open -= 1;
                if open == 0 {
                    break;
                }
                continue;
            }
            let item = item as usize;
            let count = match self.allowed(item, left) {
                one_or_none @ ..=1 => one_or_none,
                many => many.min(requests.times_in(&self.free)),
            };
            if count > 0 {
                self.take::<LANES>(item, count);
            }
        }
    }

    /// `blocked` are the bonds by which items may be held back from the beginning.
    fn fill_by_score<const LANES: usize>(
        &mut self,
        order: Order,
        lane: &Lane,
        blocked: u64,
        values: &[f64],
        left: &[u32],
    ) {
        let mut board = std::mem::take(&mut self.board);
        board.begin::<LANES>(&lane.heads, |value| order.gain(value));
        self.pass_over_blocked(&mut board, blocked, order, lane, values, left);
        loop {
            self.steps += board.fitting;
            let Some(at) = board.best::<LANES>(&self.free) else {
                break;
            };
            let item = board.heads[at].item as usize;
            let count = self.third::<LANES>(item, left);
            if count == 0 {
                // Scores see very large amounts a little rounded.
                board.drop(at);
                continue;
            }
            let blocked = self.take::<LANES>(item, count);
            if !fits::<LANES>(&lane.least, &self.free) {
                self.steps += board.fitting;
                break;
            }
            self.pass_over_blocked(&mut board, blocked, order, lane, values, left);
            self.advance(&mut board, at, order, lane, values, left);
        }
        self.board = board;
    }

    /// Goes on to other items where one may not be added any more because of these bonds.
    fn pass_over_blocked(
        &self,
        board: &mut Board,
        bonds: u64,
        order: Order,
        lane: &Lane,
        values: &[f64],
        left: &[u32],
    ) {
        if bonds == 0 {
            return;
        }
        let mut from = 0;
        while let Some(at) = board.next_held(from, bonds) {
            self.advance(board, at, order, lane, values, left);
            from = at + 1;
        }
    }

    /// Goes on to the shape's next item that may be added, and drops the shape when there is none. An item that may not
    /// be added never may again on this node.
    fn advance(&self, board: &mut Board, at: usize, order: Order, lane: &Lane, values: &[f64], left: &[u32]) {
        let head = board.heads[at];
        if self.allowed(head.item as usize, left) > 0 {
            return;
        }
        let (items, cursor) = (&lane.shapes[head.at as usize].items, head.cursor as usize + 1);
        let next = items[cursor..].iter().position(|&item| self.allowed(item, left) > 0);
        match next {
            None => board.drop(at),
            Some(next) => {
                let item = items[cursor + next];
                let gain = order.gain(values[item]);
                board.go_on(at, item as u32, cursor + next, gain, self.space.bonds[item]);
            }
        }
    }

    #[inline]
    fn allowed(&self, item: usize, left: &[u32]) -> u32 {
        if self.space.bonds[item] == 0 {
            return left[item] - self.used[item];
        }
        self.allowed_together(item, left)
    }

    #[inline(never)]
    fn allowed_together(&self, item: usize, left: &[u32]) -> u32 {
        let it = &self.space.items[item];
        if it.carries & self.repels != 0 || it.repels & self.carries != 0 {
            return 0;
        }
        let mut allowed = left[item] - self.used[item];
        if it.carries & it.repels != 0 {
            allowed = allowed.min(1);
        }
        for &group in &it.groups {
            allowed = allowed.min(
                self.space.problem.groups[group]
                    .max
                    .saturating_sub(self.in_group[group]),
            );
        }
        allowed
    }

    /// A third of the pods of an item that the node takes, so that the mix follows what is still free; at least one,
    /// unless none fits.
    fn third<const LANES: usize>(&self, item: usize, left: &[u32]) -> u32 {
        let requests = &self.space.shapes[self.space.shape_of[item]].requests;
        match self.allowed(item, left) {
            allowed if allowed == 0 || !fits::<LANES>(requests, &self.free) => 0,
            // However many of these fit, a third of them is less than two.
            ..=5 => 1,
            allowed => (allowed.min(requests.times_in(&self.free)) / 3).max(1),
        }
    }

    /// Adds pods; tells by which bonds others may be held back from now on.
    fn take<const LANES: usize>(&mut self, item: usize, count: u32) -> u64 {
        if self.used[item] == 0 {
            self.taken.push(item);
        }
        self.used[item] += count;
        let requests = &self.space.shapes[self.space.shape_of[item]].requests;
        for lane in 0..LANES {
            self.free.0[lane] -= i64::from(count) * requests.0[lane];
        }
        if self.space.bonds[item] == 0 {
            return 0;
        }
        let it = &self.space.items[item];
        // Marks that are here already hold back nobody new, nor does a group with room.
        let mut blocked = (it.carries & !self.carries) | (it.repels & !self.repels);
        self.carries |= it.carries;
        self.repels |= it.repels;
        for &group in &it.groups {
            self.in_group[group] += count;
            if self.in_group[group] >= self.space.problem.groups[group].max {
                blocked |= bond(group);
            }
        }
        blocked
    }
}

/// Whether all of it goes into a room, as far as the first resources go: nobody asks for the others.
#[inline]
fn fits<const LANES: usize>(need: &Amounts, room: &Amounts) -> bool {
    (0..LANES).all(|lane| need.0[lane] <= room.0[lane])
}
