//! Which reservations a claim may use, while other claims of the run want them too.

use model::{reservation::Reservations, vocabulary::ValueId};
use rustc_hash::FxHashMap;

use crate::{
    ReservedMode,
    bitmap::has,
    claims::ClaimId,
    index::{Index, reservation_key},
    problem::Problem,
    space::State,
};

/// Reservations and who holds them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reserved {
    is_on: bool,
    is_strict: bool,
    slots: Reservations<ClaimId>,
    held: FxHashMap<ClaimId, Vec<ValueId>>,
    credited: Vec<ValueId>,
}

/// Why reserved capacity keeps a pod off a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReservedRefusal {
    /// Other claims hold the slots for now: the pod waits.
    Held,
    /// All reservations are full and there is no other capacity: the pod waits.
    Full,
    /// The pod would cost the claim its reservations: the pod waits.
    WouldLose,
    /// All reservations are full; another NodePool may do.
    FullHere,
}

impl ReservedRefusal {
    /// Upstream's words.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Held => {
                "one or more instance types with compatible reserved offerings are available, but could not be reserved"
            }
            Self::Full => "all compatible reserved offerings are full and no on-demand or spot fallback is available",
            Self::WouldLose => {
                "satisfying updated nodeclaim constraints would remove all compatible reserved offering options"
            }
            Self::FullHere => "the only compatible reserved offering is full; falling through to other NodePools",
        }
    }

    /// Whether the pod waits rather than looking elsewhere.
    pub(crate) fn is_deferral(self) -> bool {
        self != Self::FullHere
    }
}

impl Reserved {
    pub(crate) fn new(problem: &Problem) -> Self {
        let is_on = problem.snapshot.settings().feature_gates.reserved_capacity && problem.index.has_reserved;
        let mut reserved = Self {
            is_on,
            is_strict: problem.options.reserved == ReservedMode::Strict,
            ..Self::default()
        };
        if is_on {
            reserved.learn(problem);
        }
        reserved
    }

    fn learn(&mut self, problem: &Problem) {
        let vocabulary = &problem.vocabulary;
        let offerings = problem.index.types.iter().flat_map(|entry| &entry.offerings);
        for offering in offerings.filter(|offering| offering.is_reserved(vocabulary)) {
            let key = reservation_key(&offering.requirements, vocabulary);
            let Some((key, id)) = key.and_then(|key| offering.value(key).map(|id| (key, id))) else {
                continue;
            };
            self.slots.learn(id, offering.reservation_capacity);
            if problem
                .options
                .credited_reservations
                .contains_key(vocabulary.value_name(key, id))
                && !self.credited.contains(&id)
            {
                self.credited.push(id);
            }
        }
        for (name, count) in &problem.options.credited_reservations {
            let named = |id: &&ValueId| {
                let keys = problem.index.classes.iter();
                let mut keys = keys.filter_map(|class| reservation_key(&class.requirements, vocabulary));
                keys.any(|key| vocabulary.value_name(key, **id) == name)
            };
            if let Some(id) = self.credited.iter().find(named) {
                self.slots.credit(*id, *count);
            }
        }
    }

    /// The reservations the claim would hold with these rows in this state.
    pub(crate) fn choose(
        &self,
        claim: ClaimId,
        state: &State,
        rows: &[u64],
        index: &Index,
    ) -> Result<Vec<ValueId>, ReservedRefusal> {
        if !self.is_on {
            return Ok(Vec::new());
        }
        let (mut has_capacity, mut is_full, mut has_fallback) = (false, false, false);
        let mut chosen = Vec::new();
        for offer in &index.offers {
            if !has(&state.classes, offer.class as usize) || !index.has_type(rows, offer.entry) {
                continue;
            }
            match offer.reservation {
                None => has_fallback = true,
                Some((id, 0)) if !self.credited.contains(&id) => is_full = true,
                Some((id, _)) => {
                    has_capacity = true;
                    if self.slots.can_reserve(&claim, id) && !chosen.contains(&id) {
                        chosen.push(id);
                    }
                }
            }
        }
        let is_empty = chosen.is_empty();
        if self.is_strict && has_capacity && is_empty {
            return Err(ReservedRefusal::Held);
        }
        if is_full && !has_capacity && !has_fallback {
            return Err(if self.is_strict {
                ReservedRefusal::Full
            } else {
                ReservedRefusal::FullHere
            });
        }
        if self.is_strict && is_empty && self.held.get(&claim).is_some_and(|held| !held.is_empty()) {
            return Err(ReservedRefusal::WouldLose);
        }
        Ok(chosen)
    }

    /// The claim holds these from now on, and lets go of the others.
    pub(crate) fn hold(&mut self, claim: ClaimId, chosen: Vec<ValueId>) {
        if !self.is_on {
            return;
        }
        for id in &chosen {
            self.slots.reserve(&claim, *id);
        }
        let before = self.held.insert(claim, chosen).unwrap_or_default();
        let now = &self.held[&claim];
        for id in before.iter().filter(|id| !now.contains(id)) {
            self.slots.release(&claim, *id);
        }
    }

    /// What the claim holds.
    pub(crate) fn held(&self, claim: ClaimId) -> &[ValueId] {
        self.held.get(&claim).map_or(&[], Vec::as_slice)
    }
}
