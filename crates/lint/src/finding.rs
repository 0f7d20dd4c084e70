//! What a rule found: where, what, why it hurts and what mends it.

use serde::Serialize;

/// How grave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It does not work, or it stops something from working.
    Error,
    /// It works until the day it does not.
    Warning,
    /// It could be better.
    Note,
}

impl Severity {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// What a rule found.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The rule's code, such as `NP04`.
    pub code: &'static str,
    /// Its name, such as `spot-only`.
    pub rule: &'static str,
    /// How grave.
    pub severity: Severity,
    /// In which object: `nodepool/general`.
    pub object: String,
    /// The object's kind and name as its owner writes them: `NodePool/general`.
    pub title: String,
    /// The file or other source.
    pub source: String,
    /// The line in it, from 1; none where the source has no lines.
    pub line: Option<u32>,
    /// The field.
    pub path: String,
    /// What.
    pub text: String,
    /// Why it hurts.
    pub why: String,
    /// What mends it.
    pub fix: String,
    /// The change, where it is one line.
    pub edit: Option<Edit>,
}

/// A line, and what to write instead of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Edit {
    /// From 1.
    pub line: u32,
    /// The line as it is.
    pub before: String,
    /// What stands there afterwards; several lines where it grows.
    pub after: String,
}

/// What a rule says it found; [`crate::World`] knows the rest.
#[derive(Debug, Clone, Default)]
pub(crate) struct Found {
    /// Which document.
    pub(crate) document: usize,
    pub(crate) path: String,
    pub(crate) text: String,
    pub(crate) why: Option<String>,
    pub(crate) fix: Option<String>,
    pub(crate) change: Option<Change>,
    pub(crate) severity: Option<Severity>,
}

/// A change of the line on which the path is.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    /// A text of it becomes another.
    Replace(String, String),
    /// A line is put below it, indented as it is.
    Below(String),
    /// A line is put below it, indented as what it holds.
    Inside(String),
}

impl Found {
    pub(crate) fn new(document: usize, path: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            document,
            path: path.into(),
            text: text.into(),
            ..Self::default()
        }
    }

    pub(crate) fn why(self, why: impl Into<String>) -> Self {
        Self {
            why: Some(why.into()),
            ..self
        }
    }

    pub(crate) fn fix(self, fix: impl Into<String>) -> Self {
        Self {
            fix: Some(fix.into()),
            ..self
        }
    }

    /// The line of the path, with one text instead of another.
    pub(crate) fn replacing(self, before: impl Into<String>, after: impl Into<String>) -> Self {
        Self {
            change: Some(Change::Replace(before.into(), after.into())),
            ..self
        }
    }

    /// A line below that of the path.
    pub(crate) fn adding(self, line: impl Into<String>) -> Self {
        Self {
            change: Some(Change::Below(line.into())),
            ..self
        }
    }

    /// A line in what the line of the path begins.
    pub(crate) fn adding_inside(self, line: impl Into<String>) -> Self {
        Self {
            change: Some(Change::Inside(line.into())),
            ..self
        }
    }

    pub(crate) fn severity(self, severity: Severity) -> Self {
        Self {
            severity: Some(severity),
            ..self
        }
    }
}
