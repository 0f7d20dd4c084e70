//! Which of two versions is the newer one, and which objects are known to be gone.
//!
//! What we hear of an object comes by two ways that do not wait for each other: its watch, and the answers to our own
//! writes. Whichever is late must not bring back what the other has already told.

use std::{cmp::Ordering, collections::BTreeMap};

use model::object::{Object, ObjectKey, ResourceVersion, Uid};

/// More than this many tombstones of a kind make the older half go before its time.
const MOST_TOMBSTONES: usize = 4096;

/// How a version stands to another; none when that cannot be told: one of them is unset, or they differ and are not numbers.
pub(crate) fn order(one: &ResourceVersion, other: &ResourceVersion) -> Option<Ordering> {
    match (one, other) {
        (ResourceVersion::Number(0), _) | (_, ResourceVersion::Number(0)) => None,
        (ResourceVersion::Number(one), ResourceVersion::Number(other)) => Some(one.cmp(other)),
        (one, other) => (one == other).then_some(Ordering::Equal),
    }
}

/// The later of two versions; the first when that cannot be told.
pub(crate) fn later<'a>(one: &'a ResourceVersion, other: &'a ResourceVersion) -> &'a ResourceVersion {
    let is_other = match order(one, other) {
        Some(order) => order == Ordering::Less,
        None => *one == ResourceVersion::Number(0),
    };
    if is_other { other } else { one }
}

/// The objects of a kind that are known to be gone, for as long as news of them may still be under way.
#[derive(Debug, Default)]
pub(crate) struct Tombstones {
    young: BTreeMap<ObjectKey, Tombstone>,
    old: BTreeMap<ObjectKey, Tombstone>,
}

/// Who is gone, and as of when.
#[derive(Debug)]
struct Tombstone {
    uid: Uid,
    version: ResourceVersion,
}

impl Tombstones {
    /// Remembers that an object was gone at a version.
    pub(crate) fn bury(&mut self, key: ObjectKey, uid: Uid, version: ResourceVersion) {
        self.lift(&key);
        if self.young.len() >= MOST_TOMBSTONES {
            self.age();
        }
        self.young.insert(key, Tombstone { uid, version });
    }

    /// Whether this version of an object is from before its end.
    ///
    /// Where versions cannot be compared the identity decides: what is gone does not come back under the same one.
    pub(crate) fn covers<T: Object>(&self, key: &ObjectKey, object: &T) -> bool {
        let metadata = object.metadata();
        let Some(tombstone) = self.get(key) else { return false };
        match order(&metadata.resource_version, &tombstone.version) {
            Some(order) => order != Ordering::Greater,
            None => tombstone.uid == metadata.uid && !metadata.uid.is_unset(),
        }
    }

    /// As of when an object is known to be gone.
    pub(crate) fn version(&self, key: &ObjectKey) -> Option<&ResourceVersion> {
        self.get(key).map(|tombstone| &tombstone.version)
    }

    /// Forgets that an object was gone.
    pub(crate) fn lift(&mut self, key: &ObjectKey) {
        self.young.remove(key);
        self.old.remove(key);
    }

    /// Forgets what was already old, and calls the rest old: one that is called in regular intervals lets a tombstone
    /// live for one to two of them.
    pub(crate) fn age(&mut self) {
        self.old = std::mem::take(&mut self.young);
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    fn get(&self, key: &ObjectKey) -> Option<&Tombstone> {
        self.young.get(key).or_else(|| self.old.get(key))
    }
}

#[cfg(test)]
mod tests {
    use model::object::{Metadata, Pod};

    use super::*;

    fn pod(uid: &str, version: &str) -> Pod {
        let metadata = Metadata {
            name: "p".into(),
            uid: uid.into(),
            resource_version: version.into(),
            ..Metadata::default()
        };
        Pod {
            metadata,
            ..Pod::default()
        }
    }

    #[test]
    fn tombstone_covers_what_was_before_it() {
        let cases = [
            (("a", "8"), ("a", "7"), true),
            (("a", "8"), ("a", "8"), true),
            (("a", "8"), ("b", "7"), true),
            (("a", "8"), ("b", "9"), false),
            (("a", "8"), ("a", "9"), false),
            (("a", "x8"), ("a", "x9"), true),
            (("a", "x8"), ("b", "x9"), false),
            (("", ""), ("", ""), false),
        ];
        for ((uid, version), (new_uid, new_version), expected) in cases {
            let mut tombstones = Tombstones::default();
            let key = ObjectKey::cluster_scoped("p");
            tombstones.bury(key.clone(), uid.into(), version.into());
            let covers = tombstones.covers(&key, &pod(new_uid, new_version));
            assert_eq!(
                covers, expected,
                "{uid} gone at {version}, {new_uid} seen at {new_version}"
            );
        }
    }

    #[test]
    fn tombstone_lives_for_one_to_two_intervals() {
        let key = ObjectKey::cluster_scoped("p");
        let mut tombstones = Tombstones::default();
        tombstones.bury(key.clone(), "a".into(), "8".into());
        tombstones.age();
        assert!(tombstones.covers(&key, &pod("a", "7")));
        tombstones.age();
        assert!(!tombstones.covers(&key, &pod("a", "7")));
    }

    #[test]
    fn tombstones_stay_few_even_when_nobody_ages_them() {
        let mut tombstones = Tombstones::default();
        for at in 0..5 * MOST_TOMBSTONES {
            let key = ObjectKey::cluster_scoped(&at.to_string());
            tombstones.bury(key, "a".into(), "8".into());
        }
        assert!(tombstones.len() <= 2 * MOST_TOMBSTONES, "{}", tombstones.len());
    }

    #[test]
    fn later_of_two_versions_is_the_one_that_says_more() {
        let cases = [
            ("7", "8", "8"),
            ("8", "7", "8"),
            ("", "7", "7"),
            ("7", "", "7"),
            ("x", "y", "x"),
        ];
        for (one, other, expected) in cases {
            let (one, other) = (ResourceVersion::from(one), ResourceVersion::from(other));
            assert_eq!(*later(&one, &other), ResourceVersion::from(expected));
        }
    }
}
