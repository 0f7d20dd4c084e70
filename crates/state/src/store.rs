//! One kind's objects: the newest known of each, grouped for lookup, and the table a snapshot shares.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use model::{
    digest::of_version,
    object::{Object, ObjectKey, ResourceVersion, Text},
    snapshot::Table,
};
use rustc_hash::FxHashMap;

use crate::{
    Transition,
    freshness::{Tombstones, later, order},
};

/// Past this share of the objects it is cheaper to build the table anew than to name what changed.
const REBUILD_SHARE: usize = 32;
/// Below this many changes naming them is always cheaper.
const REBUILD_LEAST: usize = 64;

/// The objects of one kind.
#[derive(Debug)]
pub struct Store<T> {
    rows: BTreeMap<ObjectKey, Arc<T>>,
    /// One index for each of the kind's groupings; members are in the order of their keys.
    groups: Vec<FxHashMap<Text, Vec<Arc<T>>>>,
    table: Table<T>,
    /// What changed since the table was made.
    outdated: Outdated,
    tombstones: Tombstones,
    /// What was not believed since the last list ended: the list may still bear it out.
    doubted: BTreeMap<ObjectKey, Arc<T>>,
    /// What was believed while a list is under way that follows one of the past: it may be what the list itself says.
    believed: BTreeSet<ObjectKey>,
    /// The newest version heard of.
    reached: u64,
    /// As of when the last list was; none before the first has ended.
    listed_at: Option<ResourceVersion>,
    /// What had been reached when the list under way began.
    listing_from: Option<u64>,
    /// How many lists in a row were older than what had been reached before they began.
    lists_of_the_past: u32,
    /// The numbers of all objects' versions, summed up.
    versions: u64,
}

/// Which objects changed since the table was made.
#[derive(Debug)]
enum Outdated {
    Keys(BTreeSet<ObjectKey>),
    /// So many that the table is built anew.
    All,
}

/// What to make of a version of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    News,
    Known,
    /// It is older than what is known.
    Doubtful,
}

impl<T: Object> Default for Store<T> {
    fn default() -> Self {
        Self {
            rows: BTreeMap::new(),
            groups: T::GROUPINGS.iter().map(|_| FxHashMap::default()).collect(),
            table: Table::default(),
            outdated: Outdated::Keys(BTreeSet::new()),
            tombstones: Tombstones::default(),
            doubted: BTreeMap::new(),
            believed: BTreeSet::new(),
            reached: 0,
            listed_at: None,
            listing_from: None,
            lists_of_the_past: 0,
            versions: 0,
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
        self.listed_at.is_some()
    }

    /// True when the last list was older than what we had seen before it began. It was not believed; another one
    /// that says the same will be.
    pub fn is_list_in_doubt(&self) -> bool {
        self.lists_of_the_past > 0
    }

    /// The members of a group, in the order of their keys. `grouping` is a position in [`Object::GROUPINGS`].
    pub fn group(&self, grouping: usize, name: &str) -> impl DoubleEndedIterator<Item = &Arc<T>> {
        let members = self.groups.get(grouping).and_then(|index| index.get(name));
        members.into_iter().flatten()
    }

    /// Takes in a version of an object; none when what is known is as new.
    pub(crate) fn apply(&mut self, object: T) -> Option<Transition<T>> {
        let key = object.metadata().key();
        match self.judge(&key, &object) {
            Verdict::Known => {
                self.believe(&key);
                None
            }
            Verdict::Doubtful => {
                self.doubt(key, object);
                None
            }
            Verdict::News => {
                self.believe(&key);
                self.reach(&object.metadata().resource_version);
                Some(self.put(key, Some(Arc::new(object))))
            }
        }
    }

    /// Takes an object out; none when it was not there, or a newer one of its name has come since.
    pub(crate) fn delete(&mut self, last: &T) -> Option<Transition<T>> {
        let metadata = last.metadata();
        let key = metadata.key();
        let mut version = &metadata.resource_version;
        if let Some(known) = self.rows.get(&key).map(|known| known.metadata()) {
            match order(&known.resource_version, version) {
                Some(Ordering::Greater) => return None,
                None if known.uid != metadata.uid => return None,
                _ => version = later(version, &known.resource_version),
            }
        }
        let version = version.clone();
        self.reach(&version);
        self.tombstones.bury(key.clone(), metadata.uid.clone(), version);
        self.rows.contains_key(&key).then(|| self.put(key, None))
    }

    /// Begins a list: what it does not know although we do makes it a list of the past.
    pub(crate) fn begin_list(&mut self) {
        self.listing_from = Some(self.reached);
        self.doubted.clear();
        self.believed.clear();
    }

    /// Ends a list: what it did not name and is not newer than it is gone.
    ///
    /// A list is read from the server's own store, so it is right where it contradicts what we hold for gone. One that is
    /// older than what we had seen before it began comes from a server that lags, and is not believed; when the next one
    /// is no better, the server's store was set back, and the list counts against everything we know.
    pub(crate) fn end_list(&mut self, named: &BTreeSet<ObjectKey>, version: &ResourceVersion) -> Vec<Transition<T>> {
        let is_of_the_past = matches!((version, self.listing_from.take()),
            (ResourceVersion::Number(version), Some(reached)) if *version < reached);
        self.lists_of_the_past = if is_of_the_past { self.lists_of_the_past + 1 } else { 0 };
        let is_set_back = self.lists_of_the_past > 1;
        let mut transitions = self.restore(named, version, is_set_back);
        transitions.extend(self.drop_unnamed(named, version, is_set_back));
        self.believed.clear();
        if is_set_back {
            self.tombstones.clear();
            (self.reached, self.lists_of_the_past) = (0, 0);
        }
        // What a list of the past does not name was gone by then, whatever it does not know of since.
        let listed_at = match &self.listed_at {
            Some(known) if is_of_the_past && !is_set_back => later(known, version),
            _ => version,
        };
        self.listed_at = Some(listed_at.clone());
        self.reach(version);
        transitions
    }

    /// Forgets news that must have arrived by now, if it was to arrive at all.
    pub(crate) fn tidy(&mut self) {
        self.tombstones.age();
        if self.listing_from.is_none() {
            self.doubted.clear();
        }
    }

    /// A number for the versions of all objects; kept up with every change, so that asking costs nothing.
    pub(crate) fn versions(&self) -> u64 {
        self.versions
    }

    /// How many objects that are gone are remembered.
    pub(crate) fn tombstones(&self) -> usize {
        self.tombstones.len()
    }

    /// The table of all objects as they are now.
    pub(crate) fn table(&mut self) -> Table<T> {
        match std::mem::replace(&mut self.outdated, Outdated::Keys(BTreeSet::new())) {
            Outdated::Keys(keys) if keys.is_empty() => {}
            Outdated::Keys(keys) => {
                let (kept, gone): (Vec<_>, Vec<_>) = keys.into_iter().partition(|key| self.rows.contains_key(key));
                let kept = kept.iter().filter_map(|key| self.rows.get(key)).map(Arc::clone);
                self.table = self.table.with(kept).without(gone);
            }
            Outdated::All => self.table = Table::new(self.rows.values().cloned().collect()),
        }
        self.table.clone()
    }

    fn judge(&self, key: &ObjectKey, object: &T) -> Verdict {
        let version = &object.metadata().resource_version;
        let Some(known) = self.rows.get(key) else {
            let is_late = self.tombstones.covers(key, object) || self.is_before_list(version);
            return if is_late { Verdict::Doubtful } else { Verdict::News };
        };
        match order(version, &known.metadata().resource_version) {
            Some(Ordering::Greater) => Verdict::News,
            Some(Ordering::Less) => Verdict::Doubtful,
            Some(Ordering::Equal) if known.as_ref() != object => Verdict::Doubtful,
            None if known.as_ref() != object => Verdict::News,
            Some(Ordering::Equal) | None => Verdict::Known,
        }
    }

    /// Whether a list has been taken since, which would have named it.
    fn is_before_list(&self, version: &ResourceVersion) -> bool {
        let listed = self.listed_at.as_ref().and_then(|listed| order(version, listed));
        listed.is_some_and(|order| order != Ordering::Greater)
    }

    /// Only a list that follows one of the past may count against what is known, so only then it matters.
    fn believe(&mut self, key: &ObjectKey) {
        if self.listing_from.is_some() && self.lists_of_the_past > 0 {
            self.believed.insert(key.clone());
        }
    }

    fn doubt(&mut self, key: ObjectKey, object: T) {
        let is_newest = self.doubted.get(&key).is_none_or(|doubted| {
            let (new, old) = (object.metadata(), doubted.metadata());
            order(&new.resource_version, &old.resource_version) != Some(Ordering::Less)
        });
        if is_newest {
            self.doubted.insert(key, Arc::new(object));
        }
    }

    /// Takes in what was doubted and the list bears out.
    fn restore(
        &mut self,
        named: &BTreeSet<ObjectKey>,
        version: &ResourceVersion,
        is_set_back: bool,
    ) -> Vec<Transition<T>> {
        let doubted = std::mem::take(&mut self.doubted).into_iter();
        let named: Vec<_> = doubted.filter(|(key, _)| named.contains(key)).collect();
        let mut restored = Vec::new();
        for (key, object) in named {
            let is_gone = !self.rows.contains_key(&key) && !self.is_gone_since(&key, version);
            if (is_set_back && !self.is_borne_out(&key, version)) || is_gone {
                restored.push(self.put(key, Some(object)));
            }
        }
        restored
    }

    /// Whether what is known of an object is what the list says, or nearer to it than what was doubted: it was believed
    /// while the list was read, and is not newer than the list.
    fn is_borne_out(&self, key: &ObjectKey, version: &ResourceVersion) -> bool {
        let known = self.rows.get(key).filter(|_| self.believed.contains(key));
        known.is_some_and(|known| order(&known.metadata().resource_version, version) != Some(Ordering::Greater))
    }

    /// Whether an object that is not there went after a list was taken.
    fn is_gone_since(&self, key: &ObjectKey, version: &ResourceVersion) -> bool {
        let gone = self.tombstones.version(key).or(self.listed_at.as_ref());
        gone.is_some_and(|gone| order(version, gone) == Some(Ordering::Less))
    }

    fn drop_unnamed(
        &mut self,
        named: &BTreeSet<ObjectKey>,
        version: &ResourceVersion,
        is_set_back: bool,
    ) -> Vec<Transition<T>> {
        let is_newer = |object: &T| order(&object.metadata().resource_version, version) == Some(Ordering::Greater);
        let gone = self.rows.iter().filter(|(key, object)| {
            let is_kept = named.contains(*key) || (is_newer(object) && !is_set_back);
            !is_kept
        });
        let gone: Vec<_> = gone
            .map(|(key, object)| (key.clone(), object.metadata().uid.clone()))
            .collect();
        let mut transitions = Vec::new();
        let is_number = matches!(version, ResourceVersion::Number(_));
        for (key, uid) in gone {
            // Without an order nobody can tell whether the object came after the list; then the watch will name it again.
            if is_number {
                self.tombstones.bury(key.clone(), uid, version.clone());
            }
            transitions.push(self.put(key, None));
        }
        transitions
    }

    fn reach(&mut self, version: &ResourceVersion) {
        if let ResourceVersion::Number(version) = version {
            self.reached = self.reached.max(*version);
        }
    }

    fn put(&mut self, key: ObjectKey, after: Option<Arc<T>>) -> Transition<T> {
        let before = match &after {
            Some(object) => self.rows.insert(key.clone(), Arc::clone(object)),
            None => self.rows.remove(&key),
        };
        if after.is_some() {
            self.tombstones.lift(&key);
            self.doubted.remove(&key);
        }
        let number = |object: &Option<Arc<T>>| object.as_ref().map_or(0, |it| of_version(it.metadata()));
        self.versions = self.versions.wrapping_sub(number(&before)).wrapping_add(number(&after));
        self.regroup(before.as_ref(), after.as_ref());
        self.outdate(key);
        Transition { before, after }
    }

    fn outdate(&mut self, key: ObjectKey) {
        if let Outdated::Keys(keys) = &mut self.outdated {
            keys.insert(key);
            if keys.len() > REBUILD_LEAST.max(self.rows.len() / REBUILD_SHARE) {
                self.outdated = Outdated::All;
            }
        }
    }

    fn regroup(&mut self, before: Option<&Arc<T>>, after: Option<&Arc<T>>) {
        for (of, index) in T::GROUPINGS.iter().zip(&mut self.groups) {
            let (old, new) = (before.and_then(|before| of(before)), after.and_then(|after| of(after)));
            if let Some((name, object)) = old.zip(before).filter(|_| old != new) {
                leave(index, name, object);
            }
            if let Some((name, object)) = new.zip(after) {
                join(index, name, object);
            }
        }
    }
}

fn leave<T: Object>(index: &mut FxHashMap<Text, Vec<Arc<T>>>, name: &Text, object: &Arc<T>) {
    let Some(members) = index.get_mut(name) else { return };
    if let Ok(at) = position(members, object) {
        members.remove(at);
    }
    if members.is_empty() {
        index.remove(name);
    }
}

/// Joins a group, or takes the place of its former version in it.
fn join<T: Object>(index: &mut FxHashMap<Text, Vec<Arc<T>>>, name: &Text, object: &Arc<T>) {
    if !index.contains_key(name) {
        index.insert(name.clone(), Vec::new());
    }
    let Some(members) = index.get_mut(name) else { return };
    match position(members, object) {
        Ok(at) => {
            if let Some(member) = members.get_mut(at) {
                *member = Arc::clone(object);
            }
        }
        Err(at) => members.insert(at, Arc::clone(object)),
    }
}

fn position<T: Object>(members: &[Arc<T>], object: &Arc<T>) -> Result<usize, usize> {
    let sought = object.metadata();
    members.binary_search_by(|member| {
        let member = member.metadata();
        (&member.namespace, &member.name).cmp(&(&sought.namespace, &sought.name))
    })
}
