//! As many pods as a ReplicaSet asks for.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::{Value, json};

use super::{
    News, is_deleting, key, place, pods, text,
    workload::{controller, is_gone, new_pod, ready, surplus, tell, whole},
};
use crate::{ApiServer, Resource, address::Key};

/// Creates what is missing and deletes what is too much; tells of it in the status if somebody reads that.
pub(super) async fn replace(server: ApiServer, tells: bool) {
    let sets = Resource::new("apps", "replicasets");
    let mut news = News::of(&server);
    let mut alive = Alive::default();
    while let Some(changed) = news.next(&[pods(), sets.clone()]).await {
        let mut concerned = BTreeSet::new();
        for (resource, object) in &changed {
            if *resource == sets {
                concerned.insert(text(object, "/metadata/uid"));
            } else {
                concerned.insert(alive.learn(&server, object));
            }
        }
        let is_concerned = |set: &Value| concerned.contains(text(set, "/metadata/uid")) && !is_deleting(set);
        for set in server.all(&sets).iter().filter(|set| is_concerned(set)) {
            reconcile(&server, set, alive.of(set), tells);
        }
    }
}

/// The pods that neither go nor are over, by the identity of their controller. Kept in step with the changes: to look at
/// all pods for each of them would make a big cluster slow.
#[derive(Default)]
struct Alive(BTreeMap<String, BTreeMap<Key, Arc<Value>>>);

impl Alive {
    /// Takes in that a pod changed; says whose it is.
    fn learn<'p>(&mut self, server: &ApiServer, pod: &'p Value) -> &'p str {
        let (owner, place) = (controller(pod), place(pod));
        let now = server.current(&pods(), &place);
        let now = now.filter(|now| controller(now) == owner && !is_gone(now));
        match now {
            _ if owner.is_empty() => {}
            Some(now) => {
                let own = self.0.entry(owner.to_owned()).or_default();
                own.insert(place, now);
            }
            None => {
                if let Some(own) = self.0.get_mut(owner) {
                    own.remove(&place);
                }
            }
        }
        owner
    }

    fn of(&self, owner: &Value) -> &BTreeMap<Key, Arc<Value>> {
        static NONE: BTreeMap<Key, Arc<Value>> = BTreeMap::new();
        self.0.get(text(owner, "/metadata/uid")).unwrap_or(&NONE)
    }
}

fn reconcile(server: &ApiServer, set: &Value, own: &BTreeMap<Key, Arc<Value>>, tells: bool) {
    let wanted = whole(set, "/spec/replicas", 1);
    for _ in own.len()..wanted {
        let _ = server.create(new_pod(set, &set["spec"]["template"]));
    }
    if own.len() > wanted {
        let gone: Vec<Arc<Value>> = if tells {
            surplus(own.values().cloned().collect(), wanted)
        } else {
            own.values().skip(wanted).cloned().collect()
        };
        for pod in gone {
            let _ = server.delete("Pod", &key(&pod));
        }
    }
    if tells {
        let own: Vec<Arc<Value>> = own.values().cloned().collect();
        let (count, ready) = (own.len(), ready(&own));
        let status = [
            ("replicas", json!(count)),
            ("fullyLabeledReplicas", json!(count)),
            ("readyReplicas", json!(ready)),
            ("availableReplicas", json!(ready)),
            ("observedGeneration", set["metadata"]["generation"].clone()),
        ];
        tell(server, set, &status, &[]);
    }
}
