//! The cases: nodes, pods that are there, one pod to place, and where it must go by the documentation of Kubernetes.

use serde_json::{Map, Value, json};

/// The name of the pod that is scheduled.
pub(crate) const PROBE: &str = "probe";

/// Where the pod must go.
#[derive(Clone, Copy)]
pub(crate) enum Expect {
    /// Nowhere.
    Pending,
    /// The one node that passes the filters.
    Only(&'static str),
    /// The node that scores highest of several.
    Best(&'static str),
}
use Expect::{Best, Only, Pending};

/// One case. Names of nodes and topology keys are the case's own: `a` becomes `<case>-a`, `$zone` becomes `<case>/zone`.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) nodes: Vec<(&'static str, Value)>,
    pods: Vec<(&'static str, Value)>,
    probe: Value,
    pub(crate) expect: Expect,
}

impl Case {
    pub(crate) fn namespace(&self) -> String {
        self.name.to_owned()
    }

    /// The case's namespace, and a second one with the label `grade: gold`.
    pub(crate) fn namespaces(&self) -> [(String, Value); 2] {
        let other = format!("{}-other", self.name);
        [(self.namespace(), json!({})), (other, json!({ "grade": "gold" }))]
    }

    pub(crate) fn node_name(&self, node: &str) -> String {
        format!("{}-{node}", self.name)
    }

    pub(crate) fn nodes(&self) -> Vec<Value> {
        let node = |(name, extra): &(&str, Value)| {
            let name = self.node_name(name);
            let own = |key: &str, value: &str| (key.to_owned(), json!(value));
            let mut labels: Map<String, Value> = [
                own("case", self.name),
                own("kwok-partition", "a"),
                own("kubernetes.io/hostname", &name),
            ]
            .into_iter()
            .collect();
            labels.extend(
                self.localized(&extra["labels"])
                    .as_object()
                    .cloned()
                    .unwrap_or_default(),
            );
            let mut allocatable = json!({ "cpu": "4", "memory": "8Gi", "pods": "10" });
            for (resource, amount) in extra["allocatable"].as_object().into_iter().flatten() {
                allocatable[resource] = amount.clone();
            }
            json!({
                "apiVersion": "v1", "kind": "Node", "metadata": { "name": name, "labels": labels },
                "spec": { "taints": extra["taints"], "unschedulable": extra["unschedulable"] },
                "status": { "allocatable": allocatable, "capacity": allocatable },
            })
        };
        self.nodes.iter().map(node).collect()
    }

    /// The pods that run already, each with its namespace.
    pub(crate) fn pods(&self) -> Vec<(String, Value)> {
        let pod = |(at, (node, extra)): (usize, &(&str, Value))| {
            let namespace = extra["namespace"]
                .as_str()
                .map_or(self.namespace(), |_| format!("{}-other", self.name));
            let mut pod = self.pod(&format!("there-{at}"), extra);
            pod["spec"]["nodeName"] = json!(self.node_name(node));
            (namespace, pod)
        };
        self.pods.iter().enumerate().map(pod).collect()
    }

    pub(crate) fn probe(&self) -> Value {
        let mut pod = self.pod(PROBE, &self.probe);
        if pod["spec"]["nodeSelector"].is_null() {
            pod["spec"]["nodeSelector"] = json!({});
        }
        pod["spec"]["nodeSelector"]["case"] = json!(self.name);
        pod
    }

    fn pod(&self, name: &str, extra: &Value) -> Value {
        let mut spec = self.localized(&extra["spec"]);
        if spec.is_null() {
            spec = json!({});
        }
        let requests = if extra["requests"].is_null() {
            json!({ "cpu": "1", "memory": "1Gi" })
        } else {
            extra["requests"].clone()
        };
        let container = json!({
            "name": "main", "image": "none", "resources": { "requests": requests, "limits": extended(&requests) },
            "ports": extra["ports"],
        });
        spec["containers"] = json!([container]);
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": name, "labels": extra["labels"] },
            "spec": spec,
        })
    }

    /// Keys that begin with a dollar belong to this case alone.
    fn localized(&self, value: &Value) -> Value {
        let text = value.to_string();
        let text = text
            .replace("\"$", &format!("\"{}/", self.name))
            .replace("%ns", self.name);
        serde_json::from_str(&text.replace("%node", &format!("{}-", self.name))).unwrap()
    }
}

/// Extended resources must be limited to what is requested.
fn extended(requests: &Value) -> Value {
    let all = requests.as_object().into_iter().flatten();
    let extended = all.filter(|(name, _)| name.contains('/'));
    Value::Object(extended.map(|(name, amount)| (name.clone(), amount.clone())).collect())
}

fn case(
    name: &'static str,
    nodes: Vec<(&'static str, Value)>,
    pods: Vec<(&'static str, Value)>,
    probe: Value,
    expect: Expect,
) -> Case {
    Case {
        name,
        nodes,
        pods,
        probe,
        expect,
    }
}

fn plain(name: &'static str) -> (&'static str, Value) {
    (name, json!({}))
}

fn zone(name: &'static str, zone: &str) -> (&'static str, Value) {
    (name, json!({ "labels": { "$zone": zone } }))
}

fn tainted(name: &'static str, effect: &str) -> (&'static str, Value) {
    (
        name,
        json!({ "taints": [{ "key": "team", "value": "red", "effect": effect }] }),
    )
}

fn web() -> Value {
    json!({ "labels": { "app": "web" } })
}

fn term(key: &str) -> Value {
    json!({ "labelSelector": { "matchLabels": { "app": "web" } }, "topologyKey": key })
}

fn near(labels: &Value, term: &Value) -> Value {
    json!({ "labels": labels, "spec": { "affinity": { "podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [term] } } } })
}

fn away(labels: &Value, term: &Value) -> Value {
    json!({ "labels": labels, "spec": { "affinity": { "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [term] } } } })
}

fn preferred(kind: &str, term: &Value) -> Value {
    json!({ "spec": { "affinity": { kind: { "preferredDuringSchedulingIgnoredDuringExecution": [
        { "weight": 100, "podAffinityTerm": term }] } } } })
}

/// A web pod with a spread constraint; what is given replaces what is usual.
fn spread(changes: Value) -> Value {
    let mut constraint = json!({
        "maxSkew": 1, "topologyKey": "$zone", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": { "matchLabels": { "app": "web" } },
    });
    for (key, value) in changes.as_object().unwrap() {
        constraint[key] = value.clone();
    }
    json!({ "labels": { "app": "web" }, "spec": { "topologySpreadConstraints": [constraint] } })
}

fn node_affinity(operator: &str, values: Value) -> Value {
    let expression = json!({ "key": "$size", "operator": operator, "values": values });
    json!({ "spec": { "affinity": { "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{ "matchExpressions": [expression] }] } } } } })
}

fn sized(name: &'static str, size: &str) -> (&'static str, Value) {
    (name, json!({ "labels": { "$size": size } }))
}

fn port(ip: &str, protocol: &str) -> Value {
    json!({ "ports": [{ "containerPort": 80, "hostPort": 8080, "hostIP": ip, "protocol": protocol }] })
}

fn requests(cpu: &str, memory: &str) -> Value {
    json!({ "requests": { "cpu": cpu, "memory": memory } })
}

/// All cases.
pub(crate) fn all() -> Vec<Case> {
    [on_nodes(), on_room(), on_neighbours(), on_spread(), on_scores()]
        .into_iter()
        .flatten()
        .collect()
}

fn on_nodes() -> Vec<Case> {
    let tolerating = |toleration: Value| json!({ "spec": { "tolerations": [toleration] } });
    let fields = |name: &str| {
        json!({ "spec": { "affinity": { "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [{ "matchFields": [
            { "key": "metadata.name", "operator": "In", "values": [name] }] }] } } } } })
    };
    let cordoned = || ("a", json!({ "unschedulable": true }));
    vec![
        case("cordoned", vec![cordoned()], vec![], json!({}), Pending),
        case(
            "cordoned-tolerated",
            vec![cordoned()],
            vec![],
            tolerating(json!({ "key": "node.kubernetes.io/unschedulable", "operator": "Exists" })),
            Only("a"),
        ),
        case(
            "no-schedule",
            vec![tainted("a", "NoSchedule"), plain("b")],
            vec![],
            json!({}),
            Only("b"),
        ),
        case(
            "no-execute",
            vec![tainted("a", "NoExecute"), plain("b")],
            vec![],
            json!({}),
            Only("b"),
        ),
        case(
            "taint-tolerated",
            vec![tainted("a", "NoSchedule")],
            vec![],
            tolerating(json!({ "key": "team", "operator": "Equal", "value": "red" })),
            Only("a"),
        ),
        case(
            "taint-other-value",
            vec![tainted("a", "NoSchedule")],
            vec![],
            tolerating(json!({ "key": "team", "operator": "Equal", "value": "blue" })),
            Pending,
        ),
        case(
            "taint-other-effect",
            vec![tainted("a", "NoSchedule")],
            vec![],
            tolerating(json!({ "key": "team", "operator": "Exists", "effect": "NoExecute" })),
            Pending,
        ),
        case(
            "tolerates-all",
            vec![tainted("a", "NoSchedule")],
            vec![],
            tolerating(json!({ "operator": "Exists" })),
            Only("a"),
        ),
        case(
            "affinity-in",
            vec![sized("a", "1"), sized("b", "2")],
            vec![],
            node_affinity("In", json!(["2", "3"])),
            Only("b"),
        ),
        case(
            "affinity-not-in",
            vec![sized("a", "1"), plain("b")],
            vec![],
            node_affinity("NotIn", json!(["1"])),
            Only("b"),
        ),
        case(
            "affinity-gt",
            vec![sized("a", "9"), sized("b", "10")],
            vec![],
            node_affinity("Gt", json!(["9"])),
            Only("b"),
        ),
        case(
            "affinity-lt",
            vec![sized("a", "9"), sized("b", "x")],
            vec![],
            node_affinity("Lt", json!(["10"])),
            Only("a"),
        ),
        case(
            "affinity-absent",
            vec![sized("a", "1"), plain("b")],
            vec![],
            node_affinity("DoesNotExist", json!([])),
            Only("b"),
        ),
        case(
            "match-fields",
            vec![plain("a"), plain("b")],
            vec![],
            fields("%nodeb"),
            Only("b"),
        ),
        case(
            "match-fields-nobody",
            vec![plain("a")],
            vec![],
            fields("nobody"),
            Pending,
        ),
    ]
}

fn on_room() -> Vec<Case> {
    let gpu = || ("a", json!({ "allocatable": { "example.com/gpu": "1" } }));
    let wants_gpu = || json!({ "requests": { "cpu": "1", "memory": "1Gi", "example.com/gpu": "1" } });
    vec![
        case(
            "cpu-fits-exactly",
            vec![plain("a")],
            vec![("a", requests("3", "1Gi"))],
            requests("1", "1Gi"),
            Only("a"),
        ),
        case(
            "cpu-short",
            vec![plain("a")],
            vec![("a", requests("3", "1Gi"))],
            requests("1001m", "1Gi"),
            Pending,
        ),
        case(
            "memory-short",
            vec![plain("a")],
            vec![("a", requests("1", "7Gi"))],
            requests("1", "1025Mi"),
            Pending,
        ),
        case(
            "pods-short",
            vec![("a", json!({ "allocatable": { "pods": "1" } }))],
            vec![("a", requests("1m", "1Mi"))],
            requests("1m", "1Mi"),
            Pending,
        ),
        case(
            "overdrawn-elsewhere",
            vec![plain("a")],
            vec![("a", requests("5", "1Gi"))],
            json!({ "requests": { "memory": "1Gi" } }),
            Only("a"),
        ),
        case("gpu", vec![gpu(), plain("b")], vec![], wants_gpu(), Only("a")),
        case(
            "gpu-taken",
            vec![gpu(), plain("b")],
            vec![("a", wants_gpu())],
            wants_gpu(),
            Pending,
        ),
        case(
            "port-taken",
            vec![plain("a"), plain("b")],
            vec![("a", port("", "TCP"))],
            port("127.0.0.1", "TCP"),
            Only("b"),
        ),
        case(
            "port-other-address",
            vec![plain("a")],
            vec![("a", port("127.0.0.2", "TCP"))],
            port("127.0.0.1", "TCP"),
            Only("a"),
        ),
        case(
            "port-other-protocol",
            vec![plain("a")],
            vec![("a", port("", "UDP"))],
            port("", "TCP"),
            Only("a"),
        ),
    ]
}

fn on_neighbours() -> Vec<Case> {
    let (none, app) = (json!({}), json!({ "app": "web" }));
    let in_namespaces = |extra: Value| {
        let mut term = term("$zone");
        for (key, value) in extra.as_object().unwrap() {
            term[key] = value.clone();
        }
        near(&json!({}), &term)
    };
    let elsewhere = || json!({ "labels": { "app": "web" }, "namespace": "other" });
    let zones = || vec![zone("a", "1"), zone("b", "2")];
    vec![
        case(
            "affinity-near",
            zones(),
            vec![("b", web())],
            near(&none, &term("$zone")),
            Only("b"),
        ),
        case(
            "affinity-first-of-its-kind",
            vec![zone("a", "1")],
            vec![],
            near(&app, &term("$zone")),
            Only("a"),
        ),
        case(
            "affinity-no-target",
            vec![zone("a", "1")],
            vec![],
            near(&none, &term("$zone")),
            Pending,
        ),
        case(
            "affinity-not-first",
            zones(),
            vec![
                ("a", json!({ "labels": { "app": "web" } })),
                ("a", requests("3", "1Gi")),
            ],
            near(&app, &term("$zone")),
            Pending,
        ),
        case(
            "affinity-no-label",
            vec![plain("a")],
            vec![("a", web())],
            near(&app, &term("$zone")),
            Pending,
        ),
        case(
            "affinity-own-namespace",
            zones(),
            vec![("b", elsewhere())],
            near(&none, &term("$zone")),
            Pending,
        ),
        case(
            "affinity-namespaces",
            zones(),
            vec![("b", elsewhere())],
            in_namespaces(json!({ "namespaces": ["%ns-other"] })),
            Only("b"),
        ),
        case(
            "affinity-ns-selector",
            zones(),
            vec![("b", elsewhere())],
            in_namespaces(json!({ "namespaceSelector": { "matchLabels": { "grade": "gold" } } })),
            Only("b"),
        ),
        case(
            "anti-affinity",
            zones(),
            vec![("b", web())],
            away(&none, &term("$zone")),
            Only("a"),
        ),
        case(
            "anti-affinity-of-others",
            zones(),
            vec![("b", away(&none, &term("$zone")))],
            web(),
            Only("a"),
        ),
        case(
            "anti-affinity-host",
            vec![plain("a"), plain("b")],
            vec![("a", web())],
            away(&app, &term("kubernetes.io/hostname")),
            Only("b"),
        ),
        case(
            "anti-affinity-no-label",
            vec![zone("a", "1"), plain("b")],
            vec![("a", web())],
            away(&none, &term("$zone")),
            Only("b"),
        ),
    ]
}

fn on_spread() -> Vec<Case> {
    let zones = || vec![zone("a", "1"), zone("b", "2")];
    let with_tainted = || {
        let tainted = json!({ "labels": { "$zone": "2" }, "taints": [{ "key": "team", "value": "red", "effect": "NoSchedule" }] });
        vec![zone("a", "1"), ("b", tainted)]
    };
    let narrow = |policy: &str| {
        let mut pod = spread(json!({ "nodeAffinityPolicy": policy }));
        pod["spec"]["nodeSelector"] = json!({ "$zone": "1" });
        pod
    };
    let narrow_default = {
        let mut pod = spread(json!({}));
        pod["spec"]["nodeSelector"] = json!({ "$zone": "1" });
        pod
    };
    vec![
        case(
            "spread-evens",
            zones(),
            vec![("a", web())],
            spread(json!({})),
            Only("b"),
        ),
        case(
            "spread-max-skew",
            vec![zone("a", "1"), zone("b", "2")],
            vec![("a", web()), ("b", requests("4", "1Gi"))],
            spread(json!({ "maxSkew": 2 })),
            Only("a"),
        ),
        case("spread-no-label", vec![plain("a")], vec![], spread(json!({})), Pending),
        case(
            "spread-min-domains",
            zones(),
            vec![("a", web()), ("b", web())],
            spread(json!({ "minDomains": 3 })),
            Pending,
        ),
        case(
            "spread-min-domains-met",
            zones(),
            vec![("a", web())],
            spread(json!({ "minDomains": 2 })),
            Only("b"),
        ),
        case(
            "spread-nil-selector",
            vec![
                zone("a", "1"),
                ("b", json!({ "labels": { "$zone": "2" }, "unschedulable": true })),
            ],
            vec![("a", web()), ("a", web())],
            spread(json!({ "labelSelector": null })),
            Only("a"),
        ),
        case(
            "spread-empty-selector",
            vec![
                zone("a", "1"),
                ("b", json!({ "labels": { "$zone": "2" }, "unschedulable": true })),
            ],
            vec![("a", web()), ("a", web())],
            spread(json!({ "labelSelector": {} })),
            Only("a"),
        ),
        case(
            "spread-honors-affinity",
            zones(),
            vec![("a", web())],
            narrow_default,
            Only("a"),
        ),
        case(
            "spread-ignores-affinity",
            zones(),
            vec![("a", web())],
            narrow("Ignore"),
            Pending,
        ),
        case(
            "spread-ignores-taints",
            with_tainted(),
            vec![("a", web())],
            spread(json!({})),
            Pending,
        ),
        case(
            "spread-honors-taints",
            with_tainted(),
            vec![("a", web())],
            spread(json!({ "nodeTaintsPolicy": "Honor" })),
            Only("a"),
        ),
        case(
            "spread-other-namespace",
            zones(),
            vec![
                ("a", json!({ "labels": { "app": "web" }, "namespace": "other" })),
                ("b", requests("4", "1Gi")),
            ],
            spread(json!({})),
            Only("a"),
        ),
        case(
            "spread-match-label-keys",
            zones(),
            vec![
                ("a", json!({ "labels": { "app": "web", "rev": "1" } })),
                ("b", requests("4", "1Gi")),
            ],
            {
                let mut pod = spread(json!({ "matchLabelKeys": ["rev"] }));
                pod["labels"]["rev"] = json!("2");
                pod
            },
            Only("a"),
        ),
        case(
            "spread-host",
            vec![plain("a"), plain("b")],
            vec![("a", web())],
            spread(json!({ "topologyKey": "kubernetes.io/hostname" })),
            Only("b"),
        ),
    ]
}

fn on_scores() -> Vec<Case> {
    let prefers = |key: &str| {
        json!({ "spec": { "affinity": { "nodeAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [{ "weight": 10, "preference": {
            "matchExpressions": [{ "key": key, "operator": "Exists" }] } }] } } } })
    };
    let zones = || vec![zone("a", "1"), zone("b", "2")];
    vec![
        case(
            "score-emptier",
            vec![plain("a"), plain("b")],
            vec![("a", requests("2", "4Gi"))],
            requests("1", "2Gi"),
            Best("b"),
        ),
        case(
            "score-larger",
            vec![
                plain("a"),
                ("b", json!({ "allocatable": { "cpu": "16", "memory": "32Gi" } })),
            ],
            vec![],
            requests("1", "2Gi"),
            Best("b"),
        ),
        // Both have half of everything left in sum; cpu-heavy work goes where memory is taken.
        case(
            "score-balanced",
            vec![plain("a"), plain("b")],
            vec![("a", requests("2", "1Mi")), ("b", requests("1m", "4Gi"))],
            requests("1", "1Mi"),
            Best("b"),
        ),
        case(
            "score-soft-taint",
            vec![tainted("a", "PreferNoSchedule"), plain("b")],
            vec![("b", requests("1", "2Gi"))],
            requests("1", "2Gi"),
            Best("b"),
        ),
        case(
            "score-node-affinity",
            vec![sized("a", "1"), plain("b")],
            vec![("a", requests("2", "4Gi"))],
            prefers("$size"),
            Best("a"),
        ),
        case(
            "score-pod-affinity",
            zones(),
            vec![("b", web())],
            preferred("podAffinity", &term("$zone")),
            Best("b"),
        ),
        case(
            "score-pod-anti-affinity",
            zones(),
            vec![("a", requests("2", "2Gi")), ("b", web())],
            preferred("podAntiAffinity", &term("$zone")),
            Best("a"),
        ),
        case(
            "score-affinity-of-others",
            zones(),
            vec![("b", near(&json!({ "app": "web" }), &term("$zone")))],
            web(),
            Best("b"),
        ),
        case(
            "score-spread",
            zones(),
            vec![("a", web()), ("b", requests("1", "2Gi"))],
            spread(json!({ "whenUnsatisfiable": "ScheduleAnyway" })),
            Best("b"),
        ),
    ]
}
