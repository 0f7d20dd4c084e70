//! Names and ids: of machines, of subnets, of what belongs together.

use cloud::{CloudError, LaunchToken};
use model::object::{NodeClaim, ProviderId};

/// What names of machines begin with.
const PREFIX: &str = "aks-";
/// The annotation that counts the launches of a claim.
const ATTEMPT: &str = "dovetail.dev/launch-attempt";
/// More launches of a claim than this are not looked for by name.
const MOST_ATTEMPTS: u32 = 20;

/// The name of machine, disk and network interface of a launch. The same launch always has the same, so that asking
/// again makes nothing twice; another launch of the claim has another, because its machine is another one.
pub(crate) fn machine_name(claim: &str, attempt: u32) -> String {
    match attempt {
        0 | 1 => format!("{PREFIX}{claim}"),
        later => format!("{PREFIX}{claim}-{later}"),
    }
}

/// The name of a launch's machine.
pub(crate) fn name_of_launch(claim: &NodeClaim, token: &LaunchToken) -> String {
    machine_name(&claim.metadata.name, token.attempt)
}

/// The names that machines of a claim may have, the latest first.
pub(crate) fn names_of_claim(claim: &NodeClaim) -> Vec<String> {
    let attempts = claim.metadata.annotations.get(ATTEMPT);
    let attempts = attempts
        .and_then(|text| text.parse::<u32>().ok())
        .unwrap_or(1)
        .clamp(1, MOST_ATTEMPTS);
    (1..=attempts)
        .rev()
        .map(|attempt| machine_name(&claim.metadata.name, attempt))
        .collect()
}

/// The provider ID of a machine. The kubelet's cloud code writes the resource group in lower case.
pub(crate) fn provider_id(subscription: &str, group: &str, name: &str) -> String {
    format!("azure://{}", vm_id(subscription, &group.to_lowercase(), name))
}

/// The ARM id of a machine.
pub(crate) fn vm_id(subscription: &str, group: &str, name: &str) -> String {
    format!("/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Compute/virtualMachines/{name}")
}

/// The ARM id of a network interface.
pub(crate) fn nic_id(subscription: &str, group: &str, name: &str) -> String {
    format!("/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Network/networkInterfaces/{name}")
}

/// The machine that a provider ID names.
pub(crate) fn name_of_provider_id(id: &ProviderId) -> Result<&str, CloudError> {
    let parts: Vec<&str> = id.as_str().split('/').collect();
    let name = match parts.as_slice() {
        [
            "azure:",
            "",
            "",
            "subscriptions",
            _,
            groups,
            _,
            "providers",
            "Microsoft.Compute",
            kind,
            name,
        ] if groups.eq_ignore_ascii_case("resourceGroups") && kind.eq_ignore_ascii_case("virtualMachines") => {
            Some(*name).filter(|name| !name.is_empty())
        }
        _ => None,
    };
    name.ok_or_else(|| {
        CloudError::Other(format!(
            "provider ID {id} is not of the form azure:///subscriptions/S/resourceGroups/G/providers/Microsoft.Compute/virtualMachines/NAME"
        ))
    })
}

/// The parts of a subnet's ARM id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SubnetId {
    pub(crate) subscription: String,
    pub(crate) group: String,
    pub(crate) vnet: String,
    pub(crate) name: String,
}

impl SubnetId {
    /// The parts; none where it is no subnet's id.
    pub(crate) fn parse(id: &str) -> Option<Self> {
        let parts: Vec<&str> = id.split('/').collect();
        let [
            "",
            subscriptions,
            subscription,
            groups,
            group,
            providers,
            network,
            vnets,
            vnet,
            subnets,
            name,
        ] = parts.as_slice()
        else {
            return None;
        };
        let words = [
            (subscriptions, "subscriptions"),
            (groups, "resourceGroups"),
            (providers, "providers"),
            (network, "Microsoft.Network"),
            (vnets, "virtualNetworks"),
            (subnets, "subnets"),
        ];
        let is_spelt = words.iter().all(|(found, word)| found.eq_ignore_ascii_case(word));
        let values = [subscription, group, vnet, name];
        if !is_spelt || values.iter().any(|value| value.is_empty()) {
            return None;
        }
        let [subscription, group, vnet, name] = values.map(|value| (*value).to_owned());
        Some(Self {
            subscription,
            group,
            vnet,
            name,
        })
    }

    /// Whether both lie in one virtual network. Case counts, as upstream has it.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        (&self.subscription, &self.group, &self.vnet) == (&other.subscription, &other.group, &other.vnet)
    }

    /// Whether AKS made its virtual network, and looks after it.
    pub(crate) fn is_in_managed_vnet(&self, node_group: &str) -> bool {
        let digits = self.vnet.strip_prefix("aks-vnet-").unwrap_or_default();
        digits.len() == 8
            && digits.chars().all(|c| c.is_ascii_digit())
            && self.group.eq_ignore_ascii_case(node_group)
            && self.name == "aks-subnet"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUBNET: &str = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/v/subnets/n";

    #[test]
    fn a_launch_has_one_name_and_another_launch_another() {
        let mut claim = NodeClaim::default();
        claim.metadata.name = "general-x".into();
        let token = |attempt| LaunchToken {
            claim: "u".into(),
            attempt,
        };
        assert_eq!(name_of_launch(&claim, &token(1)), "aks-general-x");
        assert_eq!(name_of_launch(&claim, &token(3)), "aks-general-x-3");
        assert_eq!(names_of_claim(&claim), ["aks-general-x"]);
        claim.metadata.annotations = model::object::Map::from_pairs(vec![(ATTEMPT.into(), "2".into())]);
        assert_eq!(names_of_claim(&claim), ["aks-general-x-2", "aks-general-x"]);
    }

    #[test]
    fn provider_ids_name_a_machine() {
        let id = provider_id("s", "MC_Group", "aks-a");
        assert_eq!(
            id,
            "azure:///subscriptions/s/resourceGroups/mc_group/providers/Microsoft.Compute/virtualMachines/aks-a"
        );
        assert_eq!(name_of_provider_id(&id.as_str().into()).unwrap(), "aks-a");
        for other in [
            "",
            "kwok://a",
            "azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/",
        ] {
            assert!(name_of_provider_id(&other.into()).is_err(), "{other}");
        }
    }

    #[test]
    fn subnets_are_read_whatever_the_case_of_azures_words() {
        let subnet = SubnetId::parse(&SUBNET.replace("resourceGroups", "resourcegroups")).unwrap();
        assert_eq!(
            (subnet.group.as_str(), subnet.vnet.as_str(), subnet.name.as_str()),
            ("g", "v", "n")
        );
        assert_eq!(SubnetId::parse("/subscriptions/s/resourceGroups/g"), None);
        assert_eq!(SubnetId::parse(&SUBNET.replace("/n", "/")), None);
    }

    #[test]
    fn a_managed_network_is_known_by_its_name_and_place() {
        let managed = SUBNET
            .replace("/v/", "/aks-vnet-12345678/")
            .replace("subnets/n", "subnets/aks-subnet");
        let subnet = SubnetId::parse(&managed).unwrap();
        assert!(subnet.is_in_managed_vnet("G"));
        assert!(!subnet.is_in_managed_vnet("other"));
        assert!(!SubnetId::parse(SUBNET).unwrap().is_in_managed_vnet("g"));
    }
}
