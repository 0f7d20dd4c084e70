//! A size as the SKU API describes it, in the units we reckon with, or why we do not use it.

use std::collections::{BTreeMap, BTreeSet};

use api::azure::{AKSNodeClass, GpuMode};
use catalogue::azure::Machine;

use super::{
    gpus::{GpuSize, gpu_size},
    size_name::SizeName,
};
use crate::{
    arm::wire::{Capability, Sku},
    class::Class,
};

/// Sizes that AKS or Karpenter do not run nodes on.
const REFUSED: [&str; 14] = [
    "Standard_A0",
    "Standard_A1",
    "Standard_A1_v2",
    "Standard_B1s",
    "Standard_B1ms",
    "Standard_F1",
    "Standard_F1s",
    "Basic_A0",
    "Basic_A1",
    "Basic_A2",
    "Basic_A3",
    "Basic_A4",
    "Standard_E64i_v3",
    "Standard_E64is_v3",
];

/// A size.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "facts of a machine, each on its own")]
pub struct SizeRecord {
    /// Its name.
    pub name: String,
    /// What quotas call its family.
    pub quota_family: String,
    /// Virtual CPUs.
    pub vcpu: i64,
    /// Memory in GiB.
    pub memory_gib: f64,
    /// Zones that sell it, by number.
    pub zones: BTreeSet<String>,
    /// It is sold as spot.
    pub is_spot_capable: bool,
    /// Accelerated networking.
    pub has_accelerated_networking: bool,
    /// A system disk on the machine itself: the largest, and where.
    pub ephemeral_disk: Option<(i64, &'static str)>,
    /// GPUs.
    pub gpu_count: i64,
    /// Most data disks.
    pub max_data_disks: Option<u32>,
    pub(super) ultra_zones: BTreeSet<String>,
    pub(super) has_regional_ultra_ssd: bool,
    name_parts: SizeName,
    arch: &'static str,
    gpu: Option<&'static GpuSize>,
    has_premium_storage: bool,
    hyperv_generations: Vec<&'static str>,
    has_encryption_at_host: bool,
    has_trusted_launch: bool,
}

struct Capabilities<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> Capabilities<'a> {
    fn of(all: &'a [Capability]) -> Self {
        Self(all.iter().map(|it| (it.name.as_str(), it.value.as_str())).collect())
    }

    fn text(&self, name: &str) -> &'a str {
        self.0.get(name).copied().unwrap_or_default()
    }

    fn is(&self, name: &str) -> bool {
        self.text(name).eq_ignore_ascii_case("true")
    }

    fn number(&self, name: &str) -> Option<i64> {
        self.text(name).parse().ok()
    }

    fn has(&self, name: &str, word: &str) -> bool {
        self.text(name)
            .split(',')
            .any(|it| it.trim().eq_ignore_ascii_case(word))
    }
}

impl SizeRecord {
    /// The size of a region; the reason where we do not use it.
    pub fn read(sku: &Sku, region: &str) -> Result<Self, String> {
        let name = sku.name.as_str();
        if REFUSED.contains(&name) {
            return Err("AKS does not run nodes on it".to_owned());
        }
        let parts = SizeName::parse(name).ok_or("its name cannot be read")?;
        let is_here = |location: &String| location.eq_ignore_ascii_case(region);
        let is_of = |kind: &str, it: &&crate::arm::wire::Restriction| it.kind.eq_ignore_ascii_case(kind);
        if sku
            .restrictions
            .iter()
            .filter(|it| is_of("Location", it))
            .any(|it| it.values.iter().any(is_here))
        {
            return Err("it is not sold to this subscription here".to_owned());
        }
        let has = Capabilities::of(&sku.capabilities);
        let vcpu = has.number("vCPUs").ok_or("it has no vCPUs")?;
        let memory_gib: f64 = has.text("MemoryGB").parse().map_err(|_| "it has no memory")?;
        if vcpu < 2 || memory_gib < 3.5 {
            return Err("AKS needs 2 vCPUs and 3.5 GiB".to_owned());
        }
        if parts.is_constrained || parts.is_confidential {
            return Err("constrained and confidential sizes are not supported".to_owned());
        }
        let (gpu, gpu_count) = (gpu_size(name), has.number("GPUs").unwrap_or(0));
        if gpu_count > 0 && gpu.is_none() {
            return Err("AKS does not support its GPU".to_owned());
        }
        let sold = sku
            .location_info
            .iter()
            .filter(|it| it.location.eq_ignore_ascii_case(region));
        let restricted: BTreeSet<&String> = sku
            .restrictions
            .iter()
            .filter(|it| is_of("Zone", it))
            .flat_map(|it| &it.restriction_info.zones)
            .collect();
        let (mut zones, mut ultra_zones) = (BTreeSet::new(), BTreeSet::new());
        for info in sold {
            zones.extend(info.zones.iter().filter(|zone| !restricted.contains(zone)).cloned());
            let has_ultra = |details: &&crate::arm::wire::ZoneDetails| {
                Capabilities::of(&details.capabilities).is("UltraSSDAvailable")
            };
            let details = info.zone_details.iter().filter(has_ultra);
            ultra_zones.extend(details.flat_map(|it| it.name.iter().cloned()));
        }
        let generations = [("V1", "1"), ("V2", "2")];
        let generations = generations
            .into_iter()
            .filter(|(word, _)| has.has("HyperVGenerations", word));
        let hyperv_generations: Vec<&'static str> = generations.map(|(_, number)| number).collect();
        Ok(Self {
            name: name.to_owned(),
            quota_family: sku.family.clone(),
            vcpu,
            memory_gib,
            zones,
            ultra_zones,
            has_regional_ultra_ssd: has.is("UltraSSDAvailable"),
            is_spot_capable: has.is("LowPriorityCapable"),
            has_accelerated_networking: has.is("AcceleratedNetworkingEnabled"),
            ephemeral_disk: ephemeral_disk(&has),
            gpu_count: if gpu.is_some() { gpu_count } else { 0 },
            max_data_disks: has.number("MaxDataDiskCount").and_then(|it| u32::try_from(it).ok()),
            arch: if has.text("CpuArchitectureType").eq_ignore_ascii_case("arm64") {
                "arm64"
            } else {
                "amd64"
            },
            gpu,
            has_premium_storage: has.is("PremiumIO"),
            has_encryption_at_host: has.is("EncryptionAtHostSupported"),
            has_trusted_launch: hyperv_generations.contains(&"2") && !has.is("TrustedLaunchDisabled"),
            hyperv_generations,
            name_parts: parts,
        })
    }

    /// As the catalogue's formulas take it.
    pub fn machine(&self) -> Machine<'_> {
        Machine {
            name: &self.name,
            family: &self.name_parts.family,
            series: &self.name_parts.series,
            version: &self.name_parts.version,
            vcpu: self.vcpu,
            memory_gib: self.memory_gib,
            arch: self.arch,
            gpu_count: self.gpu_count,
            gpu_name: match self.gpu {
                Some(_) => self.name_parts.accelerator.as_deref().unwrap_or_default(),
                None => "",
            },
            gpu_manufacturer: self.gpu_manufacturer(),
            has_accelerated_networking: self.has_accelerated_networking,
            has_premium_storage: self.has_premium_storage,
            ephemeral_os_gb: self.ephemeral_disk.map(|(size, _)| size),
            hyperv_generations: &self.hyperv_generations,
        }
    }

    /// `nvidia`, `amd` or empty.
    pub fn gpu_manufacturer(&self) -> &'static str {
        self.gpu.map_or("", |gpu| gpu.manufacturer)
    }

    /// Whether ultra disks can be attached in a zone, or with none in particular.
    pub fn has_ultra_ssd(&self, zone: Option<&str>) -> bool {
        match zone {
            Some(zone) => self.ultra_zones.contains(zone),
            None => self.has_regional_ultra_ssd,
        }
    }

    /// Whether nodes of a class can run on it.
    pub fn is_for(&self, class: &AKSNodeClass) -> bool {
        let class = Class(class);
        let os = self
            .gpu
            .is_none_or(|gpu| !class.is_azure_linux() || gpu.has_azure_linux);
        let driver = class.gpu_mode() != GpuMode::Driver || self.gpu.is_none_or(|gpu| gpu.manufacturer == "nvidia");
        os && driver
            && (!class.has_encryption_at_host() || self.has_encryption_at_host)
            && (!class.is_trusted_launch() || self.has_trusted_launch)
            && (!class.is_local_dns_enabled() || (self.vcpu >= 4 && self.memory_gib * 1024.0 >= 244.0))
            && (!class.is_streaming_asked() || self.arch != "arm64")
    }
}

/// The largest system disk that fits on the machine itself, in GB, and where: NVMe before cache before the temporary
/// disk. What is called MB there is MiB.
fn ephemeral_disk(has: &Capabilities<'_>) -> Option<(i64, &'static str)> {
    if !has.is("EphemeralOSDiskSupported") {
        return None;
    }
    let gigabytes = |bytes: i64| bytes / 1_000_000_000;
    let nvme = has.number("NvmeDiskSizeInMiB").filter(|size| *size > 0);
    let nvme = nvme.filter(|_| has.has("SupportedEphemeralOSDiskPlacements", "NvmeDisk"));
    let cache = has.number("CachedDiskBytes").filter(|size| *size > 0);
    let temporary = has.number("MaxResourceVolumeMB").filter(|size| *size > 0);
    let found = nvme
        .map(|mib| (gigabytes(mib << 20), "NvmeDisk"))
        .or_else(|| cache.map(|bytes| (gigabytes(bytes), "CacheDisk")))
        .or_else(|| temporary.map(|mib| (gigabytes(mib << 20), "ResourceDisk")));
    found.filter(|(size, _)| *size > 0)
}

#[cfg(test)]
mod tests;
