//! How do nodes come to be? Upstream's four modes, and what each cannot do without.

use cloud::CloudError;
use runtime::settings::AzureSettings;

use crate::arm::{Arm, calls::Pool};

/// A provision mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// A virtual machine, whose script is ours: what self-hosted clusters use.
    Scriptless,
    /// A virtual machine, whose scripts come from the node bootstrapping service of AKS.
    BootstrappingClient,
    /// A machine of an agent pool: AKS makes the virtual machine.
    AksMachine,
    /// The same, many with one request.
    AksMachineBatch,
}

impl Mode {
    /// The mode of the settings, which know its names.
    pub(crate) fn of(settings: &AzureSettings) -> Result<Self, CloudError> {
        match settings.provision_mode.as_str() {
            "aksscriptless" => Ok(Self::Scriptless),
            "bootstrappingclient" => Ok(Self::BootstrappingClient),
            "aksmachineapi" => Ok(Self::AksMachine),
            "aksmachineapiheaderbatch" => Ok(Self::AksMachineBatch),
            other => Err(CloudError::Other(format!(
                "PROVISION_MODE {other} (--provision-mode) is not known: it is one of aksscriptless, bootstrappingclient, \
                 aksmachineapi, aksmachineapiheaderbatch"
            ))),
        }
    }

    /// Whether AKS makes the machines.
    pub(crate) fn makes_aks_machines(self) -> bool {
        matches!(self, Self::AksMachine | Self::AksMachineBatch)
    }
}

/// The agent pool whose machines we look after; none where they are not ours to see.
pub(crate) fn pool(mode: Mode, settings: &AzureSettings) -> Option<Pool> {
    let is_visible = mode.makes_aks_machines() || settings.manage_existing_aks_machines;
    (is_visible && !settings.aks_machines_pool_name.is_empty()).then(|| Pool {
        group: settings.resource_group.clone(),
        cluster: settings.cluster_name.clone(),
        name: settings.aks_machines_pool_name.clone(),
    })
}

/// Refuses a pool that is not there, before machines that run count as gone because of a misspelt setting.
pub(crate) async fn check_pool(arm: &Arm, pool: &Pool) -> Result<(), CloudError> {
    let Pool { group, cluster, name } = pool;
    let refused = |why: String| {
        CloudError::Other(format!(
            "agent pool {name} of cluster {cluster} in resource group {group} (AKS_MACHINES_POOL_NAME, CLUSTER_NAME, \
             ARM_RESOURCE_GROUP) cannot be used, {why}"
        ))
    };
    let found = arm.agent_pool(pool).await;
    let mode = found.map_err(|failure| refused(failure.to_string()))?.properties.mode;
    if mode == "Machines" {
        return Ok(());
    }
    Err(refused(format!(
        "its mode is {mode:?}: make one with `az aks nodepool add --mode Machines`"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(mode: &str, pool: &str, manages_existing: bool) -> AzureSettings {
        AzureSettings {
            provision_mode: mode.to_owned(),
            aks_machines_pool_name: pool.to_owned(),
            manage_existing_aks_machines: manages_existing,
            ..AzureSettings::default()
        }
    }

    #[test]
    fn a_mode_that_nobody_knows_is_refused_with_the_setting_and_the_choices() {
        let refused = Mode::of(&settings("vmss", "", false)).unwrap_err().to_string();
        assert!(
            refused.contains("PROVISION_MODE vmss") && refused.contains("aksscriptless"),
            "{refused}"
        );
    }

    #[test]
    fn machines_of_aks_are_seen_in_its_modes_and_where_they_are_to_be_managed() {
        let sees = |mode: &str, name: &str, manages_existing| {
            let settings = settings(mode, name, manages_existing);
            pool(Mode::of(&settings).unwrap(), &settings).is_some()
        };
        assert!(sees("aksmachineapi", "p", false) && sees("aksmachineapiheaderbatch", "p", false));
        assert!(sees("aksscriptless", "p", true) && sees("bootstrappingclient", "p", true));
        assert!(!sees("aksscriptless", "p", false) && !sees("aksscriptless", "", true));
    }
}
