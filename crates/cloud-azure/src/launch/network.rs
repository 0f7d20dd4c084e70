//! The network interface of a machine.

use api::azure::AKSNodeClass;
use runtime::settings::AzureSettings;

use crate::{
    arm::wire::{
        IpConfiguration, IpConfigurationProperties, NetworkInterface, NetworkInterfaceProperties, Reference, Tags,
    },
    class::Class,
    ids::SubnetId,
};

/// What an interface follows from.
pub(crate) struct Interface<'a> {
    pub(crate) name: &'a str,
    pub(crate) class: &'a AKSNodeClass,
    pub(crate) settings: &'a AzureSettings,
    pub(crate) backend_pools: &'a [String],
    pub(crate) security_group: &'a str,
    pub(crate) is_accelerated: bool,
    pub(crate) tags: &'a Tags,
}

/// The interface to ask for.
pub(crate) fn interface(it: &Interface<'_>) -> NetworkInterface {
    let class = Class(it.class);
    let subnet_id = class.subnet_id(it.settings);
    let reference = |id: &str| Reference { id: id.to_owned() };
    let configuration = |name: String, primary: bool| IpConfiguration {
        name,
        properties: IpConfigurationProperties {
            primary,
            private_ip_allocation_method: "Dynamic".to_owned(),
            subnet: reference(subnet_id),
            load_balancer_backend_address_pools: it
                .backend_pools
                .iter()
                .filter(|_| primary)
                .map(|id| reference(id))
                .collect(),
        },
    };
    let mut ip_configurations = vec![configuration(it.name.to_owned(), true)];
    // Without an overlay every pod has an address of the subnet, and the node holds them all.
    if it.settings.network_plugin == "azure" && it.settings.network_plugin_mode.is_empty() {
        let more = 1..class.max_pods(it.settings);
        ip_configurations.extend(more.map(|number| configuration(format!("ipconfig{number}"), false)));
    }
    let node_group = &it.settings.node_resource_group;
    let is_managed = SubnetId::parse(subnet_id).is_some_and(|subnet| subnet.is_in_managed_vnet(node_group));
    NetworkInterface {
        location: it.settings.location.clone(),
        tags: it.tags.clone(),
        properties: NetworkInterfaceProperties {
            ip_configurations,
            // In a network of AKS's own the group is the subnet's already.
            network_security_group: (!is_managed).then(|| reference(it.security_group)),
            enable_accelerated_networking: it.is_accelerated,
            enable_ip_forwarding: false,
            virtual_machine: None,
        },
        ..NetworkInterface::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CUSTOM: &str = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/v/subnets/n";
    const MANAGED: &str = "/subscriptions/s/resourceGroups/MC/providers/Microsoft.Network/virtualNetworks/aks-vnet-12345678/subnets/aks-subnet";

    fn made(subnet: &str, mode: &str, max_pods: Option<i32>) -> NetworkInterface {
        let mut class = AKSNodeClass::default();
        class.spec.max_pods = max_pods;
        let settings = AzureSettings {
            vnet_subnet_id: subnet.to_owned(),
            network_plugin_mode: mode.to_owned(),
            node_resource_group: "MC".to_owned(),
            ..AzureSettings::default()
        };
        interface(&Interface {
            name: "aks-a",
            class: &class,
            settings: &settings,
            backend_pools: &["/pool".to_owned()],
            security_group: "/nsg",
            is_accelerated: true,
            tags: &Tags::new(),
        })
    }

    #[test]
    fn an_overlay_needs_one_address_and_a_node_subnet_one_for_every_pod() {
        let overlay = made(CUSTOM, "overlay", None).properties.ip_configurations;
        assert_eq!(overlay.len(), 1);
        assert_eq!(overlay[0].name, "aks-a");
        assert_eq!(overlay[0].properties.load_balancer_backend_address_pools.len(), 1);
        let node_subnet = made(CUSTOM, "", Some(12)).properties.ip_configurations;
        assert_eq!(node_subnet.len(), 12);
        assert_eq!(node_subnet[11].name, "ipconfig11");
        assert!(
            node_subnet[11]
                .properties
                .load_balancer_backend_address_pools
                .is_empty()
        );
    }

    #[test]
    fn the_security_group_is_named_in_networks_that_are_not_aks_own() {
        assert!(
            made(CUSTOM, "overlay", None)
                .properties
                .network_security_group
                .is_some()
        );
        assert!(
            made(MANAGED, "overlay", None)
                .properties
                .network_security_group
                .is_none()
        );
    }
}
