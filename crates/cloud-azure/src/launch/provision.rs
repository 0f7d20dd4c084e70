//! What does the node bootstrapping service of AKS need to know of a node, and what becomes of its answer?

use std::collections::BTreeMap;

use api::{
    azure::{AKSNodeClass, GpuMode, KubeletConfiguration},
    labels::azure::AKS_MODE,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use model::object::{NodeClaim, Taint};
use runtime::settings::AzureSettings;

use super::{Boot, Chosen, allowed_taints, gpu_driver, kubelet::written, labels::is_streaming, node_settings};
use crate::{
    arm::{
        Failure,
        wire::aks::{
            NodeBootstrapping, ProvisionGpu, ProvisionHelperValues, ProvisionProfile, ProvisionSecurity,
            ProvisionValues, Switch,
        },
    },
    class::Class,
    offers::SizeRecord,
};

// The numbers of a service that has no words for them.
const LINUX: i32 = 2;
const UBUNTU: i32 = 1;
const AZURE_LINUX: i32 = 7;
const SYSTEM: i32 = 1;
const USER: i32 = 2;
const SSH_FOR_THE_LOCAL_USER: i32 = 0;
const GRID: i32 = 2;
const CUDA: i32 = 3;

/// What stands for the bootstrap token, which the service does not know.
const TOKEN: &str = "{{.TokenID}}.{{.TokenSecret}}";

/// What a node is told of.
pub(crate) struct Provision<'a> {
    pub(crate) claim: &'a NodeClaim,
    pub(crate) class: &'a AKSNodeClass,
    pub(crate) chosen: &'a Chosen,
    pub(crate) record: &'a SizeRecord,
    /// The image's id.
    pub(crate) image: &'a str,
    pub(crate) kubernetes: &'a str,
    pub(crate) labels: &'a BTreeMap<String, String>,
    pub(crate) settings: &'a AzureSettings,
}

/// What the service is asked.
pub(crate) fn provision_values(it: &Provision<'_>) -> Result<ProvisionValues, Failure> {
    Ok(ProvisionValues {
        provision_profile: profile(it)?,
        provision_helper_values: ProvisionHelperValues {
            #[expect(clippy::cast_precision_loss, reason = "a few hundred at most")]
            sku_cpu: it.record.vcpu as f64,
            // The service reckons with the memory that the size is sold with.
            sku_memory: it.record.memory_gib.floor(),
        },
    })
}

fn profile(it: &Provision<'_>) -> Result<ProvisionProfile, Failure> {
    let class = Class(it.class);
    let is_ephemeral = it
        .record
        .ephemeral_disk
        .is_some_and(|(most, _)| i64::from(class.os_disk_gb()) <= most);
    let (startup, general) = taints(it.claim);
    let trusted = it
        .class
        .spec
        .security
        .as_ref()
        .and_then(|it| it.trusted_launch.as_ref());
    let is_system = it.labels.get(AKS_MODE).is_some_and(|mode| mode == "system");
    let kubelet = it.class.spec.kubelet.as_ref();
    Ok(ProvisionProfile {
        name: String::new(),
        architecture: if it.record.machine().arch == "arm64" {
            "Arm64"
        } else {
            "x64"
        }
        .to_owned(),
        os_type: LINUX,
        os_sku: if class.is_azure_linux() { AZURE_LINUX } else { UBUNTU },
        vm_size: it.record.name.clone(),
        distro: distro(it.image)?.to_owned(),
        custom_node_labels: it.labels.clone(),
        orchestrator_version: it.kubernetes.to_owned(),
        vnet_subnet_id: class.subnet_id(it.settings).to_owned(),
        vnet_cidrs: Vec::new(),
        storage_profile: if is_ephemeral { "Ephemeral" } else { "ManagedDisks" }.to_owned(),
        node_initialization_taints: startup,
        node_taints: general,
        security_profile: ProvisionSecurity {
            ssh_access: SSH_FOR_THE_LOCAL_USER,
            enable_vtpm: trusted.and_then(|it| it.vtpm),
            enable_secure_boot: trusted.and_then(|it| it.secure_boot),
        },
        max_pods: class.max_pods(it.settings),
        mode: if is_system { SYSTEM } else { USER },
        custom_kubelet_config: Some(node_settings::kubelet(
            kubelet.unwrap_or(&KubeletConfiguration::default()),
        )),
        custom_linux_os_config: it.class.spec.linux_os_config.as_ref().map(node_settings::linux),
        enable_fips: class.is_fips(),
        gpu_profile: gpu(it),
        artifact_streaming_profile: Switch {
            enabled: is_streaming(it.class, it.chosen),
        },
        local_dns_profile: node_settings::local_dns(it.class),
    })
}

/// The taints that go once the node has started, and those that stay.
fn taints(claim: &NodeClaim) -> (Vec<String>, Vec<String>) {
    let is_general = |taint: &&Taint| claim.spec.taints.iter().any(|it| it == *taint);
    let all = allowed_taints(claim);
    let (general, startup): (Vec<&Taint>, Vec<&Taint>) = all.iter().partition(is_general);
    let texts = |taints: Vec<&Taint>| taints.into_iter().map(written).collect();
    (texts(startup), texts(general))
}

fn gpu(it: &Provision<'_>) -> Option<ProvisionGpu> {
    (it.record.gpu_manufacturer() == "nvidia").then(|| ProvisionGpu {
        install_gpu_driver: Class(it.class).gpu_mode() != GpuMode::None,
        driver_type: if gpu_driver::driver(&it.record.name).kind == "grid" {
            GRID
        } else {
            CUDA
        },
    })
}

/// The name that AKS has for the images of a definition.
fn distro(image: &str) -> Result<&'static str, Failure> {
    let definition = image.split('/').rev().nth(2).unwrap_or_default();
    let found = DISTROS.iter().find(|(name, _)| name.eq_ignore_ascii_case(definition));
    found.map(|(_, distro)| *distro).ok_or_else(|| {
        let message = format!("image {image} is of no definition that the node bootstrapping service knows");
        Failure::with_code("InvalidImage", message)
    })
}

const DISTROS: [(&str, &str); 24] = [
    ("2004gen2fipscontainerd", "aks-ubuntu-fips-containerd-20.04-gen2"),
    ("2004fipscontainerd", "aks-ubuntu-fips-containerd-20.04"),
    ("2204gen2fipsTLcontainerd", "aks-ubuntu-fips-containerd-22.04-tl-gen2"),
    ("2204gen2TLcontainerd", "aks-ubuntu-containerd-22.04-tl-gen2"),
    ("2204gen2containerd", "aks-ubuntu-containerd-22.04-gen2"),
    ("2204containerd", "aks-ubuntu-containerd-22.04"),
    ("2204gen2arm64containerd", "aks-ubuntu-arm64-containerd-22.04-gen2"),
    ("2404gen2TLcontainerd", "aks-ubuntu-containerd-24.04-tl-gen2"),
    ("2404gen2containerd", "aks-ubuntu-containerd-24.04-gen2"),
    ("2404containerd", "aks-ubuntu-containerd-24.04"),
    ("2404gen2arm64containerd", "aks-ubuntu-arm64-containerd-24.04-gen2"),
    ("V2gen2fips", "aks-azurelinux-v2-gen2-fips"),
    ("V2fips", "aks-azurelinux-v2-fips"),
    ("V2gen2TL", "aks-azurelinux-v2-gen2-tl"),
    ("V2gen2", "aks-azurelinux-v2-gen2"),
    ("V2", "aks-azurelinux-v2"),
    ("V2gen2arm64", "aks-azurelinux-v2-arm64-gen2"),
    ("V3gen2fips", "aks-azurelinux-v3-gen2-fips"),
    ("V3fips", "aks-azurelinux-v3-fips"),
    ("V3gen2arm64fips", "aks-azurelinux-v3-arm64-gen2-fips"),
    ("V3gen2TL", "aks-azurelinux-v3-gen2-tl"),
    ("V3gen2", "aks-azurelinux-v3-gen2"),
    ("V3", "aks-azurelinux-v3"),
    ("V3gen2arm64", "aks-azurelinux-v3-arm64-gen2"),
];

/// The answer with the bootstrap token in its places.
pub(crate) fn hydrated(answer: &NodeBootstrapping, token: &str) -> Result<Boot, Failure> {
    let refuse = |why: String| Failure::with_code("InvalidResponse", format!("GetNodeBootstrapping: customData {why}"));
    let decoded = STANDARD.decode(&answer.custom_data);
    let decoded = decoded.map_err(|error| refuse(format!("is not base64: {error}")))?;
    let text = String::from_utf8(decoded).map_err(|error| refuse(format!("is no text: {error}")))?;
    Ok(Boot {
        custom_data: STANDARD.encode(text.replace(TOKEN, token)),
        cse: Some(answer.cse.replace(TOKEN, token)),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::needless_pass_by_value, reason = "called with literals")]

    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::arm::wire::Sku;

    #[test]
    fn the_bootstrap_token_is_put_into_its_places() {
        let answer = |custom_data: &str| NodeBootstrapping {
            custom_data: STANDARD.encode(custom_data),
            cse: "run --token {{.TokenID}}.{{.TokenSecret}}".to_owned(),
        };
        let boot = hydrated(&answer("a {{.TokenID}}.{{.TokenSecret}} b"), "id.secret").unwrap();
        assert_eq!(boot.custom_data, STANDARD.encode("a id.secret b"));
        assert_eq!(boot.cse.as_deref(), Some("run --token id.secret"));
        let plain = hydrated(&answer("nothing to fill in"), "id.secret").unwrap();
        assert_eq!(plain.custom_data, STANDARD.encode("nothing to fill in"));
    }

    #[test]
    fn custom_data_that_is_not_base64_is_refused() {
        let answer = NodeBootstrapping {
            custom_data: "%%".to_owned(),
            cse: "x".to_owned(),
        };
        let refused = hydrated(&answer, "t").unwrap_err().to_string();
        assert!(refused.contains("customData is not base64"), "{refused}");
    }

    fn record(name: &str) -> SizeRecord {
        let all: Value = serde_json::from_str(include_str!("../../tests/data/resource-skus.json")).unwrap();
        let all: Vec<Sku> = serde_json::from_value(all["southcentralus"]["value"].clone()).unwrap();
        SizeRecord::read(all.iter().find(|it| it.name == name).unwrap(), "southcentralus").unwrap()
    }

    fn values(size: &str, spec: Value, claim: Value, definition: &str) -> Value {
        let class: AKSNodeClass = serde_json::from_value(json!({"apiVersion": "karpenter.azure.com/v1beta1",
            "kind": "AKSNodeClass", "metadata": {"name": "c"}, "spec": spec}))
        .unwrap();
        let record = record(size);
        let arch = record.machine().arch;
        let entry = json!({"name": size, "requirements": [
            {"key": "kubernetes.io/arch", "operator": "In", "values": [arch]}]});
        let chosen = Chosen {
            entry: Arc::new(serde_json::from_value(entry).unwrap()),
            zone: "0".to_owned(),
            capacity_type: "spot",
            needs_ultra_ssd: false,
        };
        let asked = provision_values(&Provision {
            claim: &serde_json::from_value(claim).unwrap(),
            class: &class,
            chosen: &chosen,
            record: &record,
            image: &format!("/CommunityGalleries/g/images/{definition}/versions/1"),
            kubernetes: "1.33.2",
            labels: &[("team".to_owned(), "a".to_owned())].into(),
            settings: &AzureSettings {
                vnet_subnet_id: "/subnet".to_owned(),
                ..AzureSettings::default()
            },
        });
        serde_json::to_value(asked.unwrap()).unwrap()
    }

    #[test]
    fn the_service_is_told_everything_of_a_node() {
        let claim = json!({"metadata": {"name": "x"}, "spec": {
            "taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}],
            "startupTaints": [{"key": "c", "effect": "NoExecute"}]}});
        let asked = values(
            "Standard_D2s_v3",
            json!({"osDiskSizeGB": 128}),
            claim,
            "2204gen2containerd",
        );
        assert_eq!(
            asked,
            json!({
                "provisionProfile": {
                    "name": "", "architecture": "x64", "osType": 2, "osSku": 1, "vmSize": "Standard_D2s_v3",
                    "distro": "aks-ubuntu-containerd-22.04-gen2", "customNodeLabels": {"team": "a"},
                    "orchestratorVersion": "1.33.2", "vnetSubnetID": "/subnet", "vnetCidrs": [],
                    "storageProfile": "ManagedDisks", "nodeTaints": ["a=b:NoSchedule"],
                    "nodeInitializationTaints": ["c:NoExecute", "karpenter.sh/unregistered:NoExecute"],
                    "securityProfile": {"sshAccess": 0}, "maxPods": 250, "mode": 2, "customKubeletConfig": {},
                    "enableFIPS": false, "artifactStreamingProfile": {"enabled": false},
                },
                "provisionHelperValues": {"skuCPU": 2.0, "skuMemory": 8.0},
            })
        );
    }

    #[test]
    fn the_profile_follows_family_architecture_and_security() {
        let profile = |size: &str, spec: Value, definition: &str| {
            values(size, spec, json!({"metadata": {"name": "x"}}), definition)["provisionProfile"].clone()
        };
        let linux = profile("Standard_D2s_v3", json!({"imageFamily": "AzureLinux"}), "V3gen2");
        assert_eq!(
            (linux["osSku"].as_i64(), linux["distro"].as_str()),
            (Some(7), Some("aks-azurelinux-v3-gen2"))
        );
        let arm = profile("Standard_D16plds_v5", json!({}), "2204gen2arm64containerd");
        assert_eq!(arm["architecture"], "Arm64");
        let streamed = json!({"artifactStreaming": {"enabled": true}});
        let is_streamed =
            |size: &str| profile(size, streamed.clone(), "2204gen2containerd")["artifactStreamingProfile"].clone();
        assert_eq!(is_streamed("Standard_D2s_v3"), json!({"enabled": true}));
        assert_eq!(is_streamed("Standard_D16plds_v5"), json!({"enabled": false}));
        for (fips, expected) in [(json!("FIPS"), true), (json!("Disabled"), false), (json!(null), false)] {
            let profile = profile("Standard_D2s_v3", json!({"fipsMode": fips}), "V3gen2fips");
            assert_eq!(profile["enableFIPS"], expected, "{fips}");
        }
        let kubelet = json!({"kubelet": {"cpuManagerPolicy": "static", "containerLogMaxSize": "50Mi"}});
        let kubelet = profile("Standard_D2s_v3", kubelet, "2204gen2containerd");
        assert_eq!(
            kubelet["customKubeletConfig"],
            json!({"cpuManagerPolicy": "static", "containerLogMaxSizeMB": 50})
        );
    }

    #[test]
    fn sizes_with_gpus_are_told_which_driver_and_whether_to_install_it() {
        let profile = |spec: Value| {
            let claim = json!({"metadata": {"name": "x"}});
            values("Standard_NC24ads_A100_v4", spec, claim, "2204gen2containerd")["provisionProfile"]["gpuProfile"]
                .clone()
        };
        assert_eq!(profile(json!({})), json!({"installGPUDriver": true, "driverType": 3}));
        let none = json!({"gpu": {"mode": "None"}});
        assert_eq!(profile(none), json!({"installGPUDriver": false, "driverType": 3}));
    }

    #[test]
    fn every_image_that_a_class_can_have_has_a_name_for_the_service() {
        use crate::node_class::families::Release;
        let releases = [
            Release::Ubuntu2004,
            Release::Ubuntu2204,
            Release::Ubuntu2404,
            Release::AzureLinux2,
            Release::AzureLinux3,
        ];
        for release in releases {
            for (is_fips, is_trusted) in [(false, false), (true, false), (false, true), (true, true)] {
                for definition in release.definitions(is_fips, is_trusted) {
                    let image = format!("/CommunityGalleries/g/images/{}/versions/1", definition.name);
                    assert!(distro(&image).is_ok(), "{}", definition.name);
                }
            }
        }
        assert!(distro("/CommunityGalleries/g/images/other/versions/1").is_err());
    }
}
