//! The labels nodes of an EC2 type can have. Labels a type lacks are listed as absent, as the provider does: only then
//! is a pod that asks for a GPU refused by a type without one.

use api::labels::{ARCH, CAPACITY_TYPE, INSTANCE_TYPE, OS, REGION, WINDOWS_BUILD, ZONE, aws};
use model::requirement::{Operator, RequirementSpec};

use super::{Machine, Os, Setup};
use crate::spec::{absent, maybe, one_of};

/// Where and how a type is sold to a node class.
#[derive(Debug, Clone, Copy)]
pub struct Sale<'a> {
    /// The region.
    pub region: &'a str,
    /// Zones that sell it and have a subnet of the class.
    pub zones: &'a [&'a str],
    /// Those zones by their account-independent IDs; none where they are not known.
    pub zone_ids: &'a [&'a str],
    /// `on-demand`, `spot`, `reserved`.
    pub capacity_types: &'a [&'a str],
    /// Capacity reservations of the type.
    pub reservations: &'a [Reservation<'a>],
}

/// A capacity reservation.
#[derive(Debug, Clone, Copy)]
pub struct Reservation<'a> {
    /// Its ID.
    pub id: &'a str,
    /// `default` or `capacity-block`.
    pub kind: &'a str,
    /// Whether it may be taken back.
    pub is_interruptible: bool,
}

/// The labels of a type that is set up and sold like this.
pub fn of(machine: &Machine<'_>, setup: &Setup, sale: &Sale<'_>) -> Vec<RequirementSpec> {
    // Windows runs on amd64 only: elsewhere the label has no value at all, which nothing satisfies.
    let (os, build): (&[&str], _) = match setup.os {
        Os::Linux => (&["linux"], absent(WINDOWS_BUILD)),
        Os::Windows { build } if machine.arch == "amd64" => (&["windows"], one_of(WINDOWS_BUILD, &[build])),
        Os::Windows { build } => (&[], one_of(WINDOWS_BUILD, &[build])),
    };
    let mut labels = vec![
        one_of(INSTANCE_TYPE, &[machine.name]),
        one_of(ARCH, &[machine.arch]),
        RequirementSpec::new(OS, Operator::In, os),
        RequirementSpec::new(ZONE, Operator::In, sale.zones),
        one_of(REGION, &[sale.region]),
        build,
        RequirementSpec::new(CAPACITY_TYPE, Operator::In, sale.capacity_types),
        one_of(aws::INSTANCE_TENANCY, &["default", "dedicated"]),
    ];
    if !sale.zone_ids.is_empty() {
        labels.push(one_of(aws::ZONE_ID, sale.zone_ids));
    }
    labels.extend(reservation_labels(sale.reservations));
    labels.extend(name_labels(machine.name));
    labels.extend(machine_labels(machine));
    labels.extend(device_labels(machine));
    labels
}

fn reservation_labels(reservations: &[Reservation<'_>]) -> [RequirementSpec; 3] {
    let each = |value: fn(&Reservation<'_>) -> String| {
        let mut values: Vec<String> = reservations.iter().map(value).collect();
        values.sort_unstable();
        values.dedup();
        values
    };
    let label = |key: &str, values: Vec<String>| {
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        one_of(key, &values)
    };
    [
        label(aws::CAPACITY_RESERVATION_ID, each(|it| it.id.to_owned())),
        label(aws::CAPACITY_RESERVATION_TYPE, each(|it| it.kind.to_owned())),
        label(
            aws::CAPACITY_RESERVATION_INTERRUPTIBLE,
            each(|it| it.is_interruptible.to_string()),
        ),
    ]
}

/// What the name itself says: `m7i-flex.2xlarge` is category m, generation 7, family m7i-flex, size 2xlarge.
fn name_labels(name: &str) -> [RequirementSpec; 5] {
    let (family, size) = name.split_once('.').unwrap_or((name, ""));
    let (category, generation) = category_and_generation(family);
    [
        maybe(aws::INSTANCE_CATEGORY, category),
        maybe(aws::INSTANCE_GENERATION, generation),
        maybe(aws::INSTANCE_FAMILY, family),
        maybe(aws::INSTANCE_SIZE, size),
        one_of(aws::INSTANCE_CAPABILITY_FLEX, &[truth(family.contains("-flex"))]),
    ]
}

/// The leading letters and the number after them; `u-6tb1` is category u, generation 1.
pub(super) fn category_and_generation(family: &str) -> (&str, &str) {
    let letters = family.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(family.len());
    let (category, rest) = family.split_at(letters);
    let rest = match rest.strip_prefix('-').and_then(|rest| rest.split_once("tb")) {
        Some((terabytes, rest)) if terabytes.bytes().all(|byte| byte.is_ascii_digit()) => rest,
        _ => rest,
    };
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    match rest.get(..digits) {
        Some(generation) if !generation.is_empty() => (category, generation),
        _ => ("", ""),
    }
}

fn machine_labels(machine: &Machine<'_>) -> [RequirementSpec; 9] {
    [
        one_of(aws::INSTANCE_CPU, &[&machine.vcpu.to_string()]),
        one_of(aws::INSTANCE_MEMORY, &[&machine.memory_mib.to_string()]),
        maybe(aws::INSTANCE_CPU_MANUFACTURER, machine.cpu_manufacturer),
        maybe(aws::INSTANCE_CPU_SUSTAINED_CLOCK_SPEED_MHZ, machine.cpu_clock_mhz),
        maybe(aws::INSTANCE_EBS_BANDWIDTH, machine.ebs_mbps),
        maybe(aws::INSTANCE_NETWORK_BANDWIDTH, machine.network_mbps),
        maybe(aws::INSTANCE_LOCAL_NVME, machine.nvme_gb),
        // Bare metal has the empty value, which is a value.
        one_of(aws::INSTANCE_HYPERVISOR, &[machine.hypervisor]),
        one_of(
            aws::INSTANCE_ENCRYPTION_IN_TRANSIT_SUPPORTED,
            &[truth(machine.encryption_in_transit)],
        ),
    ]
}

fn device_labels(machine: &Machine<'_>) -> [RequirementSpec; 7] {
    let ([gpu, gpu_manufacturer, gpu_count, gpu_memory], [accelerator, manufacturer, count]) =
        (machine.gpu, machine.accelerator);
    [
        maybe(aws::INSTANCE_GPU_NAME, gpu),
        maybe(aws::INSTANCE_GPU_MANUFACTURER, gpu_manufacturer),
        maybe(aws::INSTANCE_GPU_COUNT, gpu_count),
        maybe(aws::INSTANCE_GPU_MEMORY, gpu_memory),
        maybe(aws::INSTANCE_ACCELERATOR_NAME, accelerator),
        maybe(aws::INSTANCE_ACCELERATOR_MANUFACTURER, manufacturer),
        maybe(aws::INSTANCE_ACCELERATOR_COUNT, count),
    ]
}

fn truth(is: bool) -> &'static str {
    if is { "true" } else { "false" }
}
