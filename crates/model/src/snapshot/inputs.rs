//! What was a decision made on? A few numbers that are equal only if everything was.

use crate::digest::Digest;

/// The numbers of everything a decision looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inputs {
    /// Of all of it.
    pub digest: u64,
    /// Of each part: the settings, the catalogue, and the versions of the objects of each kind.
    pub parts: Vec<(&'static str, u64)>,
}

impl Inputs {
    /// Of these parts.
    pub fn of(settings: u64, catalog: u64, versions: Vec<(&'static str, u64)>) -> Self {
        let mut parts = vec![("settings", settings), ("catalogue", catalog)];
        parts.extend(versions);
        let mut digest = Digest::default();
        for (_, number) in &parts {
            digest.number(*number);
        }
        Self {
            digest: digest.finish(),
            parts,
        }
    }

    /// The first part that is not the same in both.
    pub fn first_difference(&self, other: &Self) -> Option<&'static str> {
        let mut parts = self.parts.iter().zip(&other.parts);
        parts.find(|(one, other)| one != other).map(|(one, _)| one.0)
    }
}
