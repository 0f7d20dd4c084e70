//! Upstream's resource arithmetic, on lists and on vectors: the two always agree.

use proptest::{collection::btree_map, prelude::*};

use super::{ResourceDictionary, ResourceList, ResourceName, Resources};
use crate::quantity::Quantity;

fn list(json: &str) -> ResourceList {
    serde_json::from_str(json).unwrap()
}

#[test]
fn nothing_fits_in_an_overdrawn_total_and_absent_counts_as_zero() {
    let cases = [
        (r"{}", r"{}", true),
        (r#"{"cpu":"1"}"#, r#"{"cpu":"1000m"}"#, true),
        (r#"{"cpu":"1001m"}"#, r#"{"cpu":"1"}"#, false),
        (r#"{"gpu":"0"}"#, r#"{"cpu":"1"}"#, true),
        (r#"{"gpu":"1"}"#, r#"{"cpu":"1"}"#, false),
        (r#"{"gpu":"-1"}"#, r#"{"cpu":"1"}"#, true),
        (r#"{"cpu":"1"}"#, r#"{"cpu":"1","memory":"-1"}"#, false),
        (r"{}", r#"{"memory":"-1"}"#, false),
    ];
    for (candidate, total, expected) in cases {
        let (candidate, total) = (list(candidate), list(total));
        let mut dictionary = ResourceDictionary::default();
        let dense = Resources::intern(&candidate, &mut dictionary).fits(&Resources::intern(&total, &mut dictionary));
        assert_eq!(
            (candidate.fits(&total), dense),
            (expected, expected),
            "{candidate} in {total}"
        );
    }
}

#[test]
fn subtracting_ignores_what_the_left_side_does_not_name_but_subtracting_in_place_does_not() {
    let (left, right) = (
        list(r#"{"cpu":"2","memory":"1Gi"}"#),
        list(r#"{"cpu":"500m","gpu":"1"}"#),
    );
    let mut in_place = left.clone();
    in_place.subtract_from(&right);
    assert_eq!(left.subtract(&right), list(r#"{"cpu":"1500m","memory":"1Gi"}"#));
    assert_eq!(in_place, list(r#"{"cpu":"1500m","memory":"1Gi","gpu":"-1"}"#));
}

#[test]
fn maximum_takes_all_names_and_minimum_only_shared_ones() {
    let (left, right) = (list(r#"{"cpu":"1","memory":"2Gi"}"#), list(r#"{"cpu":"2","gpu":"-1"}"#));
    let mut raised = left.clone();
    raised.raise_to(&right);
    assert_eq!(raised, list(r#"{"cpu":"2","memory":"2Gi","gpu":"-1"}"#));
    assert_eq!(left.min(&right), list(r#"{"cpu":"1"}"#));
}

#[test]
fn list_is_read_and_written_as_the_api_does() {
    let text = r#"{"cpu":"1500m","ephemeral-storage":"20Gi","hugepages-2Mi":"0","nvidia.com/gpu":"1"}"#;
    assert_eq!(serde_json::to_string(&list(text)).unwrap(), text);
    assert_eq!(list(text).to_string(), text);
    assert_eq!(list("null"), ResourceList::EMPTY);
    let error = serde_json::from_str::<ResourceList>(r#"{"cpu":"1","memory":"lots"}"#)
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("memory: \"lots\" is not a quantity"), "{error}");
}

fn any_list() -> impl Strategy<Value = ResourceList> {
    let name = prop_oneof![
        Just("cpu"),
        Just("memory"),
        Just("pods"),
        Just("gpu"),
        Just("hugepages-2Mi"),
        Just("a/b")
    ];
    btree_map(name, -3_i64..6, 0..6).prop_map(|entries| {
        let entry = |(name, units)| (ResourceName::from(name), Quantity::from_units(units));
        entries.into_iter().map(entry).collect()
    })
}

type Change = (fn(&mut ResourceList, &ResourceList), fn(&mut Resources, &Resources));

proptest! {
    #[test]
    fn vectors_compute_what_lists_compute(a in any_list(), b in any_list()) {
        let mut dictionary = ResourceDictionary::default();
        let (x, y) = (Resources::intern(&a, &mut dictionary), Resources::intern(&b, &mut dictionary));
        let changes: [Change; 4] = [
            (ResourceList::add, Resources::add),
            (ResourceList::subtract_from, Resources::subtract_from),
            (ResourceList::raise_to, Resources::raise_to),
            (|l, r| *l = l.subtract(r), |l, r| *l = l.subtract(r)),
        ];
        for (on_list, on_vector) in changes {
            let (mut sparse, mut dense) = (a.clone(), x.clone());
            on_list(&mut sparse, &b);
            on_vector(&mut dense, &y);
            prop_assert_eq!(&dense.to_list(&dictionary), &sparse);
            prop_assert_eq!(&dense, &Resources::intern(&sparse, &mut dictionary.clone()));
        }
        prop_assert_eq!(x.fits(&y), a.fits(&b));
    }

    #[test]
    fn lists_add_in_any_order_and_survive_json(a in any_list(), b in any_list(), c in any_list()) {
        let sum = |lists: [&ResourceList; 3]| {
            let mut total = ResourceList::EMPTY;
            lists.into_iter().for_each(|list| total.add(list));
            total
        };
        prop_assert_eq!(sum([&a, &b, &c]), sum([&c, &a, &b]));
        prop_assert_eq!(list(&serde_json::to_string(&a).unwrap()), a);
    }
}
