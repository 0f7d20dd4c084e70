//! The API's map of resource names to quantities: what pods ask for, what nodes have, what pools may use.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, MapAccess, Visitor},
};

use super::ResourceName;
use crate::quantity::Quantity;

/// Quantities by resource name, sorted by name. A list with no entries holds no heap memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ResourceList {
    entries: Vec<(ResourceName, Quantity)>,
}

impl ResourceList {
    /// A list that names nothing.
    pub const EMPTY: Self = Self { entries: Vec::new() };

    /// The quantity of a resource, if the list names it.
    pub fn get(&self, name: &str) -> Option<Quantity> {
        self.position(name)
            .ok()
            .and_then(|at| self.entries.get(at))
            .map(|(_, quantity)| *quantity)
    }

    /// The same by a name that was read before: lists are short, and such names are compared quickly.
    pub fn get_named(&self, name: &ResourceName) -> Option<Quantity> {
        let mut entries = self.entries.iter();
        entries.find(|(entry, _)| entry == name).map(|(_, quantity)| *quantity)
    }

    /// The quantity of a resource; nothing when the list does not name it.
    pub fn amount(&self, name: &str) -> Quantity {
        self.get(name).unwrap_or(Quantity::ZERO)
    }

    /// Names a resource, or gives a named one another quantity.
    pub fn set(&mut self, name: ResourceName, quantity: Quantity) {
        self.update(name, |_| quantity);
    }

    /// Takes a resource out of the list.
    pub fn remove(&mut self, name: &str) -> Option<Quantity> {
        self.position(name).ok().map(|at| self.entries.remove(at).1)
    }

    /// Whether it names nothing.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many resources it names.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// The entries in the order of their names.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&ResourceName, Quantity)> {
        self.entries.iter().map(|(name, quantity)| (name, *quantity))
    }

    /// Adds every quantity of the other list; resources named there only are taken over.
    pub fn add(&mut self, other: &Self) {
        self.merge(other, |current, quantity| {
            current.map_or(quantity, |current| current + quantity)
        });
    }

    /// Takes every quantity of the other list away; a resource named there only becomes negative.
    pub fn subtract_from(&mut self, other: &Self) {
        self.merge(other, |current, quantity| current.unwrap_or(Quantity::ZERO) - quantity);
    }

    /// What is left of this list without the other; resources only the other names are ignored.
    #[must_use]
    pub fn subtract(&self, other: &Self) -> Self {
        self.map(|name, quantity| quantity - other.amount(name.as_str()))
    }

    /// The same resources with other quantities.
    #[must_use]
    pub fn map(&self, mut quantity: impl FnMut(&ResourceName, Quantity) -> Quantity) -> Self {
        let entries = self.entries.iter();
        Self {
            entries: entries
                .map(|(name, old)| (name.clone(), quantity(name, *old)))
                .collect(),
        }
    }

    /// Raises every quantity to at least the other list's; resources named there only are taken over.
    pub fn raise_to(&mut self, other: &Self) {
        self.merge(other, |current, quantity| {
            current.map_or(quantity, |current| current.max(quantity))
        });
    }

    /// The smaller quantity of each resource that both lists name.
    #[must_use]
    pub fn min(&self, other: &Self) -> Self {
        let smaller = |(name, quantity): (&ResourceName, Quantity)| {
            other
                .get(name.as_str())
                .map(|theirs| (name.clone(), quantity.min(theirs)))
        };
        self.iter().filter_map(smaller).collect()
    }

    /// This list with the other's entries put over it.
    #[must_use]
    pub fn overlaid_with(&self, other: &Self) -> Self {
        if other.is_empty() {
            return self.clone();
        }
        self.iter()
            .chain(other.iter())
            .map(|(name, quantity)| (name.clone(), quantity))
            .collect()
    }

    /// Whether all of it fits in `total`. Nothing fits in a total that is overdrawn in any resource, even one that
    /// is not asked for.
    pub fn fits(&self, total: &Self) -> bool {
        total.iter().all(|(_, quantity)| !quantity.is_negative())
            && self
                .iter()
                .all(|(name, quantity)| quantity <= total.amount(name.as_str()))
    }

    fn position(&self, name: &str) -> Result<usize, usize> {
        self.entries.binary_search_by(|(entry, _)| entry.as_str().cmp(name))
    }

    /// Gives every resource of the other list a new quantity; both lists are sorted, so one walk does.
    fn merge(&mut self, other: &Self, change: impl Fn(Option<Quantity>, Quantity) -> Quantity) {
        let mut at = 0;
        for (name, quantity) in &other.entries {
            while self.entries.get(at).is_some_and(|(have, _)| have < name) {
                at += 1;
            }
            match self.entries.get_mut(at) {
                Some((have, current)) if have == name => *current = change(Some(*current), *quantity),
                _ => self.entries.insert(at, (name.clone(), change(None, *quantity))),
            }
        }
    }

    fn update(&mut self, name: ResourceName, change: impl FnOnce(Option<Quantity>) -> Quantity) {
        match self.position(name.as_str()) {
            Ok(at) => {
                if let Some((_, quantity)) = self.entries.get_mut(at) {
                    *quantity = change(Some(*quantity));
                }
            }
            Err(at) => self.entries.insert(at, (name, change(None))),
        }
    }
}

/// Later entries of the same name win.
impl FromIterator<(ResourceName, Quantity)> for ResourceList {
    fn from_iter<I: IntoIterator<Item = (ResourceName, Quantity)>>(entries: I) -> Self {
        let mut list = Self::EMPTY;
        for (name, quantity) in entries {
            list.set(name, quantity);
        }
        list.entries.shrink_to_fit();
        list
    }
}

impl fmt::Display for ResourceList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries: Vec<_> = self
            .iter()
            .map(|(name, quantity)| format!("\"{name}\":\"{quantity}\""))
            .collect();
        write!(f, "{{{}}}", entries.join(","))
    }
}

impl Serialize for ResourceList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for ResourceList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ListVisitor)
    }
}

struct ListVisitor;

impl<'de> Visitor<'de> for ListVisitor {
    type Value = ResourceList;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of resource names to quantities")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ResourceList, A::Error> {
        let mut entries = Vec::new();
        while let Some(name) = map.next_key::<ResourceName>()? {
            let quantity = map
                .next_value()
                .map_err(|error| A::Error::custom(format_args!("{name}: {error}")))?;
            entries.push((name, quantity));
        }
        Ok(entries.into_iter().collect())
    }

    fn visit_unit<E: Error>(self) -> Result<ResourceList, E> {
        Ok(ResourceList::EMPTY)
    }
}
