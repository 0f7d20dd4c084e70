//! A machine did not come about after Azure had taken it on: who is told, and what goes.

use model::object::NodeClaim;
use runtime::{Delete, Event, EventKind};

use super::plan::pool_of;
use crate::{
    arm::Failure,
    launch::{
        Chosen,
        refusal::{cut, refusal},
    },
    offers::SizeRecord,
    reads::ReadSide,
};

/// Messages of events are no longer than this.
const LONGEST: usize = 500;

/// A launch that came to nothing.
pub(super) struct Lost<'a> {
    pub(super) read: &'a ReadSide,
    pub(super) claim: &'a NodeClaim,
    pub(super) name: &'a str,
    /// What was asked for, where it is known.
    pub(super) asked: Option<(&'a Chosen, &'a SizeRecord)>,
    pub(super) failure: &'a Failure,
}

/// Notes what ran out, and tells people.
pub(super) fn tell(lost: &Lost<'_>) {
    let Lost {
        read, claim, failure, ..
    } = lost;
    if let Some((chosen, record)) = lost.asked {
        let labels = [
            "",
            record.name.as_str(),
            &chosen.zone,
            chosen.capacity_type,
            pool_of(claim),
            "async",
            failure.label(),
        ];
        read.metrics.instance_vm_create_failure_total.inc(labels);
        for shortage in &refusal(failure, chosen, record).shortages {
            read.offers.mark_unavailable(shortage);
        }
    }
    let message: String = cut(&failure.to_string()).chars().take(LONGEST).collect();
    tracing::error!("NodeClaim.name" = %claim.metadata.name, name = lost.name, error = message, "failed launching nodeclaim");
    let uid = claim.metadata.uid.to_string();
    let event = Event::new(*claim, EventKind::Warning, "AsyncProvisioningError", message);
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
    match deleted {
        Err(error) if !error.is_not_found() => {
            tracing::error!("NodeClaim.name" = %claim.metadata.name, %error, "deleting a NodeClaim whose machine did not come about");
        }
        _ => {}
    }
}
