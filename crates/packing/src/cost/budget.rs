//! How much work may still be done? Counted in steps, so that every machine stops at the same place.

/// Steps left; one step looks at one pod shape for one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    left: u64,
    spent: u64,
}

impl Budget {
    /// That many steps.
    pub fn of(steps: u64) -> Self {
        Self { left: steps, spent: 0 }
    }

    /// Counts steps done.
    pub fn spend(&mut self, steps: usize) {
        let steps = steps as u64;
        self.spent += steps;
        self.left = self.left.saturating_sub(steps);
    }

    /// Whether no step is left.
    pub fn is_used_up(&self) -> bool {
        self.left == 0
    }

    /// Steps done so far.
    pub fn spent(&self) -> u64 {
        self.spent
    }
}
