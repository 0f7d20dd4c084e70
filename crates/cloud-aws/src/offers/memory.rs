//! How much memory machines turned out to have, by type and by the images of their class.
//!
//! The estimate takes a fixed part off for the hypervisor. Once a node has registered, its own word counts: the least
//! that was seen, for sixty days. It can be written down and read again.

use std::collections::BTreeMap;

use api::aws::Ami;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// How long it is believed.
const BELIEVED: SignedDuration = SignedDuration::from_hours(60 * 24);

/// One line of what is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Seen {
    bytes: i64,
    at: Timestamp,
}

/// Memory that was seen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Memory {
    seen: BTreeMap<String, Seen>,
    #[serde(skip)]
    version: u64,
}

/// Names a type and the images it boots from, whatever their order.
pub fn key(instance_type: &str, images: &[Ami]) -> String {
    let mut ids: Vec<&str> = images.iter().map(|image| image.id.as_str()).collect();
    ids.sort_unstable();
    format!("{instance_type}-{}", ids.join("+"))
}

impl Memory {
    /// A node has so much. Returns whether that is news.
    pub fn see(&mut self, key: &str, bytes: i64, now: Timestamp) -> bool {
        let known = self.get(key, now);
        if known.is_some_and(|known| bytes > known) {
            return false;
        }
        self.seen.insert(key.to_owned(), Seen { bytes, at: now });
        let is_news = known != Some(bytes);
        self.version += u64::from(is_news);
        is_news
    }

    /// The least that was seen.
    pub fn get(&self, key: &str, now: Timestamp) -> Option<i64> {
        let seen = self.seen.get(key)?;
        (now.duration_since(seen.at) < BELIEVED).then_some(seen.bytes)
    }

    /// Counts changes.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Forgets what is no longer believed.
    pub fn forget(&mut self, now: Timestamp) {
        self.seen.retain(|_, seen| now.duration_since(seen.at) < BELIEVED);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn images(ids: &[&str]) -> Vec<Ami> {
        let image = |id: &&str| Ami {
            id: (*id).to_owned(),
            ..Ami::default()
        };
        ids.iter().map(image).collect()
    }

    #[test]
    fn the_least_that_was_seen_counts_for_sixty_days() {
        let mut memory = Memory::default();
        assert!(memory.see("m5.large", 100, at(0)));
        assert!(!memory.see("m5.large", 120, at(10)));
        assert!(memory.see("m5.large", 90, at(20)));
        assert!(!memory.see("m5.large", 90, at(30)));
        assert_eq!(memory.get("m5.large", at(40)), Some(90));
        let day = 86_400;
        assert_eq!(memory.get("m5.large", at(30 + 60 * day - 1)), Some(90));
        assert_eq!(memory.get("m5.large", at(30 + 60 * day)), None);
    }

    #[test]
    fn other_images_are_another_question_but_their_order_is_not() {
        let key = |ids: &[&str]| key("m5.large", &images(ids));
        assert_eq!(key(&["ami-1", "ami-2"]), key(&["ami-2", "ami-1"]));
        assert_ne!(key(&["ami-1", "ami-2"]), key(&["ami-1", "ami-3"]));
    }

    #[test]
    fn what_was_learnt_survives_a_restart() {
        let mut memory = Memory::default();
        memory.see("m5.large-1", 100, at(0));
        let text = serde_json::to_string(&memory).unwrap();
        let again: Memory = serde_json::from_str(&text).unwrap();
        assert_eq!(again.get("m5.large-1", at(1)), Some(100));
    }
}
