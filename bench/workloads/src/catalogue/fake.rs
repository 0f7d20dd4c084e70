//! Upstream's unit-test catalogues: `InstanceTypes(n)` and `InstanceTypesAssorted()`.

use serde_json::{Map, Value};

use super::{InstanceType, Offering, distinct, overhead};
use crate::object::{ARCH, CAPACITY_TYPE, INSTANCE_TYPE, OS, ZONE, requirement};
use crate::quantity::{count, cpu, dollars, memory};

/// The labels this cloud declares well-known.
pub const FAKE_LABELS: [&str; 3] = ["size", "special", "integer"];

const GIB: u128 = 1 << 30;
const EVERYWHERE: [(&str, &str); 5] = [
    ("spot", "test-zone-1"),
    ("spot", "test-zone-2"),
    ("on-demand", "test-zone-1"),
    ("on-demand", "test-zone-2"),
    ("on-demand", "test-zone-3"),
];

struct Machine<'a> {
    name: String,
    cpu: u64,
    memory_gi: u64,
    pods: u64,
    arch: &'a str,
    operating_systems: &'a [&'a str],
    sold: &'a [(&'a str, &'a str)],
}

/// `InstanceTypes(total)`: type i has i+1 cores, twice the GiB and ten times the pods.
pub fn fake(total: u64) -> Vec<InstanceType> {
    (0..total)
        .map(|i| {
            build(&Machine {
                name: format!("fake-it-{i}"),
                cpu: i + 1,
                memory_gi: 2 * (i + 1),
                pods: 10 * (i + 1),
                arch: "amd64",
                operating_systems: &["darwin", "linux", "windows"],
                sold: &EVERYWHERE,
            })
        })
        .collect()
}

/// `InstanceTypesAssorted()`: 1344 types with one offering and five pods each.
pub fn assorted() -> Vec<InstanceType> {
    let mut types = Vec::new();
    for cpu in [1, 2, 4, 8, 16, 32, 64] {
        for memory_gi in [1, 2, 4, 8, 16, 32, 64, 128] {
            for zone in ["test-zone-1", "test-zone-2", "test-zone-3"] {
                for capacity_type in ["spot", "on-demand"] {
                    for os in ["linux", "windows"] {
                        for arch in ["amd64", "arm64"] {
                            types.push(build(&Machine {
                                name: format!("{cpu}-cpu-{memory_gi}-mem-{arch}-{os}-{zone}-{capacity_type}"),
                                cpu,
                                memory_gi,
                                pods: 5,
                                arch,
                                operating_systems: &[os],
                                sold: &[(capacity_type, zone)],
                            }));
                        }
                    }
                }
            }
        }
    }
    types
}

fn build(machine: &Machine) -> InstanceType {
    let price = price(machine.cpu, machine.memory_gi);
    InstanceType {
        name: machine.name.clone(),
        requirements: requirements(machine),
        capacity: Map::from_iter([
            ("cpu".to_string(), Value::from(cpu(1000 * machine.cpu))),
            ("memory".to_string(), Value::from(memory(1024 * machine.memory_gi))),
            ("pods".to_string(), Value::from(count(machine.pods))),
        ]),
        overhead: overhead(),
        offerings: machine
            .sold
            .iter()
            .map(|(kind, zone)| Offering::new(kind, zone, price.clone()))
            .collect(),
        volume_attachment_limits: Map::new(),
        dynamic_resources: Value::Null,
        cpu: machine.cpu,
        memory_mi: 1024 * machine.memory_gi,
        pods: machine.pods,
    }
}

fn requirements(machine: &Machine) -> Vec<Value> {
    let large = machine.cpu > 4 && machine.memory_gi > 8;
    vec![
        requirement(INSTANCE_TYPE, "In", &[&machine.name]),
        requirement(ARCH, "In", &[machine.arch]),
        requirement(OS, "In", machine.operating_systems),
        requirement(ZONE, "In", &distinct(machine.sold.iter().map(|(_, zone)| *zone))),
        requirement(
            CAPACITY_TYPE,
            "In",
            &distinct(machine.sold.iter().map(|(kind, _)| *kind)),
        ),
        requirement("size", "In", &[if large { "large" } else { "small" }]),
        if large {
            requirement("special", "In", &["optional"])
        } else {
            requirement("special", "DoesNotExist", &[])
        },
        requirement("integer", "In", &[&machine.cpu.to_string()]),
    ]
}

/// A tenth of a dollar per core and per 10⁹ bytes.
fn price(cpu: u64, memory_gi: u64) -> String {
    dollars(u128::from(cpu) * 1_000_000_000_000 + u128::from(memory_gi) * GIB * 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_catalogues_have_the_published_sizes_and_prices() {
        let (fakes, assorted) = (fake(400), assorted());
        assert_eq!((fakes.len(), assorted.len()), (400, 1344));
        assert_eq!(fakes[399].offerings[0].price, "125.89934592");
        assert_eq!(fakes[0].offerings.len(), 5);
        assert_eq!(assorted[0].name, "1-cpu-1-mem-amd64-linux-test-zone-1-spot");
    }

    #[test]
    fn special_exists_from_five_cores_on() {
        let special = |index: usize| fake(6)[index].requirements[6].clone();
        assert_eq!(special(3), requirement("special", "DoesNotExist", &[]));
        assert_eq!(special(4), requirement("special", "In", &["optional"]));
    }
}
