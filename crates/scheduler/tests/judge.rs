//! What does the judge say of plans that are right but for one thing?

mod cloud;

use cloud::{CAPACITY_TYPE, HOSTNAME, ZONE, claim, node, on_node, plan, pod, running, snapshot, snapshot_with};
use scheduler::{Plugin, Reason, Rule, Verdict, examine, judge};
use serde_json::{Value, json};

/// Rules broken and reasons to doubt, without repetition.
fn summary(verdict: &Verdict) -> (Vec<Rule>, Vec<Reason>) {
    let mut rules: Vec<_> = verdict.violations.iter().map(|it| it.rule).collect();
    let mut reasons: Vec<_> = verdict.doubts.iter().map(|it| it.reason).collect();
    rules.sort();
    rules.dedup();
    reasons.sort();
    reasons.dedup();
    (rules, reasons)
}

fn web(extra: Value) -> Value {
    let mut extra = extra;
    extra["labels"] = json!({ "app": "web" });
    extra
}

fn anti_affinity(key: &str) -> Value {
    json!({ "affinity": { "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [
        { "labelSelector": { "matchLabels": { "app": "web" } }, "topologyKey": key }] } } })
}

fn affinity(key: &str) -> Value {
    json!({ "affinity": { "podAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [
        { "labelSelector": { "matchLabels": { "app": "web" } }, "topologyKey": key }] } } })
}

fn spread(key: &str) -> Value {
    json!({ "topologySpreadConstraints": [{ "maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": { "matchLabels": { "app": "web" } } }] })
}

fn daemon_set(extra: &Value) -> Value {
    json!({ "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": { "name": "agent", "namespace": "default", "uid": "agent" },
        "spec": { "template": { "spec": { "nodeSelector": extra["nodeSelector"], "containers": [
            { "name": "main", "resources": { "requests": { "cpu": "500m" } }, "ports": extra["ports"] }] } } } })
}

/// One claim for all pods: the constraints, the objects beside the pods, the pods, what is wrong.
type Row = (
    &'static str,
    &'static [(&'static str, &'static [&'static str])],
    Vec<Value>,
    Vec<Rule>,
    Vec<Reason>,
);

#[test]
fn a_claim_must_suit_its_pods_whatever_is_launched_for_it() {
    let filter = Rule::Filter;
    let port = json!([{ "containerPort": 80, "hostPort": 80, "protocol": "TCP" }]);
    let rows: Vec<Row> = vec![
        (
            "two pods fit the smallest type",
            &[],
            vec![pod("p", &json!({})), pod("q", &json!({}))],
            vec![],
            vec![],
        ),
        (
            "three do not",
            &[],
            ["p", "q", "r"].map(|name| pod(name, &json!({}))).to_vec(),
            vec![filter(Plugin::NodeResourcesFit)],
            vec![],
        ),
        (
            "a daemon takes room",
            &[],
            vec![
                pod("p", &json!({ "requests": { "cpu": "1600m" } })),
                daemon_set(&json!({})),
            ],
            vec![filter(Plugin::NodeResourcesFit)],
            vec![],
        ),
        (
            "a daemon for other nodes does not",
            &[],
            vec![
                pod("p", &json!({ "requests": { "cpu": "1600m" } })),
                daemon_set(&json!({ "nodeSelector": { "team": "blue" } })),
            ],
            vec![],
            vec![],
        ),
        (
            "a pod for zone a needs a claim for zone a",
            &[],
            vec![pod("p", &json!({ "nodeSelector": { ZONE: "a" } }))],
            vec![filter(Plugin::NodeAffinity)],
            vec![],
        ),
        (
            "which this one is",
            &[(ZONE, &["a"])],
            vec![pod(
                "p",
                &json!({ "nodeSelector": { ZONE: "a", "team": "red", "kubernetes.io/arch": "amd64" } }),
            )],
            vec![],
            vec![],
        ),
        (
            "a label nobody promises",
            &[],
            vec![pod("p", &json!({ "nodeSelector": { "example.com/odd": "x" } }))],
            vec![],
            vec![Reason::UnpromisedLabel],
        ),
        (
            "a label that only constraints of one value promise",
            &[("example.com/odd", &["x"])],
            vec![pod("p", &json!({ "nodeSelector": { "example.com/odd": "x" } }))],
            vec![],
            vec![],
        ),
        (
            "a label of which several values are possible",
            &[("example.com/odd", &["x", "y"])],
            vec![pod("p", &json!({ "nodeSelector": { "example.com/odd": "x" } }))],
            vec![filter(Plugin::NodeAffinity)],
            vec![],
        ),
        (
            "two pods on one port",
            &[],
            vec![pod("p", &json!({ "ports": port })), pod("q", &json!({ "ports": port }))],
            vec![filter(Plugin::NodePorts)],
            vec![],
        ),
        (
            "a daemon on the port",
            &[],
            vec![
                pod("p", &json!({ "ports": port })),
                daemon_set(&json!({ "ports": port })),
            ],
            vec![filter(Plugin::NodePorts)],
            vec![],
        ),
        (
            "two pods that repel each other",
            &[],
            vec![pod("p", &web(anti_affinity(HOSTNAME))), pod("q", &web(json!({})))],
            vec![filter(Plugin::InterPodAffinity)],
            vec![],
        ),
        (
            "two pods that want to be together, the first of their kind",
            &[(ZONE, &["a"])],
            vec![pod("p", &web(affinity(ZONE))), pod("q", &web(affinity(ZONE)))],
            vec![],
            vec![],
        ),
        (
            "a pod that wants to be near nobody",
            &[(ZONE, &["a"])],
            vec![pod("p", &affinity(ZONE))],
            vec![filter(Plugin::InterPodAffinity)],
            vec![],
        ),
        (
            "a pod held back by a gate",
            &[],
            vec![pod("p", &json!({ "schedulingGates": [{ "name": "wait" }] }))],
            vec![],
            vec![Reason::Gated],
        ),
        (
            "conditions that contradict each other",
            &[],
            vec![pod(
                "p",
                &json!({ "affinity": { "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{ "matchExpressions": [
                    { "key": "env", "operator": "In", "values": ["x"] }, { "key": "env", "operator": "DoesNotExist" }] }] } } } }),
            )],
            vec![],
            vec![Reason::Contradiction],
        ),
    ];
    for (what, constraints, objects, rules, reasons) in rows {
        let snapshot = snapshot(&objects);
        let pods: Vec<String> = snapshot
            .provisionable_pods()
            .map(|pod| pod.metadata.name.to_string())
            .collect();
        let pods: Vec<&str> = pods.iter().map(String::as_str).collect();
        let plan = plan(
            vec![claim(&snapshot, &["large", "small"], constraints, &pods)],
            Vec::new(),
        );
        assert_eq!(summary(&examine(&snapshot, &plan)), (rules, reasons), "{what}");
    }
}

#[test]
fn taints_limits_min_values_and_options_of_the_pool_count() {
    let tolerant = json!({ "tolerations": [{ "operator": "Exists" }] });
    let tainted = json!({ "taints": [{ "key": "x", "effect": "NoSchedule" }] });
    let rows: Vec<(Value, &[&str], Value, Vec<Rule>)> = vec![
        (
            tainted.clone(),
            &["small"],
            json!({}),
            vec![Rule::Filter(Plugin::TaintToleration)],
        ),
        (tainted, &["small"], tolerant, vec![]),
        (
            json!({ "taints": [{ "key": "x", "effect": "PreferNoSchedule" }] }),
            &["small"],
            json!({}),
            vec![],
        ),
        (
            json!({ "limits": { "cpu": "8" } }),
            &["small", "large"],
            json!({}),
            vec![],
        ),
        (
            json!({ "limits": { "cpu": "7" } }),
            &["small", "large"],
            json!({}),
            vec![Rule::Limits],
        ),
        (
            json!({ "limits": { "nodes": "0" } }),
            &["small"],
            json!({}),
            vec![Rule::Limits],
        ),
        (
            json!({ "requirements": [{ "key": "node.kubernetes.io/instance-type", "operator": "Exists", "minValues": 2 }] }),
            &["small"],
            json!({}),
            vec![Rule::MinValues],
        ),
        (json!({}), &[], json!({}), vec![Rule::Options]),
        (json!({}), &["huge"], json!({}), vec![Rule::Options]),
    ];
    for (pool, types, extra, rules) in rows {
        let snapshot = snapshot_with(&pool, &[pod("p", &extra)]);
        let plan = plan(vec![claim(&snapshot, types, &[], &["p"])], Vec::new());
        assert_eq!(summary(&examine(&snapshot, &plan)).0, rules, "{pool} {types:?}");
    }
}

#[test]
fn limits_shrink_with_every_claim() {
    let snapshot = snapshot_with(
        &json!({ "limits": { "cpu": "9" } }),
        &[pod("p", &json!({})), pod("q", &json!({}))],
    );
    let one = |name: &str, types: &[&str]| claim(&snapshot, types, &[], &[name]);
    let fits = plan(vec![one("p", &["small"]), one("q", &["small"])], Vec::new());
    let exceeds = plan(vec![one("p", &["large"]), one("q", &["small"])], Vec::new());
    assert_eq!(judge(&snapshot, &fits), Ok(()));
    assert_eq!(summary(&examine(&snapshot, &exceeds)).0, [Rule::Limits]);
}

#[test]
fn existing_nodes_need_room_labels_taints_and_ports_too() {
    let filter = Rule::Filter;
    let rows = vec![
        (json!({}), json!({}), json!({}), vec![]),
        (
            json!({}),
            json!({ "requests": { "cpu": "4" } }),
            json!({}),
            vec![filter(Plugin::NodeResourcesFit)],
        ),
        (
            json!({ "taints": [{ "key": "x", "effect": "NoExecute" }] }),
            json!({}),
            json!({}),
            vec![filter(Plugin::TaintToleration)],
        ),
        (
            json!({}),
            json!({}),
            json!({ "nodeSelector": { ZONE: "b" } }),
            vec![filter(Plugin::NodeAffinity)],
        ),
        (
            json!({}),
            web(json!({})),
            anti_affinity(ZONE),
            vec![filter(Plugin::InterPodAffinity)],
        ),
    ];
    for (on_the_node, there, comes, rules) in rows {
        let objects = [node("n", &on_the_node), running("there", "n", &there), pod("p", &comes)];
        let snapshot = snapshot(&objects);
        let plan = plan(Vec::new(), vec![on_node(&snapshot, "n", &["p"])]);
        assert_eq!(
            summary(&examine(&snapshot, &plan)).0,
            rules,
            "{on_the_node} {there} {comes}"
        );
    }
}

#[test]
fn every_pod_that_needs_a_place_appears_once_and_no_other() {
    let snapshot = snapshot(&[
        pod("p", &json!({})),
        running("there", "n", &json!({})),
        node("n", &json!({})),
    ]);
    let twice = plan(vec![claim(&snapshot, &["large"], &[], &["p", "p"])], Vec::new());
    let missing = plan(Vec::new(), Vec::new());
    let bound = plan(vec![claim(&snapshot, &["large"], &[], &["p", "there"])], Vec::new());
    for plan in [twice, missing, bound] {
        assert_eq!(summary(&examine(&snapshot, &plan)).0, [Rule::Demand]);
    }
    let nowhere = plan(Vec::new(), vec![on_node(&snapshot, "gone", &["p"])]);
    assert_eq!(summary(&examine(&snapshot, &nowhere)).0, [Rule::Place]);
}

#[test]
fn anti_affinity_must_hold_wherever_the_cloud_launches() {
    let repelled = web(anti_affinity(ZONE));
    let snapshot = snapshot(&[pod("p", &repelled), pod("q", &repelled)]);
    let two = |p: &[&str], q: &[&str]| {
        let one = |name: &str, zones: &[&str]| claim(&snapshot, &["small"], &[(ZONE, zones)], &[name]);
        summary(&examine(&snapshot, &plan(vec![one("p", p), one("q", q)], Vec::new()))).0
    };
    assert_eq!(two(&["a"], &["b"]), []);
    assert_eq!(two(&["a"], &["a"]), [Rule::Filter(Plugin::InterPodAffinity)]);
    assert_eq!(two(&["a"], &["b", "a"]), [Rule::Filter(Plugin::InterPodAffinity)]);
}

#[test]
fn spread_pods_need_an_order_in_which_each_is_admitted() {
    let names = ["p", "q", "r", "s"];
    let snapshot = snapshot(&names.map(|name| pod(name, &web(spread(ZONE)))));
    let split = |first: &[&str], second: &[&str]| {
        let one = |zone: &str, pods: &[&str]| claim(&snapshot, &["large"], &[(ZONE, &[zone])], pods);
        summary(&examine(
            &snapshot,
            &plan(vec![one("a", first), one("b", second)], Vec::new()),
        ))
        .0
    };
    assert_eq!(split(&["p", "q"], &["r", "s"]), []);
    assert_eq!(
        split(&["p"], &["q", "r", "s"]),
        [Rule::Filter(Plugin::PodTopologySpread)]
    );
}

#[test]
fn pods_without_constraints_may_be_bound_last() {
    let mut objects: Vec<Value> = ["first", "second"].map(|name| pod(name, &web(json!({})))).to_vec();
    objects.extend(["p", "q", "r"].map(|name| pod(name, &web(spread(ZONE)))));
    let snapshot = snapshot(&objects);
    let one = |zone: &str, pods: &[&str]| {
        claim(
            &snapshot,
            &["large"],
            &[(ZONE, &[zone]), (CAPACITY_TYPE, &["spot"])],
            pods,
        )
    };
    let plan = plan(
        vec![one("a", &["first", "second", "p", "q"]), one("b", &["r"])],
        Vec::new(),
    );
    assert_eq!(examine(&snapshot, &plan), Verdict::default());
}
