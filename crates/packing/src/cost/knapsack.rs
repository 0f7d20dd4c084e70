//! What goes on one node? A greedy filling in three orders, of which the most valuable is kept.
//!
//! Pods of one shape differ only in worth, so each shape is looked at through its most valuable pods that are left.
//! A third of the copies that would fit is taken at a time, so that the mix follows what is still free.

use super::{
    board::{Board, Head, USUAL},
    problem::{Amounts, WIDTH},
    space::Space,
};

/// The items that may use a node, by shape, the most valuable first; made per market and kept up as items run out.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lane {
    shapes: Vec<LaneShape>,
    /// The shapes as a node finds them.
    heads: Board,
    /// No item asks for less of a resource.
    least: Amounts,
    /// All items, the most valuable first, with what each asks for.
    by_value: Vec<(Amounts, usize)>,
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
            lane.by_value.push((space.items[item].requests, item));
        }
        for shape in &mut lane.shapes {
            shape.items.sort_by(|a, b| values[*b].total_cmp(&values[*a]));
        }
        lane.by_value
            .sort_by(|(_, a), (_, b)| values[*b].total_cmp(&values[*a]));
        lane.find_heads(space, values);
        lane
    }

    /// Drops items of which no pod is left.
    pub(crate) fn drop_exhausted(&mut self, space: &Space, values: &[f64], left: &[u32]) {
        for shape in &mut self.shapes {
            shape.items.retain(|&item| left[item] > 0);
        }
        self.shapes.retain(|shape| !shape.items.is_empty());
        self.by_value.retain(|(_, item)| left[*item] > 0);
        self.find_heads(space, values);
    }

    fn find_heads(&mut self, space: &Space, values: &[f64]) {
        self.heads.clear();
        let mut least: Option<Amounts> = None;
        for (at, shape) in self.shapes.iter().enumerate() {
            let Some(&item) = shape.items.first() else { continue };
            let it = &space.shapes[shape.shape];
            self.heads.push(&it.weights, values[item], Head::new(space, item, at));
            least = Some(least.map_or(it.requests, |least| least.common(&it.requests)));
        }
        self.least = least.unwrap_or_default();
    }

    /// What all pods that could share a node of any size are worth.
    pub(crate) fn worth(&self, space: &Space, values: &[f64], left: &[u32]) -> f64 {
        let mut groups = vec![0; space.problem.groups.len()];
        let mut worth = 0.0;
        for &(_, item) in &self.by_value {
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
        heads.map(|head| (self.shapes[head.at].shape, head.item))
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
            steps: 0,
        }
    }

    /// Shapes looked at since the last call.
    pub(crate) fn steps(&mut self) -> usize {
        std::mem::take(&mut self.steps)
    }

    /// The most valuable of three fillings, none when nothing fits.
    pub(crate) fn fill(&mut self, lane: &Lane, start: &Start, values: &[f64], left: &[u32]) -> Option<(f64, Filling)> {
        let mut best: Option<(f64, Filling)> = None;
        for order in [Some(Order::Share), Some(Order::LargeShare), None] {
            self.reset(start);
            match order {
                Some(order) => self.fill_by_score(order, lane, values, left),
                None => self.fill_by_value(lane, left),
            }
            let value = self
                .taken
                .iter()
                .map(|&item| values[item] * f64::from(self.used[item]))
                .sum();
            if value > 0.0 && best.as_ref().is_none_or(|(most, _)| value > *most) {
                let filling = self.taken.iter().map(|&item| (item, self.used[item])).collect();
                best = Some((value, filling));
            }
        }
        best
    }

    fn reset(&mut self, start: &Start) {
        for &item in &self.taken {
            self.used[item] = 0;
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

    fn fill_by_value(&mut self, lane: &Lane, left: &[u32]) {
        self.steps += lane.by_value.len();
        for (requests, item) in &lane.by_value {
            if !requests.fits(&self.free) {
                continue;
            }
            let count = self.room_for(*item, left);
            if count > 0 {
                self.take(*item, count);
                if !lane.least.fits(&self.free) {
                    break;
                }
            }
        }
    }

    fn fill_by_score(&mut self, order: Order, lane: &Lane, values: &[f64], left: &[u32]) {
        // Of what nobody asks for there may be less than nothing, and then nothing fits.
        let is_overdrawn = self.free.0[self.space.lanes..].iter().any(|amount| *amount < 0);
        match self.space.lanes {
            _ if is_overdrawn => self.steps += lane.heads.len(),
            ..=USUAL => self.fill_lanes::<USUAL>(order, lane, values, left),
            _ => self.fill_lanes::<WIDTH>(order, lane, values, left),
        }
    }

    fn fill_lanes<const LANES: usize>(&mut self, order: Order, lane: &Lane, values: &[f64], left: &[u32]) {
        let mut board = std::mem::take(&mut self.board);
        board.begin(&lane.heads, |value| order.gain(value));
        let mut last = None;
        loop {
            self.steps += board.fitting;
            self.pass_over_blocked(&mut board, order, lane, values, left, last);
            let Some(at) = board.best::<LANES>(&self.free) else {
                break;
            };
            let item = board.heads[at].item;
            let room = self.room_for(item, left);
            if room == 0 {
                // Scores see very large amounts a little rounded.
                board.drop(at);
                last = None;
                continue;
            }
            self.take(item, (room / 3).max(1));
            last = Some(at);
            if !lane.least.fits(&self.free) {
                self.steps += board.fitting;
                break;
            }
        }
        self.board = board;
    }

    /// Goes on to other items where one may not be added any more. `last` is the shape that was added to before: what
    /// may be added can have changed by that alone.
    fn pass_over_blocked(
        &self,
        board: &mut Board,
        order: Order,
        lane: &Lane,
        values: &[f64],
        left: &[u32],
        last: Option<usize>,
    ) {
        if last.is_none_or(|last| !self.space.is_free[board.heads[last].item]) {
            for at in 0..board.len() {
                if board.is_held(at) {
                    self.advance(board, at, order, lane, values, left);
                }
            }
        }
        if let Some(last) = last {
            self.advance(board, last, order, lane, values, left);
        }
    }

    /// Goes on to the shape's next item that may be added, and drops the shape when there is none. An item that may not
    /// be added never may again on this node.
    fn advance(&self, board: &mut Board, at: usize, order: Order, lane: &Lane, values: &[f64], left: &[u32]) {
        let head = &mut board.heads[at];
        let items = &lane.shapes[head.at].items;
        let next = items[head.cursor..]
            .iter()
            .position(|&item| self.allowed(item, left) > 0);
        match next {
            None => board.drop(at),
            Some(0) => {}
            Some(next) => {
                let cursor = head.cursor + next;
                let item = items[cursor];
                *head = Head {
                    cursor,
                    ..Head::new(self.space, item, head.at)
                };
                board.gains[at] = order.gain(values[item]);
            }
        }
    }

    #[inline]
    fn allowed(&self, item: usize, left: &[u32]) -> u32 {
        if self.space.is_free[item] {
            return left[item] - self.used[item];
        }
        self.allowed_together(item, left)
    }

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

    /// How many more pods of an item the node takes, one of which fits.
    fn room_for(&self, item: usize, left: &[u32]) -> u32 {
        let requests = &self.space.items[item].requests;
        self.allowed(item, left).min(requests.times_in(&self.free))
    }

    fn take(&mut self, item: usize, count: u32) {
        let it = &self.space.items[item];
        if self.used[item] == 0 {
            self.taken.push(item);
        }
        self.used[item] += count;
        self.free.take(&it.requests, count);
        self.carries |= it.carries;
        self.repels |= it.repels;
        for &group in &it.groups {
            self.in_group[group] += count;
        }
    }
}
