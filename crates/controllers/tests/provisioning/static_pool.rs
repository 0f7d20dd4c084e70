//! Pools with a fixed number of nodes.

use std::time::Duration;

use serde_json::{Value, json};

use crate::world::World;

fn staying(world: &World) -> usize {
    let claims = world.claims();
    let stays = |claim: &&Value| claim["metadata"]["deletionTimestamp"].is_null();
    claims.iter().filter(stays).count()
}

#[tokio::test(start_paused = true)]
async fn static_pool_has_as_many_claims_as_it_asks_for() {
    let mut world = World::new();
    world.pool("fixed", &json!({ "replicas": 3 }));
    world.launch_after(Duration::from_secs(5));
    world.start();
    world.until("three claims", |world| world.claims().len() == 3).await;
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert_eq!(staying(&world), 3);
    let claim = &world.claims()[0];
    let one = |key: &str, value: &str| json!({ "key": key, "operator": "In", "values": [value] });
    let expected = [
        one("karpenter.kwok.sh/kwoknodeclass", "default"),
        one("karpenter.sh/nodepool", "fixed"),
    ];
    assert_eq!(claim["spec"]["requirements"], json!(expected));
    assert!(claim["spec"]["resources"].is_null());
    assert!(claim["metadata"]["annotations"]["karpenter.sh/nodeclaim-min-values-relaxed"].is_null());
    world.pending("web", 1);
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(staying(&world), 3, "pods do not make a static pool grow");
}

#[tokio::test(start_paused = true)]
async fn static_pool_shrinks_to_what_it_asks_for() {
    let mut world = World::new();
    world.pool("fixed", &json!({ "replicas": 4 }));
    world.launch_after(Duration::from_secs(5));
    world.start();
    world.until("four claims", |world| world.claims().len() == 4).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    let shrink = |pool: &mut Value| pool["spec"]["replicas"] = json!(1);
    world.server.update("NodePool", "fixed", shrink).unwrap();
    world.until("one claim", |world| staying(world) == 1).await;
    tokio::time::sleep(Duration::from_mins(3)).await;
    assert_eq!(staying(&world), 1);
}

#[tokio::test(start_paused = true)]
async fn static_pool_does_not_outgrow_its_limit_on_nodes() {
    let mut world = World::new();
    world.pool("fixed", &json!({ "replicas": 5, "limits": { "nodes": "2" } }));
    world.launch_after(Duration::from_secs(5));
    world.start();
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_eq!(staying(&world), 2);
    let raise = |pool: &mut Value| pool["spec"]["limits"]["nodes"] = json!("4");
    world.server.update("NodePool", "fixed", raise).unwrap();
    world.until("four claims", |world| staying(world) == 4).await;
}

#[tokio::test(start_paused = true)]
async fn claim_that_goes_is_replaced() {
    let mut world = World::new();
    world.pool("fixed", &json!({ "replicas": 2 }));
    world.launch_after(Duration::from_secs(5));
    world.start();
    world.until("two claims", |world| world.claims().len() == 2).await;
    let name = world.claims()[0]["metadata"]["name"].as_str().unwrap().to_owned();
    world.remove_claim(&name);
    world.until("two claims again", |world| staying(world) == 2).await;
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert_eq!(staying(&world), 2);
    assert!(
        world.server.get("NodeClaim", &name).is_none(),
        "{name} is somebody else"
    );
}
