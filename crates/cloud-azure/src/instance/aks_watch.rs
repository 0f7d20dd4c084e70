//! What becomes of a machine after AKS has taken it on? The machine itself says so, and why it failed.

use std::{sync::Arc, time::Duration};

use model::object::NodeClaim;
use tokio::time::Instant;

use super::{
    facts::Machine,
    giving_up::{Lost, delete_claim, tell},
    plan::{Wish, class_of},
};
use crate::{
    arm::{
        Failure,
        calls::Pool,
        wire::aks::{AksError, AksMachine},
    },
    reads::ReadSide,
};

/// The pause between two looks.
const PAUSE: Duration = Duration::from_secs(5);
/// Launches that are followed at the same time share a list of the machines for so long.
const LISTED: Duration = Duration::from_secs(10);
/// How long a machine may take. A node that has not registered by then is given up elsewhere.
const MACHINE: Duration = Duration::from_mins(15);

/// A launch to follow.
pub(super) struct Followed {
    pub(super) read: Arc<ReadSide>,
    pub(super) pool: Pool,
    pub(super) claim: NodeClaim,
    pub(super) name: String,
    /// What was asked for, where it is known.
    pub(super) wish: Option<Wish>,
}

/// Follows a launch to its end. A machine that did not come about goes, with its claim.
pub(super) async fn follow(followed: Followed) {
    let Followed {
        read,
        pool,
        claim,
        name,
        wish,
    } = followed;
    let Err(Some(failure)) = outcome(&read, &pool, &name).await else {
        return;
    };
    let wish = match wish {
        Some(wish) => Some(wish),
        None => wish_behind(&read, &pool, &claim, &name).await,
    };
    tell(&Lost {
        read: &read,
        claim: &claim,
        name: &name,
        wish: wish.as_ref(),
        failure: &failure,
    });
    match read.arm.delete_aks_machine(&pool, &name).await {
        Err(failure) if !failure.is_not_found() => {
            tracing::error!(name, error = %failure, "deleting a machine that did not come about");
        }
        _ => {}
    }
    delete_claim(&read, &claim).await;
}

/// What an earlier process asked for.
async fn wish_behind(read: &ReadSide, pool: &Pool, claim: &NodeClaim, name: &str) -> Option<Wish> {
    let found = read.arm.aks_machine(pool, name).await.ok()?;
    let machine = Machine::of_aks(&found, &read.settings.azure.location.to_lowercase()).ok()?;
    let class = class_of(read, claim).await.ok()?;
    Wish::behind(read, &class, &machine)
}

/// Why a machine could not be made, if it could not: known whatever else AKS leaves out of what it says of it.
pub(super) fn failed(machine: &AksMachine) -> Option<Failure> {
    let is_failed = machine.properties.provisioning_state.eq_ignore_ascii_case("Failed");
    is_failed.then(|| failure_of(machine))
}

/// Waits until a machine is there; the failure where it did not come about; none where it is gone, or nobody can tell.
pub(super) async fn outcome(read: &ReadSide, pool: &Pool, name: &str) -> Result<(), Option<Failure>> {
    let began = Instant::now();
    while began.elapsed() < MACHINE {
        tokio::time::sleep(PAUSE).await;
        match read.aks_list.machine(&read.arm, pool, name, LISTED).await {
            Ok(machine) => match machine.properties.provisioning_state.as_str() {
                "Succeeded" => return Ok(()),
                "Failed" => return Err(Some(failure_of(&machine))),
                "Deleting" => return Err(None),
                "Creating" | "Updating" => {}
                other => tracing::debug!(name, state = other, "a machine is in a state that nobody knows"),
            },
            Err(failure) if failure.is_not_found() => return Err(None),
            Err(failure) => tracing::debug!(name, error = %failure, "following a launch"),
        }
    }
    Err(None)
}

/// Why a machine failed. AKS wraps what the virtual machine was refused with into words of its own.
fn failure_of(machine: &AksMachine) -> Failure {
    let Some(outer) = &machine.properties.status.provisioning_error else {
        let message = "the machine's provisioning failed, and AKS does not say why";
        return Failure::with_code("ProvisioningFailed", message);
    };
    let AksError { code, message, .. } = outer.details.first().unwrap_or(outer);
    Failure::with_code(code, message.clone())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_virtual_machines_error_is_the_one_that_counts() {
        let failed = |error: serde_json::Value| {
            let machine = json!({"name": "m", "properties": {"status": {"provisioningError": error}}});
            failure_of(&serde_json::from_value(machine).unwrap())
        };
        let inner = failed(json!({"code": "VMProvisioningError", "message": "outer",
            "details": [{"code": "SkuNotAvailable", "message": "inner"}]}));
        assert_eq!(
            (inner.code.as_str(), inner.message.as_str()),
            ("SkuNotAvailable", "inner")
        );
        let outer = failed(json!({"code": "InternalError", "message": "outer", "details": []}));
        assert_eq!(outer.code, "InternalError");
        let none = failed(json!(null));
        assert_eq!(none.code, "ProvisioningFailed");
    }

    #[test]
    fn a_machine_that_failed_is_known_as_such_whatever_else_is_left_out() {
        let machine = |state: &str| -> AksMachine {
            let error = json!({"code": "SkuNotAvailable", "message": "none left"});
            let machine = json!({"name": "m", "properties": {"provisioningState": state, "status": {"provisioningError": error}}});
            serde_json::from_value(machine).unwrap()
        };
        assert_eq!(super::failed(&machine("Failed")).unwrap().code, "SkuNotAvailable");
        assert_eq!(super::failed(&machine("Creating")), None);
        assert!(
            Machine::of_aks(&machine("Failed"), "eastus").is_err(),
            "it cannot be acted on"
        );
    }
}
