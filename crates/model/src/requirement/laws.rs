//! The laws of the algebra, for all requirements: what order and grouping cannot change, and what never grows.

use proptest::{collection::vec, option, prelude::*};

use super::{Operator, Requirement, RequirementSpec, Requirements, UndefinedLabels};
use crate::vocabulary::Vocabulary;

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

fn value() -> impl Strategy<Value = String> {
    prop_oneof![(-3_i64..130).prop_map(|integer| integer.to_string()), "[a-c]?"]
}

fn spec_on(key: &'static str) -> impl Strategy<Value = RequirementSpec> {
    let values = prop_oneof![4 => vec(value(), 0..5), 1 => vec(value(), 60..80)];
    (0..OPERATORS.len(), values, -3_i64..130, option::of(1_u32..4)).prop_map(
        move |(operator, values, bound, min_values)| {
            let operator = OPERATORS[operator];
            let values = if operator.is_bound() {
                vec![bound.to_string()]
            } else {
                values
            };
            RequirementSpec {
                key: key.to_owned(),
                operator,
                values,
                min_values,
            }
        },
    )
}

fn specs() -> impl Strategy<Value = Vec<RequirementSpec>> {
    vec(
        prop_oneof![spec_on("size"), spec_on("team"), spec_on("kubernetes.io/arch")],
        0..4,
    )
}

/// Several conditions on one key joined, so that bounded complements with exclusions appear too.
fn requirement(specs: &[RequirementSpec], vocabulary: &mut Vocabulary) -> Requirement {
    let parts: Vec<_> = specs
        .iter()
        .map(|spec| Requirement::from_spec(spec, vocabulary))
        .collect();
    let start = Requirement::exists(vocabulary.intern_key("size"));
    parts
        .iter()
        .fold(start, |joined, part| joined.intersection(part, vocabulary))
}

fn joined() -> impl Strategy<Value = Vec<RequirementSpec>> {
    vec(spec_on("size"), 1..3)
}

proptest! {
    #[test]
    fn intersection_is_commutative(a in joined(), b in joined()) {
        let mut words = Vocabulary::new();
        let (a, b) = (requirement(&a, &mut words), requirement(&b, &mut words));
        prop_assert_eq!(a.intersection(&b, &words), b.intersection(&a, &words));
        prop_assert_eq!(a.overlaps(&b, &words), b.overlaps(&a, &words));
    }

    #[test]
    fn intersection_is_associative(a in joined(), b in joined(), c in joined(), probe in value()) {
        let mut words = Vocabulary::new();
        let (a, b, c) = (requirement(&a, &mut words), requirement(&b, &mut words), requirement(&c, &mut words));
        let left = a.intersection(&b, &words).intersection(&c, &words);
        let right = a.intersection(&b.intersection(&c, &words), &words);
        prop_assert_eq!(&left, &right);
        prop_assert_eq!(left.has(&probe, &words), right.has(&probe, &words));
    }

    #[test]
    fn intersection_is_idempotent_and_exists_changes_nothing(a in joined()) {
        let mut words = Vocabulary::new();
        let a = requirement(&a, &mut words);
        prop_assert_eq!(&a.intersection(&a, &words), &a);
        prop_assert_eq!(&a.intersection(&Requirement::exists(a.key()), &words), &a);
    }

    #[test]
    fn intersection_has_exactly_the_values_of_both_and_never_grows(a in joined(), b in joined(), probe in value()) {
        let mut words = Vocabulary::new();
        let (a, b) = (requirement(&a, &mut words), requirement(&b, &mut words));
        let both = a.intersection(&b, &words);
        prop_assert_eq!(both.has(&probe, &words), a.has(&probe, &words) && b.has(&probe, &words));
        prop_assert!(both.min_values() >= a.min_values().max(b.min_values()));
        if !a.is_complement() {
            prop_assert!(both.len() <= a.len());
        }
        prop_assert!(!both.is_complement() || a.is_complement() && b.is_complement());
    }

    #[test]
    fn overlap_is_a_non_empty_intersection(a in joined(), b in joined()) {
        let mut words = Vocabulary::new();
        let (a, b) = (requirement(&a, &mut words), requirement(&b, &mut words));
        prop_assert_eq!(a.overlaps(&b, &words), !a.intersection(&b, &words).is_empty());
    }

    #[test]
    fn value_has_the_same_standing_by_number_and_by_name(a in joined(), probe in value()) {
        let mut words = Vocabulary::new();
        let a = requirement(&a, &mut words);
        let by_name = a.has(&probe, &words);
        let number = words.intern_value(a.key(), &probe);
        prop_assert_eq!((a.admits(number, &words), a.has(&probe, &words)), (by_name, by_name));
    }

    #[test]
    fn written_requirement_reads_back_unless_a_bound_hides_exclusions(a in joined()) {
        let mut words = Vocabulary::new();
        let a = requirement(&a, &mut words);
        let again = Requirements::from_specs(&a.to_specs(&words), &mut words);
        let is_lossy = a.bounds() != (None, None) && a.operator() == Operator::NotIn;
        prop_assert_eq!(again.get(a.key()) == Some(&a), !is_lossy);
    }

    #[test]
    fn order_of_adding_does_not_matter(specs in specs(), seed in any::<prop::sample::Index>()) {
        let mut words = Vocabulary::new();
        let forward = Requirements::from_specs(&specs, &mut words);
        let mut turned = specs.clone();
        turned.rotate_left(if specs.is_empty() { 0 } else { seed.index(specs.len()) });
        prop_assert_eq!(Requirements::from_specs(&turned, &mut words), forward);
    }

    #[test]
    fn what_is_compatible_intersects_and_stays_compatible_when_labels_may_be_undefined(a in specs(), b in specs()) {
        let mut words = Vocabulary::new();
        let (a, b) = (Requirements::from_specs(&a, &mut words), Requirements::from_specs(&b, &mut words));
        let [strict, loose] = [UndefinedLabels::Denied, UndefinedLabels::AllowedIfWellKnown]
            .map(|undefined| a.is_compatible(&b, undefined, &words));
        prop_assert!(!strict || loose);
        prop_assert!(!loose || a.intersects(&b, &words));
        prop_assert_eq!(a.intersects(&b, &words), b.intersects(&a, &words));
        prop_assert_eq!(a.compatible(&b, UndefinedLabels::Denied, &words).is_ok(), strict);
    }
}
