//! The machines of Karpenter's kwok provider: 144 generic types in four zones, spot and on-demand, made by formula.

use std::sync::Arc;

use api::labels::{
    ARCH, ARCH_AMD64, ARCH_ARM64, CAPACITY_TYPE, CAPACITY_TYPE_ON_DEMAND, CAPACITY_TYPE_SPOT, INSTANCE_TYPE, OS, ZONE,
    kwok as labels,
};
use model::{
    price::Price,
    quantity::Quantity,
    requirement::RequirementSpec,
    resources::ResourceList,
    snapshot::{Catalog, CatalogOffering, CatalogOverhead, CatalogType, DynamicResources},
};

use crate::{
    Loaded,
    spec::{mebibytes, offering, one_of, resources},
};

/// The zones it sells in.
pub const ZONES: [&str; 4] = ["test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d"];

/// A machine type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// Its name, such as `c-4x-amd64-linux`.
    pub name: String,
    /// `c`, `s` or `m`: 2, 4 or 8 GiB per core.
    pub family: &'static str,
    /// Cores.
    pub cores: u64,
    /// Memory in GiB.
    pub memory_gib: u64,
    /// Processor architecture.
    pub arch: &'static str,
    /// Operating system.
    pub os: &'static str,
}

impl Machine {
    /// How many pods it takes.
    pub fn pods(&self) -> u64 {
        (16 * self.cores).min(1024)
    }

    /// On-demand price in 10⁻¹³ dollars an hour.
    pub fn price(&self) -> u128 {
        price(self.cores, self.memory_gib)
    }
}

/// 2.5 cents per core and a tenth of a cent per 10⁹ bytes, in 10⁻¹³ dollars an hour: a decimal more than [`Price`]
/// keeps, because upstream's file has it.
pub fn price(cores: u64, memory_gib: u64) -> u128 {
    u128::from(cores) * 250_000_000_000 + (u128::from(memory_gib) << 30) * 10
}

/// The part of the on-demand price that spot costs.
pub fn spot_of(on_demand: u128) -> u128 {
    on_demand * 7 / 10
}

/// All 144, in upstream's order.
pub fn machines() -> Vec<Machine> {
    let mut machines = Vec::new();
    for cores in [1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256] {
        for (family, gib_per_core) in [("c", 2), ("s", 4), ("m", 8)] {
            for os in ["linux", "windows"] {
                for arch in [ARCH_AMD64, ARCH_ARM64] {
                    machines.push(Machine {
                        name: format!("{family}-{cores}x-{arch}-{os}"),
                        family,
                        cores,
                        memory_gib: cores * gib_per_core,
                        arch,
                        os,
                    });
                }
            }
        }
    }
    machines
}

/// All 144 with their offerings, in upstream's order.
pub fn types() -> Vec<Arc<CatalogType>> {
    machines().iter().map(|machine| Arc::new(describe(machine))).collect()
}

/// What the kubelet of a simulated node keeps for itself.
pub fn overhead() -> CatalogOverhead {
    CatalogOverhead {
        kube_reserved: resources([("cpu", Quantity::from_millis(100)), ("memory", mebibytes(10))]),
        system_reserved: ResourceList::EMPTY,
        eviction_threshold: ResourceList::EMPTY,
    }
}

pub(crate) fn load() -> Loaded {
    Loaded {
        source: crate::Source::Kwok,
        zones: Vec::new(),
        catalog: Catalog {
            instance_types: types(),
            well_known_labels: labels::WELL_KNOWN.iter().map(|label| (*label).into()).collect(),
            ..Catalog::default()
        },
        region: String::new(),
        prices_of: String::new(),
        assumed: Vec::new(),
    }
}

fn describe(machine: &Machine) -> CatalogType {
    CatalogType {
        name: machine.name.as_str().into(),
        requirements: requirements(machine),
        capacity: resources([
            ("cpu", units(machine.cores)),
            ("memory", memory(machine)),
            ("ephemeral-storage", mebibytes(20 << 10)),
            ("pods", units(machine.pods())),
        ]),
        overhead: overhead(),
        offerings: offerings(machine),
        volume_attachment_limits: model::object::List::default(),
        dynamic_resources: DynamicResources::default(),
    }
}

fn requirements(machine: &Machine) -> Vec<RequirementSpec> {
    let cores = machine.cores.to_string();
    vec![
        one_of(INSTANCE_TYPE, &[&machine.name]),
        one_of(ARCH, &[machine.arch]),
        one_of(OS, &[machine.os]),
        one_of(ZONE, &ZONES),
        one_of(CAPACITY_TYPE, &[CAPACITY_TYPE_SPOT, CAPACITY_TYPE_ON_DEMAND]),
        one_of(labels::INSTANCE_SIZE, &[&cores]),
        one_of(labels::INSTANCE_FAMILY, &[machine.family]),
        one_of(labels::INSTANCE_CPU, &[&cores]),
        one_of(labels::INSTANCE_MEMORY, &[&memory(machine).to_string()]),
    ]
}

fn offerings(machine: &Machine) -> Vec<CatalogOffering> {
    let kinds = [
        (CAPACITY_TYPE_SPOT, spot_of(machine.price())),
        (CAPACITY_TYPE_ON_DEMAND, machine.price()),
    ];
    let offer = |zone: &str, (kind, price): (&str, u128)| {
        offering(
            vec![one_of(CAPACITY_TYPE, &[kind]), one_of(ZONE, &[zone])],
            rounded(price),
            true,
        )
    };
    ZONES
        .iter()
        .flat_map(|zone| kinds.map(|kind| offer(zone, kind)))
        .collect()
}

/// A price in 10⁻¹³ dollars, rounded to the twelve decimals that are kept.
fn rounded(price: u128) -> Price {
    Price::from_picos(u64::try_from((price + 5) / 10).unwrap_or(u64::MAX))
}

fn memory(machine: &Machine) -> Quantity {
    mebibytes(i64::try_from(machine.memory_gib << 10).unwrap_or(i64::MAX))
}

fn units(number: u64) -> Quantity {
    Quantity::from_units(i64::try_from(number).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_catalogue_has_144_types_with_eight_offerings() {
        let types = load().catalog.instance_types;
        assert_eq!(types.len(), 144);
        assert!(types.iter().all(|found| found.offerings.len() == 8));
        let (first, last) = (&types[0], &types[143]);
        assert_eq!(
            (first.name.as_str(), last.name.as_str()),
            ("c-1x-amd64-linux", "m-256x-arm64-windows")
        );
        // Upstream's 0.0190032385536 and 0.027147483648, to twelve decimals.
        let prices = [&first.offerings[0], &first.offerings[1]].map(|offering| offering.price.to_decimal());
        assert_eq!(prices, ["0.019003238554", "0.027147483648"]);
        assert_eq!(last.capacity.amount("memory").to_string(), "2Ti");
    }
}
