//! Facts printed by `k8s.io/apimachinery` v0.36, replayed, and the laws of exact arithmetic.

use proptest::prelude::*;
use serde_json::Value;

use super::{Format, LIMIT, Quantity, QuantityError};

const FACTS: &str = include_str!("facts.jsonl");

fn facts(kind: &str) -> Vec<Vec<Value>> {
    let all = FACTS
        .lines()
        .map(|line| serde_json::from_str::<Vec<Value>>(line).unwrap());
    all.filter(|fact| fact[0] == kind).collect()
}

fn text(fact: &[Value], at: usize) -> &str {
    fact[at].as_str().unwrap()
}

fn quantity(text: &str) -> Quantity {
    text.parse().unwrap()
}

fn format_name(format: Format) -> &'static str {
    match format {
        Format::DecimalSi => "DecimalSI",
        Format::BinarySi => "BinarySI",
        Format::DecimalExponent => "DecimalExponent",
    }
}

fn refusal(error: &QuantityError) -> &'static str {
    match error {
        QuantityError::Malformed(_) => "malformed",
        QuantityError::Suffix { .. } => "suffix",
        QuantityError::NoDigits(_) => "no digits",
    }
}

#[test]
fn texts_are_read_and_printed_as_kubernetes_does() {
    let facts = facts("parse");
    assert!(facts.len() > 500);
    for fact in facts {
        let input = text(&fact, 1);
        let ours = match input.parse::<Quantity>() {
            Err(error) => vec!["error".to_owned(), refusal(&error).to_owned()],
            Ok(read) => vec![
                read.to_string(),
                format_name(read.format()).to_owned(),
                read.value().to_string(),
                read.milli_value().to_string(),
            ],
        };
        let theirs: Vec<_> = (2..fact.len()).map(|at| text(&fact, at).to_owned()).collect();
        assert_eq!(ours, theirs, "{input:?}");
    }
}

#[test]
fn sums_differences_and_order_are_those_of_kubernetes() {
    for fact in facts("pair") {
        let (a, b) = (quantity(text(&fact, 1)), quantity(text(&fact, 2)));
        let ours = ((a + b).to_string(), (a - b).to_string(), a.cmp(&b) as i64);
        let theirs = (
            text(&fact, 3).to_owned(),
            text(&fact, 4).to_owned(),
            fact[5].as_i64().unwrap(),
        );
        assert_eq!(ours, theirs, "{fact:?}");
    }
}

#[test]
fn json_gives_a_quantity_as_text_number_or_null() {
    let cases = [
        (r#""500m""#, "500m"),
        (r#"" 2Gi ""#, "2Gi"),
        ("3", "3"),
        ("-3", "-3"),
        ("18446744073709551615", "18446744073709551615"),
        ("0.5", "500m"),
        ("null", "0"),
    ];
    for (json, expected) in cases {
        let read: Quantity = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), format!("{expected:?}"), "{json}");
    }
}

#[test]
fn refusal_names_the_text_and_the_way_out() {
    let cases = [
        (
            "2Gib",
            "\"2Gib\" is not a quantity: quantities must match the regular expression \
            '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$', for example 500m or 2Gi",
        ),
        (
            "2gi",
            "\"2gi\" is not a quantity: quantities must match the regular expression \
            '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$', for example 500m or 2Gi",
        ),
        (
            "2K",
            "\"2K\" is not a quantity: unable to parse quantity's suffix \"K\", \
            use one of n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or an exponent such as e3",
        ),
        (
            "e-12",
            "\"e-12\" is not a quantity: unable to parse numeric part of quantity, write digits before the suffix",
        ),
    ];
    for (input, expected) in cases {
        assert_eq!(input.parse::<Quantity>().unwrap_err().to_string(), expected);
    }
}

#[test]
fn amount_beyond_all_bounds_is_held_at_the_bound() {
    let cases = [
        ("1e30", "100e27"),
        ("-1e99", "-100e27"),
        ("1000000000000E", "100000000000E"),
        ("8Ei", "9223372036854775807"),
    ];
    for (input, expected) in cases {
        assert_eq!(quantity(input).to_string(), expected, "{input}");
    }
    let most = Quantity::from_nanos(LIMIT, Format::DecimalExponent);
    assert_eq!((most + most, -most - most), (most, -most));
}

fn any_quantity() -> impl Strategy<Value = Quantity> {
    let format = prop_oneof![
        Just(Format::DecimalSi),
        Just(Format::BinarySi),
        Just(Format::DecimalExponent)
    ];
    let nanos = prop_oneof![
        -(1_i128 << 90)..(1_i128 << 90),
        (-4096_i128..4096).prop_map(|units| units * 1_000_000_000),
        (0_i128..1 << 40).prop_map(|kibibytes| (kibibytes << 10) * 1_000_000_000),
    ];
    (nanos, format).prop_map(|(nanos, format)| Quantity::from_nanos(nanos, format))
}

proptest! {
    #[test]
    fn printed_quantity_reads_back_as_the_same_amount(q in any_quantity()) {
        let printed = q.to_string();
        prop_assert!(!printed.contains('.'), "{}", printed);
        let capped = if printed.ends_with('i') { q.nanos().min(i128::from(i64::MAX) * 1_000_000_000) } else { q.nanos() };
        prop_assert_eq!(quantity(&printed).nanos(), capped);
    }

    #[test]
    fn addition_is_commutative_associative_and_undone_by_subtraction(a in any_quantity(), b in any_quantity(), c in any_quantity()) {
        prop_assert_eq!(a + b, b + a);
        prop_assert_eq!((a + b) + c, a + (b + c));
        prop_assert_eq!(a + b - b, a);
        prop_assert_eq!(-(-a), a);
        prop_assert_eq!(a - b, -(b - a));
    }

    #[test]
    fn order_is_the_order_of_differences(a in any_quantity(), b in any_quantity()) {
        prop_assert_eq!(a < b, (a - b).is_negative());
        prop_assert_eq!(a == b, (a - b).is_zero());
    }

    #[test]
    fn whole_units_round_away_from_zero(q in any_quantity()) {
        let rounded = i128::from(q.value()) * 1_000_000_000;
        prop_assert!(rounded.abs() >= q.nanos().abs() && rounded.abs() - q.nanos().abs() < 1_000_000_000
            || q.value() == i64::MAX || q.value() == i64::MIN);
    }

    #[test]
    fn reading_any_text_never_fails_badly(text in "[-+]?[0-9.]{0,45}[eEinumkKMGTP]{0,2}[-+]?[0-9]{0,12}|\\PC*") {
        if let Ok(read) = text.parse::<Quantity>() {
            prop_assert!(read.nanos().abs() <= LIMIT);
        }
    }
}
