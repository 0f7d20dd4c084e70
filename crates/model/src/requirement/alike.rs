//! Reading many lists of requirements that are much alike: the types of a catalogue name the same labels in the same order,
//! and many have the same value as the type before.

use super::{Requirement, RequirementSpec, Requirements};
use crate::vocabulary::Vocabulary;

/// Reads lists, each with the one before in mind. What is read is the same as without.
#[derive(Debug, Default)]
pub struct AlikeReader<'a> {
    last: &'a [RequirementSpec],
    read: Requirements,
    /// For each condition of `read` where it is in the last list; empty when several of them were on one key.
    places: Vec<usize>,
}

impl<'a> AlikeReader<'a> {
    /// All requirements of a list; several on one key are intersected.
    pub fn read(&mut self, specs: &'a [RequirementSpec], vocabulary: &mut Vocabulary) -> Requirements {
        if self.is_like_last(specs) {
            let (last, places) = (self.last, &self.places);
            self.read = self.read.with(|at, known| {
                let (spec, last) = (specs.get(*places.get(at)?)?, last.get(*places.get(at)?)?);
                (!means_the_same(spec, last)).then(|| Requirement::on(known.key(), spec, vocabulary))
            });
        } else {
            self.read = Requirements::from_specs(specs, vocabulary);
            self.places = places(specs, &self.read, vocabulary);
        }
        self.last = specs;
        self.read.clone()
    }

    fn is_like_last(&self, specs: &[RequirementSpec]) -> bool {
        let mut keys = specs.iter().zip(self.last);
        !self.places.is_empty() && specs.len() == self.last.len() && keys.all(|(spec, last)| spec.key == last.key)
    }
}

/// Whether two conditions on one key are the same.
fn means_the_same(a: &RequirementSpec, b: &RequirementSpec) -> bool {
    a.operator == b.operator && a.min_values == b.min_values && a.values == b.values
}

fn places(specs: &[RequirementSpec], read: &Requirements, vocabulary: &mut Vocabulary) -> Vec<usize> {
    if specs.len() != read.len() {
        return Vec::new();
    }
    let mut places: Vec<_> = specs
        .iter()
        .map(|spec| vocabulary.intern_normalized(&spec.key))
        .zip(0..)
        .collect();
    places.sort_unstable();
    places.into_iter().map(|(_, at)| at).collect()
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;
    use crate::requirement::Operator;

    fn spec() -> impl Strategy<Value = RequirementSpec> {
        let key = prop_oneof![
            Just("a"),
            Just("b"),
            Just("topology.kubernetes.io/zone"),
            Just("failure-domain.beta.kubernetes.io/zone")
        ];
        let operator = prop_oneof![Just(Operator::In), Just(Operator::NotIn), Just(Operator::Gt)];
        (key, operator, vec("[0-3]", 1..3), proptest::option::of(1_u32..3)).prop_map(
            |(key, operator, values, min_values)| RequirementSpec {
                key: key.to_owned(),
                operator,
                values,
                min_values,
            },
        )
    }

    proptest! {
        #[test]
        fn lists_read_one_after_the_other_mean_what_each_means_alone(first in vec(spec(), 0..4), changes in vec((any::<prop::sample::Index>(), spec()), 0..6)) {
            let mut lists = vec![first];
            for (at, other) in changes {
                let mut next = lists.last().unwrap().clone();
                if !next.is_empty() {
                    let at = at.index(next.len());
                    next[at] = RequirementSpec { key: next[at].key.clone(), ..other.clone() };
                }
                lists.push(next);
                lists.push(vec![other]);
            }
            let (mut alone, mut together) = (Vocabulary::new(), Vocabulary::new());
            let mut reader = AlikeReader::default();
            for list in &lists {
                prop_assert_eq!(reader.read(list, &mut together), Requirements::from_specs(list, &mut alone));
            }
        }
    }
}
