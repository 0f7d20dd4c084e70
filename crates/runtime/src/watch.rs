//! All objects of a kind, and every change of them, for ever: list in pages, watch from there, list again when the
//! server has forgotten where we were.

use std::{collections::BTreeSet, time::Duration};

use http_body_util::BodyExt;
use model::object::{ObjectKey, ResourceVersion};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{Api, ApiError, Resource};

/// What a watch saw.
#[derive(Debug)]
pub enum Observed<T> {
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
    /// The server did not answer as it should; the watch goes on.
    Failed(ApiError),
}

/// How to watch a kind.
pub struct Watched<T> {
    /// Where it lives.
    pub resource: Resource,
    /// Reads an object.
    pub read: Box<dyn FnMut(&[u8]) -> serde_json::Result<T> + Send>,
    /// Names an object.
    pub key: fn(&T) -> ObjectKey,
}

const PAGE: usize = 500;
/// The server ends a watch after this long, so that a dead connection is noticed.
const WATCH_SECONDS: u64 = 290;
const PAUSE: Duration = Duration::from_secs(1);

/// Follows a kind until the future is dropped.
pub async fn follow<T>(api: &Api, mut watched: Watched<T>, mut see: impl FnMut(Observed<T>)) {
    loop {
        let mut version = match list(api, &mut watched, &mut see).await {
            Ok(version) => version,
            Err(error) => {
                see(Observed::Failed(error));
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        while let Err(error) = watch(api, &mut watched, &mut version, &mut see).await {
            let expired = error.is_expired();
            if !expired {
                see(Observed::Failed(error));
                tokio::time::sleep(PAUSE).await;
            }
            if expired {
                break;
            }
        }
    }
}

#[derive(Deserialize)]
struct Page<'a> {
    metadata: PageMetadata,
    #[serde(borrow, default)]
    items: Vec<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct PageMetadata {
    resource_version: String,
    r#continue: String,
}

async fn list<T>(api: &Api, watched: &mut Watched<T>, see: &mut impl FnMut(Observed<T>)) -> Result<String, ApiError> {
    let base = watched.resource.collection("");
    let mut named = BTreeSet::new();
    let mut next = String::new();
    loop {
        let path = format!("{base}?limit={PAGE}&continue={next}");
        let bytes = api.call(http::Method::GET, &path, None, "application/json").await?;
        let unreadable = |error: serde_json::Error| ApiError::transport(&http::Method::GET, &path, error.to_string());
        let page: Page<'_> = serde_json::from_slice(&bytes).map_err(unreadable)?;
        for item in page.items {
            let object = (watched.read)(item.get().as_bytes()).map_err(unreadable)?;
            named.insert((watched.key)(&object));
            see(Observed::Applied(object));
        }
        next = page.metadata.r#continue;
        if next.is_empty() {
            let version = page.metadata.resource_version;
            see(Observed::Listed {
                named,
                version: version.as_str().into(),
            });
            return Ok(version);
        }
    }
}

#[derive(Deserialize)]
struct WatchEvent<'a> {
    r#type: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
struct Bookmark {
    metadata: PageMetadata,
}

/// Watches until the server ends it. An error that is not "expired" may be answered by watching again from `version`.
async fn watch<T>(
    api: &Api,
    watched: &mut Watched<T>,
    version: &mut String,
    see: &mut impl FnMut(Observed<T>),
) -> Result<(), ApiError> {
    let base = watched.resource.collection("");
    loop {
        let path = format!(
            "{base}?watch=true&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECONDS}&resourceVersion={version}"
        );
        let fault = |message: String| ApiError::transport(&http::Method::GET, &path, message);
        let mut body = api.stream(&path).await?;
        let mut buffer: Vec<u8> = Vec::new();
        let idle = Duration::from_secs(WATCH_SECONDS + 10);
        while let Some(frame) = tokio::time::timeout(idle, body.frame())
            .await
            .map_err(|_| fault("the watch went silent".to_owned()))?
        {
            let frame = frame.map_err(|error| fault(error.to_string()))?;
            let Ok(data) = frame.into_data() else { continue };
            buffer.extend_from_slice(&data);
            while let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = buffer.drain(..=end).collect();
                *version = one(&line, watched, see, &path)?;
            }
        }
    }
}

/// Takes in one line of a watch; returns the version it stands for.
fn one<T>(
    line: &[u8],
    watched: &mut Watched<T>,
    see: &mut impl FnMut(Observed<T>),
    path: &str,
) -> Result<String, ApiError> {
    let unreadable = |error: serde_json::Error| ApiError::transport(&http::Method::GET, path, error.to_string());
    let event: WatchEvent<'_> = serde_json::from_slice(line).map_err(unreadable)?;
    let json = event.object.get();
    if event.r#type == "ERROR" {
        #[derive(Deserialize)]
        struct Code {
            code: u16,
        }
        let code = serde_json::from_str::<Code>(json).map_or(500, |status| status.code);
        return Err(ApiError::status(&http::Method::GET, path, code, json.as_bytes()));
    }
    let bookmark: Bookmark = serde_json::from_str(json).map_err(unreadable)?;
    if event.r#type != "BOOKMARK" {
        let object = (watched.read)(json.as_bytes()).map_err(unreadable)?;
        see(match event.r#type {
            "DELETED" => Observed::Deleted(object),
            _ => Observed::Applied(object),
        });
    }
    Ok(bookmark.metadata.resource_version)
}
