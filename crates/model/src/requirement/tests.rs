//! What the recorded answers of the reference cannot show: messages that depend on its map order, and our own edges.

use api::{labels::LabelRules, provider::Provider};

use super::{Incompatible, Operator, Requirement, RequirementSpec, Requirements, SpecError, UndefinedLabels};
use crate::{
    bitset::BitSet,
    vocabulary::{KeyId, ValueId, Vocabulary},
};

fn spec(text: &str) -> RequirementSpec {
    let mut words = text.split_whitespace();
    let (key, operator) = (words.next().unwrap(), words.next().unwrap().parse().unwrap());
    RequirementSpec::new(key, operator, &words.collect::<Vec<_>>())
}

fn requirements(texts: &[&str], vocabulary: &mut Vocabulary) -> Requirements {
    Requirements::from_specs(&texts.iter().map(|text| spec(text)).collect::<Vec<_>>(), vocabulary)
}

fn refusal(ours: &[&str], wanted: &[&str], undefined: UndefinedLabels) -> Option<String> {
    let mut vocabulary = Vocabulary::new();
    let (ours, wanted) = (
        requirements(ours, &mut vocabulary),
        requirements(wanted, &mut vocabulary),
    );
    ours.compatible(&wanted, undefined, &vocabulary)
        .err()
        .map(|why| why.to_string())
}

#[test]
fn unknown_label_is_named_with_the_label_that_may_have_been_meant() {
    let cases: [(&[&str], &[&str], UndefinedLabels, Option<&str>); 8] = [
        (
            &[],
            &["zone In a"],
            UndefinedLabels::AllowedIfWellKnown,
            Some(r#"label "zone" does not have known values (typo of "topology.kubernetes.io/zone"?)"#),
        ),
        (
            &[],
            &["topology.k8s.io/zone In a"],
            UndefinedLabels::AllowedIfWellKnown,
            Some(r#"label "topology.k8s.io/zone" does not have known values (typo of "topology.kubernetes.io/zone"?)"#),
        ),
        (
            &[],
            &["topology.kubernetes.io/zon Exists"],
            UndefinedLabels::AllowedIfWellKnown,
            Some(
                r#"label "topology.kubernetes.io/zon" does not have known values (typo of "topology.kubernetes.io/zone"?)"#,
            ),
        ),
        (
            &["example.com/team In a"],
            &["team Exists"],
            UndefinedLabels::Denied,
            Some(r#"label "team" does not have known values (typo of "example.com/team"?)"#),
        ),
        (
            &[],
            &["b In 1", "a In 1"],
            UndefinedLabels::Denied,
            Some(r#"label "a" does not have known values"#),
        ),
        (
            &[],
            &["topology.kubernetes.io/zone In a"],
            UndefinedLabels::Denied,
            Some(r#"label "topology.kubernetes.io/zone" does not have known values"#),
        ),
        (
            &[],
            &["topology.kubernetes.io/zone In a"],
            UndefinedLabels::AllowedIfWellKnown,
            None,
        ),
        (
            &[],
            &["team NotIn a", "crew DoesNotExist"],
            UndefinedLabels::Denied,
            None,
        ),
    ];
    for (ours, wanted, undefined, expected) in cases {
        assert_eq!(refusal(ours, wanted, undefined).as_deref(), expected, "{wanted:?}");
    }
}

#[test]
fn all_conflicting_keys_are_reported_in_order() {
    let refusal = refusal(
        &["b In 1", "a Exists"],
        &["b In 2", "a DoesNotExist"],
        UndefinedLabels::Denied,
    );
    assert_eq!(
        refusal.as_deref(),
        Some("key a, a DoesNotExist not in a Exists; key b, b In [2] not in b In [1]")
    );
}

#[test]
fn label_that_nobody_defined_is_defined_once_a_pod_excludes_values_of_it() {
    let mut vocabulary = Vocabulary::new();
    let mut claim = Requirements::default();
    let (first, second) = (
        requirements(&["team NotIn a"], &mut vocabulary),
        requirements(&["team In b"], &mut vocabulary),
    );
    let undefined = UndefinedLabels::AllowedIfWellKnown;
    let unknown = Incompatible::Undefined {
        key: "team".to_owned(),
        similar: None,
    };
    assert_eq!(claim.compatible(&second, undefined, &vocabulary), Err(unknown));
    claim.add_all(&first, &vocabulary);
    assert_eq!(claim.compatible(&second, undefined, &vocabulary), Ok(()));
}

#[test]
fn more_than_five_values_are_counted_instead_of_listed() {
    let mut vocabulary = Vocabulary::new();
    let set = requirements(&["size In h g f e d c b a"], &mut vocabulary);
    assert_eq!(set.text(&vocabulary), "size In [a b c d e and 3 others]");
}

#[test]
fn hostname_is_a_placeholder_and_never_printed() {
    let mut vocabulary = Vocabulary::new();
    let set = requirements(&["kubernetes.io/hostname In a", "size Gte 2"], &mut vocabulary);
    assert_eq!(set.text(&vocabulary), "size Exists >=2");
}

#[test]
fn node_with_old_and_new_zone_label_is_in_both_zones_or_none() {
    let mut vocabulary = Vocabulary::new();
    let labels = [
        ("topology.kubernetes.io/zone", "a"),
        ("failure-domain.beta.kubernetes.io/zone", "b"),
    ];
    let set = Requirements::from_labels(labels, &mut vocabulary);
    assert_eq!(set.text(&vocabulary), "topology.kubernetes.io/zone DoesNotExist");
}

#[test]
fn value_alias_applies_to_requirements_but_not_to_probing() {
    let mut vocabulary = Vocabulary::with_rules(LabelRules::new(&[Provider::Azure]));
    let regional = Requirement::parse("topology.kubernetes.io/zone", Operator::In, [""], &mut vocabulary);
    assert_eq!(
        (regional.has("0", &vocabulary), regional.has("", &vocabulary)),
        (true, false)
    );
}

#[test]
fn concrete_label_is_an_acceptable_value_or_nothing() {
    let mut vocabulary = Vocabulary::new();
    let cases = [
        ("size In b a", 7, Some("a")),
        ("size DoesNotExist", 7, None),
        ("size Exists", 7, Some("7")),
        ("size NotIn 7 8", 7, Some("9")),
        ("size Gte 10", 7, Some("17")),
        ("size Lt 5", 7, Some("2")),
        ("size Gte 9223372036854775807", 7, Some("9223372036854775807")),
        ("size Lt 0", 7, None),
    ];
    for (text, draw, expected) in cases {
        let requirement = Requirement::from_spec(&spec(text), &mut vocabulary);
        assert_eq!(requirement.any(&vocabulary, draw).as_deref(), expected, "{text}");
    }
}

#[test]
fn labels_leave_out_the_keys_asked_for_and_those_that_must_be_absent() {
    let mut vocabulary = Vocabulary::new();
    let set = requirements(
        &["team In red", "kubernetes.io/arch In arm64", "gpu DoesNotExist"],
        &mut vocabulary,
    );
    let left_out = BitSet::from_iter([KeyId::ARCH.bit()]);
    assert_eq!(set.labels(&left_out, &vocabulary, 0), [("team", "red".to_owned())]);
}

#[test]
fn replaced_requirement_forgets_what_was_there_and_removed_one_is_undefined() {
    let mut vocabulary = Vocabulary::new();
    let mut set = requirements(&["karpenter.sh/capacity-type In spot", "team In red"], &mut vocabulary);
    set.replace(Requirement::one_of(KeyId::CAPACITY_TYPE, [ValueId::RESERVED]));
    set.remove(vocabulary.key("team").unwrap());
    assert_eq!(
        set.to_specs(&vocabulary),
        [spec("karpenter.sh/capacity-type In reserved")]
    );
}

#[test]
fn bound_without_exactly_one_integer_is_refused() {
    let cases = [
        ("size Gt 4", true),
        ("size Gt four", false),
        ("size Lte", false),
        ("size Gte 1 2", false),
        ("size In", true),
    ];
    for (text, is_valid) in cases {
        assert_eq!(spec(text).validate().is_ok(), is_valid, "{text}");
    }
    let refusal = spec("size Gt four")
        .validate()
        .as_ref()
        .map_err(SpecError::to_string)
        .unwrap_err();
    assert_eq!(
        refusal,
        r#"requirement on "size": Gt needs exactly one integer, not ["four"]; write values: ["4"]"#
    );
}

#[test]
fn spec_is_read_and_written_as_the_api_does() {
    let json = r#"{"key":"size","operator":"In","values":["1","2"],"minValues":2}"#;
    let read: RequirementSpec = serde_json::from_str(json).unwrap();
    assert_eq!(serde_json::to_string(&read).unwrap(), json);
    let refusal = serde_json::from_str::<RequirementSpec>(r#"{"key":"size","operator":"in"}"#)
        .unwrap_err()
        .to_string();
    let expected = "unknown operator \"in\", use one of In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte, Lte";
    assert!(refusal.starts_with(expected), "{refusal}");
}
