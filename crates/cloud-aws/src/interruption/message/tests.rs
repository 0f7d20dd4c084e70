//! Which messages of the queue mean what for which machines?

#![allow(
    clippy::needless_pass_by_value,
    clippy::redundant_closure_for_method_calls,
    reason = "a test's helpers are called with literals, and the SDK's paths are longer than its calls"
)]

use std::{collections::BTreeMap, time::Instant};

use model::object::ProviderId;
use serde_json::json;

use super::*;

fn at() -> Timestamp {
    "2026-11-17T10:00:00Z".parse().unwrap()
}

fn event(source: &str, detail_type: &str, detail: Value) -> String {
    let event = json!({
        "version": "0", "id": "7bf73129", "source": source, "detail-type": detail_type, "account": "123456789012",
        "time": "2026-11-17T10:00:00Z", "region": "us-west-2", "resources": [], "detail": detail,
    });
    event.to_string()
}

fn notice(body: &str) -> Option<Notice> {
    read(body, "receipt", at()).unwrap()
}

fn kind_and_machines(body: &str) -> Option<(NoticeKind, Vec<String>)> {
    notice(body).map(|it| (it.kind, it.machines.iter().map(ToString::to_string).collect()))
}

#[test]
fn every_kind_of_message_names_its_machines() {
    let one = |kind| Some((kind, vec!["i-1".to_owned()]));
    let instance = json!({"instance-id": "i-1", "instance-action": "terminate"});
    let cases = [
        (
            event("aws.ec2", "EC2 Spot Instance Interruption Warning", instance.clone()),
            one(NoticeKind::SpotInterruption),
        ),
        (
            event("aws.ec2", "EC2 Instance Rebalance Recommendation", instance.clone()),
            one(NoticeKind::Rebalance),
        ),
        (
            event(
                "aws.ec2",
                "EC2 Capacity Reservation Instance Interruption Warning",
                instance,
            ),
            one(NoticeKind::ReservationInterruption),
        ),
        (
            event(
                "aws.health",
                "AWS Health Event",
                json!({"service": "EC2", "eventTypeCategory": "scheduledChange",
                    "affectedEntities": [{"entityValue": "i-1"}, {"entityValue": "i-2"}]}),
            ),
            Some((NoticeKind::ScheduledChange, vec!["i-1".to_owned(), "i-2".to_owned()])),
        ),
    ];
    for (body, expected) in cases {
        assert_eq!(kind_and_machines(&body), expected, "{body}");
    }
}

#[test]
fn a_change_of_state_counts_when_the_machine_goes() {
    let states = [
        ("pending", None),
        ("running", None),
        ("stopping", Some(NoticeKind::Stopping)),
        ("stopped", Some(NoticeKind::Stopping)),
        ("Shutting-Down", Some(NoticeKind::Terminating)),
        ("terminated", Some(NoticeKind::Terminating)),
        ("unheard-of", None),
    ];
    for (state, expected) in states {
        let detail = json!({"instance-id": "i-1", "state": state});
        let body = event("aws.ec2", "EC2 Instance State-change Notification", detail);
        assert_eq!(notice(&body).map(|it| it.kind), expected, "{state}");
    }
}

#[test]
fn what_is_about_nothing_of_ours_says_nothing() {
    let instance = json!({"instance-id": "i-1"});
    let health = |service: &str, category: &str| json!({"service": service, "eventTypeCategory": category, "affectedEntities": []});
    let cases = [
        event("aws.ec2", "EBS Volume Notification", json!({})),
        event(
            "aws.autoscaling",
            "EC2 Spot Instance Interruption Warning",
            instance.clone(),
        ),
        event("aws.ec2", "EC2 Spot Instance Interruption Warning", instance)
            .replace("\"version\":\"0\"", "\"version\":\"1\""),
        event("aws.health", "AWS Health Event", health("RDS", "scheduledChange")),
        event("aws.health", "AWS Health Event", health("EC2", "issue")),
        "{}".to_owned(),
    ];
    for body in cases {
        assert_eq!(notice(&body), None, "{body}");
    }
}

#[test]
fn an_event_without_an_account_or_a_time_is_read_all_the_same() {
    let body = json!({
        "version": "0", "source": "aws.ec2", "detail-type": "EC2 Spot Instance Interruption Warning",
        "detail": {"instance-id": "i-1"},
    });
    let notice = notice(&body.to_string()).unwrap();
    assert_eq!((notice.at, &*notice.receipt), (at(), "receipt"));
    assert_eq!(notice.deadline, at().checked_add(SPOT_WARNING).ok());
}

#[test]
fn a_message_that_cannot_be_read_is_an_error() {
    let cases = [
        "not json".to_owned(),
        "3".to_owned(),
        event(
            "aws.ec2",
            "EC2 Spot Instance Interruption Warning",
            json!({"instance": "i-1"}),
        ),
        event("aws.ec2", "EC2 Spot Instance Interruption Warning", Value::Null),
        event("aws.health", "AWS Health Event", json!("x")),
    ];
    for body in cases {
        assert!(read(&body, "receipt", at()).is_err(), "{body}");
    }
}

/// The benchmark that issue 10 asks for, counted: `cargo test` prints its figure with `--nocapture`. That it finds every
/// machine is what the test holds it to; how fast it was depends on who shares the processor.
#[test]
#[expect(
    clippy::disallowed_methods,
    clippy::cast_precision_loss,
    reason = "the figure is printed, and nothing is decided by it"
)]
fn a_hundred_thousand_messages_are_read_and_matched_and_none_is_lost() {
    const MESSAGES: usize = 100_000;
    const MACHINES: usize = 10_000;
    let ids: Vec<String> = (0..MACHINES).map(|number| format!("i-{number:017x}")).collect();
    let index: BTreeMap<String, ProviderId> = ids
        .iter()
        .map(|id| (id.clone(), ProviderId::from(format!("aws:///us-west-2a/{id}").as_str())))
        .collect();
    let kinds = [
        ("EC2 Spot Instance Interruption Warning", json!({})),
        ("EC2 Instance Rebalance Recommendation", json!({})),
        ("EC2 Instance State-change Notification", json!({"state": "terminated"})),
    ];
    let bodies: Vec<String> = (0..MESSAGES)
        .map(|number| {
            let (detail_type, mut detail) = kinds[number % kinds.len()].clone();
            // Every tenth is about a machine of somebody else.
            let foreign = format!("i-f{number:016x}");
            detail["instance-id"] = if number % 10 == 0 {
                foreign.into()
            } else {
                ids[number % MACHINES].clone().into()
            };
            event("aws.ec2", detail_type, detail)
        })
        .collect();
    let began = Instant::now();
    let mut matched = 0;
    for body in &bodies {
        let notice = notice(body).unwrap();
        matched += notice.machines.iter().filter(|id| index.contains_key(&***id)).count();
    }
    let took = began.elapsed();
    assert_eq!(matched, MESSAGES * 9 / 10);
    eprintln!(
        "{MESSAGES} messages read and matched in {took:?}: {:.0} a second",
        MESSAGES as f64 / took.as_secs_f64()
    );
}
