//! A process that dies around a launch, and the one that comes after it.

use std::{sync::Arc, time::Duration};

use cloud::CloudProvider;
use model::object::{Condition, ConditionStatus, NodeClaim};
use simulator::Fault;

use crate::{
    AT_ONCE, SLOW,
    world::{World, claim, token},
};

fn condition(kind: &str) -> Condition {
    Condition {
        kind: kind.into(),
        status: ConditionStatus::True,
        last_transition_time: Some("2026-01-01T00:00:00Z".parse().unwrap()),
        ..Condition::default()
    }
}

fn recorded(claim: &NodeClaim, provider_id: &str, conditions: Vec<Condition>) -> Arc<NodeClaim> {
    let mut claim = claim.clone();
    claim.status.provider_id = Some(provider_id.into());
    claim.status.conditions = conditions.into();
    Arc::new(claim)
}

#[tokio::test(start_paused = true)]
async fn a_launch_that_a_crash_cut_short_is_the_same_launch_for_the_next_process() {
    for fault in [Fault::CrashBefore, Fault::CrashAfter] {
        let world = Arc::new(World::new(AT_ONCE));
        let claim = claim("a", "2026-01-01T00:00:00Z".parse().unwrap());
        world.fail_creations([fault]);
        let (dying, asked) = (Arc::clone(&world), claim.clone());
        let call = tokio::spawn(async move { dying.cloud.create(&asked, &token(&asked, 1)).await });
        world.server.crashed().await;
        call.abort();
        let launched = world.process().create(&claim, &token(&claim, 1)).await.unwrap();
        let expected = launched.provider_id.strip_prefix("kwok://").unwrap();
        assert_eq!(world.nodes(), [expected], "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_had_not_joined_when_its_process_died_joins_at_its_time() {
    let world = World::new(SLOW);
    let claim = claim("a", "2026-01-01T00:00:00Z".parse().unwrap());
    let launched = world.process().create(&claim, &token(&claim, 1)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    let next = world.process();
    next.resume(&[recorded(&claim, &launched.provider_id, vec![condition("Launched")])])
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_secs(19)).await;
    assert_eq!(world.nodes(), [""; 0]);
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(world.nodes(), [launched.provider_id.strip_prefix("kwok://").unwrap()]);
}

#[tokio::test(start_paused = true)]
async fn only_machines_that_are_still_to_join_are_taken_up() {
    let world = World::new(AT_ONCE);
    let claim = claim("a", "2026-01-01T00:00:00Z".parse().unwrap());
    let registered = recorded(
        &claim,
        "kwok://gone",
        vec![condition("Launched"), condition("Registered")],
    );
    let mut deleting = recorded(&claim, "kwok://ending", vec![condition("Launched")]);
    Arc::make_mut(&mut deleting).metadata.deletion_timestamp = Some("2026-01-01T00:00:00Z".parse().unwrap());
    let unlaunched = Arc::new(claim);
    world.cloud.resume(&[registered, deleting, unlaunched]).await.unwrap();
    tokio::time::sleep(SLOW).await;
    assert_eq!(world.nodes(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_could_not_be_created_is_tried_again_until_it_is() {
    let world = World::new(SLOW);
    let claim = claim("a", "2026-01-01T00:00:00Z".parse().unwrap());
    world.fail_creations([Fault::Fail(500); 12]);
    world.cloud.create(&claim, &token(&claim, 1)).await.unwrap();
    tokio::time::sleep(SLOW + Duration::from_mins(2)).await;
    assert_eq!(world.nodes().len(), 1);
}
