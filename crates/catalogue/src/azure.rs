//! Azure virtual machines, as Karpenter's provider for AKS describes them to the scheduler.
//!
//! The node class is not part of the table, so its defaults hold until somebody says which class a NodePool has
//! ([`Setup::of`]): Ubuntu, a system disk of 128 GB, 250 pods (overlay network), 7.5 % of memory lost to the hypervisor.
//! Sizes the provider refuses are not in the table.

mod labels;
mod resources;

pub use labels::labels;
pub use resources::{EVICTION_MEMORY_MIB, capacity, overhead, reserved_cpu, reserved_memory};

use std::{collections::BTreeMap, sync::Arc};

use api::{
    azure::{AKSNodeClass, FipsMode, ImageFamily},
    labels::{
        CAPACITY_TYPE, CAPACITY_TYPE_ON_DEMAND, CAPACITY_TYPE_SPOT, ZONE,
        azure::{AKS_PRIORITY, AKS_SCALE_SET_PRIORITY, PLACEMENT_SCOPE, REGIONAL_ZONE, WELL_KNOWN},
    },
};
use model::{
    price::Price,
    snapshot::{Catalog, CatalogOffering, CatalogType, DynamicResources},
};

use crate::{
    Damaged, Loaded,
    spec::{offering, one_of},
    table::{Table, number},
};

/// Regions with on-demand prices of their own, in the order of the table's columns.
pub const PRICED_REGIONS: [&str; 3] = ["eastus", "westus2", "westeurope"];
/// Regions with zones of their own in the table, in the order of its columns.
const ZONED_REGIONS: [&str; 2] = ["westus2", "southcentralus"];
/// Where nothing says otherwise, a size is assumed to be sold in these.
const ALL_ZONES: &str = "123";

/// Columns of the table. Zones are written as digits, `-` is a region that sells the size without zones.
pub const COLUMNS: [&str; 23] = [
    "name",
    "family",
    "series",
    "version",
    "vcpu",
    "memory_gib",
    "arch",
    "gpu_count",
    "gpu_name",
    "gpu_manufacturer",
    "accelerated_networking",
    "premium_storage",
    "ultra_ssd",
    "ephemeral_os_gb",
    "zones_westus2",
    "zones_southcentralus",
    "max_data_disks",
    "usd_eastus",
    "usd_westus2",
    "usd_westeurope",
    "spot_eastus",
    "spot_westus2",
    "spot_westeurope",
];

/// A size, as far as nodes of it differ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Machine<'a> {
    /// Such as `Standard_D4s_v5`.
    pub name: &'a str,
    /// Such as `D`.
    pub family: &'a str,
    /// Such as `Ds_v5`.
    pub series: &'a str,
    /// Such as `5`.
    pub version: &'a str,
    /// Virtual CPUs.
    pub vcpu: i64,
    /// Memory in GiB, which Azure gives in fractions.
    pub memory_gib: f64,
    /// `amd64` or `arm64`.
    pub arch: &'a str,
    /// GPUs.
    pub gpu_count: i64,
    /// Their name; empty without any.
    pub gpu_name: &'a str,
    /// `nvidia`, `amd` or empty.
    pub gpu_manufacturer: &'a str,
    /// Accelerated networking.
    pub has_accelerated_networking: bool,
    /// Premium storage.
    pub has_premium_storage: bool,
    /// The largest system disk that fits on the machine itself, in GB.
    pub ephemeral_os_gb: Option<i64>,
    /// Generations of images it boots, `1` and `2`; empty where that is not known.
    pub hyperv_generations: &'a [&'a str],
}

/// How nodes are set up, as far as their shape follows from it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Setup<'a> {
    /// Size of the system disk in GB.
    pub os_disk_gb: i64,
    /// The most pods.
    pub max_pods: i64,
    /// The fraction of memory that the hypervisor keeps.
    pub memory_overhead: f64,
    /// `Ubuntu` or `AzureLinux`.
    pub os_sku: &'a str,
    /// Cryptography is FIPS validated.
    pub is_fips: bool,
    /// The cluster's resource group as a label has it, where it is known.
    pub cluster: Option<&'a str>,
}

impl Setup<'static> {
    /// What a node class makes of every machine, in an overlay network.
    pub fn of(class: &AKSNodeClass) -> Self {
        let (spec, unset) = (&class.spec, Self::default());
        let is_azure_linux = spec.image_family == Some(ImageFamily::AzureLinux);
        Self {
            os_disk_gb: spec.os_disk_size_gb.map_or(unset.os_disk_gb, Into::into),
            max_pods: spec.max_pods.map_or(unset.max_pods, Into::into),
            os_sku: if is_azure_linux { "AzureLinux" } else { unset.os_sku },
            is_fips: spec.fips_mode == Some(FipsMode::Fips),
            ..unset
        }
    }
}

impl Default for Setup<'_> {
    /// The node class's defaults, in an overlay network.
    fn default() -> Self {
        Self {
            os_disk_gb: 128,
            max_pods: 250,
            memory_overhead: 0.075,
            os_sku: "Ubuntu",
            is_fips: false,
            cluster: None,
        }
    }
}

/// Where and how a size is sold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sale<'a> {
    /// The region.
    pub region: &'a str,
    /// Its zones that sell the size, and `0` for none in particular.
    pub zones: &'a [&'a str],
    /// `on-demand`, `spot`.
    pub capacity_types: &'a [&'a str],
    /// The same in AKS's words: `regular`, `spot`.
    pub priorities: &'a [&'a str],
    /// Ultra disks can be attached somewhere.
    pub has_ultra_ssd: bool,
}

/// What the table says about a size.
struct Size<'a> {
    name: &'a str,
    family: &'a str,
    series: &'a str,
    version: &'a str,
    vcpu: i64,
    memory_gib: i64,
    arch: &'a str,
    gpu_count: i64,
    gpu_name: &'a str,
    gpu_manufacturer: &'a str,
    has_accelerated_networking: bool,
    has_premium_storage: bool,
    has_ultra_ssd: bool,
    ephemeral_os_gb: &'a str,
    zones: Vec<String>,
    max_data_disks: &'a str,
    on_demand: Option<Price>,
    spot: Option<Price>,
}

pub(crate) fn load(region: &str) -> Result<Loaded, Damaged> {
    let table = Table::unpack("azure", include_bytes!("../data/azure.tsv.gz"))?;
    let sizes = table.rows(&COLUMNS, |fields| size(fields, region))?;
    let types = sizes
        .iter()
        .filter_map(|size| describe(size, &Setup::default(), region));
    Ok(Loaded {
        catalog: Catalog {
            instance_types: types.collect(),
            well_known_labels: WELL_KNOWN.iter().map(|label| (*label).into()).collect(),
            ..Catalog::default()
        },
        source: crate::Source::Azure,
        zones: Vec::new(),
        region: region.to_owned(),
        prices_of: table.prices_of().to_owned(),
        assumed: assumptions(region),
    })
}

/// The sizes as a node class makes them.
pub(crate) fn of_class(loaded: &Loaded, setup: &Setup<'_>) -> Result<Vec<Arc<CatalogType>>, Damaged> {
    let table = Table::unpack("azure", include_bytes!("../data/azure.tsv.gz"))?;
    let sizes = table.rows(&COLUMNS, |fields| size(fields, &loaded.region))?;
    let types = sizes.iter().filter_map(|size| describe(size, setup, &loaded.region));
    Ok(types.collect())
}

/// What is assumed of a node class that nobody knows.
pub(crate) const CLASS_DEFAULTS: &str = "AKSNodeClass defaults: Ubuntu, 128 GB system disk, 250 pods";

fn assumptions(region: &str) -> Vec<String> {
    let mut assumed = vec![
        CLASS_DEFAULTS.to_owned(),
        "sizes whose spot price is not known are sold on demand only".to_owned(),
    ];
    if !ZONED_REGIONS.contains(&region) {
        assumed.insert(
            0,
            format!("sizes are sold in zones 1, 2 and 3 of {region} unless other regions have fewer"),
        );
    }
    if !PRICED_REGIONS.contains(&region) {
        assumed.insert(
            0,
            format!("{region} costs what eastus costs (no prices of its own in the table)"),
        );
    } else if region == "westeurope" {
        assumed.insert(
            0,
            "spot is discounted in westeurope as in eastus (no spot prices of its own)".to_owned(),
        );
    }
    assumed
}

fn size<'a>(fields: &[&'a str; COLUMNS.len()], region: &str) -> Result<Size<'a>, String> {
    let [
        name,
        family,
        series,
        version,
        vcpu,
        memory,
        arch,
        gpu_count,
        gpu_name,
        gpu_manufacturer,
        networking,
        premium,
        ultra,
        ephemeral_os_gb,
        zones_west,
        zones_south,
        max_data_disks,
        prices @ ..,
    ] = *fields;
    let column = PRICED_REGIONS
        .iter()
        .position(|priced| *priced == region)
        .unwrap_or_default();
    let price = |at: usize| prices.get(at).copied().filter(|price| !price.is_empty());
    let parse = |price: Option<&str>| price.map(str::parse).transpose();
    let on_demand = parse(price(column)).map_err(|error: model::price::PriceError| error.to_string())?;
    let spot = parse(price(PRICED_REGIONS.len() + column)).map_err(|error| error.to_string())?;
    Ok(Size {
        name,
        family,
        series,
        version,
        vcpu: number("vcpu", vcpu)?,
        memory_gib: number("memory_gib", memory)?,
        arch,
        gpu_count: number("gpu_count", gpu_count)?,
        gpu_name,
        gpu_manufacturer,
        has_accelerated_networking: networking == "1",
        has_premium_storage: premium == "1",
        has_ultra_ssd: ultra == "1",
        ephemeral_os_gb,
        zones: zones(region, [zones_west, zones_south]),
        max_data_disks,
        on_demand,
        spot,
    })
}

/// The zones a size is sold in: those the table has for the region; else none if no region has any; else all three.
fn zones(region: &str, known: [&str; ZONED_REGIONS.len()]) -> Vec<String> {
    let here = ZONED_REGIONS.iter().position(|zoned| *zoned == region);
    let here = here
        .and_then(|at| known.get(at))
        .copied()
        .filter(|zones| !zones.is_empty());
    let is_known_without = known.contains(&"-") && known.iter().all(|zones| matches!(*zones, "-" | ""));
    let zones = here.unwrap_or(if is_known_without { "-" } else { ALL_ZONES });
    let digits = zones.chars().filter(char::is_ascii_digit);
    digits.map(|zone| format!("{region}-{zone}")).collect()
}

/// The size as Karpenter sees it; none when the region has no price for it.
fn describe(size: &Size<'_>, setup: &Setup<'_>, region: &str) -> Option<Arc<CatalogType>> {
    let on_demand = size.on_demand?;
    let disks = size.max_data_disks.parse().ok();
    let limit = disks.map(|disks: u32| ("disk.csi.azure.com".into(), disks));
    let machine = size.machine();
    let zones: Vec<&str> = size.zones.iter().map(String::as_str).chain([REGIONAL_ZONE]).collect();
    let (capacity_types, priorities): (&[&str], &[&str]) = match size.spot {
        Some(_) => (&[CAPACITY_TYPE_ON_DEMAND, CAPACITY_TYPE_SPOT], &["regular", "spot"]),
        None => (&[CAPACITY_TYPE_ON_DEMAND], &["regular"]),
    };
    let sale = Sale {
        region,
        zones: &zones,
        capacity_types,
        priorities,
        has_ultra_ssd: size.has_ultra_ssd,
    };
    Some(Arc::new(CatalogType {
        name: size.name.into(),
        requirements: labels(&machine, setup, &sale),
        capacity: capacity(&machine, setup),
        overhead: overhead(&machine),
        offerings: offerings(size, on_demand),
        volume_attachment_limits: limit.into_iter().collect(),
        dynamic_resources: DynamicResources::default(),
    }))
}

impl Size<'_> {
    #[expect(clippy::cast_precision_loss, reason = "the table has whole GiB, and few of them")]
    fn machine(&self) -> Machine<'_> {
        Machine {
            name: self.name,
            family: self.family,
            series: self.series,
            version: self.version,
            vcpu: self.vcpu,
            memory_gib: self.memory_gib as f64,
            arch: self.arch,
            gpu_count: self.gpu_count,
            gpu_name: self.gpu_name,
            gpu_manufacturer: self.gpu_manufacturer,
            has_accelerated_networking: self.has_accelerated_networking,
            has_premium_storage: self.has_premium_storage,
            ephemeral_os_gb: self.ephemeral_os_gb.parse().ok(),
            hyperv_generations: &[],
        }
    }
}

/// On-demand and spot prices of every size of the table in a region, and the day they are of. Regions without prices
/// of their own have eastus'.
pub fn prices(region: &str) -> Result<Prices, Damaged> {
    let table = Table::unpack("azure", include_bytes!("../data/azure.tsv.gz"))?;
    let sizes = table.rows(&COLUMNS, |fields| size(fields, region))?;
    let priced = |price: fn(&Size<'_>) -> Option<Price>| {
        let all = sizes
            .iter()
            .filter_map(|size| Some((size.name.to_owned(), price(size)?)));
        all.collect()
    };
    Ok(Prices {
        on_demand: priced(|size| size.on_demand),
        spot: priced(|size| size.spot),
        day: table.prices_of().to_owned(),
    })
}

/// Prices by size.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prices {
    /// On demand.
    pub on_demand: BTreeMap<String, Price>,
    /// Spot.
    pub spot: BTreeMap<String, Price>,
    /// The day they are of.
    pub day: String,
}

/// Every zone, then the region without a zone, each on demand and where there is a price as spot.
fn offerings(size: &Size<'_>, on_demand: Price) -> Vec<CatalogOffering> {
    let kinds = [
        (CAPACITY_TYPE_ON_DEMAND, "regular", Some(on_demand)),
        (CAPACITY_TYPE_SPOT, "spot", size.spot),
    ];
    let zonal = size.zones.iter().map(|zone| (zone.as_str(), "zonal"));
    let offer = |(zone, scope): (&str, &str), (kind, priority, price): (&str, &str, Option<Price>)| {
        let requirements = vec![
            one_of(CAPACITY_TYPE, &[kind]),
            one_of(ZONE, &[zone]),
            one_of(PLACEMENT_SCOPE, &[scope]),
            one_of(AKS_SCALE_SET_PRIORITY, &[priority]),
            one_of(AKS_PRIORITY, &[priority]),
        ];
        Some(offering(requirements, price?, true))
    };
    zonal
        .chain([(REGIONAL_ZONE, "regional")])
        .flat_map(|place| kinds.map(|kind| offer(place, kind)))
        .flatten()
        .collect()
}

#[cfg(test)]
mod tests;
