//! What becomes of a launch after Azure has taken it on?
//!
//! Most shortages show only now. The claim is given up then, so that its pods are planned anew without the offering that
//! ran out.

use std::{sync::Arc, time::Duration};

use model::object::NodeClaim;
use runtime::{Delete, Event, EventKind};

use super::machines::pool_of;
use crate::{
    arm::{
        Failure, Operation,
        wire::{Extension, ExtensionProperties, Tags},
    },
    launch::{
        Chosen,
        refusal::{cut, refusal},
    },
    offers::SizeRecord,
    reads::ReadSide,
};

/// How long a machine may take. A node that has not registered by then is given up elsewhere.
const MACHINE: Duration = Duration::from_mins(30);
/// The pause after a question that was not answered.
const PAUSE: Duration = Duration::from_secs(10);
/// How long an extension may take.
const EXTENSION: Duration = Duration::from_mins(10);
/// The extension that AKS bills by.
pub(super) const BILLING: &str = "computeAksLinuxBilling";
/// Messages of events are no longer than this.
const LONGEST: usize = 500;

/// A launch to follow.
pub(super) struct Watched {
    pub(super) read: Arc<ReadSide>,
    pub(super) claim: NodeClaim,
    pub(super) name: String,
    /// Where to ask; none: the machine itself is asked.
    pub(super) operation: Option<Operation>,
    /// What was asked for, where it is known.
    pub(super) asked: Option<(Chosen, Arc<SizeRecord>)>,
}

/// Follows a launch to its end.
pub(super) async fn watch(mut watched: Watched) {
    match watched.outcome().await {
        Ok(tags) => watched.add_billing(tags).await,
        Err(Some(failure)) => watched.give_up(&failure).await,
        Err(None) => {}
    }
}

impl Watched {
    fn group(&self) -> &str {
        &self.read.settings.azure.node_resource_group
    }

    /// The machine's tags once it is there; the failure where it did not come about; none where nobody can tell.
    async fn outcome(&mut self) -> Result<Tags, Option<Failure>> {
        let began = tokio::time::Instant::now();
        if let Some(operation) = self.operation.take() {
            match self.read.arm.finish(operation, MACHINE).await {
                Err(failure) if is_answer(&failure) => return Err(Some(failure)),
                _ => {}
            }
        }
        while began.elapsed() < MACHINE {
            match self.read.arm.vm(self.group(), &self.name).await {
                Ok(vm) => match vm.properties.provisioning_state.as_deref() {
                    Some("Creating") => {}
                    Some("Failed") => {
                        let message = "the virtual machine's provisioning failed; see its activity log";
                        return Err(Some(Failure::with_code("ProvisioningFailed", message)));
                    }
                    Some("Deleting") => return Err(None),
                    _ => return Ok(vm.tags),
                },
                Err(failure) if failure.is_not_found() => return Err(None),
                Err(failure) => tracing::debug!(name = self.name, error = %failure, "following a launch"),
            }
            tokio::time::sleep(PAUSE).await;
        }
        Err(None)
    }

    /// AKS bills by an extension, where it has it. A node without it is a node all the same.
    async fn add_billing(&self, tags: Tags) {
        let arm = &self.read.arm;
        if !arm.environment().has_billing_extension {
            return;
        }
        let extension = Extension {
            location: self.read.settings.azure.location.clone(),
            tags,
            properties: ExtensionProperties {
                publisher: "Microsoft.AKS".to_owned(),
                kind: "Compute.AKS.Linux.Billing".to_owned(),
                type_handler_version: "1.0".to_owned(),
                auto_upgrade_minor_version: true,
                ..ExtensionProperties::default()
            },
        };
        let added = match arm.put_extension(self.group(), &self.name, BILLING, &extension).await {
            Ok(operation) => arm.finish(operation, EXTENSION).await,
            Err(failure) => Err(failure),
        };
        if let Err(failure) = added {
            tracing::error!(name = self.name, extension = BILLING, error = %failure, "adding an extension");
        }
    }

    /// The machine did not come about: what ran out is noted, machine and claim go, and people are told.
    async fn give_up(&self, failure: &Failure) {
        let claim = &self.claim;
        if let Some((chosen, record)) = &self.asked {
            let labels = [
                "",
                record.name.as_str(),
                &chosen.zone,
                chosen.capacity_type,
                pool_of(claim),
                "async",
                failure.label(),
            ];
            self.read.metrics.instance_vm_create_failure_total.inc(labels);
            for shortage in &refusal(failure, chosen, record).shortages {
                self.read.offers.mark_unavailable(shortage);
            }
        }
        let message: String = cut(&failure.to_string()).chars().take(LONGEST).collect();
        tracing::error!("NodeClaim.name" = %claim.metadata.name, name = self.name, error = message, "failed launching nodeclaim");
        let uid = claim.metadata.uid.to_string();
        let event = Event::new(claim, EventKind::Warning, "AsyncProvisioningError", message);
        self.read.recorder.publish(event.deduped_by(vec![uid]));
        match self.read.arm.delete_vm(self.group(), &self.name).await {
            Err(failure) if !failure.is_not_found() => {
                tracing::error!(name = self.name, error = %failure, "deleting a machine that did not come about");
            }
            _ => {}
        }
        let only_this = Delete {
            uid: Some(claim.metadata.uid.clone()),
            ..Delete::default()
        };
        let deleted = self
            .read
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
}

/// Whether a failure says what became of the operation, rather than that nobody could be asked.
fn is_answer(failure: &Failure) -> bool {
    let is_over = failure.code != "OperationTimedOut";
    is_over
        && failure
            .status
            .is_some_and(|status| status < 500 && status != 429 && status != 404)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_answer_gives_a_machine_up() {
        let failure = |code: &str, status| Failure {
            code: code.to_owned(),
            status,
            ..Failure::default()
        };
        assert!(is_answer(&failure("AllocationFailed", Some(200))));
        assert!(is_answer(&failure("Conflict", Some(409))));
        for (code, status) in [
            ("", None),
            ("", Some(503)),
            ("", Some(429)),
            ("OperationTimedOut", Some(200)),
            ("", Some(404)),
        ] {
            assert!(!is_answer(&failure(code, status)), "{code} {status:?}");
        }
    }
}
