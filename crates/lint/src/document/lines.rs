//! On which line each field of a YAML text stands, by its path.

use std::collections::BTreeMap;

use granit_parser::{Event, Parser};

use super::join;

/// Where the walk is.
enum Frame {
    /// In a map: its path, and the key whose value comes next with its line.
    Map(String, Option<(String, u32)>),
    /// In a list: its path, and the number of the next item.
    List(String, usize),
}

/// The lines of all fields, from 1, in a text before which there are so many lines. What cannot be read has none.
pub(super) fn lines(text: &str, before: usize) -> BTreeMap<String, u32> {
    let mut walk = Walk {
        lines: BTreeMap::new(),
        frames: Vec::new(),
        before,
    };
    for next in Parser::new_from_str(text) {
        let Ok((event, span)) = next else { break };
        walk.step(&event, span.start.line());
    }
    walk.lines
}

struct Walk {
    lines: BTreeMap<String, u32>,
    frames: Vec<Frame>,
    before: usize,
}

impl Walk {
    fn step(&mut self, event: &Event<'_>, line: usize) {
        let line = u32::try_from(line + self.before).unwrap_or(u32::MAX);
        match event {
            Event::Scalar(text, ..) => {
                if let Some(Frame::Map(_, key @ None)) = self.frames.last_mut() {
                    *key = Some((text.to_string(), line));
                } else {
                    self.node(line);
                }
            }
            Event::Alias(_) => {
                self.node(line);
            }
            Event::MappingStart(..) => {
                let path = self.node(line);
                self.frames.push(Frame::Map(path, None));
            }
            Event::SequenceStart(..) => {
                let path = self.node(line);
                self.frames.push(Frame::List(path, 0));
            }
            Event::MappingEnd | Event::SequenceEnd => {
                self.frames.pop();
            }
            _ => {}
        }
    }

    /// Notes where a value is, and says its path. A field stands where its key does.
    fn node(&mut self, line: u32) -> String {
        let (path, line) = match self.frames.last_mut() {
            None => (String::new(), line),
            Some(Frame::List(path, next)) => {
                *next += 1;
                (format!("{path}[{}]", *next - 1), line)
            }
            Some(Frame::Map(path, key)) => match key.take() {
                Some((key, line)) => (join(path, &key), line),
                // A key that is itself a map or a list: nothing of ours.
                None => (join(path, "?"), line),
            },
        };
        self.lines.insert(path.clone(), line);
        path
    }
}
