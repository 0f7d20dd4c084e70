//! What does a machine run when it boots? The variables of AKS's provisioning scripts, which are part of its images, and
//! then those scripts.
//!
//! The names and most values are the contract between node images and whoever provisions them: what a script does not
//! find is unset, and some of them then fail without a word.

use std::collections::BTreeMap;

use api::azure::{AKSNodeClass, GpuMode};
use base64::{Engine, engine::general_purpose::STANDARD};
use model::object::Taint;
use runtime::settings::AzureSettings;

use super::{Chosen, gpu_driver, kubelet::Kubelet};
use crate::{
    class::Class,
    cluster::{Cluster, SecurityGroup},
    ids::SubnetId,
    offers::SizeRecord,
    version,
};

const MIRROR: &str = "https://acs-mirror.azureedge.net";

/// Kernel settings of every node.
const SYSCTLS: &str = "net.ipv4.tcp_retries2=8\n\
    net.core.message_burst=80\n\
    net.core.message_cost=40\n\
    net.core.somaxconn=16384\n\
    net.ipv4.tcp_max_syn_backlog=16384\n\
    net.ipv4.neigh.default.gc_thresh1=4096\n\
    net.ipv4.neigh.default.gc_thresh2=8192\n\
    net.ipv4.neigh.default.gc_thresh3=16384\n";

/// What a machine is told.
pub(crate) struct Bootstrap<'a> {
    pub(crate) class: &'a AKSNodeClass,
    pub(crate) chosen: &'a Chosen,
    pub(crate) record: &'a SizeRecord,
    pub(crate) kubernetes: &'a str,
    pub(crate) labels: &'a BTreeMap<String, String>,
    pub(crate) taints: &'a [Taint],
    pub(crate) settings: &'a AzureSettings,
    pub(crate) cluster: &'a Cluster,
    pub(crate) security_group: &'a SecurityGroup,
}

/// How a machine boots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Boot {
    /// In base64, as a machine takes it.
    pub(crate) custom_data: String,
    /// The command of an extension that runs once the machine is there; none where custom data does everything.
    pub(crate) cse: Option<String>,
}

/// A machine whose script does everything.
pub(crate) fn scripted(bootstrap: &Bootstrap<'_>) -> Boot {
    Boot {
        custom_data: STANDARD.encode(script(bootstrap)),
        cse: None,
    }
}

fn script(bootstrap: &Bootstrap<'_>) -> String {
    let mut script = String::from(
        "#!/bin/bash\n\
         # Everything set here is for the provisioning scripts of the image.\n\
         set -o allexport\n\
         # They wait for these two, which cloud-init's own custom data would bring.\n\
         echo '#EOF' >> /opt/azure/manifest.json\n\
         mkdir -p /var/log/azure/Microsoft.Azure.Extensions.CustomScript/events\n\
         echo \"$(date),$(hostname)\" > /var/log/azure/cluster-provision-cse-output.log\n\
         tries=0\n\
         until grep -Fq EOF /opt/azure/containers/provision.sh; do\n\
         tries=$((tries + 1))\n\
         if [ \"$tries\" -ge 1200 ]; then exit 100; fi\n\
         sleep 1\n\
         done\n",
    );
    for (name, value) in variables(bootstrap) {
        script.push_str(&format!("{name}={}\n", quoted(&value)));
    }
    script.push_str("/usr/bin/nohup /bin/bash -c \"/bin/bash /opt/azure/containers/provision_start.sh\"\n");
    script
}

/// For a shell. Values come from node classes too, and must not become commands.
fn quoted(value: &str) -> String {
    let mut text = String::from("\"");
    for c in value.chars() {
        if matches!(c, '"' | '\\' | '$' | '`') {
            text.push('\\');
        }
        text.push(c);
    }
    text.push('"');
    text
}

/// Variables that are the same for every node.
const FIXED: &[(&str, &str)] = &[
    ("MOBY_VERSION", ""),
    ("HYPERKUBE_URL", ""),
    ("CUSTOM_KUBE_BINARY_URL", ""),
    ("KUBEPROXY_URL", ""),
    ("APISERVER_PUBLIC_KEY", ""),
    ("VM_TYPE", "standard"),
    ("PRIMARY_AVAILABILITY_SET", ""),
    ("PRIMARY_SCALE_SET", ""),
    ("SERVICE_PRINCIPAL_CLIENT_ID", "msi"),
    ("CLOUDPROVIDER_BACKOFF", "true"),
    ("CLOUDPROVIDER_BACKOFF_MODE", "v2"),
    ("CLOUDPROVIDER_BACKOFF_RETRIES", "6"),
    ("CLOUDPROVIDER_BACKOFF_EXPONENT", "0"),
    ("CLOUDPROVIDER_BACKOFF_DURATION", "5"),
    ("CLOUDPROVIDER_BACKOFF_JITTER", "0"),
    ("CLOUDPROVIDER_RATELIMIT", "true"),
    ("CLOUDPROVIDER_RATELIMIT_QPS", "10"),
    ("CLOUDPROVIDER_RATELIMIT_QPS_WRITE", "10"),
    ("CLOUDPROVIDER_RATELIMIT_BUCKET", "100"),
    ("CLOUDPROVIDER_RATELIMIT_BUCKET_WRITE", "100"),
    ("LOAD_BALANCER_DISABLE_OUTBOUND_SNAT", "false"),
    ("USE_MANAGED_IDENTITY_EXTENSION", "true"),
    ("USE_INSTANCE_METADATA", "true"),
    ("LOAD_BALANCER_SKU", "Standard"),
    ("EXCLUDE_MASTER_FROM_STANDARD_LB", "true"),
    ("MAXIMUM_LOADBALANCER_RULE_COUNT", "250"),
    ("CONTAINER_RUNTIME", "containerd"),
    ("CLI_TOOL", "ctr"),
    ("CONTAINERD_DOWNLOAD_URL_BASE", ""),
    ("NETWORK_MODE", ""),
    ("IS_VHD", "true"),
    ("SGX_NODE", "false"),
    ("MIG_NODE", "false"),
    ("ENABLE_GPU_DEVICE_PLUGIN_IF_NEEDED", "false"),
    ("TELEPORTD_PLUGIN_DOWNLOAD_URL", ""),
    ("CONTAINERD_VERSION", ""),
    ("CONTAINERD_PACKAGE_URL", ""),
    ("RUNC_VERSION", ""),
    ("RUNC_PACKAGE_URL", ""),
    ("ENABLE_HOSTS_CONFIG_AGENT", "false"),
    ("DISABLE_SSH", "false"),
    ("NEEDS_CONTAINERD", "true"),
    ("TELEPORT_ENABLED", "false"),
    ("SHOULD_CONFIGURE_HTTP_PROXY", "false"),
    ("SHOULD_CONFIGURE_HTTP_PROXY_CA", "false"),
    ("HTTP_PROXY_TRUSTED_CA", ""),
    ("SHOULD_CONFIGURE_CUSTOM_CA_TRUST", "false"),
    ("CUSTOM_CA_TRUST_COUNT", "0"),
    ("IS_KRUSTLET", "false"),
    ("GPU_NEEDS_FABRIC_MANAGER", "false"),
    ("NEEDS_DOCKER_LOGIN", "false"),
    ("IPV6_DUAL_STACK_ENABLED", "false"),
    (
        "OUTBOUND_COMMAND",
        "curl -v --insecure --proxy-insecure https://mcr.microsoft.com/v2/",
    ),
    ("ENABLE_UNATTENDED_UPGRADES", "false"),
    ("ENSURE_NO_DUPE_PROMISCUOUS_BRIDGE", "false"),
    ("SHOULD_CONFIG_SWAP_FILE", "false"),
    ("SHOULD_CONFIG_TRANSPARENT_HUGE_PAGE", "false"),
    ("TARGET_CLOUD", "AzurePublicCloud"),
    ("TARGET_ENVIRONMENT", "AzurePublicCloud"),
    ("CUSTOM_ENV_JSON", ""),
    ("IS_CUSTOM_CLOUD", "false"),
    ("CSE_HELPERS_FILEPATH", "/opt/azure/containers/provision_source.sh"),
    (
        "CSE_DISTRO_HELPERS_FILEPATH",
        "/opt/azure/containers/provision_source_distro.sh",
    ),
    ("CSE_INSTALL_FILEPATH", "/opt/azure/containers/provision_installs.sh"),
    (
        "CSE_DISTRO_INSTALL_FILEPATH",
        "/opt/azure/containers/provision_installs_distro.sh",
    ),
    ("CSE_CONFIG_FILEPATH", "/opt/azure/containers/provision_configs.sh"),
    ("AZURE_PRIVATE_REGISTRY_SERVER", ""),
    ("HAS_CUSTOM_SEARCH_DOMAIN", "false"),
    (
        "CUSTOM_SEARCH_DOMAIN_FILEPATH",
        "/opt/azure/containers/setup-custom-search-domains.sh",
    ),
    ("HTTP_PROXY_URLS", ""),
    ("HTTPS_PROXY_URLS", ""),
    ("NO_PROXY_URLS", ""),
    ("ENABLE_TLS_BOOTSTRAPPING", "true"),
    ("ENABLE_SECURE_TLS_BOOTSTRAPPING", "false"),
    ("ENABLE_KUBELET_SERVING_CERTIFICATE_ROTATION", "false"),
    ("DHCPV6_SERVICE_FILEPATH", ""),
    ("DHCPV6_CONFIG_FILEPATH", ""),
    ("THP_ENABLED", ""),
    ("THP_DEFRAG", ""),
    ("KUBELET_CLIENT_CONTENT", ""),
    ("KUBELET_CLIENT_CERT_CONTENT", ""),
    ("KUBELET_CONFIG_FILE_ENABLED", "false"),
    ("KUBELET_CONFIG_FILE_CONTENT", ""),
    ("SWAP_FILE_SIZE_MB", "0"),
    ("GPU_INSTANCE_PROFILE", ""),
    ("CUSTOM_SEARCH_DOMAIN_NAME", ""),
    ("CUSTOM_SEARCH_REALM_USER", ""),
    ("CUSTOM_SEARCH_REALM_PASSWORD", ""),
    ("MESSAGE_OF_THE_DAY", ""),
    ("HAS_KUBELET_DISK_TYPE", "false"),
    ("NEEDS_CGROUPV2", "true"),
    ("AZURE_ENVIRONMENT_FILEPATH", ""),
    ("IS_KATA", "false"),
    ("MCR_REPOSITORY_BASE", "mcr.microsoft.com"),
    ("ENABLE_IMDS_RESTRICTION", "false"),
    ("INSERT_IMDS_RESTRICTION_RULE_TO_MANGLE_TABLE", "false"),
    ("CSE_TIMEOUT", "15m"),
];

fn variables(it: &Bootstrap<'_>) -> BTreeMap<&'static str, String> {
    let mut all: BTreeMap<&'static str, String> =
        FIXED.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    all.extend(of_cluster(it));
    all.extend(of_network(it));
    all.extend(of_gpu(it));
    all.extend(of_kubernetes(it));
    all
}

fn of_cluster(it: &Bootstrap<'_>) -> [(&'static str, String); 10] {
    let settings = it.settings;
    [
        ("ADMINUSER", settings.linux_admin_username.clone()),
        ("TENANT_ID", settings.tenant_id.clone()),
        ("SUBSCRIPTION_ID", settings.subscription_id.clone()),
        ("RESOURCE_GROUP", settings.node_resource_group.clone()),
        ("LOCATION", settings.location.clone()),
        ("USER_ASSIGNED_IDENTITY_ID", settings.kubelet_identity_client_id.clone()),
        ("API_SERVER_NAME", host(&settings.cluster_endpoint).to_owned()),
        ("TLS_BOOTSTRAP_TOKEN", settings.kubelet_bootstrap_token.clone()),
        ("KUBE_CA_CRT", it.cluster.ca_bundle.clone()),
        ("SERVICE_PRINCIPAL_FILE_CONTENT", STANDARD.encode("msi")),
    ]
}

fn of_network(it: &Bootstrap<'_>) -> Vec<(&'static str, String)> {
    let settings = it.settings;
    let subnet = SubnetId::parse(Class(it.class).subnet_id(settings));
    let (group, vnet, name) = subnet.map(|it| (it.group, it.vnet, it.name)).unwrap_or_default();
    let is_cilium_node_subnet = settings.network_dataplane == "cilium" && settings.network_plugin_mode.is_empty();
    // Who gives pods their addresses comes as a DaemonSet, but for the plain plugin, which the scripts install.
    let is_plain =
        settings.network_plugin == "azure" && settings.network_plugin_mode.is_empty() && !is_cilium_node_subnet;
    let arch = it.record.machine().arch;
    vec![
        ("SUBNET", name),
        ("VIRTUAL_NETWORK", vnet),
        ("VIRTUAL_NETWORK_RESOURCE_GROUP", group),
        ("NETWORK_SECURITY_GROUP", it.security_group.name.clone()),
        ("ROUTE_TABLE", it.security_group.route_table()),
        ("NETWORK_PLUGIN", if is_plain { "azure" } else { "none" }.to_owned()),
        ("NETWORK_POLICY", settings.network_policy.clone()),
        (
            "VNET_CNI_PLUGINS_URL",
            format!("{MIRROR}/azure-cni/v1.4.32/binaries/azure-vnet-cni-linux-{arch}-v1.4.32.tgz"),
        ),
        (
            "CNI_PLUGINS_URL",
            format!("{MIRROR}/cni-plugins/v1.1.1/binaries/cni-plugins-linux-{arch}-v1.1.1.tgz"),
        ),
    ]
}

fn has_gpu_driver(it: &Bootstrap<'_>) -> bool {
    it.record.gpu_manufacturer() == "nvidia" && Class(it.class).gpu_mode() == GpuMode::Driver
}

fn of_gpu(it: &Bootstrap<'_>) -> [(&'static str, String); 5] {
    let has_driver = has_gpu_driver(it);
    let driver = has_driver.then(|| gpu_driver::driver(&it.record.name));
    let text = |part: fn(&gpu_driver::Driver) -> &'static str| driver.as_ref().map(part).unwrap_or_default().to_owned();
    [
        ("GPU_NODE", has_driver.to_string()),
        ("CONFIG_GPU_DRIVER_IF_NEEDED", has_driver.to_string()),
        ("GPU_DRIVER_VERSION", text(|it| it.version)),
        ("GPU_DRIVER_TYPE", text(|it| it.kind)),
        ("GPU_IMAGE_SHA", text(|it| it.build)),
    ]
}

fn of_kubernetes(it: &Bootstrap<'_>) -> Vec<(&'static str, String)> {
    let minor = version::minor(it.kubernetes).unwrap_or_default();
    let arch = it.record.machine().arch;
    let binaries = (minor < 34).then(|| {
        format!(
            "{MIRROR}/kubernetes/v{}/binaries/kubernetes-node-linux-{arch}.tar.gz",
            it.kubernetes
        )
    });
    let provider = credential_provider(minor, arch);
    let class = Class(it.class);
    let flags = Kubelet {
        minor,
        max_pods: class.max_pods(it.settings),
        dns_ip: &it.cluster.dns_ip,
        overhead: &it.chosen.entry.overhead,
        taints: it.taints,
        configuration: it.class.spec.kubelet.as_ref(),
        has_credential_provider: provider.is_some(),
    };
    let labels: Vec<String> = it.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    vec![
        ("KUBERNETES_VERSION", it.kubernetes.to_owned()),
        ("KUBE_BINARY_URL", binaries.unwrap_or_default()),
        ("CREDENTIAL_PROVIDER_DOWNLOAD_URL", provider.unwrap_or_default()),
        ("KUBELET_FLAGS", flags.flags()),
        ("KUBELET_NODE_LABELS", labels.join(",")),
        (
            "CONTAINERD_CONFIG_CONTENT",
            STANDARD.encode(containerd(has_gpu_driver(it))),
        ),
        ("SYSCTL_CONTENT", STANDARD.encode(SYSCTLS)),
    ]
}

/// Who fetches credentials for Azure's registries has releases of its own.
fn credential_provider(minor: u64, arch: &str) -> Option<String> {
    let version = match minor {
        ..30 => return None,
        30 => "1.30.12",
        31 => "1.31.6",
        32 => "1.32.5",
        _ => "1.33.0",
    };
    Some(format!(
        "{MIRROR}/cloud-provider-azure/v{version}/binaries/azure-acr-credential-provider-linux-{arch}-v{version}.tar.gz"
    ))
}

/// The configuration of containerd: which runtime containers have, and where registries are described.
fn containerd(has_gpu_driver: bool) -> String {
    let cri = "plugins.\"io.containerd.grpc.v1.cri\"";
    let (name, binary) = if has_gpu_driver {
        ("nvidia-container-runtime", "/usr/bin/nvidia-container-runtime")
    } else {
        ("runc", "/usr/bin/runc")
    };
    let lines = [
        "version = 2".to_owned(),
        "oom_score = 0".to_owned(),
        format!("[{cri}]"),
        "  sandbox_image = \"mcr.microsoft.com/oss/kubernetes/pause:3.6\"".to_owned(),
        format!("  [{cri}.containerd]"),
        format!("    default_runtime_name = \"{name}\""),
        format!("    [{cri}.containerd.runtimes.{name}]"),
        "      runtime_type = \"io.containerd.runc.v2\"".to_owned(),
        format!("    [{cri}.containerd.runtimes.{name}.options]"),
        format!("      BinaryName = \"{binary}\""),
        "      SystemdCgroup = true".to_owned(),
        format!("    [{cri}.containerd.runtimes.untrusted]"),
        "      runtime_type = \"io.containerd.runc.v2\"".to_owned(),
        format!("    [{cri}.containerd.runtimes.untrusted.options]"),
        format!("      BinaryName = \"{binary}\""),
        format!("  [{cri}.registry]"),
        "    config_path = \"/etc/containerd/certs.d\"".to_owned(),
        format!("  [{cri}.registry.headers]"),
        "    X-Meta-Source-Client = [\"azure/aks\"]".to_owned(),
        "[metrics]".to_owned(),
        "  address = \"0.0.0.0:10257\"".to_owned(),
    ];
    lines.join("\n") + "\n"
}

/// The host of an address, without a port.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', ':']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_cannot_become_commands() {
        assert_eq!(quoted(r#"a"b$(c)`d`\"#), r#""a\"b\$(c)\`d\`\\""#);
    }

    #[test]
    fn the_api_server_is_named_without_scheme_and_port() {
        assert_eq!(
            host("https://c-dns.hcp.eastus.azmk8s.io:443"),
            "c-dns.hcp.eastus.azmk8s.io"
        );
        assert_eq!(host("https://c.example/"), "c.example");
    }

    #[test]
    fn the_credential_provider_follows_the_version() {
        assert_eq!(credential_provider(29, "amd64"), None);
        let url = |minor| credential_provider(minor, "arm64").unwrap();
        assert!(url(30).ends_with("azure-acr-credential-provider-linux-arm64-v1.30.12.tar.gz"));
        assert!(url(32).contains("/v1.32.5/"));
        assert!(url(36).contains("/v1.33.0/"));
    }

    #[test]
    fn gpus_get_their_runtime() {
        assert!(containerd(true).contains("default_runtime_name = \"nvidia-container-runtime\""));
        assert!(containerd(false).contains("default_runtime_name = \"runc\""));
    }

    #[test]
    fn no_variable_is_named_twice() {
        let names: std::collections::BTreeSet<&str> = FIXED.iter().map(|(name, _)| *name).collect();
        assert_eq!(names.len(), FIXED.len());
    }
}
