//! Amazon EC2, as Karpenter's provider v1.14.1 describes it to the scheduler.
//!
//! The node class is not part of the table, so its defaults hold until somebody says which class a NodePool has
//! ([`Setup::of`]): AL2023, a root volume of 20 GiB, no kubelet settings, no reserved interfaces, 7.5 % of memory lost to
//! the hypervisor. Whoever has asked EC2 says so in a [`Machine`], a [`Setup`] and a [`Sale`], and gets the same formulas.

mod class;
mod labels;
mod resources;
mod setup;

use std::{collections::BTreeMap, sync::Arc};

use api::labels::{CAPACITY_TYPE, CAPACITY_TYPE_ON_DEMAND, CAPACITY_TYPE_SPOT, ZONE, aws::WELL_KNOWN};
use model::{
    price::Price,
    snapshot::{Catalog, CatalogOffering, CatalogType, DynamicResources},
};

use crate::{
    Damaged, Loaded,
    spec::{offering, one_of},
    table::{Table, number},
};

pub use class::{WINDOWS_2019, WINDOWS_2022, WINDOWS_2025};
pub use labels::{Reservation, Sale, of as labels};
pub use resources::{capacity, overhead};
pub use setup::{Os, Setup, Threshold};

/// Regions with prices of their own, in the order of the table's columns.
pub const PRICED_REGIONS: [&str; 6] = [
    "us-east-1",
    "us-west-2",
    "eu-west-1",
    "us-gov-east-1",
    "us-gov-west-1",
    "cn-north-1",
];

/// What a spot instance is assumed to cost of its on-demand price, in percent: spot prices change by the hour and are
/// in no table. Karpenter itself starts with the on-demand price, which would make spot look worthless.
pub const SPOT_PERCENT: u64 = 40;

/// Letters of the zones a region is assumed to have.
const ZONE_LETTERS: [&str; 3] = ["a", "b", "c"];

/// Columns of the table, the prices last.
pub const COLUMNS: [&str; 26] = [
    "name",
    "arch",
    "hypervisor",
    "cpu_manufacturer",
    "cpu_clock_mhz",
    "vcpu",
    "memory_mib",
    "pods",
    "encryption_in_transit",
    "ebs_mbps",
    "network_mbps",
    "nvme_gb",
    "efa",
    "pod_eni",
    "gpu_name",
    "gpu_manufacturer",
    "gpu_count",
    "gpu_memory_mib",
    "accelerator",
    "resources",
    "usd_us_east_1",
    "usd_us_west_2",
    "usd_eu_west_1",
    "usd_us_gov_east_1",
    "usd_us_gov_west_1",
    "cny_cn_north_1",
];

/// What is known about a type. Of texts, empty is unknown or absent, except for the hypervisor.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Machine<'a> {
    /// Such as `m5.large`.
    pub name: &'a str,
    /// `amd64` or `arm64`.
    pub arch: &'a str,
    /// `nitro` or `xen`; empty on bare metal.
    pub hypervisor: &'a str,
    /// In lower case.
    pub cpu_manufacturer: &'a str,
    /// Sustained.
    pub cpu_clock_mhz: &'a str,
    /// Virtual CPUs.
    pub vcpu: i64,
    /// Memory as EC2 states it.
    pub memory_mib: i64,
    /// Pods that its network interfaces have addresses for.
    pub pods: i64,
    /// Interfaces of the default network card and IPv4 addresses on each, where they are known.
    pub network: Option<(i64, i64)>,
    /// Whether traffic between instances is encrypted.
    pub encryption_in_transit: bool,
    /// Bandwidth to block storage.
    pub ebs_mbps: &'a str,
    /// Baseline bandwidth of the network.
    pub network_mbps: &'a str,
    /// Decimal gigabytes of NVMe disks.
    pub nvme_gb: &'a str,
    /// Decimal gigabytes of local disks of any kind.
    pub local_gb: Option<i64>,
    /// Most EFA interfaces.
    pub efa: i64,
    /// Branch interfaces for pods.
    pub pod_eni: i64,
    /// Name, manufacturer, count and MiB of each.
    pub gpu: [&'a str; 4],
    /// Name, manufacturer and count.
    pub accelerator: [&'a str; 3],
    /// Extended resources with their numbers.
    pub extended: Vec<(&'a str, i64)>,
    /// Dollars an hour, in China yuan; none where the region does not sell it.
    pub price: Option<Price>,
}

/// What only the table knows about a type: EC2 does not say it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownType {
    /// Baseline bandwidth of the network; empty where it is not stated in numbers.
    pub network_mbps: String,
    /// Branch interfaces for pods.
    pub pod_eni: i64,
    /// What an hour costs on demand in the region that was asked for, or else in the first of [`PRICED_REGIONS`]: dollars,
    /// in China yuan.
    pub price: Option<Price>,
}

/// The table's own facts by type, and the day its prices are of.
pub fn known(region: &str) -> Result<(BTreeMap<String, KnownType>, String), Damaged> {
    let table = Table::unpack("aws", include_bytes!("../data/aws.tsv.gz"))?;
    let column = PRICED_REGIONS.iter().position(|priced| *priced == region);
    let machines = table.rows(&COLUMNS, |fields| machine(fields, column.unwrap_or_default()))?;
    let entry = |machine: &Machine<'_>| {
        let known = KnownType {
            network_mbps: machine.network_mbps.to_owned(),
            pod_eni: machine.pod_eni,
            price: machine.price,
        };
        (machine.name.to_owned(), known)
    };
    Ok((machines.iter().map(entry).collect(), table.prices_of().to_owned()))
}

pub(crate) fn load(region: &str, more_zones: &[String]) -> Result<Loaded, Damaged> {
    let table = Table::unpack("aws", include_bytes!("../data/aws.tsv.gz"))?;
    let column = PRICED_REGIONS.iter().position(|priced| *priced == region);
    let zones = zones(region, more_zones);
    let machines = table.rows(&COLUMNS, |fields| machine(fields, column.unwrap_or_default()))?;
    let setup = Setup::default();
    let types = machines
        .iter()
        .filter_map(|machine| describe(machine, &setup, region, (&zones, &zones)));
    Ok(Loaded {
        catalog: Catalog {
            instance_types: types.collect(),
            well_known_labels: WELL_KNOWN.iter().map(|label| (*label).into()).collect(),
            ..Catalog::default()
        },
        source: crate::Source::Aws,
        region: region.to_owned(),
        prices_of: table.prices_of().to_owned(),
        assumed: assumptions(region, column.is_none(), &zones),
        zones,
    })
}

/// The types as a node class makes them that has subnets in these zones. Machines that are elsewhere keep their prices.
pub(crate) fn of_class(loaded: &Loaded, setup: &Setup, zones: &[String]) -> Result<Vec<Arc<CatalogType>>, Damaged> {
    let region = loaded.region.as_str();
    let column = PRICED_REGIONS.iter().position(|priced| *priced == region);
    let table = Table::unpack("aws", include_bytes!("../data/aws.tsv.gz"))?;
    let machines = table.rows(&COLUMNS, |fields| machine(fields, column.unwrap_or_default()))?;
    let types = machines
        .iter()
        .filter_map(|machine| describe(machine, setup, region, (&loaded.zones, zones)));
    Ok(types.collect())
}

/// What is assumed of a node class that nobody knows.
pub(crate) const CLASS_DEFAULTS: &str =
    "EC2NodeClass defaults: AL2023, 20Gi root volume, pods limited by network interfaces";

fn assumptions(region: &str, is_unpriced: bool, zones: &[String]) -> Vec<String> {
    let mut assumed = vec![
        format!("spot costs {SPOT_PERCENT}% of on-demand (no spot prices in the table)"),
        format!("every type is sold in {}", zones.join(", ")),
        CLASS_DEFAULTS.to_owned(),
    ];
    if region.starts_with("cn-") && !is_unpriced {
        assumed.insert(0, "prices are in yuan, as AWS charges them in China".to_owned());
    }
    if is_unpriced {
        assumed.insert(
            0,
            format!("{region} costs what us-east-1 costs (no prices of its own in the table)"),
        );
    }
    assumed
}

fn zones(region: &str, more: &[String]) -> Vec<String> {
    let more = more.iter().filter(|zone| zone.starts_with(region)).cloned();
    let mut zones: Vec<_> = ZONE_LETTERS
        .iter()
        .map(|letter| format!("{region}{letter}"))
        .chain(more)
        .collect();
    zones.sort();
    zones.dedup();
    zones
}

fn machine<'a>(fields: &[&'a str; COLUMNS.len()], price_column: usize) -> Result<Machine<'a>, String> {
    let [
        name,
        arch,
        hypervisor,
        cpu_manufacturer,
        cpu_clock_mhz,
        vcpu,
        memory,
        pods,
        encryption,
        ebs,
        network,
        nvme,
        efa,
        pod_eni,
        gpu @ ..,
        accelerator,
        extended,
        east,
        west,
        ireland,
        gov_east,
        gov_west,
        beijing,
    ] = *fields;
    let prices = [east, west, ireland, gov_east, gov_west, beijing];
    let price = prices.get(price_column).copied().unwrap_or_default();
    let price = (!price.is_empty()).then(|| price.parse()).transpose();
    Ok(Machine {
        name,
        arch,
        hypervisor,
        cpu_manufacturer,
        cpu_clock_mhz,
        vcpu: number("vcpu", vcpu)?,
        memory_mib: number("memory_mib", memory)?,
        pods: number("pods", pods)?,
        network: None,
        encryption_in_transit: encryption == "1",
        ebs_mbps: ebs,
        network_mbps: network,
        nvme_gb: nvme,
        local_gb: (!nvme.is_empty()).then(|| number("nvme_gb", nvme)).transpose()?,
        efa: number("efa", efa)?,
        pod_eni: number("pod_eni", pod_eni)?,
        gpu,
        accelerator: parts(accelerator)?,
        extended: counts(extended)?,
        price: price.map_err(|error: model::price::PriceError| error.to_string())?,
    })
}

/// `name,manufacturer,count`, or nothing.
fn parts(field: &str) -> Result<[&str; 3], String> {
    if field.is_empty() {
        return Ok([""; 3]);
    }
    let parts: Vec<_> = field.split(',').collect();
    parts
        .try_into()
        .map_err(|_| format!("accelerator: `{field}` is not name,manufacturer,count"))
}

/// `nvidia.com/gpu=1,…`
fn counts(field: &str) -> Result<Vec<(&str, i64)>, String> {
    let pairs = field.split(',').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, count) = pair
                .split_once('=')
                .ok_or_else(|| format!("resources: `{pair}` has no ="))?;
            Ok((name, number("resources", count)?))
        })
        .collect()
}

/// The type as Karpenter sees it, with the zones that sell it and those of them that are open to its class; none when the
/// region has no price for it.
fn describe(
    machine: &Machine<'_>,
    setup: &Setup,
    region: &str,
    (zones, open): (&[String], &[String]),
) -> Option<Arc<CatalogType>> {
    let on_demand = machine.price?;
    let zone_names: Vec<&str> = open.iter().map(String::as_str).collect();
    let sale = Sale {
        region,
        zones: &zone_names,
        zone_ids: &[],
        capacity_types: &[CAPACITY_TYPE_ON_DEMAND, CAPACITY_TYPE_SPOT],
        reservations: &[],
    };
    Some(Arc::new(CatalogType {
        name: machine.name.into(),
        requirements: labels::of(machine, setup, &sale),
        capacity: resources::capacity(machine, setup),
        overhead: resources::overhead(machine, setup),
        offerings: offerings(machine, on_demand, zones, open),
        volume_attachment_limits: model::object::List::default(),
        dynamic_resources: DynamicResources::default(),
    }))
}

fn offerings(machine: &Machine<'_>, on_demand: Price, zones: &[String], open: &[String]) -> Vec<CatalogOffering> {
    // AL2023 does not run on the first Graviton: the provider lists the family and never launches it.
    let available = !machine.name.starts_with("a1.");
    let spot = Price::from_picos(on_demand.picos() / 100 * SPOT_PERCENT);
    let kinds = [(CAPACITY_TYPE_ON_DEMAND, on_demand), (CAPACITY_TYPE_SPOT, spot)];
    let offer = |zone: &String, (kind, price): (&str, Price)| {
        offering(
            vec![one_of(CAPACITY_TYPE, &[kind]), one_of(ZONE, &[zone])],
            price,
            available && open.contains(zone),
        )
    };
    zones
        .iter()
        .flat_map(|zone| kinds.map(|kind| offer(zone, kind)))
        .collect()
}

#[cfg(test)]
mod tests;
