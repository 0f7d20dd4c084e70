//! The kwok provider's catalogue: 144 generic types in four zones, spot and on-demand.

use ::catalogue::kwok::{Machine, machines, spot_of};
use serde_json::{Map, Value};

use super::{InstanceType, Offering, overhead};
use crate::object::{ARCH, CAPACITY_TYPE, INSTANCE_TYPE, OS, ZONE, requirement};
use crate::quantity::{cpu, dollars, memory};

pub use ::catalogue::kwok::{ZONES as KWOK_ZONES, price as kwok_price};

/// Size of a kwok type: for generic types its core count.
pub const KWOK_SIZE: &str = "karpenter.kwok.sh/instance-size";
/// Family of a kwok type: c, s or m.
pub const KWOK_FAMILY: &str = "karpenter.kwok.sh/instance-family";
const KWOK_CPU: &str = "karpenter.kwok.sh/instance-cpu";
const KWOK_MEMORY: &str = "karpenter.kwok.sh/instance-memory";
/// The labels this cloud declares well-known.
pub const KWOK_LABELS: [&str; 4] = [KWOK_SIZE, KWOK_FAMILY, KWOK_CPU, KWOK_MEMORY];

/// All 144 types, in upstream's order.
pub fn kwok() -> Vec<InstanceType> {
    machines().into_iter().map(build).collect()
}

fn build(machine: Machine) -> InstanceType {
    let (cores, memory_mi) = (machine.cores, 1024 * machine.memory_gib);
    InstanceType {
        requirements: vec![
            requirement(INSTANCE_TYPE, "In", &[&machine.name]),
            requirement(ARCH, "In", &[machine.arch]),
            requirement(OS, "In", &[machine.os]),
            requirement(ZONE, "In", &KWOK_ZONES),
            requirement(CAPACITY_TYPE, "In", &["spot", "on-demand"]),
            requirement(KWOK_SIZE, "In", &[&cores.to_string()]),
            requirement(KWOK_FAMILY, "In", &[machine.family]),
            requirement(KWOK_CPU, "In", &[&cores.to_string()]),
            requirement(KWOK_MEMORY, "In", &[&memory(memory_mi)]),
        ],
        capacity: Map::from_iter([
            ("cpu".to_string(), Value::from(cpu(1000 * cores))),
            ("ephemeral-storage".to_string(), Value::from("20Gi")),
            ("memory".to_string(), Value::from(memory(memory_mi))),
            ("pods".to_string(), Value::from(machine.pods().to_string())),
        ]),
        overhead: overhead(),
        offerings: offerings(&machine),
        volume_attachment_limits: Map::new(),
        dynamic_resources: Value::Null,
        cpu: cores,
        memory_mi,
        pods: machine.pods(),
        name: machine.name,
    }
}

/// Every zone, spot at 70 % of the on-demand price.
fn offerings(machine: &Machine) -> Vec<Offering> {
    let on_demand = machine.price();
    let prices = [("spot", dollars(spot_of(on_demand))), ("on-demand", dollars(on_demand))];
    KWOK_ZONES
        .iter()
        .flat_map(|zone| {
            prices
                .iter()
                .map(|(kind, price)| Offering::new(kind, zone, price.clone()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_catalogue_has_144_types_with_eight_offerings() {
        let types = kwok();
        assert_eq!(types.len(), 144);
        assert!(types.iter().all(|it| it.offerings.len() == 8));
        let (first, last) = (&types[0], &types[143]);
        assert_eq!(
            (first.name.as_str(), last.name.as_str()),
            ("c-1x-amd64-linux", "m-256x-arm64-windows")
        );
        assert_eq!(
            (first.offerings[0].price.as_str(), first.offerings[1].price.as_str()),
            ("0.0190032385536", "0.027147483648")
        );
        assert_eq!(last.capacity["memory"], "2Ti");
    }

    #[test]
    fn the_file_says_what_the_embedded_catalogue_says() {
        let written = serde_json::to_value(kwok()).unwrap();
        let read: Vec<std::sync::Arc<model::snapshot::CatalogType>> = serde_json::from_value(written).unwrap();
        let embedded = ::catalogue::load(::catalogue::Source::Kwok, None, &[]).unwrap();
        assert_eq!(read, embedded.catalog.instance_types);
    }
}
