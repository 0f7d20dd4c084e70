//! The labels nodes of an EC2 type can have. Labels a type lacks are listed as absent, as the provider does: only then
//! is a pod that asks for a GPU refused by a type without one.

use api::labels::{
    ARCH, CAPACITY_TYPE, CAPACITY_TYPE_ON_DEMAND, CAPACITY_TYPE_SPOT, INSTANCE_TYPE, OS, REGION, WINDOWS_BUILD, ZONE,
    aws,
};
use model::requirement::RequirementSpec;

use super::Machine;
use crate::spec::{absent, maybe, one_of};

pub(super) fn of(machine: &Machine<'_>, region: &str, zones: &[String]) -> Vec<RequirementSpec> {
    let zones: Vec<&str> = zones.iter().map(String::as_str).collect();
    let mut labels = vec![
        one_of(INSTANCE_TYPE, &[machine.name]),
        one_of(ARCH, &[machine.arch]),
        one_of(OS, &["linux"]),
        one_of(ZONE, &zones),
        one_of(REGION, &[region]),
        absent(WINDOWS_BUILD),
        one_of(CAPACITY_TYPE, &[CAPACITY_TYPE_ON_DEMAND, CAPACITY_TYPE_SPOT]),
        absent(aws::CAPACITY_RESERVATION_ID),
        absent(aws::CAPACITY_RESERVATION_TYPE),
        absent(aws::CAPACITY_RESERVATION_INTERRUPTIBLE),
        one_of(aws::INSTANCE_TENANCY, &["default", "dedicated"]),
    ];
    labels.extend(name_labels(machine.name));
    labels.extend(machine_labels(machine));
    labels.extend(device_labels(machine));
    labels
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
            &[truth(machine.encryption_in_transit == "1")],
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
