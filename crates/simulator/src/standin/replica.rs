//! As many pods as a ReplicaSet asks for.

use serde_json::{Value, json};

use super::{
    News, is_deleting, key, pods,
    workload::{Owned, new_pod, ready, surplus, tell, whole},
};
use crate::{ApiServer, Resource};

/// Creates what is missing and deletes what is too much; tells of it in the status if somebody reads that.
pub(super) async fn replace(server: ApiServer, tells: bool) {
    let sets = Resource::new("apps", "replicasets");
    let mut news = News::of(&server);
    while news.next(&[pods(), sets.clone()]).await.is_some() {
        let owned = Owned::of(&server);
        for set in server.all(&sets).iter().filter(|set| !is_deleting(set)) {
            reconcile(&server, set, &owned, tells);
        }
    }
}

fn reconcile(server: &ApiServer, set: &Value, owned: &Owned, tells: bool) {
    let wanted = whole(set, "/spec/replicas", 1);
    let own = owned.alive(set);
    for _ in own.len()..wanted {
        let _ = server.create(new_pod(set, &set["spec"]["template"]));
    }
    if own.len() > wanted {
        let gone = if tells {
            surplus(own.clone(), wanted)
        } else {
            own[wanted..].to_vec()
        };
        for pod in gone {
            let _ = server.delete("Pod", &key(&pod));
        }
    }
    if tells {
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
