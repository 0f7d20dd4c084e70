//! Where and as what a type can be had, and in what order of price.

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

/// A type and its cheapest launch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PricedType {
    pub(crate) entry: u32,
    /// Position in [`Index::offers`]; none when nothing can be launched now.
    pub(crate) offer: Option<u32>,
}

pub(super) struct Builder<'a> {
    vocabulary: &'a Vocabulary,
    classes: Vec<(Requirements, Vec<usize>)>,
    places: FxHashMap<Requirements, u32>,
    offers: Vec<Offer>,
    reservation_keys: Vec<KeyId>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(vocabulary: &'a Vocabulary) -> Self {
        Self {
            vocabulary,
            classes: Vec::new(),
            places: FxHashMap::default(),
            offers: Vec::new(),
            reservation_keys: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, entry: u32, row: usize, offering: &Offering) {
        let place = if let Some(place) = self.places.get(&offering.requirements) {
            *place
        } else {
            let place = self.classes.len() as u32;
            self.places.insert(offering.requirements.clone(), place);
            self.classes.push((offering.requirements.clone(), Vec::new()));
            place
        };
        self.classes[place as usize].1.push(row);
        let is_reserved = offering.is_reserved(self.vocabulary);
        let reservation = is_reserved.then(|| self.reservation(offering)).flatten();
        self.offers.push(Offer {
            entry,
            row: row as u32,
            class: place,
            price: offering.price,
            zone: offering.value(KeyId::ZONE),
            capacity_type: offering.value(KeyId::CAPACITY_TYPE),
            is_launchable: offering.is_launchable(self.vocabulary),
            reservation: reservation.map(|id| (id, offering.reservation_capacity)),
        });
    }

    fn reservation(&mut self, offering: &Offering) -> Option<ValueId> {
        let key = reservation_key(&offering.requirements, self.vocabulary)?;
        if !self.reservation_keys.contains(&key) {
            self.reservation_keys.push(key);
        }
        offering.value(key)
    }

    pub(super) fn finish(self, words: usize) -> (Vec<OfferClass>, Vec<Offer>, bool) {
        let class = |(requirements, members): (Requirements, Vec<usize>)| {
            let mut rows = vec![0; words].into_boxed_slice();
            for row in members {
                put(&mut rows, row);
            }
            OfferClass { requirements, rows }
        };
        let has_reserved = !self.reservation_keys.is_empty();
        (self.classes.into_iter().map(class).collect(), self.offers, has_reserved)
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
    pub(crate) fn by_price(&self, passing: &[u64]) -> Vec<PricedType> {
        let mut cheapest: Vec<Option<u32>> = vec![None; self.types.len()];
        for (at, offer) in (0_u32..).zip(&self.offers) {
            let best = &mut cheapest[offer.entry as usize];
            let is_better = |best: u32| self.offers[best as usize].price > offer.price;
            if offer.is_launchable && has(passing, offer.class as usize) && best.is_none_or(is_better) {
                *best = Some(at);
            }
        }
        let mut order: Vec<PricedType> = (0..)
            .zip(cheapest)
            .map(|(entry, offer)| PricedType { entry, offer })
            .collect();
        let key = |priced: &PricedType| {
            (
                priced.offer.is_none(),
                priced.offer.map(|at| self.offers[at as usize].price),
                &self.types[priced.entry as usize].name,
            )
        };
        order.sort_by(|a, b| key(a).cmp(&key(b)));
        order
    }
}
