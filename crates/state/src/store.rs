//! One kind's objects: the newest known of each, grouped for lookup, and the table a snapshot shares.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use model::{
    object::{Object, ObjectKey, ResourceVersion, Text},
    snapshot::Table,
};
use rustc_hash::FxHashMap;

use crate::Transition;

/// The objects of one kind.
#[derive(Debug)]
pub struct Store<T> {
    rows: BTreeMap<ObjectKey, Arc<T>>,
    /// One index for each of the kind's groupings.
    groups: Vec<FxHashMap<Text, BTreeSet<ObjectKey>>>,
    table: Table<T>,
    /// What changed since the table was made.
    dirty: BTreeSet<ObjectKey>,
    is_listed: bool,
}

impl<T: Object> Default for Store<T> {
    fn default() -> Self {
        Self {
            rows: BTreeMap::new(),
            groups: T::GROUPINGS.iter().map(|_| FxHashMap::default()).collect(),
            table: Table::default(),
            dirty: BTreeSet::new(),
            is_listed: false,
        }
    }
}

impl<T: Object> Store<T> {
    /// The object of a key.
    pub fn get(&self, key: &ObjectKey) -> Option<&Arc<T>> {
        self.rows.get(key)
    }

    /// All objects in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.rows.values()
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// True once the kind has been listed in full.
    pub fn is_listed(&self) -> bool {
        self.is_listed
    }

    /// The members of a group, in the order of their keys. `grouping` is a position in [`Object::GROUPINGS`].
    pub fn group(&self, grouping: usize, name: &str) -> impl Iterator<Item = &Arc<T>> {
        let keys = self.groups.get(grouping).and_then(|index| index.get(name));
        keys.into_iter().flatten().filter_map(|key| self.rows.get(key))
    }

    /// Takes in a newer version of an object; none when what is known is as new.
    pub(crate) fn apply(&mut self, object: T) -> Option<Transition<T>> {
        let key = object.metadata().key();
        let known = self.rows.get(&key);
        if known.is_some_and(|known| !supersedes(&object, known)) {
            return None;
        }
        Some(self.put(key, Some(Arc::new(object))))
    }

    /// Takes an object out; none when it was not there, or another of its name has come since.
    pub(crate) fn delete(&mut self, last: &T) -> Option<Transition<T>> {
        let key = last.metadata().key();
        let known = self.rows.get(&key)?;
        let another = known.metadata().uid != last.metadata().uid && supersedes(known.as_ref(), last);
        (!another).then(|| self.put(key, None))
    }

    /// Ends a list: what it did not name and is not newer than it is gone.
    pub(crate) fn end_list(&mut self, named: &BTreeSet<ObjectKey>, version: &ResourceVersion) -> Vec<Transition<T>> {
        self.is_listed = true;
        let newer = |object: &T| match (&object.metadata().resource_version, version) {
            (ResourceVersion::Number(own), ResourceVersion::Number(listed)) => own > listed,
            _ => false,
        };
        let gone: Vec<ObjectKey> = self
            .rows
            .iter()
            .filter(|(key, object)| !named.contains(*key) && !newer(object))
            .map(|(key, _)| key.clone())
            .collect();
        gone.into_iter().map(|key| self.put(key, None)).collect()
    }

    /// The table of all objects as they are now.
    pub(crate) fn table(&mut self) -> Table<T> {
        if !self.dirty.is_empty() {
            let (kept, gone): (Vec<_>, Vec<_>) = std::mem::take(&mut self.dirty)
                .into_iter()
                .partition(|key| self.rows.contains_key(key));
            let kept = kept.iter().filter_map(|key| self.rows.get(key)).map(Arc::clone);
            self.table = self.table.with(kept).without(gone);
        }
        self.table.clone()
    }

    fn put(&mut self, key: ObjectKey, after: Option<Arc<T>>) -> Transition<T> {
        let before = match &after {
            Some(object) => self.rows.insert(key.clone(), Arc::clone(object)),
            None => self.rows.remove(&key),
        };
        self.regroup(&key, before.as_deref(), after.as_deref());
        self.dirty.insert(key);
        Transition { before, after }
    }

    fn regroup(&mut self, key: &ObjectKey, before: Option<&T>, after: Option<&T>) {
        for (of, index) in T::GROUPINGS.iter().zip(&mut self.groups) {
            let (old, new) = (before.and_then(of), after.and_then(of));
            if old == new {
                continue;
            }
            if let Some(members) = old.and_then(|name| index.get_mut(name)) {
                members.remove(key);
            }
            if let Some(name) = old.filter(|name| index.get(*name).is_some_and(BTreeSet::is_empty)) {
                index.remove(name);
            }
            if let Some(name) = new {
                index.entry(name.clone()).or_default().insert(key.clone());
            }
        }
    }
}

/// Whether an object is to replace what is known of it. Versions that are not numbers cannot be compared: the last one wins.
fn supersedes<T: Object>(object: &T, known: &T) -> bool {
    match (&object.metadata().resource_version, &known.metadata().resource_version) {
        (ResourceVersion::Number(new), ResourceVersion::Number(old)) => new > old,
        (new, old) => new != old,
    }
}
