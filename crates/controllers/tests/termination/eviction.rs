//! The eviction queue on its own: it forgets nobody, and keeps nobody for ever.

use std::{sync::Arc, time::Duration};

use controllers::node::{Evictions, eviction::Order};
use model::object::Pod;
use runtime::Settings;
use serde_json::{Value, json};

use super::world::World;

/// A cluster in which only the queue runs.
fn queue(world: &mut World) -> Arc<Evictions> {
    let evictions = Arc::new(Evictions::new(&Settings::default()));
    let mine = Arc::clone(&evictions);
    world.start_with(move |cluster| Evictions::run(&mine, cluster));
    evictions
}

fn pod(world: &World, name: &str) -> Arc<Pod> {
    let pod = world.server.get("Pod", &format!("default/{name}")).unwrap();
    Arc::new(serde_json::from_value(pod).unwrap())
}

#[tokio::test(start_paused = true)]
async fn pod_of_a_node_that_is_gone_is_dropped_when_a_budget_holds_it_and_can_be_added_again() {
    let mut world = World::new();
    world.pod("web", "no-such-node", &json!({}));
    world.budget("hold", "web", 0);
    let evictions = queue(&mut world);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let web = pod(&world, "web");
    for round in 1..=2 {
        evictions.add(&[Arc::clone(&web)], Order::ForceDelete(None), world.now());
        assert!(evictions.has(&web));
        world.until("dropped", |_| !evictions.has(&web)).await;
        assert_eq!(world.refusals("web", 429), round);
    }
}

#[tokio::test(start_paused = true)]
async fn pod_that_was_replaced_by_another_of_its_name_is_left_alone() {
    let mut world = World::new();
    world.lone_node("n");
    world.pod("web", "n", &json!({}));
    let evictions = queue(&mut world);
    let old = pod(&world, "web");
    world.server.delete_now("Pod", "default/web").unwrap();
    world.pod("web", "n", &json!({}));
    tokio::time::sleep(Duration::from_secs(1)).await;
    evictions.add(&[Arc::clone(&old)], Order::ForceDelete(None), world.now());
    world.until("dropped", |_| !evictions.has(&old)).await;
    assert_eq!(world.evicted(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn pod_still_there_at_a_timeout_is_left_alone() {
    let mut world = World::new();
    world.lone_node("n");
    world.pod(
        "web",
        "n",
        &json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}}),
    );
    let evictions = queue(&mut world);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let web = pod(&world, "web");
    let deadline = world.now() + jiff::SignedDuration::from_secs(30);
    evictions.add(&[Arc::clone(&web)], Order::Timeout(deadline), world.now());
    world.until("dropped", |_| !evictions.has(&web)).await;
    assert!(world.now() > deadline);
    let pod = world.server.get("Pod", "default/web").unwrap();
    assert_eq!(pod["metadata"]["deletionTimestamp"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn pod_that_loses_its_protection_goes_at_once() {
    let mut world = World::new();
    world.lone_node("n");
    world.pod(
        "web",
        "n",
        &json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}}),
    );
    let evictions = queue(&mut world);
    tokio::time::sleep(Duration::from_secs(1)).await;
    evictions.add(&[pod(&world, "web")], Order::ForceDelete(None), world.now());
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(world.evicted(), Vec::<String>::new());
    let freed = world.now();
    let free = |pod: &mut Value| pod["metadata"]["annotations"] = json!({});
    world.server.update("Pod", "default/web", free).unwrap();
    world.until("evicted", |_| world.evicted() == ["web"]).await;
    assert!(world.now().duration_since(freed).as_millis() < 1000);
}

#[tokio::test(start_paused = true)]
async fn server_in_trouble_is_asked_again_with_patience() {
    let mut world = World::new();
    world.lone_node("n");
    world.pod("web", "n", &json!({}));
    let evictions = queue(&mut world);
    tokio::time::sleep(Duration::from_secs(1)).await;
    world.server.set_faults(|request| match request.subresource.as_str() {
        "eviction" => simulator::Fault::Fail(500),
        _ => simulator::Fault::None,
    });
    let web = pod(&world, "web");
    evictions.add(&[Arc::clone(&web)], Order::ForceDelete(None), world.now());
    tokio::time::sleep(Duration::from_secs(30)).await;
    let asked = world.refusals("web", 500);
    assert!((5..=12).contains(&asked), "asked {asked} times in 30 s");
    assert!(evictions.has(&web));
    world.server.clear_faults();
    world.until("evicted", |_| world.evicted() == ["web"]).await;
}
