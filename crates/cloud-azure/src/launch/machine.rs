//! The virtual machine itself.

use std::collections::BTreeMap;

use api::azure::AKSNodeClass;
use runtime::settings::AzureSettings;
use serde_json::json;

use super::Chosen;
use crate::{
    arm::wire::{
        AdditionalCapabilities, BillingProfile, DiffDiskSettings, HardwareProfile, Identity, ImageReference,
        LinuxConfiguration, ManagedDisk, NetworkInterfaceReference, NetworkInterfaceReferenceProperties,
        NetworkProfile, OsDisk, OsProfile, Reference, SecurityProfile, Ssh, SshPublicKey, StorageProfile, Tags,
        UefiSettings, VirtualMachine, VirtualMachineProperties,
    },
    class::Class,
    offers::SizeRecord,
};

/// What a machine follows from.
pub(crate) struct MachineRequest<'a> {
    pub(crate) name: &'a str,
    pub(crate) class: &'a AKSNodeClass,
    pub(crate) chosen: &'a Chosen,
    pub(crate) record: &'a SizeRecord,
    /// The image's id.
    pub(crate) image: &'a str,
    pub(crate) settings: &'a AzureSettings,
    pub(crate) nic_id: &'a str,
    pub(crate) custom_data: String,
    pub(crate) tags: &'a Tags,
}

/// The machine to ask for.
pub(crate) fn machine(it: &MachineRequest<'_>) -> VirtualMachine {
    let settings = it.settings;
    let is_spot = it.chosen.is_spot();
    let ultra = AdditionalCapabilities {
        ultra_ssd_enabled: Some(true),
    };
    VirtualMachine {
        location: settings.location.clone(),
        identity: identity(&settings.node_identities),
        zones: it.chosen.zone_number().map(str::to_owned).into_iter().collect(),
        tags: it.tags.clone(),
        properties: VirtualMachineProperties {
            hardware_profile: HardwareProfile {
                vm_size: it.record.name.clone(),
            },
            storage_profile: StorageProfile {
                image_reference: Some(image_reference(it.image)),
                os_disk: Some(os_disk(it)),
            },
            os_profile: Some(os_profile(it)),
            network_profile: Some(NetworkProfile {
                network_interfaces: vec![NetworkInterfaceReference {
                    id: it.nic_id.to_owned(),
                    properties: NetworkInterfaceReferenceProperties {
                        primary: true,
                        delete_option: "Delete".to_owned(),
                    },
                }],
            }),
            priority: Some(if is_spot { "Spot" } else { "Regular" }.to_owned()),
            eviction_policy: is_spot.then(|| "Delete".to_owned()),
            // Up to the price on demand.
            billing_profile: is_spot.then_some(BillingProfile { max_price: -1 }),
            security_profile: security_profile(it.class),
            additional_capabilities: it.chosen.needs_ultra_ssd.then_some(ultra),
            ..VirtualMachineProperties::default()
        },
        ..VirtualMachine::default()
    }
}

/// The identities to give; none where there are none.
pub(crate) fn identity(ids: &[String]) -> Option<Identity> {
    (!ids.is_empty()).then(|| Identity {
        kind: "UserAssigned".to_owned(),
        user_assigned_identities: ids.iter().map(|id| (id.clone(), json!({}))).collect::<BTreeMap<_, _>>(),
    })
}

fn image_reference(id: &str) -> ImageReference {
    if id.to_ascii_lowercase().starts_with("/communitygalleries/") {
        return ImageReference {
            community_gallery_image_id: Some(id.to_owned()),
            ..ImageReference::default()
        };
    }
    ImageReference {
        id: Some(id.to_owned()),
        ..ImageReference::default()
    }
}

/// On the machine itself where it fits, else a disk of its own.
fn os_disk(it: &MachineRequest<'_>) -> OsDisk {
    let size = Class(it.class).os_disk_gb();
    let fits = it.record.ephemeral_disk.filter(|(most, _)| i64::from(size) <= *most);
    let key = &it.settings.disk_encryption_set_id;
    OsDisk {
        name: it.name.to_owned(),
        disk_size_gb: size,
        create_option: "FromImage".to_owned(),
        delete_option: "Delete".to_owned(),
        caching: fits.map(|_| "ReadOnly".to_owned()),
        diff_disk_settings: fits.map(|(_, placement)| DiffDiskSettings {
            option: "Local".to_owned(),
            placement: placement.to_owned(),
        }),
        managed_disk: (!key.is_empty()).then(|| ManagedDisk {
            disk_encryption_set: Some(Reference { id: key.clone() }),
        }),
    }
}

fn os_profile(it: &MachineRequest<'_>) -> OsProfile {
    let user = &it.settings.linux_admin_username;
    OsProfile {
        admin_username: user.clone(),
        computer_name: it.name.to_owned(),
        custom_data: it.custom_data.clone(),
        linux_configuration: LinuxConfiguration {
            disable_password_authentication: true,
            ssh: Ssh {
                public_keys: vec![SshPublicKey {
                    path: format!("/home/{user}/.ssh/authorized_keys"),
                    key_data: it.settings.ssh_public_key.clone(),
                }],
            },
        },
    }
}

fn security_profile(class: &AKSNodeClass) -> Option<SecurityProfile> {
    let security = class.spec.security.as_ref()?;
    let trusted = security
        .trusted_launch
        .as_ref()
        .filter(|_| Class(class).is_trusted_launch());
    let profile = SecurityProfile {
        encryption_at_host: security.encryption_at_host,
        security_type: trusted.map(|_| "TrustedLaunch".to_owned()),
        uefi_settings: trusted.map(|trusted| UefiSettings {
            secure_boot_enabled: Some(trusted.secure_boot == Some(true)),
            v_tpm_enabled: Some(trusted.vtpm == Some(true)),
        }),
    };
    (profile != SecurityProfile::default()).then_some(profile)
}

#[cfg(test)]
mod tests;
