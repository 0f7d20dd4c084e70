//! Days that befall every cluster once: the API server is away, forgets, refuses; a clock jumps; a store is set back.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use runtime::settings::Steering;
use serde_json::json;
use simulator::{ApiServer, Fault, RequestFacts};

use crate::{
    invariant::{ever, left_over, not_running, violations},
    life::Life,
    story::{PODS, come_and_go},
    world::{MINUTE, World, on_virtual_time},
};

#[test]
fn api_server_that_is_away_for_two_minutes_delays_a_launch_and_no_more() {
    for answered in [1, 3, 6, 10] {
        let away = move |server: &ApiServer| {
            let mut writes = 0;
            server.set_faults(move |facts| {
                writes += u64::from(facts.write.is_some());
                if writes > answered {
                    Fault::Fail(503)
                } else {
                    Fault::None
                }
            });
        };
        let back = |server: &ApiServer| {
            server.clear_faults();
            server.drop_watches();
        };
        let told = on_virtual_time(come_and_go(Steering::default(), away, back)).unwrap();
        assert_eq!(
            (told.claims_ever, told.nodes_ever),
            (PODS, PODS),
            "after {answered} writes"
        );
    }
}

#[test]
fn history_that_is_forgotten_at_every_request_for_two_minutes_costs_nothing_but_lists() {
    let forget = |server: &ApiServer| {
        server.set_faults(|facts| {
            if facts.number % 2 == 0 {
                Fault::CompactHistory
            } else {
                Fault::DropWatches
            }
        });
    };
    let told = on_virtual_time(come_and_go(Steering::default(), forget, ApiServer::clear_faults)).unwrap();
    assert_eq!((told.claims_ever, told.nodes_ever), (PODS, PODS));
}

/// What a role grants: a verb on a resource.
fn grant(facts: &RequestFacts) -> String {
    let RequestFacts {
        verb,
        resource,
        subresource,
        ..
    } = facts;
    format!("{verb:?} {} {subresource}", resource.plural)
}

/// Everything that is asked for in a story in which nothing is refused.
fn grants() -> BTreeSet<String> {
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let noting = Arc::clone(&seen);
    let note = move |server: &ApiServer| {
        server.set_faults(move |facts| {
            noting.lock().unwrap().insert(grant(facts));
            Fault::None
        });
    };
    on_virtual_time(come_and_go(Steering::default(), note, |_| {})).unwrap();
    std::mem::take(&mut *seen.lock().unwrap())
}

#[test]
fn verb_that_the_role_lacks_at_first_is_asked_for_until_it_is_granted() {
    let grants = grants();
    assert!(grants.len() > 20, "{grants:?}");
    let failed: BTreeMap<_, _> = grants
        .into_iter()
        .filter_map(|missing| {
            let (lacking, mut refused) = (missing.clone(), 0);
            let refuse = move |server: &ApiServer| {
                server.set_faults(move |facts| {
                    if refused < 5 && grant(facts) == lacking {
                        refused += 1;
                        return Fault::Fail(403);
                    }
                    Fault::None
                });
            };
            let told = on_virtual_time(come_and_go(Steering::default(), refuse, |_| {}));
            let is_well = told.as_ref().is_ok_and(|told| told.claims_ever == told.nodes_ever);
            (!is_well).then_some((missing, told))
        })
        .collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn kind_that_is_installed_late_is_waited_for() {
    for late in ["nodepools", "nodeclaims", "kwoknodeclasses"] {
        let missing = move |server: &ApiServer| {
            server.set_faults(move |facts| {
                let is_late = facts.resource.plural == late;
                if is_late { Fault::Fail(404) } else { Fault::None }
            });
        };
        let told = on_virtual_time(come_and_go(Steering::default(), missing, ApiServer::clear_faults)).unwrap();
        assert_eq!((told.claims_ever, told.nodes_ever), (PODS, PODS), "{late}");
    }
}

#[test]
fn objects_that_cannot_be_read_are_passed_by() {
    let told = on_virtual_time(come_and_go(
        Steering::default(),
        |server: &ApiServer| {
            let garbage = json!({"template": {"spec": {"requirements": "none", "nodeClassRef": 5}}});
            let pool = json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "a"},
                "spec": garbage});
            let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
                "metadata": {"name": "odd", "namespace": "odd"}, "spec": {"selector": []}});
            for object in [pool, budget] {
                server.create(object).unwrap();
            }
        },
        |_| {},
    ))
    .unwrap();
    assert_eq!((told.claims_ever, told.nodes_ever), (PODS, PODS));
}

#[test]
fn clock_that_jumps_moves_no_node_and_launches_go_on() {
    const HOUR: i64 = 3600;
    for ahead in [HOUR, -HOUR] {
        on_virtual_time(async {
            let mut world = World::new(Steering::default());
            world.add_pool("default");
            let mut life = Life::begin(&world);
            world.add_workload("web", PODS as u64);
            let running = life.until(&world, 20 * MINUTE, |world| not_running(world, PODS));
            running.await.unwrap();
            world.set_clock_ahead(ahead);
            life.pass(&world, 10 * MINUTE).await;
            assert_eq!(not_running(&world, PODS), Vec::<String>::new(), "{ahead} s ahead");
            world.add_workload("more", PODS as u64);
            let running = life.until(&world, 20 * MINUTE, |world| not_running(world, 2 * PODS));
            running.await.unwrap_or_else(|wrong| panic!("{ahead} s ahead: {wrong}"));
            world.set_clock_ahead(0);
            world.add_workload("again", PODS as u64);
            let running = life.until(&world, 20 * MINUTE, |world| not_running(world, 3 * PODS));
            running
                .await
                .unwrap_or_else(|wrong| panic!("{ahead} s ahead before: {wrong}"));
            let history = world.history();
            assert_eq!(ever(&history, "nodes"), 3 * PODS, "{ahead} s ahead");
            assert_eq!(violations(&history), Vec::<String>::new(), "{ahead} s ahead");
        });
    }
}

#[test]
fn store_that_is_set_back_is_believed_and_nothing_is_wedged() {
    on_virtual_time(async {
        let world = World::new(Steering::default());
        world.add_pool("default");
        let mut life = Life::begin(&world);
        world.add_workload("web", PODS as u64);
        life.until(&world, 20 * MINUTE, |world| not_running(world, PODS))
            .await
            .unwrap();
        let backup = world.server.backup();
        world.add_workload("more", PODS as u64);
        life.until(&world, 20 * MINUTE, |world| not_running(world, 2 * PODS))
            .await
            .unwrap();
        // A day's work, so that the versions are far apart.
        for _ in 0..500 {
            world.server.update("NodePool", "default", |_| {}).unwrap();
        }
        world.server.restore(&backup);
        life.until(&world, 10 * MINUTE, |world| not_running(world, PODS))
            .await
            .unwrap();
        world.add_workload("again", PODS as u64);
        life.until(&world, 10 * MINUTE, |world| not_running(world, 2 * PODS))
            .await
            .unwrap();
        world.server.delete("NodePool", "default").unwrap();
        life.until(&world, 30 * MINUTE, left_over).await.unwrap();
    });
}
