//! Any bytes are a snapshot or a list of faults, never a panic; and what was read is written and read back unchanged.
//!
//! `cargo +nightly fuzz run dump fuzz/corpus/dump crates/model/tests/data` starts from objects of every kind.

#![no_main]

use libfuzzer_sys::fuzz_target;
use model::{
    dump::{self, Mode, Options, Source},
    snapshot::Snapshot,
};

fn read(bytes: Vec<u8>, mode: Mode) -> Result<(Snapshot, dump::Report), dump::Faults> {
    let options = Options { mode, taken_at: Default::default() };
    dump::read([Source::Stream("fuzz".into(), Box::new(std::io::Cursor::new(bytes)))], options)
}

fuzz_target!(|bytes: &[u8]| {
    let (snapshot, _) = read(bytes.to_vec(), Mode::Lenient).expect("lenient reading always gives a snapshot");
    let mut first = Vec::new();
    dump::write(&snapshot, &mut first).expect("memory takes every byte");
    let (again, _) = read(first.clone(), Mode::Strict).unwrap_or_else(|faults| panic!("{faults}"));
    let mut second = Vec::new();
    dump::write(&again, &mut second).expect("memory takes every byte");
    assert_eq!(String::from_utf8(first), String::from_utf8(second));
});
