//! How many nodes the capacity reservations still have room for while a plan is made.
//!
//! A claim holds a slot of every reservation it might use, so that the slots are never promised twice. Asking for a
//! reservation nobody knows, or for more than there is, is answered with a plain no.

use std::collections::{BTreeMap, BTreeSet};

use crate::vocabulary::ValueId;

/// Free slots by reservation, and who holds the others. A reservation is a value of the provider's reservation label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservations<Claim> {
    free: BTreeMap<ValueId, u32>,
    held: BTreeMap<Claim, BTreeSet<ValueId>>,
}

impl<Claim> Default for Reservations<Claim> {
    fn default() -> Self {
        Self {
            free: BTreeMap::new(),
            held: BTreeMap::new(),
        }
    }
}

impl<Claim: Ord + Clone> Reservations<Claim> {
    /// Learns of a reservation. Seen with different capacities, read at different times, it has the least of them.
    pub fn learn(&mut self, reservation: ValueId, capacity: u32) {
        self.free
            .entry(reservation)
            .and_modify(|free| *free = capacity.min(*free))
            .or_insert(capacity);
    }

    /// Adds slots that are about to be freed; a reservation nobody offers stays unknown.
    pub fn credit(&mut self, reservation: ValueId, slots: u32) {
        if let Some(free) = self.free.get_mut(&reservation) {
            *free = free.saturating_add(slots);
        }
    }

    /// Whether the claim holds a slot already, or could have one.
    pub fn can_reserve(&self, claim: &Claim, reservation: ValueId) -> bool {
        self.holds(claim, reservation) || self.free(reservation) > 0
    }

    /// Gives the claim a slot, once; false when there is none left.
    pub fn reserve(&mut self, claim: &Claim, reservation: ValueId) -> bool {
        if self.holds(claim, reservation) {
            return true;
        }
        let Some(free) = self.free.get_mut(&reservation).filter(|free| **free > 0) else {
            return false;
        };
        *free -= 1;
        self.held.entry(claim.clone()).or_default().insert(reservation);
        true
    }

    /// Takes the claim's slot back, if it holds one.
    pub fn release(&mut self, claim: &Claim, reservation: ValueId) {
        if self.held.get_mut(claim).is_some_and(|held| held.remove(&reservation)) {
            self.credit(reservation, 1);
        }
    }

    /// Whether the claim holds a slot.
    pub fn holds(&self, claim: &Claim, reservation: ValueId) -> bool {
        self.held.get(claim).is_some_and(|held| held.contains(&reservation))
    }

    /// How many slots nobody holds.
    pub fn free(&self, reservation: ValueId) -> u32 {
        self.free.get(&reservation).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::{Reservations, ValueId};

    const A: ValueId = ValueId::SPOT;
    const B: ValueId = ValueId::RESERVED;

    #[test]
    fn slots_are_given_once_per_claim_until_none_is_left() {
        let mut reservations = Reservations::default();
        reservations.learn(A, 2);
        assert!(reservations.reserve(&"one", A) && reservations.reserve(&"one", A));
        assert_eq!(reservations.free(A), 1);
        assert!(reservations.reserve(&"two", A) && !reservations.reserve(&"three", A));
        assert_eq!(
            [&"one", &"two", &"three"].map(|claim| reservations.can_reserve(claim, A)),
            [true, true, false]
        );
        reservations.release(&"one", A);
        reservations.release(&"one", A);
        assert_eq!((reservations.free(A), reservations.holds(&"one", A)), (1, false));
        assert!(reservations.reserve(&"three", A));
    }

    #[test]
    fn least_capacity_counts_and_credit_is_only_for_known_reservations() {
        let mut reservations = Reservations::<&str>::default();
        for capacity in [3, 1, 2] {
            reservations.learn(A, capacity);
        }
        reservations.credit(A, 2);
        reservations.credit(B, 2);
        assert_eq!((reservations.free(A), reservations.free(B)), (3, 0));
        assert!(!reservations.can_reserve(&"one", B) && !reservations.reserve(&"one", B));
    }
}
