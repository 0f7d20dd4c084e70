//! Which labels users may put in NodePools, overlays and pods, given the providers at work.
//!
//! Upstream keeps these tables as globals that each provider extends at start-up. Here they are a value, so one
//! process can judge manifests for several providers.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use super::{
    ARCH, CAPACITY_TYPE, CAPACITY_TYPE_ON_DEMAND, CAPACITY_TYPE_RESERVED, CAPACITY_TYPE_SPOT, HOSTNAME, INSTANCE_TYPE,
    NODEPOOL, OS, REGION, WINDOWS_BUILD, ZONE, aws, azure, domain, kwok,
};
use crate::{karpenter::GROUP, provider::Provider};

/// Keys core gives a meaning to.
pub const WELL_KNOWN: &[&str] = &[
    NODEPOOL,
    ZONE,
    REGION,
    INSTANCE_TYPE,
    ARCH,
    OS,
    CAPACITY_TYPE,
    WINDOWS_BUILD,
];

/// Keys that tell the offerings of one instance type apart.
pub const WELL_KNOWN_FOR_OFFERINGS: &[&str] = &[ZONE, CAPACITY_TYPE];

/// Older words for well-known keys.
const ALIASES: &[(&str, &str)] = &[
    ("failure-domain.beta.kubernetes.io/zone", ZONE),
    ("failure-domain.beta.kubernetes.io/region", REGION),
    ("beta.kubernetes.io/arch", ARCH),
    ("beta.kubernetes.io/os", OS),
    ("beta.kubernetes.io/instance-type", INSTANCE_TYPE),
];

/// The tables for one set of providers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelRules {
    well_known: BTreeSet<Cow<'static, str>>,
    restricted_domains: BTreeSet<&'static str>,
    known_values: BTreeMap<&'static str, BTreeSet<&'static str>>,
    aliases: BTreeMap<&'static str, &'static str>,
    value_aliases: BTreeMap<(&'static str, &'static str), &'static str>,
    resources: BTreeSet<&'static str>,
}

/// A label key that users may not use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "using label {key} is not allowed as it might interfere with the internal provisioning logic; specify a well known label: [{}], or a custom label that does not use a restricted domain: [{}]",
    .well_known.join(" "),
    .restricted_domains.join(" ")
)]
pub struct RestrictedLabel {
    key: String,
    well_known: Vec<String>,
    restricted_domains: Vec<&'static str>,
}

impl LabelRules {
    /// The tables when these providers are at work. Without any, core's own.
    pub fn new(providers: &[Provider]) -> Self {
        let mut rules = Self {
            well_known: borrowed(WELL_KNOWN).collect(),
            restricted_domains: BTreeSet::from([GROUP]),
            known_values: BTreeMap::from([(
                CAPACITY_TYPE,
                BTreeSet::from([CAPACITY_TYPE_ON_DEMAND, CAPACITY_TYPE_SPOT, CAPACITY_TYPE_RESERVED]),
            )]),
            aliases: ALIASES.iter().copied().collect(),
            value_aliases: BTreeMap::new(),
            resources: BTreeSet::from(["cpu", "memory", "ephemeral-storage", "pods"]),
        };
        for provider in providers {
            rules.extend(*provider);
        }
        if *providers == [Provider::Azure] {
            // Azure sells no reserved capacity, which says nothing about a provider beside it.
            rules.known_values.insert(
                CAPACITY_TYPE,
                BTreeSet::from([CAPACITY_TYPE_ON_DEMAND, CAPACITY_TYPE_SPOT]),
            );
        }
        rules
    }

    fn extend(&mut self, provider: Provider) {
        match provider {
            Provider::Aws => {
                self.well_known.extend(borrowed(aws::WELL_KNOWN));
                self.restricted_domains.insert(aws::GROUP);
                self.known_values
                    .insert(aws::INSTANCE_TENANCY, BTreeSet::from(["dedicated", "default"]));
                self.aliases.insert(aws::EBS_CSI_ZONE, ZONE);
                self.resources.extend(aws::WELL_KNOWN_RESOURCES);
            }
            Provider::Azure => {
                self.well_known.extend(borrowed(azure::WELL_KNOWN));
                self.restricted_domains.insert(azure::GROUP);
                self.known_values.extend(azure_values());
                self.aliases.insert(azure::DISK_CSI_ZONE, ZONE);
                self.value_aliases.insert((ZONE, ""), azure::REGIONAL_ZONE);
            }
            Provider::Kwok => {
                self.well_known.extend(borrowed(kwok::WELL_KNOWN));
                self.restricted_domains.insert(kwok::GROUP);
            }
        }
    }

    /// These tables, with keys that a catalogue calls well-known beside those of the providers.
    #[must_use]
    pub fn with_well_known<'a>(mut self, keys: impl IntoIterator<Item = &'a str>) -> Self {
        let keys = keys.into_iter().map(|key| Cow::Owned(key.to_owned()));
        self.well_known.extend(keys);
        self
    }

    /// Whether a key has a meaning of its own, so that a node without it may still fit.
    pub fn is_well_known(&self, key: &str) -> bool {
        self.well_known.contains(key)
    }

    /// All well-known keys, in order.
    pub fn well_known(&self) -> impl Iterator<Item = &str> {
        self.well_known.iter().map(AsRef::as_ref)
    }

    /// Whether users may not use a key. Unlike the CRDs' rule, a domain counts only up to a dot.
    ///
    /// - a well-known key is free
    /// - a key of a restricted domain or of a sub-domain of one is restricted
    /// - `kubernetes.io/hostname` is restricted
    pub fn is_restricted(&self, key: &str) -> bool {
        !self.is_well_known(key) && (self.in_restricted_domain(domain(key)) || key == HOSTNAME)
    }

    fn in_restricted_domain(&self, domain: &str) -> bool {
        self.restricted_domains
            .iter()
            .any(|restricted| match domain.strip_suffix(restricted) {
                Some(prefix) => prefix.is_empty() || prefix.ends_with('.'),
                None => false,
            })
    }

    /// Refuses a restricted key in upstream's words.
    pub fn check(&self, key: &str) -> Result<(), RestrictedLabel> {
        if !self.is_restricted(key) {
            return Ok(());
        }
        Err(RestrictedLabel {
            key: key.to_owned(),
            well_known: self.well_known().map(str::to_owned).collect(),
            restricted_domains: self.restricted_domains.iter().copied().collect(),
        })
    }

    /// The key an alias stands for, or the key itself.
    pub fn normalize<'a>(&self, key: &'a str) -> &'a str {
        self.aliases.get(key).copied().unwrap_or(key)
    }

    /// The value an aliased value of a normalised key stands for, or the value itself.
    pub fn normalize_value<'a>(&self, key: &str, value: &'a str) -> &'a str {
        let aliased = self
            .value_aliases
            .iter()
            .find(|((of, from), _)| *of == key && *from == value);
        aliased.map_or(value, |(_, to)| to)
    }

    /// The only values that make sense for a key, if that is known.
    pub fn known_values(&self, key: &str) -> Option<&BTreeSet<&'static str>> {
        self.known_values.get(key)
    }

    /// Whether the providers state a resource themselves, so that an overlay may not.
    pub fn is_well_known_resource(&self, resource: &str) -> bool {
        self.resources.contains(resource)
    }
}

fn borrowed(keys: &'static [&'static str]) -> impl Iterator<Item = Cow<'static, str>> {
    keys.iter().copied().map(Cow::Borrowed)
}

fn azure_values() -> [(&'static str, BTreeSet<&'static str>); 10] {
    let boolean = || BTreeSet::from(["true", "false"]);
    let priority = || BTreeSet::from(["regular", "spot"]);
    [
        (azure::SKU_NETWORKING_ACCELERATED, boolean()),
        (azure::SKU_STORAGE_PREMIUM_CAPABLE, boolean()),
        (azure::SKU_STORAGE_ULTRA_SSD, boolean()),
        (azure::SKU_GPU_MANUFACTURER, BTreeSet::from(["nvidia", "amd"])),
        (azure::PLACEMENT_SCOPE, BTreeSet::from(["zonal", "regional"])),
        (azure::AKS_MODE, BTreeSet::from(["system", "user"])),
        (azure::AKS_SCALE_SET_PRIORITY, priority()),
        (azure::AKS_PRIORITY, priority()),
        (azure::AKS_OS_SKU, BTreeSet::from(["Ubuntu", "AzureLinux"])),
        (azure::AKS_FIPS_ENABLED, BTreeSet::from(["true"])),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_restricted_by_domain_and_by_name() {
        let core = LabelRules::new(&[]);
        let all = LabelRules::new(&Provider::ALL);
        let cases = [
            ("karpenter.sh/nodepool", false, false),
            ("karpenter.sh/capacity-type", false, false),
            ("karpenter.sh/registered", true, true),
            ("sub.karpenter.sh/x", true, true),
            ("fookarpenter.sh/x", false, false),
            ("kubernetes.io/hostname", true, true),
            ("kubernetes.io/anything", false, false),
            ("team", false, false),
            ("karpenter.k8s.aws/instance-cpu", false, false),
            ("karpenter.k8s.aws/ec2nodeclass", false, true),
            ("karpenter.azure.com/sku-cpu", false, false),
            ("karpenter.azure.com/sku-hyperv-generation", false, true),
            ("kubernetes.azure.com/ebpf-dataplane", false, false),
            ("karpenter.kwok.sh/instance-size", false, false),
            ("karpenter.kwok.sh/kwoknodeclass", false, true),
        ];
        for (key, by_core, by_all) in cases {
            assert_eq!(
                (core.is_restricted(key), all.is_restricted(key)),
                (by_core, by_all),
                "{key}"
            );
        }
    }

    #[test]
    fn keys_a_catalogue_calls_well_known_are_free_and_named_in_refusals() {
        let rules = LabelRules::new(&[Provider::Kwok]).with_well_known(["karpenter.kwok.sh/reservation-id"]);
        assert!(rules.is_well_known("karpenter.kwok.sh/reservation-id"));
        assert_eq!(rules.check("karpenter.kwok.sh/reservation-id"), Ok(()));
        let refusal = rules.check("karpenter.kwok.sh/other").unwrap_err().to_string();
        assert!(refusal.contains("karpenter.kwok.sh/reservation-id"), "{refusal}");
    }

    #[test]
    fn aliases_are_translated_for_the_providers_at_work() {
        let (core, all) = (LabelRules::new(&[]), LabelRules::new(&Provider::ALL));
        let cases = [
            ("failure-domain.beta.kubernetes.io/zone", ZONE, ZONE),
            ("failure-domain.beta.kubernetes.io/region", REGION, REGION),
            ("beta.kubernetes.io/arch", ARCH, ARCH),
            ("beta.kubernetes.io/os", OS, OS),
            ("beta.kubernetes.io/instance-type", INSTANCE_TYPE, INSTANCE_TYPE),
            ("topology.ebs.csi.aws.com/zone", "topology.ebs.csi.aws.com/zone", ZONE),
            (
                "topology.disk.csi.azure.com/zone",
                "topology.disk.csi.azure.com/zone",
                ZONE,
            ),
            ("team", "team", "team"),
        ];
        for (key, by_core, by_all) in cases {
            assert_eq!((core.normalize(key), all.normalize(key)), (by_core, by_all), "{key}");
        }
    }

    #[test]
    fn only_azure_has_a_word_for_no_zone() {
        assert_eq!(LabelRules::new(&[Provider::Azure]).normalize_value(ZONE, ""), "0");
        assert_eq!(LabelRules::new(&[Provider::Azure]).normalize_value(REGION, ""), "");
        assert_eq!(LabelRules::new(&[Provider::Aws]).normalize_value(ZONE, ""), "");
    }

    #[test]
    fn azure_alone_knows_no_reserved_capacity() {
        let values = |providers: &[Provider]| LabelRules::new(providers).known_values(CAPACITY_TYPE).cloned();
        assert_eq!(values(&[]), Some(BTreeSet::from(["on-demand", "reserved", "spot"])));
        assert_eq!(values(&[Provider::Azure]), Some(BTreeSet::from(["on-demand", "spot"])));
        assert_eq!(values(&Provider::ALL), values(&[]));
    }
}
