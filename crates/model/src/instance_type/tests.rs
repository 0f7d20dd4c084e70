//! Upstream's specs of allocatable, price order, launch price and minValues.

use super::{InstanceType, MinValuesUnmet, Offering, Overhead, by_price, needed_for_min_values, worst_launch_price};
use crate::{
    price::Price,
    requirement::{RequirementSpec, Requirements},
    resources::ResourceList,
    vocabulary::{KeyId, ValueId, Vocabulary},
};

fn list(json: &str) -> ResourceList {
    serde_json::from_str(json).unwrap()
}

fn requirements(texts: &[&str], vocabulary: &mut Vocabulary) -> Requirements {
    let spec = |text: &&str| {
        let (text, min_values) = text
            .split_once(" minValues ")
            .map_or((*text, None), |(text, count)| (text, Some(count)));
        let words: Vec<_> = text.split(' ').collect();
        let spec = RequirementSpec::new(words[0], words[1].parse().unwrap(), &words[2..]);
        RequirementSpec {
            min_values: min_values.map(|count| count.parse().unwrap()),
            ..spec
        }
    };
    Requirements::from_specs(&texts.iter().map(spec).collect::<Vec<_>>(), vocabulary)
}

/// `zone capacity-type price`
fn offering(text: &str, vocabulary: &mut Vocabulary) -> Offering {
    let words: Vec<_> = text.split(' ').collect();
    let (zone, capacity_type) = (words[0], words[1]);
    Offering {
        requirements: requirements(
            &[
                &format!("topology.kubernetes.io/zone In {zone}"),
                &format!("karpenter.sh/capacity-type In {capacity_type}"),
            ],
            vocabulary,
        ),
        price: words[2].parse().unwrap(),
        is_available: true,
        reservation_capacity: 0,
        capacity_override: ResourceList::EMPTY,
        overhead_override: None,
        is_price_overlaid: false,
    }
}

fn instance_type(name: &str, labels: &[&str], offerings: &[&str], vocabulary: &mut Vocabulary) -> InstanceType {
    let mut labels: Vec<_> = labels.iter().map(|label| (*label).to_owned()).collect();
    labels.push(format!("node.kubernetes.io/instance-type In {name}"));
    let labels: Vec<_> = labels.iter().map(String::as_str).collect();
    InstanceType {
        name: name.into(),
        requirements: requirements(&labels, vocabulary),
        offerings: offerings.iter().map(|text| offering(text, vocabulary)).collect(),
        capacity: ResourceList::EMPTY,
        overhead: Overhead::default(),
        volume_limits: [].into(),
        is_capacity_overlaid: false,
    }
}

fn price(text: &str) -> Price {
    text.parse().unwrap()
}

#[test]
fn allocatable_is_capacity_without_overhead_and_huge_pages_and_never_negative_memory() {
    let cases = [
        (
            r#"{"cpu":"4","memory":"8Gi"}"#,
            r#"{"cpu":"100m","memory":"1Gi","gpu":"1"}"#,
            r#"{"cpu":"3900m","memory":"7Gi"}"#,
        ),
        (
            r#"{"cpu":"1","memory":"4Gi","hugepages-2Mi":"1Gi"}"#,
            r#"{"memory":"1Gi"}"#,
            r#"{"cpu":"1","memory":"2Gi","hugepages-2Mi":"1Gi"}"#,
        ),
        (
            r#"{"memory":"1Gi","hugepages-2Mi":"2Gi","hugepages-1Gi":"1Gi"}"#,
            "{}",
            r#"{"memory":"0","hugepages-2Mi":"2Gi","hugepages-1Gi":"1Gi"}"#,
        ),
        (r#"{"cpu":"1"}"#, r#"{"cpu":"2"}"#, r#"{"cpu":"-1"}"#),
    ];
    for (capacity, overhead, expected) in cases {
        let mut candidate = instance_type("t", &[], &[], &mut Vocabulary::new());
        candidate.capacity = list(capacity);
        candidate.overhead.kube_reserved = list(overhead);
        assert_eq!(candidate.allocatable(), list(expected), "{capacity} without {overhead}");
    }
}

#[test]
fn overhead_is_the_sum_of_its_three_parts() {
    let [kube_reserved, system_reserved, eviction_threshold] = [
        r#"{"cpu":"80m","memory":"1Gi"}"#,
        r#"{"cpu":"20m"}"#,
        r#"{"memory":"100Mi"}"#,
    ]
    .map(list);
    let overhead = Overhead {
        kube_reserved,
        system_reserved,
        eviction_threshold,
    };
    assert_eq!(overhead.total(), list(r#"{"cpu":"100m","memory":"1124Mi"}"#));
}

#[test]
fn offerings_with_the_same_overrides_share_a_row_and_the_base_row_comes_first() {
    let vocabulary = &mut Vocabulary::new();
    let mut candidate = instance_type("t", &[], &["a spot 1", "b spot 1", "c spot 1", "d spot 1"], vocabulary);
    candidate.capacity = list(r#"{"cpu":"4","memory":"8Gi"}"#);
    candidate.overhead.kube_reserved = list(r#"{"cpu":"1","memory":"1Gi"}"#);
    let overridden = list(r#"{"gpu":"1","memory":"4Gi"}"#);
    candidate.offerings[0].capacity_override = overridden.clone();
    candidate.offerings[2].capacity_override = overridden;
    candidate.offerings[3].overhead_override = Some(Overhead {
        system_reserved: list(r#"{"cpu":"2"}"#),
        ..Overhead::default()
    });
    let zones = |row: &super::AllocatableRow<'_>| -> Vec<String> {
        let zone = |offering: &&Offering| {
            vocabulary
                .value_name(KeyId::ZONE, offering.value(KeyId::ZONE).unwrap())
                .to_owned()
        };
        row.offerings.iter().map(zone).collect()
    };
    let rows: Vec<_> = candidate
        .allocatable_rows()
        .iter()
        .map(|row| (row.allocatable.to_string(), zones(row)))
        .collect();
    assert_eq!(
        rows,
        [
            (r#"{"cpu":"3","memory":"7Gi"}"#.to_owned(), vec!["b".to_owned()]),
            (
                r#"{"cpu":"3","gpu":"1","memory":"3Gi"}"#.to_owned(),
                vec!["a".to_owned(), "c".to_owned()]
            ),
            (r#"{"cpu":"2","memory":"7Gi"}"#.to_owned(), vec!["d".to_owned()]),
        ]
    );
    candidate.offerings[1].is_available = false;
    assert_eq!(candidate.allocatable_rows()[0].offerings, [] as [&Offering; 0]);
}

#[test]
fn full_reservation_is_available_but_not_launchable() {
    let vocabulary = &mut Vocabulary::new();
    let mut reserved = offering("a reserved 0.001", vocabulary);
    assert!(!reserved.is_launchable(vocabulary));
    reserved.reservation_capacity = 1;
    assert!(reserved.is_launchable(vocabulary));
    reserved.is_available = false;
    assert!(!reserved.is_launchable(vocabulary));
    assert!(offering("a spot 1", vocabulary).is_launchable(vocabulary));
    let unspecific = Offering {
        requirements: Requirements::default(),
        ..offering("a spot 1", vocabulary)
    };
    assert!(unspecific.is_launchable(vocabulary));
}

#[test]
fn types_are_ordered_by_what_can_be_launched_for_the_claim() {
    let vocabulary = &mut Vocabulary::new();
    let types = [
        instance_type("elsewhere", &[], &["b on-demand 0.1"], vocabulary),
        instance_type("full", &[], &["a reserved 0.001", "a on-demand 4"], vocabulary),
        instance_type("dear", &[], &["a on-demand 3"], vocabulary),
        instance_type("cheap", &[], &["a on-demand 2", "a spot 1", "b spot 0.5"], vocabulary),
        instance_type("tied", &[], &["a spot 1"], vocabulary),
    ];
    let order = |claim: &[&str], vocabulary: &mut Vocabulary| -> Vec<String> {
        let claim = requirements(claim, vocabulary);
        by_price(&types, &claim, vocabulary)
            .iter()
            .map(|candidate| candidate.name.to_string())
            .collect()
    };
    assert_eq!(
        order(&["topology.kubernetes.io/zone In a"], vocabulary),
        ["cheap", "tied", "dear", "full", "elsewhere"]
    );
    assert_eq!(
        order(&["karpenter.sh/capacity-type In on-demand"], vocabulary),
        ["elsewhere", "cheap", "dear", "full", "tied"]
    );
}

#[test]
fn worst_launch_price_is_the_dearest_of_the_kind_that_would_be_used() {
    let vocabulary = &mut Vocabulary::new();
    let offerings: Vec<_> = [
        "a reserved 0.1",
        "b reserved 0.2",
        "a spot 1",
        "b spot 2",
        "a on-demand 5",
    ]
    .iter()
    .map(|text| offering(text, vocabulary))
    .collect();
    let cases: [(&[&str], Option<&str>); 5] = [
        (&[], Some("0.2")),
        (&["karpenter.sh/capacity-type In spot on-demand"], Some("2")),
        (
            &[
                "karpenter.sh/capacity-type In spot on-demand",
                "topology.kubernetes.io/zone In a",
            ],
            Some("1"),
        ),
        (&["karpenter.sh/capacity-type In on-demand"], Some("5")),
        (&["topology.kubernetes.io/zone In c"], None),
    ];
    for (claim, expected) in cases {
        let claim = requirements(claim, vocabulary);
        assert_eq!(
            worst_launch_price(&offerings, &claim, vocabulary),
            expected.map(price),
            "{}",
            claim.text(vocabulary)
        );
    }
}

#[test]
fn enough_types_are_needed_to_reach_every_minimum_of_admitted_values() {
    let vocabulary = &mut Vocabulary::new();
    let types = [
        instance_type("c4.large", &["family In c4", "zone In a b"], &[], vocabulary),
        instance_type("c4.xlarge", &["family In c4", "zone In c"], &[], vocabulary),
        instance_type("c5.large", &["family In c5", "zone In a"], &[], vocabulary),
        instance_type("m4.large", &["family In m4"], &[], vocabulary),
    ];
    let unmet = |labels: &[(&str, usize)]| {
        Err(MinValuesUnmet {
            labels: labels
                .iter()
                .map(|(label, count)| ((*label).to_owned(), *count))
                .collect(),
        })
    };
    let cases: [(&[&str], Result<usize, MinValuesUnmet>); 7] = [
        (&["family Exists"], Ok(0)),
        (&["family Exists minValues 1"], Ok(1)),
        (&["family Exists minValues 3"], Ok(4)),
        (
            &[
                "family Exists minValues 2",
                "node.kubernetes.io/instance-type Exists minValues 3",
            ],
            Ok(3),
        ),
        (&["family Exists minValues 4"], unmet(&[("family", 3)])),
        (&["zone In a c minValues 2"], Ok(2)),
        (
            &["zone In b minValues 2", "cpu Exists minValues 1"],
            unmet(&[("zone", 1), ("cpu", 0)]),
        ),
    ];
    for (claim, expected) in cases {
        let claim = requirements(claim, vocabulary);
        assert_eq!(
            needed_for_min_values(&types, &claim, vocabulary),
            expected,
            "{}",
            claim.text(vocabulary)
        );
    }
    let text = unmet(&[("zone", 1), ("cpu", 0)]).unwrap_err().to_string();
    assert_eq!(
        text,
        "minValues requirement is not met for label(s) (label(s)=[cpu zone])"
    );
    let none = requirements(&["family Exists minValues 3"], vocabulary);
    assert_eq!(needed_for_min_values([], &none, vocabulary), Ok(0));
}

#[test]
fn overlay_sets_or_adjusts_a_price_and_adds_to_capacity() {
    let vocabulary = &mut Vocabulary::new();
    let mut candidate = instance_type("t", &[], &["a spot 2"], vocabulary);
    candidate.capacity = list(r#"{"cpu":"4"}"#);
    for (change, expected) in [("1.5", "1.5"), ("+0.5", "2"), ("-50%", "1")] {
        candidate.offerings[0].overlay_price(change).unwrap();
        assert_eq!(candidate.offerings[0].price, price(expected));
    }
    assert!(candidate.is_price_overlaid());
    candidate.overlay_capacity(&list(r#"{"smarter-devices/fuse":"1"}"#));
    assert_eq!(candidate.capacity, list(r#"{"cpu":"4","smarter-devices/fuse":"1"}"#));
    assert!(candidate.is_capacity_overlaid);
    assert!(candidate.offerings[0].overlay_price("free").is_err());
}

#[test]
fn type_is_available_for_a_claim_when_an_available_offering_is() {
    let vocabulary = &mut Vocabulary::new();
    let mut candidate = instance_type("t", &[], &["a spot 2"], vocabulary);
    let (here, there) = (
        requirements(&["topology.kubernetes.io/zone In a"], vocabulary),
        requirements(&["topology.kubernetes.io/zone In b"], vocabulary),
    );
    assert_eq!(
        (
            candidate.is_available_for(&here, vocabulary),
            candidate.is_available_for(&there, vocabulary)
        ),
        (true, false)
    );
    assert_eq!(candidate.offerings[0].value(KeyId::CAPACITY_TYPE), Some(ValueId::SPOT));
    candidate.offerings[0].is_available = false;
    assert!(!candidate.is_available_for(&here, vocabulary));
}
