//! What is protected stays, for as long as it is protected.

use serde_json::{Value, json};

use crate::{
    drift::{never, outdate, outdated},
    world::{MINUTE, World, on_virtual_time, text, uids},
};

/// An outdated node stays while it is held, with its pod, and is renewed once it is not.
fn stays_until(hold: impl Fn(&World), release: impl Fn(&World), why: Option<&str>) {
    on_virtual_time(async {
        let world = World::new(&never());
        let mut life = world.with_lonely(1).await;
        let pods = uids(&world.pods());
        hold(&world);
        outdate(&world);
        life.pass(&world, 30 * MINUTE).await;
        assert_eq!(uids(&world.pods()), pods, "its pod was moved");
        assert_eq!(world.unsettled(1, 1), Vec::<String>::new());
        if let Some(why) = why {
            let said = world.said();
            let blocked = |(reason, message): &(String, String)| reason == "DisruptionBlocked" && message == why;
            assert!(said.iter().any(blocked), "{why} is not among {said:#?}");
        }
        release(&world);
        let renewed = life.until(&world, 10 * MINUTE, |world| outdated(world, 1, 1));
        renewed.await.unwrap();
    });
}

fn annotate(world: &World, annotation: &Value) {
    for pod in world.pods() {
        let key = format!("default/{}", text(&pod, "/metadata/name"));
        let change =
            |pod: &mut Value| pod["metadata"]["annotations"]["karpenter.sh/do-not-disrupt"] = annotation.clone();
        world.server.update("Pod", &key, change).unwrap();
    }
}

#[test]
fn a_budget_of_pods_that_allows_none_holds_a_node() {
    stays_until(
        |world| {
            let budget = json!({
                "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
                "metadata": {"name": "web", "namespace": "default"},
                "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "web"}}},
            });
            world.server.create(budget).unwrap();
        },
        |world| world.server.delete("PodDisruptionBudget", "default/web").unwrap(),
        Some("Pdb prevents pod evictions (PodDisruptionBudget=[default/web])"),
    );
}

#[test]
fn a_pod_that_must_not_be_disrupted_holds_a_node() {
    stays_until(
        |world| annotate(world, &json!("true")),
        |world| annotate(world, &json!("false")),
        None,
    );
}

/// What was said of the only pod, as reasons of events.
fn said_of_pods(world: &World) -> Vec<String> {
    let said = world.said().into_iter().map(|(reason, _)| reason);
    said.filter(|reason| reason.contains("DoNotDisrupt")).collect()
}

#[test]
fn a_pod_that_is_protected_for_a_while_holds_its_node_for_that_while_and_says_so() {
    on_virtual_time(async {
        let world = World::new(&never());
        let mut life = world.with_lonely(1).await;
        annotate(&world, &json!("30m"));
        outdate(&world);
        life.pass(&world, 20 * MINUTE).await;
        assert_eq!(world.unsettled(1, 1), Vec::<String>::new());
        let said = said_of_pods(&world);
        assert!(
            !said.is_empty() && said.iter().all(|reason| reason == "DoNotDisruptUntil"),
            "{said:?}"
        );
        let renewed = life.until(&world, 20 * MINUTE, |world| outdated(world, 1, 1));
        renewed.await.unwrap();
        let said = said_of_pods(&world);
        assert!(said.contains(&"DoNotDisruptGracePeriodElapsed".to_owned()), "{said:?}");
    });
}

#[test]
fn a_protection_nobody_can_read_protects_nothing_and_is_complained_of() {
    on_virtual_time(async {
        let world = World::new(&never());
        let mut life = world.with_lonely(1).await;
        annotate(&world, &json!("soon"));
        outdate(&world);
        let renewed = life.until(&world, 10 * MINUTE, |world| outdated(world, 1, 1));
        renewed.await.unwrap();
        let said = world.said();
        let complaint = "Invalid karpenter.sh/do-not-disrupt annotation: failed to parse \"soon\" as a duration: ";
        let complains = |(reason, message): &(String, String)| {
            reason == "InvalidDoNotDisruptAnnotation" && message.starts_with(complaint)
        };
        assert!(said.iter().any(complains), "{said:#?}");
    });
}

#[test]
fn a_budget_of_the_pool_that_allows_none_holds_a_node() {
    stays_until(
        |world| world.change_pool(|pool| pool["spec"]["disruption"]["budgets"] = json!([{"nodes": "0"}])),
        |world| world.change_pool(|pool| pool["spec"]["disruption"]["budgets"] = json!([{"nodes": "1"}])),
        Some("No allowed disruptions for disruption reason Drifted due to blocking budget"),
    );
}

#[test]
fn a_pause_holds_a_node_and_pods_that_come_get_nodes_all_the_same() {
    stays_until(
        |world| {
            let pause = json!({"dovetail.dev/pause": "until-resumed", "dovetail.dev/pause-reason": "a sale"});
            world.change_pool(|pool| pool["metadata"]["annotations"] = pause);
        },
        |world| world.change_pool(|pool| pool["metadata"]["annotations"] = json!({})),
        None,
    );
    on_virtual_time(async {
        let world = World::new(&never());
        world.change_pool(|pool| pool["metadata"]["annotations"] = json!({"dovetail.dev/pause": "until-resumed"}));
        world.with_lonely(2).await;
    });
}
