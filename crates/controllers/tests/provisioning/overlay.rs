//! Overlays hear whether they are in force, and plans follow them.

use serde_json::{Value, json};

use crate::world::World;

fn overlay(world: &World, name: &str, spec: &Value) {
    world.create(json!({
        "apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay", "metadata": { "name": name, "generation": 1 }, "spec": spec,
    }));
}

fn on(key: &str, value: &str) -> Value {
    json!([{ "key": key, "operator": "In", "values": [value] }])
}

/// Status and reason of the condition of an overlay.
fn verdict(world: &World, name: &str) -> Option<(String, String)> {
    let overlay = world.server.get("NodeOverlay", name)?;
    let conditions = overlay["status"]["conditions"].as_array()?.clone();
    let condition = conditions.iter().find(|it| it["type"] == "ValidationSucceeded")?;
    let text = |key: &str| condition[key].as_str().unwrap().to_owned();
    Some((text("status"), text("reason")))
}

#[tokio::test(start_paused = true)]
async fn overlays_hear_whether_they_are_in_force() {
    let mut world = World::new();
    world.pool("p", &json!({}));
    let price = json!({ "requirements": on("node.kubernetes.io/instance-type", "small"), "price": "0.5", "weight": 1 });
    overlay(&world, "b", &price);
    overlay(&world, "a", &price);
    overlay(
        &world,
        "c",
        &json!({ "requirements": on("karpenter.sh/nodepool", "p"), "capacity": { "cpu": "2" } }),
    );
    world.start();
    let expected = [
        ("a", "False", "Conflict"),
        ("b", "True", "ValidationSucceeded"),
        ("c", "False", "RuntimeValidation"),
    ];
    let is = |world: &World, (name, status, reason): &(&str, &str, &str)| {
        verdict(world, name) == Some(((*status).to_owned(), (*reason).to_owned()))
    };
    world
        .until("verdicts", |world| expected.iter().all(|it| is(world, it)))
        .await;
    let writes = world.server.writes();
    tokio::time::sleep(std::time::Duration::from_hours(13)).await;
    assert_eq!(world.server.writes(), writes, "nothing is said twice");
}

#[tokio::test(start_paused = true)]
async fn claim_follows_the_price_an_overlay_gives() {
    let mut world = World::new();
    world.pool("p", &json!({}));
    let price = json!({ "requirements": on("node.kubernetes.io/instance-type", "large"), "price": "0.1" });
    overlay(&world, "cheap-large", &price);
    world.start();
    for at in 0..4 {
        world.pending(&format!("web-{at}"), 2);
    }
    world.until("a claim", |world| !world.claims().is_empty()).await;
    let claims = world.claims();
    assert_eq!(claims.len(), 1, "one large is cheaper than four small now");
    assert_eq!(
        claims[0]["metadata"]["annotations"]["karpenter.sh/price-overlay-applied"],
        "true"
    );
}
