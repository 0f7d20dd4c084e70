//! Which instance types fit: every question about a catalogue turned into a few ANDs over bit masks.
//!
//! A row is a shape of a type: most types have one, a type whose offerings differ in capacity has one per shape, because
//! a pod must fit a shape that also has a compatible offering. A mask is a set of rows.

mod column;
mod keys;
mod offers;

use std::sync::{Arc, OnceLock};

use model::{
    instance_type::InstanceType, object::InstanceTypeName, requirement::Requirements, resources::ResourceName,
    vocabulary::Vocabulary,
};
use rustc_hash::FxHashMap;

pub(crate) use column::Column;
use keys::KeyRows;
pub(crate) use offers::{Offer, OfferClass, PriceOrder, reservation_key};

use crate::{
    bitmap::{has, positions, put, words_for},
    lanes::{self, Lanes},
    supply::Shape,
};

/// A set of rows.
pub(crate) type Mask = Box<[u64]>;

/// All instance types of a run, and what narrows them.
#[derive(Debug)]
pub(crate) struct Index {
    pub(crate) types: Vec<Arc<InstanceType>>,
    names: Arc<[InstanceTypeName]>,
    /// The type of each row; rows of a type are neighbours.
    pub(crate) rows: Vec<u32>,
    /// The first row of each type, and one past the last row of the last.
    first_rows: Vec<u32>,
    /// Words of a mask.
    pub(crate) words: usize,
    /// What pods may use of each row, lane by lane, row by row.
    allocatable: Vec<i64>,
    /// The same, to find rows by.
    columns: Vec<Column>,
    /// What a NodePool's limits count, for resources that are limited.
    capacity: FxHashMap<ResourceName, Column>,
    /// By the number of the label, once somebody asked: most labels nobody asks about.
    keys: Box<[OnceLock<Option<KeyRows>>]>,
    pub(crate) classes: Vec<OfferClass>,
    pub(crate) offers: Vec<Offer>,
    /// All offers by the name of their type, once somebody asked.
    by_name: OnceLock<Box<[u32]>>,
    /// What each type has, lane by lane, type by type, once somebody asked.
    capacities: OnceLock<Box<[i64]>>,
    /// Launchable offers, cheapest first, once somebody asked.
    cheapest_first: OnceLock<Box<[u32]>>,
    /// Whether some offering is reserved capacity.
    pub(crate) has_reserved: bool,
    /// Whether some type's price or capacity comes from an overlay.
    pub(crate) has_overlaid: bool,
    lanes: Lanes,
    limited: Vec<ResourceName>,
}

impl Index {
    /// An index over types with their shapes. Resources named in `limited` can be compared with limits.
    pub(crate) fn new(
        types: Vec<Arc<InstanceType>>,
        shapes: &[Arc<[Shape]>],
        lanes: &Lanes,
        limited: Vec<ResourceName>,
        vocabulary: &Vocabulary,
    ) -> Self {
        let (mut rows, mut allocatable) = (Vec::with_capacity(types.len()), Vec::new());
        let mut offers = offers::Builder::new(vocabulary);
        let mut first_rows = Vec::with_capacity(types.len() + 1);
        for (at, (entry, shapes)) in (0_u32..).zip(types.iter().zip(shapes)) {
            first_rows.push(rows.len() as u32);
            for shape in shapes.iter() {
                if shape.offerings.is_empty() || shape.is_overdrawn {
                    continue;
                }
                for offering in &shape.offerings {
                    offers.add(at, rows.len(), &entry.offerings[*offering as usize]);
                }
                rows.push(at);
                lanes.offered_into(&shape.allocatable, &mut allocatable);
            }
        }
        first_rows.push(rows.len() as u32);
        let words = words_for(rows.len());
        let columns = (0..lanes.len())
            .map(|lane| Column::new(allocatable.iter().skip(lane).step_by(lanes.len()).copied(), words))
            .collect();
        let capacity = |name: &ResourceName| {
            let of_row = |at: &u32| lanes::offered(name, types[*at as usize].capacity.amount(name.as_str()));
            (name.clone(), Column::new(rows.iter().map(of_row), words))
        };
        let capacity = limited.iter().map(capacity).collect();
        let (classes, offers, has_reserved) = offers.finish(words);
        Self {
            has_overlaid: types
                .iter()
                .any(|entry| entry.is_capacity_overlaid || entry.is_price_overlaid()),
            names: types
                .iter()
                .map(|entry| InstanceTypeName::from(Arc::clone(&entry.name)))
                .collect(),
            keys: (0..vocabulary.key_count()).map(|_| OnceLock::new()).collect(),
            types,
            rows,
            first_rows,
            words,
            allocatable,
            columns,
            capacity,
            classes,
            offers,
            by_name: OnceLock::new(),
            capacities: OnceLock::new(),
            cheapest_first: OnceLock::new(),
            has_reserved,
            lanes: lanes.clone(),
            limited,
        }
    }

    /// Whether this is the index of these very types, over these resources.
    pub(crate) fn is_of(&self, types: &[Arc<InstanceType>], lanes: &Lanes, limited: &[ResourceName]) -> bool {
        let same = |(a, b): (&Arc<InstanceType>, &Arc<InstanceType>)| Arc::ptr_eq(a, b);
        self.types.len() == types.len()
            && self.types.iter().zip(types).all(same)
            && self.lanes == *lanes
            && self.limited == limited
    }

    /// All offers by the name of their type, so that the order of the catalogue does not decide between equals.
    pub(crate) fn offers_by_name(&self) -> &[u32] {
        self.by_name.get_or_init(|| {
            let mut listed: Vec<u32> = (0..self.offers.len() as u32).collect();
            listed.sort_by_key(|at| {
                let offer = &self.offers[*at as usize];
                (&self.types[offer.entry as usize].name, *at)
            });
            listed.into_boxed_slice()
        })
    }

    /// What a type has, lane by lane.
    pub(crate) fn capacity_lanes(&self, entry: usize) -> &[i64] {
        let lanes = self.lanes.len();
        let all = self.capacities.get_or_init(|| {
            let mut all = Vec::with_capacity(self.types.len() * lanes);
            for entry in &self.types {
                self.lanes.offered_into(&entry.capacity, &mut all);
            }
            all.into_boxed_slice()
        });
        &all[entry * lanes..(entry + 1) * lanes]
    }

    /// Whether every type has one row, so that rows and types are the same.
    pub(crate) fn has_one_row_each(&self) -> bool {
        self.rows.len() == self.types.len()
    }

    pub(crate) fn empty_mask(&self) -> Mask {
        vec![0; self.words].into_boxed_slice()
    }

    /// The rows of some types.
    pub(crate) fn rows_of(&self, types: impl IntoIterator<Item = u32>) -> Mask {
        let mut mask = self.empty_mask();
        for entry in types {
            let (from, to) = (self.first_rows[entry as usize], self.first_rows[entry as usize + 1]);
            (from..to).for_each(|row| put(&mut mask, row as usize));
        }
        mask
    }

    /// Whether some row of the type is in the mask.
    #[inline]
    pub(crate) fn has_type(&self, mask: &[u64], entry: u32) -> bool {
        let (from, to) = (self.first_rows[entry as usize], self.first_rows[entry as usize + 1]);
        (from..to).any(|row| has(mask, row as usize))
    }

    /// The names of all types.
    pub(crate) fn names(&self) -> Arc<[InstanceTypeName]> {
        Arc::clone(&self.names)
    }

    /// The types of a mask of rows, a bit each.
    pub(crate) fn type_mask(&self, rows: &[u64]) -> Arc<[u64]> {
        let mut types = vec![0; words_for(self.types.len())];
        self.types_in(rows).for_each(|entry| put(&mut types, entry as usize));
        types.into()
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
        let lanes = self.columns.len();
        &self.allocatable[row * lanes..(row + 1) * lanes]
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
