//! Which instance types fit: every question about a catalogue turned into a few ANDs over bit masks.
//!
//! A row is a shape of a type: most types have one, a type whose offerings differ in capacity has one per shape, because
//! a pod must fit a shape that also has a compatible offering. A mask is a set of rows.

mod column;
mod keys;
mod offers;

use std::sync::Arc;

use model::{
    instance_type::InstanceType,
    requirement::Requirements,
    resources::ResourceName,
    vocabulary::{KeyId, Vocabulary},
};
use rustc_hash::FxHashMap;

pub(crate) use column::Column;
use keys::KeyRows;
pub(crate) use offers::{Offer, OfferClass, PricedType, reservation_key};

use crate::{
    bitmap::{has, positions, put, words_for},
    lanes::{self, Lanes},
};

/// A set of rows.
pub(crate) type Mask = Box<[u64]>;

/// All instance types of a run, and what narrows them.
#[derive(Debug)]
pub(crate) struct Index {
    pub(crate) types: Vec<Arc<InstanceType>>,
    /// The type of each row; rows of a type are neighbours.
    pub(crate) rows: Vec<u32>,
    /// The first row of each type, and one past the last row of the last.
    first_rows: Vec<u32>,
    /// Words of a mask.
    pub(crate) words: usize,
    /// What pods may use of each row, lane by lane.
    allocatable: Vec<Vec<i64>>,
    /// The same, to find rows by.
    columns: Vec<Column>,
    /// What a NodePool's limits count, for resources that are limited.
    capacity: FxHashMap<ResourceName, Column>,
    keys: FxHashMap<KeyId, KeyRows>,
    pub(crate) classes: Vec<OfferClass>,
    pub(crate) offers: Vec<Offer>,
    /// Whether some offering is reserved capacity.
    pub(crate) has_reserved: bool,
}

impl Index {
    /// An index over types. Resources named in `limited` can be compared with limits.
    pub(crate) fn new(
        types: Vec<Arc<InstanceType>>,
        lanes: &Lanes,
        limited: &[ResourceName],
        vocabulary: &Vocabulary,
    ) -> Self {
        let (mut rows, mut allocatable) = (Vec::new(), Vec::new());
        let mut offers = offers::Builder::new(vocabulary);
        let mut first_rows = Vec::with_capacity(types.len() + 1);
        for (at, entry) in (0_u32..).zip(&types) {
            first_rows.push(rows.len() as u32);
            for row in entry.allocatable_rows() {
                let is_overdrawn = row.allocatable.iter().any(|(_, quantity)| quantity.is_negative());
                if row.offerings.is_empty() || is_overdrawn {
                    continue;
                }
                for offering in &row.offerings {
                    offers.add(at, rows.len(), offering);
                }
                rows.push(at);
                allocatable.push(lanes.offered(&row.allocatable));
            }
        }
        first_rows.push(rows.len() as u32);
        let words = words_for(rows.len());
        let columns = (0..lanes.len())
            .map(|lane| Column::new(allocatable.iter().map(|row| row[lane]), words))
            .collect();
        let capacity = |name: &ResourceName| {
            let of_row = |at: &u32| lanes::offered(name, types[*at as usize].capacity.amount(name.as_str()));
            (name.clone(), Column::new(rows.iter().map(of_row), words))
        };
        let capacity = limited.iter().map(capacity).collect();
        let keys = keys::by_key(&types, &rows, words);
        let (classes, offers, has_reserved) = offers.finish(words);
        Self {
            types,
            rows,
            first_rows,
            words,
            allocatable,
            columns,
            capacity,
            keys,
            classes,
            offers,
            has_reserved,
        }
    }

    pub(crate) fn empty_mask(&self) -> Mask {
        vec![0; self.words].into_boxed_slice()
    }

    /// The rows of some types.
    pub(crate) fn rows_of(&self, is_wanted: impl Fn(u32) -> bool) -> Mask {
        let mut mask = self.empty_mask();
        for (row, entry) in self.rows.iter().enumerate() {
            if is_wanted(*entry) {
                put(&mut mask, row);
            }
        }
        mask
    }

    /// Whether some row of the type is in the mask.
    #[inline]
    pub(crate) fn has_type(&self, mask: &[u64], entry: u32) -> bool {
        let (from, to) = (self.first_rows[entry as usize], self.first_rows[entry as usize + 1]);
        (from..to).any(|row| has(mask, row as usize))
    }

    /// The types of a mask, in catalogue order.
    pub(crate) fn types_in<'a>(&'a self, mask: &'a [u64]) -> impl Iterator<Item = u32> + 'a {
        let mut last = None;
        positions(mask)
            .map(|row| self.rows[row])
            .filter(move |entry| last.replace(*entry) != Some(*entry))
    }

    /// What pods may use of a row, lane by lane.
    pub(crate) fn allocatable(&self, row: usize) -> &[i64] {
        &self.allocatable[row]
    }

    pub(crate) fn column(&self, lane: usize) -> &Column {
        &self.columns[lane]
    }

    pub(crate) fn capacity(&self, name: &ResourceName) -> Option<&Column> {
        self.capacity.get(name)
    }

    /// Which offer classes a claim with these requirements may launch, as a set of classes.
    pub(crate) fn compatible_classes(&self, claim: &Requirements, vocabulary: &Vocabulary) -> Box<[u64]> {
        let mut passing = vec![0; words_for(self.classes.len())].into_boxed_slice();
        for (at, class) in self.classes.iter().enumerate() {
            if class.is_compatible(claim, vocabulary) {
                put(&mut passing, at);
            }
        }
        passing
    }
}
