//! How lists and maps of the API are held: immutable, shared, and tolerant of `null` where Go is.

use std::{fmt, marker::PhantomData, ops::Deref, sync::Arc};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, SeqAccess, Visitor},
};

use super::Text;

/// An immutable list. Empty and absent are the same value, and cost no allocation.
pub struct List<T>(pub(crate) Arc<[T]>);

impl<T> List<T> {
    /// True when there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True when both are the same allocation.
    pub fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T> Clone for List<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T> Deref for List<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<'a, T> IntoIterator for &'a List<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<T> FromIterator<T> for List<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Vec::from_iter(items).into()
    }
}

impl<T> From<Vec<T>> for List<T> {
    fn from(items: Vec<T>) -> Self {
        if items.is_empty() {
            Self::default()
        } else {
            Self(items.into())
        }
    }
}

impl<T: PartialEq> PartialEq for List<T> {
    fn eq(&self, other: &Self) -> bool {
        self.same(other) || self.0 == other.0
    }
}

impl<T: Eq> Eq for List<T> {}

impl<T: std::hash::Hash> std::hash::Hash for List<T> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl<T: fmt::Debug> fmt::Debug for List<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: Serialize> Serialize for List<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        list_where(deserializer, |_| true)
    }
}

/// Reads a list and keeps only the elements a decision can see.
pub(crate) fn list_where<'de, T, D>(deserializer: D, keep: fn(&T) -> bool) -> Result<List<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    struct Items<T>(fn(&T) -> bool);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for Items<T> {
        type Value = List<T>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<List<T>, A::Error> {
            let mut items = Vec::new();
            while let Some(item) = seq.next_element()? {
                if self.0(&item) {
                    items.push(item);
                }
            }
            Ok(items.into())
        }
        fn visit_unit<E>(self) -> Result<List<T>, E> {
            Ok(List::default())
        }
    }
    deserializer.deserialize_any(Items(keep))
}

/// A map from text to `V`, held as a list sorted by key.
pub type Map<V> = List<(Text, V)>;

impl<V> Map<V> {
    /// The value under a key.
    pub fn get(&self, key: &str) -> Option<&V> {
        let at = self.0.binary_search_by(|(have, _)| have.as_ref().cmp(key)).ok()?;
        self.0.get(at).map(|(_, value)| value)
    }

    /// Sorts by key; of two equal keys the later one wins, as it does when Go decodes JSON.
    pub fn from_pairs(mut pairs: Vec<(Text, V)>) -> Self {
        pairs.reverse();
        pairs.sort_by(|a, b| a.0.cmp(&b.0));
        pairs.dedup_by(|later, kept| later.0 == kept.0);
        pairs.into()
    }
}

/// serde form of a [`Map`], for `#[serde(with = "list::map")]`.
pub(crate) mod map {
    use super::{Deserialize, Deserializer, Map, MapAccess, PhantomData, Serialize, Serializer, Visitor, fmt};

    pub(crate) fn serialize<V: Serialize, S: Serializer>(map: &Map<V>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(map.iter().map(|(key, value)| (key, value)))
    }

    pub(crate) fn deserialize<'de, V: Deserialize<'de>, D: Deserializer<'de>>(d: D) -> Result<Map<V>, D::Error> {
        deserialize_where(d, |_| true)
    }

    /// Reads a map and keeps only the entries whose key a decision can see.
    pub(crate) fn deserialize_where<'de, V, D>(deserializer: D, keep: fn(&str) -> bool) -> Result<Map<V>, D::Error>
    where
        V: Deserialize<'de>,
        D: Deserializer<'de>,
    {
        struct Entries<V>(fn(&str) -> bool, PhantomData<V>);
        impl<'de, V: Deserialize<'de>> Visitor<'de> for Entries<V> {
            type Value = Map<V>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Map<V>, A::Error> {
                let mut pairs = Vec::new();
                while let Some(key) = map.next_key::<super::Text>()? {
                    if self.0(&key) {
                        pairs.push((key, map.next_value()?));
                    } else {
                        map.next_value::<serde::de::IgnoredAny>()?;
                    }
                }
                Ok(Map::from_pairs(pairs))
            }
            fn visit_unit<E>(self) -> Result<Map<V>, E> {
                Ok(Map::default())
            }
        }
        deserializer.deserialize_any(Entries(keep, PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Holder(#[serde(with = "map")] Map<u8>);

    #[test]
    fn null_is_an_empty_list() {
        let list: List<u8> = serde_json::from_str("null").unwrap();
        assert_eq!(list, List::default());
    }

    #[test]
    fn the_later_of_two_equal_keys_wins() {
        let map: Holder = serde_json::from_str(r#"{"b":1,"a":2,"b":3}"#).unwrap();
        assert_eq!(serde_json::to_string(&map).unwrap(), r#"{"a":2,"b":3}"#);
        assert_eq!((map.0.get("b"), map.0.get("c")), (Some(&3), None));
    }
}
