//! The objects, their versions, what happened to them, and who is told.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;

use crate::{Failure, Resource, address::Key, kind::Kinds, watch::Watcher};

/// What happened to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// It is new.
    Added,
    /// It is different.
    Modified,
    /// It is gone.
    Deleted,
}

/// Something that happened.
#[derive(Debug, Clone)]
pub struct Change {
    /// As of this version.
    pub version: u64,
    /// What.
    pub event: Event,
    /// To an object of this kind.
    pub resource: Resource,
    /// The object afterwards, or its last state.
    pub object: Arc<Value>,
    /// The object before.
    pub before: Option<Arc<Value>>,
}

/// A list that was cut into pages: what it found when its first page was asked for.
#[derive(Debug)]
pub(crate) struct Pages {
    pub(crate) version: u64,
    pub(crate) items: Vec<Arc<Value>>,
}

/// What a store held at a time.
#[derive(Debug, Clone)]
pub struct Backup {
    objects: BTreeMap<Resource, BTreeMap<Key, Arc<Value>>>,
    version: u64,
}

#[derive(Debug)]
pub(crate) struct Store {
    objects: BTreeMap<Resource, BTreeMap<Key, Arc<Value>>>,
    pub(crate) kinds: Kinds,
    pub(crate) version: u64,
    identities: u64,
    history: VecDeque<Change>,
    history_limit: usize,
    /// Versions up to this one are forgotten.
    pub(crate) forgotten: u64,
    pub(crate) watchers: Vec<Watcher>,
    pub(crate) listeners: Vec<UnboundedSender<Change>>,
    pub(crate) pages: BTreeMap<u64, Pages>,
    /// Whether writes are only for show.
    pub(crate) is_rehearsal: bool,
}

impl Default for Store {
    fn default() -> Self {
        Self {
            objects: BTreeMap::new(),
            kinds: Kinds::default(),
            version: 1,
            identities: 0,
            history: VecDeque::new(),
            history_limit: 100_000,
            forgotten: 0,
            watchers: Vec::new(),
            listeners: Vec::new(),
            pages: BTreeMap::new(),
            is_rehearsal: false,
        }
    }
}

impl Store {
    pub(crate) fn get(&self, resource: &Resource, key: &Key) -> Result<&Arc<Value>, Failure> {
        self.find(resource, key)
            .ok_or_else(|| Failure::not_found(resource, key))
    }

    pub(crate) fn find(&self, resource: &Resource, key: &Key) -> Option<&Arc<Value>> {
        self.objects.get(resource)?.get(key)
    }

    /// The objects of a kind by namespace and name.
    pub(crate) fn all(&self, resource: &Resource) -> impl Iterator<Item = &Arc<Value>> {
        self.objects.get(resource).into_iter().flat_map(BTreeMap::values)
    }

    pub(crate) fn everything(&self) -> impl Iterator<Item = &Arc<Value>> {
        self.objects.values().flat_map(BTreeMap::values)
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = (&Resource, &Key, &Arc<Value>)> {
        self.objects
            .iter()
            .flat_map(|(resource, objects)| objects.iter().map(move |(key, object)| (resource, key, object)))
    }

    /// A number that nothing else has.
    pub(crate) fn identity(&mut self) -> u64 {
        self.identities += 1;
        self.identities
    }

    /// Writes an object as it is given, under a new version.
    pub(crate) fn put(&mut self, resource: &Resource, key: Key, mut object: Value) -> Arc<Value> {
        if self.is_rehearsal {
            return Arc::new(object);
        }
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let object = Arc::new(object);
        let objects = self.objects.entry(resource.clone()).or_default();
        let before = objects.insert(key, Arc::clone(&object));
        let event = if before.is_some() {
            Event::Modified
        } else {
            Event::Added
        };
        self.happened(event, resource, &object, before);
        object
    }

    /// Takes an object out; `last` is what its watchers are shown.
    pub(crate) fn remove(&mut self, resource: &Resource, key: &Key, mut last: Value) -> Arc<Value> {
        if self.is_rehearsal {
            return Arc::new(last);
        }
        self.version += 1;
        last["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let last = Arc::new(last);
        let before = self.objects.get_mut(resource).and_then(|objects| objects.remove(key));
        self.happened(Event::Deleted, resource, &last, before);
        last
    }

    fn happened(&mut self, event: Event, resource: &Resource, object: &Arc<Value>, before: Option<Arc<Value>>) {
        let change = Change {
            version: self.version,
            event,
            resource: resource.clone(),
            object: Arc::clone(object),
            before,
        };
        self.watchers.retain(|watcher| watcher.tell(&change));
        self.listeners.retain(|listener| listener.send(change.clone()).is_ok());
        self.history.push_back(change);
        while self.history.len() > self.history_limit {
            if let Some(oldest) = self.history.pop_front() {
                self.forgotten = oldest.version;
            }
        }
    }

    /// What happened after a version.
    pub(crate) fn since(&self, version: u64) -> Result<impl Iterator<Item = &Change>, Failure> {
        if version < self.forgotten {
            let message = format!("too old resource version: {version} ({})", self.forgotten);
            return Err(Failure::expired(message));
        }
        Ok(self.history.iter().filter(move |change| change.version > version))
    }

    /// The objects of a kind as they were at a version.
    pub(crate) fn at(&self, resource: &Resource, version: u64) -> Result<Vec<Arc<Value>>, Failure> {
        let key = |object: &Value| {
            let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
            (text("namespace"), text("name"))
        };
        let since: Vec<&Change> = self
            .since(version)?
            .filter(|change| change.resource == *resource)
            .collect();
        let mut objects: BTreeMap<Key, Arc<Value>> = self
            .all(resource)
            .map(|object| (key(object), Arc::clone(object)))
            .collect();
        for change in since.into_iter().rev() {
            match &change.before {
                Some(before) => objects.insert(key(before), Arc::clone(before)),
                None => objects.remove(&key(&change.object)),
            };
        }
        Ok(objects.into_values().collect())
    }

    pub(crate) fn backup(&self) -> Backup {
        Backup {
            objects: self.objects.clone(),
            version: self.version,
        }
    }

    /// Those who watch lose their connection, and nobody is told what changed: the server that knew is gone.
    pub(crate) fn restore(&mut self, backup: &Backup) {
        self.objects.clone_from(&backup.objects);
        self.version = backup.version;
        self.watchers.clear();
        self.history.clear();
        self.pages.clear();
        self.forgotten = 0;
    }

    pub(crate) fn keep_history(&mut self, limit: usize) {
        self.history_limit = limit;
    }

    /// Forgets everything that happened until now, as etcd does when it is compacted.
    pub(crate) fn compact(&mut self) {
        self.history.clear();
        self.pages.clear();
        self.forgotten = self.version;
    }
}
