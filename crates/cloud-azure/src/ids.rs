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
    attempts(claim)
        .map(|attempt| machine_name(&claim.metadata.name, attempt))
        .collect()
}

/// The launches of a claim, the latest first.
fn attempts(claim: &NodeClaim) -> impl Iterator<Item = u32> {
    let attempts = claim.metadata.annotations.get(ATTEMPT);
    let attempts = attempts
        .and_then(|text| text.parse::<u32>().ok())
        .unwrap_or(1)
        .clamp(1, MOST_ATTEMPTS);
    (1..=attempts).rev()
}

/// The longest name that AKS lets a machine of a pool have, but for what it adds itself.
const LONGEST_AKS_NAME: usize = 34;
/// How many characters stand for the part of a name that is too long.
const HASHED: usize = 6;

/// The name of the machine of an agent pool that a launch makes: the claim's, shortened as upstream does, so that a
/// cluster that comes from it finds its machines again. Another launch of the claim has another.
pub(crate) fn aks_machine_name(claim: &str, attempt: u32) -> String {
    match attempt {
        0 | 1 => shortened(claim, LONGEST_AKS_NAME),
        later => {
            let tail = format!("-{later}");
            shortened(claim, LONGEST_AKS_NAME - tail.len()) + &tail
        }
    }
}

/// A name no longer than so many characters: what is too long before the last dash becomes a hash.
fn shortened(name: &str, longest: usize) -> String {
    if name.len() <= longest {
        return name.to_owned();
    }
    let (prefix, suffix) = name.rsplit_once('-').unwrap_or((name, ""));
    let suffix = if suffix.is_empty() {
        String::new()
    } else {
        format!("-{suffix}")
    };
    let kept = longest.saturating_sub(suffix.len() + HASHED);
    let (kept, rest) = prefix.split_at_checked(kept).unwrap_or((prefix, ""));
    let mut hash = api::hash::string(rest);
    let mut digits = Vec::new();
    for _ in 0..HASHED {
        digits.push(char::from_digit(u32::try_from(hash % 36).unwrap_or_default(), 36).unwrap_or('0'));
        hash /= 36;
    }
    format!("{kept}{}{suffix}", digits.iter().rev().collect::<String>())
}

/// The names that machines of a claim in an agent pool may have, the latest first.
pub(crate) fn aks_names_of_claim(claim: &NodeClaim) -> Vec<String> {
    attempts(claim)
        .map(|attempt| aks_machine_name(&claim.metadata.name, attempt))
        .collect()
}

/// The machine of an agent pool that a virtual machine of AKS belongs to: `aks-POOL-MACHINE-NNNNNNNN-vm`.
pub(crate) fn aks_machine_of_vm<'a>(pool: &str, vm: &'a str) -> Option<&'a str> {
    let rest = vm.strip_prefix(PREFIX)?.strip_prefix(pool)?.strip_prefix('-')?;
    let (machine, _) = rest.strip_suffix("-vm")?.rsplit_once('-')?;
    (!machine.is_empty()).then_some(machine)
}

/// The provider ID of the virtual machine with this ARM id.
pub(crate) fn provider_id_of_vm(id: &str) -> String {
    let mut parts: Vec<String> = id.split('/').map(str::to_owned).collect();
    let group = parts
        .iter()
        .position(|part| part.eq_ignore_ascii_case("resourceGroups"));
    if let Some(name) = group.and_then(|at| parts.get_mut(at + 1)) {
        *name = name.to_lowercase();
    }
    format!("azure://{}", parts.join("/"))
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
    fn a_name_that_fits_is_kept_and_a_longer_one_keeps_its_ends() {
        for name in ["default-a1b2c", "d-a1b2c", "123456789-123456789-12345678-a1b2c"] {
            assert_eq!(aks_machine_name(name, 1), name);
        }
        let long = aks_machine_name("123456789-123456789-123456789-a1b2c", 1);
        let other = aks_machine_name("123456789-123456789-12345678X-a1b2c", 1);
        assert_eq!(long.len(), 34);
        assert!(
            long.starts_with("123456789-123456789-12") && long.ends_with("-a1b2c"),
            "{long}"
        );
        assert_ne!(long, other);
        assert_eq!(long, aks_machine_name("123456789-123456789-123456789-a1b2c", 1));
        let whole = "extremely-long-nodepool-name-that-definitely-exceeds-limits-xyz7890";
        assert!(aks_machine_name(whole, 1).ends_with("-xyz7890"));
        let odd = aks_machine_name("a-a-a-a-a-a-a-a-a-a-a-a-a-a-a--a1b2c", 1);
        assert!(odd.len() == 34 && odd.starts_with("a-a-a-a-a-a-a-a-a-a-a-") && odd.ends_with("-a1b2c"));
    }

    #[test]
    fn the_middle_of_a_long_name_is_upstreams_hash_of_what_is_cut_off() {
        // FNV-1 of 64 bits over "3456789", as the last six digits of base 36.
        let hash = "3456789".bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            hash.wrapping_mul(0x0100_0000_01b3) ^ u64::from(byte)
        });
        let mut rest = hash % 36_u64.pow(6);
        let mut digits = String::new();
        while digits.len() < 6 {
            digits.insert(0, char::from_digit(u32::try_from(rest % 36).unwrap(), 36).unwrap());
            rest /= 36;
        }
        let name = aks_machine_name("123456789-123456789-123456789-a1b2c", 1);
        assert_eq!(name, format!("123456789-123456789-12{digits}-a1b2c"));
    }

    #[test]
    fn another_launch_of_a_claim_has_another_machine_whose_name_fits_too() {
        assert_eq!(aks_machine_name("default-a1b2c", 2), "default-a1b2c-2");
        let long = "extremely-long-nodepool-name-that-definitely-exceeds-limits-xyz78";
        let second = aks_machine_name(long, 2);
        assert!(second.len() == 34 && second.ends_with("-xyz78-2"), "{second}");
        assert_ne!(aks_machine_name(long, 1), second);
    }

    #[test]
    fn a_virtual_machine_of_aks_names_its_machine() {
        let of = |vm| aks_machine_of_vm("machines", vm);
        assert_eq!(of("aks-machines-default-a1b2c-12345678-vm"), Some("default-a1b2c"));
        assert_eq!(of("aks-machines-a-b-c-12345678-vm"), Some("a-b-c"));
        for other in [
            "aks-default-a1b2c",
            "aks-other-default-a1b2c-12345678-vm",
            "aks-machines-12345678-vm",
            "vm",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn the_provider_id_of_a_virtual_machine_of_aks_has_its_group_in_lower_case() {
        let id = "/subscriptions/S/resourceGroups/MC_Rg/providers/Microsoft.Compute/virtualMachines/aks-x-vm";
        assert_eq!(
            provider_id_of_vm(id),
            "azure:///subscriptions/S/resourceGroups/mc_rg/providers/Microsoft.Compute/virtualMachines/aks-x-vm"
        );
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
    fn subnets_lie_in_one_network_when_subscription_group_and_name_of_it_are_the_same_to_the_letter() {
        let subnet = |id: &str| SubnetId::parse(id).unwrap();
        let here = subnet(SUBNET);
        assert!(here.is_beside(&here));
        assert!(here.is_beside(&subnet(&SUBNET.replace("subnets/n", "subnets/other"))));
        let elsewhere = [
            SUBNET.replace("subscriptions/s", "subscriptions/t"),
            SUBNET.replace("resourceGroups/g", "resourceGroups/h"),
            SUBNET.replace("virtualNetworks/v", "virtualNetworks/w"),
            SUBNET
                .replace("subscriptions/s", "subscriptions/t")
                .replace("virtualNetworks/v", "virtualNetworks/w"),
            SUBNET.replace("resourceGroups/g", "resourceGroups/G"),
            SUBNET.replace("virtualNetworks/v", "virtualNetworks/V"),
        ];
        for id in elsewhere {
            assert!(!here.is_beside(&subnet(&id)), "{id}");
        }
        // A subnet may be called what the words around it are.
        assert_eq!(subnet(&SUBNET.replace("subnets/n", "subnets/subnets")).name, "subnets");
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
