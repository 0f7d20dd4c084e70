//! The bodies of answers: whole, or a watch that goes on.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::{
    sync::mpsc::{UnboundedReceiver, error::TryRecvError},
    time::{Instant, Sleep, sleep_until},
};

use crate::{
    address::Address,
    server::State,
    watch::{self, Line},
};

/// The body of an answer.
pub(crate) enum Reply {
    Whole(Option<Bytes>),
    Watch(Box<Watching>),
}

/// A watch as its reader sees it.
pub(crate) struct Watching {
    lines: UnboundedReceiver<Line>,
    /// Received, but not to be seen yet.
    waiting: Option<Line>,
    is_closed: bool,
    state: Arc<Mutex<State>>,
    address: Address,
    has_bookmarks: bool,
    since: u64,
    next_bookmark: Instant,
    end: Instant,
    alarm: Pin<Box<Sleep>>,
}

/// What a watch was promised.
pub(crate) struct Promises {
    pub(crate) has_bookmarks: bool,
    /// The version it begins after.
    pub(crate) since: u64,
    pub(crate) timeout: Duration,
}

const BOOKMARK_EVERY: Duration = Duration::from_mins(1);

impl Watching {
    pub(crate) fn new(
        lines: UnboundedReceiver<Line>,
        state: Arc<Mutex<State>>,
        address: Address,
        terms: &Promises,
    ) -> Self {
        let Promises {
            has_bookmarks,
            since,
            timeout,
        } = *terms;
        let now = Instant::now();
        Self {
            lines,
            waiting: None,
            is_closed: false,
            state,
            address,
            has_bookmarks,
            since,
            next_bookmark: now + BOOKMARK_EVERY,
            end: now + timeout,
            alarm: Box::pin(sleep_until(now)),
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            self.receive(context);
            let now = Instant::now();
            if let Some((_, line)) = self.waiting.take_if(|(at, _)| *at <= now) {
                return Poll::Ready(Some(line));
            }
            if now >= self.end || (self.is_closed && self.waiting.is_none()) {
                return Poll::Ready(None);
            }
            if self.has_bookmarks && self.waiting.is_none() && now >= self.next_bookmark {
                self.next_bookmark = now + BOOKMARK_EVERY;
                if let Some(line) = self.bookmark() {
                    return Poll::Ready(Some(line));
                }
                continue;
            }
            let at = self.wake_up();
            self.alarm.as_mut().reset(at);
            if self.alarm.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
        }
    }

    fn receive(&mut self, context: &mut Context<'_>) {
        if self.waiting.is_none() && !self.is_closed {
            match self.lines.poll_recv(context) {
                Poll::Ready(Some(line)) => self.waiting = Some(line),
                Poll::Ready(None) => self.is_closed = true,
                Poll::Pending => {}
            }
        }
    }

    /// A bookmark, unless something happened that its reader has not seen: then that goes first.
    fn bookmark(&mut self) -> Option<Bytes> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match self.lines.try_recv() {
            Ok(line) => {
                self.waiting = Some(line);
                None
            }
            Err(TryRecvError::Empty) => watch::bookmark(&state.store, &self.address, self.since),
            Err(TryRecvError::Disconnected) => {
                self.is_closed = true;
                None
            }
        }
    }

    fn wake_up(&self) -> Instant {
        let mut at = self.end;
        if let Some((seen, _)) = &self.waiting {
            at = at.min(*seen);
        } else if self.has_bookmarks {
            at = at.min(self.next_bookmark);
        }
        at
    }
}

impl Body for Reply {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        let data = match &mut *self {
            Self::Whole(bytes) => Poll::Ready(bytes.take()),
            Self::Watch(watching) => watching.poll(context),
        };
        data.map(|data| data.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Watch(_) => SizeHint::default(),
        }
    }
}
