//! Label keys users may not set: the rules upstream injects into the core CRDs, per kind and per provider.
//!
//! Each provider ships NodePool, NodeClaim and NodeOverlay with rules for its own label domain. The texts are the
//! published ones, slips included (a key listed twice, spaces inside a bracket), so both CRDs say the same.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{JSONSchemaProps, ValidationRule};

use crate::{
    labels::{self, aws, azure, kwok},
    provider::Provider,
};

/// Where a rule applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Site {
    /// The labels of a NodePool's template.
    TemplateLabels,
    /// The key of a NodePool's requirement.
    NodePoolRequirement,
    /// The key of a NodeClaim's requirement.
    NodeClaimRequirement,
    /// The key of a NodeOverlay's requirement.
    NodeOverlayRequirement,
}

/// Appends the rules of core and of the given providers to the schema at a site.
pub(super) fn add(schema: &mut JSONSchemaProps, site: Site, providers: &[Provider]) {
    let rules = core(site)
        .into_iter()
        .chain(providers.iter().flat_map(|provider| provider_rules(*provider, site)));
    schema.x_kubernetes_validations.get_or_insert_default().extend(rules);
}

fn core(site: Site) -> Vec<ValidationRule> {
    let mut rules = vec![domain(site, "karpenter.sh", &list(CORE_KEYS))];
    if matches!(site, Site::TemplateLabels | Site::NodePoolRequirement) {
        rules.push(forbidden(site, labels::NODEPOOL, '"'));
    }
    rules.push(forbidden(site, labels::HOSTNAME, '"'));
    rules
}

fn provider_rules(provider: Provider, site: Site) -> Vec<ValidationRule> {
    match (provider, site) {
        (Provider::Aws, Site::TemplateLabels) => {
            vec![domain(
                site,
                aws::GROUP,
                &list(
                    AWS_RESERVATION_KEYS_OF_LABELS
                        .iter()
                        .chain(AWS_TYPE_KEYS)
                        .chain(AWS_PLACEMENT_KEYS),
                ),
            )]
        }
        (Provider::Aws, Site::NodePoolRequirement | Site::NodeClaimRequirement) => {
            vec![domain(
                site,
                aws::GROUP,
                &list(
                    AWS_RESERVATION_KEYS
                        .iter()
                        .chain(AWS_TYPE_KEYS)
                        .chain(AWS_PLACEMENT_KEYS),
                ),
            )]
        }
        (Provider::Aws, Site::NodeOverlayRequirement) => vec![domain(site, aws::GROUP, &list(AWS_TYPE_KEYS))],
        (Provider::Azure, _) => azure(site),
        // Upstream's kwok chart leaves template labels and overlays alone.
        (Provider::Kwok, Site::TemplateLabels | Site::NodeOverlayRequirement) => vec![],
        (Provider::Kwok, _) => vec![domain(site, kwok::GROUP, &list(KWOK_KEYS))],
    }
}

fn azure(site: Site) -> Vec<ValidationRule> {
    let mut rules = vec![
        domain(site, azure::GROUP, &format!("[ {} ]", quoted(AZURE_KEYS))),
        domain(site, "kubernetes.azure.com", &format!("[ {}, ]", quoted(AKS_KEYS))),
    ];
    rules.extend(AKS_LEGACY_KEYS.iter().map(|key| forbidden(site, key, '\'')));
    rules
}

/// Keys of a domain are forbidden but for those of `allowed`, a CEL list.
fn domain(site: Site, domain: &str, allowed: &str) -> ValidationRule {
    let message = format!("label domain \"{domain}\" is restricted");
    let x = variable(site);
    rule(
        site,
        message,
        &format!(r#"{x} in {allowed} || !{x}.find("^([^/]+)").endsWith("{domain}")"#),
    )
}

fn forbidden(site: Site, key: &str, quote: char) -> ValidationRule {
    let message = format!("label \"{key}\" is restricted");
    rule(site, message, &format!("{} != {quote}{key}{quote}", variable(site)))
}

fn rule(site: Site, message: String, condition: &str) -> ValidationRule {
    let rule = match site {
        Site::TemplateLabels => format!("self.all(x, {condition})"),
        _ => condition.to_owned(),
    };
    ValidationRule {
        message: Some(message),
        rule,
        ..ValidationRule::default()
    }
}

fn variable(site: Site) -> &'static str {
    match site {
        Site::TemplateLabels => "x",
        _ => "self",
    }
}

fn list<'a>(keys: impl IntoIterator<Item = &'a &'static str>) -> String {
    format!("[{}]", quoted(keys))
}

fn quoted<'a>(keys: impl IntoIterator<Item = &'a &'static str>) -> String {
    keys.into_iter()
        .map(|key| format!("\"{key}\""))
        .collect::<Vec<_>>()
        .join(", ")
}

const CORE_KEYS: &[&str] = &[labels::CAPACITY_TYPE, labels::NODEPOOL];

const KWOK_KEYS: &[&str] = &[
    kwok::NODE_CLASS,
    kwok::INSTANCE_CPU,
    kwok::INSTANCE_MEMORY,
    kwok::INSTANCE_FAMILY,
    kwok::INSTANCE_SIZE,
];

const AWS_RESERVATION_KEYS: &[&str] = &[
    aws::INSTANCE_TENANCY,
    aws::CAPACITY_RESERVATION_TYPE,
    aws::CAPACITY_RESERVATION_ID,
    aws::CAPACITY_RESERVATION_INTERRUPTIBLE,
];

const AWS_RESERVATION_KEYS_OF_LABELS: &[&str] = &[
    aws::INSTANCE_TENANCY,
    aws::CAPACITY_RESERVATION_TYPE,
    aws::CAPACITY_RESERVATION_ID,
    aws::CAPACITY_RESERVATION_INTERRUPTIBLE,
    aws::CAPACITY_RESERVATION_INTERRUPTIBLE,
];

const AWS_TYPE_KEYS: &[&str] = &[
    aws::NODE_CLASS,
    aws::INSTANCE_ENCRYPTION_IN_TRANSIT_SUPPORTED,
    aws::INSTANCE_CATEGORY,
    aws::INSTANCE_HYPERVISOR,
    aws::INSTANCE_FAMILY,
    aws::INSTANCE_GENERATION,
    aws::INSTANCE_LOCAL_NVME,
    aws::INSTANCE_SIZE,
    aws::INSTANCE_CPU,
    aws::INSTANCE_CPU_MANUFACTURER,
    aws::INSTANCE_CPU_SUSTAINED_CLOCK_SPEED_MHZ,
    aws::INSTANCE_MEMORY,
    aws::INSTANCE_EBS_BANDWIDTH,
    aws::INSTANCE_NETWORK_BANDWIDTH,
    aws::INSTANCE_GPU_NAME,
    aws::INSTANCE_GPU_MANUFACTURER,
    aws::INSTANCE_GPU_COUNT,
    aws::INSTANCE_GPU_MEMORY,
    aws::INSTANCE_ACCELERATOR_NAME,
    aws::INSTANCE_ACCELERATOR_MANUFACTURER,
    aws::INSTANCE_ACCELERATOR_COUNT,
    aws::INSTANCE_CAPABILITY_FLEX,
];

const AWS_PLACEMENT_KEYS: &[&str] = &[aws::PLACEMENT_GROUP_ID, aws::PLACEMENT_GROUP_PARTITION];

const AZURE_KEYS: &[&str] = &[
    azure::NODE_CLASS,
    azure::SKU_NAME,
    azure::SKU_FAMILY,
    azure::SKU_SERIES,
    azure::SKU_VERSION,
    azure::SKU_CPU,
    azure::SKU_MEMORY,
    azure::SKU_NETWORKING_ACCELERATED,
    azure::SKU_STORAGE_PREMIUM_CAPABLE,
    azure::SKU_STORAGE_ULTRA_SSD,
    azure::SKU_STORAGE_EPHEMERAL_OS_MAX_SIZE,
    azure::SKU_GPU_NAME,
    azure::SKU_GPU_MANUFACTURER,
    azure::SKU_GPU_COUNT,
    azure::PLACEMENT_SCOPE,
];

const AKS_KEYS: &[&str] = &[
    azure::AKS_MODE,
    azure::AKS_SCALE_SET_PRIORITY,
    azure::AKS_PRIORITY,
    azure::AKS_FIPS_ENABLED,
    azure::AKS_OS_SKU,
    azure::AKS_CLUSTER,
    azure::AKS_SKU_CPU,
    azure::AKS_SKU_MEMORY,
    azure::AKS_EBPF_DATAPLANE,
    azure::AKS_EBPF_HOST_ROUTING,
    azure::AKS_NETWORK_POLICY,
    azure::AKS_HOSTED_VM,
];

const AKS_LEGACY_KEYS: &[&str] = &[
    azure::LEGACY_AGENT_POOL,
    azure::LEGACY_STORAGE_PROFILE,
    azure::LEGACY_STORAGE_TIER,
    azure::LEGACY_ACCELERATOR,
];
