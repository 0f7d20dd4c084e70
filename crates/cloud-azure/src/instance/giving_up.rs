//! A machine did not come about after Azure had taken it on: who is told, and what goes.

use api::labels::CAPACITY_TYPE;
use model::object::NodeClaim;
use runtime::{Delete, Event, EventKind};

use super::plan::{ASYNC, Wish, pool_of, refused};
use crate::{arm::Failure, launch::refusal::cut, reads::ReadSide};

/// Messages of events are no longer than this.
const LONGEST: usize = 500;

/// A launch that came to nothing.
pub(super) struct Lost<'a> {
    pub(super) read: &'a ReadSide,
    pub(super) claim: &'a NodeClaim,
    pub(super) name: &'a str,
    /// What was asked for, where it is known.
    pub(super) wish: Option<&'a Wish>,
    pub(super) failure: &'a Failure,
}

/// Notes what ran out, and tells people.
pub(super) fn tell(lost: &Lost<'_>) {
    let Lost {
        read, claim, failure, ..
    } = lost;
    if let Some(wish) = lost.wish {
        refused(read, claim, wish, failure, ASYNC);
    }
    let message: String = cut(&failure.to_string()).chars().take(LONGEST).collect();
    tracing::error!("NodeClaim.name" = %claim.metadata.name, name = lost.name, error = message, "failed launching nodeclaim");
    let uid = claim.metadata.uid.to_string();
    let event = Event::new(
        *claim,
        EventKind::Warning,
        "AsyncProvisioningError",
        format!("Failed to register: {message}"),
    );
    read.recorder.publish(event.deduped_by(vec![uid]));
}

/// The claim goes, and its pods are planned anew.
pub(super) async fn delete_claim(read: &ReadSide, claim: &NodeClaim) {
    let only_this = Delete {
        uid: Some(claim.metadata.uid.clone()),
        ..Delete::default()
    };
    let deleted = read
        .objects
        .api()
        .delete::<NodeClaim>(&claim.metadata.key(), &only_this)
        .await;
    count(read, claim);
    match deleted {
        Err(error) if !error.is_not_found() => {
            tracing::error!("NodeClaim.name" = %claim.metadata.name, %error, "deleting a NodeClaim whose machine did not come about");
        }
        _ => {}
    }
}

/// As every claim is counted that goes before its time.
fn count(read: &ReadSide, claim: &NodeClaim) {
    let capacity_type = claim.metadata.labels.get(CAPACITY_TYPE).map_or("", |it| it);
    let mode = match claim.spec.termination_grace_period {
        None => "graceful",
        Some(period) if period.as_nanos() <= 0 => "forceful",
        Some(_) => "eventual",
    };
    let labels = ["async_provisioning", pool_of(claim), capacity_type, "", mode];
    read.metrics.nodeclaims_disrupted_total.inc(labels);
}
