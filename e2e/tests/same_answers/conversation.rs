//! A random conversation with two servers: what is said depends on the seed alone, who answers fills in versions and
//! identities of their own.

use std::{collections::BTreeMap, thread};

use rig::{
    Client,
    client::media::{APPLY, JSON, MERGE, STRATEGIC},
};
use serde_json::{Value, json};

use super::compared;

const JSON_PATCH: &str = "application/json-patch+json";

/// How a conversation went.
pub(crate) struct Report {
    pub(crate) asked: usize,
    pub(crate) different: Vec<String>,
}

/// Holds the conversation of a seed.
pub(crate) fn hold(seed: u64, turns: usize, real: &Client, simulated: &Client) -> Report {
    let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1CE);
    let mut parties = [Party::new(real), Party::new(simulated)];
    let mut report = Report {
        asked: 0,
        different: Vec::new(),
    };
    let kind = &KINDS[dice.below(KINDS.len())];
    let other = &KINDS[dice.below(KINDS.len())];
    let mut begins = Vec::new();
    for party in &mut parties {
        begins.push([kind, other].map(|kind| party.version(kind)));
    }
    let mut history = Vec::new();
    for _ in 0..turns {
        let kind = if dice.below(3) == 0 { other } else { kind };
        let request = request(&mut dice, kind);
        let answers = parties.each_mut().map(|party| party.ask(&request));
        report.asked += 1;
        history.push(request.to_string());
        compare(&mut report, seed, &history, &answers);
    }
    let both = thread::scope(|scope| {
        let watching = [(0, kind), (1, other)].map(|(at, kind)| {
            let (parties, since) = (&parties, [&begins[0][at], &begins[1][at]]);
            scope.spawn(move || watch(parties, kind, since))
        });
        watching.map(|watching| watching.join().unwrap())
    });
    for (kind, lines) in [kind, other].into_iter().zip(both) {
        report.asked += 1;
        history.push(format!("WATCH {}", kind.collection));
        compare(&mut report, seed, &history, &lines);
    }
    for kind in [kind, other] {
        for name in NAMES {
            let path = format!("{}/{name}", kind.collection);
            let free = Request::new("PATCH", &path, MERGE, json!({"metadata": {"finalizers": null}}));
            let delete = Request::new("DELETE", &path, JSON, json!({"gracePeriodSeconds": 0}));
            for request in [free, delete] {
                let answers = parties.each_mut().map(|party| party.ask(&request));
                report.asked += 1;
                history.push(request.to_string());
                compare(&mut report, seed, &history, &answers);
            }
        }
    }
    report
}

fn compare(report: &mut Report, seed: u64, history: &[String], [real, simulated]: &[(u16, Value); 2]) {
    if real != simulated {
        let last = &history[history.len().saturating_sub(1)];
        let places = e2e::difference::places(&real.1, &simulated.1);
        report.different.push(format!(
            "seed {seed}, turn {}: {last}\n    real      {} {}\n    simulated {} {}\n    {}",
            history.len(),
            real.0,
            short(&real.1),
            simulated.0,
            short(&simulated.1),
            places.join("\n    ")
        ));
    }
}

fn short(value: &Value) -> String {
    if let Some(lines) = value["lines"].as_array() {
        let told = |line: &Value| {
            let (metadata, text) = (&line["object"]["metadata"], line["object"].to_string());
            let sum = text
                .bytes()
                .fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte)));
            format!(
                "{} {} {} {sum:x}",
                line["type"], metadata["name"], metadata["generation"]
            )
        };
        return lines.iter().map(told).collect::<Vec<_>>().join(", ");
    }
    value.to_string().chars().take(400).collect()
}

/// A random number generator that is the same everywhere.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((mixed ^ (mixed >> 31)) % limit as u64).unwrap()
    }

    fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

/// A kind that is talked about: where, what a good object is, and changes to it, some of which are not allowed.
struct Kind {
    collection: &'static str,
    api_version: &'static str,
    name: &'static str,
    base: &'static str,
    changes: &'static [&'static str],
    status: &'static [&'static str],
    has_scale: bool,
    is_built_in: bool,
}

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// Changes of every kind's metadata.
const METADATA: &[&str] = &[
    r#"{"metadata": {"labels": {"x": "1"}}}"#,
    r#"{"metadata": {"labels": {"x": "2", "y": "1"}}}"#,
    r#"{"metadata": {"labels": {"x": null}}}"#,
    r#"{"metadata": {"labels": {"bad key": "1"}}}"#,
    r#"{"metadata": {"labels": {"x": "not a value"}}}"#,
    r#"{"metadata": {"annotations": {"note": "n"}}}"#,
    r#"{"metadata": {"finalizers": ["example.com/hold"]}}"#,
    r#"{"metadata": {"finalizers": null}}"#,
    r#"{"metadata": {"resourceVersion": "$current"}}"#,
    r#"{"metadata": {"resourceVersion": "$stale", "labels": {"x": "3"}}}"#,
];

const KINDS: &[Kind] = &[
    Kind {
        collection: "/api/v1/namespaces/default/configmaps",
        api_version: "v1",
        name: "ConfigMap",
        base: r#"{"data": {"k": "v"}}"#,
        changes: &[
            r#"{"data": {"k": "w", "l": "1"}}"#,
            r#"{"data": null}"#,
            r#"{"data": {"k": 1}}"#,
            r#"{"data": "text"}"#,
            r#"{"unknown": 1}"#,
            r#"{"immutable": false}"#,
        ],
        status: &[],
        has_scale: false,
        is_built_in: true,
    },
    Kind {
        collection: "/api/v1/nodes",
        api_version: "v1",
        name: "Node",
        base: r#"{"spec": {"providerID": "x://1"}, "status": {"capacity": {"cpu": "2"}, "allocatable": {"cpu": "2"}}}"#,
        changes: &[
            r#"{"spec": {"unschedulable": true}}"#,
            r#"{"spec": {"unschedulable": null}}"#,
            r#"{"spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}}"#,
            r#"{"spec": {"taints": [{"key": "k", "effect": "Sometimes"}]}}"#,
            r#"{"spec": {"taints": null}}"#,
            r#"{"spec": {"providerID": "x://2"}}"#,
            r#"{"spec": {"unschedulable": "yes"}}"#,
        ],
        status: &[
            r#"{"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "R", "message": "m"}]}}"#,
            r#"{"status": {"conditions": [{"type": "DiskPressure", "status": "False", "reason": "R", "message": "m"}]}}"#,
            r#"{"status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]}}"#,
            r#"{"spec": {"unschedulable": true}, "status": {"phase": "Running"}}"#,
        ],
        has_scale: false,
        is_built_in: true,
    },
    Kind {
        collection: "/api/v1/namespaces/default/pods",
        api_version: "v1",
        name: "Pod",
        base: r#"{"spec": {"automountServiceAccountToken": false, "containers": [{"name": "c", "image": "i"}]}}"#,
        changes: &[
            r#"{"spec": {"containers": [{"name": "c", "image": "j"}]}}"#,
            r#"{"spec": {"containers": []}}"#,
            r#"{"spec": {"containers": [{"name": "c"}]}}"#,
            r#"{"spec": {"restartPolicy": "Sometimes"}}"#,
            r#"{"spec": {"terminationGracePeriodSeconds": "5"}}"#,
            r#"{"spec": {"nodeName": "n"}}"#,
            r#"{"spec": {"hostNetwork": true}}"#,
        ],
        status: &[
            r#"{"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}"#,
            r#"{"status": {"phase": "Failed"}}"#,
            r#"{"status": {"nominatedNodeName": "m"}}"#,
        ],
        has_scale: false,
        is_built_in: true,
    },
    Kind {
        collection: "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
        api_version: "policy/v1",
        name: "PodDisruptionBudget",
        base: r#"{"spec": {"minAvailable": 1, "selector": {"matchLabels": {"x": "1"}}}}"#,
        changes: &[
            r#"{"spec": {"minAvailable": "50%"}}"#,
            r#"{"spec": {"maxUnavailable": 1}}"#,
            r#"{"spec": {"minAvailable": null, "maxUnavailable": 1}}"#,
            r#"{"spec": {"selector": {"matchLabels": {"x": "2"}}}}"#,
        ],
        status: &[
            r#"{"status": {"observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2}}"#,
            r#"{"status": {"observedGeneration": 9, "disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}}"#,
        ],
        has_scale: false,
        is_built_in: true,
    },
    Kind {
        collection: "/apis/apps/v1/namespaces/default/deployments",
        api_version: "apps/v1",
        name: "Deployment",
        base: r#"{"spec": {"selector": {"matchLabels": {"app": "w"}}, "template": {"metadata": {"labels": {"app": "w"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]}}}}"#,
        changes: &[
            r#"{"spec": {"replicas": 3}}"#,
            r#"{"spec": {"replicas": -1}}"#,
            r#"{"spec": {"replicas": "3"}}"#,
            r#"{"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "j"}]}}}}"#,
            r#"{"spec": {"template": {"spec": {"containers": [{"name": "d", "image": "k"}]}}}}"#,
            r#"{"spec": {"template": {"metadata": {"labels": {"app": "z"}}}}}"#,
            r#"{"spec": {"selector": {"matchLabels": {"app": "z"}}}}"#,
            r#"{"spec": {"paused": true}}"#,
        ],
        status: &[r#"{"status": {"replicas": 2, "readyReplicas": 1}}"#],
        has_scale: true,
        is_built_in: true,
    },
    NODE_POOL,
    NODE_POOL,
    Kind {
        collection: "/apis/karpenter.sh/v1/nodeclaims",
        api_version: "karpenter.sh/v1",
        name: "NodeClaim",
        base: r#"{"spec": {"nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
            "requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}]}}"#,
        changes: &[
            r#"{"spec": {"expireAfter": "1h"}}"#,
            r#"{"spec": {"requirements": [{"key": "a", "operator": "Near"}]}}"#,
        ],
        status: &[
            r#"{"status": {"providerID": "x://1", "nodeName": "n"}}"#,
            r#"{"status": {"conditions": [{"type": "Launched", "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}"#,
            r#"{"status": {"conditions": [{"type": "Launched", "status": "True"}]}}"#,
        ],
        has_scale: false,
        is_built_in: false,
    },
];

const NODE_POOL: Kind = Kind {
    collection: "/apis/karpenter.sh/v1/nodepools",
    api_version: "karpenter.sh/v1",
    name: "NodePool",
    base: r#"{"spec": {"template": {"spec": {
        "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
        "requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}]}}}}"#,
    changes: &[
        r#"{"spec": {"weight": 5}}"#,
        r#"{"spec": {"weight": 101}}"#,
        r#"{"spec": {"weight": "5"}}"#,
        r#"{"spec": {"weight": 1.5}}"#,
        r#"{"spec": {"limits": {"cpu": "10", "memory": 5}}}"#,
        r#"{"spec": {"limits": {"cpu": "ten"}}}"#,
        r#"{"spec": {"disruption": {"budgets": [{"nodes": "5"}, {"schedule": "@daily", "nodes": "0"}]}}}"#,
        r#"{"spec": {"disruption": {"consolidationPolicy": "Never"}}}"#,
        r#"{"spec": {"disruption": {"consolidateAfter": "1m", "budgets": []}}}"#,
        r#"{"spec": {"template": {"spec": {"requirements": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["a"]}]}}}}"#,
        r#"{"spec": {"template": {"spec": {"requirements": [{"key": "k", "operator": "Gt", "values": ["1", "2"]}]}}}}"#,
        r#"{"spec": {"template": {"spec": {"nodeClassRef": {"kind": "Other"}}}}}"#,
        r#"{"spec": {"template": {"metadata": {"labels": {"team": "a"}}}}}"#,
        r#"{"spec": {"template": {"spec": {"taints": [{"key": "t", "effect": "NoSchedule"}]}}}}"#,
        r#"{"spec": {"unknown": 1}}"#,
        r#"{"spec": {"template": null}}"#,
        r#"{"spec": {"replicas": 2}}"#,
    ],
    status: &[
        r#"{"status": {"resources": {"cpu": "4"}}}"#,
        r#"{"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}"#,
        r#"{"status": {"resources": "none"}}"#,
    ],
    has_scale: true,
    is_built_in: false,
};

impl Kind {
    fn object(&self, name: &str) -> Value {
        let mut object: Value = serde_json::from_str(self.base).unwrap();
        object["apiVersion"] = json!(self.api_version);
        object["kind"] = json!(self.name);
        object["metadata"] = json!({"name": name});
        object
    }

    fn change(&self, dice: &mut Dice) -> Value {
        let change = match dice.below(3) {
            0 => dice.pick(METADATA),
            _ => dice.pick(self.changes),
        };
        serde_json::from_str(change).unwrap()
    }
}

/// Something to be asked; `$current`, `$stale` and `$uid` in it stand for what the party last said of the object.
struct Request {
    method: &'static str,
    path: String,
    content: &'static str,
    body: Value,
    /// The body is a change of what the party last said.
    is_change: bool,
}

impl Request {
    fn new(method: &'static str, path: &str, content: &'static str, body: Value) -> Self {
        Self {
            method,
            path: path.to_owned(),
            content,
            body,
            is_change: false,
        }
    }
}

impl std::fmt::Display for Request {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let media = self.content.trim_start_matches("application/");
        write!(formatter, "{} {} {media} {}", self.method, self.path, self.body)
    }
}

fn request(dice: &mut Dice, kind: &Kind) -> Request {
    let name = *dice.pick(&NAMES);
    let item = format!("{}/{name}", kind.collection);
    let show = ["", "", "", "?dryRun=All", "?fieldValidation=Strict"][dice.below(5)];
    match dice.below(20) {
        0..=4 => create(dice, kind, name, show),
        5 | 6 => {
            let change = kind.change(dice);
            let mut request = Request::new("PUT", &format!("{item}{show}"), JSON, change);
            request.is_change = true;
            request
        }
        7 | 8 => Request::new("PATCH", &format!("{item}{show}"), MERGE, kind.change(dice)),
        9 => {
            let media = if kind.is_built_in || dice.below(4) == 0 {
                STRATEGIC
            } else {
                MERGE
            };
            Request::new("PATCH", &format!("{item}{show}"), media, kind.change(dice))
        }
        10 => json_patch(dice, &item),
        11 | 12 => apply(dice, kind, name),
        13 => delete(dice, kind, &item),
        14 => list(dice, kind),
        15 => Request::new("GET", &item, JSON, Value::Null),
        16 | 17 if !kind.status.is_empty() => {
            let status: &&str = dice.pick(kind.status);
            let body = serde_json::from_str(status).unwrap();
            let media = if kind.is_built_in && dice.below(2) == 0 {
                STRATEGIC
            } else {
                MERGE
            };
            Request::new("PATCH", &format!("{item}/status"), media, body)
        }
        18 if kind.has_scale => {
            let path = format!("{item}/scale");
            if dice.below(3) == 0 {
                return Request::new("GET", &path, JSON, Value::Null);
            }
            let replicas = *dice.pick(&[0, 2, 3, -1]);
            Request::new("PATCH", &path, MERGE, json!({"spec": {"replicas": replicas}}))
        }
        19 if kind.name == "Pod" => pod_part(dice, &item, name),
        _ => Request::new("GET", kind.collection, JSON, Value::Null),
    }
}

fn create(dice: &mut Dice, kind: &Kind, name: &str, show: &str) -> Request {
    let mut object = kind.object(name);
    match dice.below(8) {
        0 | 1 => merge(&mut object, &kind.change(dice)),
        2 => object["metadata"] = json!({}),
        3 => object["metadata"]["name"] = json!("Bad_Name"),
        4 => object["kind"] = json!("Other"),
        _ => {}
    }
    if object["metadata"]["resourceVersion"].is_string() {
        object["metadata"] = json!({"name": name});
    }
    Request::new("POST", &format!("{}{show}", kind.collection), JSON, object)
}

fn json_patch(dice: &mut Dice, item: &str) -> Request {
    let patches = [
        json!([{"op": "add", "path": "/metadata/labels", "value": {"p": "1"}}]),
        json!([{"op": "replace", "path": "/metadata/labels/p", "value": "2"}]),
        json!([{"op": "remove", "path": "/metadata/labels/p"}]),
        json!([{"op": "test", "path": "/metadata/name", "value": "a"}, {"op": "add", "path": "/metadata/labels", "value": {"q": "1"}}]),
        json!([{"op": "add", "path": "/metadata/annotations", "value": {"a": "b"}}, {"op": "copy", "from": "/metadata/annotations/a", "path": "/metadata/annotations/c"}]),
        json!([{"op": "move", "from": "/metadata/annotations/c", "path": "/metadata/annotations/d"}]),
    ];
    Request::new("PATCH", item, JSON_PATCH, dice.pick(&patches).clone())
}

fn apply(dice: &mut Dice, kind: &Kind, name: &str) -> Request {
    let mut object = kind.object(name);
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    let mut change = kind.change(dice);
    if change["metadata"]["resourceVersion"].is_string() {
        change = json!({});
    }
    if dice.below(4) > 0 {
        merge(&mut object, &change);
    }
    let manager = ["one", "two"][dice.below(2)];
    let force = ["", "", "&force=true"][dice.below(3)];
    let path = format!("{}/{name}?fieldManager={manager}{force}", kind.collection);
    Request::new("PATCH", &path, APPLY, object)
}

fn delete(dice: &mut Dice, kind: &Kind, item: &str) -> Request {
    match dice.below(8) {
        0 => Request::new(
            "DELETE",
            item,
            JSON,
            json!({"preconditions": {"resourceVersion": "$stale"}}),
        ),
        1 => Request::new("DELETE", item, JSON, json!({"preconditions": {"uid": "$uid"}})),
        2 => Request::new("DELETE", item, JSON, json!({"gracePeriodSeconds": 3})),
        3 => Request::new("DELETE", &format!("{item}?dryRun=All"), JSON, json!({})),
        4 => {
            let path = format!("{}?labelSelector=x%3D2", kind.collection);
            Request::new("DELETE", &path, JSON, json!({}))
        }
        _ => Request::new("DELETE", item, JSON, json!({})),
    }
}

fn list(dice: &mut Dice, kind: &Kind) -> Request {
    let queries = [
        "limit=2",
        "labelSelector=x",
        "labelSelector=x+in+%281%2C3%29",
        "labelSelector=x+notin+%281%29%2C%21y",
        "labelSelector=%21x",
        "fieldSelector=metadata.name%3Da",
        "fieldSelector=metadata.name%21%3Da",
        "fieldSelector=spec.nowhere%3Da",
        "resourceVersion=0",
        "resourceVersionMatch=Exact",
    ];
    Request::new(
        "GET",
        &format!("{}?{}", kind.collection, dice.pick(&queries)),
        JSON,
        Value::Null,
    )
}

fn pod_part(dice: &mut Dice, item: &str, name: &str) -> Request {
    if dice.below(2) == 0 {
        let body =
            json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "default"}});
        return Request::new("POST", &format!("{item}/eviction"), JSON, body);
    }
    let body = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "n"}});
    Request::new("POST", &format!("{item}/binding"), JSON, body)
}

fn merge(object: &mut Value, change: &Value) {
    match (object, change) {
        (Value::Object(fields), Value::Object(changes)) => {
            for (field, change) in changes {
                if change.is_null() {
                    fields.remove(field);
                } else {
                    merge(fields.entry(field.clone()).or_insert(Value::Null), change);
                }
            }
        }
        (object, change) => {
            *object = json!({});
            if change.is_object() {
                merge(object, change);
            } else {
                *object = change.clone();
            }
        }
    }
}

/// One of the two servers, and what it said of objects.
struct Party<'a> {
    client: &'a Client,
    seen: BTreeMap<String, Value>,
    stale: BTreeMap<String, Value>,
}

impl<'a> Party<'a> {
    fn new(client: &'a Client) -> Self {
        Self {
            client,
            seen: BTreeMap::new(),
            stale: BTreeMap::new(),
        }
    }

    fn version(&self, kind: &Kind) -> String {
        let list = self.client.request("GET", kind.collection, None, JSON).unwrap().json;
        list["metadata"]["resourceVersion"].as_str().unwrap().to_owned()
    }

    fn ask(&mut self, request: &Request) -> (u16, Value) {
        let item = request.path.split('?').next().unwrap();
        let item = item.trim_end_matches("/status").trim_end_matches("/scale").to_owned();
        let mut body = request.body.clone();
        if request.is_change {
            let mut whole = self.seen.get(&item).cloned().unwrap_or_else(|| json!({"metadata": {}}));
            merge(&mut whole, &body);
            body = whole;
        }
        self.fill(&item, &mut body);
        let body = Some(&body).filter(|body| !body.is_null());
        let answer = self
            .client
            .request(request.method, &request.path, body, request.content)
            .unwrap();
        let mut said = compared::object(&answer.json);
        let mut next = answer.json["metadata"]["continue"].clone();
        let mut pages = 0;
        while let Some(token) = next.as_str().filter(|token| !token.is_empty() && pages < 5) {
            let path = format!("{}&continue={token}", request.path);
            let page = self.client.request("GET", &path, None, JSON).unwrap();
            said[format!("page {pages}")] = compared::object(&page.json);
            next = page.json["metadata"]["continue"].clone();
            pages += 1;
        }
        let is_object = answer.json["metadata"]["uid"].is_string() && answer.json["kind"] != "Scale";
        if answer.ok() && is_object && !request.path.contains("dryRun") {
            let name = answer.json["metadata"]["name"].as_str().unwrap();
            let path = match item.rsplit_once('/') {
                Some((_, last)) if last == name => item,
                _ => format!("{item}/{name}"),
            };
            if let Some(before) = self.seen.insert(path.clone(), answer.json) {
                self.stale.insert(path, before);
            }
        }
        (answer.status, said)
    }

    fn fill(&self, item: &str, value: &mut Value) {
        let known = |of: &BTreeMap<String, Value>, field: &str| {
            let found = of.get(item).map(|object| object["metadata"][field].clone());
            found.unwrap_or_else(|| json!("1"))
        };
        match value {
            Value::String(text) if text == "$current" => *value = known(&self.seen, "resourceVersion"),
            Value::String(text) if text == "$stale" => *value = known(&self.stale, "resourceVersion"),
            Value::String(text) if text == "$uid" => *value = known(&self.seen, "uid"),
            Value::Object(fields) => fields.values_mut().for_each(|value| self.fill(item, value)),
            Value::Array(items) => items.iter_mut().for_each(|item_value| self.fill(item, item_value)),
            _ => {}
        }
    }
}

/// All that happened to a kind since a version, as both tell it.
fn watch(parties: &[Party<'_>; 2], kind: &Kind, since: [&String; 2]) -> [(u16, Value); 2] {
    thread::scope(|scope| {
        let watching = [0, 1].map(|at| {
            let path = format!(
                "{}?watch=true&timeoutSeconds=1&resourceVersion={}",
                kind.collection, since[at]
            );
            let client = parties[at].client.clone();
            scope.spawn(move || {
                let answer = client.request("GET", &path, None, JSON).unwrap();
                let text = match answer.json {
                    Value::String(text) => text,
                    one => one.to_string(),
                };
                let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
                let lines: Vec<Value> = lines.map(|line| compared::object(&line)).collect();
                (answer.status, json!({"lines": lines}))
            })
        });
        watching.map(|watching| watching.join().unwrap())
    })
}
