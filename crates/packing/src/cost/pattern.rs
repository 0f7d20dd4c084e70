//! What does a pass propose? Bins: a node to buy or to use, and how many pods of which class go there.

/// A proposal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Packed {
    /// Room used first, then nodes in the order they were found worth buying.
    pub bins: Vec<Bin>,
    /// What stays without a place: class, how many.
    pub unplaced: Vec<(usize, u32)>,
}

/// Equal nodes and what each of them takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bin {
    /// Where.
    pub place: Place,
    /// Class and how many, the largest pods first; what one of the nodes takes.
    pub pods: Vec<(usize, u32)>,
    /// The zone is the offer's because some pod's zone was settled; otherwise any zone will do.
    pub is_zone_settled: bool,
}

/// What a bin stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Position in [`super::Problem::rooms`].
    Room(usize),
    /// Position in [`super::Problem::offers`].
    Offer(usize),
}

impl Packed {
    /// Pods in bins.
    pub fn pods(&self) -> u64 {
        let counts = self.bins.iter().flat_map(|bin| &bin.pods);
        counts.map(|(_, count)| u64::from(*count)).sum()
    }

    /// Nodes to buy.
    pub fn nodes(&self) -> usize {
        self.bins
            .iter()
            .filter(|bin| matches!(bin.place, Place::Offer(_)))
            .count()
    }
}
