//! What can go wrong with a call to the cloud, and what is known of the call when that is decided.

use std::time::Duration;

/// What is asked of the cloud.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the methods of the provider contract")]
pub enum Method {
    Create,
    Delete,
    Get,
    List,
    Notices,
    Acknowledge,
}

/// A call, before it is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallFacts {
    /// Counted from 1 over all processes.
    pub number: u64,
    /// What is asked.
    pub method: Method,
    /// The claim or machine it is about; empty for a list.
    pub about: String,
    /// Which process asks, if it was told its name.
    pub who: String,
}

/// What goes wrong with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallFault {
    /// Nothing.
    None,
    /// The cloud has an error of its own, and nothing changes.
    Fail,
    /// The cloud asks to come back after this long, and nothing changes.
    Throttle(Duration),
    /// It is done, but the answer never arrives.
    LoseAnswer,
    /// It is done this much later.
    Delay(Duration),
    /// The process dies before it is done.
    CrashBefore,
    /// The process dies after it was done, before the answer.
    CrashAfter,
}
