//! Everything of a kind there is now, page by page.

use std::collections::BTreeSet;

use http::Method;
use model::object::ObjectKey;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Belief, Follower, Metadata, Named, escaped};
use crate::ApiError;

const PAGE: usize = 500;

#[derive(Deserialize)]
struct Page<'a> {
    #[serde(default)]
    metadata: Metadata,
    #[serde(borrow, default)]
    items: Option<Vec<&'a RawValue>>,
}

impl Follower<'_> {
    /// Shows every object and then the list; returns its version and what is made of it. A list whose pages expired half-way has named nothing:
    /// the next one begins at the beginning.
    pub(super) async fn list(&mut self) -> Result<(String, Belief), ApiError> {
        self.reader.listing();
        let mut named = BTreeSet::new();
        let mut rest = String::new();
        loop {
            let path = format!("{}limit={PAGE}&continue={}", self.path, escaped(&rest));
            let bytes = self.api.call(Method::GET, &path, None, "application/json").await?;
            let page: Page<'_> = serde_json::from_slice(&bytes)
                .map_err(|error| ApiError::unreadable(&Method::GET, &path, "the list", &error))?;
            for item in page.items.unwrap_or_default() {
                named.insert(self.show(item.get()));
            }
            rest = page.metadata.r#continue;
            if rest.is_empty() {
                let version = page.metadata.resource_version;
                let belief = self.reader.listed(named, &version);
                return Ok((version, belief));
            }
        }
    }

    /// How far the server's store is.
    pub(super) async fn reached(&self) -> Result<String, ApiError> {
        let path = format!("{}limit=1", self.path);
        let bytes = self.api.call(Method::GET, &path, None, "application/json").await?;
        let page: Page<'_> = serde_json::from_slice(&bytes)
            .map_err(|error| ApiError::unreadable(&Method::GET, &path, "the list", &error))?;
        Ok(page.metadata.resource_version)
    }

    /// Shows one object; who cannot be read is there nevertheless.
    fn show(&mut self, json: &str) -> ObjectKey {
        self.reader.applied(json).unwrap_or_else(|error| {
            let key = serde_json::from_str::<Named>(json).map_or(ObjectKey::new("", ""), |named| named.key());
            let unreadable = self.unreadable(&key, &error);
            self.reader.failed(unreadable);
            key
        })
    }
}
