//! One object of a list, read straight into its table: what it is stands before what it holds, so nothing is read twice.

use std::{borrow::Cow, collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor, value::CowStrDeserializer},
};

use super::parse::SNAPSHOT;
use crate::{
    sharing::Sharing,
    snapshot::{Draft, TypeMeta},
};

/// What one thread reads into.
#[derive(Debug, Default)]
pub(super) struct Worker {
    pub(super) draft: Draft,
    pub(super) objects: usize,
    pub(super) skipped: BTreeMap<(String, String), usize>,
    pool: Sharing,
}

/// Objects between brackets.
pub(super) struct Items<'w, 'l> {
    pub(super) worker: &'w mut Worker,
    /// What the list says they are.
    pub(super) list: Option<TypeMeta<'l>>,
}

/// One object.
pub(super) struct Item<'w, 'l> {
    pub(super) worker: &'w mut Worker,
    /// What its list says it is.
    pub(super) list: Option<TypeMeta<'l>>,
}

impl<'de> DeserializeSeed<'de> for Items<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Items<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let Self { worker, list } = self;
        while items.next_element_seed(Item { worker, list })?.is_some() {}
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Item<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Item<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { worker, list } = self;
        let (mut api_version, mut kind, mut first) = (None, None, None);
        while let Some(Word(key)) = map.next_key()? {
            match &*key {
                "apiVersion" => api_version = Some(map.next_value::<Word<'de>>()?.0),
                "kind" => kind = Some(map.next_value::<Word<'de>>()?.0),
                _ => {
                    first = Some(key);
                    break;
                }
            }
        }
        let declared = api_version.as_deref().zip(kind.as_deref());
        let declared = declared.map(|(api_version, kind)| TypeMeta { api_version, kind });
        let what = declared.or(list).ok_or_else(unusual)?;
        if what.kind.ends_with("List") || what == SNAPSHOT {
            return Err(unusual());
        }
        if worker.draft.take(what, Rest { first, map }, &mut worker.pool)? {
            worker.objects += 1;
        } else {
            let kind = (what.api_version.to_owned(), what.kind.to_owned());
            *worker.skipped.entry(kind).or_default() += 1;
        }
        Ok(())
    }
}

/// Nobody reads this: who meets it reads again, slowly.
fn unusual<E: Error>() -> E {
    E::custom("unusual")
}

/// A text that is not copied where it can be borrowed.
struct Word<'de>(Cow<'de, str>);

impl<'de> Deserialize<'de> for Word<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Word<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }
            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Word<'de>, E> {
                Ok(Word(Cow::Borrowed(text)))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Word<'de>, E> {
                Ok(Word(Cow::Owned(text.to_owned())))
            }
            fn visit_string<E: Error>(self, text: String) -> Result<Word<'de>, E> {
                Ok(Word(Cow::Owned(text)))
            }
        }
        deserializer.deserialize_str(Read)
    }
}

/// The fields of an object from the one on that said nothing of what it is.
struct Rest<'de, A> {
    first: Option<Cow<'de, str>>,
    map: A,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Rest<'de, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        match self.first.take() {
            Some(first) => seed.deserialize(CowStrDeserializer::new(first)).map(Some),
            None => self.map.next_key_seed(seed),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}
