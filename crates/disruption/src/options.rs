//! What a caller may ask of a round beyond the cluster's own settings.

/// How to decide. Feature gates are the snapshot's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Which moves take part.
    pub consolidation: Consolidation,
    /// `--legacy-node-repair`: another controller repairs, so the method does not.
    pub is_repair_legacy: bool,
    /// How many pods may be moved in thought before a round stops; the rest is looked at in the next round. Counted, so
    /// that it is the same on every machine.
    pub work: u64,
    /// How many threads simulate; the answer does not depend on it.
    pub threads: usize,
    /// After how many replacements in a row that did not come up a NodePool's nodes are no longer replaced.
    pub most_failures: u32,
    /// Makes upstream's mistake about devices of the same name (`docs/upstream.md`), to compare decisions with its.
    pub is_matching_devices_by_name: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            consolidation: Consolidation::Cheapest,
            is_repair_legacy: false,
            work: 4_000_000,
            threads: 1,
            most_failures: 3,
            is_matching_devices_by_name: false,
        }
    }
}

/// Which moves take part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Consolidation {
    /// Upstream's, and m → n replacement when they find nothing.
    #[default]
    Cheapest,
    /// Upstream's only, and none of our guards.
    Faithful,
}
