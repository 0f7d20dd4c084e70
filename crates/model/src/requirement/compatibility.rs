//! Whether two sets of requirements can be met at once, and if not, why not.

use super::{Requirement, Requirements};
use crate::vocabulary::{KeyId, Vocabulary};

/// What it means that the node side says nothing about a label the other side asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UndefinedLabels {
    /// The label is not there: for nodes that exist.
    Denied,
    /// A well-known label will get a fitting value at launch: for NodeClaims, templates and offerings.
    AllowedIfWellKnown,
}

/// Why two sets of requirements cannot be met at once.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Incompatible {
    /// A label is asked for that the node side will not have.
    #[error("label \"{key}\" does not have known values{}", hint(.similar.as_deref()))]
    Undefined {
        /// The label.
        key: String,
        /// A known label that may have been meant.
        similar: Option<String>,
    },
    /// Labels that both sides name have no value in common.
    #[error("{}", join(.0))]
    Conflicts(Vec<Conflict>),
}

/// A label of which no value satisfies both sides.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("key {key}, {incoming} not in {existing}")]
pub struct Conflict {
    /// The label.
    pub key: String,
    /// What is asked for.
    pub incoming: String,
    /// What there is.
    pub existing: String,
}

impl Requirements {
    /// Whether `incoming` can be met by something that meets these:
    /// - every label it names is defined here, allowed to be undefined, or may as well be missing;
    /// - every label both name has a value in common, see [`Requirements::intersects`].
    pub fn is_compatible(&self, incoming: &Self, undefined: UndefinedLabels, vocabulary: &Vocabulary) -> bool {
        let is_known = |wanted: &Requirement| !self.lacks(wanted, undefined, vocabulary);
        incoming.iter().all(is_known) && self.intersects(incoming, vocabulary)
    }

    /// [`Requirements::is_compatible`] with the reason. Of several unknown labels the first by name is reported.
    pub fn compatible(
        &self,
        incoming: &Self,
        undefined: UndefinedLabels,
        vocabulary: &Vocabulary,
    ) -> Result<(), Incompatible> {
        let unknown = incoming
            .iter()
            .filter(|wanted| self.lacks(wanted, undefined, vocabulary));
        match unknown.map(|wanted| vocabulary.key_name(wanted.key())).min() {
            Some(key) => Err(self.undefined(key, undefined, vocabulary)),
            None => self.check_intersects(incoming, vocabulary),
        }
    }

    /// Whether every label that both sides name has a value in common. Two conditions that a missing label satisfies
    /// always get along; labels only one side names do not matter.
    pub fn intersects(&self, incoming: &Self, vocabulary: &Vocabulary) -> bool {
        self.conflicts(incoming, vocabulary).next().is_none()
    }

    /// [`Requirements::intersects`] with every conflict, sorted by key.
    pub fn check_intersects(&self, incoming: &Self, vocabulary: &Vocabulary) -> Result<(), Incompatible> {
        let mut conflicts: Vec<_> = self
            .conflicts(incoming, vocabulary)
            .map(|(existing, incoming)| Conflict {
                key: vocabulary.key_name(existing.key()).to_owned(),
                incoming: incoming.text(vocabulary),
                existing: existing.text(vocabulary),
            })
            .collect();
        conflicts.sort_unstable();
        if conflicts.is_empty() {
            Ok(())
        } else {
            Err(Incompatible::Conflicts(conflicts))
        }
    }

    fn lacks(&self, wanted: &Requirement, undefined: UndefinedLabels, vocabulary: &Vocabulary) -> bool {
        !self.defines(wanted.key()) && !wanted.accepts_absence() && !is_allowed(wanted.key(), undefined, vocabulary)
    }

    fn conflicts<'a>(
        &'a self,
        incoming: &'a Self,
        vocabulary: &'a Vocabulary,
    ) -> impl Iterator<Item = (&'a Requirement, &'a Requirement)> {
        let shared = incoming
            .iter()
            .filter_map(|wanted| self.get(wanted.key()).map(|existing| (existing, wanted)));
        let get_along = |existing: &Requirement, wanted: &Requirement| {
            existing.overlaps(wanted, vocabulary) || existing.accepts_absence() && wanted.accepts_absence()
        };
        shared.filter(move |(existing, wanted)| !get_along(existing, wanted))
    }

    fn undefined(&self, key: &str, undefined: UndefinedLabels, vocabulary: &Vocabulary) -> Incompatible {
        let allowed = vocabulary
            .well_known()
            .filter(|_| undefined == UndefinedLabels::AllowedIfWellKnown);
        let mut defined: Vec<_> = self
            .iter()
            .map(|requirement| vocabulary.key_name(requirement.key()))
            .collect();
        defined.sort_unstable();
        let similar = allowed
            .chain(defined)
            .find(|known| is_similar(known, key))
            .map(str::to_owned);
        Incompatible::Undefined {
            key: key.to_owned(),
            similar,
        }
    }
}

fn is_allowed(key: KeyId, undefined: UndefinedLabels, vocabulary: &Vocabulary) -> bool {
    undefined == UndefinedLabels::AllowedIfWellKnown && vocabulary.is_well_known(key)
}

/// Whether the known label contains the asked one, or ends like it.
fn is_similar(known: &str, asked: &str) -> bool {
    let name = asked.split_once('/').map_or(asked, |(_, name)| name);
    known.contains(asked) || known.ends_with(name)
}

fn hint(similar: Option<&str>) -> String {
    similar.map_or_else(String::new, |similar| format!(" (typo of \"{similar}\"?)"))
}

fn join(conflicts: &[Conflict]) -> String {
    let texts: Vec<_> = conflicts.iter().map(ToString::to_string).collect();
    texts.join("; ")
}
