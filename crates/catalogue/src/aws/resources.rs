//! What an EC2 node has, and what of it is not for pods: the provider's formulas.

use model::{quantity::Quantity, resources::ResourceList, snapshot::CatalogOverhead};

use super::{Machine, Os, Setup, Threshold};
use crate::spec::{mebibytes, resources};

/// Memory Graviton machines set aside for the kernel's contiguous allocator.
const GRAVITON_MIB: i64 = 64;
/// Pods on a node whose network does not limit them.
const UNLIMITED_PODS: i64 = 110;

/// What the machine has.
pub fn capacity(machine: &Machine<'_>, setup: &Setup) -> ResourceList {
    let mut amounts = vec![
        ("cpu", Quantity::from_units(machine.vcpu)),
        ("memory", memory(machine, setup)),
        ("ephemeral-storage", storage(machine, setup)),
        ("pods", Quantity::from_units(pods(machine, setup))),
        ("vpc.amazonaws.com/pod-eni", Quantity::from_units(machine.pod_eni)),
        (
            "vpc.amazonaws.com/efa",
            Quantity::from_units(setup.efa.unwrap_or(machine.efa)),
        ),
    ];
    if let (Os::Windows { .. }, "amd64", Some((_, addresses))) = (setup.os, machine.arch, machine.network) {
        let addresses = Quantity::from_units(addresses - 1);
        amounts.push(("vpc.amazonaws.com/PrivateIPv4Address", addresses));
    }
    amounts.extend(
        machine
            .extended
            .iter()
            .map(|(name, count)| (*name, Quantity::from_units(*count))),
    );
    resources(amounts)
}

/// In floating point, as the provider computes it: the last mebibyte must agree.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "memory of machines lies far below 2^53 bytes"
)]
fn memory(machine: &Machine<'_>, setup: &Setup) -> Quantity {
    let graviton = if machine.arch == "arm64" { GRAVITON_MIB } else { 0 };
    let usable = machine.memory_mib - graviton;
    let lost = ((usable << 20) as f64 * setup.vm_memory_overhead / 1024.0 / 1024.0).ceil();
    mebibytes(usable - lost as i64)
}

fn storage(machine: &Machine<'_>, setup: &Setup) -> Quantity {
    match machine.local_gb {
        Some(gigabytes) if setup.uses_local_disks => Quantity::from_units(gigabytes * 1_000_000_000),
        _ => setup.storage,
    }
}

fn pods(machine: &Machine<'_>, setup: &Setup) -> i64 {
    let most = match setup.max_pods {
        Some(most) => most,
        None if setup.are_pods_limited_by_interfaces => interface_pods(machine, setup, setup.reserved_interfaces),
        None => UNLIMITED_PODS,
    };
    match setup.pods_per_core {
        Some(each) if each > 0 => most.min(each * machine.vcpu),
        _ => most,
    }
}

/// An address of each interface is the interface's own; two pods use the host's network.
fn interface_pods(machine: &Machine<'_>, setup: &Setup, reserved: i64) -> i64 {
    let Some((interfaces, addresses)) = machine.network else {
        return machine.pods;
    };
    match interfaces - reserved - setup.efa_only_on_first_card {
        ..=0 => 0,
        usable => usable * (addresses - 1) + 2,
    }
}

/// What of it is not for pods.
pub fn overhead(machine: &Machine<'_>, setup: &Setup) -> CatalogOverhead {
    let expected_pods = if setup.is_overhead_by_interfaces {
        interface_pods(machine, setup, 0)
    } else {
        pods(machine, setup)
    };
    let kube_reserved = resources([
        ("cpu", Quantity::from_millis(reserved_cpu(1000 * machine.vcpu))),
        ("memory", mebibytes(11 * expected_pods + 255)),
        ("ephemeral-storage", mebibytes(1 << 10)),
    ]);
    let (memory, storage) = (memory(machine, setup), storage(machine, setup));
    CatalogOverhead {
        kube_reserved: kube_reserved.overlaid_with(&setup.kube_reserved),
        system_reserved: setup.system_reserved.clone(),
        eviction_threshold: resources([
            (
                "memory",
                setup
                    .eviction_memory
                    .map_or(mebibytes(100), |threshold| threshold.of(memory)),
            ),
            (
                "ephemeral-storage",
                setup.eviction_storage.unwrap_or(Threshold::Percent(10.0)).of(storage),
            ),
        ]),
    }
}

impl Threshold {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "as the provider computes it; disks and memory lie far below 2^53 bytes"
    )]
    fn of(self, capacity: Quantity) -> Quantity {
        match self {
            Self::Amount(amount) => amount,
            Self::Percent(percent) if percent >= 100.0 => Quantity::from_units(0),
            Self::Percent(percent) => Quantity::from_units((capacity.value() as f64 / 100.0 * percent).ceil() as i64),
        }
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
