//! No text crashes the quantity reader, and what it accepts prints to a text of the same amount.
//!
//! `cargo +nightly fuzz run quantity`

#![no_main]

use libfuzzer_sys::fuzz_target;
use model::quantity::Quantity;

fuzz_target!(|text: &str| {
    let Ok(read) = text.parse::<Quantity>() else { return };
    let printed = read.to_string();
    assert_eq!(printed.parse::<Quantity>(), Ok(read), "{text:?} printed as {printed:?}");
    assert_eq!(read - read, Quantity::ZERO);
    assert!(
        read.value().signum() == read.nanos().signum() as i64,
        "{text:?} rounded to {}",
        read.value()
    );
});
