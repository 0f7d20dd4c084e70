//! Everything of a kind there is now, for whoever asks once: the server's own lists, page by page.

use bytes::Bytes;
use http::Method;
use serde::Deserialize;

use super::{Api, ApiError, Resource};
use crate::watch::escaped;

const PAGE: usize = 500;
/// A list whose pages expire half-way begins again so often.
const ATTEMPTS: usize = 3;

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    metadata: Rest,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Rest {
    r#continue: String,
}

impl Api {
    /// All objects of a kind as the server lists them: each page is a list of its own, and says what it is a list of.
    pub async fn pages(&self, resource: &Resource) -> Result<Vec<Bytes>, ApiError> {
        let mut attempt = 1;
        loop {
            match self.pages_once(resource).await {
                Err(error) if error.is_expired() && attempt < ATTEMPTS => attempt += 1,
                other => return other,
            }
        }
    }

    async fn pages_once(&self, resource: &Resource) -> Result<Vec<Bytes>, ApiError> {
        let (mut pages, mut rest) = (Vec::new(), String::new());
        loop {
            let path = format!("{}?limit={PAGE}&continue={}", resource.collection(""), escaped(&rest));
            let bytes = self.call(Method::GET, &path, None, "application/json").await?;
            let page: Page = serde_json::from_slice(&bytes)
                .map_err(|error| ApiError::unreadable(&Method::GET, &path, "the list", &error))?;
            pages.push(bytes);
            rest = page.metadata.r#continue;
            if rest.is_empty() {
                return Ok(pages);
            }
        }
    }
}
