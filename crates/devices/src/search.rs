//! Which devices satisfy all claims at once, for one kind of instance types of one host? A depth-first search over claims,
//! requests, alternatives and devices, that takes the first solution it meets: published devices first, then those
//! the types come with.
//!
//! Upstream gives one call five seconds. Here a search ends after [`MOST_STEPS`] devices tried, counted over all types
//! of the call, so that equal inputs give equal plans on any machine.

use std::{collections::BTreeMap, sync::Arc};

use model::{object::Text, quantity::Quantity, requirement::Requirements, vocabulary::Vocabulary};

use crate::{
    capacity,
    claim::{Amount, RequestName},
    constraint::{MatchAttribute, Pin},
    device::{Counter, Identity, Offer, PoolNumber},
    host::Host,
    id::KindId,
    inventory::Inventory,
    ledger::{KindUsage, Ledger, Tally, Usage},
    pool::{Pool, Pools, whole},
    reach::LENIENT,
    wish::{Choice, MOST_DEVICES, Wish},
};

/// A fraction of a second; upstream tries a few times as many in its five.
pub(crate) const MOST_STEPS: u64 = 1_000_000;

/// A device the search has settled on.
#[derive(Debug, Clone)]
pub(crate) struct Pick<'a> {
    /// Place of the claim among the wishes.
    pub(crate) wish: usize,
    pub(crate) request: &'a RequestName,
    pub(crate) offer: &'a Offer,
    /// The share of a device that several claims may have.
    pub(crate) consumed: Vec<(Text, Quantity)>,
}

/// The search for one host, kind of types after kind.
pub(crate) struct Search<'a> {
    pub(crate) inventory: &'a Inventory,
    pub(crate) published: &'a Pools,
    pub(crate) ledger: &'a Ledger,
    pub(crate) vocabulary: &'a Vocabulary,
    pub(crate) host: &'a Host<'a>,
    pub(crate) wishes: &'a [Wish<'a>],
    pub(crate) kind: KindId,
    /// What picked devices ask of the host; it narrows from kind to kind.
    pub(crate) requirements: Requirements,
    /// Pools that still reach the host.
    pub(crate) pools: Arc<[Pool]>,
    pub(crate) picks: Vec<Pick<'a>>,
    pub(crate) usage: KindUsage,
    /// By wish and constraint.
    pub(crate) pins: Vec<Vec<Pin<'a>>>,
    pub(crate) steps: u64,
    /// What selectors said of devices by name, when upstream's mistake is to be made.
    pub(crate) memory: Option<Memory>,
}

/// Answers of selectors by device name, kind and place in the claims. Upstream keeps them from type to type, although
/// devices of one name may differ between types.
pub(crate) type Memory = BTreeMap<(Identity, bool, [usize; 3]), bool>;

/// Where the search is.
#[derive(Clone, Copy)]
struct Place<'s, 'a> {
    wish: usize,
    request: usize,
    alternative: usize,
    choice: &'s Choice<'a>,
    slot: usize,
}

impl<'a> Search<'a> {
    /// Looks for devices of one kind of types; on success they are in `picks` and `usage`, and the requirements stay narrowed.
    pub(crate) fn run(&mut self, kind: KindId, pools: &Arc<[Pool]>) -> bool {
        self.kind = kind;
        self.pools = Arc::clone(pools);
        self.picks.clear();
        self.usage = KindUsage::default();
        let pins = |wish: &Wish<'_>| wish.constraints.iter().map(|_| Pin::default()).collect();
        self.pins = self.wishes.iter().map(pins).collect();
        self.has_counters_for_all() && self.request(0, 0)
    }

    pub(crate) fn is_exhausted(&self) -> bool {
        self.steps >= MOST_STEPS
    }

    fn request(&mut self, wish: usize, request: usize) -> bool {
        if self.is_exhausted() {
            return false;
        }
        let wishes = self.wishes;
        let Some(wanted) = wishes.get(wish) else { return true };
        let Some(choices) = wanted.requests.get(request) else {
            return self.request(wish + 1, 0);
        };
        choices.iter().enumerate().any(|(alternative, choice)| {
            let slot = 0;
            self.choice(Place {
                wish,
                request,
                alternative,
                choice,
                slot,
            })
        })
    }

    fn choice(&mut self, place: Place<'a, 'a>) -> bool {
        let slots = place.choice.slots(self.kind);
        let held = self.picks.iter().filter(|pick| pick.wish == place.wish).count();
        let is_empty = place.choice.query.amount == Amount::All && slots == 0;
        !is_empty && held + slots <= MOST_DEVICES && self.slot(place)
    }

    fn slot(&mut self, place: Place<'a, 'a>) -> bool {
        if self.is_exhausted() {
            return false;
        }
        if place.slot >= place.choice.slots(self.kind) {
            return self.request(place.wish, place.request + 1);
        }
        if place.choice.query.amount == Amount::All {
            let next = place.choice.all(self.kind).nth(place.slot);
            return next.is_some_and(|at| self.attempt(place, at));
        }
        self.any_published(place) || self.any_template(place)
    }

    fn any_published(&mut self, place: Place<'a, 'a>) -> bool {
        let (inventory, all, pools) = (self.inventory, self.published, Arc::clone(&self.pools));
        for pool in pools.iter() {
            let Some(published) = all.get(pool.at).filter(|pool| !pool.is_incomplete) else {
                continue;
            };
            // Upstream skips every device with counters as soon as one counter of the pool is used up.
            let is_used_up = self.has_used_up_counter(published.number);
            for at in all.devices(pool) {
                let offer = inventory.devices.offers.get(at as usize);
                let is_skipped = is_used_up && offer.is_some_and(|offer| !offer.draws.is_empty());
                if !is_skipped && self.attempt(place, at) {
                    return true;
                }
            }
        }
        false
    }

    fn any_template(&mut self, place: Place<'a, 'a>) -> bool {
        if !self.host.has_templates {
            return false;
        }
        let devices = self.inventory.template_devices(self.kind);
        devices.iter().any(|at| self.attempt(place, *at))
    }

    /// Takes the device and goes on; gives everything back when that leads nowhere.
    fn attempt(&mut self, place: Place<'a, 'a>, at: u32) -> bool {
        self.steps += 1;
        let inventory = self.inventory;
        let Some(offer) = inventory.devices.offers.get(at as usize) else {
            return false;
        };
        let Some(consumed) = self.available(place, offer) else {
            return false;
        };
        if !self.matches(place, offer, at) || !self.pin(place, offer) {
            return false;
        }
        let before = offer
            .topology
            .as_ref()
            .map(|_| (self.requirements.clone(), Arc::clone(&self.pools)));
        if self.narrow(offer) {
            self.take(place, offer, &consumed);
            let next = Place {
                slot: place.slot + 1,
                ..place
            };
            if self.slot(next) {
                return true;
            }
            self.give_back(offer, &consumed);
        }
        if let Some(before) = before {
            (self.requirements, self.pools) = before;
        }
        self.unpin(place, place_constraints(self.wishes, place));
        false
    }

    /// Whether the device is one the request means. An expression that cannot be evaluated matches nothing here.
    fn matches(&mut self, place: Place<'_, '_>, offer: &Offer, at: u32) -> bool {
        let key = (
            offer.identity,
            offer.is_template,
            [place.wish, place.request, place.alternative],
        );
        if let Some(known) = self.memory.as_ref().and_then(|memory| memory.get(&key)) {
            return *known;
        }
        let answer = self.inventory.matches(&place.choice.query.selectors, at);
        if let (Some(memory), Ok(answer)) = (&mut self.memory, &answer) {
            memory.insert(key, *answer);
        }
        answer.unwrap_or(false)
    }

    /// What the request would consume of the device, if the device can be had at all.
    fn available(&self, place: Place<'_, '_>, offer: &Offer) -> Option<Vec<(Text, Quantity)>> {
        let consumed = if offer.is_shared {
            self.share(place, offer)?
        } else if self.is_taken(offer) {
            return None;
        } else {
            Vec::new()
        };
        self.has_counters(offer).then_some(consumed)
    }

    fn share(&self, place: Place<'_, '_>, offer: &Offer) -> Option<Vec<(Text, Quantity)>> {
        let consumed = capacity::consumed(&place.choice.query.capacity, &offer.capacity)?;
        let fits = |(name, amount): &(Text, Quantity)| {
            let dimension = (offer.identity, name.clone());
            let held = self.ledger.consumed(&dimension, offer, self.host.id, self.kind);
            let total = offer
                .capacity
                .get(name)
                .map_or(Quantity::ZERO, |capacity| capacity.value);
            held + self.local(offer).capacity.amount(&dimension) + *amount <= total
        };
        consumed.iter().all(fits).then_some(consumed)
    }

    fn is_taken(&self, offer: &Offer) -> bool {
        self.ledger.is_taken(offer, self.host.id, self.kind) || self.local(offer).devices.contains(&offer.identity)
    }

    fn has_counters(&self, offer: &Offer) -> bool {
        let suffices = |(counter, amount): &(Counter, Quantity)| {
            let drawn = self.local(offer).counters.amount(counter);
            let left = self.remaining(offer, *counter);
            left.is_some_and(|left| whole(left, drawn) >= amount.value())
        };
        offer.draws.iter().all(suffices)
    }

    /// What a counter holds beyond what was committed.
    fn remaining(&self, offer: &Offer, counter: Counter) -> Option<Quantity> {
        if !offer.is_template {
            return self.ledger.remaining(counter);
        }
        let total = self.inventory.template_counter(self.kind, counter)?;
        Some(total - self.ledger.drawn(counter, self.host.id, self.kind))
    }

    /// Whether what was picked so far uses up a counter of the pool.
    fn has_used_up_counter(&self, pool: PoolNumber) -> bool {
        let mut drawn = self
            .usage
            .cluster
            .counters
            .iter()
            .filter(|(counter, _)| counter.pool == pool);
        drawn.any(|(counter, drawn)| {
            let left = self.ledger.remaining(*counter);
            left.is_some_and(|left| whole(left, drawn) <= 0)
        })
    }

    /// Whether the counters can serve requests for all devices; what no choice of alternatives can do need not be tried.
    fn has_counters_for_all(&self) -> bool {
        let mut requests = self.wishes.iter().flat_map(|wish| &wish.requests);
        requests.all(|choices| {
            let is_feasible = |choice: &Choice<'_>| choice.query.amount != Amount::All || self.has_counters_for(choice);
            choices.iter().any(is_feasible)
        })
    }

    fn has_counters_for(&self, choice: &Choice<'_>) -> bool {
        let offers = choice
            .all(self.kind)
            .filter_map(|at| self.inventory.devices.offers.get(at as usize));
        let mut drawn = [Tally::default(), Tally::default()];
        for offer in offers {
            let [published, template] = &mut drawn;
            let drawn = if offer.is_template { template } else { published };
            for (counter, amount) in &offer.draws {
                drawn.add(*counter, *amount);
                let left = self.remaining(offer, *counter);
                if left.is_none_or(|left| left < drawn.amount(counter)) {
                    return false;
                }
            }
        }
        true
    }

    /// Holds the device to the claim's constraints.
    fn pin(&mut self, place: Place<'a, 'a>, offer: &'a Offer) -> bool {
        let (bindings, kind) = (&self.inventory.bindings, self.kind);
        let constraints = place_constraints(self.wishes, place);
        let pins = self.pins.get_mut(place.wish).map_or(&mut [][..], Vec::as_mut_slice);
        for (done, (constraint, pin)) in constraints.iter().zip(pins).enumerate() {
            let applies = constraint.applies_to(&place.choice.query.name);
            if applies && !pin.add(constraint, offer, bindings, kind) {
                self.unpin(place, constraints.get(..done).unwrap_or_default());
                return false;
            }
        }
        true
    }

    fn unpin(&mut self, place: Place<'a, 'a>, constraints: &[MatchAttribute]) {
        let pins = self.pins.get_mut(place.wish).map_or(&mut [][..], Vec::as_mut_slice);
        for (constraint, pin) in constraints.iter().zip(pins) {
            if constraint.applies_to(&place.choice.query.name) {
                pin.remove();
            }
        }
    }

    /// Holds the host to where the device is.
    fn narrow(&mut self, offer: &Offer) -> bool {
        let Some(topology) = &offer.topology else { return true };
        if !self.requirements.is_compatible(topology, LENIENT, self.vocabulary) {
            return false;
        }
        self.requirements.add_all(topology, self.vocabulary);
        let pools = self.published;
        self.pools = pools
            .narrowed(&self.pools, &self.requirements, self.host.node_name, self.vocabulary)
            .into();
        true
    }

    fn take(&mut self, place: Place<'a, 'a>, offer: &'a Offer, consumed: &[(Text, Quantity)]) {
        let usage = self.local_mut(offer);
        if !offer.is_shared {
            usage.devices.insert(offer.identity);
        }
        for (name, amount) in consumed {
            usage.capacity.add((offer.identity, name.clone()), *amount);
        }
        for (counter, amount) in &offer.draws {
            usage.counters.add(*counter, *amount);
        }
        self.picks.push(Pick {
            wish: place.wish,
            request: &place.choice.query.name,
            offer,
            consumed: consumed.to_vec(),
        });
    }

    fn give_back(&mut self, offer: &Offer, consumed: &[(Text, Quantity)]) {
        self.picks.pop();
        let usage = self.local_mut(offer);
        usage.devices.remove(&offer.identity);
        for (name, amount) in consumed {
            usage.capacity.subtract(&(offer.identity, name.clone()), *amount);
        }
        for (counter, amount) in &offer.draws {
            usage.counters.subtract(counter, *amount);
        }
    }

    /// What was picked so far of the device's kind: a published pool and one to come may bear the same name.
    fn local(&self, offer: &Offer) -> &Usage {
        if offer.is_template {
            &self.usage.template
        } else {
            &self.usage.cluster
        }
    }

    fn local_mut(&mut self, offer: &Offer) -> &mut Usage {
        if offer.is_template {
            &mut self.usage.template
        } else {
            &mut self.usage.cluster
        }
    }
}

fn place_constraints<'a>(wishes: &'a [Wish<'a>], place: Place<'_, '_>) -> &'a [MatchAttribute] {
    wishes.get(place.wish).map_or(&[], |wish| wish.constraints)
}
