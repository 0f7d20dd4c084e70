//! The machines of a pool as AKS listed them lately: who looks at many asks once for all of them.

use std::{collections::BTreeMap, time::Duration};

use tokio::{sync::Mutex, time::Instant};

use crate::arm::{Arm, Failure, calls::Pool, wire::aks::AksMachine};

/// A list and when it was asked for.
type Listed = (Instant, BTreeMap<String, AksMachine>);

/// The list that is remembered.
#[derive(Default)]
pub(crate) struct AksList {
    /// Held while AKS is asked, so that those who come meanwhile have the answer too.
    known: Mutex<Option<Listed>>,
}

impl AksList {
    /// A machine as it was no longer ago than this. One that no list shows is asked for by its name.
    pub(crate) async fn machine(
        &self,
        arm: &Arm,
        pool: &Pool,
        name: &str,
        longest: Duration,
    ) -> Result<AksMachine, Failure> {
        match self.listed(arm, pool, name, longest).await? {
            Some(machine) => Ok(machine),
            None => arm.aks_machine(pool, name).await,
        }
    }

    async fn listed(
        &self,
        arm: &Arm,
        pool: &Pool,
        name: &str,
        longest: Duration,
    ) -> Result<Option<AksMachine>, Failure> {
        let mut known = self.known.lock().await;
        let is_fresh = known.as_ref().is_some_and(|(at, _)| at.elapsed() < longest);
        if !is_fresh {
            // AKS that does not answer for all is not asked for each of them.
            let machines = arm.aks_machines(pool).await?;
            let by_name = machines.into_iter().map(|machine| (machine.name.clone(), machine));
            *known = Some((Instant::now(), by_name.collect()));
        }
        let machine = known.as_ref().and_then(|(_, machines)| machines.get(name));
        Ok(machine.cloned())
    }
}
