//! What becomes of a launch after Azure has taken it on?
//!
//! Most shortages show only now. The claim is given up then, so that its pods are planned anew without the offering that
//! ran out.

use std::{sync::Arc, time::Duration};

use cloud::CloudError;
use model::object::NodeClaim;

use super::{
    boot::{add_billing, add_cse, boot},
    facts::Machine,
    giving_up::{Lost, delete_claim, tell},
    plan::{self, Maker, Wish},
};
use crate::{
    arm::{Failure, Operation, wire::VirtualMachine},
    mode::Mode,
    reads::ReadSide,
};

/// How long a machine may take. A node that has not registered by then is given up elsewhere.
const MACHINE: Duration = Duration::from_mins(30);
/// The pause after a question that was not answered.
const PAUSE: Duration = Duration::from_secs(10);

/// A launch to follow.
pub(super) struct Watched {
    pub(super) read: Arc<ReadSide>,
    pub(super) claim: NodeClaim,
    pub(super) name: String,
    /// What was asked for; none where an earlier process did.
    pub(super) asked: Option<Asked>,
}

/// What was asked for.
#[derive(Clone)]
pub(super) struct Asked {
    pub(super) operation: Operation,
    pub(super) wish: Wish,
    /// The command that makes the machine a node, where there is one.
    pub(super) cse: Option<String>,
}

/// Follows a launch to its end.
pub(super) async fn watch(watched: Watched) {
    let vm = match watched.outcome().await {
        Ok(vm) => vm,
        Err(Some(failure)) => return watched.give_up(&failure).await,
        Err(None) => return,
    };
    match watched.become_node(&vm).await {
        Ok(()) => add_billing(&watched.read, &watched.name, &vm.tags).await,
        // Whether it was done is not known: a machine that never becomes a node is given up elsewhere.
        Err(failure) if !is_answer(&failure) => {
            tracing::error!(name = watched.name, error = %failure, "making a machine a node");
        }
        Err(failure) => watched.give_up(&failure).await,
    }
}

impl Watched {
    fn group(&self) -> &str {
        &self.read.settings.azure.node_resource_group
    }

    /// The machine once it is there; the failure where it did not come about; none where nobody can tell.
    async fn outcome(&self) -> Result<VirtualMachine, Option<Failure>> {
        let began = tokio::time::Instant::now();
        if let Some(asked) = &self.asked {
            match self.read.arm.finish(asked.operation.clone(), MACHINE).await {
                Err(failure) if is_answer(&failure) => return Err(Some(failure)),
                _ => {}
            }
        }
        while began.elapsed() < MACHINE {
            match self.read.arm.vm(self.group(), &self.name).await {
                Ok(vm) => match vm.properties.provisioning_state.as_deref() {
                    Some("Creating") => {}
                    Some("Failed") => return Err(Some(why_failed(&self.read, &self.name).await)),
                    Some("Deleting") => return Err(None),
                    _ => return Ok(vm),
                },
                Err(failure) if failure.is_not_found() => return Err(None),
                Err(failure) => tracing::debug!(name = self.name, error = %failure, "following a launch"),
            }
            tokio::time::sleep(PAUSE).await;
        }
        Err(None)
    }

    /// Runs what makes the machine a node, where its custom data does not. After a restart its command is asked for anew.
    async fn become_node(&self, vm: &VirtualMachine) -> Result<(), Failure> {
        if self.read.mode != Mode::BootstrappingClient {
            return Ok(());
        }
        let command = match self.asked.as_ref().and_then(|asked| asked.cse.clone()) {
            Some(command) => Some(command),
            None => self.command_of(vm).await?,
        };
        match command {
            Some(command) => add_cse(&self.read, &self.name, &vm.tags, &command).await,
            None => Ok(()),
        }
    }

    async fn command_of(&self, vm: &VirtualMachine) -> Result<Option<String>, Failure> {
        let failed = |error: CloudError| Failure::unanswered(error.to_string());
        let (read, claim) = (&self.read, &self.claim);
        let class = plan::class_of(read, claim).await.map_err(failed)?;
        let machine = Machine::of(vm, &read.settings.azure.location.to_lowercase());
        let Some(Wish { chosen, .. }) = Wish::behind(read, &class, &machine) else {
            return Err(Failure::unanswered(format!(
                "size {} is not known any more",
                machine.size
            )));
        };
        let upstream = plan::upstream_tags(read, &class, claim).map_err(failed)?;
        let hash = plan::in_place_hash(read, Maker::Us, &upstream);
        let plan = plan::complete(read, self.name.clone(), class, chosen, vm.tags.clone(), hash).map_err(failed)?;
        Ok(boot(read, claim, &plan).await?.cse)
    }

    /// What an earlier process asked for.
    async fn wish_behind(&self) -> Option<Wish> {
        let vm = self.read.arm.vm(self.group(), &self.name).await.ok()?;
        let class = plan::class_of(&self.read, &self.claim).await.ok()?;
        let machine = Machine::of(&vm, &self.read.settings.azure.location.to_lowercase());
        Wish::behind(&self.read, &class, &machine)
    }

    /// The machine did not come about: what ran out is noted, machine and claim go, and people are told.
    async fn give_up(&self, failure: &Failure) {
        let wish = match &self.asked {
            Some(asked) => Some(asked.wish.clone()),
            None => self.wish_behind().await,
        };
        tell(&Lost {
            read: &self.read,
            claim: &self.claim,
            name: &self.name,
            wish: wish.as_ref(),
            failure,
        });
        match self.read.arm.delete_vm(self.group(), &self.name).await {
            Err(failure) if !failure.is_not_found() => {
                tracing::error!(name = self.name, error = %failure, "deleting a machine that did not come about");
            }
            _ => {}
        }
        delete_claim(&self.read, &self.claim).await;
    }
}

/// Why a machine could not be made. The operation that said so may be another process's; the machine itself says so too.
pub(super) async fn why_failed(read: &ReadSide, name: &str) -> Failure {
    let group = &read.settings.azure.node_resource_group;
    match read.arm.vm_with_view(group, name).await {
        Ok(vm) => failure_of(&vm),
        Err(_) => failure_of(&VirtualMachine::default()),
    }
}

fn failure_of(vm: &VirtualMachine) -> Failure {
    let statuses = &vm.properties.instance_view.statuses;
    let told = statuses.iter().find_map(|status| {
        let code = status.code.strip_prefix("ProvisioningState/failed/")?;
        (!code.is_empty()).then(|| Failure::with_code(code, status.message.clone()))
    });
    told.unwrap_or_else(|| {
        let message = "the virtual machine's provisioning failed; see its activity log";
        Failure::with_code("ProvisioningFailed", message)
    })
}

/// Whether a failure says what became of the operation, rather than that nobody could be asked.
pub(super) fn is_answer(failure: &Failure) -> bool {
    let is_over = failure.code != "OperationTimedOut";
    is_over
        && failure
            .status
            .is_some_and(|status| status < 500 && status != 429 && status != 404)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_machine_that_failed_says_why_wherever_its_operation_is() {
        let failed = |statuses: serde_json::Value| {
            let vm = json!({"properties": {"instanceView": {"statuses": statuses}}});
            failure_of(&serde_json::from_value(vm).unwrap())
        };
        let told = failed(json!([
            {"code": "ProvisioningState/failed/AllocationFailed", "message": "none left"},
            {"code": "PowerState/running"},
        ]));
        assert_eq!(
            (told.code.as_str(), told.message.as_str()),
            ("AllocationFailed", "none left")
        );
        for statuses in [json!([]), json!(null), json!([{"code": "ProvisioningState/failed"}])] {
            assert_eq!(failed(statuses).code, "ProvisioningFailed");
        }
    }

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
