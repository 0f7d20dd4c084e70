//! What does a message of the queue mean? An event of EventBridge in, a notice, nothing, or an error out.
//!
//! The queue is fed by rules that anybody may add to, so a message may be about anything.

use std::{borrow::Cow, time::Duration};

use cloud::{Notice, NoticeKind};
use jiff::Timestamp;
use model::object::Text;
use serde::Deserialize;
use serde_json::Value;

/// How long a spot instance is left after its warning.
const SPOT_WARNING: Duration = Duration::from_mins(2);

/// An event's envelope. `account` and the rest are not asked for: not every sender fills them in.
#[derive(Debug, Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    version: Cow<'a, str>,
    #[serde(borrow, default)]
    source: Cow<'a, str>,
    #[serde(borrow, rename = "detail-type", default)]
    detail_type: Cow<'a, str>,
    #[serde(default)]
    time: Option<Timestamp>,
    #[serde(default)]
    detail: Value,
}

/// The detail of every event of EC2 that we know.
#[derive(Debug, Deserialize)]
struct OfInstance<'a> {
    #[serde(borrow, rename = "instance-id")]
    instance_id: Cow<'a, str>,
    #[serde(borrow, default)]
    state: Cow<'a, str>,
}

/// The detail of an event of AWS Health.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct OfHealth<'a> {
    #[serde(borrow, default)]
    service: Cow<'a, str>,
    #[serde(borrow, default)]
    event_type_category: Cow<'a, str>,
    #[serde(borrow, default)]
    affected_entities: Vec<Entity<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entity<'a> {
    #[serde(borrow, default)]
    entity_value: Cow<'a, str>,
}

/// A message that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{0}; the queue takes events of EventBridge as they are")]
pub struct Unreadable(String);

/// What a message says; none when it is about nothing that concerns us. `received` stands in for a time it does not say.
pub fn read(body: &str, receipt: &str, received: Timestamp) -> Result<Option<Notice>, Unreadable> {
    let envelope: Envelope<'_> = serde_json::from_str(body).map_err(|error| unreadable(&error))?;
    let at = envelope.time.unwrap_or(received);
    let Some((kind, machines)) = meaning(&envelope)? else {
        return Ok(None);
    };
    let deadline = match kind {
        NoticeKind::SpotInterruption | NoticeKind::ReservationInterruption => at.checked_add(SPOT_WARNING).ok(),
        _ => None,
    };
    Ok(Some(Notice {
        receipt: receipt.into(),
        kind,
        machines,
        at,
        deadline,
    }))
}

fn unreadable(error: &serde_json::Error) -> Unreadable {
    Unreadable(error.to_string())
}

type Meaning = Option<(NoticeKind, Vec<Text>)>;

fn meaning(envelope: &Envelope<'_>) -> Result<Meaning, Unreadable> {
    let kind = match (&*envelope.version, &*envelope.source, &*envelope.detail_type) {
        ("0", "aws.ec2", "EC2 Spot Instance Interruption Warning") => NoticeKind::SpotInterruption,
        ("0", "aws.ec2", "EC2 Instance Rebalance Recommendation") => NoticeKind::Rebalance,
        ("0", "aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning") => {
            NoticeKind::ReservationInterruption
        }
        ("0", "aws.ec2", "EC2 Instance State-change Notification") => return state_change(envelope),
        ("0", "aws.health", "AWS Health Event") => return health(envelope),
        _ => return Ok(None),
    };
    let detail: OfInstance<'_> = detail(envelope)?;
    Ok(Some((kind, vec![detail.instance_id.as_ref().into()])))
}

fn detail<'a, T: Deserialize<'a>>(envelope: &'a Envelope<'_>) -> Result<T, Unreadable> {
    T::deserialize(&envelope.detail).map_err(|error| unreadable(&error))
}

fn state_change(envelope: &Envelope<'_>) -> Result<Meaning, Unreadable> {
    let detail: OfInstance<'_> = detail(envelope)?;
    let kind = match detail.state.to_ascii_lowercase().as_str() {
        "stopping" | "stopped" => NoticeKind::Stopping,
        "shutting-down" | "terminated" => NoticeKind::Terminating,
        _ => return Ok(None),
    };
    Ok(Some((kind, vec![detail.instance_id.as_ref().into()])))
}

fn health(envelope: &Envelope<'_>) -> Result<Meaning, Unreadable> {
    let detail: OfHealth<'_> = detail(envelope)?;
    if detail.service != "EC2" || detail.event_type_category != "scheduledChange" {
        return Ok(None);
    }
    let machines = detail
        .affected_entities
        .iter()
        .map(|it| it.entity_value.as_ref().into());
    Ok(Some((NoticeKind::ScheduledChange, machines.collect())))
}

#[cfg(test)]
mod tests;
