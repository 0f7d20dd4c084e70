//! What does a test see? The whole world in a form to assert on.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::{allocation, disk::Disk, nic::Nic, shelf, vm::Vm, world::World};

/// A virtual machine.
#[derive(Clone, Debug, Serialize)]
pub struct VmState {
    /// Its name.
    pub name: String,
    /// Its id.
    pub id: String,
    /// Its size.
    pub size: String,
    /// Its zone, if it asked for one.
    pub zone: Option<String>,
    /// `spot` or `on-demand`.
    pub capacity: &'static str,
    /// `Creating`, `Updating`, `Succeeded`, `Failed` or `Deleting`.
    pub state: &'static str,
    /// Whether it was evicted and only stopped.
    pub deallocated: bool,
    /// Whether AKS made it for a machine.
    pub machine: bool,
    /// Its tags.
    pub tags: BTreeMap<String, String>,
    /// The names of its extensions.
    pub extensions: Vec<String>,
    /// How often a request to make it was granted.
    pub puts: u32,
    /// What the client sent.
    pub request: Value,
    /// What it sent to AKS, where AKS made it; null where it did not.
    pub machine_request: Value,
}

/// A network interface.
#[derive(Clone, Debug, Serialize)]
pub struct NicState {
    /// Its name.
    pub name: String,
    /// Its id.
    pub id: String,
    /// As of a virtual machine.
    pub state: &'static str,
    /// The virtual machine that uses it.
    pub vm: Option<String>,
    /// Its tags.
    pub tags: BTreeMap<String, String>,
    /// Until when it is kept for a virtual machine that failed.
    pub reserved_until: Option<String>,
    /// What the client sent.
    pub request: Value,
}

/// A disk.
#[derive(Clone, Debug, Serialize)]
pub struct DiskState {
    /// Its name.
    pub name: String,
    /// Its id.
    pub id: String,
    /// The virtual machine that uses it.
    pub vm: Option<String>,
    /// Its tags.
    pub tags: BTreeMap<String, String>,
}

/// Everything.
#[derive(Clone, Debug, Serialize)]
pub struct State {
    /// The double's time.
    pub now: String,
    /// All virtual machines, a user's own among them.
    pub vms: Vec<VmState>,
    /// All network interfaces.
    pub nics: Vec<NicState>,
    /// All disks.
    pub disks: Vec<DiskState>,
    /// The machines of AKS: name and state.
    pub machines: BTreeMap<String, String>,
    /// Cores in use by quota, where any are.
    pub cores: BTreeMap<String, i64>,
    /// Operations that have not ended.
    pub in_progress: usize,
    /// How often each operation was called.
    pub calls: BTreeMap<String, usize>,
    /// How many violations there are.
    pub violations: usize,
}

fn tags(sent: &Value) -> BTreeMap<String, String> {
    let tags = sent.as_object().into_iter().flatten();
    tags.map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()))
        .collect()
}

impl World {
    pub(crate) fn vm_state(&self, vm: &Vm) -> VmState {
        let inside = shelf::key(&vm.group, &vm.name) + "/";
        let extensions = self.extensions.iter().filter(|(key, _)| key.starts_with(&inside));
        let key = shelf::key(&vm.group, &vm.name);
        let behind = self.machines.values().find(|machine| machine.vm == key);
        VmState {
            name: vm.name.clone(),
            id: vm.id.clone(),
            size: vm.wish.size.clone(),
            zone: vm.wish.zone.clone(),
            capacity: vm.wish.capacity(),
            state: vm.stage.text(),
            deallocated: vm.is_deallocated,
            machine: vm.is_machine,
            tags: tags(&vm.sent["tags"]),
            extensions: extensions
                .filter_map(|(_, one)| one.json["name"].as_str())
                .map(ToOwned::to_owned)
                .collect(),
            puts: vm.puts,
            request: vm.sent.clone(),
            machine_request: behind.map_or(Value::Null, |machine| machine.sent.clone()),
        }
    }

    pub(crate) fn state(&self) -> State {
        State {
            now: self.now().to_string(),
            vms: self.vms.all().map(|vm| self.vm_state(vm)).collect(),
            nics: self.nics.all().map(nic_state).collect(),
            disks: self.disks.all().map(disk_state).collect(),
            machines: self
                .machines
                .iter()
                .map(|(name, one)| (name.clone(), one.stage.text().to_owned()))
                .collect(),
            cores: allocation::quota_state(self),
            in_progress: self.operations.in_progress(),
            calls: self.ledger.counts(),
            violations: self.ledger.violations.len(),
        }
    }
}

pub(crate) fn nic_state(nic: &Nic) -> NicState {
    NicState {
        name: nic.name.clone(),
        id: nic.id.clone(),
        state: nic.stage.text(),
        vm: nic.vm.clone(),
        tags: tags(&nic.sent["tags"]),
        reserved_until: nic.reserved.as_ref().map(|(_, until)| until.to_string()),
        request: nic.sent.clone(),
    }
}

pub(crate) fn disk_state(disk: &Disk) -> DiskState {
    DiskState {
        name: disk.name.clone(),
        id: disk.id.clone(),
        vm: disk.vm.clone(),
        tags: tags(&disk.tags),
    }
}
