//! What a person and a program read of a plan, on plans made by hand.

use std::sync::Arc;

use model::{
    dump::{self, Source},
    object::{List, Pod},
    plan::{Launch, Plan, PlannedClaim, PlannedNode, RefusalKind, TypeOptions, Unplaced},
    price::Price,
    snapshot::Snapshot,
};

use insight::launch::{FixedPool, Hold, Planned, Report, Upstream};

use super::table;
use crate::{document, terminal::Screen};

const SNAPSHOT: &str = r#"{
  "apiVersion": "dovetail.dev/v1alpha1", "kind": "Snapshot",
  "metadata": { "name": "shop", "takenAt": "2026-11-16T15:42:00Z" },
  "objects": [
    { "apiVersion": "v1", "kind": "Node", "metadata": { "name": "ip-10-0-12-34", "labels": {
        "karpenter.sh/nodepool": "general", "node.kubernetes.io/instance-type": "m6i.xlarge",
        "topology.kubernetes.io/zone": "us-east-1a", "karpenter.sh/capacity-type": "spot" } },
      "status": { "allocatable": { "cpu": "4", "memory": "16Gi", "pods": "58" } } },
    { "apiVersion": "v1", "kind": "Pod", "metadata": { "namespace": "shop", "name": "cart-0" },
      "spec": { "nodeName": "ip-10-0-12-34", "containers": [ { "resources": { "requests": { "cpu": "1", "memory": "4Gi" } } } ] } }
  ],
  "instanceTypes": [
    { "name": "c7g.2xlarge", "capacity": { "cpu": "8", "memory": "16Gi", "pods": "58" },
      "offerings": [ { "price": "0.116", "available": true } ] },
    { "name": "m7i-flex.4xlarge", "capacity": { "cpu": "16", "memory": "64Gi", "pods": "234" },
      "offerings": [ { "price": "0.76608", "available": true } ] }
  ]
}"#;

fn snapshot() -> Snapshot {
    let source = Source::Stream("test".into(), Box::new(SNAPSHOT.as_bytes()));
    let options = dump::Options {
        mode: dump::Mode::Strict,
        taken_at: "2026-11-16T15:42:00Z".parse().unwrap(),
    };
    dump::read([source], options).unwrap().0
}

fn pod(namespace: &str, name: &str, owner: &str, cpu: &str, memory: &str) -> Arc<Pod> {
    let (kind, owner) = owner.split_once('/').unwrap();
    let hash = owner.rsplit('-').next().unwrap();
    Arc::new(
        serde_json::from_value(serde_json::json!({
            "metadata": { "namespace": namespace, "name": name, "labels": { "pod-template-hash": hash },
                "ownerReferences": [ { "apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": "1", "controller": true } ] },
            "spec": { "containers": [ { "name": "c", "resources": { "requests": { "cpu": cpu, "memory": memory } } } ] }
        }))
        .unwrap(),
    )
}

fn claim(pool: &str, launch: (&str, &str, &str, &str), pods: Vec<Arc<Pod>>) -> PlannedClaim {
    let (instance_type, capacity_type, zone, price) = launch;
    let mut requests = model::resources::ResourceList::default();
    for pod in &pods {
        requests.add(&pod.resources().requests());
    }
    PlannedClaim {
        node_pool: pool.into(),
        pods,
        constraints: Arc::new([]),
        min_types: None,
        options: TypeOptions::all(["c7g.2xlarge".into(), "m7i-flex.4xlarge".into()]),
        cheapest: Some(Launch {
            instance_type: instance_type.into(),
            zone: Some(zone.into()),
            capacity_type: Some(capacity_type.into()),
            price: price.parse().unwrap(),
        }),
        requests,
        labels: List::default(),
        annotations: List::default(),
        wave: 0,
        nominated: Vec::new(),
    }
}

fn planned() -> Planned {
    let storefront = |name| pod("shop", name, "ReplicaSet/storefront-7d5b9c4f6", "3500m", "4Gi");
    let gpu = |name| pod("ml", name, "ReplicaSet/train-5f7", "16", "128Gi");
    let unplaced = |pod| Unplaced {
        pod,
        kind: RefusalKind::Unschedulable,
        message:
            "no instance type satisfied resources {\"cpu\":\"16\"} and requirements karpenter.sh/nodepool In [general]"
                .into(),
    };
    Planned {
        plan: Plan {
            claims: vec![
                claim(
                    "general",
                    ("c7g.2xlarge", "spot", "us-east-1a", "0.116"),
                    vec![
                        storefront("storefront-7d5b9c4f6-aaaaa"),
                        storefront("storefront-7d5b9c4f6-bbbbb"),
                    ],
                ),
                claim(
                    "general",
                    ("m7i-flex.4xlarge", "on-demand", "us-east-1b", "0.76608"),
                    vec![storefront("storefront-7d5b9c4f6-ccccc")],
                ),
            ],
            existing: vec![PlannedNode {
                name: "ip-10-0-12-34".into(),
                pods: vec![pod("shop", "mailer-1", "StatefulSet/mailer", "1", "2Gi")],
            }],
            unplaced: vec![unplaced(gpu("train-5f7-aa")), unplaced(gpu("train-5f7-bb"))],
            order: Vec::new(),
        },
        lower_bound: Some("0.8".parse().unwrap()),
        upstream: Some(Upstream {
            price: "1.0292".parse().unwrap(),
            nodes: 3,
            unplaced: 2,
        }),
        funnels: std::collections::BTreeMap::new(),
    }
}

fn report(planned: &Planned) -> Report {
    Report::of(&snapshot(), planned)
}

fn screen(width: Option<usize>) -> Screen {
    Screen {
        width,
        ..Screen::default()
    }
}

#[test]
fn a_wide_screen_shows_everything() {
    let expected = "\
6 pods wait: 2 new nodes at $0.8821/h ($644/mo) take 3, 1 existing node takes 1, 2 stay pending.

NEW  POOL     TYPE              CAPACITY   ZONE           $/H  PODS  CPU              MEMORY           OR ONE OF
  1  general  c7g.2xlarge       spot       us-east-1a  0.1160     2  ████████▊░  88%  █████░░░░░  50%     1 type
  2  general  m7i-flex.4xlarge  on-demand  us-east-1b  0.7661     1  ██▎░░░░░░░  22%  ▋░░░░░░░░░   6%     1 type

EXISTING       POOL     TYPE        ZONE        PODS  CPU                 MEMORY
ip-10-0-12-34  general  m6i.xlarge  us-east-1a    +1  █████░░░░░  25→50%  ███▊░░░░░░  25→38%

STAYS PENDING  2 pods
x  Deployment/ml/train: 2 pods that each want 16 cpu, 128Gi memory
   no instance type satisfied resources {\"cpu\":\"16\"} and requirements karpenter.sh/nodepool In [general]

cost          $0.8821/h      $644/mo
lower bound   $0.8000/h      $584/mo  no plan can cost less; this one is at most 10.3% above
upstream        $1.03/h      $751/mo  its own algorithm takes 3 nodes; this plan saves 14.3%, -$107/mo
";
    assert_eq!(table::render(&report(&planned()), false, &screen(Some(120))), expected);
}

#[test]
fn a_narrow_screen_gives_up_what_matters_least() {
    let text = table::render(&report(&planned()), true, &screen(Some(80)));
    let expected = "\
6 pods wait: 2 new nodes at $0.8821/h ($644/mo) take 3, 1 existing node takes 1,
2 stay pending.

NEW  POOL     TYPE              CAP   ZONE     $/H  PODS  CPU              MEM
  1  general  c7g.2xlarge       spot  1a    0.1160     2  ████████▊░  88%   50%
     shop/storefront-7d5b9c4f6-aaaaa shop/storefront-7d5b9c4f6-bbbbb
";
    assert!(text.starts_with(expected), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn a_pipe_gets_numbers_without_bars_and_full_names() {
    let text = table::render(&report(&planned()), false, &screen(None));
    assert!(!text.contains('█'), "{text}");
    assert!(
        text.contains("  1  general  c7g.2xlarge       spot       us-east-1a  0.1160     2   88%   50%"),
        "{text}"
    );
}

#[test]
fn nothing_pending_is_one_sentence() {
    let text = table::render(&report(&Planned::default()), false, &screen(Some(80)));
    assert_eq!(text, "No pod waits for a node: there is nothing to launch.\n");
}

#[test]
fn many_nodes_of_a_kind_share_a_row() {
    let mut planned = planned();
    let claim = planned.plan.claims.remove(0);
    planned.plan.claims = vec![claim; 50];
    let text = table::render(&report(&planned), false, &screen(Some(120)));
    let row = "   50  general  c7g.2xlarge  spot      us-east-1a  5.8000   100  ████████▊░  88%  █████░░░░░  50%     1 type\n";
    assert!(text.contains(row), "{text}");
}

#[test]
fn a_document_reads_back_as_what_was_written() {
    let report = report(&planned());
    let json = document::json(&report).unwrap();
    assert_eq!(serde_json::from_str::<Report>(&json).unwrap(), report);
    let yaml = document::yaml(&report).unwrap();
    assert_eq!(serde_saphyr::from_str::<Report>(&yaml).unwrap(), report);
}

#[test]
fn a_document_says_money_as_numbers_of_dollars() {
    let json: serde_json::Value = serde_json::from_str(&document::json(&report(&planned())).unwrap()).unwrap();
    let expected = serde_json::json!({
        "new_nodes": 2, "usd_h": 0.88208, "usd_mo": 643.9184, "lower_bound_usd_h": 0.8,
        "upstream_usd_h": 1.0292, "upstream_new_nodes": 3, "upstream_pending": 2
    });
    assert_eq!(json["total"], expected);
    assert_eq!(json["new_nodes"][0]["pods"][1], "shop/storefront-7d5b9c4f6-bbbbb");
    assert_eq!(json["pending"][0]["workload"], "Deployment/ml/train");
}

#[test]
fn a_plan_that_costs_more_than_upstreams_says_for_which_pods() {
    let mut planned = planned();
    planned.upstream = Some(Upstream {
        price: "0.5".parse().unwrap(),
        nodes: 1,
        unplaced: 5,
    });
    let text = table::render(&report(&planned), false, &screen(Some(120)));
    assert!(
        text.contains("its own algorithm takes 1 node and leaves 3 more pods without one\n"),
        "{text}"
    );
}

#[test]
fn a_price_that_equals_upstreams_claims_no_saving() {
    let mut planned = planned();
    planned.upstream = planned.upstream.map(|upstream| Upstream {
        price: Price::from_picos(planned.plan.price().picos()),
        ..upstream
    });
    let text = table::render(&report(&planned), false, &screen(Some(120)));
    assert!(text.contains("what its own algorithm pays, with 3 nodes\n"), "{text}");
}

#[test]
fn static_pools_with_another_number_of_nodes_than_asked_for_are_a_sentence_each() {
    let pool = FixedPool {
        node_pool: "base".to_owned(),
        replicas: 3,
        nodes: 1,
        launches: 1,
        removes: 0,
        held_by: Some(Hold::Limit),
        is_gate_on: true,
        instance_type: Some("c7g.2xlarge".to_owned()),
        zone: Some("us-east-1a".to_owned()),
        capacity_type: Some("spot".to_owned()),
        usd_h: Some("0.116".parse().unwrap()),
    };
    let surplus = FixedPool {
        replicas: 1,
        nodes: 3,
        removes: 2,
        held_by: None,
        is_gate_on: false,
        ..pool.clone()
    };
    let text = table::fixed(&[pool, surplus], &screen(None));
    assert_eq!(
        text,
        "\nStatic NodePool base is to have 3 nodes and has 1: 1 is launched, c7g.2xlarge spot in us-east-1a at $0.1160/h ($85/mo) each; \
         its limits.nodes has no room for more.\n\
         \nStatic NodePool base is to have 1 node and has 3: 2 are removed, those that disturb least first. \
         The controller does so with the feature gate StaticCapacity, which is off unless asked for.\n"
    );
}
