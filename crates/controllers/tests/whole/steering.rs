//! Do pods land where they were planned, as far as each setting of `--steering` takes them there? And does nobody stay
//! behind because of it?

use std::time::Duration;

use runtime::settings::Steering;
use serde_json::{Value, json};

use crate::{
    invariant::not_running,
    life::Life,
    world::{MINUTE, World, on_virtual_time, text},
};

/// What came of a workload.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Landed {
    planned: f64,
    elsewhere: f64,
    nominations: f64,
    bindings: f64,
    nodes: usize,
}

/// Shapes that only pay together: processors here, memory there. Least-allocated scoring mixes them otherwise.
const SHAPES: [(&str, u64, &str, &str); 4] = [
    ("cpu", 12, "1500m", "512Mi"),
    ("memory", 12, "250m", "6Gi"),
    ("large", 4, "4", "8Gi"),
    ("small", 20, "250m", "512Mi"),
];

async fn landed(steering: Steering) -> Landed {
    let world = World::new(steering);
    world.add_pool("default");
    let mut life = Life::begin(&world);
    let mut pods = 0;
    for (name, replicas, cpu, memory) in SHAPES {
        world.add_shape(name, replicas, cpu, memory);
        pods += usize::try_from(replicas).unwrap();
    }
    life.until(&world, 10 * MINUTE, |world| not_running(world, pods))
        .await
        .unwrap();
    let landed = |place: &str| {
        world
            .metrics
            .steering_pods_landed_total
            .value([steering.as_str(), place])
    };
    let written = |kind: &str| world.metrics.steering_writes_total.value([kind, "done"]);
    Landed {
        planned: landed("planned"),
        elsewhere: landed("elsewhere"),
        nominations: written("nomination"),
        bindings: written("binding"),
        nodes: world.nodes().len(),
    }
}

#[test]
fn each_setting_takes_pods_closer_to_where_they_were_planned() {
    let [off, release, nominate, pin] = [Steering::Off, Steering::Release, Steering::Nominate, Steering::Pin]
        .map(|steering| on_virtual_time(landed(steering)));
    println!("{off:?}\n{release:?}\n{nominate:?}\n{pin:?}");
    assert_eq!((off.nominations, off.bindings, release.nominations), (0.0, 0.0, 0.0));
    assert!(release.planned >= off.planned, "{release:?} {off:?}");
    assert!(nominate.planned >= release.planned, "{nominate:?} {release:?}");
    assert!(nominate.nodes <= release.nodes, "{nominate:?} {release:?}");
    assert_eq!(
        (pin.elsewhere, pin.nominations, pin.bindings),
        (0.0, 0.0, pin.planned),
        "{pin:?}"
    );
}

/// A pod that kube-scheduler found no place for.
fn unschedulable(name: &str, status: &Value) -> Value {
    let condition = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable"});
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
        "status": {"phase": "Pending", "conditions": [condition]},
    });
    for (key, value) in status.as_object().unwrap() {
        pod["status"][key] = value.clone();
    }
    pod
}

#[test]
fn a_nomination_that_nobody_honours_is_withdrawn_and_the_pod_gets_a_node() {
    on_virtual_time(async {
        let world = World::new(Steering::Nominate);
        world.add_pool("default");
        world
            .server
            .create(unschedulable("web", &json!({"nominatedNodeName": "gone"})))
            .unwrap();
        let mut life = Life::begin(&world);
        life.pass(&world, Duration::from_secs(15)).await;
        assert_eq!(world.claims().len(), 0, "it may yet be honoured");
        life.until(&world, 2 * MINUTE, |world| not_running(world, 1))
            .await
            .unwrap();
        assert_eq!(text(&world.pods()[0], "/status/nominatedNodeName"), "");
    });
}
