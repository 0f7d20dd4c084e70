//! Which network interfaces are there? Addresses from subnets, places in back-end pools, and whose they are.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    answer::{Answer, Refusal},
    operation::End,
    request::{Asked, check_tags},
    vm::Stage,
    world::World,
};

const KIND: &str = "Microsoft.Network/networkInterfaces";

pub(crate) struct Nic {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) group: String,
    pub(crate) sent: Value,
    pub(crate) stage: Stage,
    /// The virtual machine that uses it.
    pub(crate) vm: Option<String>,
    /// The virtual machine that it is kept for after a failure, and until when.
    pub(crate) reserved: Option<(String, Timestamp)>,
    addresses: Vec<String>,
    guid: String,
}

impl Nic {
    /// One that no request made.
    pub(crate) fn planted(
        id: String,
        name: &str,
        group: &str,
        sent: Value,
        vm: Option<String>,
        addresses: Vec<String>,
        guid: String,
    ) -> Self {
        Self {
            id,
            name: name.to_owned(),
            group: group.to_owned(),
            sent,
            stage: Stage::Succeeded,
            vm,
            reserved: None,
            addresses,
            guid,
        }
    }

    /// The network service knows no state «Creating».
    pub(crate) fn state(stage: Stage) -> &'static str {
        match stage {
            Stage::Creating => Stage::Updating.text(),
            other => other.text(),
        }
    }

    pub(crate) fn is_accelerated(&self) -> bool {
        self.sent["properties"]["enableAcceleratedNetworking"] == true
    }

    pub(crate) fn in_use(&self, user: &str) -> Refusal {
        let message = format!(
            "Network Interface {} is used by existing resource {user}. In order to delete the network interface, it must \
             be dissociated from the resource.",
            self.id
        );
        Refusal::bad("NicInUse", message)
    }

    /// Why nobody but the named virtual machine may touch it now.
    pub(crate) fn reserved_for_other(&self, vm: &str, now: Timestamp) -> Option<Refusal> {
        let (_, until) = self
            .reserved
            .as_ref()
            .filter(|(kept, until)| kept != vm && *until > now)?;
        let left = until.duration_since(now).as_secs();
        let message = format!(
            "Nic(s) in request is reserved for another Virtual Machine for {left} seconds. Please provide another nic(s) \
             or retry after {left} seconds. Reserved nic(s): {}",
            self.id
        );
        Some(Refusal::bad("NicReservedForAnotherVm", message))
    }

    pub(crate) fn subnets(&self) -> Vec<String> {
        configurations(&self.sent)
            .filter_map(|one| one["properties"]["subnet"]["id"].as_str())
            .map(str::to_ascii_lowercase)
            .collect()
    }
}

fn configurations(body: &Value) -> impl Iterator<Item = &Value> {
    body["properties"]["ipConfigurations"].as_array().into_iter().flatten()
}

impl World {
    pub(crate) fn put_nic(&mut self, asked: &Asked<'_>, group: &str) -> Result<Answer, Refusal> {
        let key = asked.key("nic");
        let old = self.nics.get(&key);
        if old.is_some_and(|nic| nic.stage == Stage::Deleting) {
            return Err(Refusal::new(409, "Conflict", "The network interface is being deleted."));
        }
        let same = old.filter(|nic| nic.sent == asked.body && nic.stage != Stage::Failed);
        if let Some(nic) = same {
            return Ok(self.join(asked, &End::NicReady(key), Answer::ok(Self::nic_json(nic))));
        }
        self.check_nic(asked, &key)?;
        let status = if old.is_some() { 200 } else { 201 };
        let (vm, reserved) = old.map_or((None, None), |nic| (nic.vm.clone(), nic.reserved.clone()));
        let name = asked.name("nic").to_owned();
        let nic = Nic {
            id: self.setup.network_id(group, "networkInterfaces", &name),
            name,
            group: group.to_owned(),
            sent: asked.body.clone(),
            stage: if status == 201 {
                Stage::Creating
            } else {
                Stage::Updating
            },
            vm,
            reserved,
            addresses: self.addresses(configurations(&asked.body).count()),
            guid: self.guid(),
        };
        let answer = Answer::new(status, Self::nic_json(&nic));
        self.nics.put(&key, nic);
        Ok(self.begin(asked, End::NicReady(key), asked.doom.clone(), answer))
    }

    pub(crate) fn addresses(&mut self, count: usize) -> Vec<String> {
        let one = |number: u64| format!("10.224.{}.{}", (number / 250) % 256, number % 250 + 4);
        (0..count).map(|_| self.next()).map(one).collect()
    }

    fn check_nic(&self, asked: &Asked<'_>, key: &str) -> Result<(), Refusal> {
        let body = &asked.body;
        self.in_region(body["location"].as_str().unwrap_or_default())?;
        check_tags(&body["tags"])?;
        let own = self
            .setup
            .network_id(asked.name("group"), "networkInterfaces", asked.name("nic"));
        if configurations(body).next().is_none() {
            let message = format!("Network interface {own} must have at least one IP configuration.");
            return Err(Refusal::bad(
                "NetworkInterfaceMustHaveAtLeastOneIpConfiguration",
                message,
            ));
        }
        let primaries = configurations(body).filter(|one| one["properties"]["primary"] == true);
        if configurations(body).count() > 1 && primaries.count() != 1 {
            let message = format!("Network interface {own} must have exactly one primary IP configuration.");
            return Err(Refusal::bad("IpConfigurationsOnSameNicMustHaveOnePrimary", message));
        }
        self.check_references(body, &own)?;
        self.check_room(body, key)
    }

    /// Everything that an interface names must be there.
    fn check_references(&self, body: &Value, own: &str) -> Result<(), Refusal> {
        let mut named: Vec<&str> = body["properties"]["networkSecurityGroup"]["id"]
            .as_str()
            .into_iter()
            .collect();
        for one in configurations(body) {
            let subnet = one["properties"]["subnet"]["id"].as_str();
            let subnet =
                subnet.ok_or_else(|| Refusal::bad("InvalidRequestFormat", format!("{own} names no subnet.")))?;
            named.push(subnet);
            let pools = one["properties"]["loadBalancerBackendAddressPools"].as_array();
            named.extend(pools.into_iter().flatten().filter_map(|pool| pool["id"].as_str()));
        }
        match named.into_iter().find(|id| !self.network.has(&self.setup, id)) {
            None => Ok(()),
            Some(id) => {
                let message = format!(
                    "Resource {id} referenced by resource {own} was not found. Please make sure that the referenced \
                     resource exists, and that both resources are in the same region."
                );
                Err(Refusal::bad("InvalidResourceReference", message))
            }
        }
    }

    fn check_room(&self, body: &Value, key: &str) -> Result<(), Refusal> {
        let subnets = configurations(body).filter_map(|one| one["properties"]["subnet"]["id"].as_str());
        let subnets: Vec<String> = subnets.map(str::to_ascii_lowercase).collect();
        let Some(subnet) = subnets.first() else { return Ok(()) };
        let others = self.nics.iter().filter(|(other, _)| other.as_str() != key);
        let taken = others
            .flat_map(|(_, nic)| nic.subnets())
            .filter(|one| one == subnet)
            .count();
        let room = self.network.room(subnet);
        if taken + subnets.len() > room {
            let name = subnet.rsplit('/').next().unwrap_or_default();
            let message = format!(
                "Subnet {name} with address prefix {} does not have enough capacity for {} IP addresses.",
                self.network.prefix(subnet),
                subnets.len()
            );
            return Err(Refusal::bad("SubnetIsFull", message));
        }
        Ok(())
    }

    /// How many addresses of a subnet are taken.
    pub(crate) fn taken(&self, subnet: &str) -> usize {
        let all = self.nics.all().flat_map(Nic::subnets);
        all.filter(|one| one.eq_ignore_ascii_case(subnet)).count()
    }

    fn nic(&self, asked: &Asked<'_>) -> Result<&Nic, Refusal> {
        let found = self.nics.get(&asked.key("nic"));
        found.ok_or_else(|| Refusal::not_found(KIND, asked.name("nic"), asked.name("group")))
    }

    pub(crate) fn get_nic(&self, asked: &Asked<'_>) -> Result<Answer, Refusal> {
        self.nic(asked).map(|nic| Answer::ok(Self::nic_json(nic)))
    }

    pub(crate) fn list_nics(&self, asked: &Asked<'_>, group: &str) -> Result<Answer, Refusal> {
        let here = self.nics.all().filter(|nic| nic.group == group);
        self.paged(asked, here.map(Self::nic_json).collect())
    }

    pub(crate) fn patch_nic(&mut self, asked: &Asked<'_>) -> Result<Answer, Refusal> {
        self.nic(asked)?;
        check_tags(&asked.body["tags"])?;
        if let Some(nic) = self.nics.edit(&asked.key("nic")) {
            nic.sent["tags"] = asked.body["tags"].clone();
        }
        self.get_nic(asked)
    }

    pub(crate) fn delete_nic(&mut self, asked: &Asked<'_>) -> Result<Answer, Refusal> {
        let key = asked.key("nic");
        let Some(nic) = self.nics.edit(&key) else {
            return Ok(Answer::empty(204));
        };
        if let Some(user) = &nic.vm {
            return Err(nic.in_use(user));
        }
        if let Some(refusal) = nic.reserved_for_other("", asked.now) {
            return Err(refusal);
        }
        nic.stage = Stage::Deleting;
        Ok(self.begin(asked, End::NicGone(key), asked.doom.clone(), Answer::empty(202)))
    }

    pub(crate) fn nic_ready(&mut self, key: &str, is_failed: bool) {
        if let Some(nic) = self.nics.edit(key).filter(|nic| nic.stage != Stage::Deleting) {
            nic.stage = if is_failed { Stage::Failed } else { Stage::Succeeded };
        }
    }

    pub(crate) fn nic_gone(&mut self, key: &str, is_failed: bool) {
        if !is_failed {
            self.nics.take(key);
        } else if let Some(nic) = self.nics.edit(key) {
            nic.stage = Stage::Failed;
        }
    }

    pub(crate) fn nic_json(nic: &Nic) -> Value {
        let mut shown = nic.sent.clone();
        shown["id"] = json!(nic.id);
        shown["name"] = json!(nic.name);
        shown["type"] = json!(KIND);
        shown["etag"] = json!(format!("W/\"{}\"", nic.guid));
        let properties = &mut shown["properties"];
        properties["provisioningState"] = json!(Nic::state(nic.stage));
        properties["resourceGuid"] = json!(nic.guid);
        properties["nicType"] = json!("Standard");
        if let Some(vm) = &nic.vm {
            properties["virtualMachine"] = json!({"id": vm});
            properties["primary"] = json!(true);
        }
        let list = properties.get_mut("ipConfigurations").and_then(Value::as_array_mut);
        for (one, address) in list.into_iter().flatten().zip(&nic.addresses) {
            let name = one["name"].as_str().unwrap_or("ipconfig").to_owned();
            one["id"] = json!(format!("{}/ipConfigurations/{name}", nic.id));
            one["type"] = json!(format!("{KIND}/ipConfigurations"));
            let inner = &mut one["properties"];
            inner["privateIPAddress"] = json!(address);
            inner["privateIPAddressVersion"] = json!("IPv4");
            inner["provisioningState"] = json!(Nic::state(nic.stage));
        }
        shown
    }
}
