//! What this process knows of a launch beyond what the claim says: its result until that is written, and that it came
//! to nothing.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use cloud::Launched;
use model::object::{NodeClaim, Text, Uid};

/// How a launch went, as far as this process knows.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) enum Recall {
    /// Nothing is known.
    #[default]
    Nothing,
    /// It gave this machine.
    Launched(Launched),
    /// The cloud said that there is no machine.
    Failed,
}

#[derive(Debug, Default)]
struct Entry {
    uid: Uid,
    recall: Recall,
    is_deleted: bool,
}

/// By name of the claim; one of another identity under the same name starts afresh.
#[derive(Debug, Default)]
pub(super) struct Memory(Mutex<BTreeMap<Text, Entry>>);

impl Memory {
    pub(super) fn recall(&self, claim: &NodeClaim) -> Recall {
        let entries = self.lock();
        let entry = entries.get(&claim.metadata.name);
        let own = entry.filter(|entry| entry.uid == claim.metadata.uid);
        own.map(|entry| entry.recall.clone()).unwrap_or_default()
    }

    pub(super) fn remember(&self, claim: &NodeClaim, recall: Recall) {
        self.change(claim, |entry| entry.recall = recall);
    }

    /// We deleted the claim. Until the watch says so too, it must not be launched again.
    pub(super) fn deleted(&self, claim: &NodeClaim) {
        self.change(claim, |entry| entry.is_deleted = true);
    }

    pub(super) fn awaits_deletion(&self, claim: &NodeClaim) -> bool {
        let entries = self.lock();
        let entry = entries.get(&claim.metadata.name);
        !claim.metadata.is_deleting() && entry.is_some_and(|entry| entry.is_deleted && entry.uid == claim.metadata.uid)
    }

    pub(super) fn forget(&self, name: &Text) {
        self.lock().remove(name);
    }

    fn change(&self, claim: &NodeClaim, change: impl FnOnce(&mut Entry)) {
        let mut entries = self.lock();
        let entry = entries.entry(claim.metadata.name.clone()).or_default();
        if entry.uid != claim.metadata.uid {
            *entry = Entry {
                uid: claim.metadata.uid.clone(),
                ..Entry::default()
            };
        }
        change(entry);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Text, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(uid: &str) -> NodeClaim {
        serde_json::from_str(&format!(r#"{{"metadata":{{"name":"a","uid":"{uid}"}}}}"#)).unwrap()
    }

    #[test]
    fn a_claim_of_the_same_name_does_not_inherit_a_launch() {
        let memory = Memory::default();
        memory.remember(&claim("1"), Recall::Failed);
        assert_eq!(memory.recall(&claim("1")), Recall::Failed);
        assert_eq!(memory.recall(&claim("2")), Recall::Nothing);
        memory.deleted(&claim("2"));
        assert_eq!(memory.recall(&claim("2")), Recall::Nothing);
        assert_eq!(
            (memory.awaits_deletion(&claim("1")), memory.awaits_deletion(&claim("2"))),
            (false, true)
        );
    }
}
