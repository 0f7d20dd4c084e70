//! What has lost its owner goes, and so do pods whose node is gone.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use serde_json::Value;
use tokio::task::JoinSet;

use super::{News, key, nodes, text};
use crate::{ApiServer, Event};

/// Who is there, and who is owned by whom.
#[derive(Default)]
struct Owners {
    alive: BTreeSet<String>,
    /// By owner: what it owns, by identity.
    owned: BTreeMap<String, BTreeMap<String, Arc<Value>>>,
}

impl Owners {
    fn learn(&mut self, object: &Arc<Value>) {
        let uid = text(object, "/metadata/uid");
        self.alive.insert(uid.to_owned());
        for owner in owners(object) {
            let owned = self.owned.entry(text(owner, "/uid").to_owned()).or_default();
            owned.insert(uid.to_owned(), Arc::clone(object));
        }
    }

    /// Forgets an object, and tells what it owned.
    fn forget(&mut self, object: &Value) -> Vec<Arc<Value>> {
        let uid = text(object, "/metadata/uid");
        self.alive.remove(uid);
        for owner in owners(object) {
            if let Some(owned) = self.owned.get_mut(text(owner, "/uid")) {
                owned.remove(uid);
            }
        }
        let owned = self.owned.remove(uid).unwrap_or_default();
        owned.into_values().collect()
    }

    /// Whether an object has had owners, and has none now.
    fn has_lost(&self, object: &Value) -> bool {
        let mut owners = owners(object).peekable();
        owners.peek().is_some() && !owners.any(|owner| self.alive.contains(text(owner, "/uid")))
    }
}

fn owners(object: &Value) -> impl Iterator<Item = &Value> {
    object["metadata"]["ownerReferences"].as_array().into_iter().flatten()
}

/// Deletes what has lost all its owners.
pub(super) async fn collect(server: ApiServer) {
    let mut changes = server.changes();
    let mut known = Owners::default();
    let everything = server.everything();
    for object in &everything {
        known.learn(object);
    }
    for object in &everything {
        sweep(&server, &known, object);
    }
    while let Some(change) = changes.recv().await {
        // What happens at once is judged together: an owner may come with what it owns.
        let mut suspects = Vec::new();
        let mut next = Some(change);
        while let Some(change) = next {
            if change.event == Event::Deleted {
                suspects.extend(known.forget(&change.object));
            } else {
                known.learn(&change.object);
                if owners(&change.object).next().is_some() {
                    suspects.push(change.object);
                }
            }
            next = changes.try_recv().ok();
        }
        for object in &suspects {
            sweep(&server, &known, object);
        }
    }
}

fn sweep(server: &ApiServer, known: &Owners, object: &Value) {
    let is_alive = known.alive.contains(text(object, "/metadata/uid"));
    if is_alive && known.has_lost(object) {
        let (kind, key) = (text(object, "/kind"), key(object));
        // Perhaps it has changed, or is another one by now.
        let now = server
            .object(kind, &key)
            .filter(|now| now["metadata"]["uid"] == object["metadata"]["uid"]);
        if now.is_some_and(|now| !super::is_deleting(&now) && known.has_lost(&now)) {
            let _ = server.delete(kind, &key);
        }
    }
}

/// How long the pod garbage collector waits before it believes that a node is gone.
const QUARANTINE: Duration = Duration::from_secs(40);

/// Removes pods whose node is gone.
pub(super) async fn collect_pods(server: ApiServer) {
    let mut news = News::of(&server);
    let mut waiting = JoinSet::new();
    while let Some(changed) = news.next(&[nodes()]).await {
        for (_, node) in changed {
            let name = text(&node, "/metadata/name").to_owned();
            if server.object("Node", &name).is_none() {
                waiting.spawn(forget(server.clone(), name));
            }
        }
    }
}

async fn forget(server: ApiServer, node: String) {
    tokio::time::sleep(QUARANTINE).await;
    if server.object("Node", &node).is_some() {
        return;
    }
    for pod in server.objects("Pod") {
        if text(&pod, "/spec/nodeName") == node {
            let _ = server.delete_now("Pod", &key(&pod));
        }
    }
}
