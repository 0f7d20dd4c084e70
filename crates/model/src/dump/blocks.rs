//! A long list as kubectl prints it, read from its file block by block: however large the file is, only a few megabytes of
//! its text are ever held.
//!
//! As with [`super::list`], nothing is reported from here: a file in which anything is unusual is read again, whole.

use std::{
    fs::File,
    io::{ErrorKind, Read as _, Seek, SeekFrom},
    ops::Range,
    path::Path,
};

use serde::de::DeserializeSeed;

use super::{
    item::{Items, Worker},
    list::{Frame, HEAD, LONG, PIECE, Read, at_once, between, opening},
    thin,
};
use crate::snapshot::TypeMeta;

/// What is read beyond a block to find where its last object ends: a little, then as much as any object takes. A list in
/// which none ends so far is not laid out as kubectl does it.
const BEYOND: [usize; 2] = [64 << 10, 16 << 20];

/// Where the objects of a file are.
struct Body<'p> {
    path: &'p Path,
    /// Behind the bracket that opens the list.
    open: u64,
    /// The bracket that closes it.
    close: u64,
    /// A line break and the blanks before each object.
    indent: Vec<u8>,
}

/// What a thread reads with.
#[derive(Default)]
struct Block {
    file: Option<File>,
    bytes: Vec<u8>,
    /// Of these, what is read.
    thin: Vec<u8>,
}

/// The objects of a JSON list in a file; none when it is short, or not indented, or anything is wrong with it.
pub(super) fn json(path: &Path) -> Option<Read> {
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok().filter(std::fs::Metadata::is_file)?.len();
    if length < LONG as u64 {
        return None;
    }
    let edge = length.min(HEAD as u64);
    let head = read(&mut file, 0, edge)?;
    let tail_at = length - edge;
    let tail = read(&mut file, tail_at, edge)?;
    let open = opening(text(&head))?;
    let brace = head.get(open..)?.iter().position(|byte| *byte == b'{')?;
    let indent = head.get(open..open + brace)?;
    let is_indented = indent.starts_with(b"\n") && indent.iter().all(u8::is_ascii_whitespace);
    let end = tail.iter().rposition(|byte| *byte == b']')?;
    let frame: Frame = serde_json::from_slice(&[head.get(..open)?, tail.get(end..)?].concat()).ok()?;
    let list = frame.list()?;
    let body = Body {
        path,
        open: open as u64,
        close: tail_at + end as u64,
        indent: indent.to_vec(),
    };
    if !is_indented || body.close <= body.open {
        return None;
    }
    let blocks = usize::try_from((body.close - body.open).div_ceil(PIECE as u64)).ok()?;
    at_once(blocks, |worker, at, block: &mut Block| {
        let objects = body.block(at, block).map_err(serde_json::Error::io)?;
        let objects = block.bytes.get(objects).unwrap_or_default();
        block.thin.clear();
        thin::copy(objects, &mut block.thin);
        parsed(worker, list, &block.thin)
    })
}

/// Reads objects between brackets.
fn parsed(worker: &mut Worker, list: Option<TypeMeta<'_>>, objects: &[u8]) -> serde_json::Result<()> {
    if objects.is_empty() {
        return Ok(());
    }
    // Looked at once and not text by text; what is no text is for the slow way to tell.
    let objects = std::str::from_utf8(objects).map_err(serde::de::Error::custom)?;
    let mut json = serde_json::Deserializer::from_str(objects);
    Items { worker, list }.deserialize(&mut json)?;
    json.end()
}

impl Body<'_> {
    /// Where in the bytes of a block the objects are that begin in it, between brackets; nowhere when none does.
    ///
    /// An object belongs to the block in which the boundary before it is looked for first. Both neighbours look for it from
    /// the same place, so they agree.
    fn block(&self, at: usize, block: &mut Block) -> std::io::Result<Range<usize>> {
        let from = self.open + (at * PIECE) as u64;
        let file = match &mut block.file {
            Some(file) => file,
            none => none.insert(File::open(self.path)?),
        };
        // One byte more on either side: brackets take their places.
        file.seek(SeekFrom::Start(from - 1))?;
        block.bytes.clear();
        let all = self.close + 2 - from;
        let mut end = None;
        for beyond in BEYOND {
            let wanted = all.min((PIECE + beyond) as u64);
            let missing = wanted.saturating_sub(block.bytes.len() as u64);
            file.by_ref().take(missing).read_to_end(&mut block.bytes)?;
            let next = between(&block.bytes, PIECE + 1, &self.indent).map(|(end, _)| end);
            end = next.or_else(|| usize::try_from(all - 1).ok().filter(|_| wanted == all));
            if end.is_some() {
                break;
            }
        }
        // Or the file became shorter meanwhile.
        let Some(end) = end.filter(|end| *end < block.bytes.len()) else {
            return Err(ErrorKind::UnexpectedEof.into());
        };
        let start = match at {
            0 => Some(1),
            _ => between(&block.bytes, 1, &self.indent).map(|(_, start)| start),
        };
        let Some(start) = start.filter(|start| *start < end) else {
            return Ok(0..0);
        };
        block.bytes[start - 1] = b'[';
        block.bytes[end] = b']';
        Ok(start - 1..end + 1)
    }
}

fn read(file: &mut File, at: u64, length: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(at)).ok()?;
    file.take(length).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// The text up to a character that is cut off.
fn text(bytes: &[u8]) -> &str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_read_once_wherever_blocks_begin() {
        let path = std::env::temp_dir().join(format!("dovetail-blocks-{}.json", std::process::id()));
        let object = |at: usize| {
            let filling = "x".repeat(at * 7919 % 90_000);
            format!(
                "\n    {{\n        \"apiVersion\": \"v1\",\n        \"kind\": \"Node\",\n        \"metadata\": {{\n            \"name\": \"n{at}\",\n            \"uid\": \"{filling}\"\n        }}\n    }}"
            )
        };
        let items: Vec<String> = (0..400).map(object).collect();
        let text = format!(
            "{{\n    \"apiVersion\": \"v1\",\n    \"items\": [{}\n    ],\n    \"kind\": \"List\"\n}}\n",
            items.join(",")
        );
        assert!(text.len() > 4 * PIECE);
        std::fs::write(&path, text).unwrap();
        let read = json(&path);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read.unwrap().objects, 400);
    }

    #[test]
    fn a_list_without_lines_between_its_objects_is_left_to_others() {
        let path = std::env::temp_dir().join(format!("dovetail-lines-{}.json", std::process::id()));
        let object = r#"{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}"#;
        let items = vec![object; (PIECE + 2 * BEYOND[1]) / object.len()].join(", ");
        let text = format!(r#"{{"apiVersion": "v1", "kind": "List", "items": [{}{items}]}}"#, "\n");
        std::fs::write(&path, text).unwrap();
        let read = json(&path);
        std::fs::remove_file(&path).unwrap();
        assert!(read.is_none());
    }
}
