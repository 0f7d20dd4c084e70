//! Interruptions: from EventBridge through the queue to a notice.

use std::time::Duration;

use cloud::{NoticeKind, conformance::Harness};
use cloud_aws::Machines;
use serde_json::{Value, json};

use crate::world::World;

async fn send(world: &World, url: &str, body: &str) {
    world
        .clients
        .sqs
        .send_message()
        .queue_url(url)
        .message_body(body)
        .send()
        .await
        .unwrap();
}

async fn queue(world: &World, name: &str) -> String {
    let answer = world.clients.sqs.create_queue().queue_name(name).send().await.unwrap();
    answer.queue_url().unwrap().to_owned()
}

/// How many messages the queue holds, seen or not.
async fn held(world: &World, url: &str) -> u32 {
    use aws_sdk_sqs::types::QueueAttributeName::{
        ApproximateNumberOfMessages as Waiting, ApproximateNumberOfMessagesNotVisible as Hidden,
    };
    let request = world.clients.sqs.get_queue_attributes().queue_url(url);
    let answer = request
        .attribute_names(Waiting)
        .attribute_names(Hidden)
        .send()
        .await
        .unwrap();
    let attributes = answer.attributes().cloned().unwrap_or_default();
    attributes.values().map(|count| count.parse::<u32>().unwrap()).sum()
}

fn event(detail_type: &str, detail: Value) -> String {
    json!({"version": "0", "source": "aws.ec2", "detail-type": detail_type, "time": "2026-11-17T10:00:00Z", "detail": detail})
        .to_string()
}

#[tokio::test]
async fn messages_become_notices_that_stay_until_they_are_acknowledged() {
    let world = World::with_queue("us-west-1", "interruptions").await;
    let url = queue(&world, "interruptions").await;
    send(
        &world,
        &url,
        &event("EC2 Spot Instance Interruption Warning", json!({"instance-id": "i-1"})),
    )
    .await;
    send(&world, &url, "not an event").await;
    send(
        &world,
        &url,
        &event(
            "EC2 Instance State-change Notification",
            json!({"instance-id": "i-2", "state": "running"}),
        ),
    )
    .await;
    let machines = &world.provider.machines;
    let mut notices = Vec::new();
    while notices.is_empty() || held(&world, &url).await > 1 {
        notices.extend(machines.notices().await.unwrap());
    }
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert_eq!(notices[0].kind, NoticeKind::SpotInterruption);
    assert_eq!(notices[0].deadline, "2026-11-17T10:02:00Z".parse().ok());
    assert!(notices[0].is_about(&"aws:///us-west-1a/i-1".into()));
    assert_eq!(
        held(&world, &url).await,
        1,
        "what says nothing is gone, what is not acted on is not"
    );
    machines.acknowledge(&notices[0]).await.unwrap();
    assert_eq!(held(&world, &url).await, 0);
}

#[tokio::test]
async fn a_message_that_cannot_be_deleted_holds_no_notice_up() {
    let world = World::with_queue("us-east-1", "stuck").await;
    let url = queue(&world, "stuck").await;
    let cut = json!({"DeleteMessageBatch": {"code": "InternalError"}});
    world.control("api-errors", &cut).await;
    send(&world, &url, "not an event").await;
    let warning = event("EC2 Spot Instance Interruption Warning", json!({"instance-id": "i-1"}));
    send(&world, &url, &warning).await;
    let mut notices = Vec::new();
    while notices.is_empty() {
        notices = world.provider.machines.notices().await.unwrap();
    }
    assert_eq!(notices[0].kind, NoticeKind::SpotInterruption);
}

#[tokio::test]
async fn a_full_queue_is_read_many_at_a_time() {
    let world = World::with_queue("us-gov-west-1", "full").await;
    let url = queue(&world, "full").await;
    for number in 0..45 {
        let detail = json!({"instance-id": format!("i-{number}")});
        send(&world, &url, &event("EC2 Spot Instance Interruption Warning", detail)).await;
    }
    let notices = world.provider.machines.notices().await.unwrap();
    assert!(notices.len() > 10, "one poll holds ten, {} came", notices.len());
}

#[tokio::test]
async fn a_queue_that_is_not_there_is_an_error_and_not_the_end() {
    let world = World::with_queue("us-gov-east-1", "missing").await;
    assert!(world.provider.machines.notices().await.is_err());
    queue(&world, "missing").await;
    let waiting = world.provider.machines.notices();
    assert!(
        tokio::time::timeout(Duration::from_secs(1), waiting).await.is_err(),
        "it waits for messages now"
    );
}

#[tokio::test]
async fn a_machine_that_ec2_finds_impaired_is_told() {
    let world = World::new("ap-southeast-1").await;
    let since = "2026-11-17T09:00:00Z";
    let detail = json!({"Name": "reachability", "Status": "failed", "ImpairedSince": since});
    let status = json!({"i-1": {"SystemStatus": {"Status": "impaired", "Details": [detail]}}});
    world.control("instance-status", &status).await;
    let machines = &world.provider.machines;
    let notices = tokio::select! {
        () = machines.run() => panic!("it goes on for ever"),
        notices = machines.notices() => notices.unwrap(),
    };
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert_eq!(notices[0].kind, NoticeKind::Impaired);
    assert!(Harness::now(&world) >= notices[0].at);
    machines.acknowledge(&notices[0]).await.unwrap();
}
