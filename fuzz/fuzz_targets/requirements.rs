//! No two sets of requirements crash the algebra, and its laws hold on them.
//!
//! `cargo +nightly fuzz run requirements`. The input is structured, not text, so that every run reaches the algebra:
//! few keys and values, so that they meet, and numbers up to the ends, so that bounds overflow.

#![no_main]

use libfuzzer_sys::fuzz_target;
use model::{
    requirement::{Operator, RequirementSpec, Requirements, UndefinedLabels},
    vocabulary::Vocabulary,
};

const KEYS: [&str; 5] = [
    "team",
    "size",
    "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/zone",
    "kubernetes.io/arch",
];
const OPERATORS: [Operator; 8] = [
    Operator::In,
    Operator::NotIn,
    Operator::Exists,
    Operator::DoesNotExist,
    Operator::Gt,
    Operator::Lt,
    Operator::Gte,
    Operator::Lte,
];
const WORDS: [&str; 6] = ["a", "b", "", "-1", "9223372036854775807", "007"];

/// Key, operator, operands, `minValues`.
type Raw = (u8, u8, Vec<(bool, i16)>, Option<u8>);

fn spec((key, operator, values, min_values): &Raw) -> RequirementSpec {
    let value = |(word, number): &(bool, i16)| match word {
        true => WORDS[usize::from(number.unsigned_abs()) % WORDS.len()].to_owned(),
        false => (number % 8).to_string(),
    };
    RequirementSpec {
        key: KEYS[usize::from(*key) % KEYS.len()].to_owned(),
        operator: OPERATORS[usize::from(*operator) % OPERATORS.len()],
        values: values.iter().map(value).collect(),
        min_values: min_values.map(u32::from),
    }
}

fuzz_target!(|input: [Vec<Raw>; 2]| {
    let [a, b] = input.map(|raw| raw.iter().map(spec).collect::<Vec<_>>());
    let mut vocabulary = Vocabulary::new();
    let (a, b) = (
        Requirements::from_specs(&a, &mut vocabulary),
        Requirements::from_specs(&b, &mut vocabulary),
    );
    let (mut forward, mut backward) = (a.clone(), b.clone());
    forward.add_all(&b, &vocabulary);
    backward.add_all(&a, &vocabulary);
    assert_eq!(forward, backward, "adding is commutative");
    assert_eq!(a.intersects(&b, &vocabulary), b.intersects(&a, &vocabulary));
    for undefined in [UndefinedLabels::Denied, UndefinedLabels::AllowedIfWellKnown] {
        let verdict = a.compatible(&b, undefined, &vocabulary);
        assert_eq!(
            verdict.is_ok(),
            a.is_compatible(&b, undefined, &vocabulary),
            "{verdict:?}"
        );
    }
    for requirement in forward.iter() {
        if let Some(value) = requirement.any(&vocabulary, 7) {
            assert!(
                requirement.has(&value, &vocabulary),
                "{value} of {}",
                requirement.text(&vocabulary)
            );
        }
    }
    let again = Requirements::from_specs(&forward.to_specs(&vocabulary), &mut vocabulary);
    assert_eq!(again.len(), forward.len());
});
