//! What the cheaper passes know of a planning run: classes of equal pods, offers with prices, and room on nodes.

use std::sync::Arc;

use model::bitset::BitSet;

/// How many resources a run may weigh; pods that ask for more kinds are not the passes' business.
pub const WIDTH: usize = 6;
/// Where cpu is in [`Amounts`].
pub const CPU: usize = 0;
/// Where memory is in [`Amounts`].
pub const MEMORY: usize = 1;
/// Where the count of pods is in [`Amounts`].
pub const PODS: usize = 2;

/// An amount of each resource, in units the caller chooses per resource. Places without a resource hold zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amounts(pub [i64; WIDTH]);

impl Amounts {
    /// Whether all of it goes into `room`.
    pub fn fits(&self, room: &Self) -> bool {
        self.0.iter().zip(&room.0).all(|(need, have)| need <= have)
    }

    /// How many times it goes into `room`; as good as endless when it asks for nothing.
    pub fn times_in(&self, room: &Self) -> u32 {
        let pairs = self.0.iter().zip(&room.0).filter(|(need, _)| **need > 0);
        let times = pairs.map(|(need, have)| (have / need).max(0)).min();
        times.map_or(u32::MAX, |times| u32::try_from(times).unwrap_or(u32::MAX))
    }

    /// The larger of both, resource by resource.
    #[must_use]
    pub fn hull(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|at| self.0[at].max(other.0[at])))
    }

    /// The smaller of both, resource by resource.
    #[must_use]
    pub fn common(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|at| self.0[at].min(other.0[at])))
    }

    /// Takes `count` times `other` away.
    pub fn take(&mut self, other: &Self, count: u32) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine -= i64::from(count) * theirs;
        }
    }

    /// Adds `count` times `other`.
    pub fn add(&mut self, other: &Self, count: u32) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine += i64::from(count) * theirs;
        }
    }
}

/// Everything one run of the passes is told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Problem {
    /// How many zones there are; they are numbered from zero.
    pub zones: usize,
    /// Pods to place.
    pub classes: Vec<Class>,
    /// Nodes that can be bought, any number of each. Problems over one catalogue share them.
    pub offers: Arc<Vec<Offer>>,
    /// Room on nodes there are already.
    pub rooms: Vec<Room>,
    /// Who may use what; classes point here, as many share one.
    pub reaches: Vec<Reach>,
    /// Pods that keep their distance on a node.
    pub groups: Vec<Group>,
    /// Pods that are spread over zones together.
    pub spreads: Vec<Spread>,
    /// NodePools, for their limits.
    pub pools: Vec<Pool>,
}

/// Pods that are equal in all that matters here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Class {
    /// How many.
    pub count: u32,
    /// What each asks for, itself as one of `pods`.
    pub requests: Amounts,
    /// Position in [`Problem::reaches`].
    pub reach: usize,
    /// Positions in [`Problem::groups`] this pod counts in.
    pub groups: Vec<usize>,
    /// Marks this pod carries, one bit each.
    pub carries: u64,
    /// Marks it does not share a node with.
    pub repels: u64,
    /// Its say in the zone.
    pub zones: Zones,
    /// The passes leave it alone, the bound still counts it.
    pub is_unsupported: bool,
}

/// What a class asks of zones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Zones {
    /// Nothing beyond its reach.
    #[default]
    Any,
    /// To be spread evenly; position in [`Problem::spreads`].
    Spread(usize),
    /// To be in one zone with all classes of the same number.
    Together(usize),
}

/// A node that can be bought.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offer {
    /// The instance type, numbered by the caller.
    pub row: usize,
    /// What is sold alike: pool, capacity type, zone and architecture. Types of one market stand in for each other.
    pub market: usize,
    /// Position in [`Problem::pools`].
    pub pool: usize,
    /// Where.
    pub zone: usize,
    /// Room for pods, net of daemons and overhead.
    pub allocatable: Amounts,
    /// What a node takes from the pool's limits.
    pub capacity: Amounts,
    /// Pico-dollars per hour.
    pub price: u64,
    /// May be taken away at any time, so its type should have stand-ins.
    pub is_spot: bool,
}

/// Room on a node there is already.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Room {
    /// Where.
    pub zone: usize,
    /// What is free.
    pub free: Amounts,
    /// Pods there that count in groups: group, how many.
    pub groups: Vec<(usize, u32)>,
    /// Marks carried by pods there.
    pub carries: u64,
    /// Marks pods there do not share the node with.
    pub repels: u64,
}

/// Which offers and rooms some classes may use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reach {
    /// Positions in [`Problem::offers`].
    pub offers: BitSet,
    /// Positions in [`Problem::rooms`].
    pub rooms: BitSet,
}

/// At most so many pods of these per node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Group {
    /// How many.
    pub max: u32,
}

/// Pods spread over zones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spread {
    /// How far a zone may be ahead of the emptiest.
    pub max_skew: u32,
    /// Pods that count already, per zone.
    pub placed: Vec<u32>,
}

/// What a NodePool's limits leave.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pool {
    /// Over the capacity of nodes; none when there is no limit.
    pub remaining: Option<Amounts>,
    /// Nodes; none when there is no limit.
    pub nodes: Option<u32>,
}

impl Pool {
    /// Whether anything is limited.
    pub fn is_limited(&self) -> bool {
        self.remaining.is_some() || self.nodes.is_some()
    }

    /// How many nodes of this capacity it still allows.
    pub fn allows(&self, capacity: &Amounts) -> u32 {
        let by_amount = self.remaining.map_or(u32::MAX, |left| capacity.times_in(&left));
        by_amount.min(self.nodes.unwrap_or(u32::MAX))
    }

    /// Counts nodes bought.
    pub fn take(&mut self, capacity: &Amounts, nodes: u32) {
        if let Some(left) = &mut self.remaining {
            left.take(capacity, nodes);
        }
        if let Some(left) = &mut self.nodes {
            *left = left.saturating_sub(nodes);
        }
    }
}
