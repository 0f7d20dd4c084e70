//! What is answered about a cluster so small that every figure can be worked out by hand.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::io::Cursor;

use insight::{
    Dollars, Prices, View,
    commitment::Commitments,
    fleet::{Fleet, Pods, Pool},
    launch,
    money::{Accounts, Bounds, By, Rows},
    outlook::{Outlook, Reach},
    why::{
        node::NodeExplanation,
        pod::{PodExplanation, PodState},
    },
};
use model::{
    dump::{self, Mode, Options, Source},
    snapshot::Snapshot,
};
use serde_json::{Value, json};

const NOW: &str = "2026-11-16T15:42:00Z";

fn offer(capacity_type: &str, price: &str) -> Value {
    let requirement = |key: &str, value: &str| json!({"key": key, "operator": "In", "values": [value]});
    json!({
        "requirements": [requirement("karpenter.sh/capacity-type", capacity_type), requirement("topology.kubernetes.io/zone", "z1")],
        "price": price, "available": true
    })
}

fn kind(name: &str, cores: u32, on_demand: &str, spot: &str) -> Value {
    let requirement = |key: &str, values: Value| json!({"key": key, "operator": "In", "values": values});
    json!({
        "name": name,
        "requirements": [
            requirement("node.kubernetes.io/instance-type", json!([name])),
            requirement("kubernetes.io/arch", json!(["amd64"])),
            requirement("kubernetes.io/os", json!(["linux"])),
            requirement("topology.kubernetes.io/zone", json!(["z1"])),
            requirement("karpenter.sh/capacity-type", json!(["spot", "on-demand"]))
        ],
        "capacity": {"cpu": cores.to_string(), "memory": format!("{}Gi", cores * 4), "pods": "50"},
        "offerings": [offer("on-demand", on_demand), offer("spot", spot)]
    })
}

fn pool() -> Value {
    let ready = json!([{"type": "Ready", "status": "True", "reason": "Ready", "message": ""}]);
    json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "general", "uid": "p"}, "spec": {
        "disruption": {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "1m", "budgets": [{"nodes": "100%"}]},
        "limits": {"cpu": "16"},
        "template": {"spec": {"requirements": [], "nodeClassRef": {"group": "g", "kind": "k", "name": "n"}}},
    }, "status": {"conditions": ready}})
}

fn machine(name: &str, cores: u32, capacity_type: &str) -> [Value; 2] {
    let labels = json!({
        "karpenter.sh/nodepool": "general", "karpenter.sh/capacity-type": capacity_type, "karpenter.sh/registered": "true",
        "karpenter.sh/initialized": "true", "node.kubernetes.io/instance-type": format!("c{cores}"),
        "topology.kubernetes.io/zone": "z1", "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "kubernetes.io/hostname": name
    });
    let amounts = json!({"cpu": cores.to_string(), "memory": format!("{}Gi", cores * 4), "pods": "50"});
    let holds = |kind: &str| json!({"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": "2026-11-16T10:00:00Z"});
    [
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": {"providerID": format!("x://{name}")},
            "status": {"capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]}}),
        json!({"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": format!("claim-{name}"), "labels": labels},
            "spec": {"requirements": []}, "status": {"providerID": format!("x://{name}"), "nodeName": name, "capacity": amounts, "allocatable": amounts,
            "conditions": [holds("Launched"), holds("Registered"), holds("Initialized"), holds("Consolidatable")]}}),
    ]
}

fn pod(namespace: &str, name: &str, node: Option<&str>, cpu: &str, annotations: &Value) -> Value {
    let status = match node {
        Some(_) => json!({"phase": "Running", "startTime": "2026-11-16T10:00:00Z"}),
        None => json!({"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "lastTransitionTime": "2026-11-16T15:40:00Z"}]}),
    };
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"namespace": namespace, "name": name, "annotations": annotations,
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r", "controller": true}]},
        "spec": {"nodeName": node, "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}]},
        "status": status})
}

/// Two nodes on demand: `full` of eight cores has six asked for, `idle` of eight has one, by a pod that may be protected.
fn snapshot(annotations: &Value, more: Vec<Value>) -> Snapshot {
    let mut objects = vec![pool()];
    objects.extend(machine("full", 8, "on-demand"));
    objects.extend(machine("idle", 8, "on-demand"));
    objects.push(pod("shop", "a", Some("full"), "6", &json!({})));
    objects.push(pod("ml", "b", Some("idle"), "1", annotations));
    objects.extend(more);
    let file = json!({
        "apiVersion": "dovetail.dev/v1alpha1", "kind": "Snapshot", "metadata": {"name": "small", "takenAt": NOW},
        "objects": objects,
        "instanceTypes": [kind("c2", 2, "0.1", "0.04"), kind("c8", 8, "0.4", "0.16")]
    });
    let source = Source::Stream("test".into(), Box::new(Cursor::new(file.to_string().into_bytes())));
    let options = Options {
        mode: Mode::Strict,
        taken_at: NOW.parse().unwrap(),
    };
    dump::read([source], options).unwrap().0
}

fn snapshot_of(annotations: &Value) -> Snapshot {
    snapshot(annotations, Vec::new())
}

const REACH: Reach = Reach {
    rounds: 5,
    priced: 100,
    work: 1_000_000,
    threads: 1,
};

fn dollars(text: &str) -> Dollars {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_fleet_is_counted_and_priced_by_hand() {
    let snapshot = snapshot(&json!({}), vec![pod("shop", "waits", None, "7", &json!({}))]);
    let view = View::of(&snapshot);
    let fleet = Fleet::of(&view);
    assert_eq!((fleet.nodes, fleet.on_demand, fleet.vcpu), (2, 2, 16));
    assert_eq!((fleet.cpu_m.requested, fleet.cpu_m.allocatable), (7000, 16000));
    let pods = Pods::of(&view);
    assert_eq!((pods.running, pods.pending, pods.longest_wait_s), (2, 1, Some(120)));
    let pool = &Pool::all(&view)[0];
    assert_eq!(pool.spend_usd_h, dollars("0.8"));
    let limit = pool.nearest_limit().unwrap();
    assert_eq!(
        (limit.used.as_str(), limit.left.as_str(), limit.percent),
        ("16", "0", 100)
    );
}

/// A NodePool with a fixed number of nodes.
fn fixed_pool(name: &str, replicas: u32, limit: Option<u32>, is_ready: bool) -> Value {
    let mut pool = pool();
    pool["metadata"] = json!({"name": name, "uid": name});
    pool["spec"]["replicas"] = replicas.into();
    pool["spec"]["limits"] = limit.map_or(json!({}), |nodes| json!({"nodes": nodes.to_string()}));
    pool["status"]["conditions"][0]["status"] = if is_ready { "True" } else { "False" }.into();
    pool
}

#[test]
fn static_pools_are_filled_up_within_their_limits_and_emptied_of_what_is_too_much() {
    let of_pool = |pool: &str, name: &str| {
        machine(name, 2, "spot").map(|mut object| {
            object["metadata"]["labels"]["karpenter.sh/nodepool"] = pool.into();
            object
        })
    };
    let mut more = vec![
        fixed_pool("full", 1, None, true),
        fixed_pool("lacks", 3, None, true),
        fixed_pool("limited", 3, Some(2), true),
        fixed_pool("surplus", 1, None, false),
        fixed_pool("unready", 2, None, false),
    ];
    let nodes = [
        ("full", "f1"),
        ("lacks", "l1"),
        ("limited", "m1"),
        ("surplus", "s1"),
        ("surplus", "s2"),
    ];
    more.extend(nodes.into_iter().flat_map(|(pool, name)| of_pool(pool, name)));
    let report = launch::Report::of(&snapshot(&json!({}), more), &launch::Planned::default());
    let pools = report.fixed_pools.iter();
    let said: Vec<_> = pools
        .map(|it| (it.node_pool.as_str(), it.nodes, it.launches, it.removes, it.held_by))
        .collect();
    assert_eq!(
        said,
        [
            ("lacks", 1, 2, 0, None),
            ("limited", 1, 1, 0, Some(launch::Hold::Limit)),
            ("surplus", 2, 0, 1, None),
            ("unready", 0, 0, 0, Some(launch::Hold::NotReady)),
        ]
    );
    let lacks = &report.fixed_pools[0];
    assert_eq!(
        lacks.instance_type.as_deref(),
        Some("c2"),
        "the cheapest that the pool allows"
    );
    assert_eq!(lacks.usd_h, Some("0.04".parse().unwrap()));
}

#[test]
fn an_underused_node_goes_and_the_outlook_says_what_that_saves() {
    let snapshot = snapshot(&json!({}), Vec::new());
    let view = View::of(&snapshot);
    let outlook = Outlook::of(&view, REACH);
    let first = &outlook.moves[0];
    assert_eq!((first.round, first.reason), (1, "Underutilized"), "{outlook:#?}");
    assert!(outlook.total.usd_h_after < outlook.total.usd_h);
    let saved = outlook.total.usd_h - outlook.total.usd_h_after;
    assert_eq!(outlook.total.delta_usd_mo, -saved.monthly());
    assert!(outlook.held.is_empty());
}

#[test]
fn a_protected_pod_holds_its_node_and_lifting_that_has_a_price() {
    let snapshot = snapshot(&json!({"karpenter.sh/do-not-disrupt": "true"}), Vec::new());
    let view = View::of(&snapshot);
    let outlook = Outlook::of(&view, REACH);
    let held = outlook.held.iter().find(|kept| kept.rule == "ProtectedPod").unwrap();
    assert_eq!(held.targets[0].node, "idle");
    assert!(held.saving_usd_h > Some(dollars("0")), "{held:?}");
    let why = NodeExplanation::of(&view, view.machine("idle").unwrap(), REACH);
    assert_eq!(why.stays[0].by, "pod ml/b");
    assert_eq!(
        why.lifting_usd_mo, held.saving_usd_mo,
        "the plan and the node say the same"
    );
    let free = snapshot_of(&json!({}));
    let lifted = Outlook::of(&View::of(&free), REACH);
    let worth = outlook.total.usd_h_after - lifted.total.usd_h_after;
    assert_eq!(
        why.lifting_usd_mo,
        Some(worth.monthly()),
        "what the fleet comes to without the rule"
    );
}

#[test]
fn a_commitment_is_paid_anyway_and_covers_what_is_dearest() {
    let commitments = |json: Value| serde_json::from_value::<Commitments>(json).unwrap();
    let snapshot = snapshot_of(&json!({}));
    let reserved = |count: u32| {
        commitments(json!({"reservations": [{"name": "r", "instanceType": "c8", "count": count, "usdPerHour": 0.2}]}))
    };
    let covered = |commitments: &Commitments| {
        let coverage = commitments.cover(&View::of(&snapshot));
        (View::of(&snapshot).covered(&coverage), coverage)
    };
    let (view, coverage) = covered(&reserved(1));
    let machine = |name: &str| view.machine(name).unwrap();
    assert_eq!(
        (machine("full").cost(), machine("idle").cost()),
        (dollars("0.2"), dollars("0.4"))
    );
    assert_eq!(
        machine("full").marginal,
        machine("idle").price,
        "the other would slip under it"
    );
    assert_eq!(coverage.commitments[0].unused_usd_h(), Dollars::ZERO);
    let (view, coverage) = covered(&reserved(3));
    assert_eq!(
        view.machine("idle").unwrap().marginal.map(Dollars::from),
        Some(Dollars::ZERO)
    );
    assert_eq!(coverage.commitments[0].unused_usd_h(), dollars("0.2"));
    let catalog = reserved(3).marginal(snapshot.catalog(), &coverage);
    let prices = |name: &str| {
        let entry = catalog.get(&name.into()).unwrap();
        entry
            .offerings
            .iter()
            .map(|offering| Dollars::from(offering.price))
            .collect::<Vec<_>>()
    };
    assert!(
        prices("c8")[0] < dollars("0.001") && prices("c8")[1] == dollars("0.16"),
        "on demand only"
    );
    assert_eq!(prices("c2"), [dollars("0.1"), dollars("0.04")]);
    let plan = commitments(json!({"savingsPlans": [{"name": "s", "usdPerHour": 0.45, "discountPercent": 25}]}));
    let (view, coverage) = covered(&plan);
    // 0.30 of 0.45 for the first; the second has 0.15 left, which is half of it.
    assert_eq!(view.machine("full").unwrap().cost(), dollars("0.3"));
    assert_eq!(view.machine("idle").unwrap().cost(), dollars("0.35"));
    assert_eq!(coverage.commitments[0].used_usd_h, dollars("0.45"));
    assert!(
        commitments(json!({"savingsPlans": [{"name": "s", "usdPerHour": 0, "discountPercent": 100}]}))
            .faults()
            .len()
            == 2
    );
}

#[test]
fn money_splits_without_a_rest() {
    let snapshot = snapshot(&json!({}), Vec::new());
    let prices = Prices::of(&snapshot);
    let view = View::priced(&snapshot, &prices);
    let outlook = Outlook::of(&view, REACH);
    let accounts = Accounts::of(&view, &prices, &outlook, &Bounds::of(&view));
    let money = &accounts.money;
    assert_eq!(money.spend_usd_h, dollars("0.8"));
    // Six cores need a c8, one core a c2.
    assert_eq!(money.baseline_usd_h, dollars("0.5"));
    let bound = Bounds::of(&view);
    assert!(bound.total > Dollars::ZERO && bound.total <= money.spend_usd_h);
    let parts: Dollars = bound.by_pool.values().copied().sum();
    assert!(
        parts <= bound.total + Dollars(1000) && bound.total <= parts + Dollars(1000),
        "{bound:?}"
    );
    let above = money.above_bound;
    let sum = above.planned_usd_mo + above.held_usd_mo + above.drag_usd_mo + above.rounding_usd_mo;
    assert_eq!(sum, above.total_usd_mo);
    for by in [By::Pool, By::Namespace, By::Type, By::Zone, By::Capacity] {
        let rows = Rows::of(&view, &accounts, &by);
        let sum: Dollars = rows.rows.iter().map(|row| row.usd_h).sum();
        assert_eq!(sum, money.spend_usd_h, "{by:?}");
    }
}

#[test]
fn a_pod_above_the_limit_is_told_the_limit_and_one_that_fits_its_node() {
    let waiting = vec![
        pod("shop", "large", None, "7500m", &json!({})),
        pod("shop", "small", None, "1", &json!({})),
    ];
    let snapshot = snapshot(&json!({}), waiting);
    let view = View::of(&snapshot);
    let why = |name: &str| {
        let pod = snapshot.objects().pods.find("shop", name).unwrap();
        PodExplanation::of(&view, pod, &packing::Options::default())
    };
    let large = why("large");
    assert_eq!(large.state, PodState::Blocked);
    assert!(large.stops_at.as_deref().unwrap().starts_with("limit"), "{large:?}");
    assert_eq!(why("small").state, PodState::FitsExisting);
    assert_eq!(why("a").state, PodState::Running);
}
