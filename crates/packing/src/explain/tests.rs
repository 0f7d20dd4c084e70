//! One pod that cannot be placed per kind of condition: what each condition leaves, which blocks, and what helps.

#![expect(clippy::needless_pass_by_value, reason = "literals read better by value")]

use serde_json::{Value, json};

use super::*;
use crate::demand::fixture::{bound, instance_type, node_pool, object, pending, snapshot_with};

const ZONE: &str = "topology.kubernetes.io/zone";
const ARCH: &str = "kubernetes.io/arch";
const CAPACITY_TYPE: &str = "karpenter.sh/capacity-type";

fn is(key: &str, values: &[&str]) -> Value {
    json!({ "key": key, "operator": "In", "values": values })
}

/// Three types: small (2 cpu, zones a and b), large (8 cpu, zone a), huge (16 cpu, zone b).
fn types() -> Vec<Value> {
    vec![
        instance_type("small", "2", &["a", "b"]),
        instance_type("large", "8", &["a"]),
        instance_type("huge", "16", &["b"]),
    ]
}

fn pool(spec: Value) -> Value {
    node_pool("p", json!({ "spec": spec }))
}

fn requiring(requirements: Value) -> Value {
    pool(json!({ "template": { "spec": { "requirements": requirements } } }))
}

fn asking(cpu: &str) -> Value {
    json!([{ "name": "c", "resources": { "requests": { "cpu": cpu } } }])
}

/// A pending pod of one cpu.
fn pod(spec: Value) -> Value {
    let mut pod = pending("x", json!({ "metadata": { "uid": "x" }, "spec": spec }));
    if pod["spec"]["containers"].is_null() {
        pod["spec"]["containers"] = asking("1");
    }
    pod
}

struct Case {
    file: Value,
    objects: Vec<Value>,
}

impl Case {
    fn new(objects: Vec<Value>) -> Self {
        let file = json!({ "instanceTypes": types() });
        Self { file, objects }
    }

    fn explained(self) -> Explanation {
        let snapshot = snapshot_with(self.file, self.objects);
        let key = ObjectKey {
            namespace: "ns".into(),
            name: "x".into(),
        };
        let explanations = explain(&snapshot, &Options::default(), std::slice::from_ref(&key));
        let plan = crate::plan(&snapshot, &Options::default());
        let unplaced = plan.unplaced.iter().find(|it| it.pod.metadata.key() == key);
        let unplaced = unplaced.unwrap_or_else(|| panic!("it has a place: {plan:#?}"));
        let [explanation] = &explanations[..] else {
            panic!("one pod was asked for: {explanations:?}");
        };
        assert_eq!(
            (&explanation.message, explanation.kind),
            (&unplaced.message, unplaced.kind)
        );
        explanation.clone()
    }
}

/// The stages of the first pool as name and count, up to the one that blocks.
fn stages(explanation: &Explanation) -> Vec<(String, usize)> {
    assert!(!explanation.pools.is_empty(), "{explanation:#?}");
    let funnel = &explanation.pools[0];
    let until = funnel.blocking.map_or(funnel.stages.len(), |at| at + 1);
    let stages = funnel.stages[..until].iter();
    stages.map(|stage| (stage.constraint.name(), stage.remaining)).collect()
}

fn counts(expected: &[(&str, usize)]) -> Vec<(String, usize)> {
    expected
        .iter()
        .map(|(name, count)| ((*name).to_owned(), *count))
        .collect()
}

/// The sentences of the first fix, which must be verified.
fn first_fix(explanation: &Explanation) -> Vec<&str> {
    let fix = explanation
        .fixes
        .first()
        .unwrap_or_else(|| panic!("no fix: {explanation:#?}"));
    assert!(fix.is_verified);
    fix.changes.iter().map(|change| change.text.as_str()).collect()
}

fn check(case: Case, expected: &[(&str, usize)], fix: &str) -> Explanation {
    let explanation = case.explained();
    assert_eq!(stages(&explanation), counts(expected), "{:#?}", explanation.pools);
    assert_eq!(explanation.pools[0].blocking, Some(expected.len() - 1));
    assert_eq!(first_fix(&explanation), [fix], "{:#?}", explanation.fixes);
    explanation
}

#[test]
fn an_untolerated_taint_blocks_and_a_toleration_helps() {
    let tainted = pool(json!({ "template": { "spec": { "taints": [
        { "key": "team", "value": "ml", "effect": "NoSchedule" } ] } } }));
    let explanation = check(
        Case::new(vec![tainted, pod(json!({}))]),
        &[("offered", 3), ("available", 3), ("taints", 0)],
        "pod: tolerate team=ml:NoSchedule",
    );
    let patch =
        "spec:\n  tolerations:\n    - effect: NoSchedule\n      key: team\n      operator: Equal\n      value: ml\n";
    assert_eq!(explanation.fixes[0].changes[0].patch, patch);
    let texts: Vec<_> = explanation
        .fixes
        .iter()
        .map(|fix| fix.changes[0].text.as_str())
        .collect();
    assert_eq!(
        texts,
        [
            "pod: tolerate team=ml:NoSchedule",
            "NodePool p: drop taint team=ml:NoSchedule"
        ]
    );
}

#[test]
fn a_misspelt_node_selector_blocks_at_its_key_and_is_corrected() {
    let selector = json!({ "nodeSelector": { ZONE: "a", ARCH: "amd46" } });
    let explanation = check(
        Case::new(vec![pool(json!({})), pod(selector)]),
        &[("offered", 3), ("available", 3), ("arch", 0)],
        "pod: nodeSelector kubernetes.io/arch=amd46 is perhaps meant to be amd64",
    );
    let change = &explanation.fixes[0].changes[0];
    assert_eq!(
        (&*change.path, change.old.as_deref(), change.new.as_deref()),
        ("spec.nodeSelector[kubernetes.io/arch]", Some("amd46"), Some("amd64"))
    );
}

#[test]
fn a_label_that_no_pool_has_is_dropped_or_given_to_the_pool() {
    let explanation = check(
        Case::new(vec![pool(json!({})), pod(json!({ "nodeSelector": { "team": "ml" } }))]),
        &[("offered", 3), ("available", 3), ("team", 0)],
        "pod: drop nodeSelector team=ml",
    );
    assert_eq!(explanation.fixes[1].changes[0].text, "NodePool p: label nodes team=ml");
    let stage = explanation.pools[0].blocking_stage().unwrap();
    assert_eq!(
        stage.text,
        "Pod spec.nodeSelector team=ml: the NodePool does not define it"
    );
}

#[test]
fn a_zone_the_pool_leaves_out_can_be_allowed() {
    let explanation = check(
        Case::new(vec![
            requiring(json!([is(ZONE, &["a"])])),
            pod(json!({ "nodeSelector": { ZONE: "b" } })),
        ]),
        &[("offered", 3), ("pool zone", 2), ("available", 2), ("zone", 0)],
        "pod: drop nodeSelector topology.kubernetes.io/zone=b",
    );
    let texts: Vec<_> = explanation
        .fixes
        .iter()
        .map(|fix| fix.changes[0].text.as_str())
        .collect();
    assert_eq!(texts[1], "NodePool p: allow topology.kubernetes.io/zone [b]");
    assert_eq!(
        explanation.pools[0].blocking_stage().unwrap().text,
        "Pod spec.nodeSelector topology.kubernetes.io/zone=b: the NodePool has In [a]"
    );
}

#[test]
fn a_required_node_affinity_blocks_at_its_key_and_can_be_dropped() {
    let affinity = json!({ "affinity": { "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{ "matchExpressions": [is(ARCH, &["amd64"]), is("disk", &["nvme"])] }] } } } });
    check(
        Case::new(vec![pool(json!({})), pod(affinity)]),
        &[("offered", 3), ("available", 3), ("disk", 0)],
        "pod: drop node affinity disk In [nvme]",
    );
}

#[test]
fn a_pod_that_is_not_tried_has_upstreams_words_only() {
    let selector = json!({ "nodeSelector": { "kubernetes.io/hostname": "gone" } });
    let explanation = Case::new(vec![pool(json!({})), pod(selector)]).explained();
    assert_eq!(explanation.kind, RefusalKind::Invalid);
    assert_eq!((explanation.pools, explanation.fixes), (vec![], vec![]));
}

#[test]
fn a_cpu_request_no_type_has_is_lowered_to_what_the_largest_takes() {
    let explanation = check(
        Case::new(vec![pool(json!({})), pod(json!({ "containers": asking("20") }))]),
        &[("offered", 3), ("available", 3), ("cpu", 0)],
        "pod: lower the cpu request of container c from 20 to 16",
    );
    assert_eq!(
        explanation.pools[0].blocking_stage().unwrap().constraint,
        Constraint::Resource {
            resource: "cpu".into(),
            asked: "20".parse().unwrap(),
            most: "16".parse().unwrap(),
        }
    );
    let launch = explanation.fixes[0].launch.as_ref().unwrap();
    assert_eq!(launch.instance_type.as_str(), "huge");
}

#[test]
fn of_several_resources_the_one_that_kills_is_named() {
    let containers = json!([{ "name": "c", "resources": { "requests": { "cpu": "4", "memory": "9Gi" } } }]);
    check(
        Case::new(vec![pool(json!({})), pod(json!({ "containers": containers }))]),
        &[("offered", 3), ("available", 3), ("cpu", 2), ("memory", 0)],
        "pod: lower the memory request of container c from 9Gi to 8Gi",
    );
}

#[test]
fn what_daemons_take_is_not_offered_to_the_pod() {
    let daemon = object(
        "apps/v1",
        "DaemonSet",
        "ns",
        "agent",
        json!({ "spec": { "template": { "spec": { "containers": asking("1") } } } }),
    );
    check(
        Case::new(vec![
            daemon,
            pool(json!({})),
            pod(json!({ "containers": asking("16") })),
        ]),
        &[("offered", 3), ("available", 3), ("cpu", 0)],
        "pod: lower the cpu request of container c from 16 to 15",
    );
}

#[test]
fn a_limit_that_nodes_use_up_is_raised_by_the_smallest_type_that_does() {
    let node = object(
        "v1",
        "Node",
        "",
        "n",
        json!({ "metadata": { "labels": { "karpenter.sh/nodepool": "p", "karpenter.sh/initialized": "true" } },
            "spec": { "providerID": "n", "taints": [{ "key": "t", "effect": "NoSchedule" }] },
            "status": { "capacity": { "cpu": "10", "memory": "8Gi" }, "allocatable": { "cpu": "10" } } }),
    );
    let explanation = check(
        Case::new(vec![
            pool(json!({ "limits": { "cpu": "11" } })),
            node,
            pod(json!({ "containers": asking("4") })),
        ]),
        &[("offered", 3), ("available", 3), ("limit cpu", 0)],
        "NodePool p: raise limits.cpu from 11 to 18",
    );
    assert_eq!(
        explanation.pools[0].blocking_stage().unwrap().text,
        "NodePool spec.limits.cpu 11: nodes have 10, claims of this plan 0"
    );
    assert_eq!(
        explanation.existing,
        [NodeVerdict {
            reason: NodeReason::Taint("t:NoSchedule".to_owned()),
            nodes: 1
        }]
    );
    assert!(!explanation.is_crowded_out);
}

#[test]
fn a_limit_that_other_pods_use_up_crowds_the_pod_out() {
    let mut first = pod(json!({ "containers": asking("8") }));
    first["metadata"]["name"] = "a".into();
    first["metadata"]["uid"] = "a".into();
    let objects = vec![
        pool(json!({ "limits": { "cpu": "9" } })),
        first,
        pod(json!({ "containers": asking("7") })),
    ];
    let explanation = check(
        Case::new(objects),
        &[("offered", 3), ("available", 3), ("limit cpu", 0)],
        "NodePool p: raise limits.cpu from 9 to 16",
    );
    assert!(explanation.is_crowded_out);
}

#[test]
fn a_limit_is_raised_no_further_than_the_cheapest_plan_needs() {
    // Upstream counts each of three claims as the largest type there is, of 16 cores: that would be 48.
    let named = |name: &str| {
        let mut pod = pod(json!({ "containers": asking("1"), "affinity": { "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [{
                "topologyKey": "kubernetes.io/hostname", "labelSelector": {} }] } } }));
        pod["metadata"]["name"] = name.into();
        pod["metadata"]["uid"] = name.into();
        pod
    };
    let objects = vec![
        pool(json!({ "limits": { "cpu": "3" } })),
        named("a"),
        named("b"),
        named("x"),
    ];
    let mut case = Case::new(objects);
    for (at, price) in ["2", "8", "16"].into_iter().enumerate() {
        for offering in case.file["instanceTypes"][at]["offerings"].as_array_mut().unwrap() {
            offering["price"] = price.into();
        }
    }
    let explanation = case.explained();
    assert_eq!(first_fix(&explanation), ["NodePool p: raise limits.cpu from 3 to 6"]);
    let limits = explanation.fixes.iter().flat_map(|fix| &fix.changes);
    assert_eq!(limits.filter(|change| change.path == "spec.limits.cpu").count(), 1);
}

#[test]
fn a_limit_is_raised_before_a_pod_is_let_in_where_others_are_fenced() {
    let fenced = node_pool(
        "q",
        json!({ "spec": { "template": { "spec": { "taints": [{ "key": "team", "value": "ml", "effect": "NoSchedule" }] } } } }),
    );
    let limited = pool(json!({ "limits": { "cpu": "1" } }));
    let explanation = Case::new(vec![limited, fenced, pod(json!({}))]).explained();
    let texts: Vec<_> = explanation
        .fixes
        .iter()
        .map(|fix| fix.changes[0].text.as_str())
        .collect();
    let expected = [
        "NodePool p: raise limits.cpu from 1 to 2",
        "pod: tolerate team=ml:NoSchedule",
    ];
    assert_eq!(
        texts[..2],
        expected,
        "what guards everybody gives way before a fence does"
    );
}

#[test]
fn a_limit_that_leaves_only_types_too_small_is_raised() {
    let objects = vec![
        pool(json!({ "limits": { "cpu": "4" } })),
        pod(json!({ "containers": asking("4") })),
    ];
    let explanation = Case::new(objects).explained();
    assert_eq!(
        first_fix(&explanation),
        ["NodePool p: raise limits.cpu from 4 to 8"],
        "{:#?}",
        explanation.pools
    );
}

#[test]
fn a_limit_on_nodes_is_raised_by_one() {
    let node = object(
        "v1",
        "Node",
        "",
        "n",
        json!({ "metadata": { "labels": { "karpenter.sh/nodepool": "p", "karpenter.sh/initialized": "true" } },
            "spec": { "providerID": "n" }, "status": { "capacity": { "cpu": "1" }, "allocatable": { "cpu": "500m", "pods": "9" } } }),
    );
    let explanation = check(
        Case::new(vec![pool(json!({ "limits": { "nodes": "1" } })), node, pod(json!({}))]),
        &[("offered", 3), ("available", 3), ("limit nodes", 0)],
        "NodePool p: raise limits.nodes from 1 to 2",
    );
    let expected = NodeVerdict {
        reason: NodeReason::Resource("cpu".to_owned()),
        nodes: 1,
    };
    assert_eq!(explanation.existing, [expected]);
}

#[test]
fn an_offering_that_is_sold_out_blocks_last_and_another_capacity_type_helps() {
    let mut spot = instance_type("spot", "4", &["a"]);
    let offering = json!({ "price": "1", "available": false,
        "requirements": [is(ZONE, &["a"]), is(CAPACITY_TYPE, &["spot"])] });
    spot["requirements"][3] = is(CAPACITY_TYPE, &["on-demand", "spot"]);
    spot["offerings"].as_array_mut().unwrap().push(offering);
    let case = Case {
        file: json!({ "instanceTypes": [spot] }),
        objects: vec![
            pool(json!({})),
            pod(json!({ "nodeSelector": { CAPACITY_TYPE: "spot" } })),
        ],
    };
    check(
        case,
        &[
            ("offered", 1),
            ("available", 1),
            ("capacity-type", 1),
            ("cpu", 1),
            ("offering", 0),
        ],
        "pod: drop nodeSelector karpenter.sh/capacity-type=spot",
    );
}

#[test]
fn a_pool_whose_capacity_type_is_sold_out_can_allow_another() {
    let mut spot = instance_type("spot", "4", &["a"]);
    spot["requirements"][3] = is(CAPACITY_TYPE, &["on-demand", "spot"]);
    let case = Case {
        file: json!({ "instanceTypes": [spot] }),
        objects: vec![requiring(json!([is(CAPACITY_TYPE, &["spot"])])), pod(json!({}))],
    };
    check(
        case,
        &[("offered", 1), ("pool capacity-type", 1), ("available", 0)],
        "NodePool p: allow karpenter.sh/capacity-type [on-demand]",
    );
}

#[test]
fn a_pool_whose_requirement_no_type_meets_is_widened() {
    check(
        Case::new(vec![requiring(json!([is(ARCH, &["arm64"])])), pod(json!({}))]),
        &[("offered", 3), ("pool arch", 0)],
        "NodePool p: drop requirement kubernetes.io/arch In [arm64]",
    );
}

#[test]
fn min_values_that_the_pod_leaves_too_few_types_for_is_lowered() {
    let diverse = json!([{ "key": "node.kubernetes.io/instance-type", "operator": "Exists", "minValues": 3 }]);
    let explanation = check(
        Case::new(vec![requiring(diverse), pod(json!({ "containers": asking("4") }))]),
        &[
            ("offered", 3),
            ("pool instance-type", 3),
            ("available", 3),
            ("cpu", 2),
            ("offering", 2),
            ("minValues", 0),
        ],
        "NodePool p: lower minValues of node.kubernetes.io/instance-type from 3 to 2",
    );
    assert_eq!(
        explanation.fixes[1].changes[0].text,
        "settings: set minValuesPolicy to BestEffort"
    );
}

#[test]
fn min_values_that_the_pool_itself_cannot_meet_is_lowered() {
    let diverse = json!([{ "key": "node.kubernetes.io/instance-type", "operator": "Exists", "minValues": 5 }]);
    check(
        Case::new(vec![requiring(diverse), pod(json!({}))]),
        &[
            ("offered", 3),
            ("pool instance-type", 3),
            ("available", 3),
            ("pool minValues", 0),
        ],
        "NodePool p: lower minValues of node.kubernetes.io/instance-type from 5 to 3",
    );
}

fn node_in(zone: &str) -> Value {
    object(
        "v1",
        "Node",
        "",
        zone,
        json!({ "metadata": { "labels": { ZONE: zone, "kubernetes.io/hostname": zone } }, "spec": { "providerID": zone },
            "status": { "capacity": { "cpu": "1" }, "allocatable": { "cpu": "1", "pods": "0" } } }),
    )
}

fn labelled(mut pod: Value) -> Value {
    pod["metadata"]["uid"] = pod["metadata"]["name"].clone();
    pod["metadata"]["labels"] = json!({ "app": "web" });
    pod
}

#[test]
fn a_spread_whose_open_zone_the_pool_leaves_out_needs_more_skew() {
    let spread = json!({ "topologySpreadConstraints": [{ "maxSkew": 1, "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule", "labelSelector": { "matchLabels": { "app": "web" } } }] });
    let objects = vec![
        requiring(json!([is(ZONE, &["a"])])),
        node_in("a"),
        node_in("b"),
        labelled(bound("one", "a", json!({}))),
        labelled(bound("two", "a", json!({}))),
        labelled(pod(spread)),
    ];
    let explanation = check(
        Case::new(objects),
        &[("offered", 3), ("pool zone", 2), ("available", 2), ("spread", 0)],
        "pod: raise maxSkew over topology.kubernetes.io/zone from 1 to 3",
    );
    assert_eq!(
        explanation.pools[0].blocking_stage().unwrap().text,
        "Pod spec.topologySpreadConstraints[0] topology.kubernetes.io/zone maxSkew 1: pods are {a: 2, b: 0}"
    );
    assert_eq!(
        explanation.fixes[1].changes[0].text,
        "pod: set whenUnsatisfiable of the spread over topology.kubernetes.io/zone to ScheduleAnyway"
    );
}

fn term(kind: &str) -> Value {
    json!({ "affinity": { kind: { "requiredDuringSchedulingIgnoredDuringExecution": [
        { "topologyKey": ZONE, "labelSelector": { "matchLabels": { "app": "web" } } } ] } } })
}

#[test]
fn affinity_to_pods_that_are_nowhere_can_be_dropped() {
    check(
        Case::new(vec![pool(json!({})), pod(term("podAffinity"))]),
        &[("offered", 3), ("available", 3), ("affinity", 0)],
        "pod: drop the required podAffinity term over topology.kubernetes.io/zone",
    );
}

#[test]
fn anti_affinity_to_pods_that_are_everywhere_can_be_dropped() {
    let objects = vec![
        pool(json!({})),
        node_in("a"),
        node_in("b"),
        labelled(bound("one", "a", json!({}))),
        labelled(bound("two", "b", json!({}))),
        pod(term("podAntiAffinity")),
    ];
    let explanation = check(
        Case::new(objects),
        &[("offered", 3), ("available", 3), ("anti-affinity", 0)],
        "pod: drop the required podAntiAffinity term over topology.kubernetes.io/zone",
    );
    let expected = NodeVerdict {
        reason: NodeReason::Resource("pods".to_owned()),
        nodes: 2,
    };
    assert_eq!(explanation.existing, [expected]);
}

#[test]
fn pods_that_want_to_be_away_block_and_another_zone_helps() {
    let mut web = labelled(bound("one", "a", json!({ "spec": term("podAntiAffinity") })));
    web["metadata"]["labels"] = json!({ "app": "db" });
    let objects = vec![
        requiring(json!([is(ZONE, &["a"])])),
        node_in("a"),
        web,
        labelled(pod(json!({}))),
    ];
    let explanation = Case::new(objects).explained();
    let expected = [("offered", 3), ("pool zone", 2), ("available", 2), ("avoided", 0)];
    assert_eq!(stages(&explanation), counts(&expected));
    assert_eq!(
        explanation.pools[0].blocking_stage().unwrap().text,
        "podAntiAffinity of other pods topology.kubernetes.io/zone: pods are {a: 1}"
    );
    assert_eq!(
        first_fix(&explanation),
        ["NodePool p: drop requirement topology.kubernetes.io/zone In [a]"]
    );
}

#[test]
fn a_volume_in_a_zone_the_pool_leaves_out_needs_that_zone() {
    let volume = object(
        "v1",
        "PersistentVolume",
        "",
        "v",
        json!({ "spec": { "csi": { "driver": "d", "volumeHandle": "h" }, "nodeAffinity": { "required": {
            "nodeSelectorTerms": [{ "matchExpressions": [is(ZONE, &["b"])] }] } } } }),
    );
    let claim = object(
        "v1",
        "PersistentVolumeClaim",
        "ns",
        "c",
        json!({ "metadata": { "annotations": { "pv.kubernetes.io/bind-completed": "yes" } }, "spec": { "volumeName": "v" } }),
    );
    let spec = json!({ "volumes": [{ "name": "v", "persistentVolumeClaim": { "claimName": "c" } }] });
    check(
        Case::new(vec![requiring(json!([is(ZONE, &["a"])])), volume, claim, pod(spec)]),
        &[
            ("offered", 3),
            ("pool zone", 2),
            ("available", 2),
            ("volume limit", 2),
            ("volume zone", 0),
        ],
        "NodePool p: allow topology.kubernetes.io/zone [b]",
    );
}

#[test]
fn a_port_that_a_daemon_takes_on_every_node_is_given_up() {
    let ports = json!([{ "name": "c", "ports": [{ "containerPort": 80, "hostPort": 80 }] }]);
    let daemon = object(
        "apps/v1",
        "DaemonSet",
        "ns",
        "proxy",
        json!({ "spec": { "template": { "spec": { "containers": ports } } } }),
    );
    check(
        Case::new(vec![daemon, pool(json!({})), pod(json!({ "containers": ports }))]),
        &[("offered", 3), ("available", 3), ("host ports", 0)],
        "pod: give up host ports [80]",
    );
}

#[test]
fn where_one_change_is_not_enough_two_are_named() {
    let tainted = pool(json!({ "template": { "spec": { "taints": [{ "key": "gpu", "effect": "NoSchedule" }] } } }));
    let explanation = Case::new(vec![tainted, pod(json!({ "containers": asking("20") }))]).explained();
    assert_eq!(
        first_fix(&explanation),
        [
            "pod: tolerate gpu:NoSchedule",
            "pod: lower the cpu request of container c from 20 to 16"
        ]
    );
}

#[test]
fn a_pool_that_takes_no_part_says_so_and_nothing_helps() {
    let unready = node_pool(
        "p",
        json!({ "status": { "conditions": [{ "type": "Ready", "status": "False" }] } }),
    );
    let explanation = Case::new(vec![unready, pod(json!({}))]).explained();
    assert_eq!(stages(&explanation), counts(&[("offered", 3), ("pool state", 0)]));
    assert_eq!(explanation.fixes, []);
}

#[test]
fn every_pool_has_its_own_funnel_and_the_one_that_got_furthest_is_helped_first() {
    let tainted = json!({ "spec": { "weight": 9, "template": { "spec": { "taints": [{ "key": "t", "effect": "NoSchedule" }] } } } });
    let objects = vec![
        node_pool("heavy", tainted),
        node_pool("light", json!({})),
        pod(json!({ "containers": asking("20") })),
    ];
    let explanation = Case::new(objects).explained();
    let blocked: Vec<_> = explanation
        .pools
        .iter()
        .map(|it| (it.pool.to_string(), it.blocking_stage().unwrap().constraint.name()))
        .collect();
    let expected = [("heavy", "taints"), ("light", "cpu")].map(|(pool, name)| (pool.to_owned(), name.to_owned()));
    assert_eq!(blocked, expected);
    assert_eq!(
        first_fix(&explanation),
        ["pod: lower the cpu request of container c from 20 to 16"]
    );
}

#[test]
fn a_pod_that_names_a_pools_label_is_helped_there_and_not_by_another_pool() {
    let data = |more: Value| {
        let mut spec = json!({ "template": { "metadata": { "labels": { "workload": "data" } } } });
        for (key, value) in more.as_object().unwrap() {
            spec[key] = value.clone();
        }
        node_pool("data", json!({ "spec": spec }))
    };
    let wants = pod(json!({ "nodeSelector": { "workload": "data" }, "containers": asking("20") }));
    let explanation = Case::new(vec![node_pool("other", json!({})), data(json!({})), wants.clone()]).explained();
    let beside: Vec<_> = explanation
        .pools
        .iter()
        .map(|it| (it.pool.to_string(), it.is_beside))
        .collect();
    assert!(beside.contains(&("other".to_owned(), true)), "{beside:?}");
    assert!(beside.contains(&("data".to_owned(), false)), "{beside:?}");
    assert_eq!(
        first_fix(&explanation),
        ["pod: lower the cpu request of container c from 20 to 16"]
    );
    // The pool that is meant needs two changes; dropping the label would be one.
    let limited = data(json!({ "limits": { "cpu": "8" } }));
    let explanation = Case::new(vec![node_pool("other", json!({})), limited, wants]).explained();
    for fix in &explanation.fixes {
        assert!(
            fix.changes.iter().all(|change| !change.text.contains("workload")),
            "{fix:?}"
        );
    }
    assert!(!explanation.fixes.is_empty());
}

#[test]
fn where_the_pool_that_is_meant_takes_no_part_no_other_one_is_offered() {
    let unready = node_pool(
        "data",
        json!({ "spec": { "template": { "metadata": { "labels": { "workload": "data" } } } },
            "status": { "conditions": [{ "type": "Ready", "status": "False" }] } }),
    );
    let wants = pod(json!({ "nodeSelector": { "workload": "data" } }));
    let explanation = Case::new(vec![node_pool("other", json!({})), unready, wants]).explained();
    assert_eq!(explanation.fixes, []);
}

#[test]
fn a_type_is_judged_as_the_pools_node_class_makes_it() {
    let os = "kubernetes.io/os";
    let of = |system: &str| {
        let mut types = types();
        for it in &mut types {
            it["requirements"].as_array_mut().unwrap().push(is(os, &[system]));
        }
        types
    };
    let windows = json!({ "spec": { "template": { "spec": { "requirements": [is(os, &["windows"])] } } } });
    let explanation = Case {
        file: json!({ "instanceTypes": of("linux"), "nodePoolVariants": { "w": of("windows") } }),
        objects: vec![node_pool("w", windows), pod(json!({ "containers": asking("20") }))],
    }
    .explained();
    assert_eq!(explanation.pools[0].blocking_stage().unwrap().constraint.name(), "cpu");
}

#[test]
fn a_plan_with_explanations_is_the_same_plan() {
    let objects = vec![
        pool(json!({ "limits": { "cpu": "9" } })),
        pod(json!({ "containers": asking("20") })),
    ];
    let snapshot = snapshot_with(json!({ "instanceTypes": types() }), objects);
    let (plan, explanations) = plan_explained(&snapshot, &Options::default());
    assert_eq!(plan, crate::plan(&snapshot, &Options::default()));
    assert_eq!(explanations.len(), plan.unplaced.len());
}

#[test]
fn more_volumes_than_any_type_attaches_are_dropped_until_they_fit() {
    let mut types = types();
    for it in &mut types {
        it["volumeAttachmentLimits"] = json!({ "d": 1 });
    }
    let class = object(
        "storage.k8s.io/v1",
        "StorageClass",
        "",
        "disk",
        json!({ "provisioner": "d" }),
    );
    let claim = |name: &str| {
        object(
            "v1",
            "PersistentVolumeClaim",
            "ns",
            name,
            json!({ "spec": { "storageClassName": "disk" } }),
        )
    };
    let volume = |name: &str| json!({ "name": name, "persistentVolumeClaim": { "claimName": name } });
    let case = Case {
        file: json!({ "instanceTypes": types }),
        objects: vec![
            class,
            claim("one"),
            claim("two"),
            pool(json!({})),
            pod(json!({ "volumes": [volume("one"), volume("two")] })),
        ],
    };
    check(
        case,
        &[("offered", 3), ("available", 3), ("volume limit", 0)],
        "pod: drop volume two",
    );
}

/// A pod with a claim for a device of a class that does not exist.
fn with_device() -> Vec<Value> {
    let request =
        json!({ "name": "gpu", "exactly": { "deviceClassName": "none", "allocationMode": "ExactCount", "count": 1 } });
    let claim = object(
        "resource.k8s.io/v1",
        "ResourceClaim",
        "ns",
        "gpu",
        json!({ "spec": { "devices": { "requests": [request] } } }),
    );
    let containers =
        json!([{ "name": "c", "resources": { "requests": { "cpu": "1" }, "claims": [{ "name": "gpu" }] } }]);
    let spec = json!({ "containers": containers, "resourceClaims": [{ "name": "gpu", "resourceClaimName": "gpu" }] });
    vec![claim, pool(json!({})), pod(spec)]
}

#[test]
fn devices_that_no_type_has_are_given_up() {
    let case = Case {
        file: json!({ "instanceTypes": types(), "settings": { "ignoreDRARequests": false } }),
        objects: with_device(),
    };
    let explanation = case.explained();
    assert_eq!(
        explanation.pools[0]
            .blocking_stage()
            .map(|stage| stage.constraint.name()),
        Some("devices".to_owned())
    );
    assert_eq!(first_fix(&explanation), ["pod: drop resource claim gpu"]);
}

#[test]
fn a_pod_whose_devices_nobody_looks_at_is_told_how_to_change_that() {
    let explanation = Case::new(with_device()).explained();
    assert_eq!(explanation.kind, RefusalKind::DeviceRequestsIgnored);
    // Looking at them would not help here, because no type has any.
    assert_eq!(first_fix(&explanation), ["pod: drop resource claim gpu"]);
}

#[test]
fn a_fix_that_works_only_while_the_pod_is_alone_is_none() {
    // Room for one node of two cores, which the other pod takes.
    let limited = pool(json!({ "limits": { "cpu": "2" }, "template": { "spec": {
        "taints": [{ "key": "gpu", "effect": "NoSchedule" }] } } }));
    let other = pending(
        "other",
        json!({ "metadata": { "uid": "other" }, "spec": { "containers": asking("1500m"),
            "tolerations": [{ "key": "gpu", "operator": "Exists" }] } }),
    );
    let explanation = Case::new(vec![limited, other, pod(json!({}))]).explained();
    let fix = first_fix(&explanation);
    assert_eq!(fix.len(), 2, "{fix:?}");
    assert_eq!(fix[0], "pod: tolerate gpu:NoSchedule");
    assert!(fix[1].starts_with("NodePool p: raise limits.cpu from 2 to "), "{fix:?}");
}
