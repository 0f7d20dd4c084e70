//! What is wrong with a dump: which file, document and object, which field and value, and how to put it right.

use std::fmt;

use serde_json::Value;

use super::path::Path;

/// Longest part of a bad value that is shown.
const SHOWN_CHARS: usize = 120;

/// Everything that is wrong with a dump.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Faults(pub Vec<Fault>);

impl std::error::Error for Faults {}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} in the dump (read leniently to leave the faulty objects out):",
            Count(self.0.len())
        )?;
        self.0.iter().try_for_each(|fault| write!(f, "\n  {fault}"))
    }
}

struct Count(usize);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 1 {
            f.write_str("1 fault")
        } else {
            write!(f, "{} faults", self.0)
        }
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Where.
    pub place: Place,
    /// In which object, as far as it says who it is.
    pub object: Option<ObjectLabel>,
    /// Path of the field; empty when the fault is not in one.
    pub field: String,
    /// The bad value, shortened; empty when there is none.
    pub value: String,
    /// What is wrong.
    pub problem: String,
    /// What to do about it.
    pub fix: String,
}

/// Where in the input.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// File or stream.
    pub source: String,
    /// Document in the source, from 1.
    pub document: Option<usize>,
    /// Item in the document's list, from 1.
    pub item: Option<usize>,
    /// Line in the source, from 1; for faults of syntax.
    pub line: Option<usize>,
}

/// Which object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObjectLabel {
    /// Kind.
    pub kind: String,
    /// Namespace; empty for cluster-scoped kinds.
    pub namespace: String,
    /// Name; empty when missing.
    pub name: String,
}

impl Fault {
    /// A fault of a whole source or document.
    pub(super) fn of_place(place: Place, problem: impl fmt::Display, fix: &str) -> Self {
        let (field, value) = (String::new(), String::new());
        Self {
            place,
            object: None,
            field,
            value,
            problem: problem.to_string(),
            fix: fix.into(),
        }
    }

    /// A fault of a field, found by where the reader of a text gave up.
    pub(super) fn of_field(place: Place, object: Option<ObjectLabel>, error: &serde_json::Error, json: &str) -> Self {
        let problem = without_position(&error.to_string());
        let fix = fix_for(&problem);
        let path = Path::to(error, json);
        let value = serde_json::from_str(json).ok().and_then(|root| path.value(root));
        Self {
            place,
            object,
            field: path.to_string(),
            value: value.map(|value| shown(&value)).unwrap_or_default(),
            problem,
            fix,
        }
    }
}

/// Cuts off serde_json's position, which counts within the object and not within the file.
fn without_position(message: &str) -> String {
    message
        .rfind(" at line ")
        .and_then(|at| message.get(..at))
        .unwrap_or(message)
        .to_string()
}

fn fix_for(problem: &str) -> String {
    if let Some(field) = problem.strip_prefix("missing field ") {
        return format!("add the field {field}");
    }
    match problem.rsplit_once("expected ") {
        Some((_, "i32" | "i64" | "u32" | "u64")) => "write a whole number".into(),
        Some((_, expected)) if expected.starts_with("struct ") => "write a map of fields".into(),
        Some((_, expected)) => format!("write {expected}"),
        None => "correct the value".into(),
    }
}

/// As much of a value as a line has room for.
fn shown(value: &Value) -> String {
    let mut text = value.to_string();
    if let Some((end, _)) = text.char_indices().nth(SHOWN_CHARS) {
        text.truncate(end);
        text.push('…');
    }
    text
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        if let Some(object) = &self.object {
            write!(f, "{object}: ")?;
        }
        if !self.field.is_empty() && self.field != "." {
            write!(f, "{}: ", self.field)?;
        }
        f.write_str(&self.problem)?;
        if !self.value.is_empty() {
            write!(f, " (value {})", self.value)?;
        }
        write!(f, "; {}", self.fix)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if let Some(document) = self.document {
            write!(f, ": document {document}")?;
        }
        if let Some(item) = self.item {
            write!(f, ", item {item}")?;
        }
        Ok(())
    }
}

impl fmt::Display for ObjectLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.kind)?;
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        f.write_str(if self.name.is_empty() {
            "without a name"
        } else {
            &self.name
        })
    }
}
