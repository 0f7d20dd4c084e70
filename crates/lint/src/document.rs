//! Texts as objects that know their lines: YAML and JSON in any number of documents, lists, and fenced YAML in Markdown.

mod lines;

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

use self::lines::lines;

/// An object and where it stands.
#[derive(Debug, Clone, Default)]
pub struct Document {
    /// The file or other source.
    pub source: Arc<str>,
    /// The object.
    pub value: Value,
    /// Lines by path, from 1.
    lines: BTreeMap<String, u32>,
    /// The text the lines are of.
    text: Arc<str>,
}

/// A text that is no YAML or JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// The file or other source.
    pub source: String,
    /// Where in it, from 1.
    pub line: Option<u32>,
    /// What is wrong.
    pub problem: String,
}

/// Texts longer than this are dumps, in which nobody looks for a line.
const LINES_UP_TO: usize = 8 << 20;

impl Document {
    /// An object that stands in no file.
    pub fn without_lines(source: Arc<str>, value: Value) -> Self {
        Self {
            source,
            value,
            ..Self::default()
        }
    }

    /// The line of a field, or of the nearest one around it.
    pub fn line(&self, path: &str) -> Option<u32> {
        let mut path = path;
        loop {
            if let Some(line) = self.lines.get(path) {
                return Some(*line);
            }
            if path.is_empty() {
                return None;
            }
            path = parent(path);
        }
    }

    /// The line of a field itself.
    pub(crate) fn exact_line(&self, path: &str) -> Option<u32> {
        self.lines.get(path).copied()
    }

    /// The text of a line.
    pub(crate) fn text_of(&self, line: u32) -> Option<&str> {
        let at = usize::try_from(line).ok()?.checked_sub(1)?;
        self.text.lines().nth(at)
    }

    /// The objects of a list, or the object itself.
    fn unfolded(self) -> Vec<Self> {
        let is_list = self.value["kind"].as_str().is_some_and(|kind| kind.ends_with("List"));
        if !is_list || !self.value["items"].is_array() {
            return vec![self];
        }
        let Self {
            source,
            mut value,
            lines,
            text,
        } = self;
        let kind = value["kind"].as_str().and_then(|kind| kind.strip_suffix("List"));
        let kind = kind.filter(|kind| !kind.is_empty()).map(str::to_owned);
        let version = value["apiVersion"].clone();
        let Value::Array(items) = value["items"].take() else {
            return Vec::new();
        };
        let item = |(at, mut item): (usize, Value)| {
            if let (Some(kind), Some(fields)) = (&kind, item.as_object_mut()) {
                fields.entry("kind").or_insert_with(|| kind.clone().into());
                fields.entry("apiVersion").or_insert_with(|| version.clone());
            }
            let prefix = format!("items[{at}]");
            let own = lines
                .range(prefix.clone()..)
                .take_while(|(path, _)| path.starts_with(&prefix));
            let own = own.map(|(path, line)| {
                let rest = path.get(prefix.len()..).unwrap_or_default();
                (rest.strip_prefix('.').unwrap_or(rest).to_owned(), *line)
            });
            Self {
                source: Arc::clone(&source),
                value: item,
                lines: own.collect(),
                text: Arc::clone(&text),
            }
        };
        let items = items.into_iter().enumerate().map(item);
        items.flat_map(Self::unfolded).collect()
    }
}

/// The path of what a path is in.
fn parent(path: &str) -> &str {
    let at = path.rfind(['.', '[']).unwrap_or(0);
    path.get(..at).unwrap_or_default()
}

/// The path of a field of what is at a path.
pub(crate) fn join(path: &str, field: &str) -> String {
    if path.is_empty() {
        field.to_owned()
    } else {
        format!("{path}.{field}")
    }
}

/// All documents of a text, and what of it cannot be read. A name that ends in `.md` is Markdown.
pub fn read(source: &str, text: &str) -> (Vec<Document>, Vec<Unreadable>) {
    let is_markdown = source.to_ascii_lowercase().ends_with(".md");
    let text: Arc<str> = text.strip_prefix('\u{feff}').unwrap_or(text).into();
    let mut reading = Reading {
        source: source.into(),
        text: Arc::clone(&text),
        documents: Vec::new(),
        unreadable: Vec::new(),
    };
    if is_markdown {
        for (line, block) in fenced(&text) {
            reading.documents_of(line, block);
        }
        // Prose shows half a manifest now and then, and is no less readable for it.
        reading.unreadable.clear();
    } else {
        reading.documents_of(0, &text);
    }
    (reading.documents, reading.unreadable)
}

struct Reading {
    source: Arc<str>,
    text: Arc<str>,
    documents: Vec<Document>,
    unreadable: Vec<Unreadable>,
}

impl Reading {
    fn documents_of(&mut self, before: usize, text: &str) {
        for (line, chunk) in chunks(text) {
            self.document(before + line, chunk);
        }
    }

    /// One document, before which there are so many lines.
    fn document(&mut self, before: usize, chunk: &str) {
        let is_blank = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
        if chunk.lines().all(is_blank) {
            return;
        }
        match parse(chunk) {
            Ok(Value::Null) => {}
            Ok(mut value) => {
                model::dump::drop_nulls(&mut value);
                let is_small = self.text.len() <= LINES_UP_TO;
                let document = Document {
                    source: Arc::clone(&self.source),
                    value,
                    lines: if is_small {
                        lines(chunk, before)
                    } else {
                        BTreeMap::new()
                    },
                    text: if is_small { Arc::clone(&self.text) } else { "".into() },
                };
                self.documents.extend(document.unfolded());
            }
            Err((line, problem)) => self.unreadable.push(Unreadable {
                source: self.source.to_string(),
                line: line.and_then(|line| u32::try_from(line + before).ok()),
                problem,
            }),
        }
    }
}

fn parse(chunk: &str) -> Result<Value, (Option<usize>, String)> {
    if chunk.trim_start().starts_with('{')
        && let Ok(value) = serde_json::from_str(chunk)
    {
        return Ok(value);
    }
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_reader_input_bytes: None,
            max_events: usize::MAX,
            max_nodes: usize::MAX,
            max_documents: 1,
            max_total_scalar_bytes: usize::MAX,
            max_total_comment_bytes: usize::MAX,
        },
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(chunk, options).map_err(|error| {
        let line = error.location().and_then(|at| usize::try_from(at.line()).ok());
        let message = error.without_snippet().to_string();
        let problem = message.lines().next().unwrap_or("it cannot be read");
        // The parser counts lines within the document, and tells programs which option would let it pass.
        let ends = [", set ", " at line "].into_iter().filter_map(|end| problem.find(end));
        let problem = problem.get(..ends.min().unwrap_or(problem.len())).unwrap_or(problem);
        (line, problem.to_owned())
    })
}

/// The documents of a text between its markers, each with the number of lines before it.
fn chunks(text: &str) -> Vec<(usize, &str)> {
    let mut chunks = Vec::new();
    let (mut start, mut start_line, mut at) = (0, 0, 0);
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let rest = line.strip_prefix("---").or_else(|| line.strip_prefix("..."));
        if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n'])) {
            chunks.push((start_line, start, at));
            let is_start = line.starts_with("---");
            start = if is_start { at + 3 } else { at + line.len() };
            start_line = if is_start { number } else { number + 1 };
        }
        at += line.len();
    }
    chunks.push((start_line, start, at));
    let chunk = |(line, from, to)| Some((line, text.get(from..to)?));
    chunks.into_iter().filter_map(chunk).collect()
}

/// The fenced YAML blocks of a Markdown text, each with the number of lines before it.
fn fenced(text: &str) -> Vec<(usize, &str)> {
    let mut blocks = Vec::new();
    let mut open: Option<(usize, usize, &str)> = None;
    let mut at = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let bare = line.trim();
        match open {
            None if ["```yaml", "```yml", "~~~yaml", "~~~yml"]
                .iter()
                .any(|fence| bare.eq_ignore_ascii_case(fence)) =>
            {
                let fence = bare.get(..3).unwrap_or("```");
                open = Some((number + 1, at + line.len(), fence));
            }
            Some((before, start, fence)) if bare == fence => {
                blocks.extend(text.get(start..at).map(|block| (before, block)));
                open = None;
            }
            _ => {}
        }
        at += line.len();
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_knows_its_line_across_documents() {
        let text = "a: 1\n---\n# note\nb:\n  - c: x\n    d.e/f: \"y\"\n  - {g: z}\n";
        let (documents, unreadable) = read("f.yaml", text);
        assert!(unreadable.is_empty(), "{unreadable:?}");
        let second = &documents[1];
        let lines = ["b", "b[0]", "b[0].c", "b[0].d.e/f", "b[1].g", "b[1].missing"].map(|path| second.line(path));
        assert_eq!(lines, [Some(4), Some(5), Some(5), Some(6), Some(7), Some(7)]);
        assert_eq!(second.text_of(6), Some("    d.e/f: \"y\""));
    }

    #[test]
    fn items_of_a_list_are_objects_of_their_own_with_the_lists_kind() {
        let text = "apiVersion: karpenter.sh/v1\nkind: NodePoolList\nitems:\n- metadata:\n    name: a\n- metadata:\n    name: b\n";
        let (documents, _) = read("f.yaml", text);
        let seen: Vec<_> = documents
            .iter()
            .map(|one| (one.value["kind"].as_str().unwrap(), one.line("metadata.name")))
            .collect();
        assert_eq!(seen, [("NodePool", Some(5)), ("NodePool", Some(7))]);
    }

    #[test]
    fn fenced_yaml_of_markdown_is_read_and_the_rest_is_not() {
        let text = "# T\n```yaml\nkind: A\n```\n```bash\nkind: B\n```\n   ```yml\n   kind: C\n   ```\n";
        let (documents, _) = read("README.md", text);
        let kinds: Vec<_> = documents.iter().map(|one| one.value["kind"].clone()).collect();
        assert_eq!(kinds, ["A", "C"]);
        assert_eq!(documents[1].line("kind"), Some(9));
    }

    #[test]
    fn a_field_left_empty_is_not_there_and_an_entry_of_a_list_keeps_its_place() {
        let (documents, _) = read("f.yaml", "spec:\n  limits:\n  taints: [null, a]\n");
        assert_eq!(documents[0].value, serde_json::json!({"spec": {"taints": [null, "a"]}}));
    }

    #[test]
    fn a_broken_document_is_told_with_its_line_and_leaves_the_others_readable() {
        let (documents, unreadable) = read("f.yaml", "kind: A\n---\nkind: [\n---\nkind: C\n");
        assert_eq!(documents.len(), 2);
        assert_eq!(unreadable.len(), 1);
        assert!(matches!(unreadable[0].line, Some(3..=4)), "{unreadable:?}");
        let (_, unreadable) = read("f.yaml", "kind: A\n---\nkind: B\nkind: C\n");
        assert_eq!(unreadable[0].line, Some(4));
        assert_eq!(unreadable[0].problem, "duplicate mapping key: kind");
    }
}
