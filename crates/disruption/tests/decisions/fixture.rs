//! Small clusters as JSON: pools, machines and pods that are well unless a test says otherwise.

use std::{collections::BTreeMap, io::Cursor};

use disruption::{Command, Facts, Method, Options, Pass, Refusal, Round, ask, decide};
use jiff::Timestamp;
use model::{
    dump::{self, Mode, Source},
    snapshot::Snapshot,
};
use serde_json::{Value, json};

pub(crate) const NOW: &str = "2026-11-16T12:00:00Z";
pub(crate) const LONG_AGO: &str = "2026-11-16T10:00:00Z";
pub(crate) const ZONE: &str = "topology.kubernetes.io/zone";
pub(crate) const CAPACITY: &str = "karpenter.sh/capacity-type";
pub(crate) const TYPE: &str = "node.kubernetes.io/instance-type";

pub(crate) fn now() -> Timestamp {
    NOW.parse().unwrap()
}

/// A cluster to be.
#[derive(Clone)]
pub(crate) struct Cluster {
    pub(crate) objects: Vec<Value>,
    pub(crate) types: Vec<Value>,
    pub(crate) settings: Value,
    /// The types of pools that do not offer all.
    pub(crate) offers: BTreeMap<String, Vec<String>>,
    pub(crate) facts: Facts,
    pub(crate) options: Options,
}

/// A cluster with the pool `default` and types of 1, 2, 4 and 8 cores, a dollar a core on demand, 60 cents as spot.
pub(crate) fn cluster() -> Cluster {
    let types = [1, 2, 4, 8].map(|cores| instance_type(&format!("t{cores}"), cores, 1.0));
    Cluster {
        objects: vec![pool("default", json!({}))],
        types: types.to_vec(),
        settings: json!({}),
        offers: BTreeMap::new(),
        facts: Facts::default(),
        options: Options::default(),
    }
}

pub(crate) fn instance_type(name: &str, cores: u32, dollars_a_core: f64) -> Value {
    let is = |key: &str, values: &[&str]| json!({ "key": key, "operator": "In", "values": values });
    let offering = |capacity: &str, zone: &str, share: f64| {
        let price = format!("{:.4}", f64::from(cores) * dollars_a_core * share);
        json!({ "price": price, "available": true, "requirements": [is(ZONE, &[zone]), is(CAPACITY, &[capacity])] })
    };
    json!({
        "name": name,
        "requirements": [
            is(TYPE, &[name]), is("kubernetes.io/arch", &["amd64"]), is("kubernetes.io/os", &["linux"]),
            is(ZONE, &["a", "b"]), is(CAPACITY, &["on-demand", "spot"]),
        ],
        "capacity": { "cpu": cores.to_string(), "memory": "64Gi", "pods": "110" },
        "offerings": [
            offering("on-demand", "a", 1.0), offering("on-demand", "b", 1.0),
            offering("spot", "a", 0.6), offering("spot", "b", 0.6),
        ],
    })
}

/// A pool of nodes on demand that consolidates at once and has no budget in the way.
pub(crate) fn pool(name: &str, over: Value) -> Value {
    let mut pool = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": { "name": name },
        "spec": {
            "template": { "spec": {
                "requirements": [{ "key": CAPACITY, "operator": "In", "values": ["on-demand"] }],
                "nodeClassRef": { "group": "cloud", "kind": "CloudClass", "name": "default" },
                "expireAfter": "Never",
            } },
            "disruption": {
                "consolidateAfter": "0s", "consolidationPolicy": "WhenEmptyOrUnderutilized",
                "budgets": [{ "nodes": "100%" }],
            },
        },
        "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
    });
    merge(&mut pool, over);
    pool
}

impl Cluster {
    pub(crate) fn with(mut self, object: Value) -> Self {
        self.objects.push(object);
        self
    }

    /// The pool of a name with these changes.
    pub(crate) fn pool(mut self, name: &str, over: Value) -> Self {
        let known = self
            .objects
            .iter_mut()
            .find(|object| object["kind"] == "NodePool" && object["metadata"]["name"] == name);
        match known {
            Some(known) => merge(known, over),
            None => self.objects.push(pool(name, over)),
        }
        self
    }

    /// A machine of the pool `default` on demand in zone a, up and quiet for long.
    pub(crate) fn node(self, name: &str, it: &str) -> Self {
        self.machine(name, it, json!({}), json!({}))
    }

    /// A machine with changes to its node and its claim.
    pub(crate) fn machine(mut self, name: &str, it: &str, node_over: Value, claim_over: Value) -> Self {
        let known = self.types.iter().find(|known| known["name"] == it);
        let capacity = known.map_or_else(
            || json!({ "cpu": "1", "memory": "64Gi", "pods": "110" }),
            |it| it["capacity"].clone(),
        );
        let labels = json!({
            "karpenter.sh/nodepool": "default", TYPE: it, CAPACITY: "on-demand", ZONE: "a",
            "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
        });
        let condition =
            |kind: &str| json!({ "type": kind, "status": "True", "reason": kind, "lastTransitionTime": LONG_AGO });
        let mut node = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": { "name": name, "labels": labels },
            "spec": { "providerID": format!("id-{name}") },
            "status": {
                "capacity": capacity, "allocatable": capacity,
                "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": LONG_AGO }],
            },
        });
        for label in ["karpenter.sh/registered", "karpenter.sh/initialized"] {
            node["metadata"]["labels"][label] = "true".into();
        }
        node["metadata"]["labels"]["kubernetes.io/hostname"] = name.into();
        let mut claim = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": { "name": format!("claim-{name}"), "labels": labels, "creationTimestamp": LONG_AGO },
            "spec": { "requirements": [] },
            "status": {
                "providerID": format!("id-{name}"), "nodeName": name, "capacity": capacity, "allocatable": capacity,
                "conditions": [condition("Launched"), condition("Registered"), condition("Initialized"), condition("Consolidatable")],
            },
        });
        merge(&mut node, node_over);
        merge(&mut claim, claim_over);
        self.objects.extend([node, claim]);
        self
    }

    /// A running pod.
    pub(crate) fn pod(self, name: &str, node: &str, cpu: &str) -> Self {
        self.pod_with(name, node, cpu, json!({}))
    }

    pub(crate) fn pod_with(self, name: &str, node: &str, cpu: &str, over: Value) -> Self {
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": name, "namespace": "ns", "uid": name, "labels": { "app": name } },
            "spec": { "nodeName": node, "containers": [{ "name": "c", "resources": { "requests": { "cpu": cpu } } }] },
            "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] },
        });
        merge(&mut pod, over);
        self.with(pod)
    }

    /// A pod that kube-scheduler found no place for.
    pub(crate) fn pending(self, name: &str, cpu: &str) -> Self {
        let waiting = json!({
            "spec": { "nodeName": null },
            "status": { "phase": "Pending", "conditions": [{ "type": "PodScheduled", "status": "False", "reason": "Unschedulable" }] },
        });
        self.pod_with(name, "", cpu, waiting)
    }

    pub(crate) fn gate(mut self, name: &str) -> Self {
        self.settings["featureGates"][name] = true.into();
        self
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        read(json!({
            "apiVersion": "dovetail.dev/v1alpha1", "kind": "Snapshot",
            "metadata": { "name": "test", "takenAt": NOW },
            "settings": self.settings, "objects": self.objects, "instanceTypes": self.types,
            "nodePoolInstanceTypes": self.offers,
        }))
    }

    pub(crate) fn decide(&self) -> Round {
        decide(&self.snapshot(), &self.facts, &self.options, now())
    }

    pub(crate) fn ask(&self, method: Method) -> Pass {
        ask(method, &self.snapshot(), &self.facts, &self.options, now())
    }
}

pub(crate) fn read(file: Value) -> Snapshot {
    let source = Source::Stream("test".to_owned(), Box::new(Cursor::new(file.to_string().into_bytes())));
    let options = dump::Options {
        mode: Mode::Strict,
        taken_at: Timestamp::UNIX_EPOCH,
    };
    dump::read([source], options).unwrap().0
}

/// Puts one JSON value over another, object by object.
pub(crate) fn merge(base: &mut Value, over: Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                if value.is_null() {
                    base.remove(&key);
                } else {
                    merge(base.entry(key).or_insert(Value::Null), value);
                }
            }
        }
        (base, over) => *base = over,
    }
}

/// What is said of a node, as events.
pub(crate) fn said(refusals: &[Refusal], node: &str) -> Vec<String> {
    let of_node = refusals.iter().filter(|refusal| refusal.node.as_str() == node);
    of_node
        .filter_map(Refusal::event)
        .map(|event| format!("{}: {}", event.reason, event.message))
        .collect()
}

/// What is to be done, in upstream's words.
pub(crate) fn texts(commands: &[Command]) -> Vec<String> {
    commands.iter().map(Command::text).collect()
}

/// The types a command's only replacement may become, in order.
pub(crate) fn types_of(command: &Command) -> Vec<String> {
    let claim = command
        .replacements
        .first()
        .and_then(|replacement| replacement.planned())
        .unwrap();
    claim.options.iter().map(ToString::to_string).collect()
}
