//! Which machines does AKS have in its pool? Made one by one or many at once, each with a virtual machine behind it.

use std::collections::BTreeMap;

use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    allocation::Wish,
    answer::{Answer, Refusal},
    operation::End,
    request::{Asked, check_tags},
    shelf,
    vm::{Stage, Vm, changed},
    world::World,
};

const KIND: &str = "Microsoft.ContainerService/managedClusters/agentPools/machines";

pub(crate) struct Machine {
    pub(crate) name: String,
    pub(crate) sent: Value,
    pub(crate) stage: Stage,
    /// The key of its virtual machine.
    pub(crate) vm: String,
    vm_id: String,
    created: Timestamp,
    failure: Option<Refusal>,
    /// What AKS would do about a difference, and why.
    drift: (String, String),
    version: u64,
}

/// The header that makes many of one request.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Batch {
    batch_machines: Vec<BatchMachine>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct BatchMachine {
    machine_name: String,
    #[serde(default)]
    zones: Vec<String>,
    #[serde(default)]
    tags: BTreeMap<String, String>,
}

impl World {
    fn check_cluster(&self, asked: &Asked<'_>) -> Result<(), Refusal> {
        let cluster = asked.name("cluster");
        if !asked.name("group").eq_ignore_ascii_case(&self.setup.cluster_group)
            || !cluster.eq_ignore_ascii_case(&self.setup.cluster)
        {
            let kind = "Microsoft.ContainerService/managedClusters";
            return Err(Refusal::not_found(kind, cluster, asked.name("group")));
        }
        Ok(())
    }

    fn check_pool(&self, asked: &Asked<'_>) -> Result<(), Refusal> {
        self.check_cluster(asked)?;
        let pool = asked.name("pool");
        if pool != self.setup.pool {
            let message = format!("The agent pool {pool} is not found in the cluster.");
            return Err(Refusal::new(404, "NotFound", message));
        }
        Ok(())
    }

    pub(crate) fn put_machine(&mut self, asked: &Asked<'_>) -> Result<Answer, Refusal> {
        self.check_pool(asked)?;
        let name = asked.name("machine").to_ascii_lowercase();
        let Some(header) = asked.header("BatchPutMachine") else {
            return self.put_one(asked, &name, asked.body.clone());
        };
        let batch: Batch = serde_json::from_str(header)
            .map_err(|error| Refusal::bad("InvalidParameter", format!("The header BatchPutMachine: {error}.")))?;
        self.put_batch(asked, &name, &batch)
    }

    /// Every machine of a batch stands for itself; those that cannot be made are told together.
    fn put_batch(&mut self, asked: &Asked<'_>, first: &str, batch: &Batch) -> Result<Answer, Refusal> {
        if batch.batch_machines.is_empty() || batch.batch_machines.len() > 50 {
            return Err(Refusal::bad("InvalidParameter", "A batch has 1 to 50 machines."));
        }
        let mut answer = None;
        let mut failures = Vec::new();
        for one in &batch.batch_machines {
            let mut body = asked.body.clone();
            body["zones"] = json!(one.zones);
            body["properties"]["tags"] = json!(one.tags);
            let name = one.machine_name.to_ascii_lowercase();
            match self.put_one(asked, &name, body) {
                Ok(made) if name == first || answer.is_none() => answer = Some(made),
                Ok(_) => {}
                Err(refusal) => failures.push(refusal.at(one.machine_name.clone())),
            }
        }
        if !failures.is_empty() {
            let mut refusal = Refusal::bad("BatchMachineClientError", "Some machines of the batch were not made.");
            refusal.details = failures;
            return Err(refusal);
        }
        answer.ok_or_else(|| Refusal::bad("InvalidParameter", "The batch is empty."))
    }

    fn put_one(&mut self, asked: &Asked<'_>, name: &str, body: Value) -> Result<Answer, Refusal> {
        check_tags(&body["properties"]["tags"])?;
        if let Some(old) = self.machines.get(name).filter(|old| old.stage != Stage::Failed) {
            let tag = asked.header("If-Match");
            if tag.is_some_and(|tag| tag != etag(old)) {
                return Err(Refusal::new(
                    412,
                    "PreconditionFailed",
                    "The etag is not the current one.",
                ));
            }
            if let Some(property) = changed(&settled(&old.sent), &settled(&body)) {
                let message = format!("Changing property '{property}' is not allowed.");
                return Err(Refusal::bad("PropertyChangeNotAllowed", message).at(property));
            }
            return Ok(self.update_machine(asked, name, body));
        }
        let wish = Wish::of(&body);
        let Some(_) = self.catalogue.sku(&wish.size) else {
            let message = format!(
                "The VM size of {} is not allowed in your subscription in location.",
                wish.size
            );
            return Err(Refusal::bad("VMSizeNotSupported", message));
        };
        let doom = self.allocate(&wish)?.or_else(|| asked.doom.clone());
        let machine = self.make_machine(name, body, wish, asked.now);
        let answer = Answer::new(201, self.machine_json(&machine));
        self.machines.insert(name.to_owned(), machine);
        Ok(self.begin(asked, End::MachineReady(name.to_owned()), doom, answer))
    }

    fn update_machine(&mut self, asked: &Asked<'_>, name: &str, body: Value) -> Answer {
        let version = self.next();
        let tags = body["properties"]["tags"].clone();
        let Some(machine) = self.machines.get_mut(name) else {
            return Answer::empty(204);
        };
        machine.sent = body;
        machine.version = version;
        if let Some(vm) = self.vms.edit(&machine.vm) {
            vm.sent["tags"] = tags;
        }
        let shown = self.machines.get(name).map(|machine| self.machine_json(machine));
        let answer = Answer::ok(shown.unwrap_or(Value::Null));
        self.begin(asked, End::MachineReady(name.to_owned()), None, answer)
    }

    /// A machine of somebody else in the pool.
    pub(crate) fn plant_machine(&mut self, name: &str, tags: &Value, now: Timestamp) {
        let body = json!({"properties": {"hardware": {"vmSize": "Standard_D4s_v5"}, "tags": tags}});
        let wish = Wish::of(&body);
        let mut machine = self.make_machine(name, body, wish, now);
        machine.stage = Stage::Succeeded;
        self.vm_ready(&machine.vm.clone(), None);
        self.machines.insert(name.to_owned(), machine);
    }

    /// How a node boots. The token is not the service's to know.
    pub(crate) fn node_bootstrapping(&self, asked: &Asked<'_>) -> Result<Answer, Refusal> {
        self.check_cluster(asked)?;
        let profile = &asked.body["provisionProfile"];
        let text = format!(
            "#cloud-config {} {} token={{{{.TokenID}}}}.{{{{.TokenSecret}}}}",
            profile["distro"].as_str().unwrap_or_default(),
            profile["vmSize"].as_str().unwrap_or_default(),
        );
        Ok(Answer::ok(json!({
            "customData": STANDARD.encode(text),
            "cse": "/opt/azure/containers/provision.sh {{.TokenID}}.{{.TokenSecret}}",
            "osImageConfig": {}, "sigImageConfig": {},
        })))
    }

    fn make_machine(&mut self, name: &str, body: Value, wish: Wish, now: Timestamp) -> Machine {
        let version = self.next();
        let vm_name = format!("aks-{}-{name}-{version:08}-vm", self.setup.pool);
        let group = self.setup.node_group.clone();
        let vm_id = self.setup.compute_id(&group, "virtualMachines", &vm_name);
        let key = shelf::key(&group, &vm_name);
        let vm = Vm {
            id: vm_id.clone(),
            name: vm_name,
            group,
            sent: vm_body(&body, &wish, &self.setup.region),
            wish,
            stage: Stage::Creating,
            is_deallocated: false,
            created: now,
            guid: self.guid(),
            is_machine: true,
            puts: 1,
            failure: None,
        };
        self.vms.put(&key, vm);
        Machine {
            name: name.to_owned(),
            sent: body,
            stage: Stage::Creating,
            vm: key,
            vm_id,
            created: now,
            failure: None,
            drift: ("Synced".to_owned(), String::new()),
            version,
        }
    }

    pub(crate) fn machine_ready(&mut self, name: &str, failure: Option<Refusal>) {
        let Some(machine) = self.machines.get_mut(name) else {
            return;
        };
        if machine.stage == Stage::Deleting {
            return;
        }
        machine.stage = if failure.is_some() {
            Stage::Failed
        } else {
            Stage::Succeeded
        };
        machine.failure.clone_from(&failure);
        let key = machine.vm.clone();
        self.vm_ready(&key, failure);
    }

    pub(crate) fn machines_gone(&mut self, names: &[String], is_failed: bool) {
        for name in names {
            if is_failed {
                if let Some(machine) = self.machines.get_mut(name) {
                    machine.stage = Stage::Failed;
                }
            } else if let Some(machine) = self.machines.remove(name) {
                self.remove_vm(&machine.vm);
            }
        }
    }

    pub(crate) fn get_machine(&self, asked: &Asked<'_>) -> Result<Answer, Refusal> {
        self.check_pool(asked)?;
        let name = asked.name("machine");
        let found = self.machines.get(&name.to_ascii_lowercase());
        let found = found.map(|machine| Answer::ok(self.machine_json(machine)));
        found.ok_or_else(|| Refusal::new(404, "NotFound", format!("The machine {name} is not found.")))
    }

    pub(crate) fn list_machines(&self, asked: &Asked<'_>) -> Result<Answer, Refusal> {
        self.check_pool(asked)?;
        let all = self.machines.values().map(|machine| self.machine_json(machine));
        self.paged(asked, all.collect())
    }

    pub(crate) fn delete_machines(&mut self, asked: &Asked<'_>) -> Result<Answer, Refusal> {
        self.check_pool(asked)?;
        let names = asked.body["machineNames"].as_array().into_iter().flatten();
        let names = names.filter_map(Value::as_str).map(str::to_ascii_lowercase);
        let names: Vec<String> = names.filter(|name| self.machines.contains_key(name)).collect();
        if names.is_empty() {
            let message = "Cannot find any valid machines to delete.";
            return Err(Refusal::bad("InvalidParameter", message).at("machineNames"));
        }
        for name in &names {
            if let Some(machine) = self.machines.get_mut(name) {
                machine.stage = Stage::Deleting;
            }
        }
        Ok(self.begin(asked, End::MachinesGone(names), asked.doom.clone(), Answer::empty(202)))
    }

    pub(crate) fn get_pool(&self, asked: &Asked<'_>) -> Result<Answer, Refusal> {
        self.check_pool(asked)?;
        let pool = &self.setup.pool;
        Ok(Answer::ok(json!({
            "id": self.pool_id(), "name": pool, "type": "Microsoft.ContainerService/managedClusters/agentPools",
            "properties": {
                "count": self.machines.len(), "mode": "Machines", "osType": "Linux", "provisioningState": "Succeeded",
            },
        })))
    }

    fn pool_id(&self) -> String {
        let group = self.setup.group_id(&self.setup.cluster_group);
        let cluster = format!(
            "{group}/providers/Microsoft.ContainerService/managedClusters/{}",
            self.setup.cluster
        );
        format!("{cluster}/agentPools/{}", self.setup.pool)
    }

    /// Sets what AKS says about a machine.
    pub(crate) fn set_drift(&mut self, knob: &crate::knob::MachineDrift) -> Result<(), String> {
        let machine = self.machines.get_mut(&knob.machine.to_ascii_lowercase());
        let machine = machine.ok_or_else(|| format!("no machine is called `{}`", knob.machine))?;
        machine.drift = (knob.action.clone(), knob.reason.clone());
        Ok(())
    }

    pub(crate) fn machine_json(&self, machine: &Machine) -> Value {
        let mut shown = machine.sent.clone();
        shown["id"] = json!(format!("{}/machines/{}", self.pool_id(), machine.name));
        shown["name"] = json!(machine.name);
        shown["type"] = json!(KIND);
        let properties = &mut shown["properties"];
        properties["resourceId"] = json!(machine.vm_id);
        properties["provisioningState"] = json!(machine.stage.text());
        properties["eTag"] = json!(etag(machine));
        if properties["nodeImageVersion"].is_null() {
            properties["nodeImageVersion"] = json!("AKSUbuntu-2204gen2containerd-202512.18.0");
        }
        properties["status"] =
            json!({"creationTimestamp": machine.created.to_string(), "driftAction": machine.drift.0});
        if !machine.drift.1.is_empty() {
            properties["status"]["driftReason"] = json!(machine.drift.1);
        }
        if let Some(failure) = &machine.failure {
            properties["status"]["provisioningError"] = provisioning_error(failure);
        }
        shown
    }
}

fn etag(machine: &Machine) -> String {
    format!("{:016x}", machine.version)
}

/// The outer error is AKS's, the inner one that of the virtual machine.
fn provisioning_error(failure: &Refusal) -> Value {
    json!({
        "code": "VMProvisioningError", "message": "The virtual machine of the machine could not be made.",
        "details": [failure.error()],
    })
}

/// A body without what a client may change or only reads back.
fn settled(body: &Value) -> Value {
    let mut body = body.clone();
    if let Some(properties) = body["properties"].as_object_mut() {
        for name in [
            "tags",
            "resourceId",
            "provisioningState",
            "eTag",
            "status",
            "nodeImageVersion",
        ] {
            properties.remove(name);
        }
    }
    body
}

fn vm_body(machine: &Value, wish: &Wish, region: &str) -> Value {
    let mut body = json!({
        "location": region, "zones": machine["zones"], "tags": machine["properties"]["tags"],
        "properties": {
            "hardwareProfile": {"vmSize": wish.size}, "priority": if wish.is_spot { "Spot" } else { "Regular" },
            "storageProfile": {"osDisk": {"createOption": "FromImage", "deleteOption": "Delete"}},
        },
    });
    for name in ["zones", "tags"] {
        if body[name].is_null()
            && let Some(fields) = body.as_object_mut()
        {
            fields.remove(name);
        }
    }
    if wish.is_spot {
        body["properties"]["evictionPolicy"] = json!("Delete");
    }
    body
}
