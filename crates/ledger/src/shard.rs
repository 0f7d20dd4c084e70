//! Decisions as text: one a line, and as compressed shards small enough for a ConfigMap.

use std::io::{Read, Write};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde::{Deserialize, Serialize};

use crate::{ENGINE, Record};

/// The key of a ConfigMap's `binaryData` under which a shard lies.
pub const ENTRY: &str = "decisions.jsonl.gz";
/// The most that a shard may be as a ConfigMap has it. The API server takes 1 MiB of all data.
const LARGEST: usize = 900_000;
/// The most that is unpacked of a shard: nobody writes that much.
const LARGEST_TEXT: u64 = 64 << 20;

/// The name of the ConfigMap that holds a shard.
pub fn name_of(slot: usize) -> String {
    format!("dovetail-decisions-{slot}")
}

/// The first line of a shard.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    shard: u64,
    engine: String,
}

/// Why something is no shard.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreadable(String);

/// A line for each record.
pub fn lines<'a>(records: impl IntoIterator<Item = &'a Record>) -> String {
    let mut text = String::new();
    for record in records {
        if let Ok(line) = serde_json::to_string(record) {
            text.push_str(&line);
            text.push('\n');
        }
    }
    text
}

/// The records of a text, and how many lines could not be read.
pub fn read_lines(text: &str) -> (Vec<Record>, usize) {
    let mut records = Vec::new();
    let mut unread = 0;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        match serde_json::from_str(line) {
            Ok(record) => records.push(record),
            Err(_) if serde_json::from_str::<Head>(line).is_ok() => {}
            Err(_) => unread += 1,
        }
    }
    (records, unread)
}

/// A shard as text: a line that says which, and a line for each record.
pub fn shard_text(number: u64, records: &[Record]) -> String {
    let head = Head {
        shard: number,
        engine: ENGINE.to_owned(),
    };
    let head = serde_json::to_string(&head).unwrap_or_default();
    format!("{head}\n{}", lines(records))
}

/// A shard as a ConfigMap has it, and how many of its oldest records had to be left out for it to fit.
pub fn write_shard(number: u64, records: &[Record]) -> (String, usize) {
    let mut from = 0;
    loop {
        let rest = records.get(from..).unwrap_or_default();
        let written = BASE64_STANDARD.encode(packed(&shard_text(number, rest)));
        if written.len() < LARGEST || rest.is_empty() {
            return (written, from);
        }
        from += rest.len().div_ceil(4);
    }
}

/// Packed in a hurry: a shard is written again whenever something is new in it, and is small enough either way.
fn packed(text: &str) -> Vec<u8> {
    let mut packer = flate2::GzBuilder::new()
        .mtime(0)
        .write(Vec::new(), flate2::Compression::fast());
    let written = packer.write_all(text.as_bytes());
    written.and_then(|()| packer.finish()).unwrap_or_default()
}

/// The number and the records of a shard as a ConfigMap has it; lines that cannot be read are counted.
pub fn read_shard(written: &str) -> Result<(u64, Vec<Record>, usize), Unreadable> {
    let packed = BASE64_STANDARD
        .decode(written.trim())
        .map_err(|error| Unreadable(format!("it is not base64: {error}")))?;
    let mut text = String::new();
    flate2::read::GzDecoder::new(packed.as_slice())
        .take(LARGEST_TEXT)
        .read_to_string(&mut text)
        .map_err(|error| Unreadable(format!("it cannot be unpacked: {error}")))?;
    let head = text.lines().next().unwrap_or_default();
    let head: Head =
        serde_json::from_str(head).map_err(|error| Unreadable(format!("its first line does not name it: {error}")))?;
    let (records, unread) = read_lines(&text);
    Ok((head.shard, records, unread))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::{Action, Id, Phase};

    fn record(name: &str) -> Record {
        let id = Id::of("keep", [name]);
        let mut record = Record::new(id, Action::Keep, Phase::Done, "NotCheaper", Timestamp::UNIX_EPOCH);
        record.detail = name.to_owned();
        record
    }

    #[test]
    fn a_shard_reads_back_as_it_was_written() {
        let records: Vec<Record> = (0..50).map(|number| record(&number.to_string())).collect();
        let (written, left_out) = write_shard(7, &records);
        assert_eq!(left_out, 0);
        assert_eq!(read_shard(&written), Ok((7, records, 0)));
    }

    #[test]
    fn a_shard_that_would_not_fit_loses_its_oldest_records() {
        // Digits of a digest hardly compress.
        let noise = |seed: usize| -> String {
            let words = (0..200).map(|at| format!("{}", Id::of("noise", [format!("{seed}/{at}").as_str()])));
            words.collect()
        };
        let records: Vec<Record> = (0..1000).map(|seed| record(&noise(seed))).collect();
        let (written, left_out) = write_shard(7, &records);
        assert!(written.len() < 900_000, "{}", written.len());
        assert!(left_out > 0 && left_out < 1000, "{left_out}");
        let (_, kept, _) = read_shard(&written).unwrap();
        assert_eq!(kept.last(), records.last(), "the newest stay");
        assert_eq!(kept.len() + left_out, 1000);
    }

    #[test]
    fn what_is_no_shard_is_named_and_a_line_that_cannot_be_read_is_counted() {
        let texts = ["%%", "bm90IGd6aXA="];
        for text in texts {
            assert!(read_shard(text).is_err(), "{text}");
        }
        let mut text = shard_text(3, &[record("a"), record("b")]);
        text.push_str("{\"id\": 7}\n");
        let written = BASE64_STANDARD.encode(packed(&text));
        let (number, records, unread) = read_shard(&written).unwrap();
        assert_eq!((number, records.len(), unread), (3, 2, 1));
    }
}
