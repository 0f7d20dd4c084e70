//! Every change from a version on, over as many connections as it takes.

use std::time::Duration;

use http::{HeaderMap, Method};
use http_body_util::BodyExt;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep, timeout};

use super::{Follower, Named, lines::Lines};
use crate::{ApiError, api::with_causes};

/// The server ends a watch after this long, or up to a minute earlier so that not all end at once.
const WATCH: Duration = Duration::from_secs(290);
const SPREAD: u64 = 60;
/// Nothing for this long means that the connection is dead.
const SILENCE: Duration = Duration::from_mins(5);
/// The same where bookmarks have been seen: the server sends one about every minute.
const SILENCE_AFTER_BOOKMARK: Duration = Duration::from_secs(150);
/// Servers end a watch a little early at times.
const PUNCTUAL: Duration = Duration::from_secs(5);
/// A watch that lasted this long was in order, whatever ended it.
const STEADY: Duration = Duration::from_secs(10);

#[derive(Deserialize)]
struct Event<'a> {
    r#type: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
struct Code {
    code: u16,
}

impl Follower<'_> {
    /// Watches until the server no longer knows the version we have seen, or the kind.
    pub(super) async fn watch(&mut self, mut version: String) -> ApiError {
        let mut is_sure = true;
        loop {
            let began = Instant::now();
            let ended = self.resume(&mut version, is_sure).await;
            if began.elapsed() >= STEADY {
                self.troubles.over();
            }
            is_sure = matches!(ended, Ok(Ended::InTime));
            let error = match ended {
                Ok(_) if began.elapsed() >= STEADY => continue,
                Ok(_) => self.fault("the server ended the watch at once".to_owned()),
                Err(error) => error,
            };
            if error.is_expired() || error.is_not_found() || error.is_set_back() {
                return error;
            }
            let pause = self.troubles.pause(&error);
            self.reader.failed(error);
            sleep(pause).await;
        }
    }

    /// One connection. A server answers a version it has not reached with silence: so it is when its store was set back to a
    /// backup. After a watch that did not end as it should, or said nothing, it is therefore asked how far it is.
    async fn resume(&mut self, version: &mut String, is_sure: bool) -> Result<Ended, ApiError> {
        if !is_sure {
            let reached = self.reached().await?;
            if is_before(&reached, version) {
                return Err(ApiError::set_back(&Method::GET, &self.path, &reached, version));
            }
        }
        self.connection(version).await
    }

    /// One connection, until the server ends it.
    async fn connection(&mut self, version: &mut String) -> Result<Ended, ApiError> {
        let seconds = WATCH.as_secs() - self.api.random().next() % SPREAD;
        let path = format!(
            "{}watch=true&allowWatchBookmarks=true&timeoutSeconds={seconds}&resourceVersion={version}",
            self.path
        );
        let mut body = self.api.stream(&path).await?;
        let mut lines = Lines::default();
        let mut patience = SILENCE;
        let due = Instant::now() + Duration::from_secs(seconds).saturating_sub(PUNCTUAL);
        let mut has_spoken = false;
        loop {
            let frame = match timeout(patience, body.frame()).await {
                Err(_) => return Err(self.fault(format!("the watch was silent for {} s", patience.as_secs()))),
                Ok(None) if has_spoken && Instant::now() >= due => return Ok(Ended::InTime),
                Ok(None) => return Ok(Ended::Early),
                Ok(Some(frame)) => frame.map_err(|error| self.fault(with_causes(&error)))?,
            };
            let Ok(data) = frame.into_data() else { continue };
            lines
                .take_in(&data)
                .map_err(|_| self.fault("the watch sent a line without an end".to_owned()))?;
            while let Some(line) = lines.next() {
                if self.take_in(&line, version)? == Line::Bookmark {
                    patience = SILENCE_AFTER_BOOKMARK;
                }
                has_spoken = true;
                self.troubles.over();
            }
        }
    }

    /// Takes in one line, and moves the version on to it.
    fn take_in(&mut self, line: &[u8], version: &mut String) -> Result<Line, ApiError> {
        let unreadable = |error| ApiError::unreadable(&Method::GET, &self.path, "a line of the watch", &error);
        let event: Event<'_> = serde_json::from_slice(line).map_err(unreadable)?;
        let json = event.object.get();
        if event.r#type == "ERROR" {
            let code = serde_json::from_str::<Code>(json).map_or(500, |status| status.code);
            let (path, headers) = (&self.path, HeaderMap::new());
            return Err(ApiError::status(&Method::GET, path, code, &headers, json.as_bytes()));
        }
        let named: Named = serde_json::from_str(json).map_err(unreadable)?;
        let kind = if event.r#type == "BOOKMARK" {
            Line::Bookmark
        } else {
            let shown = match event.r#type {
                "DELETED" => self.reader.deleted(json),
                _ => self.reader.applied(json).map(drop),
            };
            if let Err(error) = shown {
                let unreadable = self.unreadable(&named.key(), &error);
                self.reader.failed(unreadable);
            }
            Line::Change
        };
        *version = named.metadata.resource_version;
        Ok(kind)
    }
}

/// Whether a version is older than another; false when that cannot be told.
fn is_before(one: &str, other: &str) -> bool {
    match (one.parse::<u64>(), other.parse::<u64>()) {
        (Ok(one), Ok(other)) => one < other,
        _ => false,
    }
}

/// How a connection ended that the server ended.
enum Ended {
    /// When it was to end, after it had said something.
    InTime,
    /// Before that, as when the server stops, or without a word.
    Early,
}

#[derive(PartialEq, Eq)]
enum Line {
    Change,
    Bookmark,
}
