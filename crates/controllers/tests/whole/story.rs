//! A life of a fleet: pods come, nodes come for them, the pool goes, nodes go.

use runtime::settings::Steering;
use simulator::ApiServer;

use crate::{
    invariant::{ever, left_over, not_running, violations},
    life::Life,
    world::{MINUTE, World, on_virtual_time},
};

pub(crate) const PODS: usize = 2;

/// What a story came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) deaths: usize,
    pub(crate) claims_ever: usize,
    pub(crate) nodes_ever: usize,
}

/// Two pods that may not share a node come, run, and their pool is deleted. `trouble` begins with the pods.
pub(crate) async fn come_and_go(
    steering: Steering,
    trouble: impl FnOnce(&ApiServer),
    calm: impl Fn(&ApiServer),
) -> Result<Told, String> {
    let mut world = World::new(steering);
    world.add_pool("default");
    trouble(&world.server);
    let mut life = Life::begin(&world);
    world.add_workload("web", PODS as u64);
    life.pass(&world, 2 * MINUTE).await;
    calm(&world.server);
    let launched = life.until(&world, 20 * MINUTE, |world| not_running(world, PODS)).await;
    launched.map_err(|wrong| format!("launching: {wrong}"))?;
    let stays = life.pass(&world, 5 * MINUTE);
    stays.await;
    let wrong = not_running(&world, PODS);
    if !wrong.is_empty() {
        return Err(format!("five minutes after all was well: {}", wrong.join("; ")));
    }
    world.server.delete("NodePool", "default").unwrap();
    let gone = life.until(&world, 30 * MINUTE, left_over).await;
    gone.map_err(|wrong| format!("removing: {wrong}"))?;
    life.pass(&world, 5 * MINUTE).await;
    let history = world.history();
    let wrong = violations(&history);
    if !wrong.is_empty() || !left_over(&world).is_empty() {
        return Err(format!(
            "on the way: {}; left: {:?}",
            wrong.join("; "),
            left_over(&world)
        ));
    }
    Ok(Told {
        deaths: life.deaths,
        claims_ever: ever(&history, "nodeclaims"),
        nodes_ever: ever(&history, "nodes"),
    })
}

#[test]
fn pods_get_nodes_and_a_deleted_pool_takes_its_nodes_with_it() {
    for steering in [Steering::Off, Steering::Release, Steering::Nominate, Steering::Pin] {
        let told = on_virtual_time(come_and_go(steering, |_| {}, |_| {}));
        let expected = Told {
            deaths: 0,
            claims_ever: PODS,
            nodes_ever: PODS,
        };
        assert_eq!(told, Ok(expected), "{steering:?}");
    }
}
