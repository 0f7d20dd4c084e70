//! Which virtual machines are there? How they are made, shown, changed and removed, and what goes with them.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::{
    admission::Admitted,
    allocation::Wish,
    answer::{Answer, Refusal},
    disk::Disk,
    knob::Evict,
    operation::End,
    request::{Asked, check_tags},
    shelf,
    world::World,
};

const KIND: &str = "Microsoft.Compute/virtualMachines";

/// How far a virtual machine or a network interface has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Creating,
    Updating,
    Succeeded,
    Failed,
    Deleting,
}

impl Stage {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Creating => "Creating",
            Self::Updating => "Updating",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::Deleting => "Deleting",
        }
    }
}

pub(crate) struct Vm {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) group: String,
    /// What the client sent, which is what a repeated request is compared with.
    pub(crate) sent: Value,
    pub(crate) wish: Wish,
    pub(crate) stage: Stage,
    pub(crate) is_deallocated: bool,
    pub(crate) created: Timestamp,
    pub(crate) guid: String,
    /// Whether a machine of AKS is behind it: those have no resources of their own here.
    pub(crate) is_machine: bool,
    /// How often it was made: more than once means a client repeated itself without need.
    pub(crate) puts: u32,
    /// Why it could not be made.
    pub(crate) failure: Option<Refusal>,
}

impl Vm {
    pub(crate) fn holds_cores(&self) -> bool {
        !self.is_deallocated && self.stage != Stage::Failed
    }

    fn nics(&self) -> impl Iterator<Item = (String, bool)> {
        let list = self.sent["properties"]["networkProfile"]["networkInterfaces"].as_array();
        list.into_iter().flatten().filter_map(|nic| {
            let goes_along = nic["properties"]["deleteOption"] == "Delete";
            Some((shelf::key_of(nic["id"].as_str()?)?, goes_along))
        })
    }
}

/// An eviction that was announced.
pub(crate) struct Eviction {
    pub(crate) vm: String,
    pub(crate) at: Timestamp,
    pub(crate) event: String,
}

impl World {
    pub(crate) fn put_vm(&mut self, asked: &Asked<'_>, group: &str) -> Result<Answer, Refusal> {
        let key = asked.key("vm");
        match self.vms.get(&key).map(|vm| (vm.stage, changed(&vm.sent, &asked.body))) {
            Some((Stage::Deleting, _)) => {
                let message = format!("The virtual machine {} is being deleted.", asked.name("vm"));
                Err(Refusal::new(409, "Conflict", message))
            }
            Some((_, Some(property))) => {
                let message = format!("Changing property '{property}' is not allowed.");
                Err(Refusal::new(409, "PropertyChangeNotAllowed", message).at(property))
            }
            Some((Stage::Failed, None)) | None => self.make_vm(asked, group, &key),
            Some(_) => self.renew_vm(asked, &key),
        }
    }

    fn make_vm(&mut self, asked: &Asked<'_>, group: &str, key: &str) -> Result<Answer, Refusal> {
        let admitted = self.admit(asked, key)?;
        let doom = self
            .allocate(&admitted.wish)
            .inspect_err(|_| self.reserve(&admitted, key, asked.now));
        let doom = doom?.or_else(|| asked.doom.clone());
        let known = self.vms.get(key).map(|vm| (vm.created, vm.guid.clone(), vm.puts));
        let (created, guid, puts) = known.unwrap_or_else(|| (asked.now, self.guid(), 0));
        let name = asked.name("vm").to_owned();
        let vm = Vm {
            id: self.setup.compute_id(group, "virtualMachines", &name),
            name,
            group: group.to_owned(),
            sent: asked.body.clone(),
            wish: admitted.wish.clone(),
            stage: Stage::Creating,
            is_deallocated: false,
            created,
            guid,
            is_machine: false,
            puts: puts + 1,
            failure: None,
        };
        for nic in &admitted.nics {
            if let Some(nic) = self.nics.edit(nic) {
                nic.vm = Some(vm.id.clone());
                nic.reserved = None;
            }
        }
        if let Some(disk) = Disk::of(&self.setup, &vm) {
            self.disks.put(&shelf::key(group, &disk.name), disk);
        }
        let body = self.vm_json(&vm, false);
        self.vms.put(key, vm);
        let answer = Answer::new(201, body);
        Ok(self.begin(asked, End::VmReady(key.to_owned()), doom, answer))
    }

    /// The same once more: nothing is made, tags and identities are taken over.
    fn renew_vm(&mut self, asked: &Asked<'_>, key: &str) -> Result<Answer, Refusal> {
        check_tags(&asked.body["tags"])?;
        if let Some(vm) = self.vms.edit(key) {
            vm.sent = asked.body.clone();
            vm.puts += 1;
        }
        let shown = self.vms.get(key).map(|vm| self.vm_json(vm, false));
        let answer = Answer::ok(shown.unwrap_or(Value::Null));
        // A repetition neither saves a machine that will fail nor makes one wait longer.
        Ok(self.join(asked, &End::VmReady(key.to_owned()), answer))
    }

    /// Keeps the network interfaces of a virtual machine that could not be made for it alone.
    pub(crate) fn reserve(&mut self, admitted: &Admitted, key: &str, now: Timestamp) {
        let until = now + SignedDuration::from_secs(self.setup.reserved_seconds);
        for nic in &admitted.nics {
            if let Some(nic) = self.nics.edit(nic) {
                nic.reserved = Some((key.to_owned(), until));
            }
        }
    }

    pub(crate) fn vm_ready(&mut self, key: &str, failure: Option<Refusal>) {
        let Some(vm) = self.vms.edit(key) else { return };
        if vm.stage != Stage::Deleting {
            vm.stage = if failure.is_some() {
                Stage::Failed
            } else {
                Stage::Succeeded
            };
            vm.failure = failure;
        }
    }

    /// A deletion failed.
    pub(crate) fn vm_stays(&mut self, key: &str) {
        if let Some(vm) = self.vms.edit(key) {
            vm.stage = Stage::Failed;
        }
    }

    pub(crate) fn get_vm(&self, asked: &Asked<'_>) -> Result<Answer, Refusal> {
        let vm = self.vm(asked)?;
        let with_view = asked.query.get("$expand").is_some_and(|what| what == "instanceView");
        Ok(Answer::ok(self.vm_json(vm, with_view)))
    }

    pub(crate) fn vm(&self, asked: &Asked<'_>) -> Result<&Vm, Refusal> {
        let found = self.vms.get(&asked.key("vm"));
        found.ok_or_else(|| Refusal::not_found(KIND, asked.name("vm"), asked.name("group")))
    }

    pub(crate) fn list_vms(&self, asked: &Asked<'_>, group: &str) -> Result<Answer, Refusal> {
        let here = self.vms.all().filter(|vm| vm.group == group);
        self.paged(asked, here.map(|vm| self.vm_json(vm, false)).collect())
    }

    pub(crate) fn patch_vm(&mut self, asked: &Asked<'_>) -> Result<Answer, Refusal> {
        let stage = self.vm(asked)?.stage;
        if stage == Stage::Deleting {
            return Err(Refusal::new(409, "Conflict", "The virtual machine is being deleted."));
        }
        check_tags(&asked.body["tags"])?;
        let key = asked.key("vm");
        if let Some(vm) = self.vms.edit(&key) {
            if asked.body["tags"].is_object() {
                vm.sent["tags"] = asked.body["tags"].clone();
            }
            merge_identity(&mut vm.sent, &asked.body["identity"]);
            if stage == Stage::Succeeded {
                vm.stage = Stage::Updating;
            }
        }
        let body = self.vm(asked).map(|vm| self.vm_json(vm, false))?;
        let answer = Answer::ok(body);
        if stage != Stage::Succeeded {
            return Ok(self.join(asked, &End::VmReady(key), answer));
        }
        Ok(self.begin(asked, End::VmReady(key), asked.doom.clone(), answer))
    }

    pub(crate) fn delete_vm(&mut self, asked: &Asked<'_>) -> Result<Answer, Refusal> {
        let force = asked.query.get("forceDeletion").map(String::as_str);
        if !matches!(force, None | Some("true" | "false")) {
            return Err(Refusal::bad("InvalidParameter", "forceDeletion is true or false.").at("forceDeletion"));
        }
        let key = asked.key("vm");
        let Some(vm) = self.vms.edit(&key) else {
            return Ok(Answer::empty(204));
        };
        vm.stage = Stage::Deleting;
        Ok(self.begin(asked, End::VmGone(key), asked.doom.clone(), Answer::empty(202)))
    }

    /// Removes a virtual machine with what goes along; the rest is let go.
    pub(crate) fn remove_vm(&mut self, key: &str) {
        let Some(vm) = self.vms.take(key) else { return };
        for (nic, goes_along) in vm.nics() {
            if goes_along {
                self.nics.take(&nic);
            } else if let Some(nic) = self.nics.edit(&nic) {
                nic.vm = None;
            }
        }
        let disk = &vm.sent["properties"]["storageProfile"]["osDisk"];
        let disk_key = shelf::key(&vm.group, disk["name"].as_str().unwrap_or_default());
        if disk["deleteOption"] == "Delete" {
            self.disks.take(&disk_key);
        } else if let Some(disk) = self.disks.edit(&disk_key) {
            disk.vm = None;
        }
        let inside = format!("{key}/");
        self.extensions.retain(|key, _| !key.starts_with(&inside));
        self.evictions.retain(|eviction| eviction.vm != key);
    }

    /// Announces an eviction.
    pub(crate) fn announce(&mut self, evict: &Evict, now: Timestamp) -> Result<(), String> {
        let wanted = evict.vm.to_ascii_lowercase();
        let found = self.vms.iter().find(|(_, vm)| vm.name.eq_ignore_ascii_case(&wanted));
        let (key, is_spot) = found
            .map(|(key, vm)| (key.clone(), vm.wish.is_spot))
            .ok_or_else(|| format!("no virtual machine is called `{wanted}`"))?;
        if !is_spot {
            return Err(format!("`{wanted}` is not a spot machine: only those are evicted"));
        }
        let event = self.guid().to_ascii_uppercase();
        let at = now + SignedDuration::from_secs(evict.notice_seconds);
        self.evictions.push(Eviction { vm: key, at, event });
        Ok(())
    }

    /// Evicts: by the machine's policy it is removed, or only stopped.
    pub(crate) fn evict(&mut self, key: &str) {
        self.evictions.retain(|eviction| eviction.vm != key);
        let policy = self
            .vms
            .get(key)
            .map(|vm| vm.sent["properties"]["evictionPolicy"].clone());
        if policy.is_some_and(|policy| policy == "Delete") {
            self.remove_vm(key);
        } else if let Some(vm) = self.vms.edit(key) {
            vm.is_deallocated = true;
        }
    }

    /// A virtual machine as it is shown: without what only its makers may know.
    pub(crate) fn vm_json(&self, vm: &Vm, with_view: bool) -> Value {
        let mut shown = vm.sent.clone();
        shown["id"] = json!(vm.id);
        shown["name"] = json!(vm.name);
        shown["type"] = json!(KIND);
        shown["etag"] = json!(format!("\"{}\"", vm.puts));
        let properties = &mut shown["properties"];
        properties["provisioningState"] = json!(vm.stage.text());
        properties["vmId"] = json!(vm.guid);
        properties["timeCreated"] = json!(vm.created.to_string());
        if let Some(profile) = properties.get_mut("osProfile").and_then(Value::as_object_mut) {
            profile.remove("customData");
            profile.remove("adminPassword");
        }
        if let Some(disk) = properties
            .pointer_mut("/storageProfile/osDisk")
            .and_then(Value::as_object_mut)
        {
            disk.insert("osType".to_owned(), json!("Linux"));
        }
        if with_view {
            properties["instanceView"] = instance_view(vm);
        }
        self.show_parts(vm, &mut shown);
        shown
    }

    fn show_parts(&self, vm: &Vm, shown: &mut Value) {
        let inside = shelf::key(&vm.group, &vm.name) + "/";
        let extensions = self.extensions.iter().filter(|(key, _)| key.starts_with(&inside));
        let extensions: Vec<Value> = extensions.map(|(_, one)| one.json.clone()).collect();
        if !extensions.is_empty() {
            shown["resources"] = Value::from(extensions);
        }
        let identities = shown.pointer_mut("/identity/userAssignedIdentities");
        let identities = identities.and_then(Value::as_object_mut);
        for (_, identity) in identities.into_iter().flatten() {
            *identity = json!({
                "principalId": "00000000-0000-4000-8000-0000000000aa",
                "clientId": "00000000-0000-4000-8000-0000000000bb",
            });
        }
        if shown.get("zones").and_then(Value::as_array).is_some_and(Vec::is_empty)
            && let Some(fields) = shown.as_object_mut()
        {
            fields.remove("zones");
        }
    }
}

fn instance_view(vm: &Vm) -> Value {
    let power = match (vm.is_deallocated, vm.stage) {
        (true, _) => "deallocated",
        (_, Stage::Creating) => "starting",
        (_, Stage::Deleting) => "stopping",
        _ => "running",
    };
    let provisioning = match (vm.stage, &vm.failure) {
        // What an operation failed with stays to be read here after the operation itself is forgotten.
        (Stage::Failed, Some(failure)) => json!({"code": format!("ProvisioningState/failed/{}", failure.code),
            "level": "Error", "displayStatus": "Provisioning failed", "message": failure.message}),
        (stage, _) => {
            json!({"code": format!("ProvisioningState/{}", stage.text().to_ascii_lowercase()), "level": "Info"})
        }
    };
    json!({"statuses": [provisioning, {"code": format!("PowerState/{power}"), "level": "Info"}]})
}

/// Identities are added, never taken away, by a patch.
fn merge_identity(sent: &mut Value, identity: &Value) {
    if !identity.is_object() {
        return;
    }
    let mut merged = identity.clone();
    let old = sent["identity"]["userAssignedIdentities"].as_object().cloned();
    for (id, value) in old.into_iter().flatten() {
        if merged["userAssignedIdentities"][&id].is_null() {
            merged["userAssignedIdentities"][&id] = value;
        }
    }
    sent["identity"] = merged;
}

/// The first property outside tags and identity in which two bodies differ.
pub(crate) fn changed(old: &Value, new: &Value) -> Option<String> {
    let names = ["location", "zones", "plan", "extendedLocation"];
    let top = names.into_iter().find(|name| normal(&old[name]) != normal(&new[name]));
    top.map(ToOwned::to_owned)
        .or_else(|| difference(&old["properties"], &new["properties"], ""))
}

fn difference(old: &Value, new: &Value, place: &str) -> Option<String> {
    if normal(old) == normal(new) {
        return None;
    }
    let (Some(before), Some(after)) = (old.as_object(), new.as_object()) else {
        return Some(place.trim_start_matches('.').to_owned());
    };
    let names = before.keys().chain(after.keys());
    let mut inner = names.filter_map(|name| difference(&old[name], &new[name], &format!("{place}.{name}")));
    inner.next()
}

/// Nothing and an empty list are the same.
fn normal(value: &Value) -> Value {
    match value {
        Value::Array(items) if items.is_empty() => Value::Null,
        other => other.clone(),
    }
}
