//! Which managed disks are there? They come with virtual machines, and stay when nothing takes them along.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    Setup,
    answer::{Answer, Refusal},
    operation::End,
    request::Asked,
    vm::Vm,
    world::World,
};

const KIND: &str = "Microsoft.Compute/disks";

pub(crate) struct Disk {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) vm: Option<String>,
    pub(crate) tags: Value,
    pub(crate) zones: Value,
    pub(crate) gigabytes: i64,
    pub(crate) created: Timestamp,
}

impl Disk {
    /// The disk of a virtual machine; ephemeral ones are no resource.
    pub(crate) fn of(setup: &Setup, vm: &Vm) -> Option<Self> {
        let asked = &vm.sent["properties"]["storageProfile"]["osDisk"];
        if !asked["diffDiskSettings"]["option"].is_null() {
            return None;
        }
        let name = asked["name"].as_str()?.to_owned();
        Some(Self {
            id: setup.compute_id(&vm.group, "disks", &name),
            name,
            vm: Some(vm.id.clone()),
            tags: vm.sent["tags"].clone(),
            zones: vm.sent["zones"].clone(),
            gigabytes: asked["diskSizeGB"].as_i64().unwrap_or(30),
            created: vm.created,
        })
    }

    pub(crate) fn json(&self, region: &str) -> Value {
        let mut shown = json!({
            "id": self.id, "name": self.name, "type": KIND, "location": region,
            "sku": {"name": "Premium_LRS", "tier": "Premium"},
            "properties": {
                "osType": "Linux", "diskSizeGB": self.gigabytes, "timeCreated": self.created.to_string(),
                "provisioningState": "Succeeded", "creationData": {"createOption": "FromImage"},
                "diskState": if self.vm.is_some() { "Attached" } else { "Unattached" },
            },
        });
        for (name, value) in [("tags", &self.tags), ("zones", &self.zones)] {
            if value.is_object() || value.as_array().is_some_and(|list| !list.is_empty()) {
                shown[name] = value.clone();
            }
        }
        if let Some(vm) = &self.vm {
            shown["managedBy"] = json!(vm);
        }
        shown
    }
}

impl World {
    pub(crate) fn get_disk(&self, asked: &Asked<'_>) -> Result<Answer, Refusal> {
        let found = self.disks.get(&asked.key("disk"));
        let found = found.map(|disk| Answer::ok(disk.json(&self.setup.region)));
        found.ok_or_else(|| Refusal::not_found(KIND, asked.name("disk"), asked.name("group")))
    }

    pub(crate) fn delete_disk(&mut self, asked: &Asked<'_>) -> Result<Answer, Refusal> {
        let key = asked.key("disk");
        let Some(disk) = self.disks.get(&key) else {
            return Ok(Answer::empty(204));
        };
        if let Some(vm) = &disk.vm {
            let message = format!("Disk {} is attached to VM {vm}.", disk.name);
            return Err(Refusal::new(409, "OperationNotAllowed", message));
        }
        Ok(self.begin(asked, End::DiskGone(key), asked.doom.clone(), Answer::empty(202)))
    }
}
