//! May whoever asks do that? The roles that a knob gave, for the call itself and for what it joins.

use serde_json::Value;

use crate::{answer::Refusal, glob, request::Asked, world::World};

impl World {
    fn may(&self, action: &str, scope: &str) -> bool {
        let Some(role) = &self.role else { return true };
        let scope = format!("{}/", scope.to_ascii_lowercase());
        role.grants.iter().any(|grant| {
            let above = format!("{}/", grant.scope.trim_end_matches('/').to_ascii_lowercase());
            scope.starts_with(&above) && grant.actions.iter().any(|known| glob::fits(known, action))
        })
    }

    /// Refuses what no role allows.
    pub(crate) fn authorize(&self, asked: &Asked<'_>) -> Result<(), Refusal> {
        let action = asked.operation.action.replace("{namespace}", asked.name("namespace"));
        if action.is_empty() {
            return Ok(());
        }
        if !self.may(&action, asked.path) {
            let message = format!(
                "The client does not have authorization to perform action '{action}' over scope '{}'.",
                asked.path
            );
            return Err(Refusal::new(403, "AuthorizationFailed", message));
        }
        let linked = match asked.id() {
            "VirtualMachines_CreateOrUpdate" => of_vm(asked),
            "VirtualMachines_Delete" => self.goes_along(asked),
            "VirtualMachines_Update" => identities(&asked.body),
            "NetworkInterfaces_CreateOrUpdate" => of_nic(&asked.body),
            _ => Vec::new(),
        };
        let missing = linked.into_iter().find(|(action, scope)| !self.may(action, scope));
        missing.map_or(Ok(()), |(linked, scope)| {
            let message = format!(
                "The client has permission to perform action '{action}' on scope '{}'; however, it does not have \
                 permission to perform action(s) '{linked}' on the linked scope(s) '{scope}'.",
                asked.path
            );
            Err(Refusal::new(403, "LinkedAuthorizationFailed", message))
        })
    }
}

impl World {
    /// What a machine takes along when it is deleted.
    fn goes_along(&self, asked: &Asked<'_>) -> Linked {
        let Some(vm) = self.vms.get(&asked.key("vm")) else {
            return Linked::new();
        };
        let properties = &vm.sent["properties"];
        let nics = properties["networkProfile"]["networkInterfaces"].as_array();
        let nics = nics.into_iter().flatten();
        let nics = nics.filter(|nic| nic["properties"]["deleteOption"] == "Delete");
        let nics = nics.filter_map(|nic| nic["id"].as_str());
        let mut linked: Linked = nics
            .map(|id| ("Microsoft.Network/networkInterfaces/delete", id.to_owned()))
            .collect();
        if properties["storageProfile"]["osDisk"]["deleteOption"] == "Delete" {
            linked.push(("Microsoft.Compute/disks/delete", vm.id.clone()));
        }
        linked
    }
}

type Linked = Vec<(&'static str, String)>;

fn ids<'a>(list: &'a Value, action: &'static str) -> impl Iterator<Item = (&'static str, String)> + 'a {
    let items = list.as_array().into_iter().flatten();
    items.filter_map(move |item| Some((action, item["id"].as_str()?.to_owned())))
}

fn identities(body: &Value) -> Linked {
    let action = "Microsoft.ManagedIdentity/userAssignedIdentities/assign/action";
    let identities = body["identity"]["userAssignedIdentities"].as_object();
    let identities = identities.into_iter().flatten();
    identities.map(|(id, _)| (action, id.clone())).collect()
}

fn of_vm(asked: &Asked<'_>) -> Linked {
    let properties = &asked.body["properties"];
    let nics = &properties["networkProfile"]["networkInterfaces"];
    let mut linked: Linked = ids(nics, "Microsoft.Network/networkInterfaces/join/action").collect();
    linked.extend(identities(&asked.body));
    let disk = &properties["storageProfile"]["osDisk"];
    if disk["diffDiskSettings"].is_null() {
        let group: Vec<&str> = asked.path.split('/').take(5).collect();
        linked.push(("Microsoft.Compute/disks/write", group.join("/")));
    }
    if let Some(set) = disk["managedDisk"]["diskEncryptionSet"]["id"].as_str() {
        linked.push(("Microsoft.Compute/diskEncryptionSets/read", set.to_owned()));
    }
    linked
}

fn of_nic(body: &Value) -> Linked {
    let properties = &body["properties"];
    let mut linked = Linked::new();
    if let Some(group) = properties["networkSecurityGroup"]["id"].as_str() {
        linked.push(("Microsoft.Network/networkSecurityGroups/join/action", group.to_owned()));
    }
    for one in properties["ipConfigurations"].as_array().into_iter().flatten() {
        if let Some(subnet) = one["properties"]["subnet"]["id"].as_str() {
            linked.push((
                "Microsoft.Network/virtualNetworks/subnets/join/action",
                subnet.to_owned(),
            ));
        }
        let pools = &one["properties"]["loadBalancerBackendAddressPools"];
        linked.extend(ids(
            pools,
            "Microsoft.Network/loadBalancers/backendAddressPools/join/action",
        ));
    }
    linked
}
