//! What only the Azure provider reads: upstream's flags and the variables its `pkg/auth` reads, with their rules.

use std::{collections::BTreeMap, time::Duration};

use super::SettingsError;

/// What the Azure provider is told. Secrets are not printed.
#[derive(Clone, PartialEq)]
pub struct AzureSettings {
    /// `--cluster-name`
    pub cluster_name: String,
    /// `--cluster-endpoint`
    pub cluster_endpoint: String,
    /// `--cluster-ca-bundle`; empty: as this process trusts the API server
    pub cluster_ca_bundle: String,
    /// `--kubelet-bootstrap-token`
    pub kubelet_bootstrap_token: String,
    /// `--ssh-public-key`
    pub ssh_public_key: String,
    /// `--vnet-subnet-id`
    pub vnet_subnet_id: String,
    /// `--node-resource-group`
    pub node_resource_group: String,
    /// `--linux-admin-username`
    pub linux_admin_username: String,
    /// `--network-plugin`
    pub network_plugin: String,
    /// `--network-plugin-mode`
    pub network_plugin_mode: String,
    /// `--network-policy`
    pub network_policy: String,
    /// `--network-dataplane`
    pub network_dataplane: String,
    /// `--dns-service-ip`; empty: the Service kube-dns is asked
    pub dns_service_ip: String,
    /// `--vnet-guid`; empty: Azure is asked
    pub vnet_guid: String,
    /// `--node-identities`
    pub node_identities: Vec<String>,
    /// `--kubelet-identity-client-id`
    pub kubelet_identity_client_id: String,
    /// `--provision-mode`
    pub provision_mode: String,
    /// `--nodebootstrapping-server-url`
    pub node_bootstrapping_server_url: String,
    /// `--use-sig`
    pub use_sig: bool,
    /// `--sig-access-token-server-url`
    pub sig_access_token_server_url: String,
    /// `--sig-subscription-id`
    pub sig_subscription_id: String,
    /// `--node-osdisk-diskencryptionset-id`
    pub disk_encryption_set_id: String,
    /// `--manage-existing-aks-machines`
    pub manage_existing_aks_machines: bool,
    /// `--aks-machines-pool-name`
    pub aks_machines_pool_name: String,
    /// `--provider-batch-idle-duration`
    pub batch_idle_duration: Duration,
    /// `--provider-batch-max-duration`
    pub batch_max_duration: Duration,
    /// `--provider-batch-max-size`
    pub batch_max_size: i64,
    /// `--additional-tags`
    pub additional_tags: String,
    /// `--enable-azure-sdk-logging`
    pub is_sdk_logged: bool,
    /// `ARM_CLOUD`
    pub cloud: String,
    /// `AZURE_ENVIRONMENT_FILEPATH`
    pub environment_filepath: String,
    /// `LOCATION`
    pub location: String,
    /// `ARM_RESOURCE_GROUP`: the cluster's own
    pub resource_group: String,
    /// `AZURE_TENANT_ID`, else `ARM_TENANT_ID`
    pub tenant_id: String,
    /// `AZURE_SUBSCRIPTION_ID`, else `ARM_SUBSCRIPTION_ID`
    pub subscription_id: String,
    /// `SYSTEM_NAMESPACE`
    pub system_namespace: String,
    /// `AZURE_CLIENT_ID`
    pub client_id: String,
    /// `AZURE_FEDERATED_TOKEN_FILE`
    pub federated_token_file: String,
    /// `AZURE_AUTHORITY_HOST`
    pub authority_host: String,
    /// `ARM_ENDPOINT`; empty: the cloud's
    pub arm_endpoint: String,
    /// `ARM_STATIC_TOKEN`; for a double on this machine only
    pub static_token: String,
    /// `AZURE_PRICING_ENDPOINT`; empty: the public one, in the public cloud only
    pub pricing_endpoint: String,
}

impl Default for AzureSettings {
    fn default() -> Self {
        let none = String::new;
        Self {
            cluster_name: none(),
            cluster_endpoint: none(),
            cluster_ca_bundle: none(),
            kubelet_bootstrap_token: none(),
            ssh_public_key: none(),
            vnet_subnet_id: none(),
            node_resource_group: none(),
            linux_admin_username: "azureuser".to_owned(),
            network_plugin: "azure".to_owned(),
            network_plugin_mode: "overlay".to_owned(),
            network_policy: none(),
            network_dataplane: "cilium".to_owned(),
            dns_service_ip: none(),
            vnet_guid: none(),
            node_identities: Vec::new(),
            kubelet_identity_client_id: none(),
            provision_mode: "aksscriptless".to_owned(),
            node_bootstrapping_server_url: none(),
            use_sig: false,
            sig_access_token_server_url: none(),
            sig_subscription_id: none(),
            disk_encryption_set_id: none(),
            manage_existing_aks_machines: false,
            aks_machines_pool_name: none(),
            batch_idle_duration: Duration::from_secs(1),
            batch_max_duration: Duration::from_secs(5),
            batch_max_size: 50,
            additional_tags: none(),
            is_sdk_logged: true,
            cloud: none(),
            environment_filepath: none(),
            location: none(),
            resource_group: none(),
            tenant_id: none(),
            subscription_id: none(),
            system_namespace: none(),
            client_id: none(),
            federated_token_file: none(),
            authority_host: none(),
            arm_endpoint: none(),
            static_token: none(),
            pricing_endpoint: none(),
        }
    }
}

impl std::fmt::Debug for AzureSettings {
    /// Without tokens, keys and the addresses of services that hand them out.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AzureSettings")
            .field("cluster_name", &self.cluster_name)
            .field("cluster_endpoint", &self.cluster_endpoint)
            .field("vnet_subnet_id", &self.vnet_subnet_id)
            .field("node_resource_group", &self.node_resource_group)
            .field("subscription_id", &self.subscription_id)
            .field("location", &self.location)
            .field("provision_mode", &self.provision_mode)
            .field("network_plugin", &self.network_plugin)
            .field("network_plugin_mode", &self.network_plugin_mode)
            .field("network_policy", &self.network_policy)
            .field("network_dataplane", &self.network_dataplane)
            .field("use_sig", &self.use_sig)
            .finish_non_exhaustive()
    }
}

/// How VMs come to be: upstream's words.
const PROVISION_MODES: [&str; 4] = [
    "aksscriptless",
    "bootstrappingclient",
    "aksmachineapi",
    "aksmachineapiheaderbatch",
];

impl AzureSettings {
    /// Whether anything says that this is Azure, as Karpenter's Deployment for AKS does.
    pub fn is_told(&self) -> bool {
        !self.subscription_id.is_empty() || !self.node_resource_group.is_empty()
    }

    /// The tags of every resource, besides a class's.
    pub fn extra_tags(&self) -> Result<BTreeMap<String, String>, SettingsError> {
        let refuse = |text: String| Err(SettingsError::Provider(text));
        let mut tags: BTreeMap<String, String> = BTreeMap::new();
        for pair in self.additional_tags.split(',').filter(|pair| !pair.trim().is_empty()) {
            let Some((key, value)) = pair.split_once('=') else {
                return refuse(format!("additional-tags: \"{pair}\" is not of the form key=value"));
            };
            let (key, value) = (key.trim(), value.trim());
            if key.is_empty() || key.contains(['<', '>', '%', '&', '\\', '?', '/']) {
                return refuse(format!(
                    "additional-tags: key \"{key}\" is empty or has one of < > % & \\ ? /"
                ));
            }
            if tags.keys().any(|known| known.eq_ignore_ascii_case(key)) {
                return refuse(format!(
                    "additional-tags: key \"{key}\" is given twice (keys are unique ignoring case)"
                ));
            }
            if key.chars().count() > 512 || value.chars().count() > 256 {
                return refuse(format!(
                    "additional-tags: \"{key}\" is too long: keys have at most 512 characters and values 256"
                ));
            }
            tags.insert(key.to_owned(), value.to_owned());
        }
        Ok(tags)
    }

    /// Refuses what upstream refuses. What is missing is only asked for where Azure is the cloud: see
    /// [`AzureSettings::require`].
    pub(super) fn validate(&self) -> Result<(), SettingsError> {
        let refuse = |text: String| Err(SettingsError::Provider(text));
        if !self.is_told() {
            return Ok(());
        }
        let known = |flag: &str, value: &str, choices: &[&str]| {
            if choices.contains(&value) {
                return Ok(());
            }
            refuse(format!(
                "{flag} {value} is invalid; it is one of {}",
                choices.join(", ")
            ))
        };
        known("provision-mode", &self.provision_mode, &PROVISION_MODES)?;
        known("network-plugin", &self.network_plugin, &["azure", "none"])?;
        known("network-plugin-mode", &self.network_plugin_mode, &["overlay", ""])?;
        known("network-dataplane", &self.network_dataplane, &["azure", "cilium", ""])?;
        if self.network_plugin == "none" && !self.network_plugin_mode.is_empty() {
            return refuse("network-plugin-mode cannot be set when network-plugin is none".to_owned());
        }
        for (flag, value) in [
            ("vnet-guid", &self.vnet_guid),
            ("kubelet-identity-client-id", &self.kubelet_identity_client_id),
        ] {
            if !value.is_empty() && !is_uuid(value) {
                return refuse(format!("{flag} {value} is malformed; it is a UUID"));
            }
        }
        let name = &self.linux_admin_username;
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if name.len() > 32 || !name.starts_with(|c: char| c.is_ascii_alphabetic()) || !name.chars().all(is_part) {
            return refuse(format!(
                "linux-admin-username {name} is malformed; it begins with a letter and has at most 32 letters, digits, - and _"
            ));
        }
        if !self.dns_service_ip.is_empty() && self.dns_service_ip.parse::<std::net::IpAddr>().is_err() {
            return refuse(format!(
                "dns-service-ip {} is invalid; it is an address",
                self.dns_service_ip
            ));
        }
        let key = &self.disk_encryption_set_id;
        if !key.is_empty() && !is_disk_encryption_set(key) {
            return refuse(format!(
                "node-osdisk-diskencryptionset-id {key} is invalid; it is of the form \
                 /subscriptions/S/resourceGroups/G/providers/Microsoft.Compute/diskEncryptionSets/NAME"
            ));
        }
        if self.batch_max_duration < self.batch_idle_duration {
            return refuse("provider-batch-max-duration must not be less than provider-batch-idle-duration".to_owned());
        }
        if !(1..=50).contains(&self.batch_max_size) {
            return refuse("provider-batch-max-size must be between 1 and 50".to_owned());
        }
        self.extra_tags().map(drop)
    }

    /// Refuses to go on without what every launch needs.
    pub fn require(&self) -> Result<(), SettingsError> {
        let needed = [
            ("cluster-name", "CLUSTER_NAME", &self.cluster_name),
            ("cluster-endpoint", "CLUSTER_ENDPOINT", &self.cluster_endpoint),
            (
                "kubelet-bootstrap-token",
                "KUBELET_BOOTSTRAP_TOKEN",
                &self.kubelet_bootstrap_token,
            ),
            ("ssh-public-key", "SSH_PUBLIC_KEY", &self.ssh_public_key),
            ("vnet-subnet-id", "VNET_SUBNET_ID", &self.vnet_subnet_id),
            (
                "node-resource-group",
                "AZURE_NODE_RESOURCE_GROUP",
                &self.node_resource_group,
            ),
            ("subscription-id", "ARM_SUBSCRIPTION_ID", &self.subscription_id),
            ("location", "LOCATION", &self.location),
        ];
        let missing: Vec<String> = needed
            .iter()
            .filter(|(_, _, value)| value.is_empty())
            .map(|(flag, variable, _)| format!("missing field, {flag}: set {variable}"))
            .collect();
        if !missing.is_empty() {
            return Err(SettingsError::Provider(missing.join("; ")));
        }
        self.require_of_mode()?;
        let is_token_needed = !self.makes_aks_machines();
        let needed = [
            (
                "sig-subscription-id",
                "SIG_SUBSCRIPTION_ID",
                &self.sig_subscription_id,
                true,
            ),
            (
                "sig-access-token-server-url",
                "SIG_ACCESS_TOKEN_SERVER_URL",
                &self.sig_access_token_server_url,
                // AKS reads the images of its own machines.
                is_token_needed,
            ),
        ];
        for (flag, variable, value, is_needed) in needed {
            if self.use_sig && is_needed && value.is_empty() {
                let text = format!("use-sig is set, but {flag} is not: set {variable}");
                return Err(SettingsError::Provider(text));
            }
        }
        Ok(())
    }

    /// Whether AKS makes machines for us.
    fn makes_aks_machines(&self) -> bool {
        self.provision_mode.starts_with("aksmachineapi")
    }

    /// Refuses to go on without what the mode needs.
    fn require_of_mode(&self) -> Result<(), SettingsError> {
        let mode = self.provision_mode.as_str();
        let refuse = |flag: &str, variable: &str| {
            let text = format!("{flag} is required when provision-mode is {mode}: set {variable}");
            Err(SettingsError::Provider(text))
        };
        let speaks_to_aks = mode == "bootstrappingclient" || self.makes_aks_machines();
        if mode == "bootstrappingclient" && self.node_bootstrapping_server_url.is_empty() {
            return refuse("nodebootstrapping-server-url", "NODEBOOTSTRAPPING_SERVER_URL");
        }
        if self.makes_aks_machines() && self.aks_machines_pool_name.is_empty() {
            return refuse("aks-machines-pool-name", "AKS_MACHINES_POOL_NAME");
        }
        if self.makes_aks_machines() && !self.use_sig {
            return refuse("use-sig", "USE_SIG to true");
        }
        if speaks_to_aks && self.resource_group.is_empty() {
            return refuse("the resource group of the cluster", "ARM_RESOURCE_GROUP");
        }
        if self.manage_existing_aks_machines
            && !self.aks_machines_pool_name.is_empty()
            && self.resource_group.is_empty()
        {
            let text = "manage-existing-aks-machines needs the resource group of the cluster: set ARM_RESOURCE_GROUP";
            return Err(SettingsError::Provider(text.to_owned()));
        }
        Ok(())
    }
}

fn is_disk_encryption_set(id: &str) -> bool {
    let parts: Vec<&str> = id.split('/').collect();
    let [
        "",
        subscriptions,
        subscription,
        groups,
        group,
        providers,
        provider,
        kind,
        name,
    ] = parts.as_slice()
    else {
        return false;
    };
    let words = [
        (subscriptions, "subscriptions"),
        (groups, "resourceGroups"),
        (providers, "providers"),
        (provider, "Microsoft.Compute"),
        (kind, "diskEncryptionSets"),
    ];
    let is_spelt = words.iter().all(|(found, word)| found.eq_ignore_ascii_case(word));
    is_spelt && [subscription, group, name].iter().all(|value| !value.is_empty())
}

fn is_uuid(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    lengths == [8, 4, 4, 4, 12] && parts.iter().all(|part| part.chars().all(|c| c.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use crate::Settings;

    fn parsed(variables: &[(&str, &str)]) -> Result<Settings, String> {
        let find = |name: &str| {
            variables
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| (*value).to_owned())
        };
        Settings::parse(std::iter::empty(), find)
            .map(|(settings, _)| settings)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn upstreams_variables_are_read() {
        let settings = parsed(&[
            ("ARM_SUBSCRIPTION_ID", "sub"),
            ("CLUSTER_NAME", "c"),
            ("AZURE_NODE_RESOURCE_GROUP", "MC_rg"),
            ("NODE_IDENTITIES", "/a,/b"),
            ("USE_SIG", "true"),
        ])
        .unwrap();
        let azure = &settings.azure;
        assert_eq!(
            (azure.subscription_id.as_str(), azure.cluster_name.as_str()),
            ("sub", "c")
        );
        assert_eq!(
            (azure.node_identities.len(), azure.use_sig, azure.is_told()),
            (2, true, true)
        );
        assert_eq!(
            (azure.network_plugin.as_str(), azure.network_dataplane.as_str()),
            ("azure", "cilium")
        );
        assert!(!parsed(&[]).unwrap().azure.is_told());
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let told = ("ARM_SUBSCRIPTION_ID", "sub");
        let cases = [
            (("PROVISION_MODE", "vmss"), "provision-mode vmss is invalid"),
            (
                ("NETWORK_PLUGIN", "none"),
                "network-plugin-mode cannot be set when network-plugin is none",
            ),
            (("VNET_GUID", "x"), "vnet-guid x is malformed"),
            (("LINUX_ADMIN_USERNAME", "1x"), "linux-admin-username 1x is malformed"),
            (("ADDITIONAL_TAGS", "a=1,A=2"), "given twice"),
            (("ADDITIONAL_TAGS", "a/b=1"), "has one of"),
            (("PROVIDER_BATCH_MAX_SIZE", "51"), "between 1 and 50"),
            (("PROVIDER_BATCH_MAX_DURATION", "100ms"), "must not be less than"),
            (
                ("KUBELET_IDENTITY_CLIENT_ID", "x"),
                "kubelet-identity-client-id x is malformed",
            ),
            (("NETWORK_PLUGIN_MODE", "x"), "network-plugin-mode x is invalid"),
            (("NETWORK_PLUGIN", ""), "network-plugin  is invalid"),
            (("NETWORK_DATAPLANE", "x"), "network-dataplane x is invalid"),
            (("DNS_SERVICE_IP", "x"), "dns-service-ip x is invalid"),
            (("LINUX_ADMIN_USERNAME", "a$b"), "linux-admin-username a$b is malformed"),
            (("ADDITIONAL_TAGS", "a"), "is not of the form key=value"),
            (
                ("LINUX_ADMIN_USERNAME", "an-administrator-with-a-long-name"),
                "is malformed",
            ),
            (
                (
                    "NODE_OSDISK_DISKENCRYPTIONSET_ID",
                    "/x/s/resourceGroups/g/providers/Microsoft.Compute/diskEncryptionSets/d",
                ),
                "is invalid",
            ),
            (
                (
                    "NODE_OSDISK_DISKENCRYPTIONSET_ID",
                    "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/diskEncryptionSets/d",
                ),
                "is invalid",
            ),
            (
                (
                    "NODE_OSDISK_DISKENCRYPTIONSET_ID",
                    "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/d",
                ),
                "is invalid",
            ),
            (
                (
                    "NODE_OSDISK_DISKENCRYPTIONSET_ID",
                    "/subscriptions/s/resourceGroups//providers/Microsoft.Compute/diskEncryptionSets/d",
                ),
                "is invalid",
            ),
            (
                (
                    "NODE_OSDISK_DISKENCRYPTIONSET_ID",
                    "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/diskEncryptionSets/",
                ),
                "is invalid",
            ),
            (
                ("NODE_OSDISK_DISKENCRYPTIONSET_ID", "/a/b"),
                "node-osdisk-diskencryptionset-id /a/b is invalid",
            ),
            (
                (
                    "NODE_OSDISK_DISKENCRYPTIONSET_ID",
                    "/subscriptions//resourceGroups/g/providers/Microsoft.Compute/diskEncryptionSets/d",
                ),
                "is invalid",
            ),
        ];
        for (variable, words) in cases {
            let refused = parsed(&[told, variable]).unwrap_err();
            assert!(refused.contains(words), "{refused}");
        }
    }

    #[test]
    fn what_is_right_is_taken() {
        let long = format!("{}={}", "k".repeat(512), "v".repeat(256));
        let cases = [
            ("NETWORK_PLUGIN_MODE", ""),
            ("LINUX_ADMIN_USERNAME", "an-admin_1"),
            ("ADDITIONAL_TAGS", long.as_str()),
            (
                "NODE_OSDISK_DISKENCRYPTIONSET_ID",
                "/subscriptions/s/resourcegroups/g/providers/microsoft.compute/diskencryptionsets/d",
            ),
            ("MANAGE_EXISTING_AKS_MACHINES", "true"),
            ("PROVISION_MODE", "aksmachineapi"),
            ("PROVISION_MODE", "aksmachineapiheaderbatch"),
        ];
        for variable in cases {
            assert!(
                parsed(&[("ARM_SUBSCRIPTION_ID", "sub"), variable]).is_ok(),
                "{variable:?}"
            );
        }
        for (key, value) in [(513, 1), (1, 257)] {
            let too_long = format!("{}={}", "k".repeat(key), "v".repeat(value));
            assert!(parsed(&[("ARM_SUBSCRIPTION_ID", "sub"), ("ADDITIONAL_TAGS", &too_long)]).is_err());
        }
        let none = [("NETWORK_PLUGIN", "none"), ("NETWORK_PLUGIN_MODE", "")];
        let settings = parsed(&[&none[..], &[("ARM_SUBSCRIPTION_ID", "sub")]].concat()).unwrap();
        assert_eq!(settings.azure.network_plugin, "none");
        let defaults = parsed(&[("ARM_SUBSCRIPTION_ID", "sub")]).unwrap().azure;
        assert_eq!(
            (defaults.network_plugin.as_str(), defaults.network_plugin_mode.as_str()),
            ("azure", "overlay")
        );
        assert!(!defaults.manage_existing_aks_machines && defaults.disk_encryption_set_id.is_empty());
    }

    #[test]
    fn what_is_missing_is_named_with_the_variable_that_sets_it() {
        let nothing = parsed(&[("ARM_SUBSCRIPTION_ID", "sub")]).unwrap().azure;
        let refused = nothing.require().unwrap_err().to_string();
        assert!(
            refused.contains("set CLUSTER_NAME") && refused.contains("set KUBELET_BOOTSTRAP_TOKEN"),
            "{refused}"
        );
        let settings = parsed(&[("ARM_SUBSCRIPTION_ID", "sub"), ("CLUSTER_NAME", "c")]).unwrap();
        let refused = settings.azure.require().unwrap_err().to_string();
        for variable in [
            "CLUSTER_ENDPOINT",
            "SSH_PUBLIC_KEY",
            "VNET_SUBNET_ID",
            "AZURE_NODE_RESOURCE_GROUP",
            "LOCATION",
        ] {
            assert!(refused.contains(variable), "{refused}");
        }
        assert!(!refused.contains("CLUSTER_NAME"), "{refused}");
    }

    #[test]
    fn each_mode_names_what_it_cannot_do_without() {
        let complete = [
            ("ARM_SUBSCRIPTION_ID", "sub"),
            ("CLUSTER_NAME", "c"),
            ("CLUSTER_ENDPOINT", "https://c"),
            ("KUBELET_BOOTSTRAP_TOKEN", "a.b"),
            ("SSH_PUBLIC_KEY", "k"),
            ("VNET_SUBNET_ID", "/s"),
            ("AZURE_NODE_RESOURCE_GROUP", "MC_rg"),
            ("LOCATION", "eastus"),
        ];
        let require = |more: &[(&'static str, &'static str)]| {
            let all: Vec<_> = complete.iter().chain(more).copied().collect();
            parsed(&all).unwrap().azure.require().map_err(|error| error.to_string())
        };
        let group = ("ARM_RESOURCE_GROUP", "rg");
        let server = ("NODEBOOTSTRAPPING_SERVER_URL", "nbs");
        let boots = ("PROVISION_MODE", "bootstrappingclient");
        assert!(
            require(&[boots, group])
                .unwrap_err()
                .contains("set NODEBOOTSTRAPPING_SERVER_URL")
        );
        assert!(
            require(&[boots, server])
                .unwrap_err()
                .contains("set ARM_RESOURCE_GROUP")
        );
        assert_eq!(require(&[boots, server, group]), Ok(()));
        for mode in ["aksmachineapi", "aksmachineapiheaderbatch"] {
            let mode = ("PROVISION_MODE", mode);
            let pool = ("AKS_MACHINES_POOL_NAME", "machines");
            let (sig, of) = (("USE_SIG", "true"), ("SIG_SUBSCRIPTION_ID", "s"));
            assert!(
                require(&[mode, group, sig, of])
                    .unwrap_err()
                    .contains("set AKS_MACHINES_POOL_NAME")
            );
            assert!(
                require(&[mode, group, pool])
                    .unwrap_err()
                    .contains("set USE_SIG to true")
            );
            assert!(
                require(&[mode, group, pool, sig])
                    .unwrap_err()
                    .contains("set SIG_SUBSCRIPTION_ID")
            );
            // AKS reads the images itself: nobody has to give tokens for them.
            assert_eq!(require(&[mode, group, pool, sig, of]), Ok(()));
        }
        let sig = [("USE_SIG", "true"), ("SIG_SUBSCRIPTION_ID", "s")];
        assert!(require(&sig).unwrap_err().contains("set SIG_ACCESS_TOKEN_SERVER_URL"));
    }

    #[test]
    fn secrets_are_not_printed() {
        let settings = parsed(&[("KUBELET_BOOTSTRAP_TOKEN", "hush.hush"), ("ARM_STATIC_TOKEN", "psst")]).unwrap();
        let printed = format!("{:?}", settings.azure);
        assert!(!printed.contains("hush") && !printed.contains("psst"), "{printed}");
    }
}
