//! Objects as they are written, with the lines they stand on: from files and directories, or from a cluster.
//!
//! Commands that judge what people wrote need every field of it; a snapshot keeps only what decisions read.

mod accepted;
mod cluster;
mod files;
mod time;

use jiff::Timestamp;
use lint::document::Document;
use serde_json::{Value, json};

pub(crate) use self::{
    accepted::{accepted, admission},
    cluster::{KINDS, OR_A_DUMP, connected, items, listed, of_cluster, unreachable},
    files::{of_files, texts},
};

/// Objects, and where they come from.
#[derive(Debug, Default)]
pub(crate) struct Raw {
    /// What the source is called.
    pub(crate) name: String,
    pub(crate) documents: Vec<Document>,
    /// What of the source could not be read and was left out, a sentence each.
    pub(crate) gaps: Vec<String>,
    /// The time of the objects.
    pub(crate) now: Timestamp,
    /// Whether a cluster was asked.
    pub(crate) is_live: bool,
}

/// What a document says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) name: String,
    /// `live`, `dump`, or `manifests` where nobody says that they are all.
    pub(crate) of: &'static str,
    pub(crate) as_of: Timestamp,
}

impl Frame {
    /// The answer in its frame: the same that answers about decisions have.
    pub(crate) fn around(&self, kind: &str, assumed: &[String], answer: Value) -> Value {
        let mut document = json!({
            "apiVersion": "dovetail.dev/v1alpha1",
            "kind": kind,
            "cluster": if self.of == "live" { self.name.as_str() } else { "" },
            "as_of": self.as_of.to_string(),
            "source": {"type": self.of, "name": self.name},
            "engine": env!("CARGO_PKG_VERSION"),
            "prices": "",
            "assumed": assumed,
        });
        if let (Value::Object(document), Value::Object(answer)) = (&mut document, answer) {
            document.extend(answer);
        }
        document
    }
}

impl Raw {
    /// What a document made from it says about itself.
    pub(crate) fn frame(&self, as_of: Timestamp) -> Frame {
        Frame {
            name: self.name.clone(),
            of: if self.is_live { "live" } else { "dump" },
            as_of,
        }
    }

    /// The objects of a kind.
    pub(crate) fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        let values = self.documents.iter().map(|document| &document.value);
        values.filter(move |value| value["kind"] == *kind)
    }
}

/// The text at a path of plain fields; empty where there is none.
pub(crate) fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    path.split('.')
        .fold(value, |value, field| &value[field])
        .as_str()
        .unwrap_or_default()
}

/// The documents of a text, lists taken apart; JSON is read as such, which is many times faster.
pub(crate) fn values(text: &str) -> anyhow::Result<Vec<Value>> {
    let documents: Vec<Value> = if text.trim_start().starts_with('{') {
        let stream = serde_json::Deserializer::from_str(text).into_iter();
        stream.collect::<Result<_, _>>()?
    } else {
        serde_saphyr::from_multiple(text)?
    };
    let apart = documents
        .into_iter()
        .flat_map(|mut document| match document.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => items,
            _ => vec![document],
        });
    Ok(apart.collect())
}

/// Sentences for standard error, a line each, after a word that says what they are.
pub(crate) fn noted(word: &str, sentences: &[String]) -> String {
    let lines = sentences.iter().map(|sentence| format!("{word}  {sentence}\n"));
    lines.collect::<Vec<_>>().concat()
}
