//! What an AKS node has, and what of it is not for pods: the provider's formulas.

use model::{quantity::Quantity, resources::ResourceList, snapshot::CatalogOverhead};

use super::Size;
use crate::spec::{mebibytes, resources};

/// Memory the hypervisor keeps, in thousandths.
const VM_OVERHEAD_PER_MILLE: i64 = 75;
/// Size of the system disk unless the node class says otherwise, in bytes.
const OS_DISK_BYTES: i64 = 128_000_000_000;
/// Pods of a node in an overlay network.
const MAX_PODS: i64 = 250;

pub(super) fn capacity(size: &Size<'_>) -> ResourceList {
    let memory = size.memory_gib << 10;
    let gpu = if size.gpu_manufacturer == "amd" {
        "amd.com/gpu"
    } else {
        "nvidia.com/gpu"
    };
    resources([
        ("cpu", Quantity::from_units(size.vcpu)),
        (
            "memory",
            mebibytes(memory - (memory * VM_OVERHEAD_PER_MILLE + 999) / 1000),
        ),
        ("ephemeral-storage", Quantity::from_units(OS_DISK_BYTES)),
        ("pods", Quantity::from_units(MAX_PODS)),
        (gpu, Quantity::from_units(size.gpu_count)),
    ])
}

pub(super) fn overhead(size: &Size<'_>) -> CatalogOverhead {
    CatalogOverhead {
        kube_reserved: resources([
            ("cpu", Quantity::from_millis(reserved_cpu(size.vcpu))),
            ("memory", mebibytes(reserved_memory(size.memory_gib))),
        ]),
        system_reserved: ResourceList::EMPTY,
        eviction_threshold: resources([("memory", mebibytes(750))]),
    }
}

/// 6 % of the first core, 4 % of the second, 2 % of the next two, 1 % of the rest, in millicores. The provider adds
/// fractions of cores as floats before it rounds down, which loses a millicore at 120 and 176 cores.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "cores are few, and rounding down is the provider's"
)]
pub(super) fn reserved_cpu(cores: i64) -> i64 {
    let brackets = [(0, 1, 0.06), (1, 2, 0.04), (2, 4, 0.02), (4, i64::MAX, 0.01)];
    let part = |(from, to, rate): (i64, i64, f64)| (cores.min(to) - from).max(0) as f64 * rate;
    (brackets.into_iter().map(part).fold(0.0, |sum, part| sum + part) * 1000.0) as i64
}

/// 25 % of the first 4 GiB, 20 % to 8, 10 % to 16, 6 % to 128, 2 % above, in MiB rounded down.
pub(super) fn reserved_memory(gib: i64) -> i64 {
    let brackets = [(0, 4, 25), (4, 8, 20), (8, 16, 10), (16, 128, 6), (128, i64::MAX, 2)];
    let hundredths: i64 = brackets
        .into_iter()
        .map(|(from, to, rate)| (gib.min(to) - from).max(0) * rate)
        .sum();
    hundredths * 1024 / 100
}
