//! What the API server answers, request by request.

mod speaking;

use serde_json::json;
use speaking::{Speaker, server};

const NODES: &str = "/api/v1/nodes";
const CLAIMS: &str = "/apis/karpenter.sh/v1/nodeclaims";
const PODS: &str = "/api/v1/namespaces/default/pods";

#[tokio::test(start_paused = true)]
async fn a_created_object_gets_identity_time_version_and_generation() {
    let speaker = Speaker::to(&server());
    let claim = json!({"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {"generateName": "pool-", "creationTimestamp": null}, "spec": {"a": 1}, "status": {"x": 1}});
    let (code, created) = speaker.post(CLAIMS, claim).await;
    let name = created["metadata"]["name"].as_str().unwrap().to_owned();
    assert_eq!((code, name.len()), (201, "pool-".len() + 5));
    assert_eq!(
        created,
        json!({"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "spec": {"a": 1}, "metadata": {
            "name": name, "generateName": "pool-", "generation": 1, "resourceVersion": "2",
            "uid": created["metadata"]["uid"], "creationTimestamp": "2026-01-01T00:00:00Z"}})
    );
    assert_eq!(speaker.get(&format!("{CLAIMS}/{name}")).await, (200, created));
}

#[tokio::test(start_paused = true)]
async fn refusals_are_status_objects_in_the_servers_own_words() {
    let server = server();
    let speaker = Speaker::to(&server);
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}});
    server.create(node.clone()).unwrap();
    let claim = json!({"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": "c"}});
    server.create(claim).unwrap();
    let status = |code: u16, reason: &str, message: &str, details: serde_json::Value| {
        let body = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "reason": reason, "details": details, "code": code});
        (code, body)
    };
    assert_eq!(
        speaker.post(NODES, node).await,
        status(
            409,
            "AlreadyExists",
            "nodes \"n\" already exists",
            json!({"name": "n", "kind": "nodes"})
        )
    );
    assert_eq!(
        speaker.get(&format!("{CLAIMS}/x")).await,
        status(
            404,
            "NotFound",
            "nodeclaims.karpenter.sh \"x\" not found",
            json!({"name": "x", "group": "karpenter.sh", "kind": "nodeclaims"})
        )
    );
    let stale = json!({"metadata": {"resourceVersion": "1", "labels": {"a": "b"}}});
    assert_eq!(
        speaker.merge(&format!("{NODES}/n"), stale).await,
        status(
            409,
            "Conflict",
            "Operation cannot be fulfilled on nodes \"n\": the object has been modified; please apply your changes to \
             the latest version and try again",
            json!({"name": "n", "kind": "nodes"})
        )
    );
    assert_eq!(
        speaker.post(NODES, json!({"metadata": {}})).await,
        status(
            422,
            "Invalid",
            "Node \"\" is invalid: metadata.name: Required value: name or generateName is required",
            json!({"kind": "Node", "causes": [{"reason": "FieldValueRequired", "field": "metadata.name",
                "message": "Required value: name or generateName is required"}]})
        )
    );
}

#[tokio::test(start_paused = true)]
async fn status_and_the_rest_are_written_apart_and_only_the_rest_counts_as_a_generation() {
    let server = server();
    let speaker = Speaker::to(&server);
    let claim =
        json!({"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": "c"}, "spec": {"a": 1}});
    server.create(claim).unwrap();
    let path = format!("{CLAIMS}/c");
    let (_, after) = speaker
        .merge(&path, json!({"spec": {"a": 2}, "status": {"x": 1}}))
        .await;
    assert_eq!(
        (&after["metadata"]["generation"], &after["status"]),
        (&json!(2), &json!(null))
    );
    let status = json!({"spec": {"a": 3}, "metadata": {"labels": {"l": "1"}}, "status": {"x": 1}});
    let (_, after) = speaker.merge(&format!("{path}/status"), status.clone()).await;
    assert_eq!(
        (
            &after["metadata"]["generation"],
            &after["spec"],
            &after["status"],
            &after["metadata"]["labels"]
        ),
        (&json!(2), &json!({"a": 2}), &json!({"x": 1}), &json!(null))
    );
    let version = after["metadata"]["resourceVersion"].clone();
    let (_, again) = speaker.merge(&format!("{path}/status"), status).await;
    assert_eq!(
        again["metadata"]["resourceVersion"], version,
        "nothing changed, so nothing was written"
    );
}

#[tokio::test(start_paused = true)]
async fn an_object_with_finalizers_stays_until_the_last_one_is_gone() {
    let server = server();
    let speaker = Speaker::to(&server);
    let claim = json!({"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {"name": "c", "finalizers": ["karpenter.sh/termination"]}});
    server.create(claim).unwrap();
    let path = format!("{CLAIMS}/c");
    let (code, deleting) = speaker.delete(&path, json!({})).await;
    assert_eq!(
        (
            code,
            &deleting["metadata"]["deletionTimestamp"],
            &deleting["metadata"]["generation"]
        ),
        (200, &json!("2026-01-01T00:00:00Z"), &json!(2))
    );
    let more = json!({"metadata": {"finalizers": ["karpenter.sh/termination", "new"]}});
    let (code, refused) = speaker.merge(&path, more).await;
    assert_eq!(
        (code, refused["message"].as_str().unwrap()),
        (
            422,
            "NodeClaim.karpenter.sh \"c\" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added \
             if the object is being deleted, found new finalizers []string{\"new\"}"
        )
    );
    assert_eq!(
        speaker.merge(&path, json!({"metadata": {"finalizers": null}})).await.0,
        200
    );
    assert_eq!(speaker.get(&path).await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn a_deletion_can_insist_on_an_incarnation_and_a_version() {
    let server = server();
    let speaker = Speaker::to(&server);
    let node = server
        .create(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}))
        .unwrap();
    let path = format!("{NODES}/n");
    let (uid, version) = (&node["metadata"]["uid"], &node["metadata"]["resourceVersion"]);
    let (code, refused) = speaker.delete(&path, json!({"preconditions": {"uid": "other"}})).await;
    let expected = format!(
        "Operation cannot be fulfilled on Node \"n\": the UID in the precondition (other) does not match the UID in \
         record ({}). The object might have been deleted and then recreated",
        uid.as_str().unwrap()
    );
    assert_eq!((code, refused["message"].as_str().unwrap()), (409, expected.as_str()));
    let wrong_version = json!({"preconditions": {"uid": uid, "resourceVersion": "1"}});
    assert_eq!(speaker.delete(&path, wrong_version).await.0, 409);
    let right = json!({"preconditions": {"uid": uid, "resourceVersion": version}});
    let (code, status) = speaker.delete(&path, right).await;
    assert_eq!(
        (code, status),
        (
            200,
            json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
                "details": {"name": "n", "kind": "nodes", "uid": uid}})
        )
    );
}

#[tokio::test(start_paused = true)]
async fn a_running_pod_ends_with_grace_and_a_pending_one_at_once() {
    let server = server();
    let speaker = Speaker::to(&server);
    let pod = |name: &str, node: Option<&str>| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"nodeName": node, "containers": [{"name": "c"}]}})
    };
    server.create(pod("bound", Some("n"))).unwrap();
    server.create(pod("pending", None)).unwrap();
    let (_, deleting) = speaker.delete(&format!("{PODS}/bound"), json!({})).await;
    let times = (
        &deleting["metadata"]["deletionTimestamp"],
        &deleting["metadata"]["deletionGracePeriodSeconds"],
    );
    assert_eq!(times, (&json!("2026-01-01T00:00:30Z"), &json!(30)));
    let (_, sooner) = speaker
        .delete(&format!("{PODS}/bound"), json!({"gracePeriodSeconds": 5}))
        .await;
    assert_eq!(sooner["metadata"]["deletionTimestamp"], "2026-01-01T00:00:05Z");
    speaker
        .delete(&format!("{PODS}/bound"), json!({"gracePeriodSeconds": 0}))
        .await;
    speaker.delete(&format!("{PODS}/pending"), json!({})).await;
    assert_eq!(server.list("Pod"), Vec::<serde_json::Value>::new());
}

#[tokio::test(start_paused = true)]
async fn pages_of_a_list_show_one_moment() {
    let server = server();
    let speaker = Speaker::to(&server);
    let node = |name: &str| json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
    for name in ["a", "b", "c"] {
        server.create(node(name)).unwrap();
    }
    let (_, first) = speaker.get(&format!("{NODES}?limit=2")).await;
    server.delete("Node", "c").unwrap();
    let token = first["metadata"]["continue"].as_str().unwrap();
    let (_, second) = speaker.get(&format!("{NODES}?limit=2&continue={token}")).await;
    let names = |list: &serde_json::Value| -> Vec<String> {
        let items = list["items"].as_array().unwrap().iter();
        items
            .map(|item| item["metadata"]["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        (names(&first), names(&second)),
        (vec!["a".into(), "b".into()], vec!["c".into()])
    );
    assert_eq!(first["metadata"]["remainingItemCount"], 1);
    assert_eq!(
        second["metadata"],
        json!({"resourceVersion": first["metadata"]["resourceVersion"]})
    );
    server.compact();
    let (code, _) = speaker.get(&format!("{NODES}?limit=2&continue={token}")).await;
    assert_eq!(code, 410);
}

#[tokio::test(start_paused = true)]
async fn evictions_respect_budgets() {
    let server = server();
    let speaker = Speaker::to(&server);
    let ready = json!([{"type": "Ready", "status": "True"}]);
    for name in ["one", "two"] {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "web"}},
            "spec": {"nodeName": "n"}, "status": {"phase": "Running", "conditions": ready}});
        server.create(pod).unwrap();
    }
    let budget = |name: &str| {
        json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name},
            "spec": {"selector": {"matchLabels": {"app": "web"}}}, "status": {"disruptionsAllowed": 1,
            "currentHealthy": 2, "desiredHealthy": 1, "observedGeneration": 1}})
    };
    server.create(budget("pdb")).unwrap();
    let evict = |name: &str| (format!("{PODS}/{name}/eviction"), json!({"metadata": {"name": name}}));
    let (path, body) = evict("one");
    assert_eq!(speaker.post(&path, body).await.0, 201);
    assert_eq!(
        server.get("Pod", "default/one").unwrap()["metadata"]["deletionTimestamp"],
        "2026-01-01T00:00:30Z"
    );
    let (path, body) = evict("two");
    let (code, refused) = speaker.post(&path, body.clone()).await;
    assert_eq!(
        (code, refused),
        (
            429,
            json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": "Cannot evict pod as it would violate the pod's disruption budget.",
                "reason": "TooManyRequests", "code": 429, "details": {"causes": [{"reason": "DisruptionBudget",
                    "message": "The disruption budget pdb does not allow evicting pods currently"}]}})
        )
    );
    server.create(budget("second")).unwrap();
    let (code, refused) = speaker.post(&path, body).await;
    assert_eq!(
        (code, refused["message"].as_str().unwrap()),
        (
            500,
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        )
    );
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_bound_once() {
    let server = server();
    let speaker = Speaker::to(&server);
    let pod =
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "status": {"nominatedNodeName": "n"}});
    server.create(pod).unwrap();
    let binding = |node: &str| json!({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": node}});
    assert_eq!(speaker.post(&format!("{PODS}/p/binding"), binding("n")).await.0, 201);
    let bound = server.get("Pod", "default/p").unwrap();
    assert_eq!(
        (&bound["spec"]["nodeName"], &bound["status"]["nominatedNodeName"]),
        (&json!("n"), &json!(null))
    );
    let (code, refused) = speaker.post(&format!("{PODS}/p/binding"), binding("m")).await;
    assert_eq!(
        (code, refused["message"].as_str().unwrap()),
        (
            409,
            "Operation cannot be fulfilled on pods/binding \"p\": pod p is already assigned to node \"n\""
        )
    );
}
