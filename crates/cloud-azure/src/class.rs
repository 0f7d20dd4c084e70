//! What a node class says, with what holds where it says nothing.

use api::{
    azure::{AKSNodeClass, FipsMode, GpuMode, ImageFamily, LocalDnsState},
    labels::azure::AKS_CLUSTER,
};
use runtime::settings::AzureSettings;

/// A class, asked for what follows from it.
#[derive(Clone, Copy)]
pub(crate) struct Class<'a>(pub(crate) &'a AKSNodeClass);

impl<'a> Class<'a> {
    pub(crate) fn name(self) -> &'a str {
        self.0.metadata.name.as_deref().unwrap_or_default()
    }

    pub(crate) fn os_disk_gb(self) -> i32 {
        self.0.spec.os_disk_size_gb.unwrap_or(128)
    }

    /// As the class writes it.
    pub(crate) fn family(self) -> &'a str {
        self.0.spec.image_family.as_ref().map_or("Ubuntu", ImageFamily::as_str)
    }

    pub(crate) fn is_azure_linux(self) -> bool {
        self.0.spec.image_family == Some(ImageFamily::AzureLinux)
    }

    /// `Ubuntu` or `AzureLinux`.
    pub(crate) fn os_sku(self) -> &'static str {
        if self.is_azure_linux() { "AzureLinux" } else { "Ubuntu" }
    }

    pub(crate) fn is_fips(self) -> bool {
        self.0.spec.fips_mode == Some(FipsMode::Fips)
    }

    pub(crate) fn gpu_mode(self) -> GpuMode {
        let gpu = self.0.spec.gpu.as_ref();
        gpu.and_then(|gpu| gpu.mode.clone()).unwrap_or(GpuMode::Driver)
    }

    pub(crate) fn has_encryption_at_host(self) -> bool {
        let security = self.0.spec.security.as_ref();
        security.and_then(|it| it.encryption_at_host) == Some(true)
    }

    /// Either part of it switches it on.
    pub(crate) fn is_trusted_launch(self) -> bool {
        let trusted = self.0.spec.security.as_ref().and_then(|it| it.trusted_launch.as_ref());
        trusted.is_some_and(|it| it.vtpm == Some(true) || it.secure_boot == Some(true))
    }

    /// As the status has it, which is where the modes are decided on.
    pub(crate) fn is_local_dns_enabled(self) -> bool {
        let status = self.0.status.as_ref();
        status.and_then(|it| it.local_dns_state.as_ref()) == Some(&LocalDnsState::Enabled)
    }

    /// Fetching images as they are read is asked for in so many words.
    pub(crate) fn is_streaming_asked(self) -> bool {
        self.0.spec.artifact_streaming.as_ref().and_then(|it| it.enabled) == Some(true)
    }

    /// The most pods of a node: what the class says, else what the network allows.
    pub(crate) fn max_pods(self, settings: &AzureSettings) -> i32 {
        let by_network = match (settings.network_plugin.as_str(), settings.network_plugin_mode.as_str()) {
            ("none", _) | ("azure", "overlay") => 250,
            ("azure", _) => 30,
            _ => 110,
        };
        self.0.spec.max_pods.unwrap_or(by_network)
    }

    /// The subnet of its nodes.
    pub(crate) fn subnet_id(self, settings: &'a AzureSettings) -> &'a str {
        self.0
            .spec
            .vnet_subnet_id
            .as_deref()
            .unwrap_or(&settings.vnet_subnet_id)
    }
}

/// The node resource group as the label `kubernetes.azure.com/cluster` has it.
pub(crate) fn cluster_label(group: &str) -> String {
    debug_assert!(AKS_CLUSTER.ends_with("/cluster"));
    let text: String = group
        .chars()
        .map(|c| if matches!(c, '(' | ')') { '-' } else { c })
        .take(63)
        .collect();
    match text.strip_suffix(['-', '_', '.']) {
        Some(rest) => format!("{rest}z"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(spec: &str) -> AKSNodeClass {
        serde_json::from_str(&format!(
            r#"{{"apiVersion":"karpenter.azure.com/v1beta1","kind":"AKSNodeClass","metadata":{{"name":"c"}},"spec":{spec}}}"#
        ))
        .unwrap()
    }

    #[test]
    fn max_pods_follow_the_network_unless_the_class_says() {
        let settings = |plugin: &str, mode: &str| AzureSettings {
            network_plugin: plugin.to_owned(),
            network_plugin_mode: mode.to_owned(),
            ..AzureSettings::default()
        };
        let unset = class("{}");
        let cases = [
            ("azure", "overlay", 250),
            ("azure", "", 30),
            ("none", "", 250),
            ("kubenet", "", 110),
        ];
        for (plugin, mode, pods) in cases {
            assert_eq!(Class(&unset).max_pods(&settings(plugin, mode)), pods, "{plugin} {mode}");
        }
        assert_eq!(Class(&class(r#"{"maxPods": 42}"#)).max_pods(&settings("azure", "")), 42);
    }

    #[test]
    fn either_part_of_trusted_launch_switches_it_on() {
        let trusted = |parts: &str| {
            let class = class(&format!(r#"{{"security":{{"trustedLaunch":{parts}}}}}"#));
            Class(&class).is_trusted_launch()
        };
        assert!(trusted(r#"{"vtpm":true}"#) && trusted(r#"{"secureBoot":true}"#));
        assert!(!trusted(r#"{"vtpm":false}"#) && !trusted("{}"));
    }

    #[test]
    fn a_resource_group_becomes_a_label() {
        assert_eq!(cluster_label("MC_rg_c_eastus"), "MC_rg_c_eastus");
        assert_eq!(cluster_label("MC_(rg)"), "MC_-rgz");
        let long = "a".repeat(62) + "-bc";
        assert_eq!(cluster_label(&long), "a".repeat(62) + "z");
    }
}
