//! How many nodes may go, now and in the days to come.

use disruption::{Method, Reason, UNLIMITED, allowed, windows};
use model::object::{NodePool, NodePoolName};
use serde_json::{Value, json};

use crate::fixture::{cluster, now, pool, said};

fn with_budgets(budgets: Value) -> NodePool {
    let mut pool: NodePool = serde_json::from_value(pool("default", json!({}))).unwrap();
    pool.spec.disruption.budgets = serde_json::from_value(budgets).unwrap();
    pool
}

#[test]
fn the_least_of_the_budgets_that_apply_counts_and_a_share_is_rounded_up() {
    let cases = [
        (json!([]), 10, UNLIMITED),
        (json!([{ "nodes": "3" }]), 10, 3),
        (json!([{ "nodes": "5%" }]), 10, 1),
        (json!([{ "nodes": "0%" }]), 10, 0),
        (json!([{ "nodes": "50%" }]), 7, 4),
        (json!([{ "nodes": "50%" }, { "nodes": "2" }]), 7, 2),
        (
            json!([{ "nodes": "50%" }, { "nodes": "0", "reasons": ["Drifted"] }]),
            7,
            4,
        ),
        (json!([{ "nodes": "0", "reasons": [] }]), 7, UNLIMITED),
        (
            json!([{ "nodes": "0", "schedule": "0 12 * * *", "duration": "1h" }]),
            7,
            0,
        ),
        (
            json!([{ "nodes": "0", "schedule": "0 13 * * *", "duration": "1h" }]),
            7,
            UNLIMITED,
        ),
        (
            json!([{ "nodes": "0", "schedule": "0 11 * * *", "duration": "1h" }]),
            7,
            UNLIMITED,
        ),
        (
            json!([{ "nodes": "9" }, { "nodes": "x", "reasons": ["Drifted"] }]),
            7,
            0,
        ),
        (
            json!([{ "nodes": "9" }, { "nodes": "1", "schedule": "no cron", "duration": "1h", "reasons": ["Drifted"] }]),
            7,
            0,
        ),
    ];
    for (budgets, nodes, expected) in cases {
        let pool = with_budgets(budgets.clone());
        assert_eq!(
            allowed(&pool, nodes, Reason::Underutilized, now()),
            expected,
            "{budgets}"
        );
    }
}

#[test]
fn windows_of_a_time_zone_are_previewed_one_after_the_other() {
    let mut pool =
        with_budgets(json!([{ "nodes": "0", "schedule": "0 9 * * mon-fri", "duration": "8h" }, { "nodes": "2" }]));
    pool.metadata = serde_json::from_value(
        json!({ "name": "default", "annotations": { "dovetail.dev/budget-time-zone": "Europe/Vienna" } }),
    )
    .unwrap();
    let found = windows(&pool, 10, now(), "2026-11-18T12:00:00Z".parse().unwrap()).unwrap();
    let found: Vec<_> = found
        .iter()
        .map(|window| (window.from.to_string(), window.allowed[&Reason::Empty]))
        .collect();
    let expected = [
        ("2026-11-16T12:00:00Z", 0),
        ("2026-11-16T16:00:00Z", 2),
        ("2026-11-17T08:00:00Z", 0),
        ("2026-11-17T16:00:00Z", 2),
        ("2026-11-18T08:00:00Z", 0),
    ];
    assert_eq!(found, expected.map(|(from, allowed)| (from.to_owned(), allowed)));
    pool.metadata = serde_json::from_value(
        json!({ "name": "default", "annotations": { "dovetail.dev/budget-time-zone": "Atlantis" } }),
    )
    .unwrap();
    assert!(windows(&pool, 10, now(), now()).is_err());
    assert_eq!(
        allowed(&pool, 10, Reason::Empty, now()),
        0,
        "who does not know the time lets nothing go"
    );
}

#[test]
fn nodes_that_go_or_are_not_ready_use_up_budgets_but_not_those_of_repair() {
    let unready = json!({ "status": { "conditions": [{ "type": "Ready", "status": "Unknown" }] } });
    let starting = json!({ "metadata": { "labels": { "karpenter.sh/initialized": null } } });
    let mut cluster = cluster()
        .pool(
            "default",
            json!({ "spec": { "disruption": { "budgets": [{ "nodes": "50%" }] } } }),
        )
        .node("a", "t4")
        .node("b", "t4")
        .machine("c", "t4", unready, json!({}))
        .machine("d", "t4", starting, json!({}))
        .gate("NodeRepair");
    cluster.facts.marked.insert("claim-b".into());
    cluster
        .facts
        .repairs
        .insert("c".into(), crate::candidates::broken(disruption::RepairAction::Replace));
    let budget = |method: Method| {
        let budgets = cluster.ask(method).budgets.unwrap();
        let found = budgets.pools[&NodePoolName::from("default")];
        (found.nodes, found.disrupting, found.allowed, found.remaining())
    };
    assert_eq!(budget(Method::Emptiness), (3, 2, 2, 0));
    assert_eq!(budget(Method::Repair), (3, 1, 2, 1));
}

#[test]
fn a_blocking_budget_is_told_on_the_pool_and_the_node_learns_when_it_opens() {
    let closed = json!([{ "nodes": "0", "schedule": "0 9 * * *", "duration": "8h" }]);
    let cluster = cluster()
        .pool("default", json!({ "spec": { "disruption": { "budgets": closed } } }))
        .node("a", "t4");
    let pass = cluster.ask(Method::Emptiness);
    let budget = pass.budgets.unwrap().pools[&NodePoolName::from("default")];
    assert_eq!(
        budget.blocked_message(Reason::Empty).unwrap(),
        "No allowed disruptions for disruption reason Empty due to blocking budget"
    );
    assert!(
        said(&pass.refusals, "a").is_empty(),
        "upstream says nothing on the node"
    );
    let disruption::Rule::Budget { opens, .. } = &pass.refusals[0].rule else {
        panic!("{:?}", pass.refusals)
    };
    assert_eq!(opens.unwrap().to_string(), "2026-11-16T17:00:00Z");
    assert!(pass.settled.is_none(), "time alone opens a budget");
}
