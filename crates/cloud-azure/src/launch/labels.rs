//! With which labels and taints does a kubelet register?

use std::collections::BTreeMap;

use api::{
    azure::AKSNodeClass,
    labels::{
        ARCH, CAPACITY_TYPE, INSTANCE_TYPE, OS, REGION, ZONE,
        azure::{
            AKS_CLUSTER, AKS_EBPF_DATAPLANE, AKS_FIPS_ENABLED, AKS_KUBELET_IDENTITY_CLIENT_ID, AKS_MODE, AKS_OS_SKU,
            AKS_OS_SKU_EFFECTIVE, AKS_OS_SKU_REQUESTED, AKS_PRIORITY, AKS_SCALE_SET_PRIORITY, PLACEMENT_SCOPE,
            REGIONAL_ZONE, SKU_STORAGE_ULTRA_SSD,
        },
    },
};
use model::{
    object::{NodeClaim, Taint},
    requirement::Operator,
};
use runtime::settings::AzureSettings;

use super::Chosen;
use crate::{
    class::{Class, cluster_label},
    cluster::Cluster,
    ids::SubnetId,
    node_class::families::Release,
    version,
};

/// Labels of Kubernetes' own domains that a kubelet may set.
const OF_KUBELET: [&str; 11] = [
    "kubernetes.io/hostname",
    ZONE,
    REGION,
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "beta.kubernetes.io/instance-type",
    INSTANCE_TYPE,
    OS,
    ARCH,
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
];

/// The labels of a node, but for those that its kubelet may not set.
pub(crate) fn node_labels(
    claim: &NodeClaim,
    class: &AKSNodeClass,
    chosen: &Chosen,
    kubernetes: &str,
    settings: &AzureSettings,
    cluster: &Cluster,
) -> BTreeMap<String, String> {
    let mut all = of_class(class, chosen, kubernetes, settings, &cluster.vnet_guid);
    let claims = claim.metadata.labels.iter();
    all.extend(claims.map(|(key, value)| (key.to_string(), value.to_string())));
    all.extend(single_valued(claim));
    all.extend(of_offering(chosen));
    all.retain(|key, _| may_set(key));
    all
}

fn of_class(
    class: &AKSNodeClass,
    chosen: &Chosen,
    kubernetes: &str,
    settings: &AzureSettings,
    vnet_guid: &str,
) -> BTreeMap<String, String> {
    let it = Class(class);
    let aks = |name: &str| format!("kubernetes.azure.com/{name}");
    let mut all = BTreeMap::from([
        (aks("role"), "agent".to_owned()),
        (AKS_CLUSTER.to_owned(), cluster_label(&settings.node_resource_group)),
        (
            AKS_KUBELET_IDENTITY_CLIENT_ID.to_owned(),
            settings.kubelet_identity_client_id.clone(),
        ),
        (AKS_MODE.to_owned(), "user".to_owned()),
        // Startup taints may be gone before we see the node; we must not put them back.
        ("karpenter.sh/do-not-sync-taints".to_owned(), "true".to_owned()),
        (AKS_OS_SKU.to_owned(), it.os_sku().to_owned()),
        (AKS_OS_SKU_REQUESTED.to_owned(), it.family().to_owned()),
        (
            AKS_OS_SKU_EFFECTIVE.to_owned(),
            Release::of(class, kubernetes).name().to_owned(),
        ),
        (
            aks("localdns-state"),
            if it.is_local_dns_enabled() {
                "enabled"
            } else {
                "disabled"
            }
            .to_owned(),
        ),
    ]);
    if it.is_fips() {
        all.insert(AKS_FIPS_ENABLED.to_owned(), "true".to_owned());
    }
    if is_streaming(class, chosen) {
        all.insert(aks("artifactstreaming-enabled"), "true".to_owned());
    }
    if settings.network_plugin == "azure" && settings.network_plugin_mode == "overlay" {
        let subnet = SubnetId::parse(it.subnet_id(settings))
            .map(|subnet| subnet.name)
            .unwrap_or_default();
        all.insert(aks("network-subnet"), subnet);
        all.insert(aks("nodenetwork-vnetguid"), vnet_guid.to_owned());
        all.insert(aks("azure-cni-overlay"), "true".to_owned());
        all.insert(aks("podnetwork-type"), "overlay".to_owned());
        let is_stateless = version::is_at_least(kubernetes, 34);
        all.insert(aks("network-stateless-cni"), is_stateless.to_string());
    }
    if settings.network_dataplane == "cilium" {
        all.insert(AKS_EBPF_DATAPLANE.to_owned(), "cilium".to_owned());
    }
    all.extend(of_type(chosen));
    all
}

/// What the size alone says.
pub(crate) fn of_type(chosen: &Chosen) -> BTreeMap<String, String> {
    let single = chosen.entry.requirements.iter();
    let single = single.filter(|it| it.operator == Operator::In && it.values.len() == 1);
    single
        .filter_map(|it| Some((it.key.clone(), it.values.first()?.clone())))
        .collect()
}

/// Whether images are fetched as they are read. On arm64 they cannot.
pub(super) fn is_streaming(class: &AKSNodeClass, chosen: &Chosen) -> bool {
    Class(class).is_streaming_asked() && arch(chosen) != "arm64"
}

/// Whether a kubelet sets a label by itself.
pub(super) fn is_of_kubelet(key: &str) -> bool {
    OF_KUBELET.contains(&key)
}

fn arch(chosen: &Chosen) -> String {
    of_type(chosen).remove(ARCH).unwrap_or_default()
}

/// What the choice of an offering says.
fn of_offering(chosen: &Chosen) -> [(String, String); 6] {
    let priority = if chosen.is_spot() { "spot" } else { "regular" };
    let scope = if chosen.zone == REGIONAL_ZONE {
        "regional"
    } else {
        "zonal"
    };
    [
        (CAPACITY_TYPE, chosen.capacity_type),
        (ZONE, chosen.zone.as_str()),
        (PLACEMENT_SCOPE, scope),
        (AKS_SCALE_SET_PRIORITY, priority),
        (AKS_PRIORITY, priority),
        (
            SKU_STORAGE_ULTRA_SSD,
            if chosen.needs_ultra_ssd { "true" } else { "false" },
        ),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
}

/// What the claim allows only one value of.
pub(crate) fn single_valued(claim: &NodeClaim) -> BTreeMap<String, String> {
    let single = claim
        .spec
        .requirements
        .iter()
        .filter(|it| *it.operator == *"In" && it.values.len() == 1);
    single
        .filter_map(|it| Some((it.key.to_string(), it.values.first()?.to_string())))
        .collect()
}

/// Whether the API server lets a kubelet set a label on its own node.
pub(super) fn may_set(key: &str) -> bool {
    let Some((domain, _)) = key.split_once('/') else {
        return true;
    };
    let is_within = |outer: &str| domain == outer || domain.ends_with(&format!(".{outer}"));
    if is_of_kubelet(key) || !(is_within("kubernetes.io") || is_within("k8s.io")) {
        return true;
    }
    is_within("kubelet.kubernetes.io") || is_within("node.kubernetes.io")
}

/// The taints of a node: the claim's, its startup taints, and the one that goes when the node has registered.
pub(crate) fn allowed_taints(claim: &NodeClaim) -> Vec<Taint> {
    let unregistered = Taint {
        key: "karpenter.sh/unregistered".into(),
        effect: "NoExecute".into(),
        ..Taint::default()
    };
    let mut all: Vec<Taint> = claim
        .spec
        .taints
        .iter()
        .chain(&claim.spec.startup_taints)
        .cloned()
        .collect();
    if !all.iter().any(|it| *it.key == *unregistered.key) {
        all.push(unregistered);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubelet_sets_its_own_labels_and_those_of_others_but_not_kubernetes() {
        for key in [
            "team",
            "example.com/team",
            ZONE,
            "node.kubernetes.io/anything",
            "foo.kubelet.kubernetes.io/x",
            "kubernetes.azure.com/role",
            "karpenter.azure.com/sku-name",
        ] {
            assert!(may_set(key), "{key}");
        }
        for key in ["node-role.kubernetes.io/worker", "kubernetes.io/role", "foo.k8s.io/x"] {
            assert!(!may_set(key), "{key}");
        }
    }

    fn chosen() -> Chosen {
        let entry = serde_json::json!({"name": "Standard_D2s_v3"});
        Chosen {
            entry: std::sync::Arc::new(serde_json::from_value(entry).unwrap()),
            zone: "0".to_owned(),
            capacity_type: "spot",
            needs_ultra_ssd: true,
        }
    }

    #[test]
    fn labels_of_the_network_follow_its_plugin_and_kubernetes() {
        let labels = |plugin: &str, mode: &str, dataplane: &str, kubernetes: &str| {
            let settings = AzureSettings {
                network_plugin: plugin.to_owned(),
                network_plugin_mode: mode.to_owned(),
                network_dataplane: dataplane.to_owned(),
                ..AzureSettings::default()
            };
            of_class(&AKSNodeClass::default(), &chosen(), kubernetes, &settings, "guid")
        };
        let stateless = "kubernetes.azure.com/network-stateless-cni";
        assert_eq!(labels("azure", "overlay", "cilium", "1.34.0")[stateless], "true");
        assert_eq!(labels("azure", "overlay", "cilium", "1.33.9")[stateless], "false");
        let plain = labels("azure", "", "", "1.34.0");
        for key in [stateless, "kubernetes.azure.com/azure-cni-overlay", AKS_EBPF_DATAPLANE] {
            assert!(!plain.contains_key(key), "{key}");
        }
        assert_eq!(labels("none", "", "cilium", "1.34.0")[AKS_EBPF_DATAPLANE], "cilium");
    }

    #[test]
    fn an_offering_is_told_in_the_words_of_both() {
        let labels: BTreeMap<String, String> = of_offering(&chosen()).into();
        assert_eq!(
            (labels[PLACEMENT_SCOPE].as_str(), labels[ZONE].as_str()),
            ("regional", "0")
        );
        assert_eq!(
            (labels[AKS_PRIORITY].as_str(), labels[SKU_STORAGE_ULTRA_SSD].as_str()),
            ("spot", "true")
        );
    }

    #[test]
    fn a_node_is_tainted_until_it_has_registered() {
        let mut claim = NodeClaim::default();
        claim.spec.startup_taints = vec![Taint {
            key: "cilium".into(),
            effect: "NoExecute".into(),
            ..Taint::default()
        }]
        .into();
        let keys: Vec<String> = allowed_taints(&claim).iter().map(|it| it.key.to_string()).collect();
        assert_eq!(keys, ["cilium", "karpenter.sh/unregistered"]);
    }
}
