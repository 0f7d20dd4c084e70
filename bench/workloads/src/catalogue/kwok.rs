//! The kwok provider's catalogue: 144 generic types in four zones, spot and on-demand.

use serde_json::{Map, Value};

use super::{InstanceType, Offering, overhead};
use crate::object::{ARCH, CAPACITY_TYPE, INSTANCE_TYPE, OS, ZONE, requirement};
use crate::quantity::{cpu, dollars, memory};

/// Size of a kwok type: for generic types its core count.
pub const KWOK_SIZE: &str = "karpenter.kwok.sh/instance-size";
/// Family of a kwok type: c, s or m.
pub const KWOK_FAMILY: &str = "karpenter.kwok.sh/instance-family";
const KWOK_CPU: &str = "karpenter.kwok.sh/instance-cpu";
const KWOK_MEMORY: &str = "karpenter.kwok.sh/instance-memory";
/// The labels this cloud declares well-known.
pub const KWOK_LABELS: [&str; 4] = [KWOK_SIZE, KWOK_FAMILY, KWOK_CPU, KWOK_MEMORY];
/// The zones it sells in.
pub const KWOK_ZONES: [&str; 4] = ["test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d"];

const GIB: u128 = 1 << 30;

/// All 144 types, in upstream's order.
pub fn kwok() -> Vec<InstanceType> {
    let mut types = Vec::new();
    for cores in [1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256] {
        for (family, factor) in [("c", 2), ("s", 4), ("m", 8)] {
            for os in ["linux", "windows"] {
                for arch in ["amd64", "arm64"] {
                    types.push(build(family, cores, cores * factor, arch, os));
                }
            }
        }
    }
    types
}

fn build(family: &str, cores: u64, memory_gi: u64, arch: &str, os: &str) -> InstanceType {
    let name = format!("{family}-{cores}x-{arch}-{os}");
    let memory_text = memory(1024 * memory_gi);
    let pods = (16 * cores).min(1024);
    InstanceType {
        requirements: vec![
            requirement(INSTANCE_TYPE, "In", &[&name]),
            requirement(ARCH, "In", &[arch]),
            requirement(OS, "In", &[os]),
            requirement(ZONE, "In", &KWOK_ZONES),
            requirement(CAPACITY_TYPE, "In", &["spot", "on-demand"]),
            requirement(KWOK_SIZE, "In", &[&cores.to_string()]),
            requirement(KWOK_FAMILY, "In", &[family]),
            requirement(KWOK_CPU, "In", &[&cores.to_string()]),
            requirement(KWOK_MEMORY, "In", &[&memory_text]),
        ],
        capacity: Map::from_iter([
            ("cpu".to_string(), Value::from(cpu(1000 * cores))),
            ("ephemeral-storage".to_string(), Value::from("20Gi")),
            ("memory".to_string(), Value::from(memory_text)),
            ("pods".to_string(), Value::from(pods.to_string())),
        ]),
        overhead: overhead(),
        offerings: offerings(cores, memory_gi),
        name,
        volume_attachment_limits: Map::new(),
        dynamic_resources: Value::Null,
        cpu: cores,
        memory_mi: 1024 * memory_gi,
        pods,
    }
}

/// On-demand price in 10⁻¹³ dollars: 2.5 cents per core and a tenth of a cent per 10⁹ bytes.
pub fn kwok_price(cores: u64, memory_gi: u64) -> u128 {
    u128::from(cores) * 250_000_000_000 + u128::from(memory_gi) * GIB * 10
}

/// Every zone, spot at 70 % of the on-demand price.
fn offerings(cores: u64, memory_gi: u64) -> Vec<Offering> {
    let on_demand = kwok_price(cores, memory_gi);
    let prices = [("spot", dollars(on_demand * 7 / 10)), ("on-demand", dollars(on_demand))];
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
}
