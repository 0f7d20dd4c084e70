//! What was asked, how often, and what of it broke the contract?

use std::collections::BTreeMap;

use serde::Serialize;

/// A request or an answer that broke the published contract.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// `request` or `response`.
    pub side: &'static str,
    /// The operation, or nothing when there is none like it.
    pub operation: String,
    /// The method.
    pub method: String,
    /// The path.
    pub path: String,
    /// Everything that was wrong.
    pub problems: Vec<String>,
}

/// One call that was answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Call {
    /// The operation.
    pub operation: String,
    /// The path, without the query.
    pub path: String,
    /// The status; 0 when the connection was dropped instead.
    pub status: u16,
    /// Who asked, from `User-Agent`.
    pub agent: String,
}

#[derive(Default)]
pub(crate) struct Ledger {
    pub(crate) violations: Vec<Violation>,
    pub(crate) calls: Vec<Call>,
}

impl Ledger {
    /// How often each operation was called.
    pub(crate) fn counts(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for call in &self.calls {
            *counts.entry(call.operation.clone()).or_default() += 1;
        }
        counts
    }
}
