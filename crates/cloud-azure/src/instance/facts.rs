//! A machine as Azure describes it, and what a NodeClaim learns from it.

use std::collections::BTreeMap;

use api::{
    annotations::{
        self,
        azure::{AKS_MACHINE_RESOURCE_ID, AKSNODECLASS_HASH, IN_PLACE_UPDATE_HASH},
    },
    azure::{AKSNODECLASS_HASH_VERSION, AKSNodeClass},
    labels::{
        CAPACITY_TYPE, CAPACITY_TYPE_ON_DEMAND, CAPACITY_TYPE_SPOT, INSTANCE_TYPE, NODEPOOL, ZONE,
        azure::{
            AKS_PRIORITY, AKS_SCALE_SET_PRIORITY, PLACEMENT_SCOPE, REGIONAL_ZONE, SKU_STORAGE_ULTRA_SSD, WELL_KNOWN,
        },
    },
};
use cloud::{Instance, Launched};
use jiff::Timestamp;
use model::{
    object::{Map, NodeClaim, Text},
    requirement::Operator,
    resources::ResourceList,
    snapshot::CatalogType,
    vocabulary::Vocabulary,
};

use crate::{
    arm::wire::{Tags, VirtualMachine, aks::AksMachine},
    launch::tags,
    reads::ReadSide,
};

/// A machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Machine {
    pub(crate) name: String,
    pub(crate) size: String,
    /// As the label has it.
    pub(crate) zone: String,
    pub(crate) capacity_type: &'static str,
    pub(crate) image: String,
    pub(crate) has_ultra_ssd: bool,
    pub(crate) state: String,
    pub(crate) created_at: Option<Timestamp>,
    pub(crate) tags: Tags,
    pub(crate) identities: Vec<String>,
}

impl Machine {
    /// As Azure has it. Resource Graph mixes the case of names.
    pub(crate) fn of(vm: &VirtualMachine, region: &str) -> Self {
        let name = match vm.id.rsplit_once('/') {
            Some((_, last)) => last,
            None => &vm.name,
        };
        let properties = &vm.properties;
        let image = properties.storage_profile.image_reference.as_ref();
        let image = image.and_then(|it| {
            let ids = [&it.community_gallery_image_id, &it.shared_gallery_image_id, &it.id];
            ids.into_iter().flatten().find(|id| !id.is_empty()).cloned()
        });
        let is_spot = properties.priority.as_deref() == Some("Spot");
        let ultra = properties
            .additional_capabilities
            .as_ref()
            .and_then(|it| it.ultra_ssd_enabled);
        let identities = vm
            .identity
            .iter()
            .flat_map(|it| it.user_assigned_identities.keys().cloned());
        Self {
            name: name.to_lowercase(),
            size: properties.hardware_profile.vm_size.clone(),
            zone: zone(&vm.zones, region),
            capacity_type: capacity_type(is_spot),
            image: image.unwrap_or_default(),
            has_ultra_ssd: ultra == Some(true),
            state: properties.provisioning_state.clone().unwrap_or_default(),
            created_at: properties.time_created,
            tags: vm.tags.clone(),
            identities: identities.collect(),
        }
    }

    /// As AKS has it: the virtual machine behind a machine of an agent pool. What it leaves out of an answer it may not
    /// leave out of a machine that we act on.
    pub(crate) fn of_aks(machine: &AksMachine, region: &str) -> Result<Self, String> {
        let properties = &machine.properties;
        let needed = [
            ("an id", machine.id.as_str()),
            ("properties.resourceId", properties.resource_id.as_str()),
            ("properties.nodeImageVersion", properties.node_image_version.as_str()),
            ("properties.hardware.vmSize", properties.hardware.vm_size.as_str()),
        ];
        let missing = needed.iter().find(|(_, value)| value.is_empty());
        let created_at = properties.status.creation_timestamp;
        let missing = missing
            .map(|(what, _)| *what)
            .or_else(|| created_at.is_none().then_some("properties.status.creationTimestamp"));
        if let Some(what) = missing {
            return Err(format!("AKS machine {} has no {what}", machine.name));
        }
        let vm = properties.resource_id.rsplit('/').next().unwrap_or_default();
        Ok(Self {
            name: vm.to_lowercase(),
            size: properties.hardware.vm_size.clone(),
            zone: zone(&machine.zones, region),
            // AKS says nothing where it is regular.
            capacity_type: capacity_type(properties.priority.as_deref() == Some("Spot")),
            image: properties.node_image_version.clone(),
            has_ultra_ssd: properties.hardware.ultra_ssd_enabled,
            state: properties.provisioning_state.clone(),
            created_at,
            tags: properties.tags.clone().unwrap_or_default(),
            identities: Vec::new(),
        })
    }

    fn tag(&self, key: &str) -> Option<&str> {
        self.tags.get(key).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Whether it belongs to a cluster, and to us rather than to AKS's machine API.
    pub(crate) fn is_of(&self, cluster: &str) -> bool {
        belongs(&self.tags, cluster)
    }

    /// Whether it was launched for a claim.
    pub(crate) fn is_for(&self, claim: &NodeClaim) -> bool {
        is_for(&self.tags, &self.name, claim)
    }

    /// It is on its way out.
    pub(crate) fn is_deleting(&self) -> bool {
        self.state.eq_ignore_ascii_case("Deleting")
    }

    /// It never came about.
    pub(crate) fn has_failed(&self) -> bool {
        self.state.eq_ignore_ascii_case("Failed")
    }

    /// It is being made.
    pub(crate) fn is_creating(&self) -> bool {
        self.state.eq_ignore_ascii_case("Creating")
    }

    pub(crate) fn node_class(&self) -> Option<&str> {
        self.tag(tags::CLASS)
    }

    /// As the cloud lists it.
    pub(crate) fn instance(&self, provider_id: &str, launched: Launched) -> Instance {
        let tagged = self.tag(tags::CLAIM).or_else(|| self.tag(tags::AKS_MACHINE));
        let claim = tagged.or_else(|| self.name.strip_prefix("aks-"));
        Instance {
            provider_id: provider_id.into(),
            claim: claim.map(Into::into),
            claim_uid: self.tag(tags::CLAIM_UID).map(Into::into),
            launched_at: self.created_at,
            is_terminating: self.is_deleting(),
            launched,
        }
    }
}

/// As the label has it.
fn zone(numbers: &[String], region: &str) -> String {
    match numbers.first() {
        Some(number) => format!("{region}-{number}"),
        None => REGIONAL_ZONE.to_owned(),
    }
}

fn capacity_type(is_spot: bool) -> &'static str {
    if is_spot {
        CAPACITY_TYPE_SPOT
    } else {
        CAPACITY_TYPE_ON_DEMAND
    }
}

/// Whether tags say that something is ours.
pub(crate) fn belongs(found: &Tags, cluster: &str) -> bool {
    is_of_cluster(found, cluster) && !found.contains_key(tags::AKS_MACHINE)
}

/// Whether tags say that something is our cluster's, whoever makes its machines. What was launched for a claim without a
/// pool has no tag of one, and is ours all the same.
pub(crate) fn is_of_cluster(found: &Tags, cluster: &str) -> bool {
    found.get(tags::CLUSTER).is_some_and(|it| it == cluster)
}

/// Whether tags, or a name that upstream gave, say that something is a claim's.
pub(crate) fn is_for(found: &Tags, name: &str, claim: &NodeClaim) -> bool {
    let named = found.get(tags::CLAIM).or_else(|| found.get(tags::AKS_MACHINE));
    match (found.get(tags::CLAIM_UID), named) {
        (Some(uid), _) => *uid == claim.metadata.uid.to_string(),
        (None, Some(of)) => *of == *claim.metadata.name,
        (None, None) => name.strip_prefix("aks-") == Some(&*claim.metadata.name),
    }
}

/// What is known about where a machine came from. All of it at a launch; at other times what is still there.
#[derive(Default, Clone, Copy)]
pub(crate) struct Origin<'a> {
    pub(crate) entry: Option<&'a CatalogType>,
    pub(crate) class: Option<&'a AKSNodeClass>,
    pub(crate) claim: Option<&'a NodeClaim>,
    pub(crate) in_place_hash: Option<&'a str>,
    /// The machine of an agent pool, where AKS made it.
    pub(crate) aks_machine: Option<&'a str>,
}

/// What a NodeClaim learns.
pub(crate) fn launched(machine: &Machine, provider_id: &str, origin: &Origin<'_>) -> Launched {
    let shape = origin.entry.map(|entry| entry.instance_type(&mut Vocabulary::new()));
    let has = |list: Option<ResourceList>| -> ResourceList {
        let list = list.unwrap_or_default();
        let kept = list.iter().filter(|(_, amount)| !amount.is_zero());
        kept.map(|(name, amount)| (name.clone(), amount)).collect()
    };
    Launched {
        provider_id: provider_id.into(),
        image_id: machine.image.as_str().into(),
        allocatable: has(shape.as_ref().map(model::instance_type::InstanceType::allocatable)),
        capacity: has(shape.map(|shape| shape.capacity)),
        labels: pairs(machine_labels(machine, origin)),
        annotations: pairs(annotations(origin)),
    }
}

fn pairs(map: BTreeMap<String, String>) -> Map<Text> {
    Map::from_pairs(map.into_iter().map(|(key, value)| (key.into(), value.into())).collect())
}

fn machine_labels(machine: &Machine, origin: &Origin<'_>) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    // What a claim allows only one value of, a pod may have asked for: the next plan must see it on the claim.
    let asked = origin.claim.iter().flat_map(|claim| claim.spec.requirements.iter());
    let asked = asked.filter(|it| *it.operator == *"In" && it.values.len() == 1 && WELL_KNOWN.contains(&&*it.key));
    all.extend(asked.filter_map(|it| Some((it.key.to_string(), it.values.first()?.to_string()))));
    let of_type = origin.entry.iter().flat_map(|entry| &entry.requirements);
    let of_type = of_type.filter(|it| it.operator == Operator::In && it.values.len() == 1);
    all.extend(of_type.filter_map(|it| Some((it.key.clone(), it.values.first()?.clone()))));
    let mut set = |key: &str, value: &str| all.insert(key.to_owned(), value.to_owned());
    let priority = if machine.capacity_type == CAPACITY_TYPE_SPOT {
        "spot"
    } else {
        "regular"
    };
    set(INSTANCE_TYPE, &machine.size);
    set(ZONE, &machine.zone);
    set(
        PLACEMENT_SCOPE,
        if machine.zone == REGIONAL_ZONE {
            "regional"
        } else {
            "zonal"
        },
    );
    set(CAPACITY_TYPE, machine.capacity_type);
    set(AKS_SCALE_SET_PRIORITY, priority);
    set(AKS_PRIORITY, priority);
    set(
        SKU_STORAGE_ULTRA_SSD,
        if machine.has_ultra_ssd { "true" } else { "false" },
    );
    if let Some(pool) = machine.tag(tags::POOL) {
        set(NODEPOOL, pool);
    }
    all
}

fn annotations(origin: &Origin<'_>) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut set = |key: &str, value: &str| all.insert(key.to_owned(), value.to_owned());
    if let Some(id) = origin.aks_machine {
        set(AKS_MACHINE_RESOURCE_ID, id);
    }
    if let (Some(class), Some(hash)) = (origin.class, origin.in_place_hash) {
        set(AKSNODECLASS_HASH, &class.hash());
        set(annotations::azure::AKSNODECLASS_HASH_VERSION, AKSNODECLASS_HASH_VERSION);
        set(IN_PLACE_UPDATE_HASH, hash);
    }
    all
}

/// A machine as the cloud lists it. A class or a size that is gone leaves out what only it could say.
pub(super) async fn listed(read: &ReadSide, machine: &Machine, id: &str, aks_machine: Option<&str>) -> Instance {
    let class = match machine.node_class() {
        Some(name) => read.node_class(name).await.ok().flatten(),
        None => None,
    };
    let types = class
        .and_then(|class| read.instance_types(&class).ok())
        .unwrap_or_default();
    let entry = types.iter().find(|entry| *entry.name.as_str() == *machine.size);
    let origin = Origin {
        entry: entry.map(|entry| &**entry),
        aks_machine,
        ..Origin::default()
    };
    machine.instance(id, launched(machine, id, &origin))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::needless_pass_by_value, reason = "called with literals")]

    use serde_json::{Value, json};

    use super::*;

    fn machine(change: Value) -> Machine {
        let mut whole = json!({
            "id": "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/AKS-General-x",
            "location": "eastus", "zones": ["2"],
            "tags": {"karpenter.azure.com_cluster": "prod", "karpenter.sh_nodepool": "general"},
            "properties": {"provisioningState": "Succeeded", "timeCreated": "2026-11-17T10:00:00Z", "priority": "Spot",
                "hardwareProfile": {"vmSize": "Standard_D4s_v5"},
                "storageProfile": {"imageReference": {"communityGalleryImageId": "/CommunityGalleries/x"}}},
        });
        for (key, value) in change.as_object().unwrap() {
            whole[key] = value.clone();
        }
        Machine::of(&serde_json::from_value(whole).unwrap(), "eastus")
    }

    fn claim(name: &str, uid: &str) -> NodeClaim {
        serde_json::from_value(json!({"metadata": {"name": name, "uid": uid}})).unwrap()
    }

    #[test]
    fn a_machine_is_read_whatever_the_case_of_its_name() {
        let machine = machine(json!({}));
        assert_eq!(machine.name, "aks-general-x");
        assert_eq!((machine.zone.as_str(), machine.capacity_type), ("eastus-2", "spot"));
        assert_eq!(machine.image, "/CommunityGalleries/x");
        let instance = machine.instance("azure:///x", Launched::default());
        assert_eq!(instance.claim.unwrap().as_str(), "general-x");
    }

    #[test]
    fn null_zones_are_no_zone() {
        assert_eq!(machine(json!({"zones": null})).zone, "0");
    }

    #[test]
    fn ours_is_what_our_clusters_tags_say() {
        assert!(machine(json!({})).is_of("prod"));
        assert!(!machine(json!({})).is_of("other"));
        assert!(!machine(json!({"tags": {"karpenter.sh_nodepool": "general"}})).is_of("prod"));
        let of_aks = json!({"karpenter.azure.com_cluster": "prod", "karpenter.sh_nodepool": "g",
            "karpenter.azure.com_aksmachine_nodeclaim": "x"});
        assert!(!machine(json!({"tags": of_aks})).is_of("prod"));
    }

    #[test]
    fn a_machine_is_its_claims_by_identity_and_upstreams_by_name() {
        let of_upstream = machine(json!({}));
        assert!(of_upstream.is_for(&claim("general-x", "u-1")));
        assert!(!of_upstream.is_for(&claim("general-y", "u-1")));
        let ours =
            machine(json!({"tags": {"dovetail.dev_nodeclaim-uid": "u-1", "karpenter.sh_nodeclaim": "general-x"}}));
        assert!(ours.is_for(&claim("general-x", "u-1")));
        assert!(!ours.is_for(&claim("general-x", "u-2")), "a namesake is another claim");
    }

    fn of_aks(change: Value) -> Result<Machine, String> {
        let mut whole = json!({
            "id": "/pools/machines/machines/general-x", "name": "general-x", "zones": ["2"],
            "properties": {"resourceId": "/subscriptions/s/resourceGroups/MC_g/providers/Microsoft.Compute/virtualMachines/AKS-machines-general-x-12345678-vm",
                "nodeImageVersion": "AKSUbuntu-2204gen2containerd-1", "hardware": {"vmSize": "Standard_D4s_v5"},
                "priority": "Spot", "provisioningState": "Succeeded", "tags": {"karpenter.sh_nodepool": "general"},
                "status": {"creationTimestamp": "2026-11-17T10:00:00Z"}},
        });
        for (key, value) in change.as_object().unwrap() {
            whole["properties"][key] = value.clone();
        }
        if let Some(zones) = change.get("zones") {
            whole["zones"] = zones.clone();
            whole["properties"].as_object_mut().unwrap().remove("zones");
        }
        Machine::of_aks(&serde_json::from_value(whole).unwrap(), "eastus")
    }

    #[test]
    fn a_machine_of_aks_is_read_with_the_virtual_machine_behind_it() {
        let machine = of_aks(json!({})).unwrap();
        assert_eq!(machine.name, "aks-machines-general-x-12345678-vm");
        assert_eq!((machine.zone.as_str(), machine.capacity_type), ("eastus-2", "spot"));
        assert_eq!(machine.image, "AKSUbuntu-2204gen2containerd-1");
        assert!(machine.created_at.is_some() && !machine.is_deleting());
        assert_eq!(
            of_aks(json!({"priority": "Regular"})).unwrap().capacity_type,
            "on-demand"
        );
        assert_eq!(of_aks(json!({"priority": null})).unwrap().capacity_type, "on-demand");
        assert!(of_aks(json!({"provisioningState": "Deleting"})).unwrap().is_deleting());
        assert!(!of_aks(json!({"provisioningState": null})).unwrap().is_deleting());
        for (zones, expected) in [(json!([]), "0"), (json!(null), "0"), (json!(["3"]), "eastus-3")] {
            assert_eq!(of_aks(json!({"zones": zones})).unwrap().zone, expected);
        }
    }

    #[test]
    fn a_machine_of_aks_without_what_we_act_on_is_refused_with_its_name() {
        for (field, value) in [
            ("resourceId", json!(null)),
            ("nodeImageVersion", json!(null)),
            ("hardware", json!({})),
            ("status", json!({})),
        ] {
            let refused = of_aks(json!({field: value})).unwrap_err();
            assert!(
                refused.contains("AKS machine general-x has no properties."),
                "{refused}"
            );
        }
    }
}
