//! What was lately of use: a map that forgets what nobody asked for the longest.

use std::collections::BTreeMap;

/// A map of at most so many entries, by the hash of their keys.
#[derive(Debug)]
pub(super) struct Recent<V> {
    most: usize,
    entries: BTreeMap<u64, Entry<V>>,
    /// Who was used when, oldest first.
    used: BTreeMap<u64, u64>,
    uses: u64,
}

#[derive(Debug)]
struct Entry<V> {
    used: u64,
    value: V,
}

impl<V> Recent<V> {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            entries: BTreeMap::new(),
            used: BTreeMap::new(),
            uses: 0,
        }
    }

    /// The value of a key, made if there is none.
    pub(super) fn get_or(&mut self, key: u64, make: impl FnOnce() -> V) -> &mut V {
        self.uses += 1;
        let used = self.uses;
        if let Some(entry) = self.entries.get(&key) {
            self.used.remove(&entry.used);
        } else if self.entries.len() >= self.most
            && let Some((_, oldest)) = self.used.pop_first()
        {
            self.entries.remove(&oldest);
        }
        self.used.insert(used, key);
        let entry = self.entries.entry(key).or_insert_with(|| Entry { used, value: make() });
        entry.used = used;
        &mut entry.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_that_nobody_asked_for_the_longest_is_forgotten() {
        let mut recent = Recent::new(2);
        recent.get_or(1, || "one");
        recent.get_or(2, || "two");
        recent.get_or(1, || "again");
        recent.get_or(3, || "three");
        let left = [1, 3, 2].map(|key| *recent.get_or(key, || "new"));
        assert_eq!(left, ["one", "three", "new"]);
        assert_eq!((recent.entries.len(), recent.used.len()), (2, 2));
    }
}
