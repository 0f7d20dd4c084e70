//! Where in a JSON text its reader stopped: the fields and indices that lead there.
//!
//! Readers that carry the path along are generated once more for every type that can be read. A reader that fails says at
//! which byte, and the text itself says what encloses that byte.

use std::{borrow::Cow, fmt};

use serde_json::Value;

/// The way from the root of a text to a value in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Path(Vec<Step>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Field(String),
    Item(usize),
}

impl Path {
    /// The way to what `error` complains of.
    pub(super) fn to(error: &serde_json::Error, json: &str) -> Self {
        let read = &json.as_bytes()[..consumed(json, error.line(), error.column())];
        let problem = error.to_string();
        let mut scan = Scan::default();
        scan.read(read);
        // A list where something else is wanted is refused once its bracket is read: it is to blame, not its first item.
        if read.ends_with(b"[") && problem.contains("invalid type: sequence") {
            scan.open.pop();
        }
        // An item that was read and then found wrong is told of behind the comma that follows it. One that is not even read,
        // being no number or text, is told of there as well, and it is the next one.
        let unread = ["invalid type: map", "invalid type: sequence"];
        let is_read = !unread.iter().any(|it| problem.starts_with(it));
        if is_read && read.trim_ascii_end().ends_with(b",") {
            scan.before();
        }
        // A value that was read and then found wrong is told of when its object goes on, and if it is the last, ends.
        if !problem.starts_with("missing field") && !problem.starts_with("invalid length") {
            scan.open.extend(scan.closed.take());
        }
        scan.path()
    }

    /// What stands there.
    pub(super) fn value(&self, mut root: Value) -> Option<Value> {
        for step in &self.0 {
            root = match step {
                Step::Field(name) => root.get_mut(name)?.take(),
                Step::Item(index) => root.get_mut(*index)?.take(),
            };
        }
        Some(root)
    }
}

/// How many bytes a reader had taken when it was in a line at a column, both counted from one.
fn consumed(json: &str, line: usize, column: usize) -> usize {
    let before = json.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len);
    (before.sum::<usize>() + column).min(json.len())
}

/// What is open at a byte, outermost first.
#[derive(Debug, Default)]
struct Scan {
    open: Vec<Open>,
    /// What was closed by the last byte.
    closed: Option<Open>,
}

#[derive(Debug)]
enum Open {
    /// An object, the field that is read or was read last, and whether a name comes next.
    Object(Option<String>, bool),
    /// A list and the index of the item that is read or was read last.
    List(usize),
}

impl Scan {
    fn read(&mut self, json: &[u8]) {
        let mut at = 0;
        while let Some(byte) = json.get(at) {
            at += 1;
            if !byte.is_ascii_whitespace() {
                self.closed = None;
            }
            match byte {
                b'{' => self.open.push(Open::Object(None, true)),
                b'[' => self.open.push(Open::List(0)),
                b'}' | b']' => self.closed = self.open.pop(),
                b',' => self.next(),
                b'"' => {
                    let Some(length) = text_length(&json[at..]) else {
                        return;
                    };
                    self.text(&json[at..at + length]);
                    at += length + 1;
                }
                _ => {}
            }
        }
    }

    fn next(&mut self) {
        match self.open.last_mut() {
            Some(Open::Object(_, name_next)) => *name_next = true,
            Some(Open::List(index)) => *index += 1,
            None => {}
        }
    }

    /// Goes back to the item before.
    fn before(&mut self) {
        if let Some(Open::List(index)) = self.open.last_mut() {
            *index = index.saturating_sub(1);
        }
    }

    fn text(&mut self, written: &[u8]) {
        if let Some(Open::Object(name, name_next @ true)) = self.open.last_mut() {
            *name = Some(unescaped(written).into_owned());
            *name_next = false;
        }
    }

    fn path(self) -> Path {
        let steps = self.open.into_iter().filter_map(|open| match open {
            Open::Object(name, _) => name.map(Step::Field),
            Open::List(index) => Some(Step::Item(index)),
        });
        Path(steps.collect())
    }
}

/// Bytes up to the quote that ends a text; none when it is cut off.
fn text_length(json: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match json.get(at)? {
            b'"' => return Some(at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

fn unescaped(written: &[u8]) -> Cow<'_, str> {
    let plain = String::from_utf8_lossy(written);
    if !plain.contains('\\') {
        return plain;
    }
    serde_json::from_str(&format!("\"{plain}\"")).map_or(plain, Cow::Owned)
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str(".");
        }
        for (at, step) in self.0.iter().enumerate() {
            match step {
                Step::Field(name) if at == 0 => f.write_str(name)?,
                Step::Field(name) => write!(f, ".{name}")?,
                Step::Item(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only whether it can be read matters")]
    struct Shelf {
        boxes: Vec<Box>,
        #[serde(default)]
        names: std::collections::BTreeMap<String, u8>,
    }

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only whether it can be read matters")]
    struct Box {
        weight: u8,
        #[serde(default)]
        label: Option<String>,
    }

    fn path(json: &str) -> String {
        Path::to(&serde_json::from_slice::<Shelf>(json.as_bytes()).unwrap_err(), json).to_string()
    }

    #[test]
    fn the_path_leads_to_a_value_of_the_wrong_kind_whatever_it_is() {
        for wrong in ["\"x\"", "-1", "300", "true", "null", "{\"a\":[1]}", "[{}]", "1.5"] {
            let json = format!("{{\"boxes\":[{{\"weight\":1}},\n {{\"weight\": {wrong} , \"label\":\"b\"}}]}}");
            assert_eq!(path(&json), "boxes[1].weight", "{json}");
        }
    }

    #[test]
    fn a_value_that_is_found_wrong_once_it_is_read_is_named_wherever_it_stands() {
        #[derive(Debug)]
        struct Even;
        impl<'de> Deserialize<'de> for Even {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                match u8::deserialize(deserializer)? % 2 {
                    0 => Ok(Self),
                    _ => Err(serde::de::Error::custom("is odd")),
                }
            }
        }
        #[derive(Debug, Deserialize)]
        #[expect(dead_code, reason = "only whether it can be read matters")]
        struct Pair {
            left: Even,
            right: Vec<Even>,
        }
        let path = |json: &str| {
            let error = serde_json::from_slice::<Vec<Pair>>(json.as_bytes()).unwrap_err();
            Path::to(&error, json).to_string()
        };
        assert_eq!(path(r#"[{"left":1,"right":[]}]"#), "[0].left");
        assert_eq!(path(r#"[{"right":[],"left":1 } ]"#), "[0].left");
        assert_eq!(path(r#"[{"left":2,"right":[2, 3]}]"#), "[0].right[1]");
        assert_eq!(path(r#"[{"left":2,"right":[3, 2]}]"#), "[0].right[0]");
        assert_eq!(path(r#"[{"left":2,"right":[2, {}, 4]}]"#), "[0].right[1]");
        assert_eq!(path(r#"[{"left":2,"right":[2, [2], 4]}]"#), "[0].right[1]");
        assert_eq!(path(r#"[{"left":2,"right":[2, "x", 4]}]"#), "[0].right[1]");
    }

    #[test]
    fn a_missing_field_is_missing_from_the_object_the_path_leads_to() {
        assert_eq!(path("{\"boxes\":[{\"weight\":1},{\"label\":\"b\"}]}"), "boxes[1]");
        assert_eq!(path("{\"names\":{}}"), ".");
    }

    #[test]
    fn names_and_texts_with_quotes_brackets_and_escapes_do_not_lead_astray() {
        let json = r#"{"boxes":[{"label":"},]\"{","weight":2}],"names":{"a\"\u00e9[":"x"}}"#;
        assert_eq!(path(json), "names.a\"é[");
    }

    #[test]
    fn the_value_at_a_path_is_found_again() {
        let json = r#"{"boxes":[{"weight":1},{"weight":"heavy"}]}"#;
        let error = serde_json::from_str::<Shelf>(json).unwrap_err();
        let found = Path::to(&error, json).value(serde_json::from_str(json).unwrap());
        assert_eq!(found, Some("heavy".into()));
    }

    #[test]
    fn a_text_that_ends_too_early_has_a_path_as_far_as_it_goes() {
        assert_eq!(path("{\"boxes\":[{\"weight\":1},{\"lab"), "boxes[1]");
    }
}
