//! Which rows accept a requirement on one label.

use std::sync::Arc;

use model::{
    instance_type::InstanceType,
    requirement::Requirement,
    vocabulary::{KeyId, Vocabulary},
};
use rustc_hash::FxHashMap;

use super::{Index, Mask};
use crate::bitmap::put;

/// The rows of the types that say something about a label, by what they say.
#[derive(Debug, Default)]
pub(super) struct KeyRows {
    said: Vec<(Requirement, Mask)>,
    /// Rows of types that say nothing: they accept everything.
    silent: Mask,
}

pub(super) fn by_key(types: &[Arc<InstanceType>], rows: &[u32], words: usize) -> FxHashMap<KeyId, KeyRows> {
    let mut keys: FxHashMap<KeyId, KeyRows> = FxHashMap::default();
    let mut places: FxHashMap<(KeyId, &Requirement), usize> = FxHashMap::default();
    for requirement in types.iter().flat_map(|entry| entry.requirements.iter()) {
        let key = keys.entry(requirement.key()).or_default();
        places.entry((requirement.key(), requirement)).or_insert_with(|| {
            key.said.push((requirement.clone(), vec![0; words].into_boxed_slice()));
            key.said.len() - 1
        });
    }
    #[expect(clippy::iter_over_hash_type, reason = "each key is filled on its own")]
    for (name, key) in &mut keys {
        key.silent = vec![0; words].into_boxed_slice();
        for (row, entry) in rows.iter().enumerate() {
            let said = types[*entry as usize].requirements.get(*name);
            match said.and_then(|requirement| places.get(&(*name, requirement))) {
                Some(place) => put(&mut key.said[*place].1, row),
                None => put(&mut key.silent, row),
            }
        }
    }
    keys
}

impl Index {
    /// The rows whose types accept the requirement; none when no type says anything about its label.
    pub(crate) fn accepting(&self, wanted: &Requirement, vocabulary: &Vocabulary) -> Option<Mask> {
        let key = self.keys.get(&wanted.key())?;
        let mut rows = key.silent.clone();
        for (said, theirs) in &key.said {
            if said.overlaps(wanted, vocabulary) || said.accepts_absence() && wanted.accepts_absence() {
                rows.iter_mut().zip(theirs).for_each(|(row, theirs)| *row |= theirs);
            }
        }
        Some(rows)
    }
}
