//! What is there of a kind of resource, and what of it changed since the graph last looked?

use std::collections::{BTreeMap, BTreeSet};

/// Resources by group and name, in lower case.
pub(crate) struct Shelf<T> {
    items: BTreeMap<String, T>,
    changed: BTreeSet<String>,
}

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        Self {
            items: BTreeMap::new(),
            changed: BTreeSet::new(),
        }
    }
}

/// The key of a resource.
pub(crate) fn key(group: &str, name: &str) -> String {
    format!("{group}/{name}").to_ascii_lowercase()
}

/// The key of a resource from its id; of a child, that of its parent.
pub(crate) fn key_of(id: &str) -> Option<String> {
    let mut parts = id
        .split('/')
        .skip_while(|part| !part.eq_ignore_ascii_case("resourceGroups"));
    let (group, name) = (parts.nth(1)?, parts.nth(3)?);
    Some(key(group, name))
}

impl<T> Shelf<T> {
    pub(crate) fn get(&self, key: &str) -> Option<&T> {
        self.items.get(key)
    }

    /// An item to be changed.
    pub(crate) fn edit(&mut self, key: &str) -> Option<&mut T> {
        let item = self.items.get_mut(key)?;
        self.changed.insert(key.to_owned());
        Some(item)
    }

    pub(crate) fn put(&mut self, key: &str, item: T) {
        self.changed.insert(key.to_owned());
        self.items.insert(key.to_owned(), item);
    }

    pub(crate) fn take(&mut self, key: &str) -> Option<T> {
        self.changed.insert(key.to_owned());
        self.items.remove(key)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&String, &T)> {
        self.items.iter()
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &T> {
        self.items.values()
    }

    /// The keys of what changed since this was last asked.
    pub(crate) fn news(&mut self) -> BTreeSet<String> {
        std::mem::take(&mut self.changed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_in_the_id() {
        let id = "/subscriptions/s/resourceGroups/RG/providers/Microsoft.Network/networkInterfaces/Nic";
        assert_eq!(key_of(id).as_deref(), Some("rg/nic"));
        assert_eq!(key_of("/subscriptions/s"), None);
    }
}
