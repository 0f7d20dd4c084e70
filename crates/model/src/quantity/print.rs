//! The one text an amount is written as: Kubernetes' canonical form.
//!
//! No digit is lost, no decimal point is printed, and the suffix is the largest for which that holds. A binary amount
//! below 1Ki, or with a fraction, is written as a decimal.

use std::fmt;

use super::{Format, Quantity, UNIT};

const DECIMAL_SUFFIXES: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
const BINARY_SUFFIXES: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&canonical(*self))
    }
}

fn canonical(quantity: Quantity) -> String {
    let nanos = quantity.nanos;
    if nanos == 0 {
        return "0".to_owned();
    }
    match quantity.format {
        Format::DecimalExponent => with_exponent(nanos),
        Format::BinarySi if nanos.abs() >= 1024 * UNIT && nanos % UNIT == 0 => {
            with_suffix(nanos / UNIT, 1024, &BINARY_SUFFIXES)
        }
        Format::BinarySi | Format::DecimalSi => with_suffix(nanos, 1000, &DECIMAL_SUFFIXES),
    }
}

fn with_suffix(number: i128, step: i128, suffixes: &[&str]) -> String {
    let (mut number, mut suffix, mut larger) = (number, "", suffixes);
    while let [current, rest @ ..] = larger {
        suffix = current;
        if rest.is_empty() || number % step != 0 {
            break;
        }
        number /= step;
        larger = rest;
    }
    format!("{number}{suffix}")
}

fn with_exponent(nanos: i128) -> String {
    let (mut number, mut exponent) = (nanos, -9);
    while number % 1000 == 0 {
        number /= 1000;
        exponent += 3;
    }
    if exponent == 0 {
        number.to_string()
    } else {
        format!("{number}e{exponent}")
    }
}
