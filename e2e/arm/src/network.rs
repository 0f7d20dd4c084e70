//! Which networks, back-end pools and security groups are there, and how much room do subnets have?

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::{
    Setup,
    answer::{Answer, Refusal},
    knob::{PoolPresence, SubnetRoom},
    request::Asked,
    world::World,
};

/// The pools of a cluster's load balancers. The last two are not for nodes of ours.
const POOLS: [(&str, &str); 5] = [
    ("kubernetes", "kubernetes"),
    ("kubernetes", "aksOutboundBackendPool"),
    ("kubernetes-internal", "kubernetes"),
    ("kubernetes", "kubernetes-ipv6"),
    ("kubernetes", "by-address"),
];

struct Subnet {
    prefix: &'static str,
    room: usize,
}

pub(crate) struct Network {
    /// By id in lower case.
    subnets: BTreeMap<String, Subnet>,
    pools: BTreeSet<(String, String)>,
}

impl Network {
    pub(crate) fn new(setup: &Setup) -> Self {
        // Azure keeps five addresses of every subnet.
        let own = |prefix, room| Subnet { prefix, room };
        let subnets = [
            (setup.subnet_id(), own("10.224.0.0/16", 65_531)),
            (setup.own_subnet_id(), own("10.10.0.0/24", 251)),
        ];
        let subnets = subnets.map(|(id, subnet)| (id.to_ascii_lowercase(), subnet));
        let pools = POOLS.map(|(balancer, pool)| (balancer.to_owned(), pool.to_owned()));
        Self {
            subnets: subnets.into(),
            pools: pools.into(),
        }
    }

    /// Whether there is a subnet, pool or security group of an id.
    pub(crate) fn has(&self, setup: &Setup, id: &str) -> bool {
        let nsg = setup.network_id(&setup.node_group, "networkSecurityGroups", &setup.nsg());
        let pool = |(balancer, pool): &(String, String)| pool_id(setup, balancer, pool).eq_ignore_ascii_case(id);
        self.subnets.contains_key(&id.to_ascii_lowercase())
            || nsg.eq_ignore_ascii_case(id)
            || self.pools.iter().any(pool)
    }

    /// How many addresses a subnet has for interfaces in all.
    pub(crate) fn room(&self, id: &str) -> usize {
        self.subnets.get(id).map_or(0, |subnet| subnet.room)
    }

    pub(crate) fn prefix(&self, id: &str) -> &'static str {
        self.subnets.get(id).map_or("", |subnet| subnet.prefix)
    }

    pub(crate) fn set_pool(&mut self, knob: &PoolPresence) {
        let pool = (knob.load_balancer.clone(), knob.pool.clone());
        if knob.present {
            self.pools.insert(pool);
        } else {
            self.pools.remove(&pool);
        }
    }
}

fn pool_id(setup: &Setup, balancer: &str, pool: &str) -> String {
    let balancer = setup.network_id(&setup.node_group, "loadBalancers", balancer);
    format!("{balancer}/backendAddressPools/{pool}")
}

impl World {
    /// Leaves a subnet so much room beside what is taken.
    pub(crate) fn set_room(&mut self, knob: &SubnetRoom) -> Result<(), String> {
        let end = format!("/{}", knob.name.to_ascii_lowercase());
        let mut ids = self.network.subnets.keys().filter(|id| id.ends_with(&end));
        let Some(id) = ids.next().cloned() else {
            return Err(format!("no subnet is called `{}`", knob.name));
        };
        let room = self.taken(&id) + knob.free;
        if let Some(subnet) = self.network.subnets.get_mut(&id) {
            subnet.room = room;
        }
        Ok(())
    }

    pub(crate) fn load_balancers(&self, group: &str) -> Vec<Value> {
        let names: BTreeSet<&String> = self.network.pools.iter().map(|(balancer, _)| balancer).collect();
        let is_here = group == self.setup.node_group;
        let names = names.into_iter().filter(|_| is_here);
        names.map(|name| self.load_balancer(name)).collect()
    }

    fn load_balancer(&self, name: &str) -> Value {
        let pools = self.network.pools.iter().filter(|(balancer, _)| balancer == name);
        let pools = pools.map(|(_, pool)| {
            let addresses = if pool == "by-address" {
                json!([{"name": "one", "properties": {"ipAddress": "10.224.0.200"}}])
            } else {
                json!([])
            };
            json!({
                "id": pool_id(&self.setup, name, pool), "name": pool,
                "type": "Microsoft.Network/loadBalancers/backendAddressPools",
                "properties": {"provisioningState": "Succeeded", "loadBalancerBackendAddresses": addresses},
            })
        });
        json!({
            "id": self.setup.network_id(&self.setup.node_group, "loadBalancers", name), "name": name,
            "type": "Microsoft.Network/loadBalancers", "location": self.setup.region,
            "sku": {"name": "Standard", "tier": "Regional"},
            "properties": {"provisioningState": "Succeeded", "backendAddressPools": pools.collect::<Vec<_>>()},
        })
    }

    pub(crate) fn security_groups(&self, group: &str) -> Vec<Value> {
        let names = if group == self.setup.node_group {
            // A user's own beside that of the cluster: only one of them fits the name.
            vec![self.setup.nsg(), "jumpbox-nsg".to_owned()]
        } else {
            Vec::new()
        };
        names.iter().map(|name| self.security_group(name)).collect()
    }

    fn security_group(&self, name: &str) -> Value {
        json!({
            "id": self.setup.network_id(&self.setup.node_group, "networkSecurityGroups", name), "name": name,
            "type": "Microsoft.Network/networkSecurityGroups", "location": self.setup.region,
            "properties": {"provisioningState": "Succeeded", "securityRules": [], "defaultSecurityRules": []},
        })
    }

    pub(crate) fn get_security_group(&self, asked: &Asked<'_>, group: &str) -> Result<Answer, Refusal> {
        let wanted = asked.name("nsg");
        let all = self.security_groups(group);
        let found = all.into_iter().find(|one| {
            one["name"]
                .as_str()
                .is_some_and(|name| name.eq_ignore_ascii_case(wanted))
        });
        let kind = "Microsoft.Network/networkSecurityGroups";
        found
            .map(Answer::ok)
            .ok_or_else(|| Refusal::not_found(kind, wanted, group))
    }

    pub(crate) fn get_vnet(&self, asked: &Asked<'_>, group: &str) -> Result<Answer, Refusal> {
        let id = self.setup.network_id(group, "virtualNetworks", asked.name("vnet"));
        let inside = format!("{}/", id.to_ascii_lowercase());
        let subnets = self.network.subnets.iter().filter(|(key, _)| key.starts_with(&inside));
        let subnets: Vec<Value> = subnets.map(|(key, subnet)| subnet_json(&id, key, subnet)).collect();
        if subnets.is_empty() {
            let kind = "Microsoft.Network/virtualNetworks";
            return Err(Refusal::not_found(kind, asked.name("vnet"), group));
        }
        let guid = if group == self.setup.node_group { "a" } else { "b" };
        Ok(Answer::ok(json!({
            "id": id, "name": asked.name("vnet"), "type": "Microsoft.Network/virtualNetworks",
            "location": self.setup.region,
            "properties": {
                "provisioningState": "Succeeded", "resourceGuid": format!("0000000{guid}-0000-4000-8000-000000000001"),
                "addressSpace": {"addressPrefixes": ["10.0.0.0/8"]}, "subnets": subnets,
            },
        })))
    }

    pub(crate) fn get_subnet(&self, asked: &Asked<'_>, group: &str) -> Result<Answer, Refusal> {
        let vnet = self.setup.network_id(group, "virtualNetworks", asked.name("vnet"));
        let key = format!("{vnet}/subnets/{}", asked.name("subnet")).to_ascii_lowercase();
        match self.network.subnets.get(&key) {
            Some(subnet) => Ok(Answer::ok(subnet_json(&vnet, &key, subnet))),
            None => Err(Refusal::not_found(
                "Microsoft.Network/virtualNetworks/subnets",
                &format!("{}/{}", asked.name("vnet"), asked.name("subnet")),
                group,
            )),
        }
    }

    pub(crate) fn get_encryption_set(&self, asked: &Asked<'_>, group: &str) -> Result<Answer, Refusal> {
        let name = asked.name("encryption");
        let id = self.setup.compute_id(group, "diskEncryptionSets", name);
        if !id.eq_ignore_ascii_case(&self.setup.encryption_set_id()) {
            return Err(Refusal::not_found("Microsoft.Compute/diskEncryptionSets", name, group));
        }
        Ok(Answer::ok(json!({
            "id": id, "name": name, "type": "Microsoft.Compute/diskEncryptionSets", "location": self.setup.region,
            "properties": {
                "encryptionType": "EncryptionAtRestWithCustomerKey", "provisioningState": "Succeeded",
                "activeKey": {"keyUrl": "https://vault.example/keys/key/1"},
            },
        })))
    }

    pub(crate) fn locations(&self) -> Vec<Value> {
        let zones = self.setup.zones.iter();
        let zones: Vec<Value> = zones
            .map(|zone| json!({"logicalZone": zone, "physicalZone": format!("{}-az{zone}", self.setup.region)}))
            .collect();
        let id = format!(
            "/subscriptions/{}/locations/{}",
            self.setup.subscription, self.setup.region
        );
        vec![json!({
            "id": id, "name": self.setup.region, "type": "Region", "displayName": self.setup.region,
            "regionalDisplayName": self.setup.region,
            "metadata": {"regionType": "Physical", "regionCategory": "Recommended"},
            "availabilityZoneMappings": zones,
        })]
    }
}

fn subnet_json(vnet: &str, key: &str, subnet: &Subnet) -> Value {
    let name = key.rsplit('/').next().unwrap_or_default();
    json!({
        "id": format!("{vnet}/subnets/{name}"), "name": name, "type": "Microsoft.Network/virtualNetworks/subnets",
        "properties": {"provisioningState": "Succeeded", "addressPrefix": subnet.prefix},
    })
}
