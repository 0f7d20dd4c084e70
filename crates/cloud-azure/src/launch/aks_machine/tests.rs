//! The bodies of machines of AKS against the contract.

#![allow(clippy::needless_pass_by_value, reason = "called with literals")]

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::arm::wire::Sku;

const SHARED: &str = "/subscriptions/s/resourceGroups/AKS-Ubuntu/providers/Microsoft.Compute/galleries/AKSUbuntu/images/2204gen2containerd/versions/2022.10.03";

fn record(name: &str) -> SizeRecord {
    let all: Value = serde_json::from_str(include_str!("../../../tests/data/resource-skus.json")).unwrap();
    let all: Vec<Sku> = serde_json::from_value(all["southcentralus"]["value"].clone()).unwrap();
    SizeRecord::read(all.iter().find(|it| it.name == name).unwrap(), "southcentralus").unwrap()
}

struct Case {
    size: &'static str,
    spec: Value,
    claim: Value,
    zone: &'static str,
    kind: &'static str,
    kubernetes: &'static str,
    needs_ultra_ssd: bool,
}

impl Default for Case {
    fn default() -> Self {
        Self {
            size: "Standard_D2_v5",
            spec: json!({"imageFamily": "Ubuntu", "osDiskSizeGB": 128}),
            claim: json!({}),
            zone: "southcentralus-2",
            kind: "on-demand",
            kubernetes: "1.33.2",
            needs_ultra_ssd: false,
        }
    }
}

impl Case {
    fn body(self) -> Value {
        let class: AKSNodeClass = serde_json::from_value(json!({"apiVersion": "karpenter.azure.com/v1beta1",
            "kind": "AKSNodeClass", "metadata": {"name": "c"}, "spec": self.spec}))
        .unwrap();
        let mut claim = json!({"metadata": {"name": "general-x", "labels": {"karpenter.sh/nodepool": "general"}}});
        for (key, value) in self.claim.as_object().unwrap() {
            claim[key] = value.clone();
        }
        let one = |key: &str, value: &str| json!({"key": key, "operator": "In", "values": [value]});
        let entry = json!({"name": self.size, "requirements": [one("kubernetes.io/arch", "amd64"),
            one("karpenter.azure.com/sku-name", self.size), one("kubernetes.azure.com/sku-cpu", "2")]});
        let chosen = Chosen {
            entry: Arc::new(serde_json::from_value(entry).unwrap()),
            zone: self.zone.to_owned(),
            capacity_type: self.kind,
            needs_ultra_ssd: self.needs_ultra_ssd,
        };
        let request = AksMachineRequest {
            claim: &serde_json::from_value(claim).unwrap(),
            class: &class,
            chosen: &chosen,
            record: &record(self.size),
            image: SHARED,
            kubernetes: self.kubernetes,
            tags: &Tags::from([("a".to_owned(), "b".to_owned())]),
        };
        serde_json::to_value(aks_machine(&request).unwrap()).unwrap()
    }
}

#[test]
fn a_machine_on_demand_in_a_zone_has_a_whole_body() {
    let expected = json!({
        "zones": ["2"],
        "properties": {
            "nodeImageVersion": "AKSUbuntu-2204gen2containerd-2022.10.03",
            "network": {},
            "hardware": {"vmSize": "Standard_D2_v5", "ultraSsdEnabled": false},
            "operatingSystem": {"osType": "Linux", "osSKU": "Ubuntu2204", "osDiskSizeGB": 128, "osDiskType": "Managed",
                "enableFIPS": false},
            "kubernetes": {
                "nodeLabels": {"karpenter.sh/nodepool": "general", "karpenter.azure.com/sku-name": "Standard_D2_v5",
                    "karpenter.sh/capacity-type": "on-demand", "karpenter.azure.com/placement-scope": "zonal",
                    "karpenter.azure.com/sku-storage-ultra-ssd": "false"},
                "orchestratorVersion": "1.33.2",
                "nodeInitializationTaints": ["karpenter.sh/unregistered:NoExecute"],
                "nodeTaints": [],
            },
            "mode": "User",
            "security": {"sshAccess": "LocalUser", "enableEncryptionAtHost": false, "enableVTPM": false,
                "enableSecureBoot": false},
            "priority": "Regular",
            "tags": {"a": "b"},
        },
    });
    assert_eq!(Case::default().body(), expected);
}

#[test]
fn spot_and_a_place_in_no_zone_are_asked_for_in_so_many_words() {
    let case = Case {
        kind: "spot",
        zone: "0",
        needs_ultra_ssd: true,
        ..Case::default()
    };
    let body = case.body();
    assert_eq!(body["properties"]["priority"], "Spot");
    assert_eq!(body.get("zones"), None);
    assert_eq!(body["properties"]["hardware"]["ultraSsdEnabled"], true);
    let labels = &body["properties"]["kubernetes"]["nodeLabels"];
    assert_eq!(labels["karpenter.azure.com/placement-scope"], "regional");
    assert_eq!(labels["karpenter.azure.com/sku-storage-ultra-ssd"], "true");
}

#[test]
fn the_operating_system_follows_family_security_and_kubernetes() {
    let cases = [
        (json!({}), "1.33.0", "Ubuntu2204"),
        (json!({"imageFamily": "Ubuntu"}), "1.34.0", "Ubuntu2404"),
        (json!({"imageFamily": "Ubuntu2204"}), "1.34.0", "Ubuntu2204"),
        (json!({"imageFamily": "Ubuntu2404"}), "1.30.0", "Ubuntu2404"),
        (json!({"imageFamily": "AzureLinux"}), "1.34.0", "AzureLinux"),
        (json!({"imageFamily": "Ubuntu", "fipsMode": "FIPS"}), "1.34.0", "Ubuntu"),
    ];
    for (spec, kubernetes, sku) in cases {
        let case = Case {
            spec: spec.clone(),
            kubernetes,
            ..Case::default()
        };
        let system = case.body()["properties"]["operatingSystem"].clone();
        assert_eq!(system["osSKU"], sku, "{spec} {kubernetes}");
        assert_eq!(system["enableFIPS"], spec["fipsMode"] == "FIPS", "{spec}");
    }
}

#[test]
fn a_disk_that_fits_on_the_machine_is_ephemeral() {
    let disk = |gb: i32| {
        let case = Case {
            size: "Standard_D2s_v3",
            spec: json!({"osDiskSizeGB": gb}),
            ..Case::default()
        };
        case.body()["properties"]["operatingSystem"]["osDiskType"].clone()
    };
    assert_eq!(disk(30), "Ephemeral");
    assert_eq!(disk(128), "Managed");
}

#[test]
fn what_a_class_says_of_security_and_network_is_passed_on() {
    let case = Case {
        spec: json!({"vnetSubnetID": "/subnet", "maxPods": 42, "artifactStreaming": {"enabled": true},
            "security": {"encryptionAtHost": true, "trustedLaunch": {"vtpm": true, "secureBoot": true}},
            "kubelet": {"podPidsLimit": 7}, "linuxOSConfig": {"sysctls": {"vmSwappiness": 1}},
            "localDNS": {"mode": "Required"}}),
        ..Case::default()
    };
    let body = case.body();
    let properties = &body["properties"];
    assert_eq!(properties["network"], json!({"vnetSubnetID": "/subnet"}));
    assert_eq!(
        properties["security"],
        json!({"sshAccess": "LocalUser", "enableEncryptionAtHost": true, "enableVTPM": true, "enableSecureBoot": true})
    );
    assert_eq!(properties["kubernetes"]["maxPods"], 42);
    assert_eq!(properties["kubernetes"]["kubeletConfig"], json!({"podMaxPids": 7}));
    assert_eq!(
        properties["kubernetes"]["artifactStreamingProfile"],
        json!({"enabled": true})
    );
    assert_eq!(
        properties["operatingSystem"]["linuxProfile"],
        json!({"linuxOSConfig": {"sysctls": {"vmSwappiness": 1}}})
    );
    assert_eq!(properties["localDNSProfile"], json!({"mode": "Required"}));
}

#[test]
fn sizes_with_gpus_are_told_whether_to_have_drivers() {
    let profile = |size: &'static str, spec: Value| {
        let case = Case {
            size,
            spec,
            ..Case::default()
        };
        case.body()["properties"]["hardware"]["gpuProfile"].clone()
    };
    assert_eq!(
        profile("Standard_NC24ads_A100_v4", json!({})),
        json!({"driver": "Install"})
    );
    let none = json!({"gpu": {"mode": "None"}});
    assert_eq!(profile("Standard_NC24ads_A100_v4", none), json!({"driver": "None"}));
    assert_eq!(profile("Standard_D2_v5", json!({})), Value::Null);
}

#[test]
fn all_taints_are_for_the_beginning_and_none_twice() {
    let taint = |key: &str| json!({"key": key, "value": "v", "effect": "NoSchedule"});
    let case = Case {
        claim: json!({"spec": {"taints": [taint("a"), taint("b")], "startupTaints": [taint("b"), taint("c")]}}),
        ..Case::default()
    };
    let kubernetes = case.body()["properties"]["kubernetes"].clone();
    assert_eq!(
        kubernetes["nodeInitializationTaints"],
        json!([
            "a=v:NoSchedule",
            "b=v:NoSchedule",
            "c=v:NoSchedule",
            "karpenter.sh/unregistered:NoExecute"
        ])
    );
    assert_eq!(kubernetes["nodeTaints"], json!([]));
}

fn taints_of(spec: Value) -> Vec<String> {
    let case = Case {
        claim: json!({"spec": spec}),
        ..Case::default()
    };
    let body = case.body();
    let taints = &body["properties"]["kubernetes"]["nodeInitializationTaints"];
    serde_json::from_value(taints.clone()).unwrap()
}

#[test]
fn taints_keep_their_effects_and_may_have_no_value() {
    let taints = json!([{"key": "a", "effect": "NoSchedule"}, {"key": "b", "value": "v", "effect": "PreferNoSchedule"},
        {"key": "c", "value": "", "effect": "NoExecute"}]);
    let expected = [
        "a:NoSchedule",
        "b=v:PreferNoSchedule",
        "c:NoExecute",
        "karpenter.sh/unregistered:NoExecute",
    ];
    assert_eq!(taints_of(json!({"taints": taints})), expected);
    assert_eq!(taints_of(json!({"startupTaints": taints})), expected);
    assert_eq!(taints_of(json!({})), ["karpenter.sh/unregistered:NoExecute"]);
}

#[test]
fn the_taint_of_an_unregistered_node_is_there_once_whoever_brings_it() {
    let unregistered = json!([{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}]);
    for field in ["taints", "startupTaints"] {
        assert_eq!(
            taints_of(json!({field: unregistered})),
            ["karpenter.sh/unregistered:NoExecute"],
            "{field}"
        );
    }
}

#[test]
fn a_node_is_a_users_unless_its_label_says_system() {
    for (label, mode) in [("user", "User"), ("", "User"), ("other", "User"), ("system", "System")] {
        let case = Case {
            claim: json!({"metadata": {"name": "x", "labels": {"kubernetes.azure.com/mode": label}}}),
            ..Case::default()
        };
        assert_eq!(case.body()["properties"]["mode"], mode, "{label}");
    }
    let case = Case {
        claim: json!({"metadata": {"name": "x"}}),
        ..Case::default()
    };
    assert_eq!(case.body()["properties"]["mode"], "User");
}

#[test]
fn labels_come_from_the_claim_its_requirements_and_the_size_as_far_as_a_kubelet_may_set_them() {
    let requirement = |key: &str, values: Value| json!({"key": key, "operator": "In", "values": values});
    let case = Case {
        claim: json!({
            "metadata": {"name": "x", "labels": {"team": "a", "kubernetes.io/custom-label": "x",
                "k8s.io/custom-label": "x", "kubelet.kubernetes.io/custom-label": "x"}},
            "spec": {"requirements": [requirement("example.com/one", json!(["v"])),
                requirement("example.com/many", json!(["v", "w"]))]},
        }),
        ..Case::default()
    };
    let body = case.body();
    let labels = body["properties"]["kubernetes"]["nodeLabels"].as_object().unwrap();
    for key in [
        "team",
        "example.com/one",
        "kubelet.kubernetes.io/custom-label",
        "karpenter.azure.com/sku-name",
    ] {
        assert!(labels.contains_key(key), "{key}");
    }
    for key in [
        "kubernetes.io/custom-label",
        "k8s.io/custom-label",
        "example.com/many",
        "kubernetes.io/arch",
    ] {
        assert!(!labels.contains_key(key), "{key}");
    }
}

#[test]
fn what_a_class_does_not_say_is_left_to_aks() {
    let body = Case {
        spec: json!({}),
        ..Case::default()
    };
    let properties = body.body()["properties"].clone();
    for place in [
        "/operatingSystem/osDiskSizeGB",
        "/operatingSystem/linuxProfile",
        "/kubernetes/kubeletConfig",
        "/kubernetes/maxPods",
        "/kubernetes/artifactStreamingProfile",
        "/localDNSProfile",
        "/network/vnetSubnetID",
    ] {
        assert_eq!(properties.pointer(place), None, "{place}");
    }
    let off = Case {
        spec: json!({"artifactStreaming": {"enabled": false}, "security": {"encryptionAtHost": false}}),
        ..Case::default()
    };
    let properties = off.body()["properties"].clone();
    assert_eq!(properties.pointer("/kubernetes/artifactStreamingProfile"), None);
    assert_eq!(properties["security"]["enableEncryptionAtHost"], false);
}

#[test]
fn images_are_not_streamed_on_arm64() {
    let class: AKSNodeClass = serde_json::from_value(json!({"apiVersion": "karpenter.azure.com/v1beta1",
        "kind": "AKSNodeClass", "metadata": {"name": "c"}, "spec": {"artifactStreaming": {"enabled": true}}}))
    .unwrap();
    let on = |arch: &str| {
        let entry = json!({"name": "x", "requirements": [
            {"key": "kubernetes.io/arch", "operator": "In", "values": [arch]}]});
        let chosen = Chosen {
            entry: Arc::new(serde_json::from_value(entry).unwrap()),
            zone: "0".to_owned(),
            capacity_type: "spot",
            needs_ultra_ssd: false,
        };
        is_streaming(&class, &chosen)
    };
    assert!(on("amd64") && !on("arm64"));
}

#[test]
fn the_label_of_the_mode_decides_on_the_mode_and_is_not_sent() {
    let case = Case {
        claim: json!({"metadata": {"name": "general-x", "labels": {"kubernetes.azure.com/mode": "system", "team": "a",
            "agentpool": "x", "kubernetes.io/hostname": "h", "node-role.kubernetes.io/x": "y"}}}),
        ..Case::default()
    };
    let body = case.body();
    assert_eq!(body["properties"]["mode"], "System");
    let labels = body["properties"]["kubernetes"]["nodeLabels"]
        .as_object()
        .unwrap()
        .clone();
    assert_eq!(labels["team"], "a");
    for key in [
        "kubernetes.azure.com/mode",
        "agentpool",
        "kubernetes.io/hostname",
        "node-role.kubernetes.io/x",
    ] {
        assert!(!labels.contains_key(key), "{key}");
    }
}

#[test]
fn an_image_is_named_by_gallery_definition_and_version() {
    assert_eq!(
        node_image_version(SHARED).unwrap(),
        "AKSUbuntu-2204gen2containerd-2022.10.03"
    );
    assert!(node_image_version(&SHARED.replace("resourceGroups", "resourcegroups")).is_ok());
    let other_gallery = SHARED
        .replace("AKSUbuntu/", "AKSAzureLinux/")
        .replace("2022.10.03", "202501.02.0");
    assert_eq!(
        node_image_version(&other_gallery).unwrap(),
        "AKSAzureLinux-2204gen2containerd-202501.02.0"
    );
    let wrong = [
        String::new(),
        "/subscriptions/s".to_owned(),
        "not an id".to_owned(),
        SHARED.replace("/subscriptions/s", ""),
        SHARED.replace("/versions/2022.10.03", ""),
        SHARED.replace("Microsoft.Compute", "Microsoft.Network"),
        SHARED.replace("galleries", "gallery"),
        SHARED.replace("images", "image"),
        SHARED.replace("versions", "version"),
        SHARED.replace("resourceGroups", "groups"),
        format!("{SHARED}/more"),
        "/CommunityGalleries/g/images/d/versions/1".to_owned(),
    ];
    for other in wrong {
        assert!(node_image_version(&other).is_err(), "{other}");
    }
    let shouted = "/SUBSCRIPTIONS/s/RESOURCEGROUPS/g/providers/MICROSOFT.COMPUTE/GALLERIES/G/IMAGES/d/VERSIONS/1";
    assert_eq!(node_image_version(shouted).unwrap(), "G-d-1");
    let refused = node_image_version("/CommunityGalleries/g/images/d/versions/1").unwrap_err();
    assert!(refused.to_string().contains("USE_SIG"), "{refused}");
}
