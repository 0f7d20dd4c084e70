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

impl KeyRows {
    /// None when no type says anything about the label.
    pub(super) fn of(key: KeyId, types: &[Arc<InstanceType>], rows: &[u32], words: usize) -> Option<Self> {
        let mut places: FxHashMap<&Requirement, usize> = FxHashMap::default();
        let empty = || vec![0; words].into_boxed_slice();
        let mut of_key = Self {
            said: Vec::new(),
            silent: empty(),
        };
        for (row, entry) in rows.iter().enumerate() {
            let Some(requirement) = types[*entry as usize].requirements.get(key) else {
                put(&mut of_key.silent, row);
                continue;
            };
            let place = *places.entry(requirement).or_insert_with(|| {
                of_key.said.push((requirement.clone(), empty()));
                of_key.said.len() - 1
            });
            put(&mut of_key.said[place].1, row);
        }
        (!of_key.said.is_empty()).then_some(of_key)
    }
}

impl Index {
    /// The rows whose types accept the requirement; none when no type says anything about its label.
    pub(crate) fn accepting(&self, wanted: &Requirement, vocabulary: &Vocabulary) -> Option<Mask> {
        let key = wanted.key();
        let known = self.keys.get(key.bit() as usize)?;
        let key = known.get_or_init(|| KeyRows::of(key, &self.types, &self.rows, self.words));
        let key = key.as_ref()?;
        let mut rows = key.silent.clone();
        for (said, theirs) in &key.said {
            if said.overlaps(wanted, vocabulary) || said.accepts_absence() && wanted.accepts_absence() {
                rows.iter_mut().zip(theirs).for_each(|(row, theirs)| *row |= theirs);
            }
        }
        Some(rows)
    }
}
