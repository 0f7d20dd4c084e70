//! Who is told of which changes, and in which words.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::{
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    time::Instant,
};

use crate::{
    Change, Event, Failure, Resource,
    address::Address,
    selector::Selector,
    store::Store,
    table::{self, Include, Layout},
};

/// A line of a watch, and when its reader sees it.
pub(crate) type Line = (Instant, Bytes);

/// Somebody who watches.
#[derive(Debug)]
pub(crate) struct Watcher {
    resource: Resource,
    namespace: Option<String>,
    selector: Selector,
    lines: UnboundedSender<Line>,
    lag: Duration,
    /// What is not newer than this it has seen.
    since: u64,
    view: View,
}

type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// In which form objects are told of.
#[derive(Default)]
pub(crate) enum View {
    #[default]
    Whole,
    Metadata,
    Table(Box<Rows>),
}

/// A table that grows by a row at a time.
pub(crate) struct Rows {
    layout: Layout,
    include: Include,
    clock: Clock,
    has_begun: AtomicBool,
}

impl View {
    pub(crate) fn table(layout: Layout, include: Include, clock: Clock) -> Self {
        Self::Table(Box::new(Rows {
            layout,
            include,
            clock,
            has_begun: AtomicBool::new(false),
        }))
    }
}

impl std::fmt::Debug for View {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Whole => "Whole",
            Self::Metadata => "Metadata",
            Self::Table(_) => "Table",
        })
    }
}

#[derive(Serialize)]
struct Told<'a> {
    #[serde(rename = "type")]
    word: &'a str,
    object: &'a Value,
}

impl Watcher {
    /// Tells of a change; false once nobody listens.
    pub(crate) fn tell(&self, change: &Change) -> bool {
        if change.resource != self.resource || change.version <= self.since {
            return !self.lines.is_closed();
        }
        match self.word(change) {
            Some("DELETED") => self.send("DELETED", &last_seen(change)),
            Some(word) => self.send(word, &change.object),
            None => !self.lines.is_closed(),
        }
    }

    /// What a change is to this watcher: an object that begins to be chosen is new to it, one that ceases to be is gone.
    fn word(&self, change: &Change) -> Option<&'static str> {
        let sees = |object: &Arc<Value>| self.chooses(object);
        let after = change.event != Event::Deleted && sees(&change.object);
        let before = change.before.as_ref().is_some_and(sees);
        match (before, after) {
            (false, true) => Some("ADDED"),
            (true, true) => Some("MODIFIED"),
            (true, false) => Some("DELETED"),
            (false, false) => None,
        }
    }

    fn chooses(&self, object: &Value) -> bool {
        is_in(self.namespace.as_deref(), object) && self.selector.chooses(object)
    }

    fn send(&self, word: &str, object: &Value) -> bool {
        match &self.view {
            View::Whole => self.write(word, object),
            View::Metadata => self.write(word, &table::partial(object)),
            View::Table(rows) => {
                let is_first = !rows.has_begun.swap(true, Ordering::Relaxed);
                let metadata = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
                let one = std::iter::once(object);
                let table = rows
                    .layout
                    .table(one, &metadata, rows.include, is_first, (rows.clock)());
                self.write(word, &table)
            }
        }
    }

    fn write(&self, word: &str, object: &Value) -> bool {
        let Ok(mut text) = serde_json::to_vec(&Told { word, object }) else {
            return false;
        };
        text.push(b'\n');
        self.lines.send((Instant::now() + self.lag, Bytes::from(text))).is_ok()
    }
}

/// An object as it goes: one that only ceases to be chosen is shown as it last was, under the version it went with.
fn last_seen(change: &Change) -> Value {
    match &change.before {
        Some(before) if change.event != Event::Deleted => {
            let mut last = (**before).clone();
            last["metadata"]["resourceVersion"] = change.object["metadata"]["resourceVersion"].clone();
            last
        }
        _ => (*change.object).clone(),
    }
}

/// Whether an object is in a namespace; every object is in none given.
pub(crate) fn is_in(namespace: Option<&str>, object: &Value) -> bool {
    namespace.is_none_or(|wanted| object["metadata"]["namespace"] == wanted)
}

/// How a watch is asked for.
#[derive(Debug, Default)]
pub(crate) struct Terms {
    pub(crate) selector: Selector,
    /// Where to begin; none begins with everything there is.
    pub(crate) since: Option<u64>,
    pub(crate) lag: Duration,
    pub(crate) view: View,
    /// Whether a bookmark says where what was there ends and what happens begins.
    pub(crate) tells_of_start: bool,
}

/// Begins a watch.
pub(crate) fn open(store: &mut Store, address: &Address, terms: Terms) -> UnboundedReceiver<Line> {
    let (lines, received) = unbounded_channel();
    let watcher = Watcher {
        resource: address.resource.clone(),
        namespace: address.namespace.clone(),
        selector: terms.selector,
        lines,
        lag: terms.lag,
        since: terms.since.unwrap_or_default(),
        view: terms.view,
    };
    match begin(store, &watcher, terms.since) {
        Ok(()) => {
            if terms.tells_of_start {
                let facts = store.kinds.facts(&address.resource);
                let start = json!({"kind": facts.kind, "apiVersion": address.api_version(), "metadata": {
                    "resourceVersion": store.version.to_string(), "creationTimestamp": null,
                    "annotations": {"k8s.io/initial-events-end": "true"}}});
                watcher.write("BOOKMARK", &start);
            }
            store.watchers.push(watcher);
        }
        Err(failure) => {
            watcher.write("ERROR", &failure.status());
        }
    }
    received
}

fn begin(store: &Store, watcher: &Watcher, since: Option<u64>) -> Result<(), Failure> {
    if let Some(version) = since {
        for change in store.since(version)? {
            watcher.tell(change);
        }
        return Ok(());
    }
    for object in store.all(&watcher.resource).filter(|object| watcher.chooses(object)) {
        watcher.send("ADDED", object);
    }
    Ok(())
}

/// A line that says how far a watch has come that began at a version; none while the store is not past that.
pub(crate) fn bookmark(store: &Store, address: &Address, since: u64) -> Option<Bytes> {
    if store.version <= since {
        return None;
    }
    let facts = store.kinds.facts(&address.resource);
    let line = json!({"type": "BOOKMARK", "object": {
        "kind": facts.kind, "apiVersion": address.api_version(),
        "metadata": {"resourceVersion": store.version.to_string(), "creationTimestamp": null},
    }});
    Some(Bytes::from(format!("{line}\n")))
}
