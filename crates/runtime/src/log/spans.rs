//! The spans that are open, so that a line can carry the fields of those it was said in.

use std::{
    cell::RefCell,
    collections::HashMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use tracing::{
    Event,
    span::{Attributes, Id, Record},
};

use super::fields::Fields;

thread_local! {
    /// The spans this thread is in, the innermost last.
    static ENTERED: RefCell<Vec<Id>> = const { RefCell::new(Vec::new()) };
}

/// Open spans.
#[derive(Debug, Default)]
pub(super) struct Spans {
    last: AtomicU64,
    open: Mutex<HashMap<u64, Span>>,
}

#[derive(Debug)]
struct Span {
    parent: Option<Id>,
    fields: Fields,
    /// Handles and children.
    holders: usize,
}

impl Spans {
    pub(super) fn open(&self, attributes: &Attributes<'_>) -> Id {
        let parent = match attributes.parent() {
            Some(parent) => Some(parent.clone()),
            None if attributes.is_contextual() => innermost(),
            None => None,
        };
        if let Some(parent) = &parent {
            self.hold(parent);
        }
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let span = Span {
            parent,
            fields: Fields::of_span(attributes),
            holders: 1,
        };
        self.lock().insert(number, span);
        Id::from_u64(number)
    }

    pub(super) fn record(&self, id: &Id, values: &Record<'_>) {
        if let Some(span) = self.lock().get_mut(&id.into_u64()) {
            span.fields.record(values);
        }
    }

    pub(super) fn hold(&self, id: &Id) {
        if let Some(span) = self.lock().get_mut(&id.into_u64()) {
            span.holders += 1;
        }
    }

    /// Lets go of a span; true when nobody holds it any more.
    pub(super) fn release(&self, id: &Id) -> bool {
        let mut open = self.lock();
        let mut next = Some(id.clone());
        let mut is_closed = false;
        while let Some(id) = next.take() {
            let number = id.into_u64();
            let Some(span) = open.get_mut(&number) else { break };
            span.holders -= 1;
            if span.holders == 0 {
                next = open.remove(&number).and_then(|span| span.parent);
                is_closed = true;
            }
        }
        is_closed
    }

    #[expect(
        clippy::unused_self,
        reason = "which thread is in which span is the thread's to know"
    )]
    pub(super) fn enter(&self, id: &Id) {
        ENTERED.with_borrow_mut(|entered| entered.push(id.clone()));
    }

    #[expect(
        clippy::unused_self,
        reason = "which thread is in which span is the thread's to know"
    )]
    pub(super) fn exit(&self, id: &Id) {
        ENTERED.with_borrow_mut(|entered| {
            if let Some(at) = entered.iter().rposition(|known| known == id) {
                entered.remove(at);
            }
        });
    }

    /// The fields of the spans an event was said in, the outermost first.
    pub(super) fn fields(&self, event: &Event<'_>) -> Fields {
        let mut next = match event.parent() {
            Some(parent) => Some(parent.clone()),
            None if event.is_contextual() => innermost(),
            None => None,
        };
        let open = self.lock();
        let mut chain = Vec::new();
        while let Some(span) = next.take().and_then(|id| open.get(&id.into_u64())) {
            chain.push(span.fields.clone());
            next.clone_from(&span.parent);
        }
        let mut fields = Fields::default();
        for inner in chain.into_iter().rev() {
            fields.extend(inner);
        }
        fields
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Span>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn innermost() -> Option<Id> {
    ENTERED.with_borrow(|entered| entered.last().cloned())
}
