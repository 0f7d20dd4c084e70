//! How a text falls into documents: concatenated JSON values, or YAML documents between `---` lines.

use serde_json::value::RawValue;

use super::{
    fault::{Fault, Place},
    list,
    parse::Reading,
};

const SYNTAX_FIX: &str = "write it with kubectl get -o json or -o yaml";

/// Splits a text and hands each document over as JSON.
pub(super) fn split(source: &str, text: &str, reading: &mut Reading) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim_start().starts_with(['{', '[']) {
        split_json(source, text, reading);
    } else {
        split_yaml(source, text, Done::default(), reading);
    }
}

/// What of a text was read already.
#[derive(Debug, Clone, Copy, Default)]
struct Done {
    bytes: usize,
    documents: usize,
}

fn split_json(source: &str, text: &str, reading: &mut Reading) {
    if let Some(read) = list::json(text) {
        return reading.take(read);
    }
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    let mut done = Done::default();
    while let Some(value) = values.next() {
        let number = done.documents + 1;
        let mut place = Place {
            source: source.into(),
            document: Some(number),
            ..Place::default()
        };
        match value {
            Ok(json) => {
                // One document of several, such as a page of a long list.
                let is_part = json.get().len() < text.trim().len();
                match is_part.then(|| list::json(json.get())).flatten() {
                    Some(read) => reading.take(read),
                    None => reading.document(&place, json.get()),
                }
                done = Done {
                    bytes: values.byte_offset(),
                    documents: number,
                };
            }
            Err(error) => {
                // YAML may begin with a brace too, as a flow mapping; whole JSON documents were not read as one.
                let is_flow = number == 1 && !is_truncated(&error) && yaml_to_json(text).is_ok();
                // And documents of YAML may be JSON each.
                if is_flow || is_marked(text, done.bytes) {
                    return split_yaml(source, text, done, reading);
                }
                place.line = Some(error.line());
                return reading.fault(Fault::of_place(
                    place,
                    format_args!("is not valid JSON: {error}"),
                    SYNTAX_FIX,
                ));
            }
        }
    }
}

fn is_truncated(error: &serde_json::Error) -> bool {
    error.is_eof()
}

/// Whether what comes next is the marker between documents of YAML.
fn is_marked(text: &str, from: usize) -> bool {
    let rest = text.get(from..).unwrap_or_default().trim_start();
    from > 0 && rest.lines().next().is_some_and(is_marker)
}

/// Splits at the markers first, so that a fault in one document leaves the others readable. A line that begins with a
/// marker cannot be content: YAML forbids it in every kind of scalar.
fn split_yaml(source: &str, text: &str, done: Done, reading: &mut Reading) {
    let mut number = done.documents;
    for (line, chunk) in yaml_chunks(text, done.bytes) {
        if chunk
            .lines()
            .all(|line| line.trim().is_empty() || line.trim_start().starts_with('#'))
        {
            continue;
        }
        number += 1;
        if let Some(read) = list::yaml(chunk, |text| yaml_to_value(text).ok()) {
            reading.take(read);
            continue;
        }
        let mut place = Place {
            source: source.into(),
            document: Some(number),
            ..Place::default()
        };
        match yaml_to_json(chunk) {
            Ok(json) => reading.document(&place, &json),
            Err(error) => {
                place.line = error
                    .location()
                    .and_then(|at| usize::try_from(at.line()).ok())
                    .map(|at| at + line);
                let message = error.without_snippet().to_string();
                let problem = message.lines().next().unwrap_or("unknown error");
                reading.fault(Fault::of_place(
                    place,
                    format_args!("is not valid YAML: {problem}"),
                    SYNTAX_FIX,
                ));
            }
        }
    }
}

/// The documents of a YAML text that begin behind what was read, each with the number of lines before it.
fn yaml_chunks(text: &str, read: usize) -> impl Iterator<Item = (usize, &str)> {
    let mut chunks = Vec::new();
    let (mut start, mut start_line, mut at) = (0, 0, 0);
    for (number, line) in text.split_inclusive('\n').enumerate() {
        if is_marker(line) {
            chunks.push((start_line, start, at));
            // What follows `---` on its line belongs to the document.
            start = if line.starts_with("---") {
                at + 3
            } else {
                at + line.len()
            };
            start_line = number;
        }
        at += line.len();
    }
    chunks.push((start_line, start, at));
    chunks
        .into_iter()
        .filter(move |(_, from, _)| read == 0 || *from > read)
        .filter_map(move |(line, from, to)| Some((line, text.get(from..to)?)))
}

fn is_marker(line: &str) -> bool {
    let rest = line.strip_prefix("---").or_else(|| line.strip_prefix("..."));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))
}

fn yaml_to_json(text: &str) -> Result<String, serde_saphyr::Error> {
    yaml_to_value(text).map(|value| value.to_string())
}

fn yaml_to_value(text: &str) -> Result<serde_json::Value, serde_saphyr::Error> {
    serde_saphyr::from_str_with_options(text, yaml_options())
}

/// The parser's guards against hostile documents, with room for a large cluster: depth and aliases stay bounded, size is
/// bounded by the file itself.
fn yaml_options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_reader_input_bytes: None,
            max_events: usize::MAX,
            max_nodes: usize::MAX,
            max_documents: 1,
            max_total_scalar_bytes: usize::MAX,
            max_total_comment_bytes: usize::MAX,
        },
        with_snippet: false,
    }
}
