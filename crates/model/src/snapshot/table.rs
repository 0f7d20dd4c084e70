//! One kind's objects, sorted by key: an immutable base shared by every overlay, and the few rows an overlay changes.
//!
//! "Without these nodes" must cost what the nodes cost, not what the cluster does, because consolidation asks it
//! thousands of times. So an overlay holds its changes beside the base, and looks there first.

use std::{
    cmp::Ordering,
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use crate::object::{Object, ObjectKey, Text};

/// An immutable map from key to object. Cloning it is two reference counts.
#[derive(Debug)]
pub struct Table<T> {
    base: Arc<Base<T>>,
    changes: Arc<[Change<T>]>,
    len: usize,
}

#[derive(Debug)]
struct Base<T> {
    rows: Box<[Arc<T>]>,
    /// One index per grouping of the kind, built when it is first asked for and then shared by all overlays.
    groups: Box<[OnceLock<Index>]>,
}

/// Positions of rows by the name of their group.
type Index = HashMap<Text, Box<[u32]>>;

#[derive(Debug)]
struct Change<T> {
    key: ObjectKey,
    /// None takes the row away.
    object: Option<Arc<T>>,
}

/// Past this share of the base the changes are folded into a new base, so that lookups stay fast.
const FOLD_SHARE: usize = 32;
/// Below this many changes folding is never worth it.
const FOLD_LEAST: usize = 64;

impl<T> Clone for Table<T> {
    fn clone(&self) -> Self {
        Self {
            base: Arc::clone(&self.base),
            changes: Arc::clone(&self.changes),
            len: self.len,
        }
    }
}

impl<T> Clone for Change<T> {
    fn clone(&self) -> Self {
        Self {
            key: self.key.clone(),
            object: self.object.clone(),
        }
    }
}

impl<T: Object> Default for Table<T> {
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

impl<T: Object> Table<T> {
    /// A table of these objects; of two with the same key the later one stays.
    pub fn new(mut objects: Vec<Arc<T>>) -> Self {
        objects.reverse();
        objects.sort_by(|a, b| order(a.as_ref(), b.as_ref()));
        objects.dedup_by(|later, kept| order(later.as_ref(), kept.as_ref()).is_eq());
        Self::from_sorted(objects.into())
    }

    fn from_sorted(rows: Box<[Arc<T>]>) -> Self {
        let groups = T::GROUPINGS.iter().map(|_| OnceLock::new()).collect();
        Self {
            len: rows.len(),
            base: Arc::new(Base { rows, groups }),
            changes: Arc::default(),
        }
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All objects in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.merged(self.base.rows.iter())
    }

    /// The object of a key.
    pub fn get(&self, key: &ObjectKey) -> Option<&Arc<T>> {
        self.find(&key.namespace, &key.name)
    }

    /// The object of a namespace and name; the namespace is empty for cluster-scoped kinds.
    pub fn find(&self, namespace: &str, name: &str) -> Option<&Arc<T>> {
        if let Ok(at) = self.changes.binary_search_by(|change| change.compare(namespace, name)) {
            return self.changes.get(at)?.object.as_ref();
        }
        self.base.find(namespace, name)
    }

    /// The members of a group, in the order of their keys. `grouping` is a position in [`Object::GROUPINGS`].
    pub(super) fn group<'a, 'g>(
        &'a self,
        grouping: usize,
        group: &'g str,
    ) -> impl Iterator<Item = &'a Arc<T>> + use<'a, 'g, T> {
        let belongs = move |object: &&'a Arc<T>| {
            T::GROUPINGS
                .get(grouping)
                .and_then(|of| of(object))
                .is_some_and(|name| **name == *group)
        };
        self.merged(self.base.group(grouping, group)).filter(belongs)
    }

    /// This table with these objects, new or instead of those with the same keys.
    #[must_use]
    pub fn with(&self, objects: impl IntoIterator<Item = Arc<T>>) -> Self {
        let change = |object: Arc<T>| Change {
            key: object.metadata().key(),
            object: Some(object),
        };
        self.changed(objects.into_iter().map(change).collect())
    }

    /// This table without the objects of these keys.
    #[must_use]
    pub fn without(&self, keys: impl IntoIterator<Item = ObjectKey>) -> Self {
        self.changed(keys.into_iter().map(|key| Change { key, object: None }).collect())
    }

    /// True when both rest on the same base, so that one costs nothing beside the other but its changes.
    pub fn shares_base(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.base, &other.base)
    }

    fn changed(&self, new: Vec<Change<T>>) -> Self {
        // The order is what makes later changes win over earlier ones of the same key.
        let mut changes: Vec<_> = new.into_iter().rev().chain(self.changes.iter().cloned()).collect();
        changes.sort_by(|a, b| a.key.cmp(&b.key));
        changes.dedup_by(|earlier, kept| earlier.key == kept.key);
        changes.retain(|change| change.object.is_some() || self.base.holds(&change.key));
        let added = changes
            .iter()
            .filter(|change| change.object.is_some() && !self.base.holds(&change.key))
            .count();
        let removed = changes.iter().filter(|change| change.object.is_none()).count();
        let len = self.base.rows.len() + added - removed;
        let table = Self {
            base: Arc::clone(&self.base),
            changes: changes.into(),
            len,
        };
        table.folded()
    }

    fn folded(self) -> Self {
        if self.changes.len() <= FOLD_LEAST.max(self.base.rows.len() / FOLD_SHARE) {
            return self;
        }
        Self::from_sorted(self.iter().cloned().collect())
    }

    fn merged<'a, I: Iterator<Item = &'a Arc<T>>>(&'a self, base: I) -> Merged<'a, T, I> {
        Merged {
            base: base.peekable(),
            changes: &self.changes,
        }
    }
}

impl<T: Object + Eq> PartialEq for Table<T> {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.iter().eq(other.iter())
    }
}

impl<T: Object> Base<T> {
    fn find(&self, namespace: &str, name: &str) -> Option<&Arc<T>> {
        let at = self
            .rows
            .binary_search_by(|row| order_to(row.as_ref(), namespace, name))
            .ok()?;
        self.rows.get(at)
    }

    fn holds(&self, key: &ObjectKey) -> bool {
        self.find(&key.namespace, &key.name).is_some()
    }

    fn group<'a>(&'a self, grouping: usize, group: &str) -> impl Iterator<Item = &'a Arc<T>> + use<'a, T> {
        let index = self.groups.get(grouping).zip(T::GROUPINGS.get(grouping));
        let members = index.and_then(|(index, of)| index.get_or_init(|| self.index(*of)).get(group));
        members
            .into_iter()
            .flatten()
            .filter_map(|at| self.rows.get(*at as usize))
    }

    fn index(&self, of: crate::object::Grouping<T>) -> Index {
        let mut groups: HashMap<Text, Vec<u32>> = HashMap::new();
        for (at, row) in (0u32..).zip(&self.rows) {
            if let Some(group) = of(row) {
                groups.entry(group.clone()).or_default().push(at);
            }
        }
        groups
            .into_iter()
            .map(|(group, members)| (group, members.into()))
            .collect()
    }
}

impl<T> Change<T> {
    fn compare(&self, namespace: &str, name: &str) -> Ordering {
        (*self.key.namespace)
            .cmp(namespace)
            .then_with(|| (*self.key.name).cmp(name))
    }
}

/// Rows of the base and of the changes in one order; a change hides the base row of its key.
struct Merged<'a, T, I: Iterator> {
    base: std::iter::Peekable<I>,
    changes: &'a [Change<T>],
}

impl<'a, T: Object, I: Iterator<Item = &'a Arc<T>>> Iterator for Merged<'a, T, I> {
    type Item = &'a Arc<T>;

    fn next(&mut self) -> Option<&'a Arc<T>> {
        loop {
            let Some((change, rest)) = self.changes.split_first() else {
                return self.base.next();
            };
            let row = self
                .base
                .peek()
                .map(|row| change.compare(&row.metadata().namespace, &row.metadata().name));
            match row {
                Some(Ordering::Greater) => return self.base.next(),
                Some(Ordering::Equal) => drop(self.base.next()),
                Some(Ordering::Less) | None => {}
            }
            self.changes = rest;
            if let Some(object) = &change.object {
                return Some(object);
            }
        }
    }
}

fn order<T: Object>(a: &T, b: &T) -> Ordering {
    order_to(a, &b.metadata().namespace, &b.metadata().name)
}

fn order_to<T: Object>(object: &T, namespace: &str, name: &str) -> Ordering {
    let metadata = object.metadata();
    (*metadata.namespace)
        .cmp(namespace)
        .then_with(|| (*metadata.name).cmp(name))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::object::{Metadata, NodeName, Pod};

    fn pod(name: u8, node: u8) -> Arc<Pod> {
        let metadata = Metadata {
            namespace: "ns".into(),
            name: format!("{name:03}").into(),
            ..Metadata::default()
        };
        Arc::new(Pod {
            metadata,
            node_name: Some(NodeName::from(format!("n{node}").as_str())),
            ..Pod::default()
        })
    }

    fn names<'a>(pods: impl Iterator<Item = &'a Arc<Pod>>) -> Vec<(String, String)> {
        pods.map(|pod| {
            (
                pod.metadata.name.to_string(),
                pod.node_name.clone().unwrap().to_string(),
            )
        })
        .collect()
    }

    proptest! {
        /// The model is a plain BTreeMap to which the same changes are made.
        #[test]
        fn an_overlaid_table_answers_like_a_rebuilt_one(
            base in prop::collection::vec((0u8..100, 0u8..4), 0..120),
            steps in prop::collection::vec(prop::collection::vec((0u8..100, prop::option::of(0u8..4)), 0..40), 0..5),
        ) {
            let mut table = Table::new(base.iter().map(|(name, node)| pod(*name, *node)).collect());
            let mut expected: BTreeMap<u8, u8> = base.into_iter().collect();
            for step in steps {
                for (name, node) in &step {
                    match node {
                        Some(node) => { expected.insert(*name, *node); }
                        None => { expected.remove(name); }
                    }
                }
                for (name, node) in step {
                    table = match node {
                        Some(node) => table.with([pod(name, node)]),
                        None => table.without([ObjectKey::new("ns", &format!("{name:03}"))]),
                    };
                }
            }
            let rebuilt: Vec<_> = expected.iter().map(|(name, node)| pod(*name, *node)).collect();
            prop_assert_eq!(names(table.iter()), names(rebuilt.iter()));
            prop_assert_eq!(table.len(), expected.len());
            for node in ["n0", "n1", "n2", "n3"] {
                let members = rebuilt.iter().filter(|pod| pod.node_name.as_ref().unwrap().as_str() == node);
                prop_assert_eq!(names(table.group(0, node)), names(members));
            }
            for name in 0..100 {
                let found = table.find("ns", &format!("{name:03}")).map(|pod| pod.node_name.clone().unwrap().to_string());
                prop_assert_eq!(found, expected.get(&name).map(|node| format!("n{node}")));
            }
        }
    }

    #[test]
    fn an_overlay_shares_its_base_until_it_outgrows_it() {
        let table = Table::new((0..=255).map(|name| pod(name, 0)).collect());
        let few = table.without([ObjectKey::new("ns", "001")]);
        let many = table.without((0..100).map(|name| ObjectKey::new("ns", &format!("{name:03}"))));
        assert_eq!((few.shares_base(&table), few.len()), (true, 255));
        assert_eq!((many.shares_base(&table), many.len()), (false, 156));
    }
}
