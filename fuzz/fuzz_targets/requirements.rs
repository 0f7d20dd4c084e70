//! No two sets of requirements crash the algebra, and its laws hold on them.
//!
//! `cargo +nightly fuzz run requirements`; the input is a JSON list of two lists of requirements.

#![no_main]

use libfuzzer_sys::fuzz_target;
use model::{
    requirement::{RequirementSpec, Requirements, UndefinedLabels},
    vocabulary::Vocabulary,
};

fuzz_target!(|input: &[u8]| {
    let Ok([a, b]) = serde_json::from_slice::<[Vec<RequirementSpec>; 2]>(input) else {
        return;
    };
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
