//! What keeps a fleet from being churned, and what people can stop.

use disruption::{Consolidation, MachineShape, Method, PastMove, Pause, Rotation, Rule, looping_pools};
use serde_json::json;

use crate::fixture::{Cluster, cluster, instance_type, now, texts};

fn oversized() -> Cluster {
    cluster().node("a", "t8").pod("p", "a", "7500m")
}

fn rule(cluster: &Cluster) -> Rule {
    let pass = cluster.ask(Method::SingleNodeConsolidation);
    assert!(pass.commands.is_empty(), "{:?}", texts(&pass.commands));
    pass.refusals.last().unwrap().rule.clone()
}

fn slightly_cheaper() -> Cluster {
    let mut cluster = oversized();
    cluster.types.push(instance_type("u8", 8, 0.97));
    cluster
}

#[test]
fn a_pool_may_ask_for_a_least_saving_in_percent_or_in_dollars_a_month() {
    let annotated = |key: &str, value: &str| {
        slightly_cheaper().pool("default", json!({ "metadata": { "annotations": { key: value } } }))
    };
    assert_eq!(
        slightly_cheaper().ask(Method::SingleNodeConsolidation).commands.len(),
        1
    );
    for (key, enough, too_much) in [
        ("dovetail.dev/minimum-saving-percent", "3", "4"),
        ("dovetail.dev/minimum-saving-monthly", "170", "180"),
    ] {
        assert_eq!(
            annotated(key, enough)
                .ask(Method::SingleNodeConsolidation)
                .commands
                .len(),
            1,
            "{key}"
        );
        let stopped = annotated(key, too_much);
        assert!(matches!(rule(&stopped), Rule::MinimumSaving { .. }), "{key}");
        let mut faithful = stopped;
        faithful.options.consolidation = Consolidation::Faithful;
        assert_eq!(faithful.ask(Method::SingleNodeConsolidation).commands.len(), 1, "{key}");
    }
}

#[test]
fn a_pool_that_went_there_and_back_for_the_same_pods_is_frozen() {
    let shape = |name: &str| MachineShape {
        instance_type: name.into(),
        capacity_type: "on-demand".into(),
    };
    let moved = |from: &str, to: &str, digest: u64| PastMove {
        at: now(),
        pool: "default".into(),
        removed: vec![shape(from)],
        launched: vec![shape(to)],
        requests_digest: digest,
    };
    let mut cluster = slightly_cheaper();
    cluster.facts.past_moves = vec![moved("t8", "u8", 1), moved("u8", "t8", 2)];
    assert!(looping_pools(&cluster.facts).is_empty(), "for other pods");
    cluster.facts.past_moves = vec![moved("t8", "u8", 1), moved("u8", "t8", 1)];
    assert_eq!(rule(&cluster), Rule::LoopGuard);
    let off = cluster.pool(
        "default",
        json!({ "metadata": { "annotations": { "dovetail.dev/loop-guard": "off" } } }),
    );
    assert_eq!(off.ask(Method::SingleNodeConsolidation).commands.len(), 1);
}

#[test]
fn a_pool_whose_replacements_do_not_come_up_is_not_replaced_any_more() {
    let mut cluster = slightly_cheaper();
    cluster.facts.failed_replacements.insert("default".into(), 3);
    assert_eq!(rule(&cluster), Rule::FailedReplacements(3));
    let mut empty = cluster;
    empty.objects.retain(|object| object["kind"] != "Pod");
    assert_eq!(empty.decide().commands.len(), 1, "deleting needs no replacement");
}

#[test]
fn a_node_that_ends_soon_is_not_replaced_for_pennies() {
    let mut cluster = slightly_cheaper();
    let claim = cluster
        .objects
        .iter_mut()
        .find(|object| object["kind"] == "NodeClaim")
        .unwrap();
    // Created two hours ago: an hour is left, in which three percent do not pay for five minutes of double running.
    claim["spec"]["expireAfter"] = "3h".into();
    assert_eq!(rule(&cluster), Rule::MovingCost);
}

#[test]
fn nothing_is_disrupted_while_people_paused_it() {
    let mut cluster = cluster().node("a", "t8");
    let until = Some("2026-11-16T13:00:00Z".parse().unwrap());
    cluster.facts.pause = Some(Pause {
        reason: "release night".to_owned(),
        until,
    });
    let round = cluster.decide();
    assert!(round.commands.is_empty());
    assert_eq!(
        round.refusals[0].rule,
        Rule::Paused {
            reason: "release night".to_owned(),
            until
        }
    );
    cluster.facts.pause.as_mut().unwrap().until = Some("2026-11-16T11:00:00Z".parse().unwrap());
    assert_eq!(cluster.decide().commands.len(), 1, "the pause is over");
}

#[test]
fn a_round_that_runs_out_of_work_goes_on_where_it_stopped() {
    let mut cluster = cluster();
    for at in 0..4 {
        let node = format!("n{at}");
        cluster = cluster.node(&node, "t2").pod(&format!("p{at}"), &node, "2");
    }
    cluster.options.work = 4;
    let mut seen = Vec::new();
    for _ in 0..2 {
        let pass = cluster.ask(Method::SingleNodeConsolidation);
        assert_eq!((pass.evaluated, pass.waiting.len()), (2, 2));
        assert!(pass.settled.is_none());
        let looked = pass.refusals.iter().filter(|refusal| refusal.rule == Rule::NotCheaper);
        seen.extend(looked.map(|refusal| refusal.node.to_string()));
        cluster.facts.rotation = Rotation { waiting: pass.waiting };
    }
    seen.sort();
    assert_eq!(seen, ["n0", "n1", "n2", "n3"]);
}

/// A large node with a little on it beside a small one, and a pod that will come in a few minutes.
fn awaiting(cpu: &str) -> Cluster {
    let mut cluster = cluster()
        .node("a", "t8")
        .pod("p", "a", "500m")
        .node("b", "t2")
        .pod("q", "b", "500m");
    let pending = crate::fixture::cluster().pending("soon", cpu);
    let pods = &pending.snapshot();
    cluster.facts.expected = pods.objects().pods.iter().cloned().collect();
    cluster
}

#[test]
fn a_node_that_pods_of_a_cron_job_will_need_in_a_few_minutes_stays() {
    let single = |cluster: &Cluster| texts(&cluster.ask(Method::SingleNodeConsolidation).commands);
    assert_eq!(single(&awaiting("1")), ["delete: [a]"], "the other has room for it");
    let large = awaiting("3");
    assert!(
        single(&large).iter().all(|text| !text.contains("delete: [a]")),
        "{:?}",
        single(&large)
    );
    let kept = large.ask(Method::SingleNodeConsolidation).refusals;
    assert!(
        kept.iter()
            .any(|refusal| refusal.node.as_str() == "a" && refusal.rule == Rule::NeededSoon(1)),
        "{kept:?}"
    );
    let off = json!({ "metadata": { "annotations": { "dovetail.dev/expected-pods-guard": "off" } } });
    assert_eq!(single(&large.clone().pool("default", off)), ["delete: [a]"]);
    let mut faithful = large;
    faithful.options.consolidation = Consolidation::Faithful;
    assert_eq!(single(&faithful), ["delete: [a]"]);
}

#[test]
fn of_empty_nodes_as_many_stay_as_pods_that_will_come_need() {
    let mut cluster = cluster().node("a", "t4").node("b", "t4").node("c", "t4");
    cluster.facts.expected = awaiting("3").facts.expected;
    let pass = cluster.ask(Method::Emptiness);
    assert_eq!(texts(&pass.commands), ["delete: [a, b]"]);
    assert!(pass.refusals.iter().any(|refusal| refusal.rule == Rule::NeededSoon(1)));
    cluster.facts.expected.clear();
    assert_eq!(texts(&cluster.ask(Method::Emptiness).commands), ["delete: [a, b, c]"]);
}
