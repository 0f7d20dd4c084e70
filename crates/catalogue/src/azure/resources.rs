//! What an AKS node has, and what of it is not for pods: the provider's formulas.

use model::{quantity::Quantity, resources::ResourceList, snapshot::CatalogOverhead};

use super::{Machine, Setup};
use crate::spec::{mebibytes, resources};

/// What the kubelet keeps free before it evicts pods, in MiB.
pub const EVICTION_MEMORY_MIB: i64 = 750;

/// What a node of the size has.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "the provider reckons in floats, and memory lies far below 2^53 bytes"
)]
pub fn capacity(machine: &Machine<'_>, setup: &Setup<'_>) -> ResourceList {
    // The fraction of a GiB is lost first, then the hypervisor's part, rounded up to whole bytes.
    let memory = (machine.memory_gib as i64) << 30;
    let lost = (memory as f64 * setup.memory_overhead).ceil() as i64;
    let gpu = if machine.gpu_manufacturer == "amd" {
        "amd.com/gpu"
    } else {
        "nvidia.com/gpu"
    };
    resources([
        ("cpu", Quantity::from_units(machine.vcpu)),
        ("memory", Quantity::from_bytes(memory - lost)),
        (
            "ephemeral-storage",
            Quantity::from_units(setup.os_disk_gb * 1_000_000_000),
        ),
        ("pods", Quantity::from_units(setup.max_pods)),
        (gpu, Quantity::from_units(machine.gpu_count)),
    ])
}

/// What of it pods do not get.
pub fn overhead(machine: &Machine<'_>) -> CatalogOverhead {
    CatalogOverhead {
        kube_reserved: resources([
            ("cpu", Quantity::from_millis(reserved_cpu(machine.vcpu))),
            ("memory", mebibytes(reserved_memory(machine.memory_gib))),
        ]),
        system_reserved: ResourceList::EMPTY,
        eviction_threshold: resources([("memory", mebibytes(EVICTION_MEMORY_MIB))]),
    }
}

/// 6 % of the first core, 4 % of the second, 2 % of the next two, 1 % of the rest, in millicores. The provider adds
/// fractions of cores as floats before it rounds down, which loses a millicore at 120 and 176 cores.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "cores are few, and rounding down is the provider's"
)]
pub fn reserved_cpu(cores: i64) -> i64 {
    let brackets = [(1.0, 0.06), (2.0, 0.04), (4.0, 0.02), (f64::MAX, 0.01)];
    (bracketed(cores as f64, &brackets) * 1000.0) as i64
}

/// 25 % of the first 4 GiB, 20 % to 8, 10 % to 16, 6 % to 128, 2 % above, in MiB rounded down.
#[expect(clippy::cast_possible_truncation, reason = "rounding down is the provider's")]
pub fn reserved_memory(gib: f64) -> i64 {
    let brackets = [(4.0, 0.25), (8.0, 0.20), (16.0, 0.10), (128.0, 0.06), (f64::MAX, 0.02)];
    (bracketed(gib, &brackets) * 1024.0) as i64
}

/// Of each bracket its part, summed in their order: another order would round otherwise.
fn bracketed(amount: f64, brackets: &[(f64, f64)]) -> f64 {
    let (mut sum, mut lower) = (0.0, 0.0);
    for (upper, rate) in brackets {
        if lower > amount {
            break;
        }
        sum += (upper.min(amount) - lower) * rate;
        lower = *upper;
    }
    sum
}
