//! How many claims a pool has, by where they are in their life. Static pools are counted by it.

use model::object::NodePoolName;

use crate::State;

/// How many claims a pool has. No claim is in two of these.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NodeCounts {
    /// That stay, launched or not.
    pub active: usize,
    /// That are to be replaced, and not yet marked for deletion.
    pub pending_disruption: usize,
    /// That are marked for deletion or on their way out.
    pub deleting: usize,
    /// That have a reservation and were not seen yet.
    pub reserved: usize,
}

impl NodeCounts {
    /// All of them together: what a limit on nodes is held against.
    pub fn all(self) -> usize {
        self.active + self.pending_disruption + self.deleting + self.reserved
    }
}

impl State {
    /// How many claims a pool has.
    pub fn node_counts(&self, pool: &NodePoolName) -> NodeCounts {
        let mut counts = NodeCounts {
            reserved: self.unseen_reservations(pool),
            ..NodeCounts::default()
        };
        for claim in self.claims_of_pool(pool.as_str()) {
            if self.is_marked_for_deletion(self.machine_of_claim(claim)) {
                counts.deleting += 1;
            } else if self.marks.is_pending_disruption(&claim.metadata.name) {
                counts.pending_disruption += 1;
            } else {
                counts.active += 1;
            }
        }
        counts
    }
}
