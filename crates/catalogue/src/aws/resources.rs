//! What an EC2 node has, and what of it is not for pods: the provider's formulas, in whole numbers.

use model::{quantity::Quantity, resources::ResourceList, snapshot::CatalogOverhead};

use super::Machine;
use crate::spec::{mebibytes, resources};

/// Memory the hypervisor keeps, in thousandths (`--vm-memory-overhead-percent 0.075`).
const VM_OVERHEAD_PER_MILLE: i64 = 75;
/// Memory Graviton machines set aside for the kernel's contiguous allocator.
const GRAVITON_MIB: i64 = 64;
/// Size of the root volume unless the node class says otherwise.
const ROOT_VOLUME_MIB: i64 = 20 << 10;

pub(super) fn capacity(machine: &Machine<'_>) -> ResourceList {
    let mut amounts = vec![
        ("cpu", Quantity::from_units(machine.vcpu)),
        ("memory", mebibytes(memory_mib(machine))),
        ("ephemeral-storage", mebibytes(ROOT_VOLUME_MIB)),
        ("pods", Quantity::from_units(machine.pods)),
        ("vpc.amazonaws.com/pod-eni", Quantity::from_units(machine.pod_eni)),
        ("vpc.amazonaws.com/efa", Quantity::from_units(machine.efa)),
    ];
    amounts.extend(
        machine
            .extended
            .iter()
            .map(|(name, count)| (*name, Quantity::from_units(*count))),
    );
    resources(amounts)
}

fn memory_mib(machine: &Machine<'_>) -> i64 {
    let graviton = if machine.arch == "arm64" { GRAVITON_MIB } else { 0 };
    let usable = machine.memory_mib - graviton;
    usable - (usable * VM_OVERHEAD_PER_MILLE + 999) / 1000
}

pub(super) fn overhead(machine: &Machine<'_>) -> CatalogOverhead {
    CatalogOverhead {
        kube_reserved: resources([
            ("cpu", Quantity::from_millis(reserved_cpu(1000 * machine.vcpu))),
            ("memory", mebibytes(11 * machine.pods + 255)),
            ("ephemeral-storage", mebibytes(1 << 10)),
        ]),
        system_reserved: ResourceList::EMPTY,
        eviction_threshold: resources([
            ("memory", mebibytes(100)),
            ("ephemeral-storage", mebibytes(ROOT_VOLUME_MIB / 10)),
        ]),
    }
}

/// 6 % of the first core, 1 % of the second, 0.5 % of the next two, 0.25 % of the rest; each part rounded down.
fn reserved_cpu(millis: i64) -> i64 {
    let parts = [
        (0, 1000, 600),
        (1000, 2000, 100),
        (2000, 4000, 50),
        (4000, i64::MAX, 25),
    ];
    parts
        .into_iter()
        .map(|(from, to, rate)| (millis.min(to) - from).max(0) * rate / 10_000)
        .sum()
}
