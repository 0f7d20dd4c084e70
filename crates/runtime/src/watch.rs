//! All objects of a kind, and every change of them, for ever: list in pages, watch from there, list again when the
//! server has forgotten where we were.
//!
//! Nothing ends it: an object that cannot be read is named and left out, a broken connection is resumed where it broke,
//! a kind that does not exist is asked for until it does.

mod lines;
mod list;
mod stream;

use std::{collections::BTreeSet, time::Duration};

use model::object::{ObjectKey, ResourceVersion};
use serde::Deserialize;
use tokio::time::sleep;

use crate::{Api, ApiError, Resource, random::Random};

/// What a watch saw.
#[derive(Debug)]
pub enum Observed<T> {
    /// A list begins: the server is about to be asked.
    Listing,
    /// An object is new or changed.
    Applied(T),
    /// An object is gone; this is its last version.
    Deleted(T),
    /// The list is complete: what it did not name is gone.
    Listed {
        /// Every object it named.
        named: BTreeSet<ObjectKey>,
        /// As of when.
        version: ResourceVersion,
    },
    /// The server did not answer as it should; the watch goes on. [`ApiError::is_missing_kind`]: there is no such kind
    /// yet, said once. [`ApiError::is_unreadable`]: one object was left out.
    Failed(ApiError),
}

/// What whoever is shown something makes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Belief {
    /// It is taken as it is.
    Taken,
    /// A list contradicts what is known: it is to be made again.
    Doubted,
}

/// Reads an object from JSON.
pub type Read<T> = Box<dyn FnMut(&[u8]) -> serde_json::Result<T> + Send + Sync>;

/// How to watch a kind.
pub struct Watched<T> {
    /// Where it lives.
    pub resource: Resource,
    /// Reads an object.
    pub read: Read<T>,
    /// Names an object.
    pub key: fn(&T) -> ObjectKey,
}

/// Which objects of the kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Of one namespace; empty: of all.
    pub namespace: String,
    /// A label selector, such as `app=web`; empty: with any labels.
    pub labels: String,
    /// A field selector, such as `spec.nodeName=a`; empty: with any fields.
    pub fields: String,
}

impl Selection {
    /// The path of a list, up to where more can be asked.
    fn path(&self, resource: &Resource) -> String {
        let mut path = format!("{}?", resource.collection(&self.namespace));
        for (name, value) in [("labelSelector", &self.labels), ("fieldSelector", &self.fields)] {
            if !value.is_empty() {
                path = format!("{path}{name}={}&", escaped(value));
            }
        }
        path
    }
}

/// A value as a query holds it.
pub(crate) fn escaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => text.push(char::from(byte)),
            _ => text.extend(['%', hex(byte >> 4), hex(byte & 15)]),
        }
    }
    text
}

fn hex(digit: u8) -> char {
    char::from_digit(digit.into(), 16).map_or('0', |digit| digit.to_ascii_uppercase())
}

/// How often a kind is asked for that does not exist.
const MISSING: Duration = Duration::from_secs(30);

/// How long after a list that was doubted the next one is made: a server that lags may have caught up by then.
const DOUBTED: Duration = Duration::from_secs(5);

/// Follows a kind until the future is dropped.
pub async fn follow<T>(api: &Api, watched: Watched<T>, see: impl FnMut(Observed<T>) -> Belief + Send + Sync) {
    follow_some(api, watched, &Selection::default(), see).await;
}

/// Follows some objects of a kind until the future is dropped.
pub async fn follow_some<T>(
    api: &Api,
    watched: Watched<T>,
    selection: &Selection,
    see: impl FnMut(Observed<T>) -> Belief + Send + Sync,
) {
    let path = selection.path(&watched.resource);
    let mut reader = Reader { watched, see };
    let mut follower = Follower {
        api,
        path,
        reader: &mut reader,
        troubles: Troubles::new(api.random().clone()),
    };
    follower.follow().await;
}

/// Who is shown what a watch sees, whatever the kind: the watch itself is compiled once and not for every kind.
trait Onlooker: Send + Sync {
    fn listing(&mut self);
    /// Shows an object that is there; returns who it is.
    fn applied(&mut self, json: &str) -> serde_json::Result<ObjectKey>;
    fn deleted(&mut self, json: &str) -> serde_json::Result<()>;
    fn listed(&mut self, named: BTreeSet<ObjectKey>, version: &str) -> Belief;
    fn failed(&mut self, error: ApiError);
}

/// Reads objects of a kind, and shows them.
struct Reader<T, See> {
    watched: Watched<T>,
    see: See,
}

impl<T, See: FnMut(Observed<T>) -> Belief + Send + Sync> Onlooker for Reader<T, See> {
    fn listing(&mut self) {
        (self.see)(Observed::Listing);
    }

    fn applied(&mut self, json: &str) -> serde_json::Result<ObjectKey> {
        let object = (self.watched.read)(json.as_bytes())?;
        let key = (self.watched.key)(&object);
        (self.see)(Observed::Applied(object));
        Ok(key)
    }

    fn deleted(&mut self, json: &str) -> serde_json::Result<()> {
        let object = (self.watched.read)(json.as_bytes())?;
        (self.see)(Observed::Deleted(object));
        Ok(())
    }

    fn listed(&mut self, named: BTreeSet<ObjectKey>, version: &str) -> Belief {
        let version = version.into();
        (self.see)(Observed::Listed { named, version })
    }

    fn failed(&mut self, error: ApiError) {
        (self.see)(Observed::Failed(error));
    }
}

/// A kind that is being followed.
struct Follower<'a> {
    api: &'a Api,
    path: String,
    reader: &'a mut dyn Onlooker,
    troubles: Troubles,
}

impl Follower<'_> {
    async fn follow(&mut self) {
        let mut missing = false;
        loop {
            let error = match self.list().await {
                Ok((_, Belief::Doubted)) => {
                    sleep(DOUBTED).await;
                    continue;
                }
                Ok((version, Belief::Taken)) => {
                    missing = false;
                    self.watch(version).await
                }
                Err(error) => error,
            };
            if error.is_missing_kind() {
                if !missing {
                    self.reader.failed(error);
                }
                missing = true;
                sleep(MISSING).await;
                continue;
            }
            // Forgotten versions are ordinary; they become a trouble when they are all we get.
            let pause = self.troubles.pause(&error);
            if !error.is_expired() {
                self.reader.failed(error);
            }
            sleep(pause).await;
        }
    }

    /// An object that cannot be read is left out, and named so that somebody can repair it.
    fn unreadable(&self, key: &ObjectKey, error: &serde_json::Error) -> ApiError {
        ApiError::unreadable(&http::Method::GET, &self.path, &format!("the object {key}"), error)
    }

    fn fault(&self, message: String) -> ApiError {
        ApiError::transport(&http::Method::GET, &self.path, message)
    }
}

/// What went wrong since something last went well, and how long to wait therefore.
struct Troubles {
    random: Random,
    in_a_row: u32,
}

const FIRST_PAUSE: Duration = Duration::from_millis(800);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

impl Troubles {
    fn new(random: Random) -> Self {
        Self { random, in_a_row: 0 }
    }

    fn over(&mut self) {
        self.in_a_row = 0;
    }

    /// The wait: none after a first expiry or a first break, then twice as long each time.
    fn pause(&mut self, error: &ApiError) -> Duration {
        self.in_a_row = self.in_a_row.saturating_add(1);
        let asked = Duration::from_secs(error.retry_after_seconds.unwrap_or_default());
        let doublings = match (self.in_a_row, error.code) {
            (1, None | Some(410)) => return Duration::ZERO,
            (troubles, _) => troubles.saturating_sub(1).min(16),
        };
        let pause = FIRST_PAUSE.saturating_mul(1 << doublings).min(LONGEST_PAUSE);
        self.random.jittered(pause, 1.0).max(asked)
    }
}

/// What lists and watches read of every object, whatever its kind.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    name: String,
    namespace: String,
    resource_version: String,
    r#continue: String,
}

#[derive(Deserialize)]
struct Named {
    #[serde(default)]
    metadata: Metadata,
}

impl Named {
    fn key(&self) -> ObjectKey {
        ObjectKey::new(&self.metadata.namespace, &self.metadata.name)
    }
}

#[cfg(test)]
mod tests;
