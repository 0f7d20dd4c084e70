//! What is in the group that nobody of ours made? A user's own machine, and what tests leave lying about.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    allocation::Wish,
    disk::Disk,
    knob::{Plant, PlantKind},
    nic::Nic,
    shelf,
    vm::{Stage, Vm},
    world::World,
};

impl World {
    /// A user's machine in the group of the nodes: whoever touches it is wrong.
    pub(crate) fn plant_foreigners(&mut self) {
        let plant = Plant {
            kind: PlantKind::Vm,
            name: "jumpbox".to_owned(),
            tags: [("owner".to_owned(), "someone-else".to_owned())].into(),
        };
        self.plant(&plant, Timestamp::UNIX_EPOCH);
        self.index(Timestamp::UNIX_EPOCH);
    }

    pub(crate) fn plant(&mut self, plant: &Plant, now: Timestamp) {
        let tags = json!(plant.tags);
        match plant.kind {
            PlantKind::Nic => self.plant_nic(&plant.name, &tags, None),
            PlantKind::Disk => self.plant_disk(&plant.name, &tags, None, now),
            PlantKind::Vm => self.plant_vm(&plant.name, &tags, now),
            PlantKind::Machine => self.plant_machine(&plant.name, &tags, now),
        }
    }

    fn plant_nic(&mut self, name: &str, tags: &Value, vm: Option<String>) {
        let group = self.setup.node_group.clone();
        let configuration = json!({"name": name, "properties": {
            "primary": true, "privateIPAllocationMethod": "Dynamic", "subnet": {"id": self.setup.subnet_id()},
        }});
        let sent = json!({
            "location": self.setup.region, "tags": tags, "properties": {"ipConfigurations": [configuration]},
        });
        let id = self.setup.network_id(&group, "networkInterfaces", name);
        let addresses = self.addresses(1);
        let guid = self.guid();
        let nic = Nic::planted(id, name, &group, sent, vm, addresses, guid);
        self.nics.put(&shelf::key(&group, name), nic);
    }

    fn plant_disk(&mut self, name: &str, tags: &Value, vm: Option<String>, now: Timestamp) {
        let group = self.setup.node_group.clone();
        let disk = Disk {
            id: self.setup.compute_id(&group, "disks", name),
            name: name.to_owned(),
            vm,
            tags: tags.clone(),
            zones: Value::Null,
            gigabytes: 30,
            created: now,
        };
        self.disks.put(&shelf::key(&group, name), disk);
    }

    fn plant_vm(&mut self, name: &str, tags: &Value, now: Timestamp) {
        let group = self.setup.node_group.clone();
        let id = self.setup.compute_id(&group, "virtualMachines", name);
        let nic = self.setup.network_id(&group, "networkInterfaces", name);
        self.plant_nic(name, tags, Some(id.clone()));
        self.plant_disk(name, tags, Some(id.clone()), now);
        let sent = json!({
            "location": self.setup.region, "tags": tags,
            "properties": {
                "hardwareProfile": {"vmSize": "Standard_B2s"},
                "storageProfile": {"osDisk": {"name": name, "createOption": "FromImage", "deleteOption": "Delete"}},
                "networkProfile": {"networkInterfaces": [{"id": nic, "properties": {"deleteOption": "Delete"}}]},
            },
        });
        let vm = Vm {
            id,
            name: name.to_owned(),
            wish: Wish::of(&sent),
            sent,
            stage: Stage::Succeeded,
            is_deallocated: false,
            created: now,
            guid: self.guid(),
            is_machine: false,
            puts: 0,
            failure: None,
            group: group.clone(),
        };
        self.vms.put(&shelf::key(&group, name), vm);
    }
}
