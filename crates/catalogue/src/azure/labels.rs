//! The labels nodes of an Azure size can have; labels a size lacks are listed as absent, so that nothing asks for them.

use api::labels::{ARCH, CAPACITY_TYPE, INSTANCE_TYPE, OS, REGION, ZONE, azure};
use model::requirement::RequirementSpec;

use super::{Machine, Sale, Setup};
use crate::spec::{absent, maybe, one_of};

/// What a node of the size is labelled, and could be.
pub fn labels(machine: &Machine<'_>, setup: &Setup<'_>, sale: &Sale<'_>) -> Vec<RequirementSpec> {
    let mut labels = vec![
        one_of(INSTANCE_TYPE, &[machine.name]),
        one_of(ARCH, &[machine.arch]),
        one_of(OS, &["linux"]),
        one_of(ZONE, sale.zones),
        one_of(REGION, &[sale.region]),
        one_of(CAPACITY_TYPE, sale.capacity_types),
    ];
    labels.extend(sku_labels(machine));
    labels.extend(capability_labels(machine, sale));
    labels.extend(aks_labels(machine, setup, sale));
    if !machine.hyperv_generations.is_empty() {
        labels.push(one_of(azure::SKU_HYPERV_GENERATION, machine.hyperv_generations));
    }
    labels.extend(setup.cluster.map(|cluster| one_of(azure::AKS_CLUSTER, &[cluster])));
    labels
}

#[expect(clippy::cast_possible_truncation, reason = "rounding down is the provider's")]
fn memory_mib(machine: &Machine<'_>) -> String {
    ((machine.memory_gib * 1024.0) as i64).to_string()
}

fn sku_labels(machine: &Machine<'_>) -> [RequirementSpec; 6] {
    [
        one_of(azure::SKU_NAME, &[machine.name]),
        maybe(azure::SKU_FAMILY, machine.family),
        maybe(azure::SKU_SERIES, machine.series),
        maybe(azure::SKU_VERSION, machine.version),
        one_of(azure::SKU_CPU, &[&machine.vcpu.to_string()]),
        one_of(azure::SKU_MEMORY, &[&memory_mib(machine)]),
    ]
}

fn capability_labels(machine: &Machine<'_>, sale: &Sale<'_>) -> [RequirementSpec; 8] {
    let ultra: &[&str] = if sale.has_ultra_ssd {
        &["true", "false"]
    } else {
        &["false"]
    };
    let scopes: &[&str] = match sale.zones {
        [] | [azure::REGIONAL_ZONE] => &["regional"],
        _ => &["zonal", "regional"],
    };
    let disk = machine.ephemeral_os_gb.map(|size| size.to_string()).unwrap_or_default();
    [
        one_of(
            azure::SKU_NETWORKING_ACCELERATED,
            &[truth(machine.has_accelerated_networking)],
        ),
        one_of(
            azure::SKU_STORAGE_PREMIUM_CAPABLE,
            &[truth(machine.has_premium_storage)],
        ),
        maybe(azure::SKU_STORAGE_EPHEMERAL_OS_MAX_SIZE, &disk),
        one_of(azure::SKU_STORAGE_ULTRA_SSD, ultra),
        maybe(azure::SKU_GPU_NAME, machine.gpu_name),
        maybe(azure::SKU_GPU_MANUFACTURER, machine.gpu_manufacturer),
        one_of(azure::SKU_GPU_COUNT, &[&machine.gpu_count.to_string()]),
        one_of(azure::PLACEMENT_SCOPE, scopes),
    ]
}

/// AKS's own words for the same facts.
fn aks_labels(machine: &Machine<'_>, setup: &Setup<'_>, sale: &Sale<'_>) -> [RequirementSpec; 7] {
    [
        one_of(azure::AKS_SKU_CPU, &[&machine.vcpu.to_string()]),
        one_of(azure::AKS_SKU_MEMORY, &[&memory_mib(machine)]),
        one_of(azure::AKS_MODE, &["system", "user"]),
        one_of(azure::AKS_SCALE_SET_PRIORITY, sale.priorities),
        one_of(azure::AKS_PRIORITY, sale.priorities),
        one_of(azure::AKS_OS_SKU, &[setup.os_sku]),
        if setup.is_fips {
            one_of(azure::AKS_FIPS_ENABLED, &["true"])
        } else {
            absent(azure::AKS_FIPS_ENABLED)
        },
    ]
}

fn truth(is: bool) -> &'static str {
    if is { "true" } else { "false" }
}
