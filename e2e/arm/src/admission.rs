//! May a virtual machine be made as asked? What Azure checks beyond the schema.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

use crate::{
    allocation::Wish,
    answer::Refusal,
    catalogue::Sku,
    gallery::Traits,
    nic::Nic,
    request::{Asked, check_tags},
    shelf,
    vm::Stage,
    world::World,
};

/// A request that may go on to allocation.
pub(crate) struct Admitted {
    pub(crate) wish: Wish,
    /// The keys of its network interfaces.
    pub(crate) nics: Vec<String>,
}

fn invalid(target: &str, message: impl Into<String>) -> Refusal {
    Refusal::bad("InvalidParameter", message).at(target)
}

impl World {
    /// Checks a request for a virtual machine.
    pub(crate) fn admit(&self, asked: &Asked<'_>, key: &str) -> Result<Admitted, Refusal> {
        let body = &asked.body;
        self.in_region(body["location"].as_str().unwrap_or_default())?;
        check_tags(&body["tags"])?;
        let wish = Wish::of(body);
        if body["zones"].as_array().is_some_and(|zones| zones.len() > 1) {
            return Err(Refusal::bad("BadRequest", "A virtual machine has one zone at most.").at("zones"));
        }
        let sku = self.catalogue.usable(&self.setup, &wish.size, wish.zone.as_deref());
        let properties = &body["properties"];
        check_os(&properties["osProfile"])?;
        check_priority(properties)?;
        let nics = self.check_nics(asked, key)?;
        let admitted = Admitted { wish, nics };
        // A size that is not to be had is told by the allocation, after the rest was found good.
        if let Ok(sku) = sku {
            self.check_size(properties, sku, &admitted.nics)?;
        }
        Ok(admitted)
    }

    fn check_nics(&self, asked: &Asked<'_>, key: &str) -> Result<Vec<String>, Refusal> {
        let profile = &asked.body["properties"]["networkProfile"]["networkInterfaces"];
        let references = profile.as_array().filter(|list| !list.is_empty());
        let references = references.ok_or_else(|| {
            invalid(
                "networkProfile",
                "Required parameter 'networkProfile' is missing (null).",
            )
        })?;
        let mut nics = Vec::new();
        for reference in references {
            let id = reference["id"].as_str().unwrap_or_default();
            let nic_key = shelf::key_of(id).unwrap_or_default();
            let Some(nic) = self.nics.get(&nic_key) else {
                return Err(Refusal::new(404, "NotFound", format!("Resource {id} not found.")));
            };
            let own = self
                .setup
                .compute_id(asked.name("group"), "virtualMachines", asked.name("vm"));
            if let Some(user) = nic.vm.as_ref().filter(|user| !user.eq_ignore_ascii_case(&own)) {
                return Err(nic.in_use(user));
            }
            if nic.stage != Stage::Succeeded {
                let state = Nic::state(nic.stage);
                let message = format!(
                    "Cannot proceed with operation because resource {id} used by resource {own} is not in Succeeded state. \
                     Resource is in {state} state and the last operation that updated/is updating the resource is \
                     PutNicOperation."
                );
                return Err(Refusal::new(409, "ReferencedResourceNotProvisioned", message));
            }
            if let Some(refusal) = nic.reserved_for_other(key, asked.now) {
                return Err(refusal);
            }
            nics.push(nic_key);
        }
        Ok(nics)
    }

    fn check_size(&self, properties: &Value, sku: &Sku, nics: &[String]) -> Result<(), Refusal> {
        let has_fast_nic = nics
            .iter()
            .filter_map(|key| self.nics.get(key))
            .any(Nic::is_accelerated);
        if has_fast_nic && !sku.has("AcceleratedNetworkingEnabled") {
            let message = format!(
                "The VM size {} is not permitted to enable accelerated networking.",
                sku.name
            );
            return Err(Refusal::bad(
                "VMSizeIsNotPermittedToEnableAcceleratedNetworking",
                message,
            ));
        }
        let security = &properties["securityProfile"];
        if security["encryptionAtHost"] == true && !sku.has("EncryptionAtHostSupported") {
            let message = format!("The VM size '{}' does not support encryption at host.", sku.name);
            return Err(invalid("securityProfile.encryptionAtHost", message));
        }
        let image = self.gallery.traits(&properties["storageProfile"]["imageReference"])?;
        check_image(&image, sku)?;
        let is_trusted = security["securityType"] == "TrustedLaunch";
        if is_trusted && (!image.is_second_generation || sku.has("TrustedLaunchDisabled")) {
            let message = format!(
                "Trusted launch needs a second generation image and a size other than {}.",
                sku.name
            );
            return Err(Refusal::bad("BadRequest", message).at("securityProfile"));
        }
        self.check_disk(&properties["storageProfile"]["osDisk"], sku)
    }

    fn check_disk(&self, disk: &Value, sku: &Sku) -> Result<(), Refusal> {
        if let Some(set) = disk["managedDisk"]["diskEncryptionSet"]["id"].as_str()
            && !set.eq_ignore_ascii_case(&self.setup.encryption_set_id())
        {
            return Err(Refusal::new(404, "NotFound", format!("Resource {set} not found.")));
        }
        if disk["diffDiskSettings"]["option"] != "Local" {
            return Ok(());
        }
        if disk["caching"] != "ReadOnly" {
            return Err(invalid("osDisk.caching", "Ephemeral OS disks need caching ReadOnly."));
        }
        let placement = disk["diffDiskSettings"]["placement"].as_str().unwrap_or("CacheDisk");
        let bytes = match placement {
            "NvmeDisk" => sku.number("NvmeDiskSizeInMiB") * 1024 * 1024,
            "ResourceDisk" => sku.number("MaxResourceVolumeMB") * 1024 * 1024,
            _ => sku.number("CachedDiskBytes"),
        };
        let wanted = disk["diskSizeGB"].as_i64().unwrap_or(30);
        if !sku.has("EphemeralOSDiskSupported") || wanted * 1_000_000_000 > bytes {
            let message = format!(
                "OS disk of Ephemeral VM with size greater than {} GB is not allowed for VM size {} when the \
                 DiffDiskPlacement is {placement}.",
                bytes / 1_000_000_000,
                sku.name
            );
            return Err(Refusal::new(409, "OperationNotAllowed", message).at("osDisk.diffDiskSettings"));
        }
        Ok(())
    }
}

fn check_image(image: &Traits, sku: &Sku) -> Result<(), Refusal> {
    let generation = if image.is_second_generation { "V2" } else { "V1" };
    let known = sku.capability("HyperVGenerations").unwrap_or("V1");
    if !known.split(',').any(|one| one == generation) {
        let message = format!(
            "The selected VM size '{}' cannot boot Hypervisor Generation '{generation}'.",
            sku.name
        );
        return Err(Refusal::bad("BadRequest", message));
    }
    let wanted = if image.is_arm { "Arm64" } else { "x64" };
    let has = sku.capability("CpuArchitectureType").unwrap_or("x64");
    if has != wanted {
        let message = format!(
            "Cannot create a VM of size '{}' because this VM size only supports a CPU Architecture of '{has}', but an \
             image or disk with CPU Architecture '{wanted}' was given.",
            sku.name
        );
        return Err(Refusal::bad("BadRequest", message));
    }
    Ok(())
}

fn check_os(profile: &Value) -> Result<(), Refusal> {
    let computer = profile["computerName"].as_str().unwrap_or_default();
    if computer.is_empty() || computer.len() > 64 {
        return Err(invalid(
            "osProfile.computerName",
            "Linux computer names have 1 to 64 characters.",
        ));
    }
    let Some(user) = profile["adminUsername"].as_str().filter(|user| !user.is_empty()) else {
        return Err(invalid(
            "osProfile.adminUsername",
            "Required parameter 'adminUsername' is missing (null).",
        ));
    };
    if let Some(data) = profile["customData"].as_str()
        && (data.len() > 87_380 || STANDARD.decode(data).is_err())
    {
        let message =
            "Custom data in OSProfile must be in Base64 encoding and with a maximum length of 87380 characters.";
        return Err(invalid("osProfile.customData", message));
    }
    let linux = &profile["linuxConfiguration"];
    let keys = linux["ssh"]["publicKeys"].as_array().map_or(&[][..], Vec::as_slice);
    let home = format!("/home/{user}/.ssh/authorized_keys");
    if keys.iter().any(|key| key["path"] != home.as_str()) {
        let message = format!("Destination path for SSH public keys is currently limited to its default value {home}.");
        return Err(invalid("linuxConfiguration.ssh.publicKeys.path", message));
    }
    if linux["disablePasswordAuthentication"] == true && keys.is_empty() {
        let message = "Authentication using either SSH or by user name and password must be enabled in Linux profile.";
        return Err(invalid("linuxConfiguration", message));
    }
    Ok(())
}

fn check_priority(properties: &Value) -> Result<(), Refusal> {
    let is_spot = properties["priority"] == "Spot";
    for name in ["evictionPolicy", "billingProfile"] {
        if !is_spot && !properties[name].is_null() {
            let message = format!("{name} may be set only for Azure Spot Virtual Machines.");
            return Err(Refusal::new(409, "OperationNotAllowed", message).at(name));
        }
    }
    Ok(())
}
