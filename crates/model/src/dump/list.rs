//! A long list, as kubectl and API servers write them, read in pieces by several threads, each object once.
//!
//! Nothing is reported from here. A text in which anything is unusual is left to the slow way, which begins at its start and
//! says what is wrong, and where. That is also why cutting may guess: pieces that do not fall into whole objects are no JSON.

use std::{
    collections::BTreeMap,
    num::NonZero,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use serde::{Deserialize, de::DeserializeSeed};

use super::{
    item::{Item, Items, Worker},
    thin,
};
use crate::snapshot::{Draft, TypeMeta};

/// Shorter texts are read by one thread as fast.
pub(super) const LONG: usize = 1 << 20;
/// Bytes of a piece: enough to be worth taking, few enough for its copy to stay near the processor.
pub(super) const PIECE: usize = 4 << 20;
/// The list begins somewhere here; before it stand a kind, a version and perhaps where to read on.
pub(super) const HEAD: usize = 8 << 10;

/// What was read of a text.
#[derive(Debug, Default)]
pub(super) struct Read {
    pub(super) drafts: Vec<Draft>,
    pub(super) objects: usize,
    pub(super) skipped: BTreeMap<(String, String), usize>,
}

/// What is around the objects of a list.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Frame {
    api_version: String,
    kind: String,
    items: Vec<serde::de::IgnoredAny>,
}

impl Frame {
    /// What the list says its objects are, if it does; none when it is no list.
    #[expect(clippy::option_option, reason = "no list, and a list of anything")]
    pub(super) fn list(&self) -> Option<Option<TypeMeta<'_>>> {
        let kind = self.kind.strip_suffix("List").filter(|_| self.items.is_empty())?;
        let api_version = &self.api_version;
        Some((!kind.is_empty()).then_some(TypeMeta { api_version, kind }))
    }
}

/// The objects of a JSON list; none when it is short, or no list, or anything is wrong with it.
pub(super) fn json(text: &str) -> Option<Read> {
    if text.len() < LONG {
        return None;
    }
    let (open, close) = (opening(text)?, text.rfind(']')?);
    let frame: Frame = serde_json::from_slice([text.get(..open)?, text.get(close..)?].concat().as_bytes()).ok()?;
    let list = frame.list()?;
    let pieces = cut(text.get(open..close)?)?;
    at_once(pieces.len(), |worker, at, copy: &mut Vec<u8>| {
        copy.clear();
        copy.push(b'[');
        thin::copy(pieces[at].as_bytes(), copy);
        copy.push(b']');
        let text = std::str::from_utf8(copy).map_err(serde::de::Error::custom)?;
        let mut json = serde_json::Deserializer::from_str(text);
        Items { worker, list }.deserialize(&mut json)?;
        json.end()
    })
}

/// The objects of a YAML list as kubectl prints it, an item at each dash that begins a line.
pub(super) fn yaml(text: &str, read: impl Fn(&str) -> Option<serde_json::Value> + Sync) -> Option<Read> {
    if text.len() < LONG {
        return None;
    }
    let (start, end, list) = yaml_items(text, &read)?;
    let list = list.as_ref().map(|(api_version, kind)| TypeMeta { api_version, kind });
    let mut pieces = Vec::new();
    let mut body = text.get(start..end)?;
    while body.len() > PIECE / 4 {
        let near = (PIECE / 4..body.len()).find(|at| body.is_char_boundary(*at))?;
        let Some(at) = body.get(near..).and_then(|rest| rest.find("\n- ")) else {
            break;
        };
        let (piece, rest) = body.split_at_checked(near + at + 1)?;
        pieces.push(piece);
        body = rest;
    }
    pieces.push(body);
    let unusual = || <serde_json::Error as serde::de::Error>::custom("unusual");
    at_once(pieces.len(), |worker, at, copy: &mut String| {
        for item in dashes(pieces[at]) {
            copy.clear();
            copy.push(' ');
            copy.push_str(item.get(1..).ok_or_else(unusual)?);
            // Through JSON, so that there is one reader of each kind and not one for every format.
            let json = serde_json::to_vec(&read(copy).ok_or_else(unusual)?)?;
            Item { worker, list }.deserialize(&mut serde_json::Deserializer::from_slice(&json))?;
        }
        Ok(())
    })
}

/// The items of a piece, each from its dash to the next.
fn dashes(piece: &str) -> impl Iterator<Item = &str> {
    let mut rest = piece;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest.find("\n- ").map_or(rest.len(), |at| at + 1);
        let (item, after) = rest.split_at(end);
        rest = after;
        Some(item)
    })
}

/// Where the first dash and the end of the last item are, and what the list says its items are.
#[expect(clippy::type_complexity, reason = "a range and a kind")]
fn yaml_items(
    text: &str,
    read: &impl Fn(&str) -> Option<serde_json::Value>,
) -> Option<(usize, usize, Option<(String, String)>)> {
    let head = text.get(..HEAD.min(text.len())).or_else(|| text.get(..HEAD - 4))?;
    let at = if head.starts_with("items:\n- ") {
        0
    } else {
        head.find("\nitems:\n- ")? + 1
    };
    let start = at + "items:\n".len();
    // What follows the items begins a line; an item's own fields are indented.
    let follows = ["\nkind: ", "\nmetadata:", "\napiVersion: "];
    let follows = follows.iter().filter_map(|key| text.get(start..)?.rfind(key));
    let end = follows.min().map_or(text.len(), |at| start + at + 1);
    let frame = read(&[text.get(..at)?, "items: []\n", text.get(end..)?].concat())?;
    let (api_version, kind) = (frame["apiVersion"].as_str()?, frame["kind"].as_str()?);
    let kind = kind.strip_suffix("List")?;
    let list = (!kind.is_empty()).then(|| (api_version.to_owned(), kind.to_owned()));
    Some((start, end, list))
}

/// The offset behind the bracket that opens the items.
pub(super) fn opening(text: &str) -> Option<usize> {
    const KEY: &str = "\"items\"";
    let mut most = HEAD.min(text.len());
    while !text.is_char_boundary(most) {
        most -= 1;
    }
    let key = text.get(..most)?.find(KEY)? + KEY.len();
    let after = text.get(key..)?.trim_start().strip_prefix(':')?.trim_start();
    let after = after.strip_prefix('[')?;
    Some(text.len() - after.len())
}

/// Pieces of whole objects with commas between them, or what looks like that.
fn cut(body: &str) -> Option<Vec<&str>> {
    let indent = body.get(..body.find('{')?)?;
    let bytes = body.as_bytes();
    let mut pieces = Vec::new();
    let mut from = 0;
    let mut scan = Scan::default();
    while body.len() - from > PIECE {
        let next = if indent.starts_with('\n') {
            // A line break never stands within a text, so indentation tells the end of an item.
            between(bytes, from + PIECE, indent.as_bytes())
        } else {
            scan.item_after(bytes, from + PIECE)
        };
        let Some((end, start)) = next else {
            break;
        };
        pieces.push(body.get(from..end)?);
        from = start;
    }
    pieces.push(body.get(from..)?);
    Some(pieces)
}

/// Where an item ends and the next begins, both at the same indentation.
pub(super) fn between(bytes: &[u8], from: usize, indent: &[u8]) -> Option<(usize, usize)> {
    let mut at = from;
    loop {
        at += bytes.get(at..)?.iter().position(|byte| *byte == b'\n')?;
        if let Some(after) = bytes.get(at..)?.strip_prefix(indent)
            && let Some(rest) = after.strip_prefix(b"},")
            && let Some(next) = rest.strip_prefix(indent)
            && next.first() == Some(&b'{')
        {
            let end = bytes.len() - rest.len() - 1;
            return Some((end, bytes.len() - next.len()));
        }
        at += 1;
    }
}

/// Looks through objects without blanks for where one ends and the next begins.
#[derive(Debug, Default)]
struct Scan {
    at: usize,
    depth: usize,
}

impl Scan {
    /// Where the first item that ends behind an offset ends, and the next begins.
    fn item_after(&mut self, bytes: &[u8], from: usize) -> Option<(usize, usize)> {
        while let Some(byte) = bytes.get(self.at) {
            match byte {
                b'"' => self.skip_text(bytes)?,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth = self.depth.checked_sub(1)?;
                    if self.depth == 0 && self.at >= from {
                        let end = self.at + 1;
                        let comma = end + bytes.get(end..)?.iter().position(|byte| *byte == b',')?;
                        self.at = comma + 1;
                        return Some((end, comma + 1));
                    }
                }
                _ => {}
            }
            self.at += 1;
        }
        None
    }

    /// To the quote that ends a text.
    fn skip_text(&mut self, bytes: &[u8]) -> Option<()> {
        loop {
            self.at += 1;
            match bytes.get(self.at)? {
                b'"' => return Some(()),
                b'\\' => self.at += 1,
                _ => {}
            }
        }
    }
}

/// Reads so many pieces, on as many threads as there are processors, each with a buffer of its own; the order of what was
/// read is that of the pieces.
pub(super) fn at_once<Buffer: Default>(
    pieces: usize,
    read: impl Fn(&mut Worker, usize, &mut Buffer) -> serde_json::Result<()> + Sync,
) -> Option<Read> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(pieces);
    let next = AtomicUsize::new(0);
    let work = || {
        let (mut worker, mut buffer, mut done) = (Worker::default(), Buffer::default(), Vec::new());
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= pieces {
                return Some((done, worker));
            }
            if read(&mut worker, at, &mut buffer).is_err() {
                // The others need not go on.
                next.store(pieces, Ordering::Relaxed);
                return None;
            }
            done.push((at, std::mem::take(&mut worker.draft)));
        }
    };
    let found: Option<Vec<_>> = thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut found = vec![work()];
        found.extend(others.into_iter().map(|other| other.join().ok().flatten()));
        found.into_iter().collect()
    });
    let mut read = Read::default();
    let mut drafts = Vec::new();
    for (done, worker) in found? {
        drafts.extend(done);
        read.objects += worker.objects;
        for (kind, count) in worker.skipped {
            *read.skipped.entry(kind).or_default() += count;
        }
    }
    drafts.sort_by_key(|(at, _)| *at);
    read.drafts = drafts.into_iter().map(|(_, draft)| draft).collect();
    Some(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compact_list_is_cut_only_between_its_items() {
        let item = r#"{"metadata":{"name":"a}],{\"x","labels":{}},"list":[{"a":1},{"b":2}]}"#;
        let body = [item; 5].join(",");
        let mut scan = Scan::default();
        let mut ends = Vec::new();
        let mut from = 0;
        while let Some((end, start)) = scan.item_after(body.as_bytes(), from) {
            ends.push((end, start));
            from = start;
        }
        let step = item.len() + 1;
        let expected: Vec<_> = (1..5).map(|at| (at * step - 1, at * step)).collect();
        assert_eq!(ends, expected);
    }

    #[test]
    fn an_indented_list_is_cut_where_an_item_begins() {
        let body = "\n    {\n        \"a\": [\n            {},\n            {}\n        ]\n    },\n    {\n        \"b\": 1\n    }\n";
        let (end, start) = between(body.as_bytes(), 3, b"\n    ").unwrap();
        assert!(body[..end].ends_with("]\n    }") && body[start..].starts_with("{\n        \"b\""));
        assert_eq!(between(body.as_bytes(), start, b"\n    "), None);
    }
}
