//! Is it the same again? The rules of client-go's recorder: equal events are counted on one object, many that differ only
//! in their words become one that says so, and an object about which too much is said is left alone for a while.

use std::{
    collections::BTreeSet,
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

use api::annotations::DECISION;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Event, recent::Recent};
use crate::{
    random::Random,
    rate::{Rate, TokenBucket},
};

/// How many events, groups and objects are remembered.
const REMEMBERED: usize = 4096;
/// So many different messages within the interval are too many to tell apart.
const SIMILAR: usize = 10;
const SIMILAR_INTERVAL: Duration = Duration::from_mins(10);
/// How much may be said about an object.
const ABOUT_AN_OBJECT: Rate = Rate {
    per_second: 1.0 / 300.0,
    burst: 25,
};
/// Longer messages are cut.
const LONGEST_MESSAGE: usize = 1024;

/// An event as the API server keeps it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Written {
    pub(super) namespace: String,
    pub(super) name: String,
    /// The whole object.
    pub(super) object: Value,
    /// What differs from the last time, if there was one.
    pub(super) patch: Option<Value>,
}

/// Remembers what was said.
#[derive(Debug)]
pub(super) struct Correlator {
    groups: Recent<Group>,
    said: Recent<Said>,
    objects: Recent<TokenBucket>,
    /// Names are made of the time, which must therefore never stand still.
    last: i128,
    random: Random,
}

/// Events that differ only in their message.
#[derive(Debug)]
struct Group {
    messages: BTreeSet<u64>,
    last: Instant,
}

#[derive(Debug, Clone, Default)]
struct Said {
    count: u32,
    first: Timestamp,
    name: String,
}

impl Correlator {
    pub(super) fn new(random: Random) -> Self {
        Self {
            groups: Recent::new(REMEMBERED),
            said: Recent::new(REMEMBERED),
            objects: Recent::new(REMEMBERED),
            last: 0,
            random,
        }
    }

    /// What is to be written; none when enough was said about the object.
    pub(super) fn correlate(&mut self, event: &Event, now: Timestamp) -> Option<Written> {
        let (message, key) = self.joined(event);
        let name = self.name(event, now);
        let said = self.said.get_or(key, || Said {
            count: 0,
            first: now,
            name,
        });
        // Counted before it is held back, so the next one that is written says how often it really was.
        said.count += 1;
        let said = said.clone();
        let about = hash(event, &[event.kind.text()]);
        let bucket = self.objects.get_or(about, || TokenBucket::new(ABOUT_AN_OBJECT));
        bucket.try_take().then(|| written(event, &message, &said, now))
    }

    /// The message, joined with others if there are too many, and what equal events are known by.
    fn joined(&mut self, event: &Event) -> (String, u64) {
        let message = cut(&event.message);
        let group_key = hash(event, &[event.kind.text(), &event.reason]);
        let event_key = hash(event, &[event.kind.text(), &event.reason, &message]);
        let now = Instant::now();
        let fresh = || Group {
            messages: BTreeSet::new(),
            last: now,
        };
        let group = self.groups.get_or(group_key, fresh);
        if now.duration_since(group.last) > SIMILAR_INTERVAL {
            *group = fresh();
        }
        group.messages.insert(event_key);
        group.last = now;
        if group.messages.len() < SIMILAR {
            return (message, event_key);
        }
        group.messages.pop_first();
        (cut(&format!("(combined from similar events): {message}")), group_key)
    }

    /// `<object>.<time>`, or anything unique where that is no name.
    fn name(&mut self, event: &Event, now: Timestamp) -> String {
        self.last = now.as_nanosecond().max(self.last + 1);
        let name = format!("{}.{:x}", event.object.name, self.last);
        if is_subdomain(&name) { name } else { self.random.uuid() }
    }
}

fn written(event: &Event, message: &str, said: &Said, now: Timestamp) -> Written {
    let object = &event.object;
    let namespace = if object.namespace.is_empty() {
        "default"
    } else {
        &object.namespace
    };
    let (first, last) = (in_seconds(said.first), in_seconds(now));
    let mut involved = json!({
        "kind": object.kind, "name": object.name, "uid": object.uid, "apiVersion": object.api_version,
        "resourceVersion": object.resource_version,
    });
    if !object.namespace.is_empty() {
        involved["namespace"] = json!(object.namespace);
    }
    let mut metadata = json!({"name": said.name, "namespace": namespace});
    if let Some(decision) = event.decision {
        metadata["annotations"] = json!({ DECISION: decision });
    }
    let whole = json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": metadata,
        "involvedObject": involved,
        "reason": event.reason, "message": message, "type": event.kind.text(), "count": said.count,
        "firstTimestamp": first, "lastTimestamp": last, "eventTime": null,
        "source": {"component": event.component},
        "reportingComponent": event.component, "reportingInstance": "",
    });
    let patch = (said.count > 1).then(|| {
        let mut patch = json!({"count": said.count, "lastTimestamp": last, "message": message});
        if let Some(decision) = event.decision {
            patch["metadata"] = json!({"annotations": { DECISION: decision }});
        }
        patch
    });
    Written {
        namespace: namespace.to_owned(),
        name: said.name.clone(),
        object: whole,
        patch,
    }
}

/// The identity of who says something about what, and more.
fn hash(event: &Event, more: &[&str]) -> u64 {
    let object = &event.object;
    let mut hasher = DefaultHasher::new();
    let uid = object.uid.to_string();
    let who: [&str; 6] = [
        &event.component,
        &object.kind,
        &object.namespace,
        &object.name,
        &uid,
        &object.api_version,
    ];
    (who, more).hash(&mut hasher);
    hasher.finish()
}

/// At most so many bytes, as upstream cuts.
fn cut(message: &str) -> String {
    if message.len() <= LONGEST_MESSAGE {
        return message.to_owned();
    }
    let end = message.floor_char_boundary(LONGEST_MESSAGE - 3);
    format!("{}...", message.get(..end).unwrap_or_default())
}

fn in_seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn is_subdomain(name: &str) -> bool {
    let is_edge = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    name.len() <= 253
        && name.split('.').all(|label| {
            let bytes = label.as_bytes();
            bytes.first().is_some_and(is_edge)
                && bytes.last().is_some_and(is_edge)
                && bytes.iter().all(|byte| is_edge(byte) || *byte == b'-')
        })
}

#[cfg(test)]
mod tests;
