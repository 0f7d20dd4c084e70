//! Does the API server in a process answer as the real one does? The same requests go to both.
//!
//! What differs on purpose, and is taken out before the answers are compared:
//!
//! | what | why |
//! |---|---|
//! | uids, versions, times, `managedFields`, continue tokens | nobody may depend on them |
//! | defaults inside a pod's spec (containers, service account, volumes) | no controller of ours reads them |
//! | nulls and empty messages | the real server shows some fields always, `lastProbeTime: null` |
//! | a cause told twice | the real server validates metadata of some kinds twice |
//! | `nodeInfo` and `daemonEndpoints` of a node that has none | empty shells of required fields |
//! | a new service account's or namespace's own extras | not asked for by any test |
#![allow(clippy::unwrap_used, reason = "the whole file is a test")]

use http_body_util::BodyExt;
use rig::{
    Cluster,
    client::media::{JSON, MERGE, STRATEGIC},
};
use serde_json::{Value, json};
use simulator::ApiServer;

const NODES: &str = "/api/v1/nodes";
const PODS: &str = "/api/v1/namespaces/default/pods";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
const GADGETS: &str = "/apis/rig.test/v1/gadgets";

const CRD: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: gadgets.rig.test }
spec:
  group: rig.test
  names: { kind: Gadget, listKind: GadgetList, plural: gadgets, singular: gadget }
  scope: Cluster
  versions:
    - name: v1
      served: true
      storage: true
      subresources: { status: {} }
      schema:
        openAPIV3Schema: { type: object, x-kubernetes-preserve-unknown-fields: true }
";

/// One of the two servers.
trait Party {
    fn ask(&self, method: &str, path: &str, body: &Value, content: &str) -> (u16, Value);
}

struct Real(Cluster);

impl Party for Real {
    fn ask(&self, method: &str, path: &str, body: &Value, content: &str) -> (u16, Value) {
        let body = Some(body).filter(|body| !body.is_null());
        let answer = self.0.client().request(method, path, body, content).unwrap();
        (answer.status, answer.json)
    }
}

struct Simulated {
    runtime: tokio::runtime::Runtime,
    client: kube_client::Client,
}

impl Simulated {
    fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        let client = runtime.block_on(async {
            let start: jiff::Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
            let began = tokio::time::Instant::now();
            ApiServer::new(move || start + began.elapsed()).client()
        });
        Self { runtime, client }
    }
}

impl Party for Simulated {
    fn ask(&self, method: &str, path: &str, body: &Value, content: &str) -> (u16, Value) {
        let bytes = if body.is_null() {
            Vec::new()
        } else {
            body.to_string().into_bytes()
        };
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content);
        let request = request.body(kube_client::client::Body::from(bytes)).unwrap();
        self.runtime.block_on(async {
            let (head, body) = self.client.send(request).await.unwrap().into_parts();
            let bytes = body.collect().await.unwrap().to_bytes();
            let text = String::from_utf8(bytes.to_vec()).unwrap();
            let json = serde_json::from_str(&text).unwrap_or(Value::String(text));
            (head.status.as_u16(), json)
        })
    }
}

/// A conversation with one party, and what it answered.
struct Talk<'a> {
    party: &'a dyn Party,
    said: Vec<(String, u16, Value)>,
}

impl Talk<'_> {
    fn ask(&mut self, method: &str, path: &str, body: &Value, content: &str) -> Value {
        let (code, answer) = self.party.ask(method, path, body, content);
        self.said
            .push((format!("{method} {path} {body}"), code, compared(&answer)));
        answer
    }

    fn get(&mut self, path: &str) -> Value {
        self.ask("GET", path, &Value::Null, JSON)
    }

    fn post(&mut self, path: &str, body: &Value) -> Value {
        self.ask("POST", path, body, JSON)
    }

    fn put(&mut self, path: &str, body: &Value) -> Value {
        self.ask("PUT", path, body, JSON)
    }

    fn merge(&mut self, path: &str, body: &Value) -> Value {
        self.ask("PATCH", path, body, MERGE)
    }

    fn delete(&mut self, path: &str, options: &Value) -> Value {
        self.ask("DELETE", path, options, JSON)
    }

    /// The changes of a watch that ends after a second.
    fn watch(&mut self, path: &str) {
        let (code, answer) = self.party.ask("GET", path, &Value::Null, JSON);
        let lines: Vec<Value> = match answer {
            Value::String(text) => text.lines().map(|line| serde_json::from_str(line).unwrap()).collect(),
            one => vec![one],
        };
        let lines = lines.iter().map(compared).collect();
        self.said.push((format!("WATCH {path}"), code, Value::Array(lines)));
    }
}

/// An answer without what may differ.
fn compared(answer: &Value) -> Value {
    let mut answer = answer.clone();
    strip(&mut answer);
    answer
}

fn strip(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(strip),
        Value::Object(fields) => {
            for gone in [
                "uid",
                "resourceVersion",
                "managedFields",
                "creationTimestamp",
                "lastTransitionTime",
            ] {
                fields.remove(gone);
            }
            for gone in ["nodeInfo", "daemonEndpoints"] {
                fields.remove(gone);
            }
            fields.retain(|field, value| !(value.is_null() || field == "message" && value == ""));
            if let Some(causes) = fields.get_mut("causes").and_then(Value::as_array_mut) {
                causes.dedup();
            }
            for set in ["deletionTimestamp", "continue"] {
                fields.entry(set).and_modify(|value| *value = json!("set"));
            }
            if let Some(spec) = fields.get_mut("spec").and_then(Value::as_object_mut)
                && spec.contains_key("containers")
            {
                spec.retain(|field, _| {
                    ["nodeName", "terminationGracePeriodSeconds", "schedulerName"].contains(&&**field)
                });
            }
            for text in ["disruptedPods", "message"] {
                fields.entry(text).and_modify(blur);
            }
            fields.values_mut().for_each(strip);
        }
        _ => {}
    }
}

/// Takes identities, numbers and times out of a text, and times out of a map.
fn blur(value: &mut Value) {
    match value {
        Value::Object(times) => times.values_mut().for_each(|time| *time = json!("set")),
        Value::String(text) => {
            let blurred = |word: &str| word.len() == 36 && word.matches('-').count() == 4;
            let words = text.split(' ').map(|word| {
                let bare = word.trim_matches(|letter: char| ",.()".contains(letter));
                let is_number = !bare.is_empty() && bare.bytes().all(|byte| byte.is_ascii_digit());
                if blurred(bare) || is_number {
                    word.replace(bare, "#")
                } else {
                    word.to_owned()
                }
            });
            *text = words.collect::<Vec<_>>().join(" ");
        }
        _ => {}
    }
}

fn version(object: &Value) -> &Value {
    &object["metadata"]["resourceVersion"]
}

fn uid(object: &Value) -> &Value {
    &object["metadata"]["uid"]
}

fn nodes(talk: &mut Talk<'_>) {
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": {"a": "1"}},
        "spec": {"providerID": "x://1"}, "status": {"capacity": {"cpu": "2"}, "allocatable": {"cpu": "2"}}});
    let path = &format!("{NODES}/n");
    let created = talk.post(NODES, &node);
    talk.post(NODES, &node);
    talk.post(NODES, &json!({"apiVersion": "v1", "kind": "Node", "metadata": {}}));
    talk.get(path);
    talk.get(&format!("{NODES}/missing"));
    talk.merge(
        path,
        &json!({"metadata": {"labels": {"a": null, "b": "2"}, "finalizers": ["example.com/hold"]}}),
    );
    let stale = json!({"metadata": {"resourceVersion": version(&created), "labels": {"c": "3"}}});
    talk.merge(path, &stale);
    talk.put(path, &created);
    let conditions = |reason: &str| {
        json!({"spec": {"unschedulable": true}, "status": {"conditions": [
            {"type": "Ready", "status": "True", "reason": reason, "message": "m"}]}})
    };
    talk.ask("PATCH", &format!("{path}/status"), &conditions("One"), STRATEGIC);
    let other = json!({"status": {"conditions": [{"type": "Other", "status": "False", "reason": "r", "message": ""}]}});
    talk.ask("PATCH", &format!("{path}/status"), &other, STRATEGIC);
    talk.ask(
        "PATCH",
        path,
        &json!({"metadata": {"finalizers": ["example.com/more"]}}),
        STRATEGIC,
    );
    let taints = json!({"spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}});
    let tainted = talk.ask("PATCH", path, &taints, STRATEGIC);
    let again = talk.ask("PATCH", path, &taints, STRATEGIC);
    assert_eq!(
        version(&tainted),
        version(&again),
        "what changes nothing is not written"
    );
    talk.delete(
        path,
        &json!({"preconditions": {"uid": "00000000-0000-4000-8000-000000000000"}}),
    );
    talk.delete(path, &json!({"preconditions": {"resourceVersion": "1"}}));
    let known = talk.get(path);
    talk.delete(
        path,
        &json!({"preconditions": {"uid": uid(&known), "resourceVersion": version(&known)}}),
    );
    talk.merge(
        path,
        &json!({"metadata": {"finalizers": ["example.com/hold", "example.com/new"]}}),
    );
    talk.delete(path, &json!({}));
    talk.merge(path, &json!({"metadata": {"finalizers": null}}));
    talk.get(path);
    talk.delete(path, &json!({}));
    talk.post(NODES, &node);
    talk.delete(path, &json!({}));
}

fn custom_kinds(talk: &mut Talk<'_>) {
    let gadget = json!({"apiVersion": "rig.test/v1", "kind": "Gadget", "metadata": {"name": "g"},
        "spec": {"size": 1, "list": [1, 2]}, "status": {"dropped": true}});
    let path = &format!("{GADGETS}/g");
    let created = talk.post(GADGETS, &gadget);
    talk.post(GADGETS, &gadget);
    talk.merge(
        path,
        &json!({"spec": {"size": 2, "list": [3]}, "status": {"ignored": true}}),
    );
    let status = json!({"metadata": {"labels": {"ignored": "1"}}, "spec": {"size": 9}, "status": {"conditions": [{"type": "A"}]}});
    talk.merge(&format!("{path}/status"), &status);
    talk.merge(
        &format!("{path}/status"),
        &json!({"metadata": {"resourceVersion": version(&created)}, "status": {"x": 1}}),
    );
    talk.ask("PATCH", path, &json!({"spec": {"size": 3}}), STRATEGIC);
    talk.put(path, &created);
    talk.merge(
        path,
        &json!({"metadata": {"labels": {"l": "1"}, "finalizers": ["example.com/hold"]}}),
    );
    talk.delete(path, &json!({}));
    talk.merge(path, &json!({"metadata": {"finalizers": []}}));
    talk.get(path);
    talk.post(GADGETS, &gadget);
    talk.delete(path, &json!({}));
    talk.get(GADGETS);
}

fn lists_and_watches(talk: &mut Talk<'_>) {
    let map = |name: &str, label: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"set": label}}});
    let begin = talk.get(&format!("{MAPS}?labelSelector=set"));
    for (name, label) in [("a", "x"), ("b", "x"), ("c", "x"), ("d", "y")] {
        talk.post(MAPS, &map(name, label));
    }
    let first = talk.get(&format!("{MAPS}?limit=2&labelSelector=set%3Dx"));
    let token = first["metadata"]["continue"].as_str().unwrap_or_default();
    talk.get(&format!("{MAPS}?limit=2&labelSelector=set%3Dx&continue={token}"));
    talk.get(&format!("{MAPS}?fieldSelector=metadata.name%3Db"));
    talk.get(&format!("{MAPS}?labelSelector=set+in+%28x%2Cy%29%2Cset%21%3Dx"));
    talk.merge(&format!("{MAPS}/a"), &json!({"data": {"k": "v"}}));
    talk.merge(&format!("{MAPS}/b"), &json!({"metadata": {"labels": {"set": "y"}}}));
    talk.merge(&format!("{MAPS}/d"), &json!({"metadata": {"labels": {"set": "x"}}}));
    talk.delete(&format!("{MAPS}/c"), &json!({}));
    let since = version(&begin).as_str().unwrap();
    talk.watch(&format!(
        "{MAPS}?watch=true&timeoutSeconds=1&resourceVersion={since}&labelSelector=set%3Dx"
    ));
    talk.watch(&format!("{MAPS}?watch=true&timeoutSeconds=1&labelSelector=set%3Dx"));
}

fn pods(talk: &mut Talk<'_>) {
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
    talk.party
        .ask("POST", "/api/v1/namespaces/default/serviceaccounts", &account, JSON);
    let pod = |name: &str, node: Option<&str>| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "web"}},
            "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}})
    };
    let running = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    for name in ["one", "two"] {
        talk.post(PODS, &pod(name, Some("n")));
        talk.merge(&format!("{PODS}/{name}/status"), &running);
    }
    talk.post(PODS, &pod("waiting", None));
    let budget = |name: &str| {
        json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}})
    };
    talk.post(BUDGETS, &budget("pdb"));
    let evict = |name: &str, uid: Option<&str>| {
        json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "default"},
            "deleteOptions": {"preconditions": {"uid": uid}}})
    };
    let (one, two) = (&format!("{PODS}/one/eviction"), &format!("{PODS}/two/eviction"));
    talk.post(one, &evict("one", None));
    let status = json!({"status": {"observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 2,
        "desiredHealthy": 1, "expectedPods": 2}});
    talk.merge(&format!("{BUDGETS}/pdb/status"), &status);
    talk.post(one, &evict("one", Some("00000000-0000-4000-8000-000000000000")));
    talk.merge(&format!("{BUDGETS}/pdb/status"), &status);
    talk.post(one, &evict("one", None));
    talk.get(&format!("{PODS}/one"));
    talk.post(two, &evict("two", None));
    talk.get(&format!("{BUDGETS}/pdb"));
    talk.post(BUDGETS, &budget("second"));
    talk.post(two, &evict("two", None));
    talk.post(&format!("{PODS}/waiting/eviction"), &evict("waiting", None));
    talk.get(&format!("{PODS}/waiting"));
    talk.delete(&format!("{PODS}/two"), &json!({"gracePeriodSeconds": 7}));
    talk.delete(&format!("{PODS}/two"), &json!({"gracePeriodSeconds": 0}));
    talk.post(PODS, &pod("bound", None));
    let binding = |node: &str| {
        json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "bound"},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node}})
    };
    talk.post(&format!("{PODS}/bound/binding"), &binding("n"));
    talk.post(&format!("{PODS}/bound/binding"), &binding("m"));
    talk.get(&format!("{PODS}/bound"));
}

fn converse(party: &dyn Party) -> Vec<(String, u16, Value)> {
    let mut talk = Talk {
        party,
        said: Vec::new(),
    };
    nodes(&mut talk);
    custom_kinds(&mut talk);
    lists_and_watches(&mut talk);
    pods(&mut talk);
    talk.said
}

#[test]
fn the_simulator_answers_as_a_real_api_server_does() {
    let cluster = Cluster::builder().api_server_only().start().unwrap();
    cluster.client().install_crd(CRD).unwrap();
    let real = converse(&Real(cluster));
    let simulated = converse(&Simulated::start());
    assert_eq!(real.len(), simulated.len());
    let differs = |(real, simulated): &(&(String, u16, Value), &(String, u16, Value))| {
        (real.1, &real.2) != (simulated.1, &simulated.2)
    };
    let different: Vec<String> = real
        .iter()
        .zip(&simulated)
        .filter(differs)
        .map(|(real, simulated)| {
            format!(
                "{}\n  real      {} {}\n  simulated {} {}",
                real.0, real.1, real.2, simulated.1, simulated.2
            )
        })
        .collect();
    assert!(
        different.is_empty(),
        "{} of {} differ:\n{}",
        different.len(),
        real.len(),
        different.join("\n")
    );
}
