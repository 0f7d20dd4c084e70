//! Two parts of an answer, worked out side by side: neither needs the other, and people wait for both.

use std::{panic, thread};

/// What both come to.
pub(crate) fn together<A: Send, B>(one: impl FnOnce() -> A + Send, other: impl FnOnce() -> B) -> (A, B) {
    thread::scope(|scope| {
        let one = scope.spawn(one);
        let other = other();
        match one.join() {
            Ok(one) => (one, other),
            Err(cause) => panic::resume_unwind(cause),
        }
    })
}
