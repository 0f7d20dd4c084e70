//! Room that buffers keep.

use std::time::Duration;

use serde_json::{Value, json};

use crate::world::World;

fn buffer(world: &World, spec: &Value) {
    let shape = json!({ "spec": { "containers": [{ "name": "c", "resources": { "requests": { "cpu": "2" } } }] } });
    world.create(json!({ "apiVersion": "v1", "kind": "PodTemplate",
        "metadata": { "name": "shape", "namespace": "default", "generation": 1 }, "template": shape }));
    world.create(
        json!({ "apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer",
        "metadata": { "name": "b", "namespace": "default", "generation": 1 }, "spec": spec }),
    );
}

/// Reasons of the conditions of the buffer, by type.
fn reason(world: &World, kind: &str) -> Option<String> {
    let buffer = world.server.get("CapacityBuffer", "default/b")?;
    let conditions = buffer["status"]["conditions"].as_array()?.clone();
    let condition = conditions.iter().find(|it| it["type"] == kind)?;
    condition["reason"].as_str().map(ToOwned::to_owned)
}

#[tokio::test(start_paused = true)]
async fn buffer_gets_room_and_says_so() {
    let mut world = World::new();
    world.pool("p", &json!({}));
    world.launch_after(Duration::from_secs(20));
    buffer(&world, &json!({ "podTemplateRef": { "name": "shape" }, "replicas": 4 }));
    world.start();
    world.until("room", |world| !world.claims().is_empty()).await;
    world
        .until("asked for", |world| {
            reason(world, "Provisioning").as_deref() == Some("RequiresNewCapacity")
        })
        .await;
    assert_eq!(reason(&world, "ReadyForProvisioning").as_deref(), Some("Resolved"));
    let claims = world.claims().len();
    world
        .until("there", |world| {
            reason(world, "Provisioning").as_deref() == Some("FitsExistingCapacity")
        })
        .await;
    assert_eq!(world.claims().len(), claims);
    let status = world.server.get("CapacityBuffer", "default/b").unwrap()["status"].clone();
    assert_eq!(
        (&status["replicas"], &status["podTemplateRef"]["name"]),
        (&json!(4), &json!("shape"))
    );
    let writes = world.server.writes();
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!(world.server.writes(), writes, "nothing is said twice");
}

#[tokio::test(start_paused = true)]
async fn buffer_without_its_template_says_what_is_missing() {
    let mut world = World::new();
    world.pool("p", &json!({}));
    buffer(&world, &json!({ "podTemplateRef": { "name": "gone" }, "replicas": 4 }));
    world.start();
    let is = |world: &World, kind: &str, expected: &str| reason(world, kind).as_deref() == Some(expected);
    world
        .until("said", |world| is(world, "ReadyForProvisioning", "PodTemplateNotFound"))
        .await;
    world
        .until("said", |world| is(world, "Provisioning", "NotReadyForProvisioning"))
        .await;
    assert_eq!(world.claims().len(), 0);
}
