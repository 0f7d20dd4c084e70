//! The labels nodes of an Azure size can have; labels a size lacks are listed as absent, so that nothing asks for them.

use api::labels::{
    ARCH, CAPACITY_TYPE, CAPACITY_TYPE_ON_DEMAND, CAPACITY_TYPE_SPOT, INSTANCE_TYPE, OS, REGION, ZONE, azure,
};
use model::requirement::RequirementSpec;

use super::Size;
use crate::spec::{absent, maybe, one_of};

pub(super) fn of(size: &Size<'_>, region: &str) -> Vec<RequirementSpec> {
    let zones = size.zones.iter().map(String::as_str);
    let zones: Vec<&str> = zones.chain([azure::REGIONAL_ZONE]).collect();
    let mut labels = vec![
        one_of(INSTANCE_TYPE, &[size.name]),
        one_of(ARCH, &[size.arch]),
        one_of(OS, &["linux"]),
        one_of(ZONE, &zones),
        one_of(REGION, &[region]),
        one_of(CAPACITY_TYPE, &capacity_types(size)),
    ];
    labels.extend(sku_labels(size));
    labels.extend(capability_labels(size));
    labels.extend(aks_labels(size));
    labels
}

fn capacity_types(size: &Size<'_>) -> Vec<&'static str> {
    let spot = size.spot.map(|_| CAPACITY_TYPE_SPOT);
    [CAPACITY_TYPE_ON_DEMAND].into_iter().chain(spot).collect()
}

fn sku_labels(size: &Size<'_>) -> [RequirementSpec; 6] {
    [
        one_of(azure::SKU_NAME, &[size.name]),
        maybe(azure::SKU_FAMILY, size.family),
        maybe(azure::SKU_SERIES, size.series),
        maybe(azure::SKU_VERSION, size.version),
        one_of(azure::SKU_CPU, &[&size.vcpu.to_string()]),
        one_of(azure::SKU_MEMORY, &[&(size.memory_gib << 10).to_string()]),
    ]
}

fn capability_labels(size: &Size<'_>) -> [RequirementSpec; 8] {
    let ultra: &[&str] = if size.has_ultra_ssd {
        &["true", "false"]
    } else {
        &["false"]
    };
    let scopes: &[&str] = if size.zones.is_empty() {
        &["regional"]
    } else {
        &["zonal", "regional"]
    };
    [
        one_of(
            azure::SKU_NETWORKING_ACCELERATED,
            &[truth(size.has_accelerated_networking)],
        ),
        one_of(azure::SKU_STORAGE_PREMIUM_CAPABLE, &[truth(size.has_premium_storage)]),
        maybe(azure::SKU_STORAGE_EPHEMERAL_OS_MAX_SIZE, size.ephemeral_os_gb),
        one_of(azure::SKU_STORAGE_ULTRA_SSD, ultra),
        maybe(azure::SKU_GPU_NAME, size.gpu_name),
        maybe(azure::SKU_GPU_MANUFACTURER, size.gpu_manufacturer),
        one_of(azure::SKU_GPU_COUNT, &[&size.gpu_count.to_string()]),
        one_of(azure::PLACEMENT_SCOPE, scopes),
    ]
}

/// AKS's own words for the same facts. The cluster's name is not a fact of the size and stays open.
fn aks_labels(size: &Size<'_>) -> [RequirementSpec; 7] {
    let priorities: &[&str] = if size.spot.is_some() {
        &["regular", "spot"]
    } else {
        &["regular"]
    };
    [
        one_of(azure::AKS_SKU_CPU, &[&size.vcpu.to_string()]),
        one_of(azure::AKS_SKU_MEMORY, &[&(size.memory_gib << 10).to_string()]),
        one_of(azure::AKS_MODE, &["system", "user"]),
        one_of(azure::AKS_SCALE_SET_PRIORITY, priorities),
        one_of(azure::AKS_PRIORITY, priorities),
        one_of(azure::AKS_OS_SKU, &["Ubuntu"]),
        absent(azure::AKS_FIPS_ENABLED),
    ]
}

fn truth(is: bool) -> &'static str {
    if is { "true" } else { "false" }
}
