//! As many pods as a ReplicaSet asks for.

use serde_json::{Value, json};

use super::{News, is_deleting, key, pods, text};
use crate::{ApiServer, Resource};

/// Creates what is missing and deletes what is too much.
pub(super) async fn replace(server: ApiServer) {
    let sets = Resource::new("apps", "replicasets");
    let mut news = News::of(&server);
    while news.next(&[pods(), sets.clone()]).await.is_some() {
        for set in server.all(&sets).iter().filter(|set| !is_deleting(set)) {
            reconcile(&server, set);
        }
    }
}

fn reconcile(server: &ApiServer, set: &Value) {
    let wanted = set["spec"]["replicas"].as_u64().unwrap_or(1);
    let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
    let is_over = |pod: &Value| is_deleting(pod) || matches!(text(pod, "/status/phase"), "Succeeded" | "Failed");
    let there: Vec<_> = server.all(&pods());
    let own: Vec<_> = there
        .iter()
        .filter(|pod| text(pod, "/metadata/ownerReferences/0/uid") == text(set, "/metadata/uid") && !is_over(pod))
        .collect();
    for _ in own.len()..wanted {
        let _ = server.create(new_pod(set));
    }
    for pod in own.iter().skip(wanted) {
        let _ = server.delete("Pod", &key(pod));
    }
}

fn new_pod(set: &Value) -> Value {
    let template = &set["spec"]["template"];
    let owner = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": set["metadata"]["name"], "uid": set["metadata"]["uid"],
        "controller": true, "blockOwnerDeletion": true,
    });
    let mut pod =
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": template["metadata"], "spec": template["spec"]});
    pod["metadata"]["generateName"] = json!(format!("{}-", text(set, "/metadata/name")));
    pod["metadata"]["namespace"] = set["metadata"]["namespace"].clone();
    pod["metadata"]["ownerReferences"] = json!([owner]);
    pod
}
