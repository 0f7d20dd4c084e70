//! What can go wrong with a request, and what a test knows of it when it decides that.

use std::time::Duration;

use crate::Resource;

/// What a request asks for, as access rules name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the verbs of Kubernetes")]
pub enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
}

impl Verb {
    /// Whether it changes something.
    pub fn is_write(self) -> bool {
        matches!(self, Self::Create | Self::Update | Self::Patch | Self::Delete)
    }
}

/// A request, before it is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestFacts {
    /// Counted from 1.
    pub number: u64,
    /// Which of the writes it is, counted from 1; none for a read.
    pub write: Option<u64>,
    /// What it asks for.
    pub verb: Verb,
    /// Of which kind.
    pub resource: Resource,
    /// Empty where there is none.
    pub namespace: String,
    /// Empty where there is none.
    pub name: String,
    /// Empty where there is none.
    pub subresource: String,
    /// Who asks, as they name themselves.
    pub agent: String,
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// It is refused with this code, and nothing changes.
    Fail(u16),
    /// It never arrives: the connection cannot be made.
    Unreachable,
    /// It is served, but the answer never arrives: the connection breaks.
    LoseAnswer,
    /// It is served this much later, also if whoever asked is dead by then.
    Delay(Duration),
    /// Every open watch ends; the request itself is served.
    DropWatches,
    /// Everything that happened is forgotten; the request itself is served.
    CompactHistory,
    /// Whoever asked dies before it is served.
    CrashBefore,
    /// Whoever asked dies after it was served, before the answer.
    CrashAfter,
}
