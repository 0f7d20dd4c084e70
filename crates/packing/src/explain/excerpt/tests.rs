//! What is explained on an excerpt is what is explained on the whole cluster.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{
    Options,
    demand::{
        Demand,
        fixture::{bound, instance_type, node_pool, object, pending, snapshot_with},
    },
    explain::{Explanation, explanations},
    finish,
    run::Run,
    supply::Supply,
};

/// A node: how much of its four cores is taken, and whether it is in rack `r1`, tainted, and avoided by a pod on it.
type OneNode = (u8, bool, u8, bool);
/// A pod: cores, and whether it wants rack `r1`, tolerates the taint, and takes a port of the host.
type OnePod = (u8, bool, bool, bool);

fn node(at: usize, (_, is_in_rack, taint, _): OneNode) -> Value {
    let labels = json!({
        "karpenter.sh/nodepool": "p", "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true",
        "kubernetes.io/hostname": format!("n{at}"), "node.kubernetes.io/instance-type": "small",
        "topology.kubernetes.io/zone": "a", "karpenter.sh/capacity-type": "on-demand",
        "rack": if is_in_rack { "r1" } else { "r2" },
    });
    let taints = match taint {
        0 => json!([{ "key": "k", "effect": "NoSchedule" }]),
        1 => json!([{ "key": "k", "effect": "PreferNoSchedule" }]),
        _ => json!([]),
    };
    let amounts = json!({ "cpu": "4", "memory": "8Gi", "pods": "10" });
    let status = json!({ "capacity": amounts, "allocatable": amounts });
    let spec = json!({ "providerID": format!("kwok://n{at}"), "taints": taints });
    object(
        "v1",
        "Node",
        "",
        &format!("n{at}"),
        json!({ "metadata": { "labels": labels }, "spec": spec, "status": status }),
    )
}

fn resident(at: usize, (taken, _, _, is_avoided): OneNode) -> Value {
    let containers = json!([{ "name": "c", "resources": { "requests": { "cpu": taken.to_string() } } }]);
    let avoids = json!({ "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [
        { "topologyKey": "kubernetes.io/hostname", "labelSelector": { "matchLabels": { "app": "x" } } }
    ] } });
    let affinity = if is_avoided { avoids } else { Value::Null };
    let spec = json!({ "containers": containers, "affinity": affinity });
    bound(
        &format!("r{at}"),
        &format!("n{at}"),
        json!({ "metadata": { "uid": format!("r{at}") }, "spec": spec }),
    )
}

fn waiting(at: usize, (cores, is_for_rack, is_tolerant, has_port): OnePod) -> Value {
    let ports = if has_port {
        json!([{ "containerPort": 80, "hostPort": 80 }])
    } else {
        json!([])
    };
    let requests = json!({ "cpu": cores.to_string() });
    let mut spec = json!({ "containers": [{ "name": "c", "ports": ports, "resources": { "requests": requests } }] });
    if is_for_rack {
        spec["nodeSelector"] = json!({ "rack": "r1" });
    }
    if is_tolerant {
        spec["tolerations"] = json!([{ "key": "k", "operator": "Exists" }]);
    }
    let metadata = json!({ "uid": format!("w{at}"), "labels": { "app": "x" } });
    pending(&format!("w{at}"), json!({ "metadata": metadata, "spec": spec }))
}

fn cluster(nodes: &[OneNode], pods: &[OnePod], limit: u8) -> Snapshot {
    let types = json!({ "instanceTypes": [
        instance_type("small", "4", &["a", "b"]),
        instance_type("large", "8", &["a"]),
    ] });
    let limits = json!({ "cpu": (4 * nodes.len() + usize::from(limit)).to_string() });
    let mut objects = vec![node_pool("p", json!({ "spec": { "limits": limits } }))];
    for (at, it) in nodes.iter().enumerate() {
        objects.extend([node(at, *it), resident(at, *it)]);
    }
    objects.extend(pods.iter().enumerate().map(|(at, it)| waiting(at, *it)));
    snapshot_with(types, objects)
}

/// What is explained, on excerpts or on the whole cluster.
fn explained(snapshot: &Snapshot, is_on_excerpts: bool) -> Vec<Explanation> {
    let options = Options::default();
    let (demand, supply) = (Demand::of(snapshot), Supply::of(snapshot, &options));
    let problem = Problem::new(snapshot, demand, supply, &options);
    let mut run = Run::new(&problem);
    let left = run.solve();
    let plan = finish::plan(&mut run, &left);
    let unplaced: Vec<_> = plan.unplaced.iter().collect();
    let excerpt = is_on_excerpts.then(|| Excerpt::of(&problem)).flatten();
    assert_eq!(excerpt.is_some(), is_on_excerpts, "the pods are plain");
    explanations(&mut run, &unplaced, excerpt.as_ref())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn explains_as_on_the_whole_cluster(
        nodes in prop::collection::vec((0_u8..=4, any::<bool>(), 0_u8..8, prop::bool::weighted(0.2)), 0..12),
        pods in prop::collection::vec((1_u8..=9, any::<bool>(), any::<bool>(), prop::bool::weighted(0.2)), 1..6),
        limit in 0_u8..24,
    ) {
        let snapshot = cluster(&nodes, &pods, limit);
        prop_assert_eq!(explained(&snapshot, true), explained(&snapshot, false));
    }
}

#[test]
fn of_a_thousand_nodes_with_room_one_pod_looks_at_one() {
    let nodes = vec![(1, true, 7, false); 1_000];
    let snapshot = cluster(&nodes, &[(2, false, false, false), (9, false, false, false)], 0);
    let options = Options::default();
    let (demand, supply) = (Demand::of(&snapshot), Supply::of(&snapshot, &options));
    let problem = Problem::new(&snapshot, demand, supply, &options);
    let excerpt = Excerpt::of(&problem).expect("the pods are plain");
    let pod = |name: &str| snapshot.objects().pods.find("ns", name).expect("it waits");
    let kept = |cut: Option<Cut>| cut.expect("it is plain").snapshot.objects().nodes.iter().count();
    assert_eq!(kept(excerpt.alone(&snapshot, pod("w0"))), 1);
    assert_eq!(kept(excerpt.alone(&snapshot, pod("w1"))), 0);
    assert_eq!(kept(excerpt.among(&snapshot, pod("w1"))), 2);
}
