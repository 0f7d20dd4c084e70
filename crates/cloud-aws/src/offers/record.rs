//! A type as EC2 describes it, in our words.

use std::sync::Arc;

use aws_sdk_ec2::types::{
    ArchitectureType, EbsOptimizedSupport, EfaInfo, EnaSupport, EphemeralNvmeSupport, GpuDeviceMemoryInfo, GpuInfo,
    InferenceAcceleratorInfo, InstanceStorageInfo, InstanceTypeInfo, MemoryInfo, NeuronDeviceCoreInfo,
    NeuronDeviceInfo, NeuronInfo, PlacementGroupInfo, SupportedAdditionalProcessorFeature, UsageClassType, VCpuInfo,
};
use catalogue::aws::{KnownType, Machine};

use crate::border::TypeFacts;

/// What a description must hold for us to use the type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("EC2 describes instance type {name} without {missing}; it is left out")]
pub struct Incomplete {
    name: String,
    missing: &'static str,
}

/// A type as EC2 describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct TypeRecord {
    /// What the launch side asks about it.
    pub facts: Arc<TypeFacts>,
    /// `on-demand`, `spot`: how it can be bought at all.
    pub capacity_types: Vec<&'static str>,
    cpu_manufacturer: String,
    cpu_clock_mhz: String,
    ebs_mbps: String,
    nvme_gb: String,
    encryption_in_transit: bool,
    gpu: [String; 4],
    accelerator: [String; 3],
    extended: Vec<(&'static str, i64)>,
    network_mbps: String,
    pod_eni: i64,
}

impl TypeRecord {
    /// What EC2 says, and what only our table knows.
    pub fn read(info: &InstanceTypeInfo, known: Option<&KnownType>) -> Result<Self, Incomplete> {
        let name = info.instance_type().map_or("", |name| name.as_str()).to_owned();
        let missing = |missing| Incomplete {
            name: name.clone(),
            missing,
        };
        let processor = info.processor_info().ok_or_else(|| missing("processor info"))?;
        let network = info.network_info().ok_or_else(|| missing("network info"))?;
        let vcpu = info.v_cpu_info().and_then(VCpuInfo::default_v_cpus);
        let memory = info.memory_info().and_then(MemoryInfo::size_in_mib);
        let storage = info.instance_storage_info();
        let local_gb = storage.and_then(InstanceStorageInfo::total_size_in_gb);
        let has_nvme = storage.is_some_and(|it| it.nvme_support() != Some(&EphemeralNvmeSupport::Unsupported));
        let cards = network.network_cards();
        let default_card = network.default_network_card_index().unwrap_or(0);
        let strategies = info
            .placement_group_info()
            .map(PlacementGroupInfo::supported_strategies);
        let facts = TypeFacts {
            arch: architecture(processor.supported_architectures()).to_owned(),
            vcpu: vcpu.ok_or_else(|| missing("virtual CPUs"))?.into(),
            memory_mib: memory.ok_or_else(|| missing("memory"))?,
            hypervisor: info.hypervisor().map_or("", |it| it.as_str()).to_owned(),
            is_bare_metal: info.bare_metal().unwrap_or(false),
            efa_interfaces: network
                .efa_info()
                .and_then(EfaInfo::maximum_efa_interfaces)
                .unwrap_or(0),
            is_ena_supported: network.ena_support() != Some(&EnaSupport::Unsupported),
            network_cards: cards
                .iter()
                .map(|card| card.maximum_network_interfaces().unwrap_or(0))
                .collect(),
            default_network_card: usize::try_from(default_card).unwrap_or(0),
            ipv4_per_interface: network.ipv4_addresses_per_interface().unwrap_or(0),
            local_storage_gb: local_gb,
            placement_strategies: strategies
                .unwrap_or_default()
                .iter()
                .map(|it| it.as_str().to_owned())
                .collect(),
            is_nested_virtualization_supported: processor
                .supported_features()
                .contains(&SupportedAdditionalProcessorFeature::NestedVirtualization),
            is_accelerated: info.gpu_info().is_some()
                || info.neuron_info().is_some()
                || info.inference_accelerator_info().is_some(),
            name,
        };
        Ok(Self {
            capacity_types: capacity_types(info.supported_usage_classes()),
            cpu_manufacturer: kebab(processor.manufacturer().unwrap_or_default()),
            cpu_clock_mhz: megahertz(processor.sustained_clock_speed_in_ghz().unwrap_or(0.0)),
            ebs_mbps: ebs_bandwidth(info),
            nvme_gb: local_gb
                .filter(|_| has_nvme)
                .map(|gb| gb.to_string())
                .unwrap_or_default(),
            encryption_in_transit: network.encryption_in_transit_supported().unwrap_or(false),
            gpu: gpu(info),
            accelerator: accelerator(info),
            extended: extended(info),
            network_mbps: known.map(|known| known.network_mbps.clone()).unwrap_or_default(),
            pod_eni: known.map_or(0, |known| known.pod_eni),
            facts: Arc::new(facts),
        })
    }

    /// As the catalogue's formulas take it.
    pub fn machine(&self) -> Machine<'_> {
        let facts = &self.facts;
        let interfaces = facts.network_cards.get(facts.default_network_card).copied();
        Machine {
            name: &facts.name,
            arch: &facts.arch,
            hypervisor: &facts.hypervisor,
            cpu_manufacturer: &self.cpu_manufacturer,
            cpu_clock_mhz: &self.cpu_clock_mhz,
            vcpu: facts.vcpu,
            memory_mib: facts.memory_mib,
            pods: 0,
            network: interfaces.map(|interfaces| (interfaces.into(), facts.ipv4_per_interface.into())),
            encryption_in_transit: self.encryption_in_transit,
            ebs_mbps: &self.ebs_mbps,
            network_mbps: &self.network_mbps,
            nvme_gb: &self.nvme_gb,
            local_gb: facts.local_storage_gb,
            efa: facts.efa_interfaces.into(),
            pod_eni: self.pod_eni,
            gpu: self.gpu.each_ref().map(String::as_str),
            accelerator: self.accelerator.each_ref().map(String::as_str),
            extended: self.extended.clone(),
            price: None,
        }
    }
}

/// The first that Kubernetes has a word for.
fn architecture(supported: &[ArchitectureType]) -> &'static str {
    let word = |it: &ArchitectureType| match it {
        ArchitectureType::X8664 => Some("amd64"),
        ArchitectureType::Arm64 => Some("arm64"),
        _ => None,
    };
    supported.iter().find_map(word).unwrap_or("unknown")
}

fn capacity_types(usage: &[UsageClassType]) -> Vec<&'static str> {
    let word = |it: &UsageClassType| match it {
        UsageClassType::OnDemand => Some("on-demand"),
        UsageClassType::Spot => Some("spot"),
        _ => None,
    };
    usage.iter().filter_map(word).collect()
}

/// Lower case, and `-` for each space.
fn kebab(text: &str) -> String {
    text.to_lowercase().replace(' ', "-")
}

#[expect(clippy::cast_possible_truncation, reason = "some thousands")]
fn megahertz(gigahertz: f64) -> String {
    ((gigahertz * 1000.0).round() as i64).to_string()
}

/// Only where it is on without being asked for.
fn ebs_bandwidth(info: &InstanceTypeInfo) -> String {
    let ebs = info
        .ebs_info()
        .filter(|it| it.ebs_optimized_support() == Some(&EbsOptimizedSupport::Default));
    let maximum = ebs.and_then(|it| it.ebs_optimized_info()?.maximum_bandwidth_in_mbps());
    maximum.map(|it| it.to_string()).unwrap_or_default()
}

/// Only where there is one kind of them.
fn gpu(info: &InstanceTypeInfo) -> [String; 4] {
    match info.gpu_info().map(GpuInfo::gpus) {
        Some([gpu]) => [
            kebab(gpu.name().unwrap_or_default()),
            kebab(gpu.manufacturer().unwrap_or_default()),
            gpu.count().unwrap_or(0).to_string(),
            gpu.memory_info()
                .and_then(GpuDeviceMemoryInfo::size_in_mib)
                .unwrap_or(0)
                .to_string(),
        ],
        _ => Default::default(),
    }
}

/// Neuron devices, or else another accelerator, where there is one kind of them.
fn accelerator(info: &InstanceTypeInfo) -> [String; 3] {
    if let Some(neuron) = info.neuron_info() {
        return match neuron.neuron_devices() {
            [device] => [
                kebab(device.name().unwrap_or_default()),
                "aws".to_owned(),
                device.count().unwrap_or(0).to_string(),
            ],
            _ => Default::default(),
        };
    }
    match info
        .inference_accelerator_info()
        .map(InferenceAcceleratorInfo::accelerators)
    {
        Some([device]) => [
            kebab(device.name().unwrap_or_default()),
            kebab(device.manufacturer().unwrap_or_default()),
            device.count().unwrap_or(0).to_string(),
        ],
        _ => Default::default(),
    }
}

fn extended(info: &InstanceTypeInfo) -> Vec<(&'static str, i64)> {
    let gpus = info.gpu_info().map(GpuInfo::gpus).unwrap_or_default();
    let of = |maker: &str| -> i64 {
        let made = gpus.iter().filter(|gpu| gpu.manufacturer() == Some(maker));
        made.map(|gpu| i64::from(gpu.count().unwrap_or(0))).sum()
    };
    let devices = info.neuron_info().map(NeuronInfo::neuron_devices).unwrap_or_default();
    let count = |device: &NeuronDeviceInfo| i64::from(device.count().unwrap_or(0));
    let cores = devices.first().map_or(0, |device| {
        let each = device.core_info().and_then(NeuronDeviceCoreInfo::count).unwrap_or(0);
        count(device) * i64::from(each)
    });
    let all = [
        ("nvidia.com/gpu", of("NVIDIA")),
        ("amd.com/gpu", of("AMD")),
        ("habana.ai/gaudi", of("Habana")),
        ("aws.amazon.com/neuron", devices.iter().map(count).sum()),
        ("aws.amazon.com/neuroncore", cores),
    ];
    all.into_iter().filter(|(_, count)| *count > 0).collect()
}
