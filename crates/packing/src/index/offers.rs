//! Where and as what a type can be had, and in what order of price.

use std::sync::Arc;

use model::{
    instance_type::Offering,
    price::Price,
    requirement::{Requirements, UndefinedLabels},
    vocabulary::{KeyId, ValueId, Vocabulary},
};
use rustc_hash::FxHashMap;

use super::{Index, Mask};
use crate::bitmap::{has, put};

/// Available offerings with equal requirements, whatever their type: usually one per zone and capacity type.
#[derive(Debug)]
pub(crate) struct OfferClass {
    pub(crate) requirements: Requirements,
    /// The rows that can be had this way.
    pub(crate) rows: Mask,
    /// Those of them that can be launched now.
    pub(crate) launchable: Mask,
    pub(crate) capacity_type: Option<ValueId>,
}

impl OfferClass {
    pub(crate) fn is_compatible(&self, claim: &Requirements, vocabulary: &Vocabulary) -> bool {
        claim.is_compatible(&self.requirements, UndefinedLabels::AllowedIfWellKnown, vocabulary)
    }
}

/// One available offering.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Offer {
    pub(crate) entry: u32,
    pub(crate) row: u32,
    pub(crate) class: u32,
    pub(crate) price: Price,
    pub(crate) zone: Option<ValueId>,
    pub(crate) capacity_type: Option<ValueId>,
    /// Not a reservation without free slots.
    pub(crate) is_launchable: bool,
    /// The reservation and its free slots, for reserved capacity.
    pub(crate) reservation: Option<(ValueId, u32)>,
}

/// All types in order of their cheapest launch.
#[derive(Debug)]
pub(crate) struct PriceOrder {
    pub(crate) entries: Arc<[u32]>,
    /// The cheapest launch of each entry, as a position in [`Index::offers`]; none when nothing can be launched now.
    pub(crate) offers: Box<[Option<u32>]>,
}

pub(super) struct Builder<'a> {
    vocabulary: &'a Vocabulary,
    classes: Vec<Draft<'a>>,
    /// Clones of one requirement set are known by where it is in memory.
    by_address: FxHashMap<usize, u32>,
    by_content: FxHashMap<&'a Requirements, u32>,
    offers: Vec<Offer>,
    has_reserved: bool,
}

/// A class while its offerings are gathered, and what all of them have in common.
struct Draft<'a> {
    requirements: &'a Requirements,
    /// And whether they can be launched now.
    rows: Vec<(u32, bool)>,
    zone: Option<ValueId>,
    capacity_type: Option<ValueId>,
    is_reserved: bool,
    reservation: Option<ValueId>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(vocabulary: &'a Vocabulary) -> Self {
        Self {
            vocabulary,
            classes: Vec::new(),
            by_address: FxHashMap::default(),
            by_content: FxHashMap::default(),
            offers: Vec::new(),
            has_reserved: false,
        }
    }

    pub(super) fn add(&mut self, entry: u32, row: usize, offering: &'a Offering) {
        let address = offering.requirements.address();
        let place = match self.by_address.get(&address) {
            Some(place) => *place,
            None => self.class(offering),
        };
        let class = &mut self.classes[place as usize];
        let capacity = offering.reservation_capacity;
        let is_launchable = offering.is_available && (capacity > 0 || !class.is_reserved);
        class.rows.push((row as u32, is_launchable));
        self.offers.push(Offer {
            entry,
            row: row as u32,
            class: place,
            price: offering.price,
            zone: class.zone,
            capacity_type: class.capacity_type,
            is_launchable,
            reservation: class.reservation.map(|id| (id, capacity)),
        });
    }

    /// The class of an offering whose requirements were not met at this address before.
    fn class(&mut self, offering: &'a Offering) -> u32 {
        let next = self.classes.len() as u32;
        let place = *self.by_content.entry(&offering.requirements).or_insert(next);
        if place == next {
            let is_reserved = offering.is_reserved(self.vocabulary);
            let key = reservation_key(&offering.requirements, self.vocabulary).filter(|_| is_reserved);
            self.has_reserved |= key.is_some();
            self.classes.push(Draft {
                requirements: &offering.requirements,
                rows: Vec::new(),
                zone: offering.value(KeyId::ZONE),
                capacity_type: offering.value(KeyId::CAPACITY_TYPE),
                is_reserved,
                reservation: key.and_then(|key| offering.value(key)),
            });
        }
        self.by_address.insert(offering.requirements.address(), place);
        place
    }

    pub(super) fn finish(self, words: usize) -> (Vec<OfferClass>, Vec<Offer>, bool) {
        let class = |draft: Draft<'_>| {
            let mut rows = vec![0; words].into_boxed_slice();
            let mut launchable = rows.clone();
            for (row, is_launchable) in draft.rows {
                put(&mut rows, row as usize);
                if is_launchable {
                    put(&mut launchable, row as usize);
                }
            }
            OfferClass {
                requirements: draft.requirements.clone(),
                rows,
                launchable,
                capacity_type: draft.capacity_type,
            }
        };
        let classes = self.classes.into_iter().map(class).collect();
        (classes, self.offers, self.has_reserved)
    }
}

/// The label that names a reservation: each provider has its own, all end alike.
pub(crate) fn reservation_key(offering: &Requirements, vocabulary: &Vocabulary) -> Option<KeyId> {
    let keys = offering.iter().map(model::requirement::Requirement::key);
    keys.into_iter()
        .find(|key| vocabulary.key_name(*key).ends_with("reservation-id"))
}

impl Index {
    /// A type's cheapest launch among the passing classes: a position in [`Index::offers`].
    pub(crate) fn cheapest(&self, entry: u32, passing: &[u64]) -> Option<u32> {
        let first = self.offers.partition_point(|offer| offer.entry < entry);
        let of_type = self.offers.iter().enumerate().skip(first);
        of_type
            .take_while(|(_, offer)| offer.entry == entry)
            .filter(|(_, offer)| offer.is_launchable && has(passing, offer.class as usize))
            .min_by_key(|(at, offer)| (offer.price, *at))
            .map(|(at, _)| at as u32)
    }

    /// All types, cheapest launch among the passing classes first; those without one last. Ties go by name, so
    /// that the order of the catalogue does not matter.
    pub(crate) fn by_price(&self, passing: &[u64]) -> PriceOrder {
        let mut is_seen = vec![false; self.types.len()];
        let mut entries = Vec::with_capacity(self.types.len());
        let mut offers = Vec::with_capacity(self.types.len());
        for at in self.cheapest_first() {
            let offer = &self.offers[*at as usize];
            if has(passing, offer.class as usize) && !std::mem::replace(&mut is_seen[offer.entry as usize], true) {
                entries.push(offer.entry);
                offers.push(Some(*at));
            }
        }
        let left = (0..).zip(&is_seen).filter(|(_, is_seen)| !**is_seen);
        let mut left: Vec<u32> = left.map(|(entry, _)| entry).collect();
        left.sort_by_key(|entry| &self.types[*entry as usize].name);
        entries.extend(left);
        offers.resize(entries.len(), None);
        PriceOrder {
            entries: entries.into(),
            offers: offers.into(),
        }
    }

    /// Launchable offers, cheapest first; of equally cheap ones by the name of the type.
    fn cheapest_first(&self) -> &[u32] {
        self.cheapest_first.get_or_init(|| {
            let launchable = self.offers.iter().zip(0..).filter(|(offer, _)| offer.is_launchable);
            let key = |(offer, at): (&Offer, u32)| (offer.price, &self.types[offer.entry as usize].name, at);
            let mut order: Vec<_> = launchable.map(key).collect();
            order.sort_unstable();
            order.into_iter().map(|(_, _, at)| at).collect()
        })
    }
}
