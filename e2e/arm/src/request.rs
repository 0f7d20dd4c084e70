//! What was asked? A request with its operation, as the parts of the world read it.

use std::collections::BTreeMap;

use http::HeaderMap;
use jiff::Timestamp;
use serde_json::Value;

use crate::{answer::Refusal, contract::Operation, shelf, world::World};

/// A request that the contract knows and allows.
pub(crate) struct Asked<'a> {
    pub(crate) operation: &'a Operation,
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) named: BTreeMap<String, String>,
    pub(crate) query: &'a BTreeMap<String, String>,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) body: Value,
    pub(crate) now: Timestamp,
    /// Why the operation that this begins will fail.
    pub(crate) doom: Option<Refusal>,
}

impl Asked<'_> {
    pub(crate) fn id(&self) -> &str {
        &self.operation.id
    }

    /// What the path names, or nothing.
    pub(crate) fn name(&self, part: &str) -> &str {
        self.named.get(part).map_or("", String::as_str)
    }

    pub(crate) fn version(&self) -> &str {
        self.query.get("api-version").map_or("", String::as_str)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The key of a resource in the path's group.
    pub(crate) fn key(&self, part: &str) -> String {
        shelf::key(self.name("group"), self.name(part))
    }
}

impl World {
    /// The group of a request as it was created, in a subscription that is ours.
    pub(crate) fn group(&self, asked: &Asked<'_>) -> Result<String, Refusal> {
        let subscription = asked.name("subscription");
        if !subscription.is_empty() && !subscription.eq_ignore_ascii_case(&self.setup.subscription) {
            let message = format!("The subscription '{subscription}' could not be found.");
            return Err(Refusal::new(404, "SubscriptionNotFound", message));
        }
        let group = asked.name("group");
        if group.is_empty() {
            return Ok(String::new());
        }
        self.setup.group(group).map(ToOwned::to_owned).ok_or_else(|| {
            let message = format!("Resource group '{group}' could not be found.");
            Refusal::new(404, "ResourceGroupNotFound", message)
        })
    }

    /// Refuses a region that is not ours.
    pub(crate) fn in_region(&self, location: &str) -> Result<(), Refusal> {
        let normal: String = location.to_ascii_lowercase().split_whitespace().collect();
        if normal == self.setup.region.to_ascii_lowercase() {
            return Ok(());
        }
        let message = format!("The provided location '{location}' is not available for resource type here.");
        Err(Refusal::bad("LocationNotAvailableForResourceType", message).at("location"))
    }
}

/// Refuses tags that Azure does not take.
pub(crate) fn check_tags(tags: &Value) -> Result<(), Refusal> {
    let Some(tags) = tags.as_object() else {
        return Ok(());
    };
    if tags.len() > 50 {
        return Err(Refusal::bad(
            "TagsLimitExceeded",
            format!("{} tags are more than 50.", tags.len()),
        ));
    }
    for (name, value) in tags {
        let bad = ['<', '>', '%', '&', '\\', '?', '/'];
        if name.contains(bad) {
            let message =
                format!("The tag names '{name}' have reserved characters '<,>,%,&,\\,?,/' or control characters.");
            return Err(Refusal::bad("InvalidTagNameCharacters", message).at("tags"));
        }
        let length = value.as_str().map_or(0, |value| value.chars().count());
        if name.chars().count() > 512 || length > 256 {
            let message = format!("The tag '{name}' is longer than 512 characters in its name or 256 in its value.");
            return Err(Refusal::bad("InvalidTag", message).at("tags"));
        }
    }
    Ok(())
}
