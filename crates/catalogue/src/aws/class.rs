//! What a node class makes of every machine launched from it.

use std::collections::BTreeMap;

use api::aws::{AmiFamily, BlockDeviceMapping, EC2NodeClass, InstanceStorePolicy, InterfaceType};
use model::{quantity::Quantity, resources::ResourceList};

use super::{Os, Setup, Threshold};

/// The disk of pods unless anybody says otherwise.
const DEFAULT_STORAGE: i64 = 20 << 30;

/// What is special about an image family.
struct Family {
    os: Os,
    /// Where pods' data lies; none where only the user knows.
    ephemeral_device: Option<&'static str>,
    default_storage: i64,
    has_pods_per_core: bool,
    are_pods_limited_by_interfaces: bool,
    is_overhead_by_interfaces: bool,
}

impl Family {
    fn of(family: &AmiFamily) -> Self {
        let linux = Self {
            os: Os::Linux,
            ephemeral_device: Some("/dev/xvda"),
            default_storage: DEFAULT_STORAGE,
            has_pods_per_core: true,
            are_pods_limited_by_interfaces: true,
            is_overhead_by_interfaces: true,
        };
        let windows = |build| Self {
            os: Os::Windows { build },
            ephemeral_device: Some("/dev/sda1"),
            default_storage: 50 << 30,
            has_pods_per_core: true,
            are_pods_limited_by_interfaces: false,
            is_overhead_by_interfaces: false,
        };
        match family {
            AmiFamily::Bottlerocket => Self {
                ephemeral_device: Some("/dev/xvdb"),
                has_pods_per_core: false,
                is_overhead_by_interfaces: false,
                ..linux
            },
            AmiFamily::Windows2019 => windows(WINDOWS_2019),
            AmiFamily::Windows2022 => windows(WINDOWS_2022),
            AmiFamily::Windows2025 => windows(WINDOWS_2025),
            AmiFamily::Custom => Self {
                ephemeral_device: None,
                ..linux
            },
            _ => linux,
        }
    }
}

/// Builds of Windows Server, as the label `node.kubernetes.io/windows-build` has them.
pub const WINDOWS_2019: &str = "10.0.17763";
/// The next one.
pub const WINDOWS_2022: &str = "10.0.20348";
/// The last one.
pub const WINDOWS_2025: &str = "10.0.26100";

impl Setup {
    /// What a node class makes of every machine. Amounts that cannot be read, which the schema does not admit, count as
    /// not given. What is a setting of the controller has its default.
    pub fn of(class: &EC2NodeClass) -> Self {
        let family = Family::of(&class.ami_family());
        let kubelet = class.spec.kubelet.clone().unwrap_or_default();
        let interfaces = class.spec.network_interfaces.as_deref();
        let efa_only = |card: Option<i32>| {
            let configured = interfaces.unwrap_or_default().iter();
            let meant = configured.filter(|it| it.interface_type == InterfaceType::EfaOnly);
            let meant = meant.filter(|it| card.is_none_or(|card| it.network_card_index == card));
            i64::try_from(meant.count()).unwrap_or(i64::MAX)
        };
        let threshold = |signal: &str| threshold(kubelet.eviction_hard.as_ref()?.get(signal)?);
        Self {
            os: family.os,
            storage: storage(class.spec.block_device_mappings.as_deref().unwrap_or_default(), &family),
            uses_local_disks: class.spec.instance_store_policy == Some(InstanceStorePolicy::Raid0),
            max_pods: kubelet.max_pods.map(Into::into),
            pods_per_core: kubelet
                .pods_per_core
                .filter(|_| family.has_pods_per_core)
                .map(Into::into),
            are_pods_limited_by_interfaces: family.are_pods_limited_by_interfaces,
            is_overhead_by_interfaces: family.is_overhead_by_interfaces,
            efa_only_on_first_card: efa_only(Some(0)),
            efa: interfaces.map(|_| efa_only(None)),
            kube_reserved: amounts(kubelet.kube_reserved.as_ref()),
            system_reserved: amounts(kubelet.system_reserved.as_ref()),
            eviction_memory: threshold("memory.available"),
            eviction_storage: threshold("nodefs.available"),
            ..Self::default()
        }
    }
}

fn amounts(given: Option<&BTreeMap<String, String>>) -> ResourceList {
    let read = |(name, amount): (&String, &String)| Some((name.as_str().into(), amount.parse().ok()?));
    given.into_iter().flatten().filter_map(read).collect()
}

fn threshold(text: &str) -> Option<Threshold> {
    match text.strip_suffix('%') {
        Some(percent) => percent.parse().ok().map(Threshold::Percent),
        None => text.parse().ok().map(Threshold::Amount),
    }
}

/// The root volume that is named as such; else, where the family has no device of its own, the last; else the one that
/// lies on the family's device; else the family's default.
fn storage(mappings: &[BlockDeviceMapping], family: &Family) -> Quantity {
    let size = |mapping: &BlockDeviceMapping| -> Option<Quantity> {
        mapping.ebs.as_ref()?.volume_size.as_ref()?.0.parse().ok()
    };
    let default = Quantity::from_bytes(family.default_storage);
    let root = mappings.iter().find(|mapping| mapping.root_volume == Some(true));
    if let Some(size) = root.and_then(size) {
        return size;
    }
    let on_device = match family.ephemeral_device {
        Some(device) => mappings.iter().find(|it| it.device_name.as_deref() == Some(device)),
        None => mappings.last(),
    };
    on_device.and_then(size).unwrap_or(default)
}
